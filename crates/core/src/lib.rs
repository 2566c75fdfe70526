//! kvdyno's load engine: what is asked of a store, how the asking is timed, and how every answer
//! is checked. It knows no store and writes no result.
//!
//! Data flows one way: [`suite`] → [`workload`] plan → [`load`] → [`store`] → [`measure`] and
//! [`verify`] → [`verdict`].

// What every part needs and no part owns: units, hints, numbers in words, draws.
pub mod ground;
// What may be shown to somebody: secrets are hidden here.
pub mod redact;
// Folders and locks that go away with the process that has them.
pub mod folder;
pub mod lock;

// A suite file, and the plan of phases that it becomes.
pub mod suite;
// Keys, distributions, values, mixes, faults: pure functions of a seed and an operation's id.
pub mod workload;
// What a store implements.
pub mod store;
// The load loop, and what carries it.
pub mod load;
// The clock, histograms, intervals, resources.
pub mod measure;
// Stamps, the ledger, anomalies, histories and their linearizability.
pub mod verify;
// What is claimed of a run, in numbers, and the one function that makes its status.
pub mod evidence;
// Reasons for and against a measurement; conditions and claims.
pub mod verdict;
// The search for the highest rate, and the law of scaling.
pub mod capacity;
// What servers cost, from prices that the user states.
pub mod cost;

mod cache;

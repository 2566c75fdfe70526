//! kvdyno's load engine: it draws operations, sends them to a store, times them, and checks every answer. It knows no
//! store and writes no result.
//!
//! Data flows one way: [`suite`] → [`workload`] plan → [`load`] → [`store`] → [`measure`] and
//! [`verify`] → [`verdict`].

// Units, hints, numbers in words, draws: every part needs them and no part owns them.
pub mod ground;
// Redaction of secrets in everything that is shown.
pub mod redact;
// Folders and locks that go away with the process that has them.
pub mod folder;
pub mod lock;

// A suite file, and the plan of phases that it becomes.
pub mod suite;
// Keys, distributions, values, mixes, faults: pure functions of a seed and an operation's id.
pub mod workload;
// The store contract: what a driver implements.
pub mod store;
// The load loop, and what carries it.
pub mod load;
// The clock, histograms, intervals, resources.
pub mod measure;
// Stamps, the ledger, anomalies, histories and their linearizability.
pub mod verify;
// Evidence for and against each claim of a run, in numbers, and the one function that makes its status.
pub mod evidence;
// Reasons for and against a measurement; conditions and claims.
pub mod verdict;
// The search for the highest rate, and the law of scaling.
pub mod capacity;
// The cost of servers, from prices that the user states.
pub mod cost;

mod cache;

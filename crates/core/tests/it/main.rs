//! All tests of this crate that need no process of their own, as one program: each program is linked by itself, and
//! tests of one program share servers.

mod distributions;
mod histories;
mod ledger_reference;
mod ledger_stress;
mod linearizability;
mod load;
#[cfg(feature = "server-tests")]
mod porcupine;
mod register;
mod ycsb;
mod ycsb_generators;
#[cfg(feature = "server-tests")]
mod ycsb_java;

//! Every test of this crate that needs no process of its own, as one program: each program is linked by itself, and
//! tests of one program share servers.

#[cfg(feature = "server-tests")]
mod board;
#[cfg(feature = "server-tests")]
#[path = "../../../report/tests/it/browser/mod.rs"]
mod browser;
mod cli;
#[cfg(feature = "server-tests")]
mod console;
mod failover;
#[cfg(feature = "server-tests")]
mod failover_on_servers;
#[cfg(feature = "server-tests")]
mod faults;
mod linearizability;
#[cfg(feature = "server-tests")]
mod metrics;
#[cfg(feature = "server-tests")]
#[path = "../../../testbed/tests/it/one_server/mod.rs"]
mod one_server;
#[cfg(feature = "server-tests")]
mod power;
#[cfg(feature = "server-tests")]
#[path = "../../../report/tests/it/python/mod.rs"]
mod python;
mod suites;
mod support;
#[cfg(feature = "server-tests")]
mod truth;
mod verdicts_cache;
mod verdicts_correct;
mod verdicts_data;
mod verdicts_sim;

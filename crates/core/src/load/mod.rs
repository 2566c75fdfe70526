//! The one load loop and what carries it: worker threads, schedules, pacing, stop conditions.

mod any_store;
mod backoff;
mod blocking;
mod client_loop;
mod compose;
mod connection_tasks;
mod controls;
mod copies;
mod error;
mod job;
mod lane;
mod layout;
mod needs;
mod observer;
mod operation_runner;
mod pace;
mod phase;
mod recheck;
mod request_clock;
mod schedule;
mod threads;
mod timeouts;
mod timer;
mod trace;
mod worker;
mod worker_connections;

pub use any_store::AnyStore;
pub use controls::Interrupt;
pub use copies::{Agreement, Compared, CopyDifference, DIFFERENCES_SHOWN};
pub use error::LoadError;
pub use job::{Job, LoadOptions, StoreContext};
pub use needs::{Need, supports};
pub use observer::{Observer, Progress};
pub use pace::Pacing;
pub use trace::{Ran, Wanted, writers};

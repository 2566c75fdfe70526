//! The one load loop and what carries it: worker threads, schedules, pacing, stop conditions.

mod any_store;
mod backoff;
mod client_loop;
mod compose;
mod controls;
mod copies;
mod crew;
mod crews;
mod desk;
mod job;
mod lane;
mod layout;
mod needs;
mod pace;
mod phase;
mod post;
mod recheck;
mod schedule;
mod threads;
mod timeouts;
mod timer;
mod trace;
mod worker;

pub use any_store::AnyStore;
pub use controls::Interrupt;
pub use copies::{Agreement, Compared, DIFFERENCES_SHOWN, Difference};
pub use job::{Conduct, Context, Job, LoadError};
pub use needs::{Need, supports};
pub use pace::Pacing;
pub use phase::{Observer, Progress};
pub use trace::{Ran, Wanted, writers};

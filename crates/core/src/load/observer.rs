//! Who is told of a phase's course while it runs.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::measure::{Interval, Nanos};

/// How far a phase has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Progress {
    /// Time since the start.
    pub elapsed: Duration,
    /// Operations that have ended.
    pub completed: u64,
    /// Of these, those that did not succeed.
    pub unsuccessful: u64,
    /// Operations that the phase will make, where it is bounded by count.
    pub requests: Option<u64>,
}

/// Told of a phase's course while it runs.
pub trait Observer {
    /// The clients begin at `start`.
    fn began(&mut self, start: Nanos) {
        let _ = start;
    }

    /// When the first fault was begun, if one was.
    fn first_fault(&self) -> Option<Nanos> {
        None
    }

    /// An interval is complete: each worker has passed it. In order.
    fn interval(&mut self, interval: &Interval);

    /// Several times a second.
    fn progress(&mut self, progress: &Progress);

    /// As [`Observer::progress`], of reading again what looked wrong once the clients are done.
    fn again(&mut self, progress: &Progress) {
        let _ = progress;
    }
}

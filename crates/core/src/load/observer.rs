//! Who is told of a phase's course while it runs.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::worker::WorkerReport;
use crate::measure::{Batch, Interval, Nanos};

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

/// When a phase begins whose workers are all connected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Begin {
    /// As soon as all workers have heard.
    Soon,
    /// At this time on [`crate::measure::now`]'s clock.
    At(Nanos),
    /// Not at all.
    Never,
}

/// Told of a phase's course while it runs.
pub trait Observer {
    /// All of the phase's `workers` are connected, and wait to hear when they begin.
    fn ready(&mut self, workers: usize) -> Begin {
        let _ = workers;
        Begin::Soon
    }

    /// What one worker did in an interval.
    fn batch(&mut self, batch: &Batch) {
        let _ = batch;
    }

    /// A worker has ended.
    fn ended(&mut self, report: &WorkerReport) {
        let _ = report;
    }

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

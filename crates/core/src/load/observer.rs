//! Observation of a phase's course while it runs.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::worker::WorkerReport;
use crate::measure::{Batch, Interval, Nanos};

/// Progress of a phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Progress {
    /// Time since the start.
    pub elapsed: Duration,
    /// Operations that have ended.
    pub completed: u64,
    /// Operations among them that did not succeed.
    pub unsuccessful: u64,
    /// Operations that the phase will make; `None` where it is not bounded by count, or where records have several owners.
    pub requests: Option<u64>,
}

/// Time at which a phase begins whose workers are all connected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Begin {
    /// Begins as soon as all workers know of it.
    Soon,
    /// Begins at this time on [`crate::measure::now`]'s clock.
    At(Nanos),
    /// Never begins.
    Never,
}

/// Observer of a phase's course while it runs.
pub trait Observer {
    /// Decides when the phase begins; called when all of its `workers` are connected and wait.
    fn ready(&mut self, workers: usize) -> Begin {
        let _ = workers;
        Begin::Soon
    }

    /// Takes what one worker did in an interval.
    fn batch(&mut self, batch: &Batch) {
        let _ = batch;
    }

    /// Takes the report of a worker that has ended.
    fn ended(&mut self, report: &WorkerReport) {
        let _ = report;
    }

    /// Takes the time at which the clients begin.
    fn began(&mut self, start: Nanos) {
        let _ = start;
    }

    /// Returns the time at which the first fault was begun; `None` if none was.
    fn first_fault(&self) -> Option<Nanos> {
        None
    }

    /// Takes an interval that is complete, since each worker has passed it. Intervals come in order.
    fn interval(&mut self, interval: &Interval);

    /// Takes the progress of the phase, several times a second.
    fn progress(&mut self, progress: &Progress);

    /// Takes the progress of reading suspect records again, once the clients are done, as [`Observer::progress`] does.
    fn again(&mut self, progress: &Progress) {
        let _ = progress;
    }
}

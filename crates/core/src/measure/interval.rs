//! Intervals of the timeline: the batch that one worker measured in one, and all workers together.

use serde::{Deserialize, Serialize};

use super::clock::Nanos;
use super::latencies::BatchLatencies;
use super::series::{KindMeasure, Series};
use super::slots::Slot;
use super::troubles::Troubles;

/// Measurement of one worker in one interval.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Batch {
    /// Number of the worker.
    pub worker: usize,
    /// Number of the interval in the phase, from 0; one behind the last is the drain.
    pub interval: u32,
    /// True if the worker adds nothing more to the interval.
    pub over: bool,
    /// Operations started.
    pub started: u64,
    /// Operations that fell due (open arrivals) or were started (closed).
    pub offered: u64,
    /// Time at which the last operation of the batch ended, ns; 0 if none did.
    pub last_end: Nanos,
    /// Sum of service times, ns.
    pub in_store: Nanos,
    /// Measure of each series that had an operation.
    pub series: Vec<(Series, KindMeasure<BatchLatencies>)>,
    /// Counts of each slot of 20 ms in which an operation ended, reads and writes, with the slot's number in the
    /// phase. Only in a phase with faults.
    pub slots: Vec<(u32, [Slot; 2])>,
    /// Errors, wrong reads and late sends.
    #[serde(default, skip_serializing_if = "Troubles::is_none")]
    pub troubles: Troubles,
}

/// Share of what falls due in an interval that may wait at its ends without being a backlog.
const BEHIND: f64 = 0.05;
/// Number of operations that are no backlog, however few fall due.
const A_FEW: f64 = 2.0;

/// One interval of the timeline, all workers together. An operation belongs to the interval in which it ended;
/// those that ended after the phase belong to the last one. Times are on [`super::now`]'s clock.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    /// Number in the phase, from 0.
    pub index: u32,
    /// Begin, ns.
    pub start: Nanos,
    /// End, ns; the last interval is cut where the phase ended.
    pub end: Nanos,
    /// Operations that fell due (open arrivals) or were started (closed).
    pub offered: u64,
    /// Operations started.
    pub started: u64,
    /// Operations that ended, in whatever way.
    pub completed: u64,
    /// Number of the completed that failed or are indeterminate.
    pub failed: u64,
    /// Operations due by the end of the interval and not started (open arrivals; else 0).
    pub backlog: u64,
    /// Number of the completed that ended after the phase: they are in no rate. Only the last interval has any.
    pub drained: u64,
    /// Number of the drained that failed or are indeterminate.
    #[serde(default)]
    pub drained_failed: u64,
    /// Measure of each series that had an operation.
    pub series: Vec<(Series, KindMeasure)>,
    /// Errors, wrong reads and late sends.
    #[serde(default, skip_serializing_if = "Troubles::is_none")]
    pub troubles: Troubles,
}

impl Interval {
    /// Returns its length, ns.
    #[must_use]
    pub fn length(&self) -> Nanos {
        self.end.saturating_sub(self.start)
    }

    /// Returns how many operations ended within it, in whatever way.
    #[must_use]
    pub fn attempts(&self) -> u64 {
        self.completed.saturating_sub(self.drained)
    }

    /// Returns how many operations succeeded within it.
    #[must_use]
    pub fn succeeded(&self) -> u64 {
        let failed = self.failed.saturating_sub(self.drained_failed);
        self.attempts().saturating_sub(failed)
    }

    /// Returns its throughput: operations a second that succeeded within it, by its own length; 0 if it has none.
    #[must_use]
    pub fn rate(&self) -> f64 {
        match self.length() {
            0 => 0.0,
            length => self.succeeded() as f64 * 1e9 / length as f64,
        }
    }

    /// Returns the same interval by a clock that shows 0 when this one shows `origin`.
    #[must_use]
    pub fn since(self, origin: Nanos) -> Interval {
        let since = |at: Nanos| at.saturating_sub(origin);
        Interval { start: since(self.start), end: since(self.end), ..self }
    }

    /// Returns about how much memory its histograms take, bytes.
    #[must_use]
    pub fn weight(&self) -> usize {
        self.series.iter().map(|(_, measure)| measure.weight()).sum()
    }

    /// Returns true if, with open arrivals, a backlog was being worked off or still grew, so that the interval's
    /// level is not the schedule's. `before` is the backlog at the end of the interval before it.
    #[must_use]
    pub fn catches_up(&self, before: u64) -> bool {
        let allowed = (self.offered as f64 * BEHIND).max(A_FEW);
        let more = self.attempts().saturating_sub(self.offered);
        [before, self.backlog, more].into_iter().any(|waiting| waiting as f64 > allowed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_of_a_partial_interval_is_by_its_length_and_without_the_drain() {
        let (start, end) = (2_000_000_000, 2_500_000_000);
        let last = Interval { start, end, completed: 60, drained: 10, ..Interval::default() };
        assert_eq!((last.rate(), last.attempts()), (100.0, 50));
        assert_eq!(Interval { end: start, ..last }.rate(), 0.0);
    }

    #[test]
    fn what_failed_is_no_throughput() {
        let (end, completed) = (2_000_000_000, 500);
        let all = Interval { end, completed, failed: 500, ..Interval::default() };
        assert_eq!((all.rate(), all.attempts(), all.succeeded()), (0.0, 500, 0));
        // 60 of 500 failed, 20 of these after the phase, as 30 that succeeded did.
        let some = Interval { failed: 60, drained: 50, drained_failed: 20, ..all };
        assert_eq!((some.rate(), some.attempts(), some.succeeded()), (205.0, 450, 410));
    }

    #[test]
    fn what_works_off_a_backlog_catches_up() {
        let at = |completed, backlog| Interval {
            offered: 1_000,
            completed,
            backlog,
            ..Interval::default()
        };
        assert!(!at(1_000, 0).catches_up(0));
        assert!(!at(1_050, 50).catches_up(50));
        assert!(at(1_000, 51).catches_up(0), "it piles up");
        assert!(at(1_000, 0).catches_up(51), "it was there before");
        assert!(at(1_051, 0).catches_up(0), "more succeeds than falls due: clients held it");
        let few = Interval { offered: 1, completed: 3, ..Interval::default() };
        assert!(!few.catches_up(2), "a few are no backlog");
    }
}

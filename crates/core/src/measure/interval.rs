//! An interval of the timeline: what one worker measured in it, and what all of them did together.

use serde::{Deserialize, Serialize};

use super::clock::Nanos;
use super::latencies::BatchLatencies;
use super::series::{KindMeasure, Series};
use super::slots::Slot;
use super::troubles::Troubles;

/// What one worker measured in one interval.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Batch {
    /// Which worker.
    pub worker: usize,
    /// Which interval of the phase, from 0; one behind the last is the drain.
    pub interval: u32,
    /// The worker adds nothing more to it.
    pub over: bool,
    /// Operations started.
    pub started: u64,
    /// Operations that fell due (open arrivals) or were started (closed).
    pub offered: u64,
    /// When the last operation of the batch ended; 0 if none did.
    pub last_end: Nanos,
    /// Sum of service times, ns.
    pub in_store: Nanos,
    /// Each series that had an operation.
    pub series: Vec<(Series, KindMeasure<BatchLatencies>)>,
    /// What ended in each slot of 20 ms that had an operation, with its number in the phase; reads and
    /// writes. Only in a phase with faults.
    pub slots: Vec<(u32, [Slot; 2])>,
    /// What went wrong.
    #[serde(default, skip_serializing_if = "Troubles::is_none")]
    pub troubles: Troubles,
}

/// Of what falls due in an interval so much may wait at its ends without being a backlog.
const BEHIND: f64 = 0.05;
/// So many operations more or less are no backlog, however few there are.
const A_FEW: f64 = 2.0;

/// One interval of the timeline, all workers together. An operation belongs to the interval in
/// which it ended; what ended after the phase, to the last one. Times are on [`super::now`]'s clock.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    /// Number in the phase, from 0.
    pub index: u32,
    /// Begin.
    pub start: Nanos,
    /// End; the last one is cut where the phase ended.
    pub end: Nanos,
    /// Operations that fell due (open arrivals) or were started (closed).
    pub offered: u64,
    /// Operations started.
    pub started: u64,
    /// Operations that ended, in whatever way.
    pub completed: u64,
    /// Of these, the failed and the indeterminate.
    pub failed: u64,
    /// Due by the end of the interval and not started (open arrivals; else 0).
    pub backlog: u64,
    /// Of the completed, those that ended after the phase: in no rate. Only the last interval has any.
    pub drained: u64,
    /// Of the drained, the failed and the indeterminate.
    #[serde(default)]
    pub drained_failed: u64,
    /// Each series that had an operation.
    pub series: Vec<(Series, KindMeasure)>,
    /// What went wrong.
    #[serde(default, skip_serializing_if = "Troubles::is_none")]
    pub troubles: Troubles,
}

impl Interval {
    /// How long it is, ns.
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

    /// As of a clock that shows 0 when this one shows `origin`.
    #[must_use]
    pub fn since(self, origin: Nanos) -> Interval {
        let since = |at: Nanos| at.saturating_sub(origin);
        Interval { start: since(self.start), end: since(self.end), ..self }
    }

    /// About how much memory its histograms take, bytes.
    #[must_use]
    pub fn weight(&self) -> usize {
        self.series.iter().map(|(_, measure)| measure.weight()).sum()
    }

    /// Of open arrivals: what had piled up was being worked off, or still piled up, so that its level is
    /// not the schedule's. `before` is the backlog at the end of the interval before it.
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

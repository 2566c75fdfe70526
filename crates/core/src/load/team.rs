//! Workers in other processes. A worker sends batches and a report: plain data that goes through a connection as well
//! as through a channel, so the same code brings together a phase whose workers are elsewhere. Times are converted to
//! this process's clock on the way in.

use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};

use super::job::Job;
use super::observer::Observer;
use super::phase::{PhaseThread, Started};
use super::threads::Report;
use super::worker::WorkerReport;
use crate::measure::{Batch, Nanos, OldRecords, PhaseMeasure, SLOT, Stalls, Stretch};
use crate::verify::{ANOMALIES_KEPT, Findings, ForeignReads};

/// Time before a stop at which it has to be decided, so that it reaches every worker in time.
const NOTICE: Duration = Duration::from_millis(50);

/// A phase whose workers are all in other processes.
pub struct Team(Started);

/// Sender of the workers' batches and reports to a [`Team`].
#[derive(Clone)]
pub struct TeamVoice {
    batches: Sender<Batch>,
    reports: Sender<Report>,
}

impl Team {
    /// Makes a team of so many workers, numbered from 0, whose phase begins at `start`, by the calendar `started_at`.
    #[must_use]
    pub fn new(workers: usize, start: Nanos, started_at: SystemTime) -> (TeamVoice, Team) {
        let (batch_sink, batches) = channel();
        let (report_sink, reports) = channel();
        let started = Started { workers, start, started_at, batches, reports, notice: NOTICE };
        (TeamVoice { batches: batch_sink, reports: report_sink }, Team(started))
    }

    /// Brings together the workers' batches and reports until all have ended or are lost. Calls `stalls` once, at the
    /// end, for the times at which the workers' processes stood still. Suspect records are still to be read again, by
    /// the workers' processes.
    pub fn conduct(
        self,
        job: &Arc<Job>,
        observer: &mut dyn Observer,
        stalls: impl FnOnce() -> Stalls,
    ) -> PhaseMeasure {
        if let Some(duration) = job.plan.duration {
            job.controls.stop_at(self.0.start + duration.as_nanos() as Nanos);
        }
        observer.began(self.0.start);
        let mut watch = PhaseThread::new(self.0, job);
        watch.until_the_end(job, observer);
        watch.close(job, observer);
        watch.into_measure(job, stalls())
    }
}

impl TeamVoice {
    // Sending fails only where the phase was given up: nothing is lost by that.

    /// Passes on an interval of one worker.
    pub fn batch(&self, batch: Batch) {
        let _ = self.batches.send(batch);
    }

    /// Passes on the report of a worker that has ended.
    pub fn ended(&self, report: WorkerReport) {
        let _ = self.reports.send(Report::Ended(Box::new(report)));
    }

    /// Reports a worker as lost: nothing more will come from it.
    pub fn lost(&self, worker: usize) {
        let _ = self.reports.send(Report::Lost(worker));
    }
}

/// Conversion from another process's clock and worker numbers to this one's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Moved {
    /// Number in this process of the other's first worker.
    pub first_worker: usize,
    /// Difference of the clocks, ns: this one less the other.
    pub clock: i64,
}

impl Moved {
    /// Converts a time to this process's clock; `Nanos::MAX` stays as it is.
    #[must_use]
    pub fn time(self, at: Nanos) -> Nanos {
        // For ever stays for ever.
        if at == Nanos::MAX { at } else { at.saturating_add_signed(self.clock) }
    }

    fn stretch(self, stretch: &mut Stretch) {
        (stretch.from, stretch.to) = (self.time(stretch.from), self.time(stretch.to));
    }

    /// Converts a batch to this process's clock and worker numbers.
    #[must_use]
    pub fn batch(self, mut batch: Batch) -> Batch {
        batch.worker += self.first_worker;
        if batch.last_end > 0 {
            batch.last_end = self.time(batch.last_end);
        }
        let slots = batch.slots.iter_mut().flat_map(|(_, slots)| slots);
        slots.filter_map(|slot| slot.errors.as_mut()).for_each(|errors| self.stretch(errors));
        batch
    }

    /// Converts a worker's report to this process's clock and worker numbers.
    #[must_use]
    pub fn report(self, mut report: WorkerReport) -> WorkerReport {
        report.worker += self.first_worker;
        for error in &mut report.errors {
            (error.first_at, error.last_at) = (self.time(error.first_at), self.time(error.last_at));
        }
        report.timeouts = report.timeouts.moved(|at| self.time(at));
        let silences = report.silences.iter_mut().flat_map(|silences| &mut silences.stretches);
        silences.for_each(|stretch| self.stretch(stretch));
        self.findings(&mut report.findings);
        let mut missed_at = crate::verify::MissedAt::new();
        for (at, count) in report.missed_at {
            *missed_at.entry(self.time(at) / SLOT * SLOT).or_default() += count;
        }
        report.missed_at = missed_at;
        report
    }

    /// Converts the times of findings to this process's clock.
    pub fn findings(self, findings: &mut Findings) {
        for anomaly in &mut findings.anomalies {
            let (sent, answered) = (anomaly.sent, anomaly.answered);
            (anomaly.sent, anomaly.answered) = (self.time(sent), self.time(answered));
        }
    }

    /// Converts the times at which a process stood still to this process's clock.
    #[must_use]
    pub fn stalls(self, mut stalls: Stalls) -> Stalls {
        stalls.gaps.iter_mut().for_each(|gap| self.stretch(gap));
        stalls
    }
}

/// Results of verification in one process, once suspect records were read again there.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct LookedAgain {
    /// Counts of what was read, and what was wrong with it.
    pub findings: Findings,
    /// Counts of the records that were old or absent, by what reading again gave.
    pub old: OldRecords,
    /// Records that were to be read back and were not answered.
    pub unread: u64,
    /// Reads of other processes' records; `findings` include them.
    pub foreign: ForeignReads,
}

impl LookedAgain {
    /// Takes the results of a phase that was measured in this process.
    #[must_use]
    pub fn of(measure: &PhaseMeasure) -> LookedAgain {
        let findings = Findings {
            tally: measure.tally.clone(),
            anomalies: measure.anomalies.clone(),
            behind: measure.behind,
        };
        let (old, unread) = (measure.old, measure.unread);
        LookedAgain { findings, old, unread, foreign: ForeignReads::default() }
    }

    /// Adds the results of another process.
    pub fn add(&mut self, other: LookedAgain) {
        self.findings.add(other.findings);
        self.old.lost += other.old.lost;
        self.old.lost_inserts += other.old.lost_inserts;
        self.old.late += other.old.late;
        self.old.unread += other.old.unread;
        self.unread += other.unread;
        self.foreign.add(other.foreign);
    }

    /// Enters the results of all processes into `measure`, in place of what their workers reported.
    pub fn enter(self, measure: &mut PhaseMeasure) {
        let Findings { tally, anomalies, behind } = self.findings;
        (measure.tally, measure.anomalies, measure.behind) = (tally, anomalies, behind);
        (measure.old, measure.unread) = (self.old, self.unread);
    }
}

impl Findings {
    /// Adds other findings; takes as many of their examples as there is room for.
    pub fn add(&mut self, other: Findings) {
        self.tally.add(&other.tally);
        self.behind.add(&other.behind);
        let room = ANOMALIES_KEPT.saturating_sub(self.anomalies.len());
        self.anomalies.extend(other.anomalies.into_iter().take(room));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::{Silences, Troubles};

    const BACK: Moved = Moved { first_worker: 4, clock: -3_000 };

    #[test]
    fn what_comes_from_another_clock_is_told_by_this_one() {
        let batch = Batch {
            worker: 1,
            interval: 7,
            over: true,
            started: 0,
            offered: 0,
            last_end: 10_000,
            in_store: 500,
            series: Vec::new(),
            slots: Vec::new(),
            troubles: Troubles::default(),
        };
        let moved = BACK.batch(batch.clone());
        assert_eq!((moved.worker, moved.last_end, moved.interval), (5, 7_000, 7));
        let none = BACK.batch(Batch { last_end: 0, ..batch });
        assert_eq!(none.last_end, 0, "nothing ended");
        let mut silences = Silences::total(5_000);
        silences.stretches.iter_mut().for_each(|stretch| BACK.stretch(stretch));
        assert_eq!(silences.stretches, [Stretch { from: 2_000, to: Nanos::MAX }]);
    }

    #[test]
    fn findings_are_added_and_their_examples_bounded() {
        let mut all = LookedAgain::default();
        for _ in 0..3 {
            let mut one = LookedAgain { unread: 2, ..LookedAgain::default() };
            (one.findings.tally.reads, one.old.lost) = (10, 2);
            one.old.lost_inserts = 1;
            all.add(one);
        }
        assert_eq!((all.findings.tally.reads, all.unread), (30, 6));
        assert_eq!((all.old.lost, all.old.lost_inserts), (6, 3));
    }
}

//! State shared by the clients of one worker thread: the lanes, the recorder, the examiner. All of it belongs to that
//! thread alone.

use std::cell::{Cell, RefCell, RefMut};
use std::collections::BTreeMap;
use std::sync::Arc;

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

use super::job::Job;
use super::lane::Lane;
use super::schedule::Walk;
use super::timeouts::Timeouts;
use crate::measure::{
    Ending, ErrorSummary, Nanos, Recorder, Series, Silences, Timing, WorkerUse, as_text,
    latency_histogram,
};
use crate::store::{Certainty, ErrorClass, RequestError};
use crate::verify::{Examiner, Findings, KeptRequest, MissedAt};

/// Most random arrivals for each second of an interval that a worker counts one by one: more than it can send.
const COUNTED_A_SECOND: u64 = 1 << 21;
/// Most operations never started that a worker counts one by one at the end.
const COUNTED_AT_THE_END: u64 = 1 << 22;

/// State shared by the clients of one thread.
pub(super) struct Worker {
    job: Arc<Job>,
    lanes: Vec<Lane>,
    recorder: RefCell<Recorder>,
    examiner: RefCell<Examiner>,
    errors: RefCell<BTreeMap<(ErrorClass, bool), ErrorSummary>>,
    timeouts: RefCell<Timeouts>,
    lag: RefCell<Option<Histogram<u64>>>,
    /// The number of operations that fell due is an estimate.
    estimated: Cell<bool>,
}

/// Report of a worker whose clients have ended: plain data, which may go to another process.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct WorkerReport {
    /// Number of the worker among those of its process, zero-based.
    pub(super) worker: usize,
    pub(super) used: WorkerUse,
    pub(super) errors: Vec<ErrorSummary>,
    pub(super) timeouts: Timeouts,
    #[serde(with = "as_text")]
    pub(super) lag: Option<Histogram<u64>>,
    #[serde(with = "as_text")]
    pub(super) unstarted: Option<Histogram<u64>>,
    /// Stretches of time in which nothing succeeded: of reads, and of writes.
    pub(super) silences: [Silences; 2],
    /// For each lane: number of the group, and one more than its highest id given out.
    pub(super) issued: Vec<(u16, u64)>,
    /// Findings of its examiner.
    pub(super) findings: Findings,
    /// Requests about sampled records.
    pub(super) kept: Vec<KeptRequest>,
    pub(super) missed_at: MissedAt,
    /// A lane of its process saw a change of the rate only after it had passed the operation of the change.
    pub(super) late_change: bool,
    /// More fell due than the worker had time to count: its number of operations due is an estimate.
    pub(super) estimated: bool,
}

impl WorkerReport {
    /// Makes the report of no real worker, for a simulated agent: it has seen nothing wrong since `start`, and was
    /// never without success.
    #[must_use]
    pub fn of_no_worker(used: WorkerUse, start: Nanos, issued: Vec<(u16, u64)>) -> WorkerReport {
        let silences = Silences { stretches: Vec::new(), ..Silences::total(start) };
        WorkerReport {
            worker: 0,
            used,
            errors: Vec::new(),
            timeouts: Timeouts::default(),
            lag: None,
            unstarted: None,
            silences: [silences.clone(), silences],
            issued,
            findings: Findings::default(),
            kept: Vec::new(),
            missed_at: MissedAt::new(),
            late_change: false,
            estimated: false,
        }
    }

    /// Returns the number of the worker among those of its process.
    #[must_use]
    pub fn worker(&self) -> usize {
        self.worker
    }

    /// Returns the worker's use of its time; the time of its operations is not in it.
    #[must_use]
    #[inline]
    pub fn used(&self) -> WorkerUse {
        self.used
    }

    /// Returns the lag: how much later than due requests were sent although a client was free, ns; open arrivals only.
    #[must_use]
    #[inline]
    pub fn send_lag(&self) -> Option<&Histogram<u64>> {
        self.lag.as_ref()
    }

    /// Returns, for each of its lanes, the number of the group and one more than its highest operation given out.
    #[must_use]
    pub fn issued(&self) -> &[(u16, u64)] {
        &self.issued
    }

    /// Returns true if a change of the rate came too late for the worker: some operations behind the change's own
    /// still had the former rate.
    #[must_use]
    #[inline]
    pub fn late_change(&self) -> bool {
        self.late_change
    }

    /// Returns the findings of its examiner.
    #[must_use]
    pub fn findings(&self) -> &Findings {
        &self.findings
    }
}

impl Worker {
    pub fn new(job: Arc<Job>, lanes: Vec<Lane>, recorder: Recorder, examiner: Examiner) -> Self {
        Worker {
            job,
            lanes,
            recorder: RefCell::new(recorder),
            examiner: RefCell::new(examiner),
            errors: RefCell::default(),
            timeouts: RefCell::default(),
            lag: RefCell::new(None),
            estimated: Cell::new(false),
        }
    }

    pub fn job(&self) -> &Job {
        &self.job
    }

    pub fn lanes(&self) -> &[Lane] {
        &self.lanes
    }

    /// Returns the time from which no operation starts.
    #[inline]
    pub fn deadline(&self) -> Nanos {
        self.job.controls.deadline()
    }

    #[inline]
    pub fn examiner(&self) -> RefMut<'_, Examiner> {
        self.examiner.borrow_mut()
    }

    /// Notes how late a request leaves whose client waited for its due time. Returns the time at which it leaves.
    #[inline]
    pub fn note_lag(&self, due: Nanos, claimed: Nanos) -> Nanos {
        if claimed >= due {
            return claimed;
        }
        let now = crate::measure::now();
        let lag = now.saturating_sub(due).max(1);
        self.recorder.borrow_mut().note_late(now, lag);
        let mut histogram = self.lag.borrow_mut();
        histogram.get_or_insert_with(latency_histogram).saturating_record(lag);
        now
    }

    /// Counts as late what fell due before the worker began, at `begun`: no client was there that could have sent it.
    #[cold]
    pub fn note_begin(&self, due: Nanos, begun: Nanos) {
        let before = begun.min(self.deadline());
        let mut walk = Walk::of(COUNTED_A_SECOND);
        let missed = self.lanes.iter().filter_map(|lane| lane.unstarted(before, &mut walk));
        for missed in missed.filter(|missed| !missed.is_empty()) {
            self.recorder.borrow_mut().note_late(begun, begun.saturating_sub(due));
            let mut lag = self.lag.borrow_mut();
            let lag = lag.get_or_insert_with(latency_histogram::<u64>);
            // Both have the bounds of every latency.
            let _ = lag.add(&missed);
        }
    }

    /// Records an operation that has ended.
    #[inline(always)]
    pub fn record(
        &self,
        series: Series,
        ending: Ending,
        records: u64,
        timing: Timing,
        error: Option<&RequestError>,
    ) {
        let mut recorder = self.recorder.borrow_mut();
        while recorder.is_over(timing.done) {
            self.hand_over(&mut recorder);
        }
        recorder.end(series, ending, records, timing);
        if let Some(error) = error {
            recorder.note_error(error.class);
            self.note_error(error, timing.done);
        }
    }

    #[cold]
    fn hand_over(&self, recorder: &mut Recorder) {
        let end = recorder.interval_end();
        recorder.note_wrong(self.examiner.borrow_mut().take_fresh(end));
        recorder.hand_over(self.offered_before(end));
    }

    #[inline]
    fn offered_before(&self, end: Nanos) -> u64 {
        // What falls due after the stop is asked of nobody.
        let end = end.min(self.deadline());
        let seconds = self.job.interval().div_ceil(1_000_000_000);
        let mut walk = Walk::of(COUNTED_A_SECOND.saturating_mul(seconds));
        let offered = self.lanes.iter().map(|lane| lane.offered_before(end, &mut walk)).sum();
        self.note_estimate(&walk);
        offered
    }

    #[inline]
    fn note_estimate(&self, walk: &Walk) {
        self.estimated.set(self.estimated.get() || walk.has_estimated());
    }

    /// Notes that a client has come to its end: if the phase is over, what other clients still do is the drain. The
    /// worker notices an unplanned stop when its first client does, so one operation that ended in the same interval,
    /// but after the stop, may count as in time: a look before each operation would cost time on every one.
    #[cold]
    pub fn note_stop(&self) {
        self.recorder.borrow_mut().stop_at(self.deadline());
    }

    /// Counts an operation that is about to be sent, at `now`.
    #[inline]
    pub fn note_start(&self, now: Nanos) {
        self.recorder.borrow_mut().start(now);
    }

    /// Marks `record`, a read of which was not answered.
    #[cold]
    pub fn note_unread(&self, record: u64) {
        if let Some(unread) = &self.job.unread {
            unread.set(record);
        }
    }

    #[cold]
    fn note_error(&self, error: &RequestError, at: Nanos) {
        let key = (error.class, error.certainty == Certainty::Indeterminate);
        let mut errors = self.errors.borrow_mut();
        let summary = errors.entry(key).or_insert_with(|| ErrorSummary {
            class: error.class,
            certainty: error.certainty,
            count: 0,
            of_client: 0,
            first_message: error.message.to_string(),
            first_at: at,
            last_at: at,
        });
        summary.count += 1;
        summary.last_at = at;
        if error.class == ErrorClass::Timeout {
            self.timeouts.borrow_mut().note(error.certainty, at);
        }
    }

    /// Ends the measurement of worker number `worker` at `now`, hands over the last interval, and returns the report.
    /// `used` is the worker's use of its time.
    pub fn finish(self, now: Nanos, worker: usize, used: WorkerUse) -> WorkerReport {
        let deadline = self.deadline();
        let stop = deadline.min(now);
        let mut walk = Walk::of(COUNTED_AT_THE_END);
        let unstarted = self.lanes.iter().filter_map(|lane| lane.unstarted(stop, &mut walk));
        let unstarted = unstarted.reduce(|mut all, lane| {
            all.add(&lane).expect("same bounds");
            all
        });
        self.note_estimate(&walk);
        {
            let mut recorder = self.recorder.borrow_mut();
            recorder.stop_at(deadline);
            // A worker whose requests are all made may be the last: its phase ends within this interval.
            while now >= deadline && recorder.is_over(deadline) {
                self.hand_over(&mut recorder);
            }
            recorder.note_wrong(self.examiner.borrow_mut().take_fresh(Nanos::MAX));
            recorder.hand_over_rest(self.offered_before(stop));
        }
        let issued = self.lanes.iter().map(|lane| (lane.group, lane.issued())).collect();
        let late_change = self.job.rates.iter().any(|rate| rate.was_late());
        let mut examiner = self.examiner.into_inner();
        WorkerReport {
            worker,
            used,
            silences: self.recorder.into_inner().into_silences(),
            kept: examiner.take_kept(),
            missed_at: examiner.take_missed_at(),
            findings: examiner.into_findings(),
            errors: self.errors.into_inner().into_values().collect(),
            timeouts: self.timeouts.into_inner(),
            lag: self.lag.into_inner(),
            unstarted,
            issued,
            late_change,
            estimated: self.estimated.get(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::store::OperationId;
    use crate::verify::{Anomaly, AnomalyKind, Behind, Tally};

    /// A worker's report is plain data: nothing of it is lost on the way to another process.
    #[test]
    fn a_report_comes_back_as_it_went() {
        let mut lag = latency_histogram::<u64>();
        (1..2_000).for_each(|n| lag.record(n * 977).unwrap());
        let mut timeouts = Timeouts::default();
        timeouts.note(Certainty::Indeterminate, 3_000_000_000);
        let anomaly = Anomaly {
            kind: AnomalyKind::Stale,
            operation: OperationId { phase: 1, group: 2, id: 3 },
            writer: None,
            record: 7,
            field: 0,
            seen: Some(4),
            floor: 5,
            next: 6,
            sent: 10,
            answered: 20,
            behind: Some(Duration::from_millis(3)),
            again: String::new(),
            detail: "old".to_owned(),
        };
        let report = WorkerReport {
            worker: 3,
            used: WorkerUse { clients: 5, ..WorkerUse::default() },
            errors: vec![ErrorSummary {
                class: ErrorClass::Timeout,
                certainty: Certainty::Indeterminate,
                count: 1,
                of_client: 0,
                first_message: "no answer".to_owned(),
                first_at: 3,
                last_at: 4,
            }],
            timeouts,
            lag: Some(lag),
            unstarted: None,
            silences: [Silences::total(5), Silences::total(6)],
            issued: vec![(0, 99)],
            findings: Findings {
                tally: Tally { reads: 12, ..Tally::default() },
                anomalies: vec![anomaly],
                behind: Behind { reads: 1, versions: Some((1, 1)), ..Behind::default() },
            },
            kept: Vec::new(),
            missed_at: [(20_000_000, 2)].into(),
            late_change: true,
            estimated: true,
        };
        let text = serde_json::to_string(&report).unwrap();
        let read: WorkerReport = serde_json::from_str(&text).unwrap();
        assert!(read.lag == report.lag, "the histogram is another");
        assert_eq!(serde_json::to_string(&read).unwrap(), text);
    }
}

//! What the clients of one worker thread share: the lanes, the recorder, the examiner. All of it
//! belongs to that thread alone.

use std::cell::{RefCell, RefMut};
use std::collections::BTreeMap;
use std::sync::Arc;

use hdrhistogram::Histogram;

use super::job::Job;
use super::lane::Lane;
use super::timeouts::Timeouts;
use crate::measure::{
    Ending, ErrorSummary, Nanos, Recorder, Series, Silences, Timing, latency_histogram,
};
use crate::store::{Certainty, ErrorClass, RequestError};
use crate::verify::Examiner;

/// Shared by the clients of one thread.
pub(super) struct Worker {
    job: Arc<Job>,
    lanes: Vec<Lane>,
    recorder: RefCell<Recorder>,
    examiner: RefCell<Examiner>,
    errors: RefCell<BTreeMap<(ErrorClass, bool), ErrorSummary>>,
    timeouts: RefCell<Timeouts>,
    lag: RefCell<Option<Histogram<u64>>>,
}

/// What is left of a worker when its clients have ended.
pub(super) struct Remains {
    pub examiner: Examiner,
    pub errors: Vec<ErrorSummary>,
    pub timeouts: Timeouts,
    pub lag: Option<Histogram<u64>>,
    pub unstarted: Option<Histogram<u64>>,
    /// When nothing succeeded, of reads and of writes.
    pub silences: [Silences; 2],
    /// For each lane: number of the group, and one more than its highest id given out.
    pub issued: Vec<(u16, u64)>,
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
        }
    }

    pub fn job(&self) -> &Job {
        &self.job
    }

    pub fn lanes(&self) -> &[Lane] {
        &self.lanes
    }

    /// The time from which no operation starts.
    #[inline]
    pub fn deadline(&self) -> Nanos {
        self.job.controls.deadline()
    }

    #[inline]
    pub fn examiner(&self) -> RefMut<'_, Examiner> {
        self.examiner.borrow_mut()
    }

    /// Notes how late a request that waited for its due time leaves, if its client waited for it.
    #[inline]
    pub fn note_lag(&self, due: Nanos, claimed: Nanos) {
        if claimed < due {
            let lag = crate::measure::now().saturating_sub(due).max(1);
            let mut histogram = self.lag.borrow_mut();
            histogram.get_or_insert_with(latency_histogram).saturating_record(lag);
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
        fault: Option<&RequestError>,
    ) {
        let mut recorder = self.recorder.borrow_mut();
        while recorder.is_over(timing.done) {
            self.hand_over(&mut recorder);
        }
        recorder.end(series, ending, records, timing);
        if let Some(fault) = fault {
            self.note_error(fault, timing.done);
        }
    }

    #[cold]
    fn hand_over(&self, recorder: &mut Recorder) {
        let end = recorder.interval_end();
        recorder.hand_over(self.offered_before(end));
    }

    fn offered_before(&self, end: Nanos) -> u64 {
        // What falls due after the stop is asked of nobody.
        let end = end.min(self.deadline());
        self.lanes.iter().map(|lane| lane.offered_before(end)).sum()
    }

    /// A client has come to its end: if because the phase has, what others still do is the drain. Of a
    /// stop that nobody foresaw the worker hears when its first client does, so that one operation of
    /// it may count as in time that ended in the same interval and later: looking before each would
    /// cost every operation.
    #[cold]
    pub fn note_stop(&self) {
        self.recorder.borrow_mut().stop_at(self.deadline());
    }

    /// Counts an operation that is about to be sent.
    #[inline]
    pub fn note_start(&self) {
        self.recorder.borrow_mut().start();
    }

    /// A read of `record` was not answered.
    #[cold]
    pub fn note_unread(&self, record: u64) {
        if let Some(unread) = &self.job.unread {
            unread.set(record);
        }
    }

    #[cold]
    fn note_error(&self, fault: &RequestError, at: Nanos) {
        let key = (fault.class, fault.certainty == Certainty::Indeterminate);
        let mut errors = self.errors.borrow_mut();
        let summary = errors.entry(key).or_insert_with(|| ErrorSummary {
            class: fault.class,
            certainty: fault.certainty,
            count: 0,
            of_client: 0,
            first_message: fault.message.to_string(),
            first_at: at,
            last_at: at,
        });
        summary.count += 1;
        summary.last_at = at;
        if fault.class == ErrorClass::Timeout {
            self.timeouts.borrow_mut().note(fault.certainty, at);
        }
    }

    /// Ends the measurement at `now`, hands the last interval over and gives up the rest.
    pub fn finish(self, now: Nanos) -> Remains {
        let deadline = self.deadline();
        let stop = deadline.min(now);
        let unstarted =
            self.lanes.iter().filter_map(|lane| lane.unstarted(stop)).reduce(|mut all, lane| {
                all.add(&lane).expect("same bounds");
                all
            });
        {
            let mut recorder = self.recorder.borrow_mut();
            recorder.stop_at(deadline);
            // A worker whose requests are all made may be the last: its phase ends within this interval.
            while now >= deadline && recorder.is_over(deadline) {
                self.hand_over(&mut recorder);
            }
            recorder.hand_over_rest(self.offered_before(stop));
        }
        let issued = self.lanes.iter().map(|lane| (lane.group, lane.issued())).collect();
        Remains {
            silences: self.recorder.into_inner().into_silences(),
            examiner: self.examiner.into_inner(),
            errors: self.errors.into_inner().into_values().collect(),
            timeouts: self.timeouts.into_inner(),
            lag: self.lag.into_inner(),
            unstarted,
            issued,
        }
    }
}

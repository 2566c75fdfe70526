//! One worker's measurement while the load runs: counts and histograms of the current interval,
//! handed to the phase's thread when the interval is over. Nothing here is shared, so recording
//! an operation costs two histogram increments at most and no synchronisation.

use std::sync::mpsc::Sender;

use super::clock::Nanos;
use super::interval::Batch;
use super::latencies::BatchLatencies;
use super::series::{Ending, KindMeasure, Series};
use super::silence::{Listener, Silences};
use super::slots::{Side, Slots};
use super::troubles::Troubles;
use crate::store::ErrorClass;
use crate::verify::AnomalyKind;
use crate::workload::Kind;

/// Timing of one operation.
#[derive(Clone, Copy, Debug)]
pub struct Timing {
    /// Time at which it was due, ns, if it had a due time.
    pub due: Option<Nanos>,
    /// Time at which it was sent, ns.
    pub sent: Nanos,
    /// Time at which it was answered, ns.
    pub done: Nanos,
}

/// Recorder of the operations of one worker.
#[derive(Debug)]
pub struct Recorder {
    worker: usize,
    width: Nanos,
    interval: u32,
    /// End of the current interval, ns; `Nanos::MAX` once the phase is over: operations that end then are the drain.
    interval_end: Nanos,
    /// End of the phase, ns; `Nanos::MAX` as long as it is not known.
    stop: Nanos,
    started: u64,
    last_end: Nanos,
    in_store: Nanos,
    /// Series by group and kind; the index is group × number of kinds + kind.
    series: Vec<Recording>,
    /// Stretches without success of reads and of writes.
    listeners: [Listener; 2],
    slots: Option<Slots>,
    troubles: Troubles,
    /// Late sends of intervals that are still to come: time of sending and lag, ns.
    ahead: Vec<(Nanos, Nanos)>,
    /// Times at which operations of intervals that are still to come were started, ns.
    started_ahead: Vec<Nanos>,
    start: Nanos,
    sink: Sender<Batch>,
}

/// Record of one series.
#[derive(Debug, Default)]
struct Recording {
    measure: KindMeasure,
    shared: Shared,
}

/// Service time that several operations in a row have had, and that is still to be recorded. Where requests leave
/// together and their answers come with one read, all of them have the same.
#[derive(Debug, Default)]
struct Shared {
    service: Nanos,
    times: u32,
}

impl Recording {
    #[inline(always)]
    fn succeed(&mut self, records: u64, service: Nanos) {
        self.measure.succeed(records);
        if self.shared.service != service {
            self.record_shared();
            self.shared.service = service;
        }
        self.shared.times += 1;
    }

    #[inline(always)]
    fn record_shared(&mut self) {
        let Shared { service, times } = std::mem::take(&mut self.shared);
        if times > 0 {
            self.measure.record_service(service, times);
        }
    }
}

const KINDS: usize = Kind::ALL.len();

impl Recorder {
    /// Creates a recorder with intervals of `width` ns from `start` on; batches of `worker` go to `sink`.
    #[must_use]
    pub fn new(
        worker: usize,
        groups: usize,
        start: Nanos,
        width: Nanos,
        sink: Sender<Batch>,
    ) -> Self {
        let mut series = Vec::new();
        series.resize_with(groups * KINDS, Recording::default);
        Recorder {
            worker,
            width,
            interval: 0,
            interval_end: start + width,
            stop: Nanos::MAX,
            started: 0,
            last_end: 0,
            in_store: 0,
            series,
            listeners: [Listener::new(start), Listener::new(start)],
            slots: None,
            troubles: Troubles::default(),
            ahead: Vec::new(),
            started_ahead: Vec::new(),
            start,
            sink,
        }
    }

    /// Makes the recorder count by slots, too, for a phase with faults.
    #[must_use]
    pub fn with_slots(self) -> Recorder {
        Recorder { slots: Some(Slots::new(self.start)), ..self }
    }

    /// Sets the end of the phase. The interval in which `stop` lies ends there, too, and operations that end later are
    /// handed over apart. An earlier end stays.
    #[inline]
    pub fn stop_at(&mut self, stop: Nanos) {
        if stop < self.stop {
            self.stop = stop;
            self.interval_end = self.interval_end.min(stop);
        }
    }

    /// Returns the stretches without success, of reads and of writes.
    #[must_use]
    #[inline]
    pub fn into_silences(self) -> [Silences; 2] {
        self.listeners.map(Listener::into_silences)
    }

    /// Returns true if the interval is over at `when`: the caller then hands it over before going on.
    #[inline]
    #[must_use]
    pub fn is_over(&self, when: Nanos) -> bool {
        when >= self.interval_end
    }

    /// Returns the end of the current interval, ns.
    #[must_use]
    #[inline]
    pub fn interval_end(&self) -> Nanos {
        self.interval_end
    }

    /// Counts an operation that was started at `now`. A worker goes on with the next interval only with an answer, so
    /// that the operation may belong to an interval that is still to come.
    #[inline]
    pub fn start(&mut self, now: Nanos) {
        if now < self.interval_end {
            self.started += 1;
        } else {
            self.started_ahead.push(now);
        }
    }

    /// Counts an operation that has ended, in the current interval.
    #[inline(always)]
    pub fn end(&mut self, series: Series, ending: Ending, records: u64, timing: Timing) {
        let service = timing.done - timing.sent;
        let recording = &mut self.series[usize::from(series.group) * KINDS + series.kind as usize];
        match (ending, timing.due) {
            (Ending::Ok { missed: 0 }, None) => recording.succeed(records, service),
            (_, due) => {
                let response = due.map(|due| timing.done.saturating_sub(due));
                recording.measure.record(series.kind, ending, records, service, response);
            }
        }
        let side = Side::of(series.kind);
        if matches!(ending, Ending::Ok { .. }) {
            self.listeners[side as usize].success(timing.done);
        }
        if let Some(slots) = &mut self.slots {
            slots.note(series.kind, ending, records, timing.done);
        }
        self.last_end = timing.done;
        self.in_store += service;
    }

    /// Notes that an operation which ended in the current interval had an error of this class.
    #[cold]
    pub fn note_error(&mut self, class: ErrorClass) {
        self.troubles.note_error(class);
    }

    /// Notes a request that was sent at the moment `sent`, by `late` ns later than due.
    #[inline]
    pub fn note_late(&mut self, sent: Nanos, late: Nanos) {
        if sent < self.interval_end {
            self.troubles.latest_send = self.troubles.latest_send.max(late);
        } else {
            self.ahead.push((sent, late));
        }
    }

    /// Notes wrong reads of the current interval.
    pub fn note_wrong(&mut self, wrong: Vec<(AnomalyKind, u64)>) {
        self.troubles.add(&Troubles { wrong, ..Troubles::default() });
    }

    /// Hands over the current interval, which is over, and goes on with the next. `offered` is the number of operations
    /// that fell due in it.
    pub fn hand_over(&mut self, offered: u64) {
        self.send(offered, true);
        let over = self.interval_end >= self.stop;
        self.interval += 1;
        self.interval_end = match over {
            true => Nanos::MAX,
            false => (self.interval_end + self.width).min(self.stop),
        };
        let ahead = std::mem::take(&mut self.ahead);
        ahead.into_iter().for_each(|(sent, late)| self.note_late(sent, late));
        let started = std::mem::take(&mut self.started_ahead);
        started.into_iter().for_each(|now| self.start(now));
    }

    /// Hands over what there is of the current interval, in which the worker has come to its end.
    pub fn hand_over_rest(&mut self, offered: u64) {
        let latest = self.ahead.drain(..).map(|(_, late)| late).max().unwrap_or(0);
        self.troubles.latest_send = self.troubles.latest_send.max(latest);
        self.started += self.started_ahead.drain(..).len() as u64;
        self.send(offered, false);
    }

    fn send(&mut self, offered: u64, over: bool) {
        let mut series = Vec::new();
        for (slot, recording) in self.series.iter_mut().enumerate() {
            recording.record_shared();
            if recording.measure.completed() > 0 {
                let (group, kind) = ((slot / KINDS) as u16, Kind::ALL[slot % KINDS]);
                let measure = std::mem::take(&mut recording.measure);
                series.push((Series { group, kind }, measure.map(BatchLatencies::Counted)));
            }
        }
        let batch = Batch {
            worker: self.worker,
            interval: self.interval,
            over,
            started: self.started,
            offered,
            last_end: self.last_end,
            in_store: self.in_store,
            series,
            slots: self.slots.as_mut().map(Slots::take).unwrap_or_default(),
            troubles: std::mem::take(&mut self.troubles),
        };
        // The phase's thread outlives its workers unless it gave up on them; then nobody listens.
        let _ = self.sink.send(batch);
        (self.started, self.last_end, self.in_store) = (0, 0, 0);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use hdrhistogram::Histogram;

    use super::*;

    #[test]
    fn what_went_wrong_is_told_with_the_interval_to_which_it_belongs() {
        let (sink, batches) = channel();
        let mut recorder = Recorder::new(0, 1, 0, 1_000, sink);
        recorder.note_late(900, 5);
        // The worker hears of no answer until the third interval.
        recorder.note_late(2_100, 70);
        recorder.note_late(2_200, 30);
        recorder.hand_over(0);
        recorder.hand_over(0);
        recorder.note_error(ErrorClass::Timeout);
        recorder.note_wrong(vec![(AnomalyKind::Stale, 2)]);
        recorder.note_late(9_000, 8);
        recorder.hand_over_rest(0);
        let told: Vec<Troubles> = batches.try_iter().map(|batch| batch.troubles).collect();
        assert_eq!(told.iter().map(|told| told.latest_send).collect::<Vec<_>>(), [5, 0, 70]);
        assert!(told[0].errors.is_empty() && told[0].wrong.is_empty());
        assert_eq!(told[2].errors, [(ErrorClass::Timeout, 1)]);
        assert_eq!(told[2].wrong, [(AnomalyKind::Stale, 2)]);
    }

    #[test]
    fn an_operation_is_started_in_the_interval_in_which_it_was_sent() {
        let (sink, batches) = channel();
        let mut recorder = Recorder::new(0, 1, 0, 1_000, sink);
        // No answer comes before the fourth interval.
        [100, 999, 1_000, 2_500, 9_000].into_iter().for_each(|now| recorder.start(now));
        (0..3).for_each(|_| recorder.hand_over(0));
        recorder.hand_over_rest(0);
        let started: Vec<u64> = batches.try_iter().map(|batch| batch.started).collect();
        assert_eq!(started, [2, 1, 1, 1]);
    }

    #[test]
    fn latencies_that_several_operations_share_are_counted_once_for_each_in_its_interval() {
        let (sink, batches) = channel();
        let mut recorder = Recorder::new(0, 1, 0, 1_000, sink);
        let mut end = |kind, services: &[Nanos], due: Option<Nanos>| {
            for &service in services {
                let series = Series { group: 0, kind };
                let timing = Timing { due, sent: 100, done: 100 + service };
                recorder.end(series, Ending::Ok { missed: 0 }, 1, timing);
            }
        };
        end(Kind::Get, &[5, 5], None);
        end(Kind::Update, &[5], None);
        end(Kind::Get, &[5, 7, 5, 0, 0], None);
        end(Kind::Get, &[5], Some(90));
        recorder.hand_over(0);
        recorder.end(
            Series { group: 0, kind: Kind::Get },
            Ending::Ok { missed: 0 },
            1,
            Timing { due: None, sent: 1_000, done: 1_005 },
        );
        recorder.hand_over(0);
        let all = batches.try_iter().flat_map(|batch| batch.series);
        let counts: Vec<(Series, KindMeasure)> =
            all.map(|(series, measure)| (series, measure.map(Histogram::from))).collect();
        let of = |place: usize, service| {
            let (series, measure) = &counts[place];
            (series.kind, measure.ok, measure.service.as_ref().unwrap().count_at(service))
        };
        assert_eq!(counts.len(), 3);
        assert_eq!(of(0, 5), (Kind::Get, 8, 5));
        assert_eq!((of(0, 7).2, of(0, 1).2), (1, 2));
        assert_eq!(of(1, 5), (Kind::Update, 1, 1));
        assert_eq!(of(2, 5), (Kind::Get, 1, 1));
        let responses = counts[0].1.response.as_ref().unwrap();
        assert_eq!((responses.len(), responses.count_at(15)), (1, 1));
    }
}

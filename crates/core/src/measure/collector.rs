//! Brings the workers' intervals together: a timeline of merged intervals and the phase's totals.
//! Histograms are added, percentiles never averaged.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use hdrhistogram::Histogram;

use super::clock::Nanos;
use super::interval::{Batch, Interval};
use super::latencies::Latencies;
use super::series::{KindMeasure, KindTotal, Series};
use super::troubles::Troubles;

/// Collector of the batches of all workers of a phase.
#[derive(Debug)]
pub struct Collector {
    start: Nanos,
    width: Nanos,
    open: BTreeMap<u32, BTreeMap<Series, KindMeasure>>,
    counts: BTreeMap<u32, Counts>,
    /// First interval that each worker may still add to; `u32::MAX` once it has ended.
    next_of: Vec<u32>,
    next_closed: u32,
    offered: u64,
    started: u64,
    open_arrival: bool,
    /// Totals of the intervals that are closed.
    totals: BTreeMap<Series, KindTotal>,
    last_end: Nanos,
    last_success: Nanos,
    completed: u64,
    unsuccessful: u64,
    in_store: Vec<Nanos>,
    /// Number of records with which each worker's reads were answered.
    read: Vec<u64>,
}

#[derive(Clone, Debug, Default)]
struct Counts {
    offered: u64,
    started: u64,
    troubles: Troubles,
}

impl Collector {
    /// Creates a collector for a phase that began at `start`, with intervals of `width` ns and `workers`
    /// workers.
    #[must_use]
    pub fn new(start: Nanos, width: Nanos, workers: usize, open_arrival: bool) -> Self {
        Collector {
            start,
            width,
            open: BTreeMap::new(),
            counts: BTreeMap::new(),
            next_of: vec![0; workers],
            next_closed: 0,
            offered: 0,
            started: 0,
            open_arrival,
            totals: BTreeMap::new(),
            last_end: start,
            last_success: start,
            completed: 0,
            unsuccessful: 0,
            in_store: vec![0; workers],
            read: vec![0; workers],
        }
    }

    /// Adds a worker's interval.
    pub fn add(&mut self, batch: Batch) {
        self.next_of[batch.worker] = batch.interval + u32::from(batch.over);
        self.in_store[batch.worker] += batch.in_store;
        let counts = self.counts.entry(batch.interval).or_default();
        counts.offered += batch.offered;
        counts.started += batch.started;
        counts.troubles.add(&batch.troubles);
        self.last_end = self.last_end.max(batch.last_end);
        let open = self.open.entry(batch.interval).or_default();
        for (series, measure) in batch.series {
            if measure.ok > 0 {
                self.last_success = self.last_success.max(batch.last_end);
            }
            self.completed += measure.completed();
            self.unsuccessful += measure.failed + measure.indeterminate;
            if series.kind.gets() || series.kind.read_only() {
                self.read[batch.worker] += measure.records;
            }
            enter(open, series, measure);
        }
    }

    /// Notes that a worker will add nothing more.
    pub fn worker_ended(&mut self, worker: usize) {
        self.next_of[worker] = u32::MAX;
    }

    /// Takes the intervals that are complete, in order: all workers have passed them. The phase ends at
    /// `deadline`, as far as that is known: the interval in which it does is the last, and waits for
    /// [`Collector::finish`].
    pub fn closed(&mut self, deadline: Nanos) -> Vec<Interval> {
        let complete = self.next_of.iter().copied().min().unwrap_or(u32::MAX);
        let mut closed = Vec::new();
        while complete != u32::MAX
            && self.next_closed < complete
            && self.boundary(self.next_closed + 1) < deadline
        {
            let next = self.close(self.next_closed, Nanos::MAX);
            closed.push(next);
        }
        closed
    }

    /// Takes the intervals that are left of a phase that ended at `end`, and whose workers are done.
    /// Operations that ended later are the drain, and are counted in the last interval.
    pub fn finish(&mut self, end: Nanos) -> Vec<Interval> {
        let length = end.saturating_sub(self.start);
        let count = (length.div_ceil(self.width) as u32).max(self.next_closed);
        // Where there is no interval left to tell it in, nothing can have happened either.
        if let Some(last) = count.checked_sub(1).filter(|last| *last >= self.next_closed) {
            self.fold(last);
        }
        let closed = (self.next_closed..count).map(|index| self.close(index, end)).collect();
        // What came too late for its interval is in the totals all the same.
        for (series, measure) in std::mem::take(&mut self.open).into_values().flatten() {
            self.totals.entry(series).or_default().add(&measure);
        }
        closed
    }

    /// Adds all that is behind interval `last` to it, as the drain.
    fn fold(&mut self, last: u32) {
        for (_, counts) in self.counts.split_off(&(last + 1)) {
            let told = self.counts.entry(last).or_default();
            told.offered += counts.offered;
            told.started += counts.started;
            told.troubles.add(&counts.troubles);
        }
        let behind = self.open.split_off(&(last + 1));
        let told = self.open.entry(last).or_default();
        for (series, mut measure) in behind.into_values().flatten() {
            measure.drained = measure.as_drained();
            enter(told, series, measure);
        }
    }

    /// Returns the begin of interval `index`, ns.
    fn boundary(&self, index: u32) -> Nanos {
        self.start + u64::from(index) * self.width
    }

    fn close(&mut self, index: u32, phase_end: Nanos) -> Interval {
        self.next_closed = index + 1;
        let counts = self.counts.remove(&index).unwrap_or_default();
        self.offered += counts.offered;
        self.started += counts.started;
        let series: Vec<_> = self.open.remove(&index).unwrap_or_default().into_iter().collect();
        // Once for all workers: they may be hundreds.
        for (series, measure) in &series {
            self.totals.entry(*series).or_default().add(measure);
        }
        Interval {
            index,
            start: self.boundary(index),
            end: self.boundary(index + 1).min(phase_end),
            offered: counts.offered,
            started: counts.started,
            completed: series.iter().map(|(_, m)| m.completed()).sum(),
            failed: series.iter().map(|(_, m)| m.failed + m.indeterminate).sum(),
            backlog: if self.open_arrival { self.offered.saturating_sub(self.started) } else { 0 },
            drained: series.iter().map(|(_, m)| m.drained.completed()).sum(),
            drained_failed: series.iter().map(|(_, m)| m.drained.unsuccessful).sum(),
            series,
            troubles: counts.troubles,
        }
    }

    /// Returns the number of operations that have ended so far.
    #[must_use]
    pub fn completed(&self) -> u64 {
        self.completed
    }

    /// Returns the number of operations that ended without success so far.
    #[must_use]
    pub fn unsuccessful(&self) -> u64 {
        self.unsuccessful
    }

    /// Returns the end of the last operation so far; the phase's start if there was none.
    #[must_use]
    pub fn last_end(&self) -> Nanos {
        self.last_end
    }

    /// Returns the first moment after all operations so far; the phase's start if there was none.
    #[must_use]
    pub fn end_of_work(&self) -> Nanos {
        self.last_end + u64::from(self.last_end > self.start)
    }

    /// Returns about when the last operation succeeded (the end of the newest batch with a success).
    #[must_use]
    pub fn last_success(&self) -> Nanos {
        self.last_success
    }

    /// Returns the numbers of operations that fell due and that were started, in the intervals closed so
    /// far.
    #[must_use]
    pub fn offered_and_started(&self) -> (u64, u64) {
        (self.offered, self.started)
    }

    /// Returns the sum of service times of a worker's operations, ns.
    #[must_use]
    pub fn in_store(&self, worker: usize) -> Nanos {
        self.in_store[worker]
    }

    /// Returns the number of records with which a worker's reads were answered, as far as it has handed
    /// over.
    #[must_use]
    pub fn read_by(&self, worker: usize) -> u64 {
        self.read[worker]
    }

    /// Returns the totals of each series, of the intervals closed so far.
    #[must_use]
    pub fn totals(&self) -> Vec<(Series, KindTotal)> {
        self.totals.iter().map(|(series, measure)| (*series, measure.clone())).collect()
    }
}

/// Adds a worker's measure of a series in an interval.
fn enter<L>(open: &mut BTreeMap<Series, KindMeasure>, series: Series, measure: KindMeasure<L>)
where
    L: Latencies<Count = u32> + Into<Histogram<u32>>,
{
    match open.entry(series) {
        Entry::Vacant(entry) => {
            entry.insert(measure.map(L::into));
        }
        Entry::Occupied(mut entry) => entry.get_mut().add(&measure),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::recorder::{Recorder, Timing};
    use crate::measure::series::{Drained, Ending};
    use crate::workload::Kind;
    use std::io::{BufRead, BufReader, Write};
    use std::os::unix::net::UnixStream;
    use std::sync::mpsc::{Receiver, channel};

    const SERIES: Series = Series { group: 0, kind: Kind::Get };
    const FOUND: Ending = Ending::Ok { missed: 0 };
    const NO_DEADLINE: Nanos = Nanos::MAX;

    fn end(recorder: &mut Recorder, sent: Nanos, done: Nanos, ending: Ending) {
        while recorder.is_over(done) {
            recorder.hand_over(0);
        }
        recorder.start(sent);
        recorder.end(SERIES, ending, 3, Timing { due: None, sent, done });
    }

    /// Returns workers of a phase that began at `start`, with intervals of 1,000 ns, and their collector.
    fn phase(start: Nanos, workers: usize) -> (Collector, Vec<Recorder>, Receiver<Batch>) {
        let (sink, batches) = channel();
        let recorder = |worker| Recorder::new(worker, 1, start, 1_000, sink.clone());
        let recorders = (0..workers).map(recorder).collect();
        (Collector::new(start, 1_000, workers, false), recorders, batches)
    }

    fn take(collector: &mut Collector, batches: &Receiver<Batch>) {
        batches.try_iter().for_each(|batch| collector.add(batch));
    }

    /// Returns begin, end, completed and drained of each interval.
    fn spans_and_counts(intervals: &[Interval]) -> Vec<(Nanos, Nanos, u64, u64)> {
        intervals.iter().map(|i| (i.start, i.end, i.completed, i.drained)).collect()
    }

    #[test]
    fn an_operation_belongs_to_the_interval_in_which_it_ended() {
        let (mut collector, mut recorders, batches) = phase(100, 2);
        end(&mut recorders[0], 150, 160, FOUND);
        end(&mut recorders[0], 150, 3_150, Ending::Ok { missed: 3 });
        end(&mut recorders[1], 200, 1_099, Ending::Failed);
        end(&mut recorders[1], 200, 1_100, Ending::Indeterminate);
        recorders.iter_mut().for_each(|recorder| recorder.hand_over_rest(0));
        take(&mut collector, &batches);
        (0..2).for_each(|worker| collector.worker_ended(worker));
        assert_eq!(collector.end_of_work(), 3_151);
        let all = collector.finish(3_151);
        let completed: Vec<_> = all.iter().map(|i| (i.completed, i.failed)).collect();
        assert_eq!(completed, [(2, 1), (1, 1), (0, 0), (1, 0)]);
        let ends: Vec<_> = all.iter().map(|interval| interval.end).collect();
        assert_eq!(ends, [1_100, 2_100, 3_100, 3_151], "the last one ends with its last operation");
        let totals = &collector.totals()[0].1;
        assert_eq!((totals.ok, totals.missing, totals.failed), (2, 1, 1));
        assert_eq!((totals.indeterminate, totals.drained), (1, Drained::default()));
        assert_eq!(totals.service.as_ref().map(|h| h.len()), Some(1));
        assert_eq!(totals.missed_service.as_ref().map(|h| h.len()), Some(1), "one found nothing");
        assert_eq!(totals.unsuccessful_service.as_ref().map(|h| h.len()), Some(2));
    }

    #[test]
    fn reads_are_known_by_the_worker_that_made_them() {
        let (mut collector, mut recorders, batches) = phase(0, 2);
        [100, 1_200].into_iter().for_each(|done| end(&mut recorders[0], 10, done, FOUND));
        end(&mut recorders[1], 10, 100, Ending::Failed);
        recorders.iter_mut().for_each(|recorder| recorder.hand_over_rest(0));
        take(&mut collector, &batches);
        assert_eq!((collector.read_by(0), collector.read_by(1)), (6, 0));
    }

    #[test]
    fn no_interval_begins_at_the_end_and_what_ends_later_is_told_in_the_last_one() {
        // At the end of an interval, and within one.
        for (stop, last) in [(4_000, (3_000, 4_000)), (3_400, (3_000, 3_400))] {
            let (mut collector, mut recorders, batches) = phase(0, 2);
            for recorder in &mut recorders {
                recorder.stop_at(stop);
                end(recorder, 500, 600, FOUND);
                end(recorder, 3_100, 3_399, FOUND);
            }
            // Due in time, answered late: within the interval that is cut, and long after it.
            end(&mut recorders[0], 3_390, stop, FOUND);
            end(&mut recorders[0], 3_390, 9_700, Ending::Indeterminate);
            take(&mut collector, &batches);
            assert_eq!(collector.closed(stop).len(), 3);
            for (worker, recorder) in recorders.iter_mut().enumerate() {
                while recorder.is_over(stop) {
                    recorder.hand_over(0);
                }
                recorder.hand_over_rest(0);
                take(&mut collector, &batches);
                collector.worker_ended(worker);
                assert!(collector.closed(stop).is_empty(), "the last one waits for all");
            }
            let (begin, end) = last;
            let rest = collector.finish(stop);
            assert_eq!(spans_and_counts(&rest), [(begin, end, 4, 2)]);
            assert_eq!(rest[0].series[0].1.service.as_ref().map(|h| h.len()), Some(3));
            let (_, totals) = &collector.totals()[0];
            assert_eq!((totals.ok, totals.records, totals.indeterminate), (5, 15, 1));
            assert_eq!(
                totals.drained,
                Drained { ok: 1, records: 3, unsuccessful: 1, ..Drained::default() }
            );
            assert_eq!(collector.last_end(), 9_700);
        }
    }

    #[test]
    fn a_stop_that_nobody_foresaw_cuts_too() {
        let (mut collector, mut recorders, batches) = phase(0, 1);
        let recorder = &mut recorders[0];
        // The worker hears of it after it has begun the next interval.
        [900, 1_500, 2_010].into_iter().for_each(|done| end(recorder, done - 10, done, FOUND));
        recorder.stop_at(1_990);
        recorder.stop_at(5_000);
        end(recorder, 1_980, 2_020, FOUND);
        recorder.hand_over_rest(0);
        take(&mut collector, &batches);
        collector.worker_ended(0);
        assert_eq!(
            spans_and_counts(&collector.finish(1_990)),
            [(0, 1_000, 1, 0), (1_000, 1_990, 3, 2)]
        );
    }

    #[test]
    fn the_time_in_which_nothing_falls_due_any_more_has_intervals() {
        let (mut collector, mut recorders, batches) = phase(0, 1);
        end(&mut recorders[0], 0, 10, FOUND);
        end(&mut recorders[0], 1_000, 1_020, FOUND);
        recorders[0].hand_over_rest(0);
        take(&mut collector, &batches);
        collector.worker_ended(0);
        let all =
            [(0, 1_000, 1, 0), (1_000, 2_000, 1, 0), (2_000, 3_000, 0, 0), (3_000, 3_500, 0, 0)];
        assert_eq!(spans_and_counts(&collector.finish(3_500)), all);
        let (mut nothing, _, _) = phase(700, 1);
        assert!(nothing.finish(700).is_empty(), "stopped before it began");
    }

    #[test]
    fn the_last_interval_ends_with_its_last_operation_though_one_worker_ends_before_the_other() {
        let (mut collector, mut recorders, batches) = phase(0, 2);
        for recorder in &mut recorders {
            end(recorder, 1_001, 1_010, FOUND);
            recorder.hand_over_rest(0);
        }
        take(&mut collector, &batches);
        // Both have handed over all that they have, and nobody has said yet that this was all.
        let ends = |closed: Vec<Interval>| closed.iter().map(|i| i.end).collect::<Vec<_>>();
        assert_eq!(ends(collector.closed(NO_DEADLINE)), [1_000]);
        collector.worker_ended(0);
        assert!(collector.closed(NO_DEADLINE).is_empty());
        collector.worker_ended(1);
        assert_eq!(ends(collector.finish(collector.end_of_work())), [1_011]);
    }

    #[test]
    fn an_interval_waits_for_every_worker() {
        let (mut collector, mut recorders, batches) = phase(0, 2);
        end(&mut recorders[0], 1, 2, FOUND);
        end(&mut recorders[0], 2_001, 2_002, FOUND);
        take(&mut collector, &batches);
        assert!(collector.closed(NO_DEADLINE).is_empty());
        end(&mut recorders[1], 1, 1_500, FOUND);
        recorders[1].hand_over(0);
        take(&mut collector, &batches);
        assert_eq!(collector.closed(NO_DEADLINE).len(), 2);
    }

    #[test]
    fn batches_that_went_through_a_socket_come_to_the_same_intervals_to_the_bit() {
        let (mut here, mut recorders, batches) = phase(0, 2);
        for (worker, recorder) in recorders.iter_mut().enumerate() {
            for n in 0..5_000 {
                let (sent, took) = (n, 1 + (n * n * 7_919 + worker as u64) % 40_000_000);
                let ending =
                    [FOUND, FOUND, Ending::Ok { missed: 3 }, Ending::Failed][n as usize % 4];
                end(recorder, sent, sent + took, ending);
            }
            recorder.hand_over_rest(0);
        }
        let (mut near, far) = UnixStream::pair().unwrap();
        let sender = std::thread::spawn(move || {
            let sent: Vec<Batch> = batches.iter().collect();
            for batch in &sent {
                serde_json::to_writer(&near, batch).unwrap();
                near.write_all(b"\n").unwrap();
            }
            sent
        });
        drop(recorders);
        let (mut there, _, _) = phase(0, 2);
        for line in BufReader::new(far).lines() {
            there.add(serde_json::from_str(&line.unwrap()).unwrap());
        }
        sender.join().unwrap().into_iter().for_each(|batch| here.add(batch));
        let close = |collector: &mut Collector| {
            (0..2).for_each(|worker| collector.worker_ended(worker));
            collector.finish(30_000)
        };
        let intervals = close(&mut here);
        assert!(intervals.len() == 30 && intervals[29].drained > 0);
        assert_eq!(close(&mut there), intervals);
        assert_eq!(there.totals(), here.totals());
    }
}

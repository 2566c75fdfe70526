//! Brings the workers' intervals together: a timeline of merged intervals and the phase's totals.
//! Histograms are added, percentiles never averaged.

use std::collections::BTreeMap;

use super::clock::Nanos;
use super::interval::{Batch, Interval};
use super::series::{KindMeasure, Series};

/// Merges the batches of all workers of a phase.
#[derive(Debug)]
pub struct Collector {
    start: Nanos,
    width: Nanos,
    open: BTreeMap<u32, BTreeMap<Series, KindMeasure<u32>>>,
    counts: BTreeMap<u32, Counts>,
    /// The next interval that each worker may still add to; `u32::MAX` once it has ended.
    next_of: Vec<u32>,
    next_closed: u32,
    offered: u64,
    started: u64,
    open_arrival: bool,
    totals: BTreeMap<Series, KindMeasure<u64>>,
    last_end: Nanos,
    last_success: Nanos,
    unsuccessful: u64,
    in_store: Vec<Nanos>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    offered: u64,
    started: u64,
}

impl Collector {
    /// For a phase that began at `start`, of intervals of `width` ns, with `workers` workers.
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
            unsuccessful: 0,
            in_store: vec![0; workers],
        }
    }

    /// Adds a worker's interval.
    pub fn add(&mut self, batch: Batch) {
        self.next_of[batch.worker] = batch.interval + 1;
        self.in_store[batch.worker] += batch.in_store;
        let counts = self.counts.entry(batch.interval).or_default();
        counts.offered += batch.offered;
        counts.started += batch.started;
        self.last_end = self.last_end.max(batch.last_end);
        let open = self.open.entry(batch.interval).or_default();
        for (series, measure) in batch.series {
            if measure.ok > 0 {
                self.last_success = self.last_success.max(batch.last_end);
            }
            self.unsuccessful += measure.failed + measure.indeterminate;
            self.totals.entry(series).or_default().add(&measure);
            match open.entry(series) {
                std::collections::btree_map::Entry::Vacant(entry) => {
                    entry.insert(measure);
                }
                std::collections::btree_map::Entry::Occupied(mut entry) => {
                    entry.get_mut().add(&measure);
                }
            }
        }
    }

    /// A worker will add nothing more.
    pub fn worker_ended(&mut self, worker: usize) {
        self.next_of[worker] = u32::MAX;
    }

    /// Takes the intervals that are complete, in order: all workers have passed them.
    pub fn closed(&mut self) -> Vec<Interval> {
        let complete = self.next_of.iter().copied().min().unwrap_or(u32::MAX);
        let mut closed = Vec::new();
        let mut last_known = self.counts.last_key_value().map_or(0, |(&index, _)| index + 1);
        let ending = complete != u32::MAX && self.next_of.contains(&u32::MAX);
        if ending {
            // It is the last one, perhaps, and shorter than the others.
            last_known = last_known.saturating_sub(1);
        }
        while self.next_closed < complete.min(last_known) {
            closed.push(self.close(self.next_closed));
            self.next_closed += 1;
        }
        if let Some(last) = closed.last_mut().filter(|_| complete == u32::MAX) {
            last.end = cut_end(last, self.last_end);
        }
        closed
    }

    fn close(&mut self, index: u32) -> Interval {
        let counts = self.counts.remove(&index).unwrap_or_default();
        self.offered += counts.offered;
        self.started += counts.started;
        let series: Vec<_> = self.open.remove(&index).unwrap_or_default().into_iter().collect();
        let start = self.start + u64::from(index) * self.width;
        Interval {
            index,
            start,
            end: start + self.width,
            offered: counts.offered,
            started: counts.started,
            completed: series.iter().map(|(_, m)| m.completed()).sum(),
            failed: series.iter().map(|(_, m)| m.failed + m.indeterminate).sum(),
            backlog: if self.open_arrival { self.offered.saturating_sub(self.started) } else { 0 },
            series,
        }
    }

    /// Operations that have ended so far.
    #[must_use]
    pub fn completed(&self) -> u64 {
        self.totals.values().map(KindMeasure::completed).sum()
    }

    /// Operations that ended without success so far.
    #[must_use]
    pub fn unsuccessful(&self) -> u64 {
        self.unsuccessful
    }

    /// End of the last operation so far; the phase's start if there was none.
    #[must_use]
    pub fn last_end(&self) -> Nanos {
        self.last_end
    }

    /// About when the last operation succeeded (the end of the newest batch with a success).
    #[must_use]
    pub fn last_success(&self) -> Nanos {
        self.last_success
    }

    /// Operations that fell due and that were started, in the intervals closed so far.
    #[must_use]
    pub fn offered_and_started(&self) -> (u64, u64) {
        (self.offered, self.started)
    }

    /// Sum of service times of a worker's operations, ns.
    #[must_use]
    pub fn in_store(&self, worker: usize) -> Nanos {
        self.in_store[worker]
    }

    /// Totals of each series.
    #[must_use]
    pub fn totals(&self) -> Vec<(Series, KindMeasure<u64>)> {
        self.totals.iter().map(|(series, measure)| (*series, measure.clone())).collect()
    }
}

/// The last interval lasts until the last operation: its rate would be too low otherwise.
fn cut_end(last: &Interval, last_end: Nanos) -> Nanos {
    if (last.start + 1..last.end).contains(&last_end) { last_end } else { last.end }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::recorder::{Recorder, Timing};
    use crate::measure::series::Ending;
    use crate::workload::Kind;
    use std::sync::mpsc::channel;

    const SERIES: Series = Series { group: 0, kind: Kind::Get };

    fn end(recorder: &mut Recorder, sent: Nanos, done: Nanos, ending: Ending) {
        while recorder.is_over(done) {
            recorder.hand_over(0);
        }
        recorder.start();
        recorder.end(SERIES, ending, 1, Timing { due: None, sent, done });
    }

    #[test]
    fn an_operation_belongs_to_the_interval_in_which_it_ended() {
        let (sink, batches) = channel();
        let mut collector = Collector::new(100, 1_000, 2, false);
        let mut recorders: Vec<_> =
            (0..2).map(|w| Recorder::new(w, 1, 100, 1_000, sink.clone())).collect();
        end(&mut recorders[0], 150, 160, Ending::Ok { found: true });
        end(&mut recorders[0], 150, 3_150, Ending::Ok { found: false });
        end(&mut recorders[1], 200, 1_099, Ending::Failed);
        end(&mut recorders[1], 200, 1_100, Ending::Indeterminate);
        for recorder in &mut recorders {
            recorder.hand_over(0);
        }
        batches.try_iter().for_each(|batch| collector.add(batch));
        collector.worker_ended(0);
        collector.worker_ended(1);
        let closed = collector.closed();
        let completed: Vec<_> = closed.iter().map(|i| (i.completed, i.failed)).collect();
        assert_eq!(completed, [(2, 1), (1, 1), (0, 0), (1, 0)]);
        let ends: Vec<_> = closed.iter().map(|interval| interval.end).collect();
        assert_eq!(ends, [1_100, 2_100, 3_100, 3_150], "the last one ends with its last operation");
        let totals = &collector.totals()[0].1;
        assert_eq!((totals.ok, totals.missing, totals.failed), (2, 1, 1));
        assert_eq!(totals.indeterminate, 1);
        assert_eq!(totals.service.as_ref().map(|h| h.len()), Some(2));
        assert_eq!(totals.unsuccessful_service.as_ref().map(|h| h.len()), Some(2));
    }

    #[test]
    fn the_last_interval_ends_with_its_last_operation_though_one_worker_ends_before_the_other() {
        let (sink, batches) = channel();
        let mut collector = Collector::new(0, 1_000, 2, false);
        for worker in 0..2 {
            let mut recorder = Recorder::new(worker, 1, 0, 1_000, sink.clone());
            end(&mut recorder, 1_001, 1_010, Ending::Ok { found: true });
            recorder.hand_over(0);
        }
        batches.try_iter().for_each(|batch| collector.add(batch));
        // Both have handed over all that they have, and one has not said yet that this was all.
        collector.worker_ended(0);
        let ends = |closed: Vec<Interval>| closed.iter().map(|i| i.end).collect::<Vec<_>>();
        assert_eq!(ends(collector.closed()), [1_000]);
        collector.worker_ended(1);
        assert_eq!(ends(collector.closed()), [1_010]);
    }

    #[test]
    fn an_interval_waits_for_every_worker() {
        let (sink, batches) = channel();
        let mut collector = Collector::new(0, 1_000, 2, false);
        let mut fast = Recorder::new(0, 1, 0, 1_000, sink.clone());
        let mut slow = Recorder::new(1, 1, 0, 1_000, sink);
        end(&mut fast, 1, 2, Ending::Ok { found: true });
        end(&mut fast, 2_001, 2_002, Ending::Ok { found: true });
        batches.try_iter().for_each(|batch| collector.add(batch));
        assert!(collector.closed().is_empty());
        end(&mut slow, 1, 1_500, Ending::Ok { found: true });
        slow.hand_over(0);
        batches.try_iter().for_each(|batch| collector.add(batch));
        assert_eq!(collector.closed().len(), 2);
    }
}

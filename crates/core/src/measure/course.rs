//! How success and failure went over a phase, finer than its intervals tell: the stretches without
//! success to the nanosecond in every phase, and counts for each 20 ms in a phase with faults. What a
//! fault under load cost is read from here.

use hdrhistogram::{Counter, Histogram};

use super::clock::Nanos;
use super::interval::{Batch, Interval};
use super::series::{KindMeasure, latency_histogram};
use super::silence::{Silences, Stretch};
use super::slots::{SLOT, Side, Slot};

/// Most slots of a phase: neighbours are merged beyond that.
const MOST_SLOTS: usize = 1 << 18;

/// The 99th percentiles of an interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Calm {
    /// The interval.
    pub stretch: Stretch,
    /// Of reads and writes, ns: response time where arrivals are open. What did not succeed took for
    /// ever; `None` where nothing ended.
    pub p99: [Option<f64>; 2],
}

/// How a phase went; see the top of the file.
#[derive(Clone, Debug, Default)]
pub struct Course {
    /// Begin of the phase.
    pub start: Nanos,
    /// Stretches without success, of reads and of writes; `None` until a worker has ended.
    pub silences: Option<[Silences; 2]>,
    /// Width of a slot, ns.
    pub slot: Nanos,
    /// One after the other from the begin on, reads and writes; only in a phase with faults.
    pub slots: Vec<[Slot; 2]>,
    /// The intervals' percentiles, in order; only in a phase with faults.
    pub calm: Vec<Calm>,
    /// When the load was level with its schedule: the begin of the first interval in which it worked
    /// off no backlog; with closed arrivals that of the phase. `None` if it never was.
    pub level_from: Option<Nanos>,
    /// 99th percentiles of all intervals from then to the begin of the first fault, of reads and of
    /// writes, ns; only in a phase with faults.
    pub former_p99: [Option<f64>; 2],
}

/// Brings together what the workers tell of a phase's course.
#[derive(Debug)]
pub(crate) struct Chronicle {
    course: Course,
    /// The phase has faults.
    faults: bool,
    /// What was due and not started when the last interval was over.
    backlog: u64,
    factor: u32,
    former: [Sums; 2],
}

/// Latencies of one side with the number of operations that took for ever.
#[derive(Debug, Default)]
struct Sums {
    latencies: Option<Histogram<u64>>,
    unsuccessful: u64,
}

impl Sums {
    fn add<C: Counter>(&mut self, measure: &KindMeasure<C>)
    where
        u64: From<C>,
    {
        self.unsuccessful += measure.failed + measure.indeterminate;
        let Some(latencies) = measure.response.as_ref().or(measure.service.as_ref()) else {
            return;
        };
        let sum = self.latencies.get_or_insert_with(latency_histogram);
        for step in latencies.iter_recorded() {
            sum.saturating_record_n(step.value_iterated_to(), step.count_at_value().into());
        }
    }

    fn p99(&self) -> Option<f64> {
        percentile(self.latencies.as_ref(), self.unsuccessful, 0.99)
    }
}

/// The latency at `quantile` (0 to 1) of operations of which `unsuccessful` more took for ever;
/// `None` if there were none.
#[must_use]
pub fn percentile(
    latencies: Option<&Histogram<u64>>,
    unsuccessful: u64,
    quantile: f64,
) -> Option<f64> {
    let succeeded = latencies.map_or(0, Histogram::len);
    let all = succeeded.saturating_add(unsuccessful);
    if all == 0 {
        return None;
    }
    // The smallest rank of which at least this share is at or below.
    let rank = ((quantile * all as f64).ceil() as u64).clamp(1, all);
    match latencies {
        Some(latencies) if rank <= succeeded => {
            Some(latencies.value_at_quantile(rank as f64 / succeeded as f64) as f64)
        }
        _ => Some(f64::INFINITY),
    }
}

impl Chronicle {
    /// Of a phase that began at `start`, with `open` arrivals or closed ones, with `faults` or without.
    pub(crate) fn new(start: Nanos, open: bool, faults: bool) -> Self {
        let level_from = (!open).then_some(start);
        let course = Course { start, slot: SLOT, level_from, ..Course::default() };
        Chronicle { course, faults, backlog: 0, factor: 1, former: Default::default() }
    }

    /// A worker's interval.
    pub(crate) fn add(&mut self, batch: &Batch) {
        for (index, slots) in &batch.slots {
            while (index / self.factor) as usize >= MOST_SLOTS {
                self.fold();
            }
            let at = (index / self.factor) as usize;
            if self.course.slots.len() <= at {
                self.course.slots.resize(at + 1, Default::default());
            }
            let mine = &mut self.course.slots[at];
            mine.iter_mut().zip(slots).for_each(|(mine, theirs)| mine.add(theirs));
        }
    }

    /// Halves the number of slots.
    fn fold(&mut self) {
        self.factor *= 2;
        self.course.slot *= 2;
        let folded = self.course.slots.chunks(2).map(|pair| {
            let mut sum = pair[0];
            for other in &pair[1..] {
                sum.iter_mut().zip(other).for_each(|(mine, theirs)| mine.add(theirs));
            }
            sum
        });
        self.course.slots = folded.collect();
    }

    /// An interval that all workers have passed. `first_fault`: when the first fault was begun, if one
    /// was by now.
    pub(crate) fn interval(&mut self, interval: &Interval, first_fault: Option<Nanos>) {
        let before = std::mem::replace(&mut self.backlog, interval.backlog);
        if self.course.level_from.is_none() && !interval.catches_up(before) {
            self.course.level_from = Some(interval.start);
        }
        if !self.faults {
            return;
        }
        let former = first_fault.is_none_or(|fault| interval.end <= fault)
            && self.course.level_from.is_some();
        let mut sums: [Sums; 2] = Default::default();
        for (series, measure) in &interval.series {
            let side = Side::of(series.kind) as usize;
            sums[side].add(measure);
            if former {
                self.former[side].add(measure);
            }
        }
        let stretch = Stretch { from: interval.start, to: interval.end };
        self.course.calm.push(Calm { stretch, p99: sums.each_ref().map(Sums::p99) });
    }

    /// A worker has ended.
    pub(crate) fn ended(&mut self, silences: &[Silences; 2]) {
        let all = match &self.course.silences {
            Some([reads, writes]) => [reads.and(&silences[0]), writes.and(&silences[1])],
            None => silences.clone(),
        };
        self.course.silences = Some(all);
    }

    pub(crate) fn finish(mut self) -> Course {
        self.course.former_p99 = self.former.each_ref().map(Sums::p99);
        self.course
    }
}

#[cfg(test)]
mod tests;

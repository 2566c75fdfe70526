//! How success and failure went over a phase, finer than its intervals tell: the stretches without
//! success to the nanosecond in every phase, and counts for each 20 ms in a phase with faults. What a
//! fault under load cost is read from here.
//!
//! A stretch in which no client succeeded lies within such a stretch of each single worker. So each
//! worker keeps its own, longer than a threshold, in memory of its own, and the phase's are where
//! those of all workers overlap.

use hdrhistogram::{Counter, Histogram};

use super::clock::Nanos;
use super::phase::Interval;
use super::recorder::Batch;
use super::series::{Ending, KindMeasure, latency_histogram};
use crate::workload::Kind;

/// Stretches without success that a worker keeps at most. If there are more, the shorter half of
/// all lengths is forgotten.
const MOST_KEPT: usize = 1_024;
/// The shortest stretch without success that is kept at first, ns.
const LEAST: Nanos = 500_000;
/// Width of a slot, ns.
pub(super) const SLOT: Nanos = 20_000_000;
/// Most slots of a phase: neighbours are merged beyond that.
const MOST_SLOTS: usize = 1 << 18;

/// Reads and writes are told apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Side {
    /// Operations that only read.
    Reads = 0,
    /// Operations that write, whatever else they do.
    Writes = 1,
}

impl Side {
    /// Both, in the order of their numbers.
    pub const BOTH: [Side; 2] = [Side::Reads, Side::Writes];

    /// The side that a kind of operation is on.
    #[inline]
    #[must_use]
    pub fn of(kind: Kind) -> Side {
        if kind.read_only() { Side::Reads } else { Side::Writes }
    }

    /// The word used in results.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Side::Reads => "reads",
            Side::Writes => "writes",
        }
    }
}

/// A stretch of time on [`super::now`]'s clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stretch {
    /// Begin.
    pub from: Nanos,
    /// End.
    pub to: Nanos,
}

impl Stretch {
    /// How long it is, ns.
    #[must_use]
    pub fn length(self) -> Nanos {
        self.to.saturating_sub(self.from)
    }
}

/// Stretches without success, in order; what is shorter than `least` may not be among them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Silences {
    /// Every stretch of this length or longer is among them, ns.
    pub least: Nanos,
    /// From one success (or the begin) to the next (or for ever).
    pub stretches: Vec<Stretch>,
}

impl Silences {
    /// Of somebody who never succeeded.
    #[must_use]
    pub fn total(start: Nanos) -> Silences {
        Silences { least: LEAST, stretches: vec![Stretch { from: start, to: Nanos::MAX }] }
    }

    /// The stretches in which neither this one nor `other` succeeded.
    #[must_use]
    pub fn and(&self, other: &Silences) -> Silences {
        let least = self.least.max(other.least);
        let (mut mine, mut theirs) = (self.stretches.iter(), other.stretches.iter());
        let (mut a, mut b) = (mine.next(), theirs.next());
        let mut stretches = Vec::new();
        while let (Some(one), Some(two)) = (a, b) {
            let both = Stretch { from: one.from.max(two.from), to: one.to.min(two.to) };
            if both.length() >= least {
                stretches.push(both);
            }
            if one.to <= two.to { a = mine.next() } else { b = theirs.next() }
        }
        Silences { least, stretches }
    }

    /// The longest stretch that reaches into `from..to`, cut at `to`, which is no later than the end
    /// of the measurement. If all were too short to be kept: one of the length that none exceeded.
    #[must_use]
    pub fn longest(&self, from: Nanos, to: Nanos) -> Stretch {
        let cut = |stretch: &Stretch| Stretch { to: stretch.to.min(to), ..*stretch };
        let within = self.stretches.iter().filter(|s| s.to > from && s.from < to).map(cut);
        let none = Stretch { from, to: (from + self.least).min(to) };
        within.max_by_key(|stretch| stretch.length()).unwrap_or(none)
    }
}

/// One worker's stretches without success, while it works. Costs an operation one comparison.
#[derive(Debug)]
pub(super) struct Listener {
    last: Nanos,
    least: Nanos,
    kept: Vec<Stretch>,
}

impl Listener {
    pub(super) fn new(start: Nanos) -> Self {
        // All of its memory at once: nothing is allocated while the load runs.
        Listener { last: start, least: LEAST, kept: Vec::with_capacity(MOST_KEPT) }
    }

    /// An operation succeeded.
    #[inline(always)]
    pub(super) fn success(&mut self, at: Nanos) {
        if at.saturating_sub(self.last) >= self.least {
            self.keep(at);
        }
        self.last = at;
    }

    #[cold]
    fn keep(&mut self, at: Nanos) {
        while self.kept.len() == MOST_KEPT {
            self.least *= 2;
            let least = self.least;
            self.kept.retain(|stretch| stretch.length() >= least);
        }
        if at - self.last >= self.least {
            self.kept.push(Stretch { from: self.last, to: at });
        }
    }

    pub(super) fn into_silences(mut self) -> Silences {
        self.kept.push(Stretch { from: self.last, to: Nanos::MAX });
        Silences { least: self.least, stretches: self.kept }
    }
}

/// What ended in a slot, of one side.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Slot {
    /// Operations that succeeded.
    pub ok: u64,
    /// Operations surely not applied.
    pub failed: u64,
    /// Operations perhaps applied.
    pub indeterminate: u64,
    /// First and last end of an operation without success.
    pub errors: Option<Stretch>,
}

impl Slot {
    fn note(&mut self, ending: Ending, at: Nanos) {
        match ending {
            Ending::Ok { .. } => return self.ok += 1,
            Ending::Failed => self.failed += 1,
            Ending::Indeterminate => self.indeterminate += 1,
        }
        let errors = self.errors.get_or_insert(Stretch { from: at, to: at });
        errors.to = errors.to.max(at);
    }

    fn add(&mut self, other: &Slot) {
        self.ok += other.ok;
        self.failed += other.failed;
        self.indeterminate += other.indeterminate;
        if let Some(theirs) = other.errors {
            let mine = self.errors.get_or_insert(theirs);
            *mine = Stretch { from: mine.from.min(theirs.from), to: mine.to.max(theirs.to) };
        }
    }
}

/// One worker's slots, while it works.
#[derive(Debug)]
pub(super) struct Slots {
    start: Nanos,
    index: u32,
    current: [Slot; 2],
    done: Vec<(u32, [Slot; 2])>,
}

impl Slots {
    pub(super) fn new(start: Nanos) -> Self {
        Slots { start, index: 0, current: [Slot::default(); 2], done: Vec::new() }
    }

    pub(super) fn note(&mut self, side: Side, ending: Ending, at: Nanos) {
        let index = (at.saturating_sub(self.start) / SLOT) as u32;
        if index != self.index {
            self.close();
            self.index = index;
        }
        self.current[side as usize].note(ending, at);
    }

    fn close(&mut self) {
        let current = std::mem::take(&mut self.current);
        if current != [Slot::default(); 2] {
            self.done.push((self.index, current));
        }
    }

    /// Everything since the last time.
    pub(super) fn take(&mut self) -> Vec<(u32, [Slot; 2])> {
        self.close();
        std::mem::take(&mut self.done)
    }
}

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
    /// 99th percentiles of all intervals before the first fault was due, of reads and of writes, ns.
    pub former_p99: [Option<f64>; 2],
}

/// Brings together what the workers tell of a phase's course.
#[derive(Debug)]
pub(crate) struct Chronicle {
    course: Course,
    /// When the first fault is due; none: the phase has no faults.
    first_fault: Option<Nanos>,
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
    /// Of a phase that began at `start` and whose first fault is due at `first_fault`.
    pub(crate) fn new(start: Nanos, first_fault: Option<Nanos>) -> Self {
        let course = Course { start, slot: SLOT, ..Course::default() };
        Chronicle { course, first_fault, factor: 1, former: Default::default() }
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

    /// An interval that all workers have passed.
    pub(crate) fn interval(&mut self, interval: &Interval) {
        let Some(first_fault) = self.first_fault else { return };
        let mut sums: [Sums; 2] = Default::default();
        for (series, measure) in &interval.series {
            let side = Side::of(series.kind) as usize;
            sums[side].add(measure);
            if interval.end <= first_fault {
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

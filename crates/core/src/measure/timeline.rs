//! Timeline of a phase, kept once: its intervals without their histograms, the stretches without success to the
//! nanosecond, and in a phase with faults counts for each 20 ms. All that is said of settling, of dips of the
//! throughput and of the cost of faults is read from here.

use hdrhistogram::Histogram;

use super::clock::Nanos;
use super::histogram::{add_latencies, latency_histogram, least_for};
use super::interval::{Batch, Interval};
use super::latencies::Latencies;
use super::series::KindMeasure;
use super::silence::Silences;
use super::slots::{SLOT, Side, Slot};

/// Highest number of slots of a phase: neighbours are merged beyond that.
const MOST_SLOTS: usize = 1 << 18;

/// One interval, and its latencies: response time where arrivals are open, else service time.
#[derive(Clone, Debug, Default)]
pub struct TimelinePoint {
    /// Interval without its series, whose histograms are dropped.
    pub interval: Interval,
    /// Median latency of operations that succeeded since the last interval that has one, ns; of gets only those that
    /// found a record count. `None` while they are too few to carry it.
    pub p50: Option<u64>,
    /// 99th percentile in the same way, ns.
    pub p99: Option<u64>,
    /// 99th percentiles of reads and of writes, ns. Operations without success count as infinitely long; `None` where
    /// nothing ended.
    pub sides_p99: [Option<f64>; 2],
    /// Slow operations of reads and of writes, by the 99th percentile of the time before the first fault, as it was
    /// known by then.
    pub slow: [Slow; 2],
}

/// Operations that took longer than twice the 99th percentile of those before the first fault. Operations without
/// success count as infinitely long.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Slow {
    /// Number of slow operations.
    pub slower: u64,
    /// Number of all operations that ended.
    pub of: u64,
}

impl Slow {
    /// Returns the share of slow operations; 0 of none.
    #[must_use]
    pub fn share(self) -> f64 {
        self.slower as f64 / self.of.max(1) as f64
    }
}

/// Timeline of a phase (see the top of the file).
#[derive(Clone, Debug, Default)]
pub struct Timeline {
    /// Begin of the phase, ns.
    pub start: Nanos,
    /// Its intervals, in order.
    pub points: Vec<TimelinePoint>,
    /// Stretches without success, of reads and of writes; `None` until a worker has ended.
    pub silences: Option<[Silences; 2]>,
    /// Width of a slot, ns.
    pub slot: Nanos,
    /// Slots one after the other from the begin on, reads and writes; only in a phase with faults.
    pub slots: Vec<[Slot; 2]>,
    /// Time from which on the load kept up with its schedule, ns: the begin of the first interval in which it worked
    /// off no backlog; with closed arrivals that of the phase. `None` if it never did.
    pub level_from: Option<Nanos>,
    /// 99th percentiles of reads and of writes of all intervals from `level_from` to the begin of the first fault, or
    /// to the end if there was none, ns.
    pub former_p99: [Option<f64>; 2],
    /// Slow operations of the same intervals, of reads and of writes.
    pub former_slow: [Slow; 2],
}

impl Timeline {
    /// Returns the intervals, in order.
    pub fn intervals(&self) -> impl Iterator<Item = &Interval> {
        self.points.iter().map(|point| &point.interval)
    }
}

/// Timeline of a phase that begins with the first of these intervals, and of which no more is known.
impl FromIterator<Interval> for Timeline {
    fn from_iter<I: IntoIterator<Item = Interval>>(intervals: I) -> Timeline {
        let point = |interval| TimelinePoint { interval, ..TimelinePoint::default() };
        let points: Vec<TimelinePoint> = intervals.into_iter().map(point).collect();
        let start = points.first().map_or(0, |first| first.interval.start);
        Timeline { start, level_from: Some(start), slot: SLOT, points, ..Timeline::default() }
    }
}

/// Builder of a timeline: brings together what the workers tell.
#[derive(Debug)]
pub struct TimelineBuilder {
    timeline: Timeline,
    /// Number of operations that were due and not started when the last interval was over.
    backlog: u64,
    factor: u32,
    former: [Sums; 2],
    /// Pools of medians and of 99th percentiles.
    pools: [Pool; 2],
}

/// Latencies of neighbouring intervals, gathered until they carry a percentile: that of a single sample is the sample.
#[derive(Debug)]
struct Pool {
    quantile: f64,
    waiting: Option<Histogram<u64>>,
}

impl Pool {
    fn new(quantile: f64) -> Pool {
        Pool { quantile, waiting: None }
    }

    /// Takes an interval's latencies; returns the percentile of all that waited once they carry it.
    fn add(&mut self, latencies: Option<&Histogram<u64>>) -> Option<u64> {
        let (latencies, least) = (latencies?, least_for(self.quantile));
        match &mut self.waiting {
            None if latencies.len() >= least => {
                return Some(latencies.value_at_quantile(self.quantile));
            }
            None => self.waiting = Some(latencies.clone()),
            Some(waiting) => add_latencies(waiting, latencies),
        }
        let carried = self.waiting.take_if(|waiting| waiting.len() >= least)?;
        Some(carried.value_at_quantile(self.quantile))
    }
}

/// Latencies of one side, with the number of operations without success.
#[derive(Debug, Default)]
struct Sums {
    latencies: Option<Histogram<u64>>,
    unsuccessful: u64,
}

impl Sums {
    fn add(&mut self, measure: &KindMeasure) {
        self.unsuccessful += measure.failed + measure.indeterminate;
        let Some(latencies) = measure.response.as_ref().or(measure.service.as_ref()) else {
            return;
        };
        let sum = self.latencies.get_or_insert_with(latency_histogram);
        latencies.each(|latency, count| sum.saturating_record_n(latency, count.into()));
    }

    /// Returns the latencies of operations that succeeded, reads and writes together.
    fn latencies_of_both([reads, writes]: [Sums; 2]) -> Option<Histogram<u64>> {
        match (reads.latencies, writes.latencies) {
            (Some(mut all), Some(writes)) => {
                all.add(writes).expect("same bounds");
                Some(all)
            }
            (reads, writes) => reads.or(writes),
        }
    }

    fn p99(&self) -> Option<f64> {
        percentile(self.latencies.as_ref(), self.unsuccessful, 0.99)
    }

    /// Counts operations that took longer than twice `p99`.
    fn slow(&self, p99: Option<f64>) -> Slow {
        let of = self.latencies.as_ref().map_or(0, Histogram::len) + self.unsuccessful;
        let bound = p99.filter(|p99| p99.is_finite()).map(|p99| 2.0 * p99);
        let (Some(bound), Some(latencies)) = (bound, &self.latencies) else {
            return Slow { slower: self.unsuccessful, of };
        };
        let slower =
            latencies.iter_recorded().filter(|value| value.value_iterated_to() as f64 > bound);
        let slower: u64 = slower.map(|value| value.count_since_last_iteration()).sum();
        Slow { slower: slower + self.unsuccessful, of }
    }
}

/// Returns the latency at `quantile` (0 to 1), ns, of operations that succeeded and of `unsuccessful` more, which count
/// as infinitely long; `None` if there were none.
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

impl TimelineBuilder {
    /// Creates the builder for a phase that began at `start`, with `open` arrivals or closed ones.
    #[must_use]
    pub fn new(start: Nanos, open: bool) -> Self {
        let level_from = (!open).then_some(start);
        let timeline = Timeline { start, slot: SLOT, level_from, ..Timeline::default() };
        let pools = [0.5, 0.99].map(Pool::new);
        TimelineBuilder { timeline, backlog: 0, factor: 1, former: Default::default(), pools }
    }

    /// Adds the slots of a worker's interval.
    pub fn add(&mut self, batch: &Batch) {
        for (index, slots) in &batch.slots {
            while (index / self.factor) as usize >= MOST_SLOTS {
                self.fold();
            }
            let at = (index / self.factor) as usize;
            if self.timeline.slots.len() <= at {
                self.timeline.slots.resize(at + 1, Default::default());
            }
            let mine = &mut self.timeline.slots[at];
            mine.iter_mut().zip(slots).for_each(|(mine, theirs)| mine.add(theirs));
        }
    }

    /// Halves the number of slots.
    fn fold(&mut self) {
        self.factor *= 2;
        self.timeline.slot *= 2;
        let folded = self.timeline.slots.chunks(2).map(|pair| {
            let mut sum = pair[0];
            for other in &pair[1..] {
                sum.iter_mut().zip(other).for_each(|(mine, theirs)| mine.add(theirs));
            }
            sum
        });
        self.timeline.slots = folded.collect();
    }

    /// Adds an interval that all workers have passed. `first_fault` is the time at which the first fault was begun, if
    /// one was by now.
    pub fn interval(&mut self, mut interval: Interval, first_fault: Option<Nanos>) {
        let before = std::mem::replace(&mut self.backlog, interval.backlog);
        if self.timeline.level_from.is_none() && !interval.catches_up(before) {
            self.timeline.level_from = Some(interval.start);
        }
        let former = first_fault.is_none_or(|fault| interval.end <= fault)
            && self.timeline.level_from.is_some();
        let mut sums: [Sums; 2] = Default::default();
        for (series, measure) in &interval.series {
            let side = Side::of(series.kind) as usize;
            sums[side].add(measure);
            if former {
                self.former[side].add(measure);
            }
        }
        let sides_p99 = sums.each_ref().map(Sums::p99);
        let slow = [0, 1].map(|side| sums[side].slow(self.former[side].p99()));
        let succeeded = Sums::latencies_of_both(sums);
        let [p50, p99] = self.pools.each_mut().map(|pool| pool.add(succeeded.as_ref()));
        // Nothing of its histograms stays, however long the phase lasts.
        interval.series = Vec::new();
        self.timeline.points.push(TimelinePoint { interval, p50, p99, sides_p99, slow });
    }

    /// Adds the stretches without success of a worker that has ended.
    pub fn ended(&mut self, silences: &[Silences; 2]) {
        let all = match &self.timeline.silences {
            Some([reads, writes]) => [reads.and(&silences[0]), writes.and(&silences[1])],
            None => silences.clone(),
        };
        self.timeline.silences = Some(all);
    }

    /// Returns the whole timeline.
    #[must_use]
    pub fn finish(mut self) -> Timeline {
        self.timeline.former_p99 = self.former.each_ref().map(Sums::p99);
        self.timeline.former_slow = self.former.each_ref().map(|former| former.slow(former.p99()));
        self.timeline
    }
}

#[cfg(test)]
mod tests;

//! The course of one agent through a phase: the p99 of each interval, and stretches of intervals to compare it with the
//! other agents by. Of a long phase stretches grow, so that there is a bounded number of them.

use std::collections::BTreeMap;

use hdrhistogram::Histogram;
use kvdyno_core::measure::Nanos;

/// Fewest operations of which a p99 is more than one of the two longest.
pub const OPERATIONS: u64 = 200;
/// Intervals that are kept open: workers of an agent do not tell of one at the same moment.
const OPEN: u32 = 3;
/// Most stretches of an agent.
const STRETCHES: usize = 64;
/// Power of two of the parts of each doubling of latency that a stretch tells apart.
const PARTS: u32 = 4;

/// The course of one agent.
#[derive(Default)]
pub struct AgentCourse {
    open: BTreeMap<u32, Histogram<u32>>,
    closed: BTreeMap<u32, Nanos>,
    stretches: Stretches,
    /// The last interval that the agent told of.
    reached: u32,
}

/// Some intervals together.
#[derive(Clone, Debug, Default)]
pub struct AgentStretch {
    /// Number of latencies in each part of the scale.
    latencies: BTreeMap<u16, u64>,
    /// Operations that succeeded.
    pub succeeded: u64,
    /// Operations that fell due.
    pub offered: u64,
    /// Operations that were sent.
    pub started: u64,
}

/// A phase in stretches of equal length.
#[derive(Clone, Debug, Default)]
pub struct Stretches {
    /// A stretch is two to the power of this intervals long.
    doublings: u32,
    all: Vec<AgentStretch>,
}

impl AgentCourse {
    /// Adds what a worker did in an interval, its latencies left out.
    pub fn count(&mut self, interval: u32, (succeeded, offered, started): (u64, u64, u64)) {
        let stretch = self.stretches.at(interval);
        stretch.succeeded += succeeded;
        stretch.offered += offered;
        stretch.started += started;
    }

    /// The latencies of an interval, to count more.
    pub fn of(&mut self, interval: u32) -> &mut Histogram<u32> {
        self.open.entry(interval).or_insert_with(coarse)
    }

    /// Nothing more is said of intervals long before this one.
    pub fn reach(&mut self, interval: u32) {
        self.reached = self.reached.max(interval);
        while let Some(first) = self.open.first_entry()
            && first.key() + OPEN <= interval
        {
            let (interval, all) = first.remove_entry();
            self.stretches.at(interval).add_latencies(&all);
            self.closed.extend(p99(&interval, &all));
        }
    }

    /// The p99 of each interval that has enough operations, by its number.
    pub fn p99s(&self) -> BTreeMap<u32, Nanos> {
        let open = self.open.iter().filter_map(|(interval, all)| p99(interval, all));
        self.closed.iter().map(|(interval, p99)| (*interval, *p99)).chain(open).collect()
    }

    /// The last interval that the agent told of.
    pub fn reached(&self) -> u32 {
        self.reached
    }

    /// The stretches so far.
    pub fn stretches(&self) -> Stretches {
        let mut stretches = self.stretches.clone();
        for (interval, all) in &self.open {
            stretches.at(*interval).add_latencies(all);
        }
        stretches
    }
}

impl AgentStretch {
    /// Takes another stretch in.
    pub fn add(&mut self, other: &AgentStretch) {
        for (part, count) in &other.latencies {
            *self.latencies.entry(*part).or_default() += count;
        }
        self.succeeded += other.succeeded;
        self.offered += other.offered;
        self.started += other.started;
    }

    /// Returns how many latencies it has.
    pub fn samples(&self) -> u64 {
        self.latencies.values().sum()
    }

    /// Returns the 99th percentile of the latencies, ns, to a sixteenth.
    pub fn p99(&self) -> f64 {
        let mut above = self.samples() / 100;
        for (part, count) in self.latencies.iter().rev() {
            if *count > above {
                return begin_of(*part);
            }
            above -= count;
        }
        0.0
    }

    fn add_latencies(&mut self, all: &Histogram<u32>) {
        for latency in all.iter_recorded() {
            let part = part_of(latency.value_iterated_to());
            *self.latencies.entry(part).or_default() += u64::from(latency.count_at_value());
        }
    }
}

impl Stretches {
    fn at(&mut self, interval: u32) -> &mut AgentStretch {
        while (interval >> self.doublings) as usize >= STRETCHES {
            self.double();
        }
        let number = (interval >> self.doublings) as usize;
        if self.all.len() <= number {
            self.all.resize(number + 1, AgentStretch::default());
        }
        &mut self.all[number]
    }

    fn double(&mut self) {
        self.doublings += 1;
        let all = std::mem::take(&mut self.all);
        let pairs = all.chunks(2).map(|pair| {
            let mut sum = pair[0].clone();
            pair[1..].iter().for_each(|other| sum.add(other));
            sum
        });
        self.all = pairs.collect();
    }
}

/// Returns the stretches of several agents in equal lengths and numbers, and the power of two of their length.
pub fn aligned(courses: &[&AgentCourse]) -> (Vec<Vec<AgentStretch>>, u32) {
    let mut all: Vec<Stretches> = courses.iter().map(|course| course.stretches()).collect();
    let doublings = all.iter().map(|one| one.doublings).max().unwrap_or(0);
    for one in &mut all {
        (one.doublings..doublings).for_each(|_| one.double());
    }
    let count = all.iter().map(|one| one.all.len()).max().unwrap_or(0);
    all.iter_mut().for_each(|one| one.all.resize(count, AgentStretch::default()));
    (all.into_iter().map(|one| one.all).collect(), doublings)
}

fn p99(interval: &u32, all: &Histogram<u32>) -> Option<(u32, Nanos)> {
    (all.len() >= OPERATIONS).then(|| (*interval, all.value_at_quantile(0.99)))
}

/// A hundred and more of them are kept: two digits, from 1 µs to an hour, are enough to compare.
fn coarse() -> Histogram<u32> {
    Histogram::new_with_bounds(1_000, 3_600_000_000_000, 2).unwrap_or_else(|_| {
        // These bounds are good.
        unreachable!("constant bounds of a histogram")
    })
}

/// Returns the number of the part of the scale that a latency is in.
fn part_of(latency: Nanos) -> u16 {
    let power = latency.max(1).ilog2().max(PARTS);
    ((power << PARTS) + ((latency >> (power - PARTS)) as u32 & ((1 << PARTS) - 1))) as u16
}

/// Returns where a part of the scale begins, ns.
fn begin_of(part: u16) -> f64 {
    let (power, within) = (u32::from(part) >> PARTS, u32::from(part) & ((1 << PARTS) - 1));
    f64::from((1 << PARTS) + within) * 2_f64.powi(power as i32 - PARTS as i32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_phase_has_a_bounded_number_of_stretches_and_loses_nothing() {
        let mut course = AgentCourse::default();
        for interval in 0..1_000 {
            course.of(interval).record_n(300_000 + u64::from(interval) * 1_000, 10).unwrap();
            course.count(interval, (10, 12, 11));
            course.reach(interval);
        }
        let short = AgentCourse::default();
        let (all, doublings) = aligned(&[&course, &short]);
        assert_eq!((all[0].len(), all[1].len(), doublings), (63, 63, 4));
        let sum = |of: fn(&AgentStretch) -> u64| all[0].iter().map(of).sum::<u64>();
        assert_eq!(sum(AgentStretch::samples), 10_000);
        assert_eq!(sum(|s| s.succeeded) + sum(|s| s.offered) + sum(|s| s.started), 33_000);
        let mut whole = AgentStretch::default();
        all[0].iter().for_each(|stretch| whole.add(stretch));
        let p99 = 300_000.0 + 990_000.0;
        assert!((whole.p99() / p99 - 1.0).abs() < 1.0 / 16.0, "{}", whole.p99());
    }

    #[test]
    fn parts_of_the_scale_are_a_sixteenth_wide() {
        for latency in [1_000_u64, 1_023, 1_024, 77_777, 3_600_000_000_000] {
            let begin = begin_of(part_of(latency));
            assert!(begin <= latency as f64 && latency as f64 <= begin * 1.0626, "{latency}");
        }
    }
}

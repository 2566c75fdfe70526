//! Which agent is unlike the others: one whose p99 is far above that of the median agent, in most intervals.
//! One interval proves nothing, and neither does a p99 of a few operations.

use std::collections::BTreeMap;

use hdrhistogram::Histogram;
use kvdyno_core::measure::Nanos;

/// So many times the median agent's p99 is far from it.
const FAR: f64 = 1.5;
/// Share of the intervals in which it must be.
const MOST: f64 = 2.0 / 3.0;
/// Fewest intervals to judge by: of nine equal ones, six are hardly ever far by chance.
const INTERVALS: usize = 9;
/// Fewest operations of each agent in an interval: a p99 of fewer is one of the two longest.
const OPERATIONS: u64 = 200;
/// Fewest agents: of two nobody can say which is the odd one.
const AGENTS: usize = 3;
/// Intervals that are kept open: workers of an agent do not tell of one at the same moment.
const OPEN: u32 = 3;

/// The p99 of one agent in each interval.
#[derive(Default)]
pub struct AgentCourse {
    open: BTreeMap<u32, Histogram<u32>>,
    closed: BTreeMap<u32, Nanos>,
}

/// An agent unlike the others.
#[derive(Clone, Debug, PartialEq)]
pub struct Unlike {
    /// Which.
    pub agent: usize,
    /// In how many intervals.
    pub unlike: u64,
    /// Of how many.
    pub intervals: u64,
    /// Its p99 over the median agent's, in its median interval.
    pub times: f64,
}

impl AgentCourse {
    /// The latencies of an interval, to count more.
    pub fn of(&mut self, interval: u32) -> &mut Histogram<u32> {
        self.open.entry(interval).or_insert_with(coarse)
    }

    /// Nothing more is said of intervals long before this one.
    pub fn reach(&mut self, interval: u32) {
        while let Some(first) = self.open.first_entry()
            && first.key() + OPEN <= interval
        {
            let (interval, all) = first.remove_entry();
            self.closed.extend(p99(&interval, &all));
        }
    }

    /// The p99 of each interval that has enough operations, by its number.
    pub fn p99s(&self) -> BTreeMap<u32, Nanos> {
        let open = self.open.iter().filter_map(|(interval, all)| p99(interval, all));
        self.closed.iter().map(|(interval, p99)| (*interval, *p99)).chain(open).collect()
    }
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

/// The agent that is most unlike the others, if one is.
pub fn unlike(agents: &[BTreeMap<u32, Nanos>]) -> Option<Unlike> {
    if agents.len() < AGENTS {
        return None;
    }
    let first = agents.first()?;
    let everywhere = |interval: &u32| agents.iter().all(|agent| agent.contains_key(interval));
    let times: Vec<Vec<f64>> = first
        .keys()
        .filter(|interval| everywhere(interval))
        .map(|interval| {
            let p99s: Vec<f64> = agents.iter().map(|agent| agent[interval] as f64).collect();
            let middle = median(p99s.clone()).max(1.0);
            p99s.into_iter().map(|p99| p99 / middle).collect()
        })
        .collect();
    if times.len() < INTERVALS {
        return None;
    }
    let found = (0..agents.len()).map(|agent| {
        let own: Vec<f64> = times.iter().map(|times| times[agent]).collect();
        let unlike = own.iter().filter(|times| **times >= FAR).count() as u64;
        Unlike { agent, unlike, intervals: own.len() as u64, times: median(own) }
    });
    let enough = |found: &Unlike| found.unlike as f64 >= MOST * found.intervals as f64;
    found.filter(enough).max_by(|a, b| {
        (a.unlike, a.times).partial_cmp(&(b.unlike, b.times)).unwrap_or(std::cmp::Ordering::Equal)
    })
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let (low, high) = (values.len().saturating_sub(1) / 2, values.len() / 2);
    match (values.get(low), values.get(high)) {
        (Some(low), Some(high)) => (low + high) / 2.0,
        _ => 0.0,
    }
}

#[cfg(test)]
mod tests {
    use kvdyno_core::ground::random::Random;

    use super::*;

    /// Latencies with a long tail: lognormal, sigma 1, about 200 µs in the middle.
    fn latency(random: &mut Random) -> f64 {
        let (a, b) = (random.next_f64().max(1e-12), random.next_f64());
        let normal = (-2.0 * a.ln()).sqrt() * (std::f64::consts::TAU * b).cos();
        200_000.0 * normal.exp()
    }

    /// A run of four agents; the last one's latencies are multiplied. A disturbance that all share comes and goes.
    fn run(seed: u64, intervals: u32, times: f64) -> Option<Unlike> {
        let mut random = Random::new(seed, 0);
        let mut agents: Vec<AgentCourse> = (0..4).map(|_| AgentCourse::default()).collect();
        for interval in 0..intervals {
            let shared = if random.below(5) == 0 { 3.0 } else { 1.0 };
            for (index, agent) in agents.iter_mut().enumerate() {
                let own = if index == 3 { times } else { 1.0 };
                for _ in 0..OPERATIONS {
                    let latency = latency(&mut random) * shared * own;
                    agent.of(interval).saturating_record(latency as u64);
                }
                agent.reach(interval);
            }
        }
        unlike(&agents.iter().map(AgentCourse::p99s).collect::<Vec<_>>())
    }

    /// With as few operations and intervals as are judged at all, and with more.
    #[test]
    fn four_equal_agents_are_never_told_apart_in_fifty_runs() {
        for seed in 0..50 {
            assert_eq!(run(seed, INTERVALS as u32, 1.0), None, "run {seed}");
            assert_eq!(run(1_000 + seed, 30, 1.0), None, "run {seed}");
        }
    }

    #[test]
    fn an_agent_that_is_twice_as_slow_is_found_and_named() {
        for seed in 0..10 {
            let found = run(seed, 12, 2.5).expect("it is unlike the others");
            assert_eq!((found.agent, found.intervals), (3, 12));
            assert!(found.unlike >= 8 && found.times > FAR, "{found:?}");
        }
    }

    #[test]
    fn too_little_to_judge_by_is_not_judged() {
        assert_eq!(run(1, INTERVALS as u32 - 1, 10.0), None);
        let p99s = |p99| (0..20).map(|interval| (interval, p99)).collect::<BTreeMap<u32, Nanos>>();
        assert_eq!(
            unlike(&[p99s(1_000_000), p99s(9_000_000)]),
            None,
            "which of two is the odd one?"
        );
        assert!(unlike(&[p99s(1_000_000), p99s(1_000_000), p99s(1_500_000)]).is_some());
        assert_eq!(unlike(&[p99s(1_000_000), p99s(1_000_000), p99s(1_490_000)]), None);
    }
}

//! Finds an outlier among the agents: its p99 is far above that of the median agent in most stretches of the phase,
//! or it does far less. Intervals are pooled until they tell something: the slower an agent is, the fewer of its
//! operations an interval has. An agent that has more to do than the others, because the hot keys are its own, is no
//! outlier.

use std::cmp::Ordering;

use kvdyno_core::verdict::AgentFigure;

use super::course::{AgentCourse, AgentStretch, OPERATIONS, aligned};

/// An agent is far from the median agent if its figure is this many times the median agent's.
const FAR: f64 = 1.5;
/// Share of the stretches in which an outlier must be far.
const MOST: f64 = 2.0 / 3.0;
/// Fewest stretches to judge by.
const STRETCHES: usize = 4;
/// If the phase has fewer stretches than this, they are pooled anew from fewer operations each.
const PREFERRED: usize = 6;
/// Fewest operations of each agent in a stretch of a short phase: a p99 of so many is one of the two longest.
const FEW_OPERATIONS: u64 = 100;
/// Highest probability that one of equal agents is named.
const CHANCE: f64 = 0.003;
/// Fewest agents: of two nobody can say which is the outlier.
const AGENTS: usize = 3;
/// Share of the median agent's work below which an agent is behind.
const NOT_BEHIND: f64 = 0.97;
/// Multiple of the median agent's operations from which on an agent has more to do, if chance does not explain it.
const MORE: f64 = 1.05;
/// Largest reported multiple of the median's figure: that of an agent that did nothing is infinite.
const FARTHEST: f64 = 1_000.0;

/// An agent as it is compared with others.
pub struct ComparedAgent<'a> {
    /// Its operations, stretch by stretch.
    pub course: &'a AgentCourse,
    /// Number of its clients.
    pub clients: u32,
}

/// The outlier among the agents.
#[derive(Clone, Debug, PartialEq)]
pub struct Outlier {
    /// Index of the agent.
    pub agent: usize,
    /// Figure in which it differs.
    pub figure: AgentFigure,
    /// Number of stretches in which it differs.
    pub stretches_apart: u64,
    /// Number of stretches compared.
    pub stretches: u64,
    /// Its figure over the median agent's, in its median stretch.
    pub times: f64,
}

/// Returns the agent that differs most from the others, if one is an outlier. In an `open` phase each agent has to do
/// what falls due; in a closed one each client does what it can.
pub fn find_outlier(agents: &[ComparedAgent<'_>], open: bool) -> Option<Outlier> {
    if agents.len() < AGENTS {
        return None;
    }
    let courses: Vec<&AgentCourse> = agents.iter().map(|agent| agent.course).collect();
    let (all, doublings) = aligned(&courses);
    let totals: Vec<AgentStretch> = all.iter().map(|stretches| sum(stretches)).collect();
    // Scaled to an equal number of clients; what falls due does not depend on them.
    let shares: Vec<f64> = agents.iter().map(|a| f64::from(a.clients.max(1))).collect();
    let middle_share = median(shares.clone());
    let scales: Vec<f64> =
        shares.iter().map(|own| if open { 1.0 } else { middle_share / own }).collect();
    let scaled = |of: fn(&AgentStretch) -> u64| -> Vec<f64> {
        totals.iter().zip(&scales).map(|(total, scale)| of(total) as f64 * scale).collect()
    };
    let carried = scaled(|total| total.succeeded);
    let given = if open { scaled(|total| total.offered) } else { carried.clone() };
    let (middle_carried, middle_given) = (median(carried.clone()), median(given.clone()));
    let most = middle_given * MORE + 3.0 * middle_given.sqrt();
    let as_others: Vec<bool> = given.iter().map(|given| *given <= most).collect();
    let behind: Vec<bool> = carried.iter().map(|own| *own < middle_carried * NOT_BEHIND).collect();

    let slow = find(&times_of_p99s(&all), &as_others);
    let slow = slow.map(|found| Outlier { figure: AgentFigure::P99, ..found });
    let reached = courses.iter().map(|course| course.reached() >> doublings).min().unwrap_or(0);
    slow.or_else(|| {
        // Stretches after the first agent has ended are not compared.
        let whole: Vec<&[AgentStretch]> =
            all.iter().map(|one| &one[..one.len().min(reached as usize)]).collect();
        let (times, figure) = match open {
            true => (times_behind(&whole), AgentFigure::Backlog),
            false => (times_of_rates(&whole, &scales), AgentFigure::Rate),
        };
        find(&times, &behind).map(|found| Outlier { figure, ..found })
    })
}

/// Returns each agent's p99 over that of the median agent, for each of the stretches that have enough operations of
/// all.
fn times_of_p99s(all: &[Vec<AgentStretch>]) -> Vec<Vec<f64>> {
    let whole: Vec<&[AgentStretch]> = all.iter().map(Vec::as_slice).collect();
    let pooled_to =
        |least: u64| pooled(&whole, |sums| sums.iter().all(|sum| sum.samples() >= least));
    let mut pools = pooled_to(OPERATIONS);
    if pools.len() < PREFERRED {
        pools = pooled_to(FEW_OPERATIONS);
    }
    let times = pools.into_iter().map(|sums| {
        let p99s: Vec<f64> = sums.iter().map(AgentStretch::p99).collect();
        let middle = median(p99s.clone()).max(1.0);
        p99s.into_iter().map(|p99| p99 / middle).collect()
    });
    times.collect()
}

/// Returns the median agent's rate of a client over each agent's.
fn times_of_rates(all: &[&[AgentStretch]], scales: &[f64]) -> Vec<Vec<f64>> {
    let times = pooled(all, middle_did_enough).into_iter().map(|sums| {
        let rates = sums.iter().zip(scales).map(|(sum, scale)| sum.succeeded as f64 * scale);
        let rates: Vec<f64> = rates.collect();
        let middle = median(rates.clone());
        rates.into_iter().map(|own| (middle / own.max(1e-9)).min(FARTHEST)).collect()
    });
    times.collect()
}

/// Returns each agent's operations due, its backlog included, over its operations sent, relative to the median agent's.
fn times_behind(all: &[&[AgentStretch]]) -> Vec<Vec<f64>> {
    let mut backlogs = vec![0_u64; all.len()];
    let times = pooled(all, middle_did_enough).into_iter().map(|sums| {
        let due_over_sent = sums.iter().zip(&mut backlogs).map(|(sum, backlog)| {
            let due = *backlog + sum.offered;
            *backlog = due.saturating_sub(sum.started);
            if due == 0 { 1.0 } else { due as f64 / sum.started.max(1) as f64 }
        });
        let due_over_sent: Vec<f64> = due_over_sent.collect();
        let middle = median(due_over_sent.clone()).max(1e-9);
        due_over_sent.into_iter().map(|own| (own / middle).min(FARTHEST)).collect()
    });
    times.collect()
}

fn middle_did_enough(sums: &[AgentStretch]) -> bool {
    median(sums.iter().map(|sum| sum.succeeded as f64).collect()) >= OPERATIONS as f64
}

/// Pools stretches of all agents, one after the other, until `enough` says so. Returns the sums of each such pool.
fn pooled(
    all: &[&[AgentStretch]],
    enough: impl Fn(&[AgentStretch]) -> bool,
) -> Vec<Vec<AgentStretch>> {
    let count = all.iter().map(|one| one.len()).min().unwrap_or(0);
    let none = || vec![AgentStretch::default(); all.len()];
    let (mut pools, mut sums) = (Vec::new(), none());
    for number in 0..count {
        sums.iter_mut().zip(all).for_each(|(sum, one)| sum.add(&one[number]));
        if enough(&sums) {
            pools.push(std::mem::replace(&mut sums, none()));
        }
    }
    pools
}

fn sum(stretches: &[AgentStretch]) -> AgentStretch {
    let mut sum = AgentStretch::default();
    stretches.iter().for_each(|stretch| sum.add(stretch));
    sum
}

/// Returns the agent that was far from the median in most stretches, and in more than chance explains. `times` has a
/// row for each stretch; only agents that `judged` marks can be found.
fn find(times: &[Vec<f64>], judged: &[bool]) -> Option<Outlier> {
    let stretches = times.len() as u64;
    if times.len() < STRETCHES {
        return None;
    }
    let far = |agent: usize| times.iter().filter(|row| row[agent] >= FAR).count() as u64;
    let fars: Vec<u64> = (0..judged.len()).map(far).collect();
    let all: u64 = fars.iter().sum();
    let found = (0..judged.len()).filter(|agent| judged[*agent]).filter_map(|agent| {
        let stretches_apart = fars[agent];
        // Probability by which any other agent is far in a stretch.
        let others = (judged.len() as u64 - 1) * stretches;
        let chance = (all - stretches_apart + 1) as f64 / (others + 2) as f64;
        let explained =
            at_least(stretches_apart, stretches, chance) * judged.len() as f64 >= CHANCE;
        let most = stretches_apart as f64 >= MOST * stretches as f64;
        let times = median(times.iter().map(|row| row[agent]).collect());
        let figure = AgentFigure::P99;
        (most && !explained).then_some(Outlier { agent, figure, stretches_apart, stretches, times })
    });
    found.max_by(|a, b| {
        (a.stretches_apart, a.times)
            .partial_cmp(&(b.stretches_apart, b.times))
            .unwrap_or(Ordering::Equal)
    })
}

/// Returns the probability that an event of this `chance` happens at least `least` times in so many `tries`.
fn at_least(least: u64, tries: u64, chance: f64) -> f64 {
    let exactly = |times: u64| {
        let ways = (0..times).map(|n| (tries - n) as f64 / (n + 1) as f64).product::<f64>();
        ways * chance.powi(times as i32) * (1.0 - chance).powi((tries - times) as i32)
    };
    (least..=tries).map(exactly).sum()
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
mod tests;

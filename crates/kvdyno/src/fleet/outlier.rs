//! The agent that is unlike the others: one whose p99 is far above that of the median agent in most stretches of the phase,
//! or that does far less. Intervals are put together until they say something: the slower an agent is, the fewer of its
//! operations an interval has. An agent that has more to do than the others, for the hot keys are its own, is no such one.

use std::cmp::Ordering;

use kvdyno_core::verdict::AgentFigure;

use super::course::{AgentCourse, AgentStretch, OPERATIONS, aligned};

/// So many times the median agent's figure is far from it.
const FAR: f64 = 1.5;
/// Share of the stretches in which it must be.
const MOST: f64 = 2.0 / 3.0;
/// Fewest stretches to judge by.
const STRETCHES: usize = 4;
/// Fewer stretches than these are made of fewer operations each.
const PREFERRED: usize = 6;
/// Fewest operations of each agent in a stretch, in a short phase: their p99 is one of the two longest.
const FEW_OPERATIONS: u64 = 100;
/// Most chance that one of equal agents is named.
const CHANCE: f64 = 0.003;
/// Fewest agents: of two nobody can say which is the odd one.
const AGENTS: usize = 3;
/// An agent that carries this share of what the median agent does is not behind.
const NOT_BEHIND: f64 = 0.97;
/// An agent that is given this many times what the median agent is, and more than chance gives, has more to do.
const MORE: f64 = 1.05;
/// The most that a figure is said to be above the median's: one that did nothing is infinitely far.
const FARTHEST: f64 = 1_000.0;

/// An agent as it is compared with others.
pub struct ComparedAgent<'a> {
    /// Its operations.
    pub course: &'a AgentCourse,
    /// Clients that it had.
    pub clients: u32,
}

/// An agent unlike the others.
#[derive(Clone, Debug, PartialEq)]
pub struct Outlier {
    /// Which.
    pub agent: usize,
    /// In what.
    pub figure: AgentFigure,
    /// In how many stretches.
    pub unlike: u64,
    /// Of how many.
    pub stretches: u64,
    /// Its figure over the median agent's, in its median stretch.
    pub times: f64,
}

/// The agent that is most unlike the others, if one is. In an `open` phase what falls due is given; else each client
/// does what it can.
pub fn unlike(agents: &[ComparedAgent<'_>], open: bool) -> Option<Outlier> {
    if agents.len() < AGENTS {
        return None;
    }
    let courses: Vec<&AgentCourse> = agents.iter().map(|agent| agent.course).collect();
    let (all, doublings) = aligned(&courses);
    let totals: Vec<AgentStretch> = all.iter().map(|stretches| sum(stretches)).collect();
    // As if all had as many clients; what falls due does not depend on them.
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
        // What comes after the first has ended is not compared.
        let whole: Vec<&[AgentStretch]> =
            all.iter().map(|one| &one[..one.len().min(reached as usize)]).collect();
        let (times, figure) = match open {
            true => (times_behind(&whole), AgentFigure::Backlog),
            false => (times_of_rates(&whole, &scales), AgentFigure::Rate),
        };
        find(&times, &behind).map(|found| Outlier { figure, ..found })
    })
}

/// Each agent's p99 over that of the median agent, in each of the stretches that have enough operations of all.
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

/// The median agent's rate of a client over each agent's.
fn times_of_rates(all: &[&[AgentStretch]], scales: &[f64]) -> Vec<Vec<f64>> {
    let times = pooled(all, middle_did_enough).into_iter().map(|sums| {
        let rates = sums.iter().zip(scales).map(|(sum, scale)| sum.succeeded as f64 * scale);
        let rates: Vec<f64> = rates.collect();
        let middle = median(rates.clone());
        rates.into_iter().map(|own| (middle / own.max(1e-9)).min(FARTHEST)).collect()
    });
    times.collect()
}

/// Operations due of each agent, its backlog included, over operations sent, relative to the median agent's.
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

/// Puts stretches of all agents together, one after the other, until `enough` says so: the sums of each such pool.
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

/// The agent that was far from the median in most stretches, and in more than chance explains: of `times`, a row a
/// stretch, those agents whom `judged` says.
fn find(times: &[Vec<f64>], judged: &[bool]) -> Option<Outlier> {
    let stretches = times.len() as u64;
    if times.len() < STRETCHES {
        return None;
    }
    let far = |agent: usize| times.iter().filter(|row| row[agent] >= FAR).count() as u64;
    let fars: Vec<u64> = (0..judged.len()).map(far).collect();
    let all: u64 = fars.iter().sum();
    let found = (0..judged.len()).filter(|agent| judged[*agent]).filter_map(|agent| {
        let unlike = fars[agent];
        // So often any other is far by chance.
        let others = (judged.len() as u64 - 1) * stretches;
        let chance = (all - unlike + 1) as f64 / (others + 2) as f64;
        let explained = at_least(unlike, stretches, chance) * judged.len() as f64 >= CHANCE;
        let most = unlike as f64 >= MOST * stretches as f64;
        let times = median(times.iter().map(|row| row[agent]).collect());
        let figure = AgentFigure::P99;
        (most && !explained).then_some(Outlier { agent, figure, unlike, stretches, times })
    });
    found.max_by(|a, b| {
        (a.unlike, a.times).partial_cmp(&(b.unlike, b.times)).unwrap_or(Ordering::Equal)
    })
}

/// The chance that something of this `chance` happens `least` times or more often in so many `tries`.
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

//! Seeded simulations of runs in which all agents are equal, or one is not.

use kvdyno_core::ground::random::Random;

use super::*;

/// Latencies with a long tail: lognormal, sigma 1, about 200 µs in the middle.
fn latency(random: &mut Random) -> f64 {
    let (a, b) = (random.next_f64().max(1e-12), random.next_f64());
    let normal = (-2.0 * a.ln()).sqrt() * (std::f64::consts::TAU * b).cos();
    200_000.0 * normal.exp()
}

/// The odd one, if there is one, among simulated agents.
#[derive(Clone, Copy)]
struct Odd {
    /// Its latencies over those of the others.
    times: f64,
    /// Its rate over that of each other agent.
    rate: f64,
    /// Operations that fall due for it, over those of each other agent.
    offered: f64,
}

const EQUAL: Odd = Odd { times: 1.0, rate: 1.0, offered: 1.0 };

/// A run of agents that end so many operations in an interval, about; the last is odd. A disturbance that all share
/// comes and goes.
fn run(
    seed: u64,
    (agents, intervals, operations): (usize, u32, u64),
    (odd, open): (Odd, bool),
) -> Option<Outlier> {
    let mut random = Random::new(seed, 0);
    let mut courses: Vec<AgentCourse> = (0..agents).map(|_| AgentCourse::default()).collect();
    for interval in 0..intervals {
        let shared = if random.below(5) == 0 { 3.0 } else { 1.0 };
        for (index, course) in courses.iter_mut().enumerate() {
            let own = if index == agents - 1 { odd } else { EQUAL };
            // Four fifths to six fifths of them.
            let base = operations * 4 / 5 + random.below(operations * 2 / 5 + 1);
            let did = (base as f64 * own.rate) as u64;
            for _ in 0..did {
                let latency = latency(&mut random) * shared * own.times;
                course.of(interval).saturating_record(latency as u64);
            }
            let offered = if open { (base as f64 * own.offered) as u64 } else { did };
            course.count(interval, (did, offered, did));
            course.reach(interval);
        }
    }
    let compared = courses.iter().map(|course| ComparedAgent { course, clients: 4 });
    find_outlier(&compared.collect::<Vec<_>>(), open)
}

#[test]
fn at_most_one_in_a_hundred_runs_of_equal_agents_names_one() {
    for size in [(4, 9, 200), (3, 30, 50), (8, 14, 50), (16, 30, 20), (3, 20, 210)] {
        let named = (0..100).filter_map(|seed| run(seed, size, (EQUAL, seed % 2 == 0)));
        let named: Vec<Outlier> = named.collect();
        assert!(named.len() <= 1, "{size:?}: {named:?}");
    }
}

#[test]
fn an_agent_with_three_times_the_p99_at_fifty_operations_an_interval_is_named_in_19_of_20_runs() {
    let odd = Odd { times: 3.0, ..EQUAL };
    for (agents, intervals) in [(3, 30), (4, 30), (8, 30), (4, 60), (16, 40)] {
        for open in [false, true] {
            let named = (0..20).filter_map(|seed| run(seed, (agents, intervals, 50), (odd, open)));
            let right = named.filter(|found| {
                (found.agent, found.figure) == (agents - 1, AgentFigure::P99) && found.times > FAR
            });
            let right = right.count();
            assert!(right >= 19, "{agents} agents, {intervals} intervals: {right} of 20");
        }
    }
}

/// In a closed phase its operations become fewer with its latency.
#[test]
fn the_slower_an_agent_is_the_surer_it_is_named() {
    for (times, rate, figure) in
        [(3.0, 1.0 / 3.0, AgentFigure::P99), (50.0, 0.02, AgentFigure::Rate)]
    {
        let odd = Odd { times, rate, ..EQUAL };
        for seed in 0..20 {
            let found = run(seed, (4, 30, 200), (odd, false)).expect("it is slow");
            assert_eq!((found.agent, found.figure), (3, figure), "{found:?}");
        }
    }
    let hangs = Odd { rate: 0.0, ..EQUAL };
    let found = run(1, (4, 30, 50), (hangs, true)).expect("it does nothing");
    assert_eq!((found.agent, found.figure), (3, AgentFigure::Backlog));
    // It falls behind by a quarter of what falls due, and has more and more to catch up with.
    let behind = Odd { rate: 0.75, ..EQUAL };
    let found = run(1, (4, 40, 50), (behind, true)).expect("it is behind");
    assert_eq!((found.agent, found.figure), (3, AgentFigure::Backlog));
}

#[test]
fn an_agent_that_owns_hot_keys_is_not_named() {
    for seed in 0..20 {
        // It has more to do, and is slower by it; or it does more, or cannot do all of what it has.
        for (times, rate, offered, open) in
            [(3.0, 1.5, 1.5, true), (3.0, 1.0, 1.5, true), (2.0, 1.5, 1.5, false)]
        {
            let owner = Odd { times, rate, offered };
            assert_eq!(run(seed, (4, 30, 100), (owner, open)), None, "run {seed}: {times} {open}");
        }
    }
}

/// Nor is one with fewer clients, whose rate is lower by that.
#[test]
fn rates_are_those_of_a_client() {
    let course = |rate: u64| {
        let mut course = AgentCourse::default();
        (0..20).for_each(|interval| {
            course.count(interval, (rate, rate, rate));
            course.reach(interval);
        });
        course
    };
    let courses = [course(200), course(200), course(200), course(100)];
    let with = |clients: [u32; 4]| {
        let compared = courses.iter().zip(clients);
        let compared = compared.map(|(course, clients)| ComparedAgent { course, clients });
        find_outlier(&compared.collect::<Vec<_>>(), false).map(|found| found.agent)
    };
    assert_eq!(with([2, 2, 2, 1]), None);
    assert_eq!(with([2, 2, 2, 2]), Some(3));
}

#[test]
fn too_little_to_judge_by_is_not_judged() {
    let far = Odd { times: 10.0, ..EQUAL };
    assert_eq!(run(1, (4, 3, 200), (far, false)), None, "three stretches");
    assert_eq!(run(1, (4, 30, 5), (far, false)), None, "150 operations of each");
    assert_eq!(run(1, (2, 30, 300), (far, false)), None, "which of two is the odd one?");
    assert!(run(1, (3, 9, 300), (far, false)).is_some());
}

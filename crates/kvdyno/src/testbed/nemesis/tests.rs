//! When the asked rate is reached, and when the next fault is due.

use super::*;
use kvdyno_core::workload::{GroupPlan, Kind};

const SECOND: u64 = 1_000_000_000;

fn phase(arrival: Arrival) -> PhasePlan {
    let group = GroupPlan { arrival, ..GroupPlan::plain("get", &[(Kind::Get, 1000)], 1) };
    PhasePlan::plain(1, "get", vec![group], Duration::from_secs(60))
}

/// The second second of a phase.
fn interval(completed: u64, failed: u64, backlog: u64) -> Interval {
    let (start, end, offered) = (SECOND, 2 * SECOND, 1_000);
    Interval { start, end, offered, completed, failed, backlog, ..Interval::default() }
}

#[test]
fn a_load_that_catches_up_is_not_at_its_rate() {
    let constant = phase(Arrival::Constant { rate: 1_000.0 });
    let reached = |interval, before| reaches_rate(&constant, &interval, 0, before);
    assert!(reached(interval(1_000, 0, 0), 0) && reached(interval(955, 0, 45), 0));
    assert!(!reached(interval(1_000, 60, 0), 0), "they failed");
    assert!(!reached(interval(900, 0, 100), 0), "it does not keep up");
    assert!(!reached(interval(1_000, 0, 200), 200), "a backlog stays");
    assert!(!reached(interval(1_200, 0, 0), 200), "a backlog is worked off");
    assert!(!reached(interval(1_200, 0, 0), 0), "and one that clients held");
}

#[test]
fn a_rate_that_changes_is_reached_when_it_has_come_to_its_end() {
    let over = Duration::from_secs(2);
    let ramp = phase(Arrival::Ramp { from: 500.0, to: 1_000.0, over });
    let at = |start| Interval { start, end: start + SECOND, ..interval(1_000, 0, 0) };
    assert!(!reaches_rate(&ramp, &at(SECOND), 0, 0));
    assert!(reaches_rate(&ramp, &at(2 * SECOND), 0, 0));
    assert!(reaches_rate(&phase(Arrival::Closed), &interval(1, 0, 0), 0, 0));
}

#[test]
fn what_could_not_be_done_was_no_first_fault() {
    let first = First(AtomicU64::new(First::NONE));
    first.begin(5);
    first.take_back(5);
    assert_eq!(first.begun(), None);
    first.begin(7);
    first.begin(9);
    first.take_back(9);
    assert_eq!(first.begun(), Some(7));
}

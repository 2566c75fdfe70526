//! Accounts of faults whose cost is known, because the timeline was made up.

use kvdyno_core::measure::{Interval, KindMeasure, Series, Silences};
use kvdyno_core::verify::Behind;
use kvdyno_core::workload::{Arrival, GroupPlan, Kind};

use super::*;
use crate::result::BacklogAccount;
use crate::sample;

const SECOND: u64 = 1_000_000_000;
const SLOT: u64 = 20_000_000;

/// A phase of 30 s that began at 7 s of the clock, with 1,000 writes a second; `rate` says how many
/// there are in a slot from that time on.
fn phase(rate: impl Fn(u64) -> u64) -> PhaseMeasure {
    let start = 7 * SECOND;
    let second = |second: u64| {
        let start = start + second * SECOND;
        Interval { start, end: start + SECOND, ..Interval::default() }
    };
    let mut timeline: Timeline = (0..30).map(second).collect();
    for slot in 0..30 * SECOND / SLOT {
        let ok = rate(slot * SLOT);
        let writes = Slot { ok, ..Slot::default() };
        timeline.slots.push([Slot::default(), writes]);
    }
    for point in &mut timeline.points {
        point.sides_p99 = [None, Some(1e6)];
    }
    timeline.former_p99 = [None, Some(1e6)];
    timeline.silences = Some([Silences::total(start), Silences { least: 1, stretches: vec![] }]);
    let mut measure = sample::recordings(0).remove(0).measure;
    measure.anomalies.clear();
    let series = Series { group: 0, kind: Kind::Insert };
    measure.series = vec![(series, KindMeasure { ok: 30_000, ..KindMeasure::default() })];
    (measure.start, measure.end, measure.timeline) = (start, start + 30 * SECOND, timeline);
    measure
}

/// Clients that insert, each its next record when the last is answered, or at a rate.
fn plan(arrival: Arrival) -> PhasePlan {
    let group = GroupPlan { arrival, ..GroupPlan::plain("insert", &[(Kind::Insert, 1000)], 1) };
    PhasePlan::plain(1, "insert", vec![group], std::time::Duration::from_secs(60))
}

fn account_of(measure: &PhaseMeasure, faults: &[FaultResult]) -> Vec<FaultAccount> {
    of_faults(&plan(Arrival::Closed), measure, faults)
}

/// The same phase with 1,000 requests a second that fall due.
fn of_open(mut measure: PhaseMeasure, faults: &[FaultResult]) -> Vec<FaultAccount> {
    for point in &mut measure.timeline.points {
        point.interval.offered = 1_000;
    }
    of_faults(&plan(Arrival::Constant { rate: 1_000.0 }), &measure, faults)
}

fn fault(what: &str, node: &str, began_ns: u64) -> FaultResult {
    let (what, node) = (what.to_owned(), node.to_owned());
    FaultResult { what, node, began_ns, ended_ns: began_ns + 1_000_000, ..FaultResult::default() }
}

fn writes(account: &FaultAccount) -> &SideAccount {
    account.writes.as_ref().unwrap()
}

/// Nothing from 10 s on for two seconds, and then what had piled up within half a second.
fn outage(at: u64) -> u64 {
    match at {
        at if (10 * SECOND..12 * SECOND).contains(&at) => 0,
        at if (12 * SECOND..12 * SECOND + SECOND / 2).contains(&at) => 100,
        _ => 20,
    }
}

#[test]
fn an_outage_is_told_to_the_slot() {
    let mut measure = phase(outage);
    let (from, to) = (measure.start + 10 * SECOND - 999_000, measure.start + 12 * SECOND + 1_000);
    measure.timeline.silences.as_mut().unwrap()[1].stretches.push(Stretch { from, to });
    for slot in 501..600 {
        let at = measure.start + slot * SLOT;
        let slot = &mut measure.timeline.slots[slot as usize][1];
        (slot.failed, slot.indeterminate) = (2, 1);
        slot.errors = Some(Stretch { from: at + 5, to: at + 9 });
    }
    for second in [10, 11, 12] {
        measure.timeline.points[second].sides_p99[1] = Some(f64::INFINITY);
    }
    let kill = fault("kill", "node-1", 10 * SECOND);
    let accounts = account_of(&measure, &[kill, fault("start again", "node-1", 20 * SECOND)]);
    let [killed, repaired] = &accounts[..] else { panic!("{accounts:?}") };
    assert_eq!((killed.until_ns, repaired.until_ns), (30 * SECOND, 30 * SECOND));
    assert!(killed.reads.is_none());
    let side = writes(killed);
    assert_eq!((side.ok, side.failed, side.indeterminate), (20_000, 198, 99));
    assert_eq!(side.first_error_ns, Some(SLOT + 5));
    assert_eq!(side.last_error_ns, Some(99 * SLOT + 9));
    assert_eq!(side.unavailable_ns, 2 * SECOND + 1_000_000);
    assert_eq!(side.unavailable_from_ns, 10 * SECOND - 999_000);
    assert!((side.former_rate.unwrap() - 1_000.0).abs() < 1e-6);
    for share in SHARES {
        let after = side.recovered(share).unwrap().unwrap();
        assert!((2 * SECOND..=2 * SECOND + SLOT).contains(&after), "{share}: {after}");
    }
    assert_eq!(side.recovered(0.97), None);
    assert_eq!(side.calm_ns, Some(3 * SECOND));
    let side = writes(repaired);
    assert_eq!((side.failed, side.first_error_ns, side.recovered(0.95)), (0, None, Some(Some(0))));
    assert_eq!(side.calm_ns, Some(0));
}

#[test]
fn a_stall_before_the_fault_does_not_hide_the_outage_after_it() {
    // For a second nothing, and then what had piled up.
    let stalled = |at: u64| match at {
        at if (5 * SECOND..6 * SECOND).contains(&at) => 0,
        at if (6 * SECOND..7 * SECOND).contains(&at) => 40,
        at => outage(at),
    };
    let account = account_of(&phase(stalled), &[fault("kill", "node-1", 10 * SECOND)]);
    let after = writes(&account[0]).recovered(0.95).unwrap().unwrap();
    assert!((2 * SECOND..=2 * SECOND + SLOT).contains(&after), "{after}");
}

#[test]
fn a_fault_that_costs_nothing_costs_nothing() {
    let measure = phase(|at| 20 + at / SLOT % 3);
    let account = account_of(&measure, &[fault("kill", "node-2", 10 * SECOND)]);
    let side = writes(&account[0]);
    assert_eq!((side.errors(), side.first_error_ns, side.last_error_ns), (0, None, None));
    assert!(side.recoveries.iter().all(|r| r.after_ns == Some(0)), "{:?}", side.recoveries);
    assert_eq!(side.calm_ns, Some(0));
    assert!(side.unavailable_ns <= 1, "{side:?}");
}

#[test]
fn what_does_not_come_back_is_not_said_to() {
    let measure = phase(|at| if at < 10 * SECOND { 20 } else { 14 });
    let account = account_of(&measure, &[fault("kill", "node-1", 10 * SECOND)]);
    let side = writes(&account[0]);
    let after: Vec<_> = side.recoveries.iter().map(|r| (r.share, r.after_ns)).collect();
    assert_eq!(after, [(0.5, Some(0)), (0.8, None), (0.9, None), (0.95, None), (0.99, None)]);
    let row = &lines::rows(&account)[0];
    assert_eq!(row[..3], ["kill node-1", "10.000 s", "writes"]);
    assert!(row.contains(&"> 20.0 s".to_owned()), "{row:?}");
}

#[test]
fn a_level_is_never_that_of_a_load_that_catches_up() {
    // It took four seconds to start, catches up until the fault, and again after an outage of 2 s.
    let begun = |at: u64| match at {
        at if at < 4 * SECOND => 0,
        at if at < 10 * SECOND => 32,
        at if (10 * SECOND..12 * SECOND).contains(&at) => 0,
        at if (12 * SECOND..16 * SECOND).contains(&at) => 31,
        _ => 20,
    };
    let mut measure = phase(begun);
    measure.timeline.level_from = None;
    measure.timeline.former_p99 = [None, None];
    let faults = [fault("kill", "node-1", 10 * SECOND)];
    let account = of_open(measure, &faults);
    let side = writes(&account[0]);
    assert_eq!((side.asked_rate, side.former_rate), (Some(1_000.0), None));
    assert_eq!((side.former_p99_ns, side.calm_ns), (None, None));
    // Against what is asked it is back when it works again: 1,600 a second were never asked for.
    for share in SHARES {
        let after = side.recovered(share).unwrap().unwrap();
        assert!((2 * SECOND..=2 * SECOND + SLOT).contains(&after), "{share}: {after}");
    }
    // But then 2,400 wait, of those before the fault too, and 1,550 a second end.
    let backlog = account[0].backlog.unwrap();
    assert_eq!(backlog.most, 2_400);
    assert_eq!(backlog.drained_ns, None, "there is more than falls due in a tenth of a second");
    let row = &lines::rows(&account)[0];
    assert_eq!(row[9..14], ["1,000", "-", "2.00 s", "> 20.0 s", "-"]);
}

#[test]
fn a_former_level_is_never_above_what_was_asked() {
    // A little more succeeds than falls due: something of before is worked off all the time.
    let measure = phase(|at| if at < 10 * SECOND { 21 } else { outage(at) });
    let account = of_open(measure.clone(), &[fault("kill", "node-1", 10 * SECOND)]);
    let side = writes(&account[0]);
    assert_eq!((side.asked_rate, side.former_rate), (Some(1_000.0), Some(1_000.0)));
    let (most, drained) = (1_500, Some(2 * SECOND + 360_000_000));
    assert_eq!(account[0].backlog, Some(BacklogAccount { most, drained_ns: drained }));
    // With closed arrivals nothing is asked for, and nothing can pile up.
    let closed = account_of(&measure, &[fault("kill", "node-1", 10 * SECOND)]);
    let side = writes(&closed[0]);
    assert_eq!((side.asked_rate, closed[0].backlog), (None, None));
    assert!((side.former_rate.unwrap() - 1_050.0).abs() < 1e-6);
}

#[test]
fn the_level_before_is_that_from_when_the_load_was_level_on() {
    let mut measure = phase(|at| if at < 6 * SECOND { 40 } else { 20 });
    measure.timeline.level_from = Some(measure.start + 6 * SECOND);
    let side = of_open(measure, &[fault("kill", "node-1", 10 * SECOND)]).remove(0).writes.unwrap();
    assert_eq!(side.former_rate, Some(1_000.0));
}

#[test]
fn what_ends_after_the_phase_is_counted_and_no_level_is_made_of_it() {
    let mut measure = phase(|_| 20);
    let late = measure.start + 31 * SECOND;
    measure.timeline.slots.resize((31 * SECOND / SLOT) as usize + 1, Default::default());
    let errors = Some(Stretch { from: late, to: late });
    let timed_out = Slot { ok: 500, indeterminate: 3, errors, ..Slot::default() };
    measure.timeline.slots.last_mut().unwrap()[1] = timed_out;
    let faults = [fault("kill", "node-1", 10 * SECOND), fault("kill", "node-2", 20 * SECOND)];
    let account = account_of(&measure, &faults);
    assert_eq!(writes(&account[0]).errors(), 0, "they followed the last fault");
    let side = writes(&account[1]);
    assert_eq!((side.ok, side.indeterminate), (10_500, 3));
    assert_eq!((side.first_error_ns, side.last_error_ns), (Some(11 * SECOND), Some(11 * SECOND)));
    assert!(side.recoveries.iter().all(|r| r.after_ns == Some(0)), "{:?}", side.recoveries);
}

#[test]
fn without_a_before_nothing_is_compared() {
    let measure = phase(|_| 20);
    // At once, and within the first slots of 20 ms.
    for at in [0, 5_000_000, 25_000_000, 45_000_000] {
        let side = account_of(&measure, &[fault("kill", "node-1", at)]).remove(0).writes.unwrap();
        assert_eq!((side.former_rate, side.recoveries.len()), (None, 0));
    }
    let side = account_of(&measure, &[fault("kill", "node-1", 29 * SECOND + 500_000_000)]);
    assert_eq!(writes(&side[0]).former_rate, None, "too short afterwards");
}

#[test]
fn all_nodes_at_once_are_one_fault_and_what_was_not_done_is_none() {
    let measure = phase(|_| 20);
    let mut faults: Vec<_> = (1..=3)
        .map(|n| fault("kill", &format!("node-{n}"), 10 * SECOND + n * 50_000_000))
        .collect();
    faults.push(fault("kill", "node-1", 10 * SECOND + 400_000_000));
    faults
        .push(FaultResult { error: Some("no node".to_owned()), ..fault("pause", "", 15 * SECOND) });
    faults.push(fault("start again", "node-1", 31 * SECOND));
    let accounts = account_of(&measure, &faults);
    let names: Vec<String> = accounts.iter().map(FaultAccount::name).collect();
    assert_eq!(names, ["kill node-1 node-2 node-3", "kill node-1"]);
    assert_eq!(accounts[0].ended_ns, 10 * SECOND + 151_000_000);
    assert!(account_of(&measure, &[]).is_empty(), "no fault, no account");
}

#[test]
fn stale_reads_are_told_by_versions_and_time_and_what_is_absent_as_absent() {
    let mut measure = phase(|_| 20);
    assert_eq!(stale(&measure), None);
    let told = |measure: &PhaseMeasure| lines::stale_text(&stale(measure).unwrap());
    measure.tally.anomalies[AnomalyKind::Stale as usize] = 5;
    let longest = Some(std::time::Duration::from_millis(40));
    let behind = Behind { reads: 5, versions: Some((1, 4)), longest, ..Behind::default() };
    measure.behind = behind;
    let usual = "5 stale reads, 1 to 4 versions behind, the stalest at least 40.0 ms old";
    assert_eq!(told(&measure), usual);
    measure.behind = Behind { absent: 2, ..behind };
    let absent = "5 stale reads: 2 found nothing, 3 were 1 to 4 versions behind, the stalest at \
                  least 40.0 ms old";
    assert_eq!(told(&measure), absent);
    measure.behind = Behind { absent: 5, versions: None, ..behind };
    let none = "5 stale reads, each of which found nothing, the stalest at least 40.0 ms old";
    assert_eq!(told(&measure), none);
    // Ten more turned out to be of records that are lost; their reads were as old.
    measure.behind = Behind { reads: 15, outlived: 1, earlier: 4, longest: None, ..behind };
    let lost = "5 stale reads and 10 of what is lost: 1 found what should have vanished, 4 found \
                what an earlier run wrote, 10 were 1 to 4 versions behind";
    assert_eq!(told(&measure), lost);
    // As results of earlier versions have it.
    let some = StaleAccount { examined: 3, ..stale(&measure).unwrap() };
    let some = StaleAccount { absent: 0, outlived: 0, earlier: 0, most_versions: 1, ..some };
    assert_eq!(lines::stale_text(&some), "5 stale reads, 1 version behind (of 3 of them)");
}

#[test]
fn a_fault_is_at_work_until_its_repair_or_the_end() {
    let mut measure = phase(|_| 20);
    (measure.start, measure.end) = (100, 1_100);
    let fault = |what: &str, node: &str, began_ns, ended_ns| FaultResult {
        what: what.to_owned(),
        node: node.to_owned(),
        began_ns,
        ended_ns,
        ..FaultResult::default()
    };
    let at_work = |faults: &[FaultResult]| -> Vec<(u64, u64)> {
        outages(&measure, faults).iter().map(|outage| (outage.from, outage.to)).collect()
    };
    let (kill, again) = (fault("kill", "a", 50, 60), fault("start again", "a", 300, 400));
    assert_eq!(at_work(&[kill.clone(), again.clone()]), [(150, 500)]);
    let other = fault("start again", "b", 200, 210);
    assert_eq!(
        at_work(&[kill.clone(), other]),
        [(150, u64::MAX)],
        "another node's repair is not its"
    );
    assert_eq!(at_work(&[fault("rewrite", "a", 50, 90)]), [(150, 190)], "it ends by itself");
    let second = fault("kill", "a", 500, 510);
    assert_eq!(at_work(&[kill.clone(), again, second]), [(150, 500), (600, u64::MAX)]);
    let failed = FaultResult { error: Some("no such node".to_owned()), ..kill };
    assert!(at_work(&[failed]).is_empty());
    assert!(at_work(&[fault("resume", "a", 1, 2)]).is_empty(), "a repair is no fault");
}

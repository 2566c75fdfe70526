//! Accounts of faults whose cost is known beforehand, because the timeline was made up.

use kvdyno_core::measure::{Interval, KindMeasure, Series, Silences, Slow};
use kvdyno_core::verify::Behind;
use kvdyno_core::workload::{Arrival, GroupPlan, Kind};

use super::*;
use crate::cell::Cell;
use crate::sample;

const SECOND: u64 = 1_000_000_000;
const SLOT: u64 = 20_000_000;

/// Makes up a phase of 30 s that began at 7 s of the clock, with 1,000 writes a second; `rate` gives how many end in a
/// slot, by the time since the begin.
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
    timeline.former_slow = [Slow::default(), Slow { slower: 20, of: 10_000 }];
    timeline.silences = Some([Silences::total(start), Silences { least: 1, stretches: vec![] }]);
    let mut measure = sample::recordings(0).remove(0).measure;
    measure.anomalies.clear();
    let series = Series { group: 0, kind: Kind::Insert };
    measure.series = vec![(series, KindMeasure { ok: 30_000, ..KindMeasure::default() })];
    (measure.start, measure.end, measure.timeline) = (start, start + 30 * SECOND, timeline);
    slow(&mut measure, |_| 2);
    measure
}

/// Plans clients that insert, each its next record when the last is answered, or at a rate.
fn plan(arrival: Arrival) -> PhasePlan {
    let group = GroupPlan { arrival, ..GroupPlan::plain("insert", &[(Kind::Insert, 1000)], 1) };
    PhasePlan::plain(1, "insert", vec![group], std::time::Duration::from_secs(60))
}

fn account_of(measure: &PhaseMeasure, faults: &[FaultResult]) -> Vec<FaultAccount> {
    of_faults(&plan(Arrival::Closed), measure, faults)
}

/// Accounts for the same phase with 1,000 requests a second that fall due.
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

fn throughput(side: &SideAccount) -> &ThroughputRecovery {
    side.throughput.as_ref().unwrap()
}

/// Sets the slow operations of each second, of 1,000.
fn slow(measure: &mut PhaseMeasure, slower: impl Fn(usize) -> u64) {
    for (second, point) in measure.timeline.points.iter_mut().enumerate() {
        point.slow[1] = Slow { slower: slower(second), of: 1_000 };
    }
}

/// Gives the writes of a slot: none from 10 s on for two seconds, and then the backlog within half a second.
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
    slow(&mut measure, |second| if (10..13).contains(&second) { 500 } else { 2 });
    let kill = fault("kill", "node-1", 10 * SECOND);
    let accounts = account_of(&measure, &[kill, fault("start again", "node-1", 20 * SECOND)]);
    let [killed, repaired] = &accounts[..] else { panic!("{accounts:?}") };
    assert_eq!((killed.until_ns, repaired.until_ns), (30 * SECOND, 30 * SECOND));
    assert!(killed.reads.is_none());
    let side = writes(killed);
    assert_eq!((side.ok, side.failed, side.indeterminate), (20_000, 198, 99));
    assert_eq!(side.first_error_ns, Some(SLOT + 5));
    assert_eq!(side.last_error_ns, Some(99 * SLOT + 9));
    assert_eq!(side.unavailable_ns, Some(2 * SECOND + 1_000_000));
    assert_eq!(side.unavailable_from_ns, Some(10 * SECOND - 999_000));
    assert!((side.former_rate.unwrap() - 1_000.0).abs() < 1e-6);
    for share in SHARES {
        assert_eq!(throughput(side).of(share), Some(Some(2 * SECOND)), "{share}");
    }
    assert_eq!((throughput(side).of(0.97), throughput(side).later_dips), (None, 0));
    assert_eq!(side.latency.unwrap().after_ns, Some(3 * SECOND));
    let side = writes(repaired);
    assert_eq!((side.failed, side.first_error_ns), (0, None));
    assert_eq!(throughput(side).of(1.0), Some(Some(0)));
    assert_eq!(side.latency.unwrap().after_ns, Some(0));
    let row = &lines::rows(&accounts)[1];
    assert_eq!(row.iter().filter(|cell| cell.text() == "unaffected").count(), 2, "{row:?}");
}

#[test]
fn a_stall_before_the_fault_does_not_hide_the_outage_after_it() {
    // No write for a second, and then the backlog.
    let stalled = |at: u64| match at {
        at if (5 * SECOND..6 * SECOND).contains(&at) => 0,
        at if (6 * SECOND..7 * SECOND).contains(&at) => 40,
        at => outage(at),
    };
    let account = account_of(&phase(stalled), &[fault("kill", "node-1", 10 * SECOND)]);
    assert_eq!(throughput(writes(&account[0])).of(1.0), Some(Some(2 * SECOND)));
}

#[test]
fn a_fault_that_costs_nothing_costs_nothing() {
    let measure = phase(|at| 20 + at / SLOT % 3);
    let account = account_of(&measure, &[fault("kill", "node-2", 10 * SECOND)]);
    let side = writes(&account[0]);
    assert_eq!((side.errors(), side.first_error_ns, side.last_error_ns), (0, None, None));
    let told = throughput(side);
    assert_eq!((told.shares.len(), told.later_dips), (6, 0));
    assert!(told.shares.iter().all(|told| told.after_ns == Some(0)), "{told:?}");
    assert_eq!(side.latency.unwrap().after_ns, Some(0));
    assert!(side.unavailable_ns <= Some(1), "{side:?}");
}

#[test]
fn what_does_not_come_back_is_not_said_to() {
    let measure = phase(|at| if at < 10 * SECOND { 20 } else { 14 });
    let account = account_of(&measure, &[fault("kill", "node-1", 10 * SECOND)]);
    let side = writes(&account[0]);
    let after: Vec<_> = throughput(side).shares.iter().map(|told| told.after_ns).collect();
    assert_eq!(after, [Some(0), None, None, None, None, None]);
    let row = &lines::rows(&account)[0];
    let words = |text: &str| Cell::Text(text.to_owned());
    assert_eq!(row[..3], [words("kill node-1"), Cell::Moment(10 * SECOND), words("writes")]);
    // The window is half of the time that was watched.
    assert!(row.iter().any(|cell| cell.text() == "> 10.0 s"), "{row:?}");
}

#[test]
fn a_level_is_never_that_of_a_load_that_catches_up() {
    // The load took four seconds to start, catches up until the fault, and again after an outage of 2 s.
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
    measure.timeline.former_slow = Default::default();
    let faults = [fault("kill", "node-1", 10 * SECOND)];
    let account = of_open(measure, &faults);
    let side = writes(&account[0]);
    assert_eq!((side.asked_rate, side.former_rate), (Some(1_000.0), None));
    assert_eq!((side.former_p99_ns, side.latency), (None, None));
    assert_eq!(throughput(side).undecided, Some(Undecided::NothingBefore));
    // In the end 2,400 wait, some from before the fault too, and 1,550 a second end.
    let backlog = account[0].backlog.unwrap();
    assert_eq!(backlog.most, 2_400);
    assert_eq!(backlog.answered_ns, None, "there is more than falls due in a tenth of a second");
    let row = &lines::rows(&account)[0];
    assert_eq!((&row[9], &row[10]), (&Cell::Rate(1_000.0), &Cell::Nothing));
    assert_eq!((row[11].text().as_str(), &row[12]), ("not decided", &Cell::Nothing));
}

#[test]
fn a_former_level_is_never_above_what_was_asked() {
    // A little more succeeds than falls due: an older backlog is worked off all the time.
    let measure = phase(|at| if at < 10 * SECOND { 21 } else { outage(at) });
    let account = of_open(measure.clone(), &[fault("kill", "node-1", 10 * SECOND)]);
    let side = writes(&account[0]);
    assert_eq!((side.asked_rate, side.former_rate), (Some(1_000.0), Some(1_000.0)));
    let told = account[0].backlog.unwrap();
    let (most, drained) = (1_500, Some(2 * SECOND + 360_000_000));
    assert_eq!((told.most, told.answered_ns, told.given_up), (most, drained, 0));
    // With closed arrivals nothing falls due, and nothing can pile up.
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
    assert!(throughput(side).shares.iter().all(|told| told.after_ns == Some(0)), "{side:?}");
}

#[test]
fn without_a_before_nothing_is_compared() {
    let measure = phase(|_| 20);
    // At once, and within the first slots of 20 ms.
    for at in [0, 5_000_000, 25_000_000, 45_000_000] {
        let side = account_of(&measure, &[fault("kill", "node-1", at)]).remove(0).writes.unwrap();
        assert_eq!((side.former_rate, throughput(&side).shares.len()), (None, 0));
        assert_eq!(throughput(&side).undecided, Some(Undecided::NothingBefore));
    }
    let side = account_of(&measure, &[fault("kill", "node-1", 27 * SECOND)]);
    let told = writes(&side[0]);
    assert_eq!(throughput(told).undecided, Some(Undecided::WatchedTooShort));
    assert_eq!(told.latency.unwrap().undecided, Some(Undecided::WatchedTooShort));
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
    // Ten more turned out to be of records that are lost; those reads were as old.
    measure.behind = Behind { reads: 15, outlived: 1, earlier: 4, longest: None, ..behind };
    let lost = "5 stale reads and 10 of what is lost: 1 found what should have vanished, 4 found \
                what an earlier run wrote, 10 were 1 to 4 versions behind";
    assert_eq!(told(&measure), lost);
    // Results of earlier versions have only these figures.
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

/// Sets stretches without success, in s since the phase began.
fn silent(measure: &mut PhaseMeasure, stretches: &[(f64, f64)]) {
    let at = |s: f64| measure.start + (s * 1e9) as u64;
    let stretches = stretches.iter().map(|&(from, to)| Stretch { from: at(from), to: at(to) });
    measure.timeline.silences.as_mut().unwrap()[1].stretches = stretches.collect();
}

#[test]
fn a_stretch_without_success_belongs_to_the_fault_that_began_it() {
    let mut measure = phase(outage);
    // The second fault's stretch begins with the last success before the fault.
    silent(&mut measure, &[(9.999, 10.66), (19.998, 27.8)]);
    let faults = [fault("kill", "node-1", 10 * SECOND), fault("kill", "node-2", 20 * SECOND)];
    let told = |measure: &PhaseMeasure, faults: &[FaultResult]| -> Vec<Option<u64>> {
        let accounts = account_of(measure, faults);
        accounts
            .iter()
            .map(|account| writes(account).unavailable_ns.map(|ns| ns / 1_000_000))
            .collect()
    };
    assert_eq!(told(&measure, &faults), [Some(661), Some(7_802)]);
    // A stretch that goes on belongs to the first fault; the second has no success to end.
    silent(&mut measure, &[(10.001, 30.0)]);
    assert_eq!(told(&measure, &faults), [Some(19_999), None]);
    // The repair did not begin the stretch that it ends; the fault's row has what follows its repair.
    let repaired = [faults[0].clone(), fault("start again", "node-1", 15 * SECOND)];
    silent(&mut measure, &[(10.001, 16.0), (17.0, 17.3)]);
    assert_eq!(told(&measure, &repaired), [Some(5_999), Some(300)]);
    silent(&mut measure, &[(10.001, 10.2), (17.0, 17.3)]);
    assert_eq!(told(&measure, &repaired), [Some(300), Some(300)]);
    // No fault is blamed for a stretch from before it.
    silent(&mut measure, &[(8.0, 10.1)]);
    assert_eq!(told(&measure, &faults[..1]), [Some(0)]);
}

#[test]
fn latency_is_back_when_no_more_is_slow_than_before() {
    let told = |slower: &dyn Fn(usize) -> u64| {
        let mut measure = phase(|_| 20);
        slow(&mut measure, slower);
        let account = account_of(&measure, &[fault("kill", "node-1", 10 * SECOND)]);
        let told = writes(&account[0]).latency.unwrap();
        assert_eq!((told.bound_ns, told.undecided), (2e6, None));
        told.after_ns.map(|ns| ns / SECOND)
    };
    assert_eq!(told(&|_| 2), Some(0));
    assert_eq!(told(&|second| if (10..15).contains(&second) { 100 } else { 2 }), Some(5));
    // A slow second after ten good ones does not count; a load that is slower for good has not recovered.
    assert_eq!(told(&|second| if second == 10 || second == 25 { 1_000 } else { 2 }), Some(1));
    assert_eq!(told(&|second| if second < 10 { 2 } else { 8 }), None);
    // Slow operations that came in clusters before may do so again.
    assert_eq!(told(&|second| if second % 5 == 3 { 10 } else { 0 }), Some(0));
    let mut measure = phase(|_| 20);
    measure.timeline.points.iter_mut().for_each(|point| point.slow[1].of = 20);
    let account = account_of(&measure, &[fault("kill", "node-1", 10 * SECOND)]);
    let told = writes(&account[0]).latency.unwrap();
    assert_eq!(told.undecided, Some(Undecided::TooFewOperations));
}

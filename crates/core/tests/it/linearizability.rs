//! The checker of linearizability: on histories whose answer is known, and against the definition
//! itself, by trying every order.

use std::collections::HashSet;

use crate::histories::{FROM, correct, history, mutate, recorded};
use kvdyno_core::verify::linearizability::{Linearizability, check, judge};
use kvdyno_core::verify::{Call, CallKind, Content, History, RecordHistory, WriteEnd};
use kvdyno_core::workload::Random;

/// Returns true if some order explains the history, by trying them all. A call may come next if no
/// other that is still to come had ended before it began.
fn has_an_order(history: &RecordHistory) -> bool {
    let written = |wanted: Content| {
        let mut writes = history.calls.iter().filter(|call| call.end != WriteEnd::Failed);
        writes.any(|call| call.action == CallKind::Write(wanted))
    };
    let read = history.calls.iter().filter_map(|call| match call.action {
        CallKind::Read(content) => Some(content),
        CallKind::Write(_) => None,
    });
    let before = |content: &Content| match content {
        Content::Version(version) => *version < history.first_version && !written(*content),
        Content::Nothing | Content::Earlier(_) => true,
    };
    let before: HashSet<Content> = read.filter(before).collect();
    // What no read found stands for all else that may have been there.
    let mut firsts = vec![Content::Earlier(u32::MAX)];
    firsts.extend(before.iter().copied().filter(|_| history.settled));
    let mut calls: Vec<Call> = (history.calls.iter())
        .filter(|call| call.end != WriteEnd::Failed)
        .filter(|call| history.settled || call.action != CallKind::Read(Content::Nothing))
        .copied()
        .collect();
    if !history.settled {
        let late = before.iter().filter(|content| **content != Content::Nothing);
        calls.extend(late.map(|&content| Call {
            begun: 0,
            ended: u64::MAX,
            action: CallKind::Write(content),
            end: WriteEnd::Indeterminate,
        }));
    }
    firsts.iter().any(|first| orders(&calls, 0, *first, &mut HashSet::new()))
}

fn orders(
    calls: &[Call],
    done: u32,
    register: Content,
    failed: &mut HashSet<(u32, Content)>,
) -> bool {
    let left = || (0..calls.len()).filter(move |i| done & 1 << i == 0);
    if left().all(|i| calls[i].ended == u64::MAX) {
        return true;
    }
    if !failed.insert((done, register)) {
        return false;
    }
    left().any(|i| {
        let first = left().all(|other| calls[other].ended >= calls[i].begun);
        let after = match calls[i].action {
            CallKind::Write(content) => content,
            CallKind::Read(content) if content == register => register,
            CallKind::Read(_) => return false,
        };
        first && orders(calls, done | 1 << i, after, failed)
    })
}

#[test]
fn the_answer_is_that_of_trying_every_order() {
    let mut answers = [0u32; 2];
    for number in 0..30_000 {
        let mut random = Random::new(11, number);
        let (clients, requests) = (1 + random.below(4) as usize, 1 + random.below(9) as usize);
        let mut history = correct(&mut random, clients, requests);
        assert!(check(&history).is_none(), "{number}: {history:?}");
        for _ in 0..random.below(4) {
            mutate(&mut random, &mut history);
        }
        history.settled = random.below(8) > 0;
        let right = has_an_order(&history);
        let violation = check(&history);
        assert_eq!(violation.is_none(), right, "{number}: {history:?}: {violation:?}");
        answers[usize::from(right)] += 1;
    }
    // Both are put to the test.
    assert!(answers.iter().all(|&answers| answers > 3_000), "{answers:?}");
}

#[test]
fn what_is_shown_of_a_violation_is_one_and_no_call_of_it_can_be_left_out() {
    let mut violations = 0;
    for number in 0..2_000 {
        let mut random = Random::new(12, number);
        let mut history = correct(&mut random, 4, 40);
        for _ in 0..3 {
            mutate(&mut random, &mut history);
        }
        let Some(violation) = check(&history) else { continue };
        violations += 1;
        let shown = RecordHistory { calls: violation.calls.clone(), ..history.clone() };
        assert!(!has_an_order(&shown), "{number}: {violation:?}");
        assert!((1..=6).contains(&violation.calls.len()), "{number}: {violation:?}");
        for i in 0..shown.calls.len() {
            let mut rest = shown.clone();
            let left_out = rest.calls.remove(i);
            // Without its write, a read finds what nobody had written.
            let CallKind::Write(content) = left_out.action else {
                assert!(has_an_order(&rest), "{number}: {violation:?} without {left_out:?}");
                continue;
            };
            if rest.calls.iter().all(|call| call.action != CallKind::Read(content)) {
                assert!(has_an_order(&rest), "{number}: {violation:?} without {left_out:?}");
            }
        }
    }
    assert!(violations > 500, "{violations}");
}

fn write(begun: u64, ended: u64, version: u32) -> Call {
    let action = CallKind::Write(Content::Version(version));
    Call { begun: FROM + begun, ended: FROM + ended, action, end: WriteEnd::Acknowledged }
}

fn read(begun: u64, ended: u64, version: u32) -> Call {
    let action = CallKind::Read(Content::Version(version));
    Call { begun: FROM + begun, ended: FROM + ended, action, end: WriteEnd::Acknowledged }
}

/// Returns the number of calls in the violation of these; 0 if there is none.
fn violated(calls: &[Call]) -> usize {
    check(&history(calls.to_vec())).map_or(0, |violation| violation.calls.len())
}

#[test]
fn well_known_histories_get_their_answer() {
    // Two writes one after the other, then the first is read: a stale read.
    assert_eq!(violated(&[write(0, 1, 8), write(2, 3, 9), read(4, 5, 8)]), 3);
    assert_eq!(violated(&[write(0, 1, 8), write(2, 3, 9), read(4, 5, 9)]), 0);
    // What was there before is read after a write was acknowledged.
    assert_eq!(violated(&[write(0, 1, 8), read(2, 3, 7)]), 2);
    assert_eq!(violated(&[write(0, 3, 8), read(2, 3, 7)]), 0);
    // New-old inversion (Lamport, "On Interprocess Communication", 1986: a regular register that is
    // not atomic): during a write one read finds the new value, a later one the old.
    assert_eq!(violated(&[write(0, 9, 8), read(1, 2, 8), read(3, 4, 7)]), 3);
    assert_eq!(violated(&[write(0, 9, 8), read(1, 2, 7), read(3, 4, 8)]), 0);
    assert_eq!(violated(&[write(0, 9, 8), read(1, 3, 8), read(3, 4, 7)]), 0);
    // Two readers see two overlapping writes in different orders.
    let crossed = [write(0, 9, 8), write(0, 9, 9), read(1, 2, 8), read(3, 4, 9), read(5, 6, 8)];
    assert_eq!(violated(&crossed), 5);
    // A value is read before it is written, or was never.
    assert_eq!(violated(&[read(0, 1, 8), write(2, 3, 8)]), 2);
    assert_eq!(violated(&[read(0, 1, 8)]), 1);
}

/// Judges the histories that a run exported, and returns the calls of the violation; `None` if they
/// are linearizable.
fn of_recorded(name: &str) -> Option<Vec<CallKind>> {
    let history = History { records: recorded(name) };
    assert!(history.records.iter().map(|record| record.calls.len()).sum::<usize>() > 100);
    match judge(&history) {
        Linearizability::Ok => None,
        Linearizability::Violated(violation) => {
            Some(violation.calls.into_iter().map(|call| call.action).collect())
        }
        Linearizability::Unknown(why) => panic!("{name}: {why}"),
    }
}

/// Runs of kvdyno on its own bench, as they were exported: writes that timed out and were made at
/// once, late or never; reads of old versions; a primary that was paused, replaced, and answered
/// again until it heard of that.
#[test]
fn recorded_histories_get_their_answer() {
    assert_eq!(of_recorded("timeouts"), None);
    let [first, second] = [1, 2].map(Content::Version);
    let old = of_recorded("stale-reads").unwrap();
    assert_eq!(old, [CallKind::Write(first), CallKind::Write(second), CallKind::Read(first)]);
    let lost = of_recorded("paused-primary").unwrap();
    assert!(matches!(lost.last(), Some(CallKind::Read(_))), "{lost:?}");
}

#[test]
fn writes_in_doubt_may_take_effect_at_any_time_or_never_and_failed_ones_not_at_all() {
    let doubt = Call { ended: u64::MAX, end: WriteEnd::Indeterminate, ..write(0, 0, 8) };
    assert_eq!(violated(&[doubt, write(1, 2, 9), read(3, 4, 9)]), 0);
    assert_eq!(violated(&[doubt, write(1, 2, 9), read(3, 4, 8)]), 0);
    assert_eq!(violated(&[doubt, write(1, 2, 9), read(3, 4, 9), read(5, 6, 8)]), 0);
    // Once it was seen to be overwritten it does not come back.
    let seen = [doubt, read(1, 2, 8), write(3, 4, 9), read(5, 6, 9), read(7, 8, 8)];
    assert_eq!(violated(&seen), 4);
    let failed = Call { end: WriteEnd::Failed, ..write(0, 1, 8) };
    assert_eq!(violated(&[failed, read(2, 3, 7)]), 0);
    assert_eq!(violated(&[failed, read(2, 3, 8)]), 2);
}

#[test]
fn what_a_full_history_left_out_is_held_against_nobody() {
    let mut full = history(vec![write(0, 1, 8), read(4, 6, 9)]);
    assert!(check(&full).is_some());
    full.cut = Some(FROM + 5);
    assert!(check(&full).is_none());
    full.cut = Some(FROM + 7);
    assert!(check(&full).is_some());
}

#[test]
fn what_was_in_doubt_before_may_come_later() {
    let mut unsettled = history(vec![write(0, 1, 8), read(2, 3, 8), read(4, 5, 7)]);
    assert!(check(&unsettled).is_some());
    unsettled.settled = false;
    assert!(check(&unsettled).is_none());
    unsettled.calls.push(read(6, 7, 8));
    assert!(check(&unsettled).is_some());
}

#[test]
fn of_all_records_the_shortest_violation_is_told_and_no_operations_say_nothing() {
    assert!(matches!(judge(&History::default()), Linearizability::Unknown(_)));
    let good = history(vec![write(0, 1, 8), read(2, 3, 8)]);
    let mut long = history(vec![write(0, 1, 8), write(2, 3, 9), read(4, 5, 8)]);
    let mut short = history(vec![write(0, 1, 8), read(2, 3, 7)]);
    (long.record, short.record) = (1, 2);
    assert_eq!(judge(&History { records: vec![good.clone()] }), Linearizability::Ok);
    match judge(&History { records: vec![good, long, short] }) {
        Linearizability::Violated(violation) => assert_eq!(violation.record, 2),
        answer => panic!("{answer:?}"),
    }
}

#[test]
fn ten_thousand_calls_on_a_record_are_judged() {
    let mut long = correct(&mut Random::new(13, 0), 50, 10_000);
    assert!(check(&long).is_none());
    let last = long.calls.iter().map(|call| call.begun).max().unwrap();
    long.calls.push(Call { begun: last + 1_000, ended: last + 1_001, ..read(0, 0, 9) });
    assert!(check(&long).is_some());
}

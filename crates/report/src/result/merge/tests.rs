//! Parts are united field by field, and judged as a whole.

use std::time::Duration;

use kvdyno_core::measure::{Limit, StopReason};

use super::super::{
    CapacityResult, CostResult, CourseResult, EventResult, ExcursionResult, FaultResult, Level,
    LinearizabilityAnswer, LinearizabilityResult, PhaseResult, Reason, UnaskedNode, Verdict,
    rfc3339,
};
use super::*;
use crate::sample;

fn parts(count: u32) -> Vec<RunResult> {
    (0..count)
        .map(|index| {
            let mut part = sample::two_stores();
            part.part = Part { index, count };
            part
        })
        .collect()
}

#[test]
fn counts_and_histograms_are_added() {
    let parts = parts(3);
    let whole = merge(&parts, Absent::Refuse).unwrap();
    let (one, all) = (&parts[0].runs[0].phases[0], &whole.runs[0].phases[0]);
    assert_eq!(all.ok(), 3 * one.ok());
    assert_eq!(all.clients(), 3 * one.clients());
    let (one, all) = (one.series[0].service.as_ref(), all.series[0].service.as_ref());
    let (one, all) = (one.unwrap(), all.unwrap());
    assert_eq!((all.count, all.p99_ns), (3 * one.count, one.p99_ns));
    assert_eq!(all.decode().unwrap().len(), all.count);
    assert_eq!(whole.part, Part::WHOLE);
    assert_eq!(whole.merged_from.len(), 3);
}

#[test]
fn the_wall_clock_is_the_union() {
    let mut parts = parts(2);
    parts[1].runs[0].phases[0].started = "2026-03-01T12:00:05.000000Z".into();
    parts[0].runs[0].phases[0].started = "2026-03-01T12:00:00.000000Z".into();
    parts[0].runs[0].phases[0].wall_ns = 2_000_000_000;
    parts[1].runs[0].phases[0].wall_ns = 3_000_000_000;
    let whole = merge(&parts, Absent::Refuse).unwrap();
    let phase = &whole.runs[0].phases[0];
    assert_eq!(phase.wall_ns, 8_000_000_000);
    assert_eq!(phase.rate(), Some(phase.ok() as f64 / 8.0));
    assert_eq!(phase.series[0].rate, Some(phase.series[0].ok as f64 / 8.0));
}

#[test]
fn parts_must_be_disjoint_and_all_there() {
    let all = parts(3);
    let twice = [all[0].clone(), all[0].clone()];
    assert_eq!(merge(&twice, Absent::Allow), Err(MergeError::Twice { part: 1, count: 3 }));
    let two = [all[2].clone(), all[0].clone()];
    assert_eq!(merge(&two, Absent::Refuse), Err(MergeError::Missing { part: 2, count: 3 }));
    let merged = merge(&two, Absent::Allow).unwrap();
    assert_eq!(merged.merged_from.iter().map(|p| p.part.index).collect::<Vec<_>>(), [2, 0]);
    assert_eq!(merge(&all[..1], Absent::Allow), Err(MergeError::TooFew));
}

#[test]
fn different_loads_are_refused() {
    let refused = |change: fn(&mut RunResult), expected: &str| {
        let mut parts = parts(2);
        change(&mut parts[1]);
        let error = merge(&parts, Absent::Refuse).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    };
    refused(|r| r.seed += 1, "seed");
    refused(|r| r.suite.scale = Some(0.5), "suite");
    refused(|r| r.part.count = 3, "number of parts");
    refused(|r| r.runs[0].store.version = Some("0".into()), "store");
    refused(|r| r.runs[0].dataset.as_mut().unwrap().id += 1, "dataset");
    refused(|r| r.runs[0].phases.truncate(1), "phases");
}

#[test]
fn the_worst_status_and_verdict_win() {
    let mut parts = parts(2);
    parts[1].status = Status::Failed { message: "gone".into() };
    parts[1].runs[0].verdict = Some(Verdict::of(vec![sample::reason(2.0, 1.0)]));
    let whole = merge(&parts, Absent::Refuse).unwrap();
    assert_eq!(whole.status, Status::Failed { message: "gone".into() });
    let verdict = whole.runs[0].verdict.as_ref().unwrap();
    assert_eq!(verdict.level, sample::reason(2.0, 1.0).level);
}

/// Two parts whose `mixed` phase of 10 s the second begins `late` after the first.
fn two_parts(late: Duration) -> Vec<RunResult> {
    let mut parts = parts(2);
    for (part, after) in parts.iter_mut().zip([Duration::ZERO, late]) {
        let phase = mixed(part);
        phase.started = rfc3339(sample::started() + after);
        phase.wall_ns = 10_000_000_000;
    }
    parts
}

fn mixed(result: &mut RunResult) -> &mut PhaseResult {
    let phases = &mut result.runs[0].phases;
    phases.iter_mut().find(|phase| phase.name == "mixed").expect("a phase `mixed`")
}

fn excursion(from_ns: u64) -> ExcursionResult {
    ExcursionResult {
        what: "throughput".into(),
        from_ns,
        to_ns: from_ns + 1_000_000_000,
        level: 0.1,
        beside: Vec::new(),
        start_up: false,
    }
}

/// What one part says of itself is not said of the whole, and is not lost.
#[test]
fn nothing_of_one_part_stands_for_all() {
    let mut parts = two_parts(Duration::ZERO);
    parts[0].command =
        ["kvdyno", "run", "x", "--part", "1/2", "--start-at=5"].map(Into::into).into();
    parts[0].host.kernel = Some("5.0".into());
    parts[0].cost = Some(CostResult { currency: "USD".into(), ..CostResult::default() });
    let run = &mut parts[0].runs[0];
    run.notes = vec!["both say".into(), "one says".into()];
    run.store.settings = vec![("a".into(), "1".into()), ("b".into(), "2".into())];
    run.capacity =
        vec![CapacityResult { phase: "run".into(), carried: Some(70.0), ..Default::default() }];
    mixed(&mut parts[0]).limit = Some(Limit::Client { busy: 0.99 });
    mixed(&mut parts[0]).published = vec![sample::published()];
    let run = &mut parts[1].runs[0];
    run.notes = vec!["both say".into()];
    run.store.settings = vec![("a".into(), "1".into())];
    run.store.url = "redis://other".into();
    mixed(&mut parts[1]).limit = Some(Limit::NoneSeen);
    mixed(&mut parts[1]).stopped = StopReason::TimeLimit;
    let mut whole = merge(&parts, Absent::Refuse).unwrap();
    assert_eq!(whole.command, ["kvdyno", "run", "x"]);
    assert_eq!((&whole.host.kernel, whole.host.cores, &whole.cost), (&None, Some(2), &None));
    let phase = mixed(&mut whole);
    assert_eq!((&phase.limit, phase.stopped), (&None, StopReason::TimeLimit));
    assert!(phase.published.is_empty());
    let run = &whole.runs[0];
    assert!(run.capacity.is_empty());
    assert_eq!(run.store.settings, [("a".to_owned(), "1".to_owned())]);
    assert_eq!(run.notes, ["both say", "one says"], "what a part cannot see the whole cannot");
    let told = run.of_parts.join("\n").to_lowercase();
    for said in [
        "part 1: mix 80/20: limited by the client: a thread of kvdyno had work 99 % of the time",
        "part 1: run found 70/s for its own clients",
        "part 2: reached the store at redis://other",
        "how far these are apart was not measured",
        "for how long nothing succeeded in any part is not known",
    ] {
        assert!(told.contains(said), "{said}: {told}");
    }
    assert!(!told.contains("what followed a fault"), "there was none: {told}");
    assert!(!told.contains("after the first"), "they began at one moment: {told}");
}

#[test]
fn moments_of_all_parts_count_from_the_first_begin() {
    let mut parts = two_parts(Duration::from_secs(4));
    for part in &mut parts {
        let phase = mixed(part);
        phase.course = Some(CourseResult {
            settled_ns: Some(1_000_000_000),
            excursions: vec![excursion(2_000_000_000)],
            events: vec![EventResult { what: "snapshot of a".into(), from_ns: 5, to_ns: 6 }],
            ..CourseResult::default()
        });
        phase.faults = vec![FaultResult {
            what: "kill".into(),
            began_ns: 3,
            ended_ns: 4,
            ..Default::default()
        }];
        phase.unasked = vec![UnaskedNode { node: "a".into(), from_ns: 4, to_ns: 9 }];
        let mut violated = LinearizabilityResult {
            answer: LinearizabilityAnswer::Ok,
            why: String::new(),
            records: 16,
            full: 0,
            requests: 100,
            indeterminate: 1,
            violation: None,
        };
        if part.part.index == 1 {
            violated.answer = LinearizabilityAnswer::Violated;
        }
        mixed(part).linearizability = Some(violated);
    }
    // In whatever order they are named.
    for parts in [[&parts[0], &parts[1]], [&parts[1], &parts[0]]] {
        let mut whole = merge(&parts.map(Clone::clone), Absent::Refuse).unwrap();
        let of_parts = whole.runs[0].of_parts.join("\n");
        for said in ["part 2: began Mix 80/20 4.00 s after the first", "what followed a fault"] {
            assert!(of_parts.contains(said), "{of_parts}");
        }
        let phase = mixed(&mut whole);
        let course = phase.course.as_ref().unwrap();
        let told: Vec<(&str, u64)> = course
            .excursions
            .iter()
            .map(|e| (e.what.as_str(), e.from_ns / 1_000_000_000))
            .collect();
        assert_eq!(told, [("throughput of part 1", 2), ("throughput of part 2", 6)]);
        assert_eq!(course.settled_ns, Some(5_000_000_000));
        let begins: Vec<u64> = course.events.iter().map(|event| event.from_ns).collect();
        assert_eq!(begins, [5, 4_000_000_005]);
        let faults: Vec<u64> = phase.faults.iter().map(|fault| fault.began_ns).collect();
        assert_eq!(faults, [3, 4_000_000_003]);
        let unasked: Vec<u64> = phase.unasked.iter().map(|node| node.to_ns).collect();
        assert_eq!(unasked, [9, 4_000_000_009]);
        let examined = phase.linearizability.as_ref().unwrap();
        assert_eq!(examined.answer, LinearizabilityAnswer::Violated);
        assert_eq!((examined.records, examined.requests), (32, 200));
    }
}

/// Parts that ran together for 6 of 14 s were apart for 8.
#[test]
fn parts_that_did_not_run_together_are_told_and_not_priced() {
    for (late, level) in [
        (Duration::ZERO, None),
        (Duration::from_millis(50), None),
        (Duration::from_millis(200), Some(Level::Suspect)),
        (Duration::from_secs(4), Some(Level::Invalid)),
        (Duration::from_secs(100), Some(Level::Invalid)),
    ] {
        let mut whole = merge(&two_parts(late), Absent::Refuse).unwrap();
        let share = mixed(&mut whole).apart.unwrap();
        let expected = (2.0 * late.as_secs_f64() / (10.0 + late.as_secs_f64())).min(1.0);
        assert!((share - expected).abs() < 1e-9, "{late:?}: {share}");
        let verdict = whole.runs[0].verdict.as_ref().unwrap();
        let reason = verdict.reasons.iter().find(|reason| reason.name == "apart");
        assert_eq!(reason.map(|reason| reason.level), level, "{late:?}");
        let cost = CostResult { hours_a_month: 730.0, ..CostResult::default() };
        let lines = crate::cost::lines_with(&cost, &whole.runs[0]).join("\n");
        let untold = lines.contains("not told, for its parts did not run together");
        assert_eq!(untold, level == Some(Level::Invalid), "{lines}");
    }
}

/// What adds up is judged by its sum, with the sum's figure; what one process tells is its own.
#[test]
fn the_whole_is_judged_anew() {
    let mut parts = two_parts(Duration::ZERO);
    let reason = |name: &str, figure: f64| Reason {
        name: name.into(),
        figure: Some(figure),
        ..sample::reason(figure, 0.8)
    };
    // A tenth of one part's operations failed, of the other's none: a twentieth in all.
    for (part, failed) in parts.iter_mut().zip([100, 0]) {
        let phase = mixed(part);
        for series in &mut phase.series {
            (series.ok, series.failed, series.indeterminate) = (0, 0, 0);
        }
        (phase.series[0].ok, phase.series[0].failed) = (1_000 - failed, failed);
    }
    let own = vec![reason("error-ratio", 0.1), reason("client-limited", 0.95), reason("new", 1.0)];
    parts[0].runs[0].verdict = Some(Verdict::of(own));
    parts[1].runs[0].verdict = Some(Verdict::of(vec![reason("new", 1.0)]));
    let whole = merge(&parts, Absent::Refuse).unwrap();
    let reasons = &whole.runs[0].verdict.as_ref().unwrap().reasons;
    let of = |name: &str| -> Vec<&Reason> {
        let here = |r: &&Reason| r.name == name && r.phase.as_deref() == Some("mixed");
        reasons.iter().filter(here).collect()
    };
    let [errors] = of("error-ratio")[..] else { panic!("{reasons:#?}") };
    assert_eq!((errors.figure, errors.level), (Some(0.05), Level::Suspect));
    assert!(errors.text.starts_with("100 of 2,000 operations"), "{}", errors.text);
    let [limited] = of("client-limited")[..] else { panic!("{reasons:#?}") };
    assert!(limited.text.starts_with("part 1: client thread"), "{}", limited.text);
    let [new] = of("new")[..] else { panic!("{reasons:#?}") };
    assert!(new.text.starts_with("client thread"), "all parts say it: {}", new.text);
}

#[test]
fn parts_on_testbeds_of_their_own_are_no_load() {
    let mut parts = parts(2);
    parts[0].runs[0].testbed = Some(sample::testbed("redis-1"));
    let merged = merge(&parts, Absent::Refuse).unwrap();
    assert!(merged.runs[0].testbed.is_some(), "the others went to it by its address");
    parts[1].runs[0].testbed = Some(sample::testbed("redis-2"));
    let refused = merge(&parts, Absent::Refuse).unwrap_err().to_string();
    assert!(refused.contains("testbed"), "{refused}");
}

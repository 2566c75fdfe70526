//! Least samples of each reason: of a phase that is too short to tell, nothing is said.

use super::*;

/// A phase of which hardly anything can be known, with every figure as bad as can be.
fn tiny(operations: u64, ns: u64) -> Phase {
    let mut phase = healthy();
    phase.open();
    phase.set_gets(operations, 0);
    phase.measure.end = phase.measure.start + ns;
    phase.measure.last_end = phase.measure.end;
    let wall = Duration::from_nanos(ns);
    let busy = WorkerUse {
        wall,
        cpu: wall,
        waited: wall,
        in_store: Duration::ZERO,
        ..phase.measure.workers[0]
    };
    phase.measure.workers = vec![busy];
    (phase.measure.offered, phase.measure.started) = (operations * 2, operations);
    let all_at = |ns: u64| {
        let mut histogram = latency_histogram();
        histogram.record_n(ns, operations).unwrap();
        Some(histogram)
    };
    phase.gets().service = all_at(ns);
    phase.gets().response = all_at(ns);
    phase.measure.send_lag = all_at(ns);
    phase.measure.timeline.points.truncate(1);
    phase.measure.stalls.gaps = vec![Stretch { from: phase.measure.start, to: phase.measure.end }];
    (phase.resources.steal, phase.resources.others, phase.resources.span) = (0.5, Some(0.5), wall);
    phase
}

/// One tick of a clock was half of a phase of 4.5 ms: "50 % steal", invalid.
#[test]
fn of_a_tiny_phase_nothing_is_said_that_cannot_be_known() {
    for (operations, ns) in [(1, 45_000), (9, 4_500_000), (9, 20_000_000), (9, 99_000_000)] {
        for threading in [Threading::Networked, Threading::InProcess] {
            for closed in [true, false] {
                let mut phase = tiny(operations, ns);
                phase.threading = threading;
                if closed {
                    phase.plan.groups[0].arrival = Arrival::Closed;
                }
                let reasons = phase.reasons();
                let names: Vec<_> = reasons.iter().map(Reason::name).collect();
                assert_eq!(names, ["too-few-samples", "too-short"], "{reasons:?}");
            }
        }
    }
}

/// Each reason holds from its least number of samples on: the phase with one more of them has it.
#[test]
fn a_reason_speaks_from_its_least_on() {
    let told = |phase: &Phase, name: &str| phase.reasons().iter().any(|r| r.name() == name);
    let least = |number: u64, of: SampleUnit, name: &str, phase: &dyn Fn(u64) -> Phase| {
        assert!(!told(&phase(number - 1), name), "{name} on {} {of:?}", number - 1);
        assert!(told(&phase(number), name), "{name} on {number} {of:?}");
    };
    let ms = 1_000_000;
    least(100, SampleUnit::ThreadTime, "client-limited", &|n| tiny(9, n * ms));
    least(100, SampleUnit::Ticks, "disturbed", &|n| tiny(9, n * 10 * ms));
    least(100, SampleUnit::Sends, "late-sends", &|n| tiny(n, 10 * ms));
    least(100, SampleUnit::Operations, "littles-law", &|n| tiny(n, 10 * ms));
    least(10, SampleUnit::Due, "missed-schedule", &|n| tiny(n, 10 * ms));
    let in_process = |n: u64| {
        let mut phase = tiny(n, 10 * ms);
        phase.threading = Threading::InProcess;
        phase.plan.groups[0].arrival = Arrival::Closed;
        phase
    };
    least(10_000, SampleUnit::Operations, "harness-share", &in_process);
    least(100, SampleUnit::Ticks, "other-load", &|n| Phase {
        threading: Threading::InProcess,
        ..tiny(9, n * 10 * ms)
    });
}

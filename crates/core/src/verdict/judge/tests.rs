//! Each reason is made to appear, and each threshold is shown to be still good.

mod own_time;
mod tiny;

use std::time::SystemTime;

use super::*;
use crate::measure::{
    ErrorSummary, Interval, OldRecords, ProcessUse, Series, ServerUse, Stalls, StopReason, Stretch,
    WorkerUse, latency_histogram,
};
use crate::store::{
    Capabilities, Certainty, Consistency, Durability, ErrorClass, Figure, Profile, Promise,
    Threading,
};
use crate::verdict::Level;
use crate::verify::{Behind, Tally};
use crate::workload::Arrival;

const CLIENTS: u32 = 10;
const SECONDS: u64 = 10;
const SECOND: u64 = 1_000_000_000;

/// A phase that nothing speaks against; each test spoils one thing.
struct Phase {
    plan: PhasePlan,
    measure: PhaseMeasure,
    threading: Threading,
    resources: ResourceSummary,
    outages: Vec<Stretch>,
    prepares: bool,
}

fn healthy() -> Phase {
    let plan = PhasePlan::plain(0, "get", vec![group()], Duration::from_secs(60));
    let mut phase = Phase {
        plan,
        measure: measure(),
        threading: Threading::Networked,
        resources: resources(),
        outages: vec![],
        prepares: false,
    };
    phase.set_gets(100_000, 0);
    phase.measure.tally = Tally { reads: 100_000, judged: 100_000, ..Tally::default() };
    phase
}

/// A healthy phase with servers on this machine whose threads waited so long (as shares) for a processor,
/// beside other programs.
fn served(waits: &[f64], others: Option<f64>) -> Phase {
    let server = |longest_wait: &f64| ServerUse {
        pid: 7,
        used: None,
        alive: true,
        busiest_thread: None,
        longest_wait: Some(*longest_wait),
    };
    let servers = waits.iter().map(server).collect();
    Phase { resources: ResourceSummary { servers, others, ..resources() }, ..healthy() }
}

fn group() -> GroupPlan {
    GroupPlan {
        clients: CLIENTS,
        requests: Some(100_000),
        ..GroupPlan::plain("get", &[(Kind::Get, 1000)], 1000)
    }
}

fn measure() -> PhaseMeasure {
    let worker = WorkerUse {
        wall: Duration::from_secs(SECONDS),
        late: Duration::ZERO,
        cpu: Duration::from_secs(SECONDS / 2),
        spun: Duration::ZERO,
        waited: Duration::ZERO,
        in_store: Duration::from_secs(SECONDS * 9 / 10),
        clients: CLIENTS,
    };
    PhaseMeasure {
        behind: Behind::default(),
        old: OldRecords::default(),
        unread: 0,
        started_at: SystemTime::UNIX_EPOCH,
        start: SECOND,
        end: (SECONDS + 1) * SECOND,
        last_end: (SECONDS + 1) * SECOND,
        stopped: StopReason::Requests,
        profile: Profile {
            store: "test".to_owned(),
            version: None,
            capabilities: Capabilities::default(),
            durability: Promise::declared(Durability::None),
            consistency: Promise::declared(Consistency::Linearizable),
            ttl_precision: Duration::ZERO,
            timeout: Duration::from_secs(1),
            settings: vec![],
        },
        series: vec![],
        timeline: (0..SECONDS as u32).map(|n| interval(n, 10_000)).collect(),
        offered: 100_000,
        offered_estimated: false,
        started: 100_000,
        unstarted: None,
        stalls: Stalls::default(),
        send_lag: None,
        errors: vec![],
        workers: vec![worker],
        issued: vec![100_000],
        records: 1000,
        tally: Tally::default(),
        missed_at: vec![],
        anomalies: vec![],
        linearizability: None,
        figures: vec![],
    }
}

fn interval(index: u32, completed: u64) -> Interval {
    let start = SECOND + u64::from(index) * SECOND;
    Interval {
        index,
        start,
        end: start + SECOND,
        offered: completed,
        started: completed,
        completed,
        ..Interval::default()
    }
}

fn resources() -> ResourceSummary {
    let own = ProcessUse {
        processors: 0.5,
        user: Duration::from_secs(3),
        system: Duration::from_secs(2),
        peak_rss: 1 << 24,
        read_bytes: None,
        written_bytes: None,
        context_switches: None,
    };
    let span = Duration::from_secs(SECONDS);
    ResourceSummary {
        span,
        busy: 0.6,
        steal: 0.0,
        iowait: 0.0,
        own,
        servers: vec![],
        link: None,
        others: None,
    }
}

impl Phase {
    /// Gets that keep 9 of 10 clients busy all the time, and failures that take no time.
    fn set_gets(&mut self, ok: u64, failed: u64) {
        let mut gets = KindTotal { ok, failed, records: ok, ..KindTotal::default() };
        let in_flight = f64::from(CLIENTS) * 0.9;
        gets.service = Some(busy(in_flight, ok));
        self.measure.series = vec![(Series { group: 0, kind: Kind::Get }, gets)];
    }

    fn gets(&mut self) -> &mut KindTotal {
        &mut self.measure.series[0].1
    }

    fn open(&mut self) {
        self.plan.groups[0].arrival = Arrival::Constant { rate: 10_000.0 };
    }

    fn reasons(&self) -> Vec<Reason> {
        judge_phase(&PhaseFacts {
            plan: &self.plan,
            measure: &self.measure,
            threading: self.threading,
            resources: Some(&self.resources),
            after_end: false,
            outages: &self.outages,
            prepares: self.prepares,
        })
    }

    #[track_caller]
    fn only(&self, name: &str, level: Level) -> Reason {
        let reasons = self.reasons();
        assert_eq!(reasons.len(), 1, "{reasons:?}");
        assert_eq!((reasons[0].name(), reasons[0].level()), (name, level), "{reasons:?}");
        reasons[0].clone()
    }

    #[track_caller]
    fn none(&self) {
        assert_eq!(self.reasons(), []);
    }
}

/// Service times of `n` operations that keep `in_flight` requests in flight over the phase.
fn busy(in_flight: f64, n: u64) -> Histogram<u64> {
    let mut histogram = latency_histogram();
    histogram.record_n((in_flight * (SECONDS * SECOND) as f64 / n as f64) as u64, n).unwrap();
    histogram
}

#[test]
fn nothing_speaks_against_a_healthy_phase() {
    healthy().none();
}

#[test]
fn a_busy_client_thread() {
    let mut phase = healthy();
    phase
        .measure
        .workers
        .push(WorkerUse { cpu: Duration::from_secs(9), ..phase.measure.workers[0] });
    phase.none();
    phase.measure.workers[1].cpu = Duration::from_millis(9_010);
    let reason = phase.only("client-limited", Level::Suspect);
    assert!(matches!(reason, Reason::ClientLimited { worker: 1, .. }));
    assert!(reason.text().contains("90.1 %"), "{}", reason.text());
}

#[test]
fn in_process_the_time_outside_the_store_counts_and_busy_threads_do_not() {
    let mut phase = healthy();
    phase.threading = Threading::InProcess;
    phase.measure.workers[0].cpu = Duration::from_secs(10);
    phase.measure.workers[0].in_store = Duration::from_secs(8);
    phase.none();
    phase.measure.workers[0].in_store = Duration::from_millis(7_900);
    phase.only("harness-share", Level::Suspect);
    phase.open();
    phase.none();
}

#[test]
fn requests_that_were_due_and_not_sent() {
    let mut phase = healthy();
    phase.open();
    phase.measure.started = 99_900;
    phase.none();
    phase.measure.started = 99_899;
    phase.only("missed-schedule", Level::Suspect);
    phase.measure.started = 95_000;
    phase.only("missed-schedule", Level::Suspect);
    phase.measure.started = 80_000;
    let text = phase.only("missed-schedule", Level::Invalid).text();
    assert!(text.contains("8,000 of 10,000 ops/s; backlog 20,000 at the end"), "{text}");
    phase.plan.groups[0].arrival = Arrival::Closed;
    phase.none();
}

#[test]
fn requests_sent_late_by_kvdyno_itself() {
    let mut phase = healthy();
    phase.open();
    let all_at = |ns: u64| {
        let mut histogram = latency_histogram();
        histogram.record_n(ns, 1000).unwrap();
        Some(histogram)
    };
    phase.gets().response = all_at(2_000_000);
    phase.measure.send_lag = all_at(190_000);
    phase.none();
    phase.measure.send_lag = all_at(210_000);
    phase.only("late-sends", Level::Suspect);
    phase.measure.send_lag = all_at(1_100_000);
    phase.only("late-sends", Level::Invalid);
    // Lateness of a timer's size is nobody's concern, however fast the store.
    phase.gets().response = all_at(100_000);
    phase.measure.send_lag = all_at(99_000);
    phase.none();
}

#[test]
fn reads_that_miss_as_verification_saw_them() {
    let mut phase = healthy();
    // Of those that should have found a record: misses that are no fault, such as of deleted ones, thin
    // nothing out.
    phase.gets().missed = 50_000;
    phase.measure.tally.unexpected_misses = 20;
    phase.measure.tally.wrong_misses = 30;
    phase.none();
    phase.measure.tally.wrong_misses = 31;
    phase.only("unexpected-misses", Level::Suspect);
    phase.measure.tally.unexpected_misses = 600;
    phase.only("unexpected-misses", Level::Invalid);
}

#[test]
fn a_store_that_may_forget_is_to_find_what_the_suite_expects() {
    for way in 0..2 {
        let mut phase = healthy();
        let profile = &mut phase.measure.profile;
        match way {
            0 => profile.capabilities.may_forget = true,
            _ => profile.consistency.level = Consistency::Eventual,
        }
        let missed = |missed: u64, phase: &mut Phase| {
            phase.set_gets(100_000, 0);
            phase.gets().missed = missed;
            phase.measure.tally.unexpected_misses = missed;
        };
        missed(1_000, &mut phase);
        phase.none();
        missed(1_001, &mut phase);
        phase.only("unexpected-misses", Level::Suspect);
        missed(75_000, &mut phase);
        phase.only("unexpected-misses", Level::Invalid);
        phase.plan.expect_hits = 0.2;
        phase.none();
        phase.measure.figures = vec![Figure::restarted(&["h:1, up for 3s".to_owned()])];
        missed(80_001, &mut phase);
        let text = phase.only("unexpected-misses", Level::Suspect).text();
        assert!(
            text.ends_with("; 20.0 % are to find theirs; started anew meanwhile: h:1, up for 3s")
        );
    }
}

/// Misses while a fault is at work are its cost; before it and after its repair misses count.
#[test]
fn misses_count_outside_the_windows_of_faults() {
    use crate::measure::Slot;
    use crate::workload::fault::{FaultPlan, Harm, NodeFault, NodeSelector};
    let mut phase = healthy();
    phase.plan.faults.push(FaultPlan {
        harm: Harm::ToNodes { fault: NodeFault::Kill, aim: NodeSelector::All, count: None },
        at: Duration::from_secs(2),
        when: None,
        repair: None,
        every: None,
        spread: None,
    });
    phase.outages = vec![Stretch { from: 3 * SECOND, to: 5 * SECOND }];
    let hundred =
        [Slot { hits: 60, misses: 9, ..Slot::default() }, Slot { hits: 40, ..Slot::default() }];
    let slots = vec![hundred; 10];
    let timeline = &mut phase.measure.timeline;
    (timeline.start, timeline.slot, timeline.slots) = (SECOND, SECOND, slots);
    phase.measure.missed_at = vec![(3 * SECOND, 500), (5 * SECOND - SLOT, 500)];
    phase.none();
    phase.measure.missed_at.push((9 * SECOND, 9));
    let text = phase.only("unexpected-misses", Level::Invalid).text();
    assert!(text.starts_with("9 of 809 reads (1.1 %)"), "{text}");
    assert!(text.ends_with("outside the faults' windows"), "{text}");
    phase.plan.verify = false;
    let text = phase.only("unexpected-misses", Level::Invalid).text();
    assert!(text.starts_with("72 of 872 reads"), "{text}");
    phase.outages[0] = Stretch { from: SECOND, to: 11 * SECOND };
    phase.none();
}

#[test]
fn reads_that_miss_without_verification() {
    let mut phase = healthy();
    phase.plan.verify = false;
    phase.measure.tally = Tally::default();
    phase.gets().missed = 100;
    phase.none();
    phase.gets().missed = 90_000;
    phase.only("unexpected-misses", Level::Invalid);
    phase.plan.groups[0].mix.parts = vec![(Kind::Get, 1000), (Kind::Delete, 0)];
    phase.none();
}

#[test]
fn operations_that_fail() {
    let mut phase = healthy();
    phase.set_gets(99_900, 100);
    phase.none();
    phase.set_gets(99_899, 101);
    phase.only("error-ratio", Level::Suspect);
    phase.set_gets(95_000, 5_000);
    phase.only("error-ratio", Level::Suspect);
    phase.set_gets(94_000, 3_000);
    phase.gets().indeterminate = 3_000;
    phase.only("error-ratio", Level::Invalid);
}

#[test]
fn too_few_of_a_kind() {
    let mut phase = healthy();
    phase.set_gets(10_000, 0);
    phase.none();
    phase.set_gets(9_999, 0);
    let remark = phase.only("too-few-samples", Level::Valid);
    assert!(remark.text().contains("p99.9 and above"), "{}", remark.text());
    phase.set_gets(1_000, 0);
    phase.only("too-few-samples", Level::Valid);
    phase.set_gets(999, 0);
    let reason = phase.only("too-few-samples", Level::Suspect);
    assert!(reason.text().contains("p99 and above"), "{}", reason.text());
}

#[test]
fn a_kind_that_never_came_is_the_fewest() {
    let mut phase = healthy();
    phase.plan.groups[0].mix.parts = vec![(Kind::Get, 999), (Kind::Update, 1)];
    let reason = phase.only("too-few-samples", Level::Suspect);
    assert_eq!(reason, Reason::TooFewSamples { kind: Kind::Update, samples: 0 });
}

#[test]
fn a_phase_under_a_second() {
    let mut phase = healthy();
    phase.threading = Threading::InProcess;
    phase.gets().service = Some(busy(0.5, 100_000));
    phase.measure.end = phase.measure.start + SECOND;
    phase.none();
    phase.measure.end -= 1;
    phase.only("too-short", Level::Suspect);
}

#[test]
fn a_phase_that_was_cut() {
    let mut phase = healthy();
    phase.measure.stopped = StopReason::Duration;
    phase.none();
    for stopped in [StopReason::TimeLimit, StopReason::Interrupted] {
        phase.measure.stopped = stopped;
        phase.only("cut-short", Level::Suspect);
    }
    phase.measure.stopped = StopReason::StoreLost;
    phase.only("cut-short", Level::Invalid);
}

#[test]
fn throughput_that_drifts() {
    let mut phase = healthy();
    let second_half = |phase: &mut Phase, completed| {
        for index in SECONDS as u32 / 2..SECONDS as u32 {
            phase.measure.timeline.points[index as usize].interval = interval(index, completed);
        }
    };
    second_half(&mut phase, 8_000);
    phase.none();
    second_half(&mut phase, 7_900);
    let text = phase.only("drift", Level::Suspect).text();
    assert!(text.contains("fell by 21.0 %, from 10,000 to 7,900 ops/s"), "{text}");
    second_half(&mut phase, 12_100);
    assert!(phase.only("drift", Level::Suspect).text().contains("rose"));
    phase.open();
    phase.none();
}

#[test]
fn throughput_that_never_settles() {
    let mut phase = healthy();
    // A slow trend, which takes the halves apart by less than drift allows.
    let falling = |phase: &mut Phase, a_second: u64| {
        let completed = |n: u32| 10_000 - a_second * u64::from(n) + u64::from(n % 3) * 20;
        phase.measure.timeline = (0..40).map(|n| interval(n, completed(n))).collect();
    };
    falling(&mut phase, 15);
    phase.none();
    falling(&mut phase, 40);
    let text = phase.only("never-settled", Level::Valid).text();
    assert!(text.contains("still falling, by 15."), "{text}");
    falling(&mut phase, 60);
    phase.only("never-settled", Level::Suspect);
    phase.open();
    phase.none();
}

#[test]
fn more_in_flight_than_clients() {
    let mut phase = healthy();
    phase.gets().service = Some(busy(f64::from(CLIENTS) * 1.005, 100_000));
    phase.none();
    phase.gets().service = Some(busy(f64::from(CLIENTS) * 1.02, 100_000));
    phase.only("littles-law", Level::Invalid);
    // Failed requests are in flight as well.
    phase.gets().service = Some(busy(f64::from(CLIENTS) * 0.6, 100_000));
    phase.none();
    phase.gets().unsuccessful_service = Some(busy(f64::from(CLIENTS) * 0.6, 100));
    phase.only("littles-law", Level::Invalid);
}

#[test]
fn clients_without_a_request() {
    let mut phase = healthy();
    phase.gets().service = Some(busy(f64::from(CLIENTS) * 0.51, 100_000));
    phase.none();
    phase.gets().service = Some(busy(f64::from(CLIENTS) * 0.49, 100_000));
    phase.only("idle-clients", Level::Suspect);
    phase.measure.workers[0].cpu = Duration::from_millis(9_500);
    phase.only("client-limited", Level::Suspect);
    phase.open();
    phase.measure.workers[0].cpu = Duration::from_secs(5);
    phase.none();
}

/// A client that gets no processor looks idle by its own time; what it waited for tells.
#[test]
fn a_client_that_is_starved_of_its_processor() {
    let mut phase = served(&[0.0], Some(0.0));
    phase.measure.workers[0].cpu = Duration::from_secs(4);
    phase.measure.workers[0].waited = Duration::from_secs(5);
    phase.none();
    phase.measure.workers[0].waited = Duration::from_millis(5_100);
    let reason = phase.only("client-limited", Level::Suspect);
    assert!(reason.text().contains("(51.0 % of it spent waiting)"), "{}", reason.text());
}

#[test]
fn processor_time_that_other_programs_took() {
    let mut phase = healthy();
    phase.resources.others = Some(0.5);
    // The server may be on this machine, and nobody said which process it is.
    phase.none();
    phase.threading = Threading::InProcess;
    phase.only("other-load", Level::Suspect);
    phase.resources.others = Some(0.10);
    phase.none();
}

#[test]
fn processor_time_that_others_took() {
    let mut phase = healthy();
    phase.resources.steal = 0.02;
    phase.none();
    phase.resources.steal = 0.021;
    phase.only("disturbed", Level::Suspect);
    phase.resources.steal = 0.10;
    phase.only("disturbed", Level::Suspect);
    phase.resources.steal = 0.11;
    phase.only("disturbed", Level::Invalid);
}

#[test]
fn reads_that_could_not_be_judged() {
    let mut phase = healthy();
    phase.measure.tally.unknown = 1;
    phase.only("unjudged", Level::Suspect);
}

#[test]
fn wrong_answers_are_told_and_doubt_nothing() {
    let mut phase = healthy();
    phase.measure.tally.anomalies = [1, 0, 0, 2, 0];
    let text = phase.only("anomalies", Level::Valid).text();
    assert!(text.contains("reads were wrong: 1 corrupt, 2 stale"), "{text}");
}

#[test]
fn phases_that_prepare_are_judged_by_their_errors_only() {
    for way in 0..3 {
        let mut phase = healthy();
        phase.plan.warmup = way == 0;
        phase.plan.load = way == 1;
        phase.prepares = way == 2;
        phase.resources.steal = 0.5;
        phase.measure.workers[0].cpu = Duration::from_secs(10);
        phase.measure.tally.unexpected_misses = 50_000;
        phase.none();
        phase.set_gets(50_000, 50_000);
        phase.only("error-ratio", Level::Invalid);
    }
}

#[test]
fn a_phase_without_any_operation_is_judged_and_does_not_panic() {
    let mut phase = healthy();
    phase.measure.series.clear();
    phase.measure.workers.clear();
    phase.measure.timeline.points.clear();
    phase.measure.end = phase.measure.start;
    phase.measure.stopped = StopReason::StoreLost;
    let names: Vec<_> = phase.reasons().iter().map(Reason::name).collect();
    assert_eq!(names, ["cut-short", "too-few-samples", "too-short"]);
}

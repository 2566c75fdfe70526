//! A made-up run for tests, recorded by the same types as a real one: two stores, a fill, a mix with errors and a stall,
//! and an open arrival with a backlog.

// Each program of tests uses only a part of it.
#![allow(dead_code, unused_imports)]

mod story;

use std::path::Path;
use std::time::{Duration, SystemTime};

use kvdyno_core::measure::{
    Ending, ErrorSummary, Interval, KindMeasure, KindTotal, Nanos, OldRecords, PhaseMeasure,
    ProcessUse, ResourceSummary, Resources, Series, StopReason, Troubles, WorkerUse,
    latency_histogram,
};
use kvdyno_core::store::{
    Capabilities, Certainty, Consistency, Durability, ErrorClass, Figure, FigureUnit, OperationId,
    Profile, Promise,
};
use kvdyno_core::verify::{Anomaly, AnomalyKind, Behind, Tally};
use kvdyno_core::workload::{
    Arrival, Dataset, GroupPlan, KeyForm, KeyModel, Kind, PhasePlan, SizeModel, ValueModel,
};

use kvdyno_report::evidence;
use kvdyno_report::folder::ResultFolder;
use kvdyno_report::result::{
    Build, CapacityResult, EvidenceResult, FitResult, Host, Latency, Level, PhaseOutcome,
    ProbeResult, Published, Reason, RunResult, SCHEMA_VERSION, Status, StoreResult, StoreRun,
    SuiteResult, TestbedNode, TestbedResult, TestbedStep, Verdict, rfc3339,
};

pub use story::events;

const ORIGIN: Nanos = 5_000_000_000;
const SECOND: Nanos = 1_000_000_000;

/// A phase with its timeline.
#[derive(Debug)]
pub struct Recording {
    /// Plan of the phase.
    pub plan: PhasePlan,
    /// Measurements of the phase.
    pub measure: PhaseMeasure,
    /// Intervals with their histograms.
    pub intervals: Vec<Interval>,
}

/// Returns the begin of the made-up run.
#[must_use]
pub fn started() -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(1_772_366_400)
}

/// Makes a whole result.
#[must_use]
pub fn two_stores() -> RunResult {
    let run = |store: usize| {
        let result = StoreResult::new(URLS[store], &profile(store));
        let mut run = StoreRun::begin(result, Some(dataset()), started());
        run.phases =
            recordings(store).into_iter().map(|recording| outcome(recording).result()).collect();
        run.ended = Some(rfc3339(started() + Duration::from_secs(60)));
        run.status = Status::Complete;
        let reasons = if store == 0 { Vec::new() } else { vec![reason(0.931, 0.8)] };
        run.verdict = Some(Verdict::of(reasons));
        run.evidence = evidence::of(&run).into_iter().map(EvidenceResult::from).collect();
        run
    };
    RunResult {
        schema_version: SCHEMA_VERSION,
        kvdyno: Build {
            version: "0.1.0".into(),
            git: Some("v0.1.0-3-gabc".into()),
            debug: false,
            profile: None,
        },
        command: vec!["kvdyno".into(), "run".into(), "quick".into()],
        config: None,
        started: rfc3339(started()),
        ended: Some(rfc3339(started() + Duration::from_secs(120))),
        status: Status::Complete,
        host: Host {
            os: "Debian GNU/Linux 12".into(),
            kernel: Some("6.1.0".into()),
            architecture: "x86_64".into(),
            cpu: Some("Example CPU @ 2.50GHz".into()),
            cores: Some(2),
            memory_bytes: Some(24 << 30),
            ..Host::default()
        },
        seed: 42,
        suite: SuiteResult {
            name: "quick".into(),
            title: "Fill, mix and an open load".into(),
            scale: None,
            changes: Vec::new(),
            scorecard: false,
            plan: serde_json::json!({ "name": "quick", "phases": ["load", "mixed", "open"] }),
        },
        trial: None,
        compare_unequal: false,
        cost: None,
        runs: vec![run(0), run(1)],
    }
}

/// Makes the probe that confirmed a rate: its figures are those of the phase with open arrivals.
#[must_use]
pub fn confirmation(rate: f64) -> ProbeResult {
    ProbeResult {
        phase: "open".into(),
        purpose: "confirm".into(),
        asked: Some(rate),
        seen: Some("meets".into()),
        ..ProbeResult::default()
    }
}

/// Makes the result of a search: a sweep over four numbers of clients, three rates, the law.
#[must_use]
pub fn capacity() -> CapacityResult {
    let probe = |clients, asked: Option<f64>, rate, seen: Option<&str>| ProbeResult {
        phase: "run".into(),
        purpose: asked.map_or("sweep", |_| "bracket").into(),
        clients,
        asked,
        rate: Some(rate),
        p50_ns: Some(210_000.0),
        p99_ns: Some(rate * 200.0),
        seen: seen.map(str::to_owned),
        why: String::new(),
    };
    CapacityResult {
        phase: "run".into(),
        conditions: "p99 < 10ms".into(),
        step: 0.05,
        carried: Some(30_000.0),
        missed: Some(31_500.0),
        client_limited: None,
        sweep: [(1, 9e3), (2, 17e3), (4, 28e3), (8, 36e3)]
            .map(|(n, x)| probe(n, None, x, None))
            .to_vec(),
        probes: vec![
            probe(8, Some(31_500.0), 31_000.0, Some("misses")),
            probe(8, Some(20_000.0), 20_000.0, Some("meets")),
            ProbeResult {
                phase: "open".into(),
                purpose: "confirm".into(),
                ..probe(8, Some(30_000.0), 30_000.0, Some("meets"))
            },
        ],
        fit: Some(FitResult {
            lambda: 9_000.0,
            sigma: 0.1,
            kappa: 0.002,
            r2: 0.99,
            largest: 8.0,
            peak_at: None,
            peak_rate: None,
        }),
        no_fit: None,
    }
}

fn outcome(recording: Recording) -> PhaseOutcome {
    let resources =
        Resources { samples: Vec::new(), summary: resource_summary(), offspring: Vec::new() };
    let outcome = PhaseOutcome::new(recording.plan, recording.measure, ORIGIN);
    PhaseOutcome { resources: Some(resources), ..outcome }
}

/// Makes [`two_stores`], and writes it to a folder as a run writes it.
///
/// # Panics
/// If the folder cannot be written.
#[must_use]
pub fn written(path: &Path) -> RunResult {
    let mut folder = ResultFolder::create(Some(path), "quick", started()).unwrap();
    events().iter().for_each(|event| folder.keep(event).unwrap());
    two_stores()
}

/// Makes a testbed of one node, whose strings are `word`.
#[must_use]
pub fn testbed(word: &str) -> TestbedResult {
    let pair = || vec![(word.to_owned(), word.to_owned())];
    TestbedResult {
        request: word.to_owned(),
        kind: "redis".to_owned(),
        version: Some("7.0.15".to_owned()),
        later: Vec::new(),
        nodes: vec![TestbedNode {
            name: word.to_owned(),
            address: word.to_owned(),
            role: Some(word.to_owned()),
            pid: Some(7),
        }],
        steps: vec![TestbedStep { name: word.to_owned(), took_ns: 68_000_000 }],
        ready_after_ns: 1_200_000_000,
        changed: pair(),
        configuration: pair(),
        server_processors: Some(vec![0]),
        client_processors: Some(vec![1]),
        disk: Some(word.to_owned()),
    }
}

/// Makes a reason for suspicion.
#[must_use]
pub fn reason(figure: f64, threshold: f64) -> Reason {
    Reason {
        name: "client-limited".into(),
        level: Level::Suspect,
        phase: Some("mixed".into()),
        figure: Some(figure),
        threshold: Some(threshold),
        unit: "share".into(),
        cause: "client".into(),
        text: "client thread 0 worked 93 % of the time: kvdyno may be the limit".into(),
        advice: "give kvdyno more threads (--threads) or processors".into(),
    }
}

/// Returns the first row of the oldest published run.
#[must_use]
pub fn published() -> Published {
    Published {
        store: "MongoDB 2.0.0".into(),
        rate: Some(2114.0),
        wall_ms: Some(4_729_454.0),
        p50_ms: Some(1.0),
        p90_ms: Some(20.0),
        p99_ms: Some(43.0),
        p99_5_ms: Some(60.0),
        p99_9_ms: Some(1576.0),
        max_ms: Some(36_232.0),
        mean_ms: Some(9.442),
        errors: Some(0),
        failures: Some(0),
        clients: Some(20),
        value_seed: Some(1776),
    }
}

const URLS: [&str; 2] = ["lmdb:/data/lmdb", "fjall:/data/fjall"];

fn profile(store: usize) -> Profile {
    Profile {
        store: ["lmdb", "fjall"][store].into(),
        version: Some(["0.9.33", "3.1.13"][store].into()),
        capabilities: Capabilities { scan: true, ..Capabilities::default() },
        durability: Promise::checked(Durability::ProcessKill),
        consistency: Promise::declared(Consistency::Linearizable),
        ttl_precision: Duration::ZERO,
        timeout: Duration::from_secs(10),
        settings: vec![("map size".into(), "1 GiB".into())],
    }
}

fn dataset() -> Dataset {
    let key = KeyModel { form: KeyForm::Hash, length: 32 };
    Dataset { id: 7, session: 1, key, fields: 1, capacity: 10_000 }
}

/// Makes the phases of a store.
#[must_use]
pub fn recordings(store: usize) -> Vec<Recording> {
    let base = [3_000.0, 5_000.0][store];
    let load = Shape { kinds: &[(Kind::Insert, 400)], base, ..Shape::default() };
    let mixed = Shape {
        kinds: &[(Kind::Get, 320), (Kind::Update, 80)],
        base: base * 0.6,
        failures: store as u64 * 2,
        stall: (store == 1).then_some(6),
        ..Shape::default()
    };
    let open = Shape {
        kinds: &[(Kind::Get, 200)],
        base: base * 0.5,
        arrival: Arrival::Constant { rate: 200.0 },
        backlog: store as u64 * 40,
        ..Shape::default()
    };
    let offset = ORIGIN + store as u64 * 60 * SECOND;
    [(0, "load", "Put", load), (1, "mixed", "Mix 80/20", mixed), (2, "open", "Get open", open)]
        .into_iter()
        .map(|(index, name, label, shape)| {
            shape.record(plan(index, name, label, &shape), offset + u64::from(index) * 15 * SECOND)
        })
        .collect()
}

/// Shape of a made-up phase.
struct Shape {
    kinds: &'static [(Kind, u64)],
    base: f64,
    failures: u64,
    stall: Option<u32>,
    arrival: Arrival,
    backlog: u64,
}

impl Default for Shape {
    fn default() -> Self {
        let arrival = Arrival::Closed;
        Shape { kinds: &[], base: 0.0, failures: 0, stall: None, arrival, backlog: 0 }
    }
}

/// Number of intervals of a made-up phase.
const INTERVALS: u32 = 12;

impl Shape {
    fn record(&self, plan: PhasePlan, start: Nanos) -> Recording {
        let mut random = Random(u64::from(plan.index) * 1_000 + start);
        let mut totals: Vec<(Series, KindTotal)> = Vec::new();
        let intervals: Vec<Interval> =
            (0..INTERVALS).map(|index| self.interval(index, start, &mut random)).collect();
        for (series, part) in intervals.iter().flat_map(|interval| &interval.series) {
            match totals.iter_mut().find(|(known, _)| known == series) {
                Some((_, total)) => total.add(part),
                None => {
                    totals.push((*series, KindMeasure::default()));
                    totals.last_mut().unwrap().1.add(part);
                }
            }
        }
        let measure = self.measure(&plan, start, totals);
        Recording { plan, measure, intervals }
    }

    fn interval(&self, index: u32, start: Nanos, random: &mut Random) -> Interval {
        let stalled = self.stall == Some(index);
        let mut series = Vec::new();
        for (kind, count) in self.kinds.iter().filter(|_| !stalled) {
            let mut measure: KindMeasure = KindMeasure::default();
            for _ in 0..*count {
                let service = self.service(random);
                let response = self.arrival.is_open().then(|| service + random.below(30_000));
                measure.record(*kind, Ending::Ok { missed: 0 }, 1, service, response);
            }
            for _ in 0..self.failures {
                measure.record(*kind, Ending::Indeterminate, 0, 2 * SECOND, None);
            }
            series.push((Series { group: 0, kind: *kind }, measure));
        }
        let completed = series.iter().map(|(_, m)| m.completed()).sum();
        let failed = series.iter().map(|(_, m)| m.failed + m.indeterminate).sum();
        let begin = start + u64::from(index) * SECOND;
        let (offered, backlog) = (completed, self.backlog * u64::from(index) / 11);
        let (started, end) = (completed, begin + SECOND);
        let (start, drained) = (begin, 0);
        Interval {
            index,
            start,
            end,
            offered,
            started,
            completed,
            failed,
            backlog,
            drained,
            drained_failed: 0,
            series,
            troubles: self.troubles(index),
        }
    }

    /// Returns as many time-outs as failures of its kinds; from the second half on also one wrong read each, and open
    /// arrivals are late.
    fn troubles(&self, index: u32) -> Troubles {
        let has_failures = self.failures > 0 && self.stall != Some(index);
        let failed = self.failures * self.kinds.len() as u64;
        let late = if self.arrival.is_open() { 1_000 * u64::from(index + 1) } else { 0 };
        Troubles {
            errors: if has_failures { vec![(ErrorClass::Timeout, failed)] } else { Vec::new() },
            wrong: if has_failures && index > 5 {
                vec![(AnomalyKind::Stale, 1)]
            } else {
                Vec::new()
            },
            latest_send: late,
        }
    }

    fn service(&self, random: &mut Random) -> u64 {
        let slow = if random.below(300) == 0 { 40.0 } else { 1.0 };
        let unit = (random.below(1 << 30) + 1) as f64 / (1u64 << 30) as f64;
        (self.base * slow * (1.0 - 0.4 * unit.ln())) as u64
    }

    fn measure(
        &self,
        plan: &PhasePlan,
        start: Nanos,
        series: Vec<(Series, KindTotal)>,
    ) -> PhaseMeasure {
        let ok: u64 = series.iter().map(|(_, m)| m.ok).sum();
        let started: u64 = series.iter().map(|(_, m)| m.completed()).sum();
        let failed = started - ok;
        let open = self.arrival.is_open();
        let mut unstarted = latency_histogram();
        for n in 0..self.backlog {
            unstarted.saturating_record((n + 1) * 1_000_000);
        }
        let reads = if plan.index == 0 { 0 } else { ok };
        let stall = self.stall.map(|_| anomaly(plan.index, start));
        let mut tally = Tally {
            reads,
            records: reads,
            judged: reads,
            bytes_checked: reads * 100,
            ..Tally::default()
        };
        tally.writes_acknowledged = ok - reads;
        tally.anomalies[AnomalyKind::Stale as usize] = u64::from(stall.is_some());
        PhaseMeasure {
            behind: Behind {
                reads: u64::from(stall.is_some()),
                versions: stall.as_ref().map(|_| (1, 1)),
                longest: stall.as_ref().and_then(|stall| stall.behind),
                ..Behind::default()
            },
            old: OldRecords::default(),
            unread: 0,
            started_at: started_at(start),
            start,
            end: start + u64::from(INTERVALS) * SECOND,
            last_end: start + u64::from(INTERVALS) * SECOND,
            stopped: if open { StopReason::Duration } else { StopReason::Requests },
            profile: profile(0),
            series,
            timeline: kvdyno_core::measure::Timeline::default(),
            offered: started + self.backlog,
            offered_estimated: false,
            started,
            unstarted: (self.backlog > 0).then_some(unstarted),
            stalls: kvdyno_core::measure::Stalls::default(),
            send_lag: None,
            errors: if failed > 0 { vec![timeouts(failed, start)] } else { Vec::new() },
            workers: vec![WorkerUse { clients: 4, ..WorkerUse::default() }],
            issued: vec![started],
            records: 10_000,
            tally,
            missed_at: Vec::new(),
            anomalies: stall.into_iter().collect(),
            linearizability: None,
            figures: if failed > 0 { figures() } else { Vec::new() },
        }
    }
}

fn started_at(moment: Nanos) -> SystemTime {
    started() + Duration::from_nanos(moment - ORIGIN)
}

fn timeouts(count: u64, start: Nanos) -> ErrorSummary {
    ErrorSummary {
        class: ErrorClass::Timeout,
        certainty: Certainty::Indeterminate,
        count,
        of_client: 0,
        first_message: "no answer within 2 s".into(),
        first_at: start + 2 * SECOND,
        last_at: start + 11 * SECOND,
    }
}

fn anomaly(phase: u16, start: Nanos) -> Anomaly {
    Anomaly {
        kind: AnomalyKind::Stale,
        operation: OperationId { phase, group: 0, id: 1_234 },
        writer: None,
        record: 77,
        field: 0,
        seen: Some(3),
        floor: 4,
        next: 6,
        sent: start + SECOND,
        answered: start + SECOND + 4_000,
        behind: Some(Duration::from_micros(800)),
        again: "version 5".into(),
        detail: String::new(),
    }
}

fn figures() -> Vec<Figure> {
    vec![
        Figure {
            name: "hit ratio".into(),
            value: 0.932,
            unit: FigureUnit::Share,
            detail: "932 hits, 68 misses".into(),
            warning: None,
        },
        Figure {
            name: "fullest server, over the mean".into(),
            value: 1.5,
            unit: FigureUnit::Ratio,
            detail: String::new(),
            warning: Some("records lie unevenly; choose another hash".into()),
        },
    ]
}

fn plan(index: u16, name: &str, label: &str, shape: &Shape) -> PhasePlan {
    let total: u64 = shape.kinds.iter().map(|(_, count)| count).sum();
    let share = |(kind, count): &(Kind, u64)| (*kind, (count * 1_000 / total) as u16);
    let parts: Vec<(Kind, u16)> = shape.kinds.iter().map(share).collect();
    let size = SizeModel::JavaUniform { min: 100, max: 1_899, seed: 1_776 };
    let group = GroupPlan {
        clients: 4,
        values: ValueModel { size, seed: None, compressible: 0.0 },
        arrival: shape.arrival.clone(),
        insert_first: 0,
        seed: 42,
        ..GroupPlan::plain(name, &parts, 10_000)
    };
    PhasePlan {
        label: label.into(),
        ..PhasePlan::plain(index, name, vec![group], Duration::from_secs(60))
    }
}

/// Makes a summary of the resources that a phase used.
#[must_use]
pub fn resource_summary() -> ResourceSummary {
    let own = ProcessUse {
        processors: 1.25,
        user: Duration::from_secs(12),
        system: Duration::from_secs(3),
        peak_rss: 64 << 20,
        read_bytes: Some(0),
        written_bytes: Some(12 << 20),
        context_switches: Some(1_000),
    };
    let span = Duration::from_secs(12);
    ResourceSummary {
        span,
        busy: 0.62,
        steal: 0.01,
        iowait: 0.02,
        own,
        servers: Vec::new(),
        link: None,
        others: Some(0.02),
    }
}

/// Knuth's 64-bit linear congruential generator (MMIX); good enough for made-up latencies.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}

/// Changes the gets of phase `number` of the first store's run, so that a quarter of what they asked for was missed.
pub fn with_misses(result: &mut RunResult, number: usize) {
    let phase = &mut result.runs[0].phases[number];
    let wall = phase.wall_ns as f64 / 1e9;
    for series in phase.series.iter_mut().filter(|series| series.kind.gets()) {
        let mut latencies = latency_histogram::<u64>();
        latencies.saturating_record_n(MISS, series.ok / 3);
        let latency = Latency::of(&latencies);
        series.missed = series.ok / 3;
        (series.ok, series.records) = (series.ok + series.missed, series.records + series.missed);
        series.missing = series.missed;
        series.rate = Some(series.ok as f64 / wall);
        series.hit_rate = Some((series.ok - series.missed) as f64 / wall);
        series.miss_rate = Some(series.missed as f64 / wall);
        match series.response {
            Some(_) => series.missed_response = latency.clone(),
            None => series.missed_response = None,
        }
        series.missed_service = latency;
    }
}

/// Latency of a miss of [`with_misses`], ns: less than any hit of a sample.
pub const MISS: Nanos = 77;

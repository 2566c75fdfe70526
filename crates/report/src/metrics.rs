//! Metrics of a run for monitoring systems: counters, gauges and histograms that grow while it lasts, by the names and
//! units of OpenTelemetry's conventions. One list of them feeds Prometheus' text ([`Metrics::prometheus`]) and OTLP
//! ([`Metrics::otlp`]), so that both have the same values.

mod buckets;
mod otlp;
mod prometheus;

use std::collections::BTreeMap;

use kvdyno_core::measure::{Interval, KindMeasure, Series};
use kvdyno_core::store::ErrorClass;
use kvdyno_core::verify::AnomalyKind;
use kvdyno_core::workload::PhasePlan;

use crate::events::{Event, PhaseBegan, Used};
use crate::result::{Level, PhaseResult, Status};
use buckets::Buckets;
pub use prometheus::PROMETHEUS_TYPE;

/// Names and values that tell one series of a metric from the others.
type Labels = BTreeMap<&'static str, String>;

/// Label with the outcome of an operation.
const OUTCOME: &str = "kvdyno.outcome";
/// Label with the class of an error.
const ERROR: &str = "error.type";
/// Value that the conventions have for an unknown class: latencies of failures are not kept by class.
const OTHER: &str = "_OTHER";

/// A metric: its name, its unit (UCUM), and its description.
struct Instrument {
    name: &'static str,
    unit: &'static str,
    about: &'static str,
}

const fn instrument(name: &'static str, unit: &'static str, about: &'static str) -> Instrument {
    Instrument { name, unit, about }
}

const HISTOGRAMS: [Instrument; 2] = [
    instrument(
        "db.client.operation.duration",
        "s",
        "Service time: from when a request was sent to its answer.",
    ),
    instrument(
        "kvdyno.client.response.duration",
        "s",
        "Response time: from when a request was due to its answer; open arrivals only.",
    ),
];
const SERVICE: usize = 0;
const RESPONSE: usize = 1;

const COUNTERS: [Instrument; 10] = [
    instrument(
        "kvdyno.operations.offered",
        "{operation}",
        "Operations that fell due (open arrivals) or were started (closed).",
    ),
    instrument("kvdyno.operations.started", "{operation}", "Operations started."),
    instrument(
        "kvdyno.operations.completed",
        "{operation}",
        "Operations that ended, in whatever way.",
    ),
    instrument(
        "kvdyno.operations.failed",
        "{operation}",
        "Operations that failed, or of which it is not known.",
    ),
    instrument(
        "kvdyno.anomalies",
        "{read}",
        "Wrong reads by kind; known when their phase is over.",
    ),
    instrument(
        "kvdyno.writes.lost",
        "{write}",
        "Acknowledged writes that are gone; known when their phase is over.",
    ),
    instrument("kvdyno.faults", "{fault}", "What was done to nodes."),
    instrument(
        "kvdyno.process.disk.io",
        "By",
        "Bytes read from storage and sent to it, by process.",
    ),
    instrument(
        "kvdyno.process.network.io",
        "By",
        "Bytes received and sent, by node with a network of its own.",
    ),
    instrument(
        "kvdyno.agent.operations",
        "{operation}",
        "Operations that each agent carried; known when their phase is over.",
    ),
];
const OFFERED: usize = 0;
const STARTED: usize = 1;
const COMPLETED: usize = 2;
const FAILED: usize = 3;
const ANOMALIES: usize = 4;
const LOST: usize = 5;
const FAULTS: usize = 6;
const DISK: usize = 7;
const NETWORK: usize = 8;
const AGENT: usize = 9;

const GAUGES: [Instrument; 5] = [
    instrument("kvdyno.backlog", "{operation}", "Operations that are due and not started."),
    instrument("kvdyno.process.cpu.usage", "{cpu}", "Processors kept busy, by process."),
    instrument("kvdyno.process.memory.usage", "By", "Memory held, by process."),
    instrument(
        "kvdyno.verdict",
        "1",
        "1 for the level at which the measurement is judged so far, 0 for the others.",
    ),
    instrument("kvdyno.run.active", "1", "1 while the run goes on."),
];
const BACKLOG: usize = 0;
const CPU: usize = 1;
const MEMORY: usize = 2;
const VERDICT: usize = 3;
const ACTIVE: usize = 4;

/// Metrics of a run.
#[derive(Default)]
pub struct Metrics {
    /// Labels of run and suite.
    of_run: Labels,
    /// Labels of the store that is running.
    of_store: Labels,
    phase: Option<Phase>,
    /// Name of the phase that each part of a phase ([`PhasePlan::part_of`]) belongs to.
    whole: BTreeMap<String, String>,
    histograms: [BTreeMap<Labels, Buckets>; HISTOGRAMS.len()],
    counters: [BTreeMap<Labels, u64>; COUNTERS.len()],
    gauges: [BTreeMap<Labels, f64>; GAUGES.len()],
}

/// The current phase.
struct Phase {
    labels: Labels,
    plan: PhasePlan,
}

impl Metrics {
    /// Takes the next event in.
    pub fn on_event(&mut self, event: &Event) {
        match event {
            Event::RunBegan(began) => {
                // Each of several trials begins anew.
                *self = Metrics::default();
                let result = &began.result;
                self.of_run.insert("kvdyno.run", result.started.clone());
                self.of_run.insert("kvdyno.suite", result.suite.name.clone());
                self.gauges[ACTIVE].insert(self.of_run.clone(), 1.0);
            }
            Event::StoreBegan(run) => {
                self.of_store = self.of_run.clone();
                self.of_store.insert("db.system.name", run.store.name.to_ascii_lowercase());
                self.of_store.insert("kvdyno.store", run.store.url.clone());
            }
            Event::PhaseBegan(began) => self.phase_began(began),
            Event::Interval(interval) => self.interval(interval),
            Event::Used(used) => self.used(used),
            Event::FaultDone(fault) => {
                let what = ("kvdyno.fault", fault.what.clone());
                self.count(FAULTS, [what], 1);
            }
            Event::PhaseEnded(phase) => self.phase_ended(phase),
            Event::JudgedSoFar { verdict, .. } => self.judged(verdict.level),
            Event::StoreEnded(ended) => {
                self.end_gauges();
                self.judged(ended.verdict.level);
            }
            Event::RunEnded { status, .. } => {
                self.end_gauges();
                let active = f64::from(u8::from(*status == Status::Running));
                self.gauges[ACTIVE].insert(self.of_run.clone(), active);
            }
            Event::StoreFailed { .. }
            | Event::Progress(_)
            | Event::ReadingAgain(_)
            | Event::FaultBegan { .. }
            | Event::RecoveryWait { .. }
            | Event::Steered(_)
            | Event::Worked { .. }
            | Event::NodesCame { .. }
            | Event::LoadEnded(_)
            | Event::Probed(_)
            | Event::Searched(_)
            | Event::Judged { .. } => {}
        }
    }

    fn phase_began(&mut self, began: &PhaseBegan) {
        self.end_gauges();
        let plan = &began.plan;
        if let Some(whole) = &plan.part_of {
            self.whole.insert(plan.name.clone(), whole.clone());
        }
        // Probes have no series of their own. Reading back has: its latencies are not those of the phase.
        let name = if plan.load { &plan.name } else { self.whole_of(&plan.name) };
        let labels = self.of_phase(name);
        self.phase = Some(Phase { labels, plan: plan.clone() });
        // A series that began with its first failure would not show that it grew.
        for class in ErrorClass::ALL {
            self.count(FAILED, [(ERROR, class.name().to_owned())], 0);
        }
    }

    /// Returns the name of the phase that this phase, or part of a phase, belongs to.
    fn whole_of<'a>(&'a self, phase: &'a str) -> &'a str {
        self.whole.get(phase).map_or(phase, String::as_str)
    }

    fn of_phase(&self, name: &str) -> Labels {
        let mut labels = self.of_store.clone();
        labels.insert("kvdyno.phase", name.to_owned());
        labels
    }

    /// Ends the gauges of a phase: they would be summed with those of the next.
    fn end_gauges(&mut self) {
        [BACKLOG, CPU, MEMORY].into_iter().for_each(|gauge| self.gauges[gauge].clear());
    }

    /// Returns the labels of the phase that is running, or ran last, and `more`.
    fn labels(&self, more: impl IntoIterator<Item = (&'static str, String)>) -> Labels {
        let mut labels = self.phase.as_ref().map_or(&self.of_store, |phase| &phase.labels).clone();
        labels.extend(more);
        labels
    }

    fn count(
        &mut self,
        counter: usize,
        more: impl IntoIterator<Item = (&'static str, String)>,
        count: u64,
    ) {
        let labels = self.labels(more);
        self.add(counter, labels, count);
    }

    fn add(&mut self, counter: usize, labels: Labels, count: u64) {
        *self.counters[counter].entry(labels).or_default() += count;
    }

    fn interval(&mut self, interval: &Interval) {
        let counted = [
            (OFFERED, interval.offered),
            (STARTED, interval.started),
            (COMPLETED, interval.completed),
        ];
        for (counter, count) in counted {
            self.count(counter, [], count);
        }
        let mut untold = interval.failed;
        for (class, count) in &interval.troubles.errors {
            untold = untold.saturating_sub(*count);
            self.count(FAILED, [(ERROR, class.name().to_owned())], *count);
        }
        if untold > 0 {
            self.count(FAILED, [(ERROR, OTHER.to_owned())], untold);
        }
        let labels = self.labels([]);
        self.gauges[BACKLOG].insert(labels, interval.backlog as f64);
        for (series, measure) in &interval.series {
            self.measured(*series, measure);
        }
    }

    fn measured(&mut self, series: Series, measure: &KindMeasure) {
        let Some(phase) = &self.phase else { return };
        let group = phase.plan.groups.get(usize::from(series.group));
        let group = group.map_or_else(|| series.group.to_string(), |group| group.name.clone());
        let operation = series.kind.name().to_owned();
        let all = [
            (SERVICE, "found", &measure.service),
            (RESPONSE, "found", &measure.response),
            (SERVICE, "missed", &measure.missed_service),
            (RESPONSE, "missed", &measure.missed_response),
            (SERVICE, "failed", &measure.unsuccessful_service),
            (RESPONSE, "failed", &measure.unsuccessful_response),
        ];
        for (clock, outcome, histogram) in all {
            let Some(histogram) = histogram else { continue };
            let mut labels = self.labels([
                ("db.operation.name", operation.clone()),
                ("kvdyno.group", group.clone()),
                (OUTCOME, outcome.to_owned()),
            ]);
            if outcome == "failed" {
                labels.insert(ERROR, OTHER.to_owned());
            }
            self.histograms[clock].entry(labels).or_default().add(histogram);
        }
    }

    fn used(&mut self, used: &Used) {
        // A process that is missing here has ended.
        [CPU, MEMORY].into_iter().for_each(|gauge| self.gauges[gauge].clear());
        for process in &used.processes {
            let name = ("kvdyno.process", process.process.clone());
            let labels = self.labels([name.clone()]);
            self.gauges[CPU].insert(labels.clone(), process.processors);
            if let Some(bytes) = process.rss_bytes {
                self.gauges[MEMORY].insert(labels, bytes as f64);
            }
            let moved = [
                (DISK, ("disk.io.direction", "read"), process.read_bytes),
                (DISK, ("disk.io.direction", "write"), process.written_bytes),
                (NETWORK, ("network.io.direction", "receive"), process.received_bytes),
                (NETWORK, ("network.io.direction", "transmit"), process.sent_bytes),
            ];
            for (counter, (direction, value), bytes) in moved {
                if let Some(bytes) = bytes {
                    self.count(counter, [name.clone(), (direction, value.to_owned())], bytes);
                }
            }
        }
    }

    fn phase_ended(&mut self, phase: &PhaseResult) {
        self.end_gauges();
        let of_phase = self.of_phase(self.whole_of(&phase.name));
        let with = |name: &'static str, value: &str| {
            let mut labels = of_phase.clone();
            labels.insert(name, value.to_owned());
            labels
        };
        if let Some(tally) = &phase.tally {
            for (kind, count) in AnomalyKind::ALL.iter().zip(tally.anomalies) {
                self.add(ANOMALIES, with("kvdyno.anomaly", kind.name()), count);
            }
        }
        if let Some(writes) = &phase.writes {
            self.add(LOST, of_phase.clone(), writes.lost);
        }
        for agent in &phase.agents {
            self.add(AGENT, with("kvdyno.agent", &agent.name), agent.operations);
        }
    }

    fn judged(&mut self, level: Level) {
        for one in [Level::Valid, Level::Suspect, Level::Invalid] {
            let mut labels = self.of_store.clone();
            labels.insert("kvdyno.verdict.level", one.name().to_owned());
            self.gauges[VERDICT].insert(labels, f64::from(u8::from(one == level)));
        }
    }
}

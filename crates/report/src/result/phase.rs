//! One phase in a result: its plan and its measurements.

mod group;
mod hits;

use kvdyno_core::measure::{
    ErrorSummary, KindTotal, Limit, Nanos, PhaseMeasure, ResourceSummary, Series, StopReason,
    WorkerUse,
};
use kvdyno_core::store::{Certainty, ErrorClass};
use kvdyno_core::suite::{self, Plan};
use kvdyno_core::verify::{Anomaly, AnomalyKind, Tally};
use kvdyno_core::workload::{Kind, PhasePlan};
use serde::{Deserialize, Serialize};

pub use group::GroupResult;
pub use hits::DrainedGets;

use super::account::{FaultAccount, StaleAccount, Unavailable, WriteAccount};
use super::agent::AgentResult;
use super::course::CourseResult;
use super::fault::{FaultResult, UnaskedNode};
use super::figure::FigureResult;
use super::latency::{Latency, finite};
use super::linearizability::LinearizabilityResult;
use super::rfc3339;
use super::steered::SteeredResult;
use crate::account;

/// Most anomalies that a phase keeps in `result.json`; `anomalies.jsonl` has all of them.
pub const ANOMALIES_SHOWN: usize = 100;

/// Result of a phase against one store.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PhaseResult {
    /// Phase number in the run, zero-based.
    pub index: u16,
    /// Name, unique in the suite.
    pub name: String,
    /// Text in the first column of the table.
    pub label: String,
    /// True for a warm-up: its figures are kept, and left out of the summary.
    pub warmup: bool,
    /// Purpose in a search, if it is a probe of one: `sweep`, `bracket`, `bisect`, `again` or `confirm`.
    pub probe: Option<String>,
    /// True for a load: it only makes records that later phases need.
    pub load: bool,
    /// Begin, RFC 3339, UTC.
    pub started: String,
    /// Begin, ns since the run began.
    pub offset_ns: u64,
    /// Time from its begin to its end, ns: its deadline, or when it was stopped; where all its requests were made before,
    /// when their schedule was over or, if that came later, the last was answered.
    pub wall_ns: u64,
    /// Time from its end to the last answer, ns. Operations that ended in that time are in counts and latencies, and in
    /// no rate.
    pub drain_ns: u64,
    /// Reason why it ended.
    #[cfg_attr(test, schemars(with = "String"))]
    pub stopped: StopReason,
    /// Client groups.
    pub groups: Vec<GroupResult>,
    /// Operations that fell due (open arrivals) or were started (closed).
    pub offered: u64,
    /// True if more operations fell due than there was time to count: `offered` and `unstarted` are estimates.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub offered_estimated: bool,
    /// Operations started.
    pub started_operations: u64,
    /// Totals of each series, by group and kind.
    pub series: Vec<SeriesResult>,
    /// Operations due by the stop and never started, at (stop − due): lower bounds of their
    /// response times. Open arrivals only.
    pub unstarted: Option<Latency>,
    /// Lag of requests, sent later than due although a client was free. Open arrivals only.
    pub send_lag: Option<Latency>,
    /// Errors by class, most frequent first.
    pub errors: Vec<ErrorResult>,
    /// Each worker's use of time.
    pub workers: Vec<WorkerResult>,
    /// Number of operation ids that each group began.
    pub issued: Vec<u64>,
    /// Number of records that exist from here on.
    pub records: u64,
    /// Counts of verification; `None` if the phase had it off.
    #[cfg_attr(test, schemars(with = "Option<super::schema::TallySchema>"))]
    pub tally: Option<Tally>,
    /// The first [`ANOMALIES_SHOWN`] anomalies.
    pub anomalies: Vec<AnomalyResult>,
    /// Resources that it used on the machine, where they could be sampled.
    #[cfg_attr(
        test,
        schemars(with = "Option<std::collections::BTreeMap<String, serde_json::Value>>")
    )]
    pub resources: Option<ResourceSummary>,
    /// Figures of the store's driver, such as a hit ratio.
    pub figures: Vec<FigureResult>,
    /// Linearizability of the sampled records' histories, if the phase asked for it.
    pub linearizability: Option<LinearizabilityResult>,
    /// Faults and repairs of the testbed meanwhile, in order.
    pub faults: Vec<FaultResult>,
    /// Nodes of the testbed that served and got no requests, as far as the clients' sockets tell.
    pub unasked: Vec<UnaskedNode>,
    /// Longest times without success, where they were recorded.
    pub unavailable: Option<Unavailable>,
    /// Consequences of each fault and each repair.
    pub account: Vec<FaultAccount>,
    /// Account of stale reads, by how much they were behind; `None` if there was none.
    pub stale: Option<StaleAccount>,
    /// Account of the writes, where every record was read back after this phase.
    pub writes: Option<WriteAccount>,
    /// Course of the phase: when it settled, and where throughput or latency left their level; `None` for short phases.
    pub course: Option<CourseResult>,
    /// Limit of its throughput, as far as samples show it.
    #[cfg_attr(
        test,
        schemars(with = "Option<std::collections::BTreeMap<String, serde_json::Value>>")
    )]
    pub limit: Option<Limit>,
    /// Published figures for this phase.
    pub published: Vec<Published>,
    /// Agents that carried it together, where there were several.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub agents: Vec<AgentResult>,
    /// Actions of manual control on it while it ran.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub steered: Vec<SteeredResult>,
}

/// Results of one kind of operation of one group.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct SeriesResult {
    /// Number of the group in the phase.
    pub group: u16,
    /// Kind of operation.
    #[cfg_attr(test, schemars(with = "String"))]
    pub kind: Kind,
    /// Operations that succeeded.
    pub ok: u64,
    /// Number of these that were reads and deletes whose record was not there.
    pub missing: u64,
    /// Records that gets (`get`, `get-batch`, `put-get`, `read-modify-write`) asked for and that were not there; the
    /// others are hits.
    pub missed: u64,
    /// Operations that certainly were not applied.
    pub failed: u64,
    /// Operations that may have been applied.
    pub indeterminate: u64,
    /// Records asked for or written by those that succeeded, and records that scans found.
    pub records: u64,
    /// Operations among `ok` that ended after the phase.
    pub drained: u64,
    /// Gets among them.
    pub drained_gets: DrainedGets,
    /// Operations a second that succeeded before the phase ended, hits and misses.
    pub rate: Option<f64>,
    /// Records that gets found, a second; `None` for other kinds.
    pub hit_rate: Option<f64>,
    /// Records that gets did not find, a second; `None` for other kinds.
    pub miss_rate: Option<f64>,
    /// Service time of those that succeeded; for gets, of those that found a record.
    pub service: Option<Latency>,
    /// Response time of the same; open arrivals only.
    pub response: Option<Latency>,
    /// Service time of gets that found nothing.
    pub missed_service: Option<Latency>,
    /// Response time of gets that found nothing; open arrivals only.
    pub missed_response: Option<Latency>,
    /// Service time of those that did not succeed.
    pub unsuccessful_service: Option<Latency>,
    /// Response time of those that did not succeed; open arrivals only.
    pub unsuccessful_response: Option<Latency>,
}

/// Errors of one class.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ErrorResult {
    /// Class of the errors.
    #[cfg_attr(test, schemars(with = "String"))]
    pub class: ErrorClass,
    /// Certainty whether these requests were applied.
    #[cfg_attr(test, schemars(with = "String"))]
    pub certainty: Certainty,
    /// Number of errors.
    pub count: u64,
    /// Number of these that were time-outs while kvdyno itself stood still: not the store's doing.
    pub of_client: u64,
    /// Message of the first one.
    pub first_message: String,
    /// Time at which the first one ended, ns since the phase began.
    pub first_at_ns: u64,
    /// Time at which the last one ended, ns since the phase began.
    pub last_at_ns: u64,
}

/// Use of time of a worker thread, ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct WorkerResult {
    /// Time from the start of the phase to this worker's end.
    pub wall_ns: u64,
    /// CPU time, spinning left out.
    pub cpu_ns: u64,
    /// CPU time spent spinning towards a due time.
    pub spun_ns: u64,
    /// Time in which it could have worked, but another thread had the processor, or a quota was used up.
    pub waited_ns: u64,
    /// Sum of the service times of its operations.
    pub in_store_ns: u64,
    /// Request slots that it carried.
    pub clients: u32,
}

/// A read that the ledger does not allow.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct AnomalyResult {
    /// Kind of the anomaly.
    #[cfg_attr(test, schemars(with = "String"))]
    pub kind: AnomalyKind,
    /// Number of the phase.
    pub phase: u16,
    /// Number of the client group that read.
    pub group: u16,
    /// Number of the operation in the group.
    pub operation: u64,
    /// Phase, group and number of the operation whose write is lost, whose delete was undone or whose failed write is
    /// there; `None` where they cannot be told.
    pub writer: Option<(u16, u16, u64)>,
    /// Number of the record.
    pub record: u64,
    /// Number of the field.
    pub field: u16,
    /// Version that was read; `None` if the record was absent or unreadable.
    pub seen: Option<u32>,
    /// Oldest version that would have been allowed.
    pub floor: u32,
    /// Next version that the record would get.
    pub next: u32,
    /// Time at which the read was sent, ns since the phase began.
    pub sent_ns: u64,
    /// Time at which it was answered, ns since the phase began.
    pub answered_ns: u64,
    /// Least time between the acknowledgement of the floor and the sending of the read, ns.
    pub behind_ns: Option<u64>,
    /// Result of reading it again at the end of the phase.
    pub again: String,
    /// Description of the anomaly.
    pub detail: String,
}

/// Published figures for a phase. Latencies are in ms, as printed in the publication.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Published {
    /// Store and version that they are about, such as `MongoDB 2.0.0`.
    pub store: String,
    /// Requests a second.
    pub rate: Option<f64>,
    /// Duration, ms.
    pub wall_ms: Option<f64>,
    /// Median, ms.
    pub p50_ms: Option<f64>,
    /// 90th percentile, ms.
    pub p90_ms: Option<f64>,
    /// 99th percentile, ms.
    pub p99_ms: Option<f64>,
    /// 99.5th percentile, ms.
    pub p99_5_ms: Option<f64>,
    /// 99.9th percentile, ms.
    pub p99_9_ms: Option<f64>,
    /// Longest, ms.
    pub max_ms: Option<f64>,
    /// Mean, ms.
    pub mean_ms: Option<f64>,
    /// Operations that ended in an error.
    pub errors: Option<u64>,
    /// Reads that failed.
    pub failures: Option<u64>,
    /// Clients.
    pub clients: Option<u32>,
    /// Seed of the value sizes.
    pub value_seed: Option<i64>,
}

impl PhaseResult {
    /// Fills in the measurements of a phase that began `offset_ns` after the run; everything that came beside them is
    /// left out.
    pub(super) fn measured(
        plan: &PhasePlan,
        measure: &PhaseMeasure,
        resources: Option<&ResourceSummary>,
        offset_ns: Nanos,
    ) -> PhaseResult {
        let wall_ns = measure.end.saturating_sub(measure.start);
        PhaseResult {
            index: plan.index,
            name: plan.name.clone(),
            label: plan.label.clone(),
            warmup: plan.warmup,
            load: plan.load,
            probe: None,
            started: rfc3339(measure.started_at),
            offset_ns,
            wall_ns,
            drain_ns: measure.last_end.saturating_sub(measure.end),
            stopped: measure.stopped,
            groups: plan.groups.iter().map(GroupResult::new).collect(),
            offered: measure.offered,
            offered_estimated: measure.offered_estimated,
            started_operations: measure.started,
            series: measure.series.iter().map(|s| SeriesResult::new(s, wall_ns)).collect(),
            unstarted: measure.unstarted.as_ref().and_then(Latency::of),
            send_lag: measure.send_lag.as_ref().and_then(Latency::of),
            errors: measure.errors.iter().map(|e| ErrorResult::new(e, measure.start)).collect(),
            workers: measure.workers.iter().map(WorkerResult::new).collect(),
            issued: measure.issued.clone(),
            records: measure.records,
            tally: plan.verify.then(|| measure.tally.clone()),
            anomalies: measure
                .anomalies
                .iter()
                .take(ANOMALIES_SHOWN)
                .map(|a| AnomalyResult::new(a, measure.start))
                .collect(),
            resources: resources.filter(|r| shares_are_finite(r)).cloned(),
            figures: measure.figures.iter().map(FigureResult::new).collect(),
            linearizability: measure
                .linearizability
                .as_ref()
                .map(|examined| LinearizabilityResult::new(examined, measure.start)),
            faults: Vec::new(),
            unasked: Vec::new(),
            steered: Vec::new(),
            unavailable: account::unavailable(measure),
            account: Vec::new(),
            // Old records at the read-back are in the account of the writes.
            stale: account::stale(measure).filter(|_| !plan.load),
            writes: None,
            course: None,
            limit: None,
            published: Vec::new(),
            agents: Vec::new(),
        }
    }

    /// Returns true if the phase prepares others; its speed does not matter.
    #[must_use]
    pub fn prepares(&self) -> bool {
        self.warmup || self.load
    }

    /// Returns the number of clients of all groups.
    #[must_use]
    pub fn clients(&self) -> u32 {
        self.groups.iter().fold(0, |sum, group| sum.saturating_add(group.clients))
    }

    /// Returns true if some requests have a due time, so that response time has a meaning.
    #[must_use]
    pub fn open(&self) -> bool {
        self.groups.iter().any(|group| group.open)
    }

    /// Returns the number of operations that succeeded.
    #[must_use]
    pub fn ok(&self) -> u64 {
        self.series.iter().fold(0, |sum, s| sum.saturating_add(s.ok))
    }

    /// Returns the number of operations that failed or may have been applied.
    #[must_use]
    pub fn unsuccessful(&self) -> u64 {
        self.series.iter().fold(0, |sum, s| sum.saturating_add(s.unsuccessful()))
    }

    /// Returns the operations a second that succeeded before the phase ended.
    #[must_use]
    pub fn rate(&self) -> Option<f64> {
        let in_time = self.series.iter().fold(0, |sum: u64, s| sum.saturating_add(s.in_time()));
        rate(in_time, self.wall_ns)
    }
}

/// Returns true if a summary has finite shares only: JSON has no other numbers, and a summary without a span of time has
/// some.
fn shares_are_finite(resources: &ResourceSummary) -> bool {
    let servers = resources.servers.iter().filter_map(|server| server.used);
    let processors = servers.map(|used| used.processors).chain([resources.own.processors]);
    let shares = [resources.busy, resources.steal, resources.iowait];
    processors.chain(shares).all(f64::is_finite)
}

impl Published {
    /// Returns the figures that `plan` has for a phase: those published for `store`, or for all stores if there are none
    /// for it. None if the plan differs from the published suite.
    #[must_use]
    pub fn of(plan: &Plan, store: &str, phase: &str) -> Vec<Published> {
        if !plan.as_published() {
            return Vec::new();
        }
        let of_store = |published: &&suite::PublishedSetup| published.store == store;
        let own = plan.published.iter().any(|published| of_store(&published));
        let published = plan.published.iter().filter(|p| !own || of_store(p));
        let rows = published.flat_map(|published| {
            let rows = published.rows.iter().filter(|row| row.phase == phase);
            rows.map(|row| Published::new(&published.title, row))
        });
        rows.collect()
    }

    fn new(title: &str, row: &suite::PublishedRow) -> Published {
        Published {
            store: title.to_owned(),
            rate: row.rate,
            wall_ms: row.millis,
            p50_ms: row.p50,
            p90_ms: row.p90,
            p99_ms: row.p99,
            p99_5_ms: row.p99_5,
            p99_9_ms: row.p99_9,
            max_ms: row.max,
            mean_ms: row.mean,
            errors: row.err.map(|n| n as u64),
            failures: row.fail.map(|n| n as u64),
            clients: row.threads.map(|n| n as u32),
            value_seed: row.value_seed.map(|n| n as i64),
        }
    }
}

impl SeriesResult {
    /// Converts the totals of a kind of operation over `wall_ns`.
    pub(crate) fn new((series, measure): &(Series, KindTotal), wall_ns: u64) -> SeriesResult {
        let mut result = SeriesResult {
            group: series.group,
            kind: series.kind,
            ok: measure.ok,
            missing: measure.missing,
            missed: measure.missed,
            failed: measure.failed,
            indeterminate: measure.indeterminate,
            records: measure.records,
            drained: measure.drained.ok,
            drained_gets: DrainedGets::of(series.kind, measure.drained),
            rate: None,
            hit_rate: None,
            miss_rate: None,
            service: measure.service.as_ref().and_then(Latency::of),
            response: measure.response.as_ref().and_then(Latency::of),
            missed_service: measure.missed_service.as_ref().and_then(Latency::of),
            missed_response: measure.missed_response.as_ref().and_then(Latency::of),
            unsuccessful_service: measure.unsuccessful_service.as_ref().and_then(Latency::of),
            unsuccessful_response: measure.unsuccessful_response.as_ref().and_then(Latency::of),
        };
        result.set_rates(wall_ns);
        result
    }

    /// Returns the number of operations that failed or may have been applied.
    #[must_use]
    pub fn unsuccessful(&self) -> u64 {
        self.failed.saturating_add(self.indeterminate)
    }

    /// Returns the number of operations that succeeded before the phase ended, from which its rate is computed.
    #[must_use]
    pub fn in_time(&self) -> u64 {
        self.ok.saturating_sub(self.drained)
    }
}

impl ErrorResult {
    fn new(error: &ErrorSummary, start: Nanos) -> ErrorResult {
        ErrorResult {
            class: error.class,
            certainty: error.certainty,
            count: error.count,
            of_client: error.of_client,
            first_message: error.first_message.clone(),
            first_at_ns: error.first_at.saturating_sub(start),
            last_at_ns: error.last_at.saturating_sub(start),
        }
    }

    /// Describes the first error, with the number of those that were kvdyno's own doing.
    #[must_use]
    pub fn message(&self) -> String {
        let first = &self.first_message;
        match self.of_client {
            0 => first.clone(),
            own => format!("{first} ({own} of them while kvdyno itself stood still)"),
        }
    }
}

impl WorkerResult {
    fn new(worker: &WorkerUse) -> WorkerResult {
        WorkerResult {
            wall_ns: worker.wall.as_nanos() as u64,
            cpu_ns: worker.cpu.as_nanos() as u64,
            spun_ns: worker.spun.as_nanos() as u64,
            waited_ns: worker.waited.as_nanos() as u64,
            in_store_ns: worker.in_store.as_nanos() as u64,
            clients: worker.clients,
        }
    }
}

impl AnomalyResult {
    /// Converts an anomaly. `start` is the begin of the phase, on core's clock.
    pub(crate) fn new(anomaly: &Anomaly, start: Nanos) -> AnomalyResult {
        AnomalyResult {
            kind: anomaly.kind,
            phase: anomaly.operation.phase,
            group: anomaly.operation.group,
            operation: anomaly.operation.id,
            writer: anomaly.writer.map(|w| (w.phase, w.group, w.id)),
            record: anomaly.record,
            field: anomaly.field,
            seen: anomaly.seen,
            floor: anomaly.floor,
            next: anomaly.next,
            sent_ns: anomaly.sent.saturating_sub(start),
            answered_ns: anomaly.answered.saturating_sub(start),
            behind_ns: anomaly.behind.map(|d| d.as_nanos() as u64),
            again: anomaly.again.clone(),
            detail: anomaly.detail.clone(),
        }
    }
}

/// Returns operations a second; `None` if no time passed.
pub(crate) fn rate(operations: u64, wall_ns: u64) -> Option<f64> {
    finite(operations as f64 / (wall_ns as f64 / 1e9))
}

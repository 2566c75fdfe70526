//! Result of a run, in the form of `result.json`: enough to show it, to judge it and to repeat it. Its shape is published
//! as `docs/result.schema.json`.

mod account;
mod agent;
mod capacity;
mod claim;
mod cost;
mod course;
mod evidence;
mod fault;
mod figure;
mod host;
mod latency;
mod linearizability;
mod load;
mod outcome;
mod phase;
#[cfg(test)]
mod schema;
mod steered;
mod testbed;

use std::time::SystemTime;

use kvdyno_core::measure::BUILD_PROFILE;
use kvdyno_core::redact;
use kvdyno_core::store::{Capabilities, Consistency, Durability, Profile};
use kvdyno_core::suite::Plan;
use kvdyno_core::verdict;
use kvdyno_core::verify::Tally;
use kvdyno_core::workload::Dataset;
use serde::{Deserialize, Serialize};

pub use account::{
    BacklogAccount, CopiesAccount, DeleteAccount, DifferingRecord, FaultAccount, InsertAccount,
    LOST_SHOWN, LatencyRecovery, LostAgentsAccount, LostWrite, ShareRecovery, SideAccount,
    StaleAccount, StretchResult, ThroughputRecovery, Unavailable, Undecided, WriteAccount,
};
pub use agent::AgentResult;
pub use capacity::{CapacityResult, FitResult, ProbeResult};
pub use claim::{ClaimResult, ConditionResult};
pub use cost::{CostResult, PricedServers};
pub(crate) use course::gathered;
pub use course::{CourseResult, EventResult, ExcursionResult, Known};
pub use evidence::EvidenceResult;
pub use fault::{
    CutResult, DarkSpan, FaultResult, LookedBackResult, MOVE_RECORDS, Redundancy, UnaskedNode,
    is_repair, mark_dark, moments, several,
};
pub use figure::FigureResult;
pub use host::Host;
pub use kvdyno_core::measure::HistogramError;
pub use kvdyno_core::verdict::Level;
pub use latency::Latency;
pub use linearizability::{
    LinearizabilityAnswer, LinearizabilityResult, RequestResult, ViolationResult,
};
pub(crate) use load::PART;
pub(crate) use load::TRIALS_FILE;
pub use load::{RESULT_FILE, ResultFileError};
pub use outcome::PhaseOutcome;
pub use phase::{
    ANOMALIES_SHOWN, AnomalyResult, DrainedGets, ErrorResult, GroupResult, PhaseResult, Published,
    SeriesResult, WorkerResult,
};
pub use steered::SteeredResult;
pub use testbed::{TestbedNode, TestbedResult, TestbedStep};

pub(crate) use latency::add;
pub(crate) use phase::rate;

/// Version of the shape of `result.json`; a reader refuses any other.
pub const SCHEMA_VERSION: u32 = 1;

/// Result of a suite against one or several stores, one after the other.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct RunResult {
    /// Version of the shape, [`SCHEMA_VERSION`].
    pub schema_version: u32,
    /// The kvdyno that measured.
    pub kvdyno: Build,
    /// Command line, without passwords.
    pub command: Vec<String>,
    /// Options of the run, as they were resolved; `None` in results of earlier versions.
    #[serde(default)]
    pub config: Option<serde_json::Value>,
    /// Begin, RFC 3339, UTC.
    pub started: String,
    /// End; `None` while it runs or if it was killed.
    pub ended: Option<String>,
    /// Status of the run.
    pub status: Status,
    /// Machine that the load came from.
    pub host: Host,
    /// Seed from which keys, values and operations are drawn.
    pub seed: u64,
    /// Suite that was run.
    pub suite: SuiteResult,
    /// Number of this repetition, where there are several.
    pub trial: Option<TrialNumber>,
    /// True if stores of unequal durability or consistency are compared all the same.
    pub compare_unequal: bool,
    /// Cost of the servers, where the user stated prices.
    pub cost: Option<CostResult>,
    /// Run of each store, in order.
    pub runs: Vec<StoreRun>,
}

/// Build of the kvdyno that measured.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Build {
    /// Version of kvdyno.
    pub version: String,
    /// Output of `git describe` at the build, where it was known.
    pub git: Option<String>,
    /// True if it was built without optimisation: its figures are worth nothing.
    pub debug: bool,
    /// Cargo profile of the build, such as `release` or `dist`, where it is known.
    pub profile: Option<String>,
}

/// Status of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case", tag = "state")]
pub enum Status {
    /// The run goes on, or was killed.
    Running,
    /// The run came to its end.
    Complete,
    /// The user stopped the run.
    Interrupted,
    /// The run could not go on.
    Failed {
        /// Reason for the failure.
        message: String,
    },
}

/// Cause for which a store's run did not come to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum EndCause {
    /// The suite or the command line asks for something that cannot be done.
    Usage,
    /// The store could not be reached, or was lost under load.
    StoreLost,
    /// The store did not come back after a fault.
    NotBack,
    /// A phase reached its time limit.
    TimeLimit,
    /// An agent was lost.
    AgentLost,
    /// kvdyno, or the machine that it runs on, failed.
    Internal,
}

/// Suite that was run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct SuiteResult {
    /// Name of the suite.
    pub name: String,
    /// Description of the suite, in one line.
    pub title: String,
    /// Share of the published size; `None` at full scale or if there is no published size.
    pub scale: Option<f64>,
    /// Options by which the run differed from the suite as it is defined.
    pub changes: Vec<String>,
    /// True if the result tells which criteria of a good benchmark the run met.
    pub scorecard: bool,
    /// Whole plan, as the suite was resolved.
    pub plan: serde_json::Value,
}

/// One of several repetitions of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct TrialNumber {
    /// Number, from 1.
    pub number: u32,
    /// Number of planned repetitions.
    pub of: u32,
}

/// Run of the suite against one store.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct StoreRun {
    /// The store and its promises.
    pub store: StoreResult,
    /// Testbed that the store ran on, if it ran on one.
    pub testbed: Option<TestbedResult>,
    /// Options of the run, as they were resolved; `None` in results of earlier versions.
    #[serde(default)]
    pub config: Option<serde_json::Value>,
    /// Begin, RFC 3339, UTC.
    pub started: String,
    /// End; `None` while it runs or if it was killed.
    pub ended: Option<String>,
    /// Status of the store's run.
    pub status: Status,
    /// Cause for which it did not come to its end; `None` if it did, was interrupted or still goes on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<EndCause>,
    /// Dataset of the run.
    #[cfg_attr(test, schemars(with = "Option<schema::DatasetSchema>"))]
    pub dataset: Option<Dataset>,
    /// Verdict on the measurement; `None` until it is judged.
    pub verdict: Option<Verdict>,
    /// Limits of its figures, one sentence each, such as anomalies that short values cannot show.
    pub notes: Vec<String>,
    /// Consequences of agents having carried the load, one sentence each.
    #[serde(alias = "of_parts")]
    pub of_agents: Vec<String>,
    /// Results of the suite's claims.
    pub claims: Vec<ClaimResult>,
    /// Phases that ended, in order.
    pub phases: Vec<PhaseResult>,
    /// Phases of the plan that were left out.
    pub skipped: Vec<SkippedPhase>,
    /// Results of searches for the highest rate.
    pub capacity: Vec<CapacityResult>,
    /// Evidence in the run for every claim that can be made about it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(test, schemars(with = "Vec<schema::EvidenceSchema>"))]
    pub evidence: Vec<EvidenceResult>,
}

/// A phase of the plan that was left out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct SkippedPhase {
    /// Name of the phase.
    pub name: String,
    /// Reason, in words that end a sentence.
    pub why: String,
}

/// A store and its promises.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct StoreResult {
    /// URL by which it was reached, without passwords.
    pub url: String,
    /// Name of the system.
    pub name: String,
    /// Version that the system names.
    pub version: Option<String>,
    /// Failures that an acknowledged write survives.
    #[cfg_attr(test, schemars(with = "schema::PromiseSchema"))]
    pub durability: kvdyno_core::store::Promise<Durability>,
    /// Values that a read may return.
    #[cfg_attr(test, schemars(with = "schema::PromiseSchema"))]
    pub consistency: kvdyno_core::store::Promise<Consistency>,
    /// Capabilities of the store.
    #[cfg_attr(test, schemars(with = "std::collections::BTreeMap<String, bool>"))]
    pub capabilities: Capabilities,
    /// Precision with which records expire, ns.
    pub ttl_precision_ns: u64,
    /// Longest time that a request may take, ns.
    pub timeout_ns: u64,
    /// Effective settings worth disclosing, as (name, value).
    pub settings: Vec<(String, String)>,
}

/// Verdict on a measurement.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Verdict {
    /// The worst of the reasons' levels; valid if there is none.
    #[cfg_attr(test, schemars(with = "schema::LevelSchema"))]
    pub level: Level,
    /// Reasons against it, and remarks, worst first.
    pub reasons: Vec<Reason>,
}

/// A reason against a measurement.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Reason {
    /// Short name, such as `client-limited`.
    pub name: String,
    /// Severity; `valid` for a remark.
    #[cfg_attr(test, schemars(with = "schema::LevelSchema"))]
    pub level: Level,
    /// Name of the phase; `None` if it is about the whole run.
    pub phase: Option<String>,
    /// Measured value.
    pub figure: Option<f64>,
    /// Value at which suspicion begins.
    pub threshold: Option<f64>,
    /// Unit of both: `share` (1 is all), `count` or `seconds`.
    pub unit: String,
    /// Cause of it: `store`, `client` (kvdyno), `machine`, `agents`, `faults`, `plan`, `user` or `unknown`; empty in
    /// results of versions that did not tell.
    #[serde(default)]
    pub cause: String,
    /// Problem, in one sentence without a stop.
    pub text: String,
    /// Advice, in one sentence without a stop.
    pub advice: String,
}

impl Build {
    /// Describes this build. `git` is the output of `git describe`, where the caller knows it.
    #[must_use]
    pub fn current(git: Option<&str>) -> Build {
        Build {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            git: git.map(str::to_owned),
            debug: cfg!(debug_assertions),
            profile: Some(BUILD_PROFILE.to_owned()),
        }
    }
}

impl Verdict {
    /// Returns the verdict that follows from these reasons.
    #[must_use]
    pub fn of(mut reasons: Vec<Reason>) -> Verdict {
        reasons.sort_by_key(|reason| std::cmp::Reverse(reason.level));
        let level = reasons.first().map_or(Level::Valid, |worst| worst.level);
        Verdict { level, reasons }
    }
}

impl From<&verdict::Verdict> for Verdict {
    fn from(judged: &verdict::Verdict) -> Verdict {
        Verdict::of(judged.reasons.iter().map(Reason::from).collect())
    }
}

impl From<&verdict::Finding> for Reason {
    fn from(finding: &verdict::Finding) -> Reason {
        let reason = &finding.reason;
        let record = reason.record();
        Reason {
            name: record.id.to_owned(),
            level: reason.level(),
            phase: finding.phase.clone(),
            figure: latency::finite(record.figure),
            threshold: record.crossed().and_then(|(_, bound)| latency::finite(bound)),
            unit: record.unit.name().to_owned(),
            cause: record.cause.name().to_owned(),
            text: reason.text(),
            advice: record.advice.to_owned(),
        }
    }
}

impl SuiteResult {
    /// Describes the suite of a plan; passwords are removed from the URLs of its stores here.
    #[must_use]
    pub fn new(plan: &Plan) -> SuiteResult {
        let stores = plan.stores.iter().map(|url| redact::redact(url)).collect();
        let shown = Plan { stores, ..plan.clone() };
        SuiteResult {
            name: plan.suite.clone(),
            title: plan.title.clone(),
            scale: plan.scale,
            changes: plan.changes.clone(),
            scorecard: plan.scorecard,
            // Numbers that JSON lacks become null; all maps have text as keys.
            plan: serde_json::to_value(&shown).unwrap_or_default(),
        }
    }
}

impl StoreResult {
    /// Keeps a store's description of itself; passwords are removed from the URL here.
    #[must_use]
    pub fn new(url: &str, profile: &Profile) -> StoreResult {
        StoreResult {
            url: redact::redact(url),
            name: profile.store.clone(),
            version: profile.version.clone(),
            durability: profile.durability,
            consistency: profile.consistency,
            capabilities: profile.capabilities,
            ttl_precision_ns: profile.ttl_precision.as_nanos() as u64,
            timeout_ns: profile.timeout.as_nanos() as u64,
            settings: profile.settings.clone(),
        }
    }
}

impl StoreRun {
    /// Begins the run of a store.
    #[must_use]
    pub fn begin(store: StoreResult, dataset: Option<Dataset>, started: SystemTime) -> StoreRun {
        StoreRun {
            store,
            testbed: None,
            config: None,
            started: rfc3339(started),
            ended: None,
            status: Status::Running,
            cause: None,
            dataset,
            verdict: None,
            notes: Vec::new(),
            of_agents: Vec::new(),
            claims: Vec::new(),
            phases: Vec::new(),
            skipped: Vec::new(),
            capacity: Vec::new(),
            evidence: Vec::new(),
        }
    }

    /// Sums up the tallies of all phases; `None` if verification was off in all of them.
    #[must_use]
    pub fn tally(&self) -> Option<Tally> {
        self.phases.iter().filter_map(|p| p.tally.as_ref()).fold(None, |sum, tally| {
            let mut sum: Tally = sum.unwrap_or_default();
            sum.add(tally);
            Some(sum)
        })
    }
}

impl RunResult {
    /// Begins the result of a run, without any figures yet.
    #[must_use]
    pub fn begin(plan: &Plan, command: &[String], started: SystemTime) -> RunResult {
        RunResult {
            schema_version: SCHEMA_VERSION,
            kvdyno: Build::current(option_env!("KVDYNO_GIT")),
            command: redact::redact_command(command.iter().cloned()),
            config: None,
            started: rfc3339(started),
            ended: None,
            status: Status::Running,
            host: Host::of_this_machine(),
            seed: plan.seed,
            suite: SuiteResult::new(plan),
            trial: None,
            compare_unequal: false,
            cost: None,
            runs: Vec::new(),
        }
    }
}

/// Formats a moment as RFC 3339, UTC, to the microsecond. A moment outside the calendar of four-digit years becomes its
/// nearest end.
#[must_use]
pub fn rfc3339(moment: SystemTime) -> String {
    const LAST: u64 = 253_402_300_799; // 9999-12-31T23:59:59Z
    let since = moment.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let last = std::time::Duration::from_secs(LAST);
    humantime::format_rfc3339_micros(SystemTime::UNIX_EPOCH + since.min(last)).to_string()
}

#[cfg(test)]
mod tests;

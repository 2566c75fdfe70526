//! What a run leaves behind, as `result.json` holds it: enough to show it, to judge it and to do it
//! again. Its shape is published as `docs/result.schema.json`.

mod host;
mod latency;
mod load;
mod merge;
mod phase;
mod redact;

use std::time::SystemTime;

use kvdyno_core::store::{Capabilities, Consistency, Durability, Profile};
use kvdyno_core::verify::Tally;
use kvdyno_core::workload::{Dataset, Part};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use host::Host;
pub use latency::{HistogramError, Latency};
pub use load::LoadError;
pub use merge::{Absent, MergeError, merge};
pub use phase::{
    ANOMALIES_SHOWN, AnomalyResult, ErrorResult, GroupResult, PhaseResult, Published, SeriesResult,
    WorkerResult,
};
pub use redact::{redact_command, redact_url};

pub(crate) use latency::{add, decode};

/// Version of the shape of `result.json`; a reader refuses any other.
pub const SCHEMA_VERSION: u32 = 1;

/// A suite against one or several stores, one after the other.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RunResult {
    /// [`SCHEMA_VERSION`].
    pub schema_version: u32,
    /// The kvdyno that measured.
    pub kvdyno: Build,
    /// Command line, without passwords.
    pub command: Vec<String>,
    /// Begin, RFC 3339, UTC.
    pub started: String,
    /// End; `None` while it runs or if it was killed.
    pub ended: Option<String>,
    /// How far it came.
    pub status: Status,
    /// The machine that the load came from.
    pub host: Host,
    /// Seed that keys, values and operations come from.
    pub seed: u64,
    /// What was run.
    pub suite: SuiteResult,
    /// The part of the load that this process carried.
    #[schemars(with = "PartSchema")]
    pub part: Part,
    /// If this result was merged: where from.
    pub merged_from: Vec<MergedPart>,
    /// Each store's run, in order.
    pub runs: Vec<StoreRun>,
}

/// The kvdyno that measured.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Build {
    /// Its version.
    pub version: String,
    /// What `git describe` said when it was built, where it was known.
    pub git: Option<String>,
    /// Built without optimisation: its figures are worth nothing.
    pub debug: bool,
}

/// How far a run came.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", tag = "state")]
pub enum Status {
    /// It runs, or was killed while it ran.
    Running,
    /// It came to its end.
    Complete,
    /// The user stopped it.
    Interrupted,
    /// It could not go on.
    Failed {
        /// Why.
        message: String,
    },
}

/// What was run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SuiteResult {
    /// Its name.
    pub name: String,
    /// Share of the published size; `None` at full scale or if there is no published size.
    pub scale: Option<f64>,
    /// The whole plan, as the suite was resolved. Equal in all parts of a load.
    pub plan: serde_json::Value,
}

/// A part that went into a merged result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MergedPart {
    /// Which part.
    #[schemars(with = "PartSchema")]
    pub part: Part,
    /// When it began.
    pub started: String,
    /// Its machine.
    pub host: Host,
}

/// The suite against one store.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StoreRun {
    /// The store and what it promises.
    pub store: StoreResult,
    /// Begin, RFC 3339, UTC.
    pub started: String,
    /// End; `None` while it runs or if it was killed.
    pub ended: Option<String>,
    /// How far it came.
    pub status: Status,
    /// Which records there are.
    #[schemars(with = "Option<DatasetSchema>")]
    pub dataset: Option<Dataset>,
    /// Whether the measurement may be believed; `None` until it is judged.
    pub verdict: Option<Verdict>,
    /// Phases that ended, in order.
    pub phases: Vec<PhaseResult>,
}

/// A store and what it promises.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StoreResult {
    /// How it was reached, without passwords.
    pub url: String,
    /// Name of the system.
    pub name: String,
    /// Version that the system names.
    pub version: Option<String>,
    /// What an acknowledged write survives.
    #[schemars(with = "PromiseSchema")]
    pub durability: kvdyno_core::store::Promise<Durability>,
    /// What a read may return.
    #[schemars(with = "PromiseSchema")]
    pub consistency: kvdyno_core::store::Promise<Consistency>,
    /// What it can do.
    #[schemars(with = "std::collections::BTreeMap<String, bool>")]
    pub capabilities: Capabilities,
    /// How exactly records expire, ns.
    pub ttl_precision_ns: u64,
    /// Longest time that a request may take, ns.
    pub timeout_ns: u64,
    /// Effective settings worth disclosing, as (name, value).
    pub settings: Vec<(String, String)>,
}

/// Whether a measurement may be believed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Verdict {
    /// The worst of the reasons' levels; valid if there is none.
    pub level: Level,
    /// What speaks against it.
    pub reasons: Vec<Reason>,
}

/// Levels of a verdict, from good to bad.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Level {
    /// It may be believed.
    Valid,
    /// It may be believed with the reasons in mind.
    Suspect,
    /// It must not be believed.
    Invalid,
}

/// What speaks against a measurement.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Reason {
    /// Short name, such as `client-limited`.
    pub name: String,
    /// How bad it is.
    pub level: Level,
    /// Name of the phase; `None` if it is about the whole run.
    pub phase: Option<String>,
    /// What was measured.
    pub figure: Option<f64>,
    /// Where suspicion begins.
    pub threshold: Option<f64>,
    /// Unit of both.
    pub unit: String,
    /// What is wrong, in one sentence.
    pub text: String,
    /// What to do, in one sentence.
    pub advice: String,
}

impl Build {
    /// This build. `git` is what `git describe` said, where the caller knows it.
    #[must_use]
    pub fn current(git: Option<&str>) -> Build {
        Build {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            git: git.map(str::to_owned),
            debug: cfg!(debug_assertions),
        }
    }
}

impl Level {
    /// The word used in results and on the terminal.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Level::Valid => "valid",
            Level::Suspect => "suspect",
            Level::Invalid => "invalid",
        }
    }
}

impl Verdict {
    /// The verdict that these reasons lead to.
    #[must_use]
    pub fn of(reasons: Vec<Reason>) -> Verdict {
        let level = reasons.iter().map(|r| r.level).max().unwrap_or(Level::Valid);
        Verdict { level, reasons }
    }
}

impl StoreResult {
    /// What a store said of itself; the URL is cleaned of passwords here.
    #[must_use]
    pub fn new(url: &str, profile: &Profile) -> StoreResult {
        StoreResult {
            url: redact_url(url),
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
    /// A run that begins.
    #[must_use]
    pub fn begin(store: StoreResult, dataset: Option<Dataset>, started: SystemTime) -> StoreRun {
        StoreRun {
            store,
            started: rfc3339(started),
            ended: None,
            status: Status::Running,
            dataset,
            verdict: None,
            phases: Vec::new(),
        }
    }

    /// What verification saw in all phases together; `None` if it was off in all of them.
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
    /// The JSON schema of `result.json`, as `docs/result.schema.json` holds it.
    #[must_use]
    pub fn schema() -> String {
        let schema = schemars::schema_for!(RunResult);
        let text = serde_json::to_string_pretty(&schema).expect("a schema is plain JSON");
        text + "\n"
    }
}

/// A moment as RFC 3339, UTC, to the microsecond. What no calendar of four-digit years holds
/// becomes its nearest end.
#[must_use]
pub fn rfc3339(moment: SystemTime) -> String {
    const LAST: u64 = 253_402_300_799; // 9999-12-31T23:59:59Z
    let since = moment.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let last = std::time::Duration::from_secs(LAST);
    humantime::format_rfc3339_micros(SystemTime::UNIX_EPOCH + since.min(last)).to_string()
}

/// The shape of [`Part`] in a result file, for the schema.
#[derive(JsonSchema)]
#[allow(dead_code, reason = "only its schema is used; core does not know schemars")]
struct PartSchema {
    /// From 0.
    index: u32,
    /// From 1.
    count: u32,
}

/// The shape of a promise in a result file, for the schema.
#[derive(JsonSchema)]
#[allow(dead_code, reason = "only its schema is used; core does not know schemars")]
struct PromiseSchema {
    /// What is promised.
    level: String,
    /// Read back from the store itself.
    checked: bool,
}

/// The shape of [`Dataset`] in a result file, for the schema.
#[derive(JsonSchema)]
#[allow(dead_code, reason = "only its schema is used; core does not know schemars")]
struct DatasetSchema {
    id: u32,
    session: u32,
    /// Form (`decimal`, `hash`) and length of keys.
    key: std::collections::BTreeMap<String, serde_json::Value>,
    fields: u16,
    capacity: u64,
}

#[cfg(test)]
mod schema_tests;

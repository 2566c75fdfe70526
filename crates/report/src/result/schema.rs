//! JSON schema of `result.json`, which `docs/result.schema.json` publishes, and the shapes of core's types in it: core
//! knows no schemas. Only tests need it, so that other builds do without the library.

use schemars::JsonSchema;

use super::RunResult;

/// Returns the schema as the published file holds it.
pub(super) fn schema() -> String {
    let schema = schemars::schema_for!(RunResult);
    let text = serde_json::to_string_pretty(&schema).expect("a schema is plain JSON");
    text + "\n"
}

/// Shape of [`Level`] in a result file, for the schema.
#[derive(JsonSchema)]
#[schemars(rename_all = "kebab-case")]
#[allow(dead_code, reason = "only its schema is used; core does not know schemars")]
pub(super) enum LevelSchema {
    Valid,
    Suspect,
    Invalid,
}

/// Shape of a promise in a result file, for the schema.
#[derive(JsonSchema)]
#[allow(dead_code, reason = "only its schema is used; core does not know schemars")]
pub(super) struct PromiseSchema {
    /// Name of the promised level.
    level: String,
    /// True if it was read back from the store itself.
    checked: bool,
}

/// Shape of [`Dataset`] in a result file, for the schema.
#[derive(JsonSchema)]
#[allow(dead_code, reason = "only its schema is used; core does not know schemars")]
pub(super) struct DatasetSchema {
    id: u32,
    session: u32,
    /// Form (`decimal`, `hash`) and length of keys.
    key: std::collections::BTreeMap<String, serde_json::Value>,
    fields: u16,
    capacity: u64,
}

/// Shape of `Tally` in a result file, for the schema.
#[derive(JsonSchema)]
#[allow(dead_code, reason = "only its schema is used; core does not know schemars")]
pub(super) struct TallySchema {
    /// Values that were answered: one for each record, one for each field where fields are written apart.
    reads: u64,
    /// Records that were answered.
    records: u64,
    bytes_checked: u64,
    judged: u64,
    stamp_only: u64,
    unknown: u64,
    early: u64,
    legal_misses: u64,
    legal_stale: u64,
    unexpected_misses: u64,
    wrong_misses: u64,
    other_run: u64,
    /// Other runs that were proven to write the same records meanwhile, with the number of reads that found their values.
    #[serde(default)]
    other_writers: Vec<OtherWriterSchema>,
    /// Illegal reads that found values of this run itself, or of a run that was over.
    #[serde(default)]
    of_no_other: u64,
    writes_acknowledged: u64,
    writes_failed: u64,
    writes_indeterminate: u64,
    /// Illegal reads: corrupt, phantom, resurrected, stale, lost.
    anomalies: [u64; 5],
    /// Places with illegal reads that could not be read again when the phase was over.
    not_read_again: u64,
}

/// Shape of another run in a result file, for the schema.
#[derive(JsonSchema)]
#[allow(dead_code, reason = "only its schema is used; core does not know schemars")]
struct OtherWriterSchema {
    session: u32,
    reads: u64,
}

/// Shape of evidence in a result file, for the schema.
#[derive(JsonSchema)]
#[allow(dead_code, reason = "only its schema is used; core does not know schemars")]
pub(super) struct EvidenceSchema {
    /// `reads-right`, `linearizable`, `nothing-lost`, `survives-process-kill`, `survives-power-loss`, `came-back`,
    /// `no-downtime`, `met-objective`, `own-limit` or `condition`.
    claimed: String,
    /// Name of the phase; null where it is about the whole run.
    phase: Option<String>,
    /// Fault model of the promise; null where the store promises nothing of the kind.
    promise: Option<FaultModelSchema>,
    /// Faults that the store was exposed to.
    exposure: ExposureSchema,
    /// Part of the stake that was examined, and as promised.
    kept: u64,
    /// Part of the stake that was examined, and not as promised.
    violations: Vec<FoundSchema>,
    /// Part of the stake that was examined, and not as promised for a reason that the promise does not cover.
    excused: Vec<FoundSchema>,
    /// Part of the stake that was not examined.
    unexamined: Vec<UnexaminedSchema>,
    /// Writes that were overwritten before they were examined: no part of the stake.
    hidden: u64,
    /// Writes that were examined and there, but a copy of which was never in danger: no part of the stake.
    lit: u64,
    /// Reasons that bar it from being confirmed, whatever was counted.
    bars: Vec<String>,
    /// Amount at stake: the sum of what was kept, broken, excused and not examined.
    stake: u64,
    /// Part of the stake that was examined.
    examined: u64,
    /// `confirmed`, `nothing-to-show`, `inconclusive`, `refuted` or `observed`.
    status: String,
    /// Reason why it is inconclusive, if it is.
    reason: Option<String>,
    /// Upper bound of the share that may break the claim all the same; null where nothing was tried.
    bound: Option<BoundSchema>,
}

/// Shape of a fault model, for the schema.
#[derive(JsonSchema)]
#[allow(dead_code, reason = "only its schema is used; core does not know schemars")]
pub(super) struct FaultModelSchema {
    /// Gravest fault: `running`, `process-end` or `power-loss`.
    fault: String,
    /// Copies of a record that it reaches: `all` or `some`.
    copies: String,
    /// Disk: `honours-flushes` or `any`.
    disk: String,
}

/// Shape of an exposure to faults, for the schema.
#[derive(JsonSchema)]
#[allow(dead_code, reason = "only its schema is used; core does not know schemars")]
pub(super) struct ExposureSchema {
    /// Number of moments with a fault.
    moments: u64,
    /// Number of nodes that hold data; 0 where that is not known.
    nodes: u64,
    /// Most of them that were dark at one moment.
    together: u64,
    /// Number of cuts of power, by moment, at which anything was only in memory or in a disk's cache; null where that is
    /// not known of all.
    with_stake: Option<u64>,
    /// Number of cuts of power, by moment, at which disks lost what they had been handed and had not flushed; null where
    /// that is not known of all.
    of_caches: Option<u64>,
}

/// Shape of counted violations, for the schema.
#[derive(JsonSchema)]
#[allow(dead_code, reason = "only its schema is used; core does not know schemars")]
pub(super) struct FoundSchema {
    /// `lost`, `corrupt`, `phantom`, `resurrected`, `stale`, `contradiction`, `not-back`, `down` or `missed`.
    what: String,
    /// Number of violations.
    count: u64,
    /// Numbers of the first records.
    records: Vec<u64>,
}

/// Shape of an unexamined part of the stake, for the schema.
#[derive(JsonSchema)]
#[allow(dead_code, reason = "only its schema is used; core does not know schemars")]
pub(super) struct UnexaminedSchema {
    /// Reason why it was not examined.
    reason: String,
    /// Amount that was not examined.
    count: u64,
}

/// Shape of a bound, for the schema.
#[derive(JsonSchema)]
#[allow(dead_code, reason = "only its schema is used; core does not know schemars")]
pub(super) struct BoundSchema {
    /// Items or moments that were tried.
    trials: u64,
    /// Largest share of them that breaks (95 %); unexamined ones count as broken.
    share: f64,
}

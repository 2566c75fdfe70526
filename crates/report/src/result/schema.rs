//! The JSON schema of `result.json`, which `docs/result.schema.json` publishes, and the shapes of core's
//! types in it: core knows no schemas. Only tests need it, so that nobody else builds the library.

use schemars::JsonSchema;

use super::RunResult;

/// The schema as the published file holds it.
pub(super) fn schema() -> String {
    let schema = schemars::schema_for!(RunResult);
    let text = serde_json::to_string_pretty(&schema).expect("a schema is plain JSON");
    text + "\n"
}

/// The shape of [`Level`] in a result file, for the schema.
#[derive(JsonSchema)]
#[schemars(rename_all = "kebab-case")]
#[allow(dead_code, reason = "only its schema is used; core does not know schemars")]
pub(super) enum LevelSchema {
    Valid,
    Suspect,
    Invalid,
}

/// The shape of a promise in a result file, for the schema.
#[derive(JsonSchema)]
#[allow(dead_code, reason = "only its schema is used; core does not know schemars")]
pub(super) struct PromiseSchema {
    /// What is promised.
    level: String,
    /// Read back from the store itself.
    checked: bool,
}

/// The shape of [`Dataset`] in a result file, for the schema.
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

/// The shape of `Tally` in a result file, for the schema.
#[derive(JsonSchema)]
#[allow(dead_code, reason = "only its schema is used; core does not know schemars")]
pub(super) struct TallySchema {
    /// Values whose answer came: one for each record, one for each field where fields are written apart.
    reads: u64,
    /// Records whose answer came.
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
    /// Other runs that were proven to write the same records meanwhile, and how many reads found values of theirs.
    #[serde(default)]
    other_writers: Vec<OtherWriterSchema>,
    /// Illegal reads that found what this run itself wrote, or a run that was over.
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

/// The shape of another run in a result file, for the schema.
#[derive(JsonSchema)]
#[allow(dead_code, reason = "only its schema is used; core does not know schemars")]
struct OtherWriterSchema {
    session: u32,
    reads: u64,
}

/// The shape of evidence in a result file, for the schema.
#[derive(JsonSchema)]
#[allow(dead_code, reason = "only its schema is used; core does not know schemars")]
pub(super) struct EvidenceSchema {
    /// `reads-right`, `linearizable`, `nothing-lost`, `survives-process-kill`, `survives-power-loss`, `came-back`,
    /// `no-downtime`, `met-objective`, `own-limit` or `condition`.
    claimed: String,
    /// Name of the phase; null where it is about the whole run.
    phase: Option<String>,
    /// What it is held against; null where the store promises nothing of the kind.
    promise: Option<FaultModelSchema>,
    /// What was done to the store.
    exposure: ExposureSchema,
    /// At stake, examined, and as promised.
    kept: u64,
    /// At stake, examined, and not as promised.
    violations: Vec<FoundSchema>,
    /// The same, by something that the promise does not cover.
    excused: Vec<FoundSchema>,
    /// At stake, and not examined.
    unexamined: Vec<UnexaminedSchema>,
    /// No part of the stake: written over before it was examined.
    hidden: u64,
    /// No part of the stake: examined and there, but a copy was never in danger.
    lit: u64,
    /// What keeps it from being confirmed, whatever was counted.
    bars: Vec<String>,
    /// Sum of what was kept, broke, is excused and was not examined.
    stake: u64,
    /// How much of the stake was examined.
    examined: u64,
    /// `confirmed`, `nothing-to-show`, `inconclusive`, `refuted` or `observed`.
    status: String,
    /// Why it is inconclusive, if it is.
    reason: Option<String>,
    /// The most that may break all the same; null where nothing was tried.
    bound: Option<BoundSchema>,
}

/// The shape of a fault model, for the schema.
#[derive(JsonSchema)]
#[allow(dead_code, reason = "only its schema is used; core does not know schemars")]
pub(super) struct FaultModelSchema {
    /// The gravest fault: `running`, `process-end` or `power-loss`.
    fault: String,
    /// The copies of a record that it reaches: `all` or `some`.
    copies: String,
    /// The disk: `honours-flushes` or `any`.
    disk: String,
}

/// The shape of what was done to the store, for the schema.
#[derive(JsonSchema)]
#[allow(dead_code, reason = "only its schema is used; core does not know schemars")]
pub(super) struct ExposureSchema {
    /// Moments at which something was done.
    moments: u64,
    /// Nodes that hold data; 0 where that is not known.
    nodes: u64,
    /// Most of them that were dark at one moment.
    together: u64,
    /// Moments at which anything was in memory or in a disk's cache alone, of cuts of power; null where that is not known of
    /// all.
    with_stake: Option<u64>,
    /// Moments at which disks lost what they had been handed and had not flushed, of cuts of power; null where that is not
    /// known of all.
    of_caches: Option<u64>,
}

/// The shape of what was found, for the schema.
#[derive(JsonSchema)]
#[allow(dead_code, reason = "only its schema is used; core does not know schemars")]
pub(super) struct FoundSchema {
    /// `lost`, `corrupt`, `phantom`, `resurrected`, `stale`, `contradiction`, `not-back`, `down` or `missed`.
    what: String,
    /// How often.
    count: u64,
    /// Numbers of the first records.
    records: Vec<u64>,
}

/// The shape of what was not examined, for the schema.
#[derive(JsonSchema)]
#[allow(dead_code, reason = "only its schema is used; core does not know schemars")]
pub(super) struct UnexaminedSchema {
    /// Why.
    reason: String,
    /// How much.
    count: u64,
}

/// The shape of a bound, for the schema.
#[derive(JsonSchema)]
#[allow(dead_code, reason = "only its schema is used; core does not know schemars")]
pub(super) struct BoundSchema {
    /// Items or moments that were tried.
    trials: u64,
    /// Largest share of them that breaks (95 %); what is unexamined counts as broken.
    share: f64,
}

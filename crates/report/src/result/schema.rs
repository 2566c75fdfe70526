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
    writes_acknowledged: u64,
    writes_failed: u64,
    writes_indeterminate: u64,
    /// Illegal reads: corrupt, phantom, resurrected, stale, lost.
    anomalies: [u64; 5],
    /// Places with illegal reads that could not be read again when the phase was over.
    not_read_again: u64,
}

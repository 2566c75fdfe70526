//! What verification counted, as the schema of results tells it: core's own type knows no schemas.

use schemars::JsonSchema;

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
    #[schemars(default)]
    other_run: u64,
    writes_acknowledged: u64,
    writes_failed: u64,
    writes_indeterminate: u64,
    /// Illegal reads: corrupt, phantom, resurrected, stale, lost.
    anomalies: [u64; 5],
    /// Places with illegal reads that could not be read again when the phase was over.
    not_read_again: u64,
}

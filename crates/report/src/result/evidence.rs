//! Evidence of a run in `result.json`: its numbers, with the status and the sums that follow from them.

use kvdyno_core::evidence::{Bound, Evidence, OpenReason};
use serde::{Deserialize, Serialize};

/// A piece of evidence with its status.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EvidenceResult {
    /// Numbers of the evidence.
    #[serde(flatten)]
    pub evidence: Evidence,
    /// Amount at stake.
    pub stake: u64,
    /// Part of the stake that was examined.
    pub examined: u64,
    /// `confirmed`, `nothing-to-show`, `inconclusive`, `refuted` or `observed`.
    pub status: String,
    /// Reason why it is inconclusive, if it is.
    pub reason: Option<OpenReason>,
    /// Upper bound of the share that may break the claim all the same.
    pub bound: Option<Bound>,
}

impl From<Evidence> for EvidenceResult {
    fn from(evidence: Evidence) -> EvidenceResult {
        let status = evidence.status();
        EvidenceResult {
            stake: evidence.stake(),
            examined: evidence.examined(),
            status: status.name().replace(' ', "-"),
            reason: status.reason(),
            bound: evidence.bound(),
            evidence,
        }
    }
}

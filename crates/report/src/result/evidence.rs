//! The evidence of a run as `result.json` holds it: its numbers, with the status and the sums that follow from them.

use kvdyno_core::evidence::{Bound, Evidence, Reason};
use serde::{Deserialize, Serialize};

/// A piece of evidence and what it comes to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EvidenceResult {
    /// Its numbers.
    #[serde(flatten)]
    pub evidence: Evidence,
    /// How much was at stake.
    pub stake: u64,
    /// How much of the stake was examined.
    pub examined: u64,
    /// `confirmed`, `nothing-to-show`, `inconclusive`, `refuted` or `observed`.
    pub status: String,
    /// Why it is inconclusive, if it is.
    pub reason: Option<Reason>,
    /// The most that may break all the same.
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

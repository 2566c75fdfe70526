//! Claims: sentences that a suite states about a store, each with conditions on reported figures. A
//! claim is confirmed, refuted or inconclusive; what cannot be told confirms nothing.

use serde::{Deserialize, Serialize};

use super::condition::Condition;
use crate::evidence::{EvidenceStatus, Reason};

/// A sentence and what must hold for it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Claim {
    /// The sentence.
    pub says: String,
    /// Name of the store that it is about; none: any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub store: Option<String>,
    /// The claim is about two deployments of a store, the second against the first, with these among
    /// their settings, as `NAME=VALUE`: a comparison judges it, a run does not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub between: Option<[String; 2]>,
    /// All of these must hold; changes, if it is about two deployments. One that names no phase is
    /// about each measured phase.
    pub conditions: Vec<Condition>,
}

/// How a claim stands. Ordered from good to bad.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ClaimStatus {
    /// What was measured is as it says.
    Confirmed,
    /// It was not tried: nothing was at stake.
    NothingToShow,
    /// What was measured does not decide it.
    Inconclusive,
    /// What was measured is otherwise.
    Refuted,
}

impl ClaimStatus {
    /// The word used in results and on the terminal.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            ClaimStatus::Confirmed => "confirmed",
            ClaimStatus::NothingToShow => "nothing to show",
            ClaimStatus::Inconclusive => "inconclusive",
            ClaimStatus::Refuted => "refuted",
        }
    }

    /// The status of evidence that a claim stands like this.
    #[must_use]
    pub fn status(self) -> EvidenceStatus {
        match self {
            ClaimStatus::Confirmed => EvidenceStatus::Confirmed,
            ClaimStatus::NothingToShow => EvidenceStatus::NothingToShow,
            ClaimStatus::Inconclusive => EvidenceStatus::Inconclusive(Reason::NotKnown),
            ClaimStatus::Refuted => EvidenceStatus::Refuted,
        }
    }

    /// How all of them together stand: as the worst does. Nothing at all decides nothing.
    pub fn of_all(all: impl IntoIterator<Item = ClaimStatus>) -> ClaimStatus {
        all.into_iter().max().unwrap_or(ClaimStatus::Inconclusive)
    }
}

impl From<EvidenceStatus> for ClaimStatus {
    fn from(status: EvidenceStatus) -> ClaimStatus {
        match status {
            EvidenceStatus::Confirmed => ClaimStatus::Confirmed,
            // What nobody promises cannot be claimed.
            EvidenceStatus::NothingToShow | EvidenceStatus::Observed => ClaimStatus::NothingToShow,
            EvidenceStatus::Inconclusive(_) => ClaimStatus::Inconclusive,
            EvidenceStatus::Refuted => ClaimStatus::Refuted,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_refutation_outweighs_all() {
        use ClaimStatus::{Confirmed, Inconclusive, Refuted};
        assert_eq!(ClaimStatus::of_all([Confirmed, Confirmed]), Confirmed);
        assert_eq!(ClaimStatus::of_all([Confirmed, Inconclusive]), Inconclusive);
        assert_eq!(ClaimStatus::of_all([Inconclusive, Refuted, Confirmed]), Refuted);
        assert_eq!(ClaimStatus::of_all([]), Inconclusive, "nothing was looked at");
    }
}

//! Claims: sentences that a suite states about a store, each with conditions on reported figures. A
//! claim is confirmed, refuted, inconclusive, or has nothing to show; figures that are not known
//! confirm nothing.

use serde::{Deserialize, Serialize};

use super::condition::Condition;
use crate::evidence::{EvidenceStatus, OpenReason};

/// Sentence, with the conditions that must hold for it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Claim {
    /// Text of the sentence.
    pub says: String,
    /// Name of the store that it is about; `None` for any store.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub store: Option<String>,
    /// Settings, as `NAME=VALUE`, of two deployments of a store, if the claim is about the second
    /// against the first. A comparison judges such a claim, a run does not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub between: Option<[String; 2]>,
    /// Conditions, all of which must hold. They are changes if the claim is about two deployments. A
    /// condition that names no phase is about each measured phase.
    pub conditions: Vec<Condition>,
}

/// Status of a claim, ordered from good to bad.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ClaimStatus {
    /// The figures are as the claim says.
    Confirmed,
    /// The claim was not tried: nothing was at stake.
    NothingToShow,
    /// The figures do not decide it.
    Inconclusive,
    /// The figures contradict it.
    Refuted,
}

impl ClaimStatus {
    /// Returns the word used in results and on the terminal.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            ClaimStatus::Confirmed => "confirmed",
            ClaimStatus::NothingToShow => "nothing to show",
            ClaimStatus::Inconclusive => "inconclusive",
            ClaimStatus::Refuted => "refuted",
        }
    }

    /// Returns the status of evidence that corresponds to this status.
    #[must_use]
    pub fn status(self) -> EvidenceStatus {
        match self {
            ClaimStatus::Confirmed => EvidenceStatus::Confirmed,
            ClaimStatus::NothingToShow => EvidenceStatus::NothingToShow,
            ClaimStatus::Inconclusive => EvidenceStatus::Inconclusive(OpenReason::NotKnown),
            ClaimStatus::Refuted => EvidenceStatus::Refuted,
        }
    }

    /// Returns the status of all of them together: the worst one; [`ClaimStatus::Inconclusive`] if
    /// there are none.
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

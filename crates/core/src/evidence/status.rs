//! The only judge of evidence: its status, and the reasons for which it may be open.

use serde::{Deserialize, Serialize};

use super::Evidence;

/// Reason for which a claim is open, or a part of the stake was not examined.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OpenReason {
    /// A fault was not done.
    FaultNotDone,
    /// A repair failed, so that nobody knows what the node still has.
    RepairFailed,
    /// A node was still starting when the limit had passed.
    StillStarting,
    /// The disk lost data that it said it had flushed, before the losses that this would explain.
    DiskLied,
    /// The disks that were cut off had got next to nothing of the acknowledged data: it lies elsewhere.
    LiesElsewhere,
    /// The machine failed, or the measurement is invalid.
    MachineFailed,
    /// The client or its machine may be the reason why the store did no better.
    ClientLimited,
    /// Something was gone before the fault that the claim is about.
    LostBefore,
    /// Writes were written over before they were examined: a loss of them is not seen.
    Overwritten,
    /// Records were not read back.
    NotReadBack,
    /// Reads could not be judged: the ledger lost track, or records with wrong reads could not be read again.
    NotJudged,
    /// Agents that wrote the records were lost.
    AgentLost,
    /// Another run wrote the same records.
    OtherRun,
    /// The phase was cut short.
    CutShort,
    /// The figure does not exist, or only a bound of it is known that does not decide.
    NotKnown,
    /// Verification was off.
    Unverified,
    /// A fault that the promise does not cover caused the violation.
    BeyondPromise,
}

impl OpenReason {
    /// All reasons, the one that is told first in front.
    pub const ALL: [OpenReason; 17] = [
        OpenReason::FaultNotDone,
        OpenReason::RepairFailed,
        OpenReason::StillStarting,
        OpenReason::DiskLied,
        OpenReason::LiesElsewhere,
        OpenReason::MachineFailed,
        OpenReason::ClientLimited,
        OpenReason::LostBefore,
        OpenReason::Overwritten,
        OpenReason::NotReadBack,
        OpenReason::NotJudged,
        OpenReason::AgentLost,
        OpenReason::OtherRun,
        OpenReason::CutShort,
        OpenReason::NotKnown,
        OpenReason::Unverified,
        OpenReason::BeyondPromise,
    ];
}

/// Status of a piece of evidence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EvidenceStatus {
    /// Something was at stake, all of it was examined, and nothing broke the promise.
    Confirmed,
    /// Nothing was at stake.
    NothingToShow,
    /// The claim is open, for this reason.
    Inconclusive(OpenReason),
    /// The promise was broken.
    Refuted,
    /// There is no promise: the figures are all there is.
    Observed,
}

impl EvidenceStatus {
    /// Returns the word of results and reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            EvidenceStatus::Confirmed => "confirmed",
            EvidenceStatus::NothingToShow => "nothing to show",
            EvidenceStatus::Inconclusive(_) => "inconclusive",
            EvidenceStatus::Refuted => "refuted",
            EvidenceStatus::Observed => "observed",
        }
    }

    /// Returns the reason for which it is open, if it is.
    #[must_use]
    pub fn reason(self) -> Option<OpenReason> {
        match self {
            EvidenceStatus::Inconclusive(reason) => Some(reason),
            _ => None,
        }
    }
}

impl Evidence {
    /// Returns the status of this evidence. The order of the questions is the whole rule: a promise that was broken is
    /// refuted, whatever else failed, was undone or came later.
    #[must_use]
    pub fn status(&self) -> EvidenceStatus {
        if self.promise.is_none() {
            return EvidenceStatus::Observed;
        }
        if self.violated() > 0 {
            return EvidenceStatus::Refuted;
        }
        // The reason of an open claim does not depend on the order in which the bars were added.
        if let Some(reason) = self.bars.iter().min() {
            return EvidenceStatus::Inconclusive(*reason);
        }
        let left = self.left();
        if left as f64 > self.claimed.tolerance() * self.stake() as f64 {
            let most = self.unexamined.iter().max_by_key(|left| (left.count, left.reason));
            return EvidenceStatus::Inconclusive(
                most.map_or(OpenReason::NotJudged, |left| left.reason),
            );
        }
        if self.hidden > 0 {
            return EvidenceStatus::Inconclusive(OpenReason::Overwritten);
        }
        if self.kept == 0 {
            return EvidenceStatus::NothingToShow;
        }
        EvidenceStatus::Confirmed
    }
}

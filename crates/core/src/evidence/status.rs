//! The one judge: the status that evidence comes to, and the reasons for which it may be open.

use serde::{Deserialize, Serialize};

use super::Evidence;

/// A reason for which a claim is open, or a part of the stake was not examined.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reason {
    /// A fault was not done.
    FaultNotDone,
    /// A repair failed, so that nobody knows what the node still has.
    RepairFailed,
    /// A node was still starting when the limit had passed.
    StillStarting,
    /// The disk did not keep what it said that it had flushed, before what that would explain.
    DiskLied,
    /// The disks that were cut off had been given next to nothing of what was acknowledged: it lies elsewhere.
    LiesElsewhere,
    /// The machine failed, or the measurement is invalid.
    MachineFailed,
    /// The client or its machine may be why the store did no better.
    ClientLimited,
    /// Something was gone before the fault that the claim is about.
    LostBefore,
    /// Writes were written over before they were examined: what was lost of them is not seen.
    Overwritten,
    /// Records were not read back.
    NotReadBack,
    /// Reads could not be judged: the ledger lost track, or what was wrong could not be read again.
    NotJudged,
    /// The agents that wrote it were lost.
    AgentLost,
    /// Another run wrote the same records.
    OtherRun,
    /// The phase was cut short.
    CutShort,
    /// The figure does not exist, or only a bound of it is known that does not decide.
    NotKnown,
    /// Verification was off.
    Unverified,
    /// A fault took it that the promise does not cover.
    BeyondPromise,
}

impl Reason {
    /// Every reason.
    pub const ALL: [Reason; 17] = [
        Reason::FaultNotDone,
        Reason::RepairFailed,
        Reason::StillStarting,
        Reason::DiskLied,
        Reason::LiesElsewhere,
        Reason::MachineFailed,
        Reason::ClientLimited,
        Reason::LostBefore,
        Reason::Overwritten,
        Reason::NotReadBack,
        Reason::NotJudged,
        Reason::AgentLost,
        Reason::OtherRun,
        Reason::CutShort,
        Reason::NotKnown,
        Reason::Unverified,
        Reason::BeyondPromise,
    ];
}

/// Status of a piece of evidence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EvidenceStatus {
    /// Something was at stake, all of it was examined, and nothing broke the promise.
    Confirmed,
    /// Nothing was at stake.
    NothingToShow,
    /// It is open.
    Inconclusive(Reason),
    /// The promise was broken.
    Refuted,
    /// There is no promise: the figures are all there is.
    Observed,
}

impl EvidenceStatus {
    /// The word of results and reports.
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

    /// The reason for which it is open, if it is.
    #[must_use]
    pub fn reason(self) -> Option<Reason> {
        match self {
            EvidenceStatus::Inconclusive(reason) => Some(reason),
            _ => None,
        }
    }
}

impl Evidence {
    /// Returns the status that this evidence comes to. The order of the questions is the whole of the rule: a promise that
    /// was broken is refuted, whatever else failed, was undone or came later.
    #[must_use]
    pub fn status(&self) -> EvidenceStatus {
        if self.promise.is_none() {
            return EvidenceStatus::Observed;
        }
        if self.violated() > 0 {
            return EvidenceStatus::Refuted;
        }
        // What is open has the same reason however it was gathered.
        if let Some(reason) = self.bars.iter().min() {
            return EvidenceStatus::Inconclusive(*reason);
        }
        let left = self.left();
        if left as f64 > self.claimed.tolerance() * self.stake() as f64 {
            let most = self.unexamined.iter().max_by_key(|left| (left.count, left.reason));
            return EvidenceStatus::Inconclusive(
                most.map_or(Reason::NotJudged, |left| left.reason),
            );
        }
        if self.hidden > 0 {
            return EvidenceStatus::Inconclusive(Reason::Overwritten);
        }
        if self.kept == 0 {
            return EvidenceStatus::NothingToShow;
        }
        EvidenceStatus::Confirmed
    }
}

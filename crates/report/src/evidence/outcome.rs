//! Table of docs/CLAIMS.md: meaning of each status for an exit code, for a CI server and for its colour.

use kvdyno_core::evidence::EvidenceStatus;

use crate::result::Level;

/// Outcome of a status for a check that must pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum StatusOutcome {
    /// The claim was shown.
    Passed,
    /// The claim was refuted.
    Failed,
    /// The claim was asked for, and not decided.
    Errored,
    /// The claim was not asked for and not decided, or there is nothing to decide.
    Skipped,
}

/// Returns the outcome of a status; `is_asked` is true if a suite's claim or a requirement asks for it, and false if only
/// the run implies it.
#[must_use]
pub fn outcome(status: EvidenceStatus, is_asked: bool) -> StatusOutcome {
    match status {
        EvidenceStatus::Confirmed => StatusOutcome::Passed,
        EvidenceStatus::Refuted => StatusOutcome::Failed,
        EvidenceStatus::Inconclusive(_) | EvidenceStatus::NothingToShow if is_asked => {
            StatusOutcome::Errored
        }
        EvidenceStatus::Inconclusive(_)
        | EvidenceStatus::NothingToShow
        | EvidenceStatus::Observed => StatusOutcome::Skipped,
    }
}

/// Returns the level that colours a status; `None` where it is neither good nor bad.
#[must_use]
pub fn level(status: EvidenceStatus) -> Option<Level> {
    match status {
        EvidenceStatus::Confirmed => Some(Level::Valid),
        EvidenceStatus::Refuted => Some(Level::Invalid),
        EvidenceStatus::Inconclusive(_) | EvidenceStatus::NothingToShow => Some(Level::Suspect),
        EvidenceStatus::Observed => None,
    }
}

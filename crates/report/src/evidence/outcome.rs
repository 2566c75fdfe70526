//! The table that docs/CLAIMS.md prints: what each status is to a process that ends, to a CI server and to the eye.

use kvdyno_core::evidence::EvidenceStatus;

use crate::result::Level;

/// What a status is to somebody who waits for a pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum StatusOutcome {
    /// It was shown.
    Passed,
    /// It is not so.
    Failed,
    /// Somebody asked, and it was not decided.
    Errored,
    /// Nobody asked, and it was not decided; or there is nothing to decide.
    Skipped,
}

/// What a status is; `is_asked` if a suite's claim or a requirement asks for it, rather than that the run implies it.
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

/// How a status is coloured; `None` where it is neither good nor bad.
#[must_use]
pub fn level(status: EvidenceStatus) -> Option<Level> {
    match status {
        EvidenceStatus::Confirmed => Some(Level::Valid),
        EvidenceStatus::Refuted => Some(Level::Invalid),
        EvidenceStatus::Inconclusive(_) | EvidenceStatus::NothingToShow => Some(Level::Suspect),
        EvidenceStatus::Observed => None,
    }
}

//! Text of a durability promise with how far it is known: evidence of a run takes precedence over what the store says of
//! itself.

use kvdyno_core::evidence::{Claimed, EvidenceStatus};
use kvdyno_core::store::Durability;

use super::of_run;
use crate::result::StoreRun;

/// Returns the status of the durability that the run's store promises: refuted if any part of the promise is, else the
/// status of its gravest part.
fn durability_status(run: &StoreRun) -> EvidenceStatus {
    let kill = || of_run(run, Claimed::SurvivesProcessKill).map(|evidence| evidence.status());
    let power = || of_run(run, Claimed::SurvivesPowerLoss).map(|evidence| evidence.status());
    let (gravest, lesser) = match run.store.durability.level {
        Durability::None => return EvidenceStatus::Observed,
        Durability::ProcessKill => (kill(), None),
        Durability::PowerLoss => (power(), kill()),
    };
    match lesser {
        Some(refuted @ EvidenceStatus::Refuted) => refuted,
        _ => gravest.unwrap_or(EvidenceStatus::NothingToShow),
    }
}

/// Describes a promise of durability with how far it is known, in few words: `survives power loss (setting read back)`.
pub(crate) fn durability_text(run: &StoreRun) -> String {
    let promise = run.store.durability;
    let known = match durability_status(run) {
        EvidenceStatus::Refuted => "refuted",
        EvidenceStatus::Confirmed => "shown",
        EvidenceStatus::Inconclusive(_)
        | EvidenceStatus::NothingToShow
        | EvidenceStatus::Observed => promise.origin_text(),
    };
    format!("{} ({known})", promise.level.describe())
}

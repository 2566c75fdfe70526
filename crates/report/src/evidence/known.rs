//! A promise of durability with how far it is known: what a run has shown goes before what the store says of itself.

use kvdyno_core::evidence::{Claimed, EvidenceStatus};
use kvdyno_core::store::Durability;

use super::of_run;
use crate::result::StoreRun;

/// What a run has shown of the durability that its store promises: refuted if any part of the promise is, else as the
/// gravest part stands.
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

/// A promise of durability with how far it is known, in few words: `survives power loss (setting read back)`.
pub(crate) fn durability_text(run: &StoreRun) -> String {
    let promise = run.store.durability;
    let known = match durability_status(run) {
        EvidenceStatus::Refuted => "refuted",
        EvidenceStatus::Confirmed => "shown",
        EvidenceStatus::Inconclusive(_)
        | EvidenceStatus::NothingToShow
        | EvidenceStatus::Observed => promise.told(),
    };
    format!("{} ({known})", promise.level.describe())
}

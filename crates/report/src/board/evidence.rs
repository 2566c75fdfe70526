//! Evidence of power cuts for the board. What cuts of power have shown of a store holds for its other results, too, as
//! long as store, version and setup are the same; so the board names beside a promise the result that shows it.

use kvdyno_core::evidence::{Claimed, EvidenceStatus};

use crate::evidence::{cut_figures, of_run};
use crate::result::StoreRun;

/// Evidence of power cuts in one result for or against the promise of its store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CutEvidence {
    /// True if the promise was not kept.
    pub is_against: bool,
    /// Cuts, acknowledged writes and lost ones, in words.
    pub figures: String,
}

impl CutEvidence {
    /// Reads the evidence off a run; `None` if the run neither shows nor refutes its store's promise.
    pub fn of(run: &StoreRun) -> Option<CutEvidence> {
        let cuts = of_run(run, Claimed::SurvivesPowerLoss)?;
        let is_against = match cuts.status() {
            EvidenceStatus::Refuted => true,
            EvidenceStatus::Confirmed => false,
            EvidenceStatus::Inconclusive(_)
            | EvidenceStatus::NothingToShow
            | EvidenceStatus::Observed => return None,
        };
        Some(CutEvidence { is_against, figures: cut_figures(&cuts) })
    }
}

/// Result that shows or refutes a promise, for another result that has no evidence of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ShownElsewhere {
    /// Evidence in words.
    pub text: String,
    /// Name of the result's report, without extension.
    pub report: String,
}

//! What cuts of power have shown of a store holds for its other results, too, as long as store, version and setup are the
//! same: on the board a promise says which result shows it.

use kvdyno_core::evidence::{Claimed, EvidenceStatus};

use crate::evidence::{cut_figures, of_run};
use crate::result::StoreRun;

/// What cuts of power in one result say of the promise of its store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CutEvidence {
    /// It was not kept.
    pub is_against: bool,
    /// Cuts, acknowledged writes and lost ones, in words.
    pub figures: String,
}

impl CutEvidence {
    /// `None` if the run neither shows nor refutes its store's promise.
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

/// Where a promise is shown, or refuted, for a result that does not do so itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ShownElsewhere {
    /// In words.
    pub text: String,
    /// Name of the result's report, without an ending.
    pub report: String,
}

//! What cuts of power have shown of a store holds for its other results, too, as long as store, version and setup are the
//! same: on the board a promise says which result shows it.

use crate::power::PowerCuts;
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
        let (cuts, promised) = (PowerCuts::of(run)?, run.store.durability.level);
        let is_against = cuts.refutes(promised);
        let decides = is_against || cuts.shows(promised);
        decides.then(|| CutEvidence { is_against, figures: cuts.figures() })
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

//! What cuts of power have shown of a store holds for its other results, too, as long as store, version and setup are the
//! same: on the board a promise says which result shows it.

use std::collections::BTreeMap;

use super::entries::Entry;
use crate::power::PowerCuts;
use crate::result::StoreRun;

/// What cuts of power in one result say of the promise of its store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Evidence {
    /// It was not kept.
    is_against: bool,
    /// Cuts, acknowledged writes and lost ones, in words.
    figures: String,
}

impl Evidence {
    /// `None` if the run neither shows nor refutes its store's promise.
    pub fn of(run: &StoreRun) -> Option<Evidence> {
        let (cuts, promised) = (PowerCuts::of(run)?, run.store.durability.level);
        let is_against = cuts.refutes(promised);
        let decides = is_against || cuts.shows(promised);
        decides.then(|| Evidence { is_against, figures: cuts.figures() })
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

/// Gives each of `entries`, the oldest first, that shows nothing itself the newest result of the same store, version, setup
/// and promise that does. A refutation goes before all that shows the contrary.
pub(super) fn share(entries: &mut [Entry]) {
    let mut best: BTreeMap<_, (bool, ShownElsewhere)> = BTreeMap::new();
    for entry in entries.iter() {
        let Some(Evidence { is_against, figures }) = &entry.evidence else { continue };
        let known = best.get(&key(entry));
        if known.is_some_and(|(against, _)| *against && !is_against) {
            continue;
        }
        let what = if *is_against { "refuted" } else { "shown" };
        let text = format!("{what} by another result: {figures}");
        let report = entry.report.clone();
        best.insert(key(entry), (*is_against, ShownElsewhere { text, report }));
    }
    for entry in entries.iter_mut().filter(|entry| entry.evidence.is_none()) {
        entry.shown_elsewhere = best.get(&key(entry)).map(|(_, shown)| shown.clone());
    }
}

/// What must be the same.
fn key(entry: &Entry) -> [String; 4] {
    let Entry { store, version, setup, class, .. } = entry;
    [store.clone(), version.clone(), setup.clone(), class.durability.clone()]
}

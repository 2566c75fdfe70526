//! On the page: how the claims stand, and what each fault cost.

use crate::account::lines::{examples, rows, stale_text, writes_text};
use crate::cell::Cell;
use crate::result::RunResult;
use crate::terminal::{condition_text, reach_text};

use super::brief::cut;

/// Most rows of each table on the page.
const MOST: usize = 200;

/// A claim on the page.
pub(super) struct ClaimCard {
    pub store: String,
    pub says: String,
    pub standing: Cell,
    pub conditions: Vec<String>,
    pub reach: String,
}

/// The claims of all stores.
pub(super) fn claims(result: &RunResult, labels: &[String]) -> Vec<ClaimCard> {
    let all = result.runs.iter().zip(labels);
    let cards = all.flat_map(|(run, label)| {
        run.claims.iter().map(move |claim| ClaimCard {
            store: cut(label),
            says: cut(&claim.says),
            standing: Cell::Status(claim.standing.status()),
            conditions: claim
                .conditions
                .iter()
                .take(MOST)
                .map(|c| cut(&condition_text(c)))
                .collect(),
            reach: cut(&reach_text(claim)),
        })
    });
    cards.take(MOST).collect()
}

/// The rows of what faults cost, each with store and phase before it.
pub(super) fn costs(result: &RunResult, labels: &[String]) -> Vec<Vec<String>> {
    let mut all = Vec::new();
    for (run, label) in result.runs.iter().zip(labels) {
        for phase in &run.phases {
            for row in rows(&phase.account) {
                let place = [cut(label), cut(&phase.name)];
                all.push(
                    place.into_iter().chain(row.iter().map(|cell| cut(&cell.text()))).collect(),
                );
            }
        }
    }
    all.truncate(MOST);
    all
}

/// What became of writes and reads, as (store, phase, sentence).
pub(super) fn outcomes(result: &RunResult, labels: &[String]) -> Vec<[String; 3]> {
    let mut all = Vec::new();
    for (run, label) in result.runs.iter().zip(labels) {
        for phase in &run.phases {
            let mut say = |text: String| all.push([cut(label), cut(&phase.name), cut(&text)]);
            phase.stale.iter().for_each(|stale| say(stale_text(stale)));
            if let Some(writes) = &phase.writes {
                say(writes_text(writes));
                examples(writes).for_each(&mut say);
            }
        }
    }
    all.truncate(MOST);
    all
}

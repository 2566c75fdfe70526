//! The suite's claims, each with its status, its conditions and its reach.

use super::subject::StoreSubject;
use super::{Block, Sentence};
use crate::cell::Cell;
use crate::wording::{condition_text, reach_text};

/// Builds a sentence for each claim.
pub(super) fn blocks(store: &StoreSubject<'_>) -> Vec<Block> {
    let claims = store.run.claims.iter().map(|claim| {
        let because = claim.conditions.iter().map(condition_text).chain([reach_text(claim)]);
        let lead = Cell::Status(claim.standing.status());
        Sentence { lead, ..Sentence::new(&claim.says).over(because.map(Sentence::new)) }
    });
    Block::list(claims).into_iter().collect()
}

//! Findings about each store: what verification saw, what was found out beyond the table, and what it leaves open.

use kvdyno_core::evidence::EvidenceStatus;

use super::subject::StoreSubject;
use super::{Block, Sentence, Tone};
use crate::evidence;
use crate::lines;
use crate::result::LinearizabilityAnswer;
use crate::wording::{linearizability_text, verification_line};

/// Builds what verification saw, and what the sampled histories of each phase say.
pub(super) fn verification(store: &StoreSubject<'_>) -> Vec<Block> {
    let tone = match evidence::reads_status(store.run) {
        Some(EvidenceStatus::Confirmed) => Tone::Good,
        Some(EvidenceStatus::Refuted) => Tone::Bad,
        _ => Tone::Plain,
    };
    let mut told = vec![Sentence::new(verification_line(store.run)).toned(tone)];
    told.extend(store.run.phases.iter().filter_map(|phase| {
        let history = phase.linearizability.as_ref()?;
        let tone = match history.answer {
            LinearizabilityAnswer::Violated => Tone::Bad,
            LinearizabilityAnswer::Ok | LinearizabilityAnswer::Unknown => Tone::Plain,
        };
        Some(Sentence::of(&phase.name, linearizability_text(history)).toned(tone))
    }));
    told.into_iter().map(Block::Paragraph).collect()
}

/// Builds what was found out about the store beyond its table.
pub(super) fn findings(store: &StoreSubject<'_>) -> Vec<Block> {
    lines::findings(store.all.result, store.run).into_iter().map(Block::sentence).collect()
}

/// Builds what the figures leave open, and what follows from agents having carried the load.
pub(super) fn notes(store: &StoreSubject<'_>) -> Vec<Block> {
    let notes = store.run.notes.iter().chain(&store.run.of_agents);
    notes.map(|line| Block::Paragraph(Sentence::of("note", line))).collect()
}

//! The course of each phase: its limit, when it settled, where it left its level, and what servers did beside.

use super::subject::StoreSubject;
use super::{Block, Detail, Sentence};
use crate::phase_events::{course_lines, departures};
use crate::result::PhaseResult;

/// Builds a sentence for each of these. A terminal tells unasked what was not as it should be only.
pub(super) fn blocks(store: &StoreSubject<'_>) -> Vec<Block> {
    let of_phase = |phase: &PhaseResult| {
        let departures = departures(phase);
        let told = course_lines(store.run, phase).into_iter().map(|line| {
            let detail = match departures.contains(&line) {
                true => Detail::Always,
                false => Detail::Demand,
            };
            Sentence::of(&phase.name, line).shown(detail)
        });
        told.collect::<Vec<_>>()
    };
    Block::list(store.run.phases.iter().flat_map(of_phase)).into_iter().collect()
}

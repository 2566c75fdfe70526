//! After several stores: which is ahead in each phase, below whose figures are doubted.

use super::subject::Subject;
use super::{Block, Sentence, Tone};
use crate::ranking::PhaseRanking;

/// Builds how the stores stand; nothing of one store.
pub(super) fn blocks(subject: &Subject<'_>) -> Vec<Block> {
    let Some(ranking) = &subject.ranking else { return Vec::new() };
    let caution = |words: &String| Sentence::of("caution", words).toned(Tone::Doubtful);
    let phase = |phase: &PhaseRanking| {
        [&phase.rate, &phase.p99].map(|words| Sentence::of(&phase.test, words))
    };
    let doubts = ranking.doubts.iter().map(caution);
    let phases = ranking.phases.iter().flat_map(phase);
    let cautions = ranking.cautions.iter().map(caution);
    Block::list(doubts.chain(phases).chain(cautions)).into_iter().collect()
}

//! The verdict of each store: what the store promises, how it is judged and what speaks against its figures.

use super::heading::status;
use super::subject::StoreSubject;
use super::{Block, Detail, Sentence, Tone};
use crate::cell::Cell;
use crate::reasons::told_reasons;
use crate::result::{Level, Status, StoreRun};
use crate::wording::{promises, testbed_summary};

/// Builds what a reader must see first.
pub(super) fn blocks(store: &StoreSubject<'_>) -> Vec<Block> {
    let run = store.run;
    let (durability, consistency) = promises(run);
    let fact = |name: &str, value: String| (name.to_owned(), Cell::Text(value));
    let mut facts = vec![fact("durability", durability), fact("consistency", consistency)];
    if *store.label != run.store.url {
        facts.insert(0, fact("", run.store.url.clone()));
    }
    let mut blocks = vec![Block::Facts(facts)];
    blocks.extend(run.testbed.iter().map(|testbed| {
        let lead = format!("testbed {}", testbed.request);
        Block::Paragraph(Sentence::of(lead, testbed_summary(testbed)))
    }));
    let word = level(run, store.all.is_live && run.status == Status::Running);
    let verdict = Sentence { text: word, ..Sentence::of("verdict", "") };
    blocks.push(Block::Paragraph(verdict));
    let reasons = told_reasons(run).into_iter().filter(|reason| !reason.remark);
    let reasons = Block::list(reasons.map(|reason| Sentence::new(reason.line())));
    let is_valid = run.verdict.as_ref().is_some_and(|verdict| verdict.level == Level::Valid);
    if reasons.is_none() && is_valid && run.status == Status::Complete {
        let nothing = Sentence::new("nothing speaks against these figures");
        blocks.push(Block::Paragraph(nothing.shown(Detail::Page)));
    }
    blocks.extend(reasons);
    let ended = status(&run.status, store.all.is_live);
    blocks.extend(ended.map(|status| {
        Block::Paragraph(Sentence::new(format!("the run {status}")).toned(Tone::Bad))
    }));
    blocks
}

/// Builds what is worth knowing and no reason to doubt the figures.
pub(super) fn remarks(store: &StoreSubject<'_>) -> Vec<Block> {
    let remarks = told_reasons(store.run).into_iter().filter(|reason| reason.remark);
    remarks.map(|remark| Block::Paragraph(Sentence::of("note", remark.line()))).collect()
}

/// Returns how a store is judged. Of one that is still measured only what is over is judged: nothing against it is no
/// verdict yet.
fn level(run: &StoreRun, goes_on: bool) -> Cell {
    match (&run.verdict, goes_on) {
        (None, _) => Cell::Level(None, "not judged".to_owned()),
        (Some(verdict), false) => Cell::Level(Some(verdict.level), verdict.level.name().to_owned()),
        (Some(verdict), true) if verdict.level != Level::Valid => {
            Cell::Level(Some(verdict.level), format!("{} so far", verdict.level.name()))
        }
        (Some(_), true) => {
            let over = match run.phases.len() {
                1 => "1 phase that is over".to_owned(),
                count => format!("{count} phases that are over"),
            };
            Cell::Level(None, format!("nothing against {over}"))
        }
    }
}

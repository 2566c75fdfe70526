//! Faults: what was done to the testbed, what each fault cost, and what became of the writes.

use super::subject::StoreSubject;
use super::{Block, DataColumn, DataRow, DataTable, Detail, RowKind, Sentence, Tone};
use crate::account::lines::{ACCOUNT_LINES, PLACE_LABELS, examples, rows, stale_text, writes_text};
use crate::result::{PhaseResult, moments};
use crate::wording::fault_text;

/// Builds what was done to nodes, in the order in which it was done.
pub(super) fn done(store: &StoreSubject<'_>) -> Vec<Block> {
    let done = store.run.phases.iter().flat_map(|phase| {
        let faults = moments(&phase.faults).into_iter();
        faults.map(|fault| Sentence::of(&phase.name, fault_text(&fault)))
    });
    Block::list(done).into_iter().collect()
}

/// Builds a table for each phase with faults.
pub(super) fn costs(store: &StoreSubject<'_>) -> Vec<Block> {
    store.run.phases.iter().filter_map(|phase| cost_table(phase).block()).collect()
}

fn cost_table(phase: &PhaseResult) -> DataTable {
    let [fault, at, of] = PLACE_LABELS;
    let place = [DataColumn::words(fault), DataColumn::figures(at), DataColumn::words(of)];
    let columns = ACCOUNT_LINES
        .iter()
        .map(|line| DataColumn { meaning: line.meaning, ..DataColumn::figures(line.label) });
    let rows = rows(&phase.account).into_iter().map(|cells| {
        let is_first = !cells[0].text().is_empty();
        let kind = if is_first { RowKind::Whole } else { RowKind::Part };
        DataRow { kind, ..DataRow::new(cells) }
    });
    DataTable {
        caption: phase.name.clone(),
        columns: place.into_iter().chain(columns).collect(),
        rows: rows.collect(),
        names_above: true,
    }
}

/// Builds how far stale reads were behind, what became of the writes, and each write that is gone. A terminal is not told
/// of a phase without faults whose writes are all there.
pub(super) fn writes(store: &StoreSubject<'_>) -> Vec<Block> {
    let told = store.run.phases.iter().flat_map(|phase| {
        let stale = phase.stale.iter().map(|stale| Sentence::of(&phase.name, stale_text(stale)));
        stale.chain(of_writes(phase)).collect::<Vec<_>>()
    });
    Block::list(told).into_iter().collect()
}

fn of_writes(phase: &PhaseResult) -> Option<Sentence> {
    let writes = phase.writes.as_ref()?;
    let differ = writes.copies.as_ref().map_or(0, |copies| copies.differ);
    let wrong = writes.lost + writes.unknown + writes.indeterminate + differ;
    let examples: Vec<Sentence> = examples(writes).map(Sentence::new).collect();
    let is_quiet = phase.account.is_empty() && wrong == 0 && examples.is_empty();
    let told = Sentence::of(&phase.name, writes_text(writes)).over(examples);
    Some(told.toned(if writes.lost > 0 { Tone::Bad } else { Tone::Plain }).shown(if is_quiet {
        Detail::Written
    } else {
        Detail::Always
    }))
}

//! The errors that operations ended in, by phase and class.

use super::subject::StoreSubject;
use super::{Block, DataColumn, DataRow, DataTable, Detail, Sentence};
use crate::cell::Cell;
use crate::result::{ErrorResult, PhaseResult};
use crate::wording::certainty_text;

/// Builds the table of all errors.
pub(super) fn blocks(store: &StoreSubject<'_>) -> Vec<Block> {
    let phases = store.run.phases.iter();
    let errors = phases.flat_map(|phase| phase.errors.iter().map(move |error| row(phase, error)));
    let table = DataTable {
        columns: vec![
            DataColumn::words("Phase"),
            DataColumn::words("Class"),
            DataColumn::words("Applied?"),
            DataColumn::figures("Count"),
            DataColumn::figures("First after"),
            DataColumn::words("First message"),
        ],
        rows: errors.collect(),
        ..DataTable::default()
    };
    let none = Sentence::new("no operation ended in an error").shown(Detail::Page);
    vec![table.block().unwrap_or(Block::Paragraph(none))]
}

fn row(phase: &PhaseResult, error: &ErrorResult) -> DataRow {
    DataRow::new([
        Cell::Text(phase.name.clone()),
        Cell::Text(error.class.name().to_owned()),
        Cell::Text(certainty_text(error.certainty).to_owned()),
        Cell::Count(error.count),
        Cell::Time(error.first_at_ns),
        Cell::Text(error.message()),
    ])
}

//! Figures that the driver of a store noticed in each phase.

use super::subject::{StoreSubject, detail_of};
use super::{Block, DataColumn, DataRow, DataTable};
use crate::cell::Cell;
use crate::result::{FigureResult, PhaseResult};

/// Builds the table of all figures.
pub(super) fn blocks(store: &StoreSubject<'_>) -> Vec<Block> {
    let figures = store
        .run
        .phases
        .iter()
        .flat_map(|phase| phase.figures.iter().map(move |figure| row(phase, figure)));
    let table = DataTable {
        columns: vec![
            DataColumn::words("Phase"),
            DataColumn::words("Figure"),
            DataColumn::figures("Value"),
            DataColumn::words("Made of"),
            DataColumn::words("Warning"),
        ],
        rows: figures.collect(),
        ..DataTable::default()
    };
    table.block().into_iter().collect()
}

fn row(phase: &PhaseResult, figure: &FigureResult) -> DataRow {
    let words =
        |text: &str| if text.is_empty() { Cell::Blank } else { Cell::Text(text.to_owned()) };
    let cells = [
        Cell::Text(phase.name.clone()),
        Cell::Text(figure.name.clone()),
        Cell::Figure(figure.value, figure.unit),
        words(&figure.detail),
        words(figure.warning.as_deref().unwrap_or_default()),
    ];
    DataRow { detail: detail_of(phase), ..DataRow::new(cells) }
}

//! Figures that were published for a suite, to be set beside the measured ones at full scale.

use serde::{Deserialize, Serialize};

use super::document::Item;
use super::error::{Problem, SuiteError};
use super::reader::{Fields, Value};

/// Keys of `[[published]]`.
pub(super) const PUBLISHED_KEYS: [&str; 6] =
    ["store", "title", "machine", "columns", "rows", "notes"];

/// Figures that were published for one store.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PublishedSetup {
    /// Name of the system, as in a store's profile: `mongodb`.
    pub store: String,
    /// Version and settings, such as `MongoDB 2.0.0, journaling on`.
    pub title: String,
    /// Machine that it ran on.
    pub machine: String,
    /// One row for each phase that has figures.
    pub rows: Vec<PublishedRow>,
    /// Further notes on the figures.
    pub notes: Vec<String>,
}

/// Published figures of one phase; a figure that was not published is `None`. Latencies in ms.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PublishedRow {
    /// Name of the phase in the plan.
    pub phase: String,
    /// Requests a second.
    pub rate: Option<f64>,
    /// Length of the phase, ms.
    pub millis: Option<f64>,
    /// Median.
    pub p50: Option<f64>,
    /// 90th percentile.
    pub p90: Option<f64>,
    /// 99th percentile.
    pub p99: Option<f64>,
    /// 99.5th percentile.
    pub p99_5: Option<f64>,
    /// 99.9th percentile.
    pub p99_9: Option<f64>,
    /// Maximum.
    pub max: Option<f64>,
    /// Mean.
    pub mean: Option<f64>,
    /// Errors.
    pub err: Option<f64>,
    /// Failures.
    pub fail: Option<f64>,
    /// Client threads.
    pub threads: Option<f64>,
    /// Seed of the value sizes.
    pub value_seed: Option<f64>,
}

/// Sets one column of a row.
type Column = fn(&mut PublishedRow, f64);

/// The columns that a table may have, beside `phase`.
const COLUMNS: [(&str, Column); 13] = [
    ("rate", |row, figure| row.rate = Some(figure)),
    ("millis", |row, figure| row.millis = Some(figure)),
    ("p50", |row, figure| row.p50 = Some(figure)),
    ("p90", |row, figure| row.p90 = Some(figure)),
    ("p99", |row, figure| row.p99 = Some(figure)),
    ("p99.5", |row, figure| row.p99_5 = Some(figure)),
    ("p99.9", |row, figure| row.p99_9 = Some(figure)),
    ("max", |row, figure| row.max = Some(figure)),
    ("mean", |row, figure| row.mean = Some(figure)),
    ("err", |row, figure| row.err = Some(figure)),
    ("fail", |row, figure| row.fail = Some(figure)),
    ("threads", |row, figure| row.threads = Some(figure)),
    ("value-seed", |row, figure| row.value_seed = Some(figure)),
];

/// Returns the names of the columns that a table may have.
pub(super) fn column_names() -> Vec<&'static str> {
    std::iter::once("phase").chain(COLUMNS.iter().map(|(name, _)| *name)).collect()
}

/// Reads one `[[published]]`; `known` returns true if a phase of that name exists.
pub(super) fn published(
    value: Value<'_>,
    phases: &[&str],
    known: impl Fn(&str) -> bool,
) -> Result<PublishedSetup, SuiteError> {
    let fields = value.fields("[[published]]", &PUBLISHED_KEYS)?;
    let text = |key| -> Result<String, SuiteError> {
        fields.read(key, |v| v.line()).map(Option::unwrap_or_default)
    };
    let mut published = PublishedSetup {
        store: fields.need("store")?.line()?,
        title: text("title")?,
        machine: text("machine")?,
        rows: Vec::new(),
        notes: Vec::new(),
    };
    for note in fields.read("notes", |v| v.list())?.unwrap_or_default() {
        published.notes.push(note.line()?);
    }
    let columns = columns(&fields)?;
    for row in fields.read("rows", |v| v.list())?.unwrap_or_default() {
        let cells = row.list()?;
        if cells.len() != columns.len() {
            let message = format!("the row has {} cells, not {}", cells.len(), columns.len());
            return Err(row.error(Problem::Conflict(message), "one for each of `columns`"));
        }
        let mut read = PublishedRow::default();
        for (column, cell) in columns.iter().zip(cells) {
            match (column, cell.item()) {
                (None, _) => {
                    let name = cell.text()?;
                    if !known(name) {
                        return Err(cell.unknown(name, "a phase of this suite", phases));
                    }
                    name.clone_into(&mut read.phase);
                }
                (Some(_), Item::Text(text)) if text == "-" => {}
                (Some(set), _) => set(&mut read, cell.number()?),
            }
        }
        published.rows.push(read);
    }
    Ok(published)
}

/// Returns the setter of each column; `None` for the phase's name, which comes first.
fn columns(fields: &Fields<'_>) -> Result<Vec<Option<Column>>, SuiteError> {
    let mut columns = Vec::new();
    for column in fields.read("columns", |v| v.list())?.unwrap_or_default() {
        let name = column.text()?;
        let known = COLUMNS.iter().find(|(other, _)| *other == name);
        match (columns.is_empty(), known) {
            (true, _) if name == "phase" => columns.push(None),
            (false, Some((_, set))) => columns.push(Some(*set)),
            (true, _) => {
                return Err(column.unknown(name, "the first column, which is", &["phase"]));
            }
            _ => return Err(column.unknown(name, "a column", &column_names())),
        }
    }
    Ok(columns)
}

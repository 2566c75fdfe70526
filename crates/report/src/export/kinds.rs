//! Table of phases and kinds of operation: a row for each clock, as in a report.

use super::table::{Cell, Column, ColumnType, TableWriter};
use crate::ranking::store_labels;
use crate::result::{HistogramError, RunResult};
use crate::view::{Scope, rows};

/// Columns of the table. Latencies are ns, rates operations a second. A percentile is empty if there are too few
/// operations for it.
pub(super) const COLUMNS: [Column; 19] = [
    ("run", ColumnType::Text),
    ("suite", ColumnType::Text),
    ("store", ColumnType::Text),
    ("version", ColumnType::Text),
    ("verdict", ColumnType::Text),
    ("phase", ColumnType::Text),
    ("row", ColumnType::Text),
    ("clock", ColumnType::Text),
    ("prepares", ColumnType::Truth),
    ("rate", ColumnType::Real),
    ("operations", ColumnType::Count),
    ("errors", ColumnType::Count),
    ("p50_ns", ColumnType::Real),
    ("p90_ns", ColumnType::Real),
    ("p99_ns", ColumnType::Real),
    ("p99_9_ns", ColumnType::Real),
    ("max_ns", ColumnType::Real),
    ("mean_ns", ColumnType::Real),
    ("lower_bound", ColumnType::Truth),
];

/// Writes the rows of every phase.
///
/// # Errors
/// [`HistogramError`] if a histogram cannot be decoded.
pub(super) fn write(result: &RunResult, to: &mut impl TableWriter) -> Result<(), HistogramError> {
    for (store, run) in store_labels(result).iter().zip(&result.runs) {
        let verdict = run.verdict.as_ref().map(|verdict| verdict.level.name());
        for phase in &run.phases {
            for row in rows(phase, false)? {
                let kind = match row.scope {
                    Scope::Phase => "all",
                    Scope::Series | Scope::Missed | Scope::Published => row.test.trim(),
                };
                let latency = row.latency.carried();
                let cells: [Cell<'_>; COLUMNS.len()] = [
                    Cell::Text(Some(&result.started)),
                    Cell::Text(Some(&result.suite.name)),
                    Cell::Text(Some(store)),
                    Cell::Text(run.store.version.as_deref()),
                    Cell::Text(verdict),
                    Cell::Text(Some(&phase.name)),
                    Cell::Text(Some(kind)),
                    Cell::Text(Some(row.clock.name())),
                    Cell::Truth(row.prepares),
                    Cell::Real(row.rate),
                    Cell::Count(latency.samples),
                    Cell::Count(row.errors),
                    Cell::Real(latency.p50),
                    Cell::Real(latency.p90),
                    Cell::Real(latency.p99),
                    Cell::Real(latency.p99_9),
                    Cell::Real(latency.max),
                    Cell::Real(latency.mean),
                    Cell::Truth(row.lower_bound),
                ];
                to.row(&cells);
            }
        }
    }
    Ok(())
}

//! Table of intervals: the rows of `timeline.csv`, with the names and rates of the result, so that rows of many results
//! can be put together.

use std::fs;
use std::path::{Path, PathBuf};

use kvdyno_core::measure::least_for;

use super::ExportError;
use super::table::{Cell, Column, ColumnType, TableWriter};
use crate::board::is_whole;
use crate::files::TIMELINE_FILE;
use crate::files::timeline_csv::TimelineRow;
use crate::ranking::store_labels;
use crate::result::{PhaseResult, RESULT_FILE, RunResult};

/// Columns of the table. Times are seconds since the run began, latencies ns, rates operations a second. A percentile is
/// empty if there are too few operations for it.
pub(super) const COLUMNS: [Column; 45] = [
    ("run", ColumnType::Text),
    ("suite", ColumnType::Text),
    ("store", ColumnType::Text),
    ("version", ColumnType::Text),
    ("verdict", ColumnType::Text),
    ("phase", ColumnType::Text),
    ("prepares", ColumnType::Truth),
    ("interval", ColumnType::Count),
    ("start_s", ColumnType::Real),
    ("length_s", ColumnType::Real),
    ("offered", ColumnType::Count),
    ("started", ColumnType::Count),
    ("completed", ColumnType::Count),
    ("failed", ColumnType::Count),
    ("drained", ColumnType::Count),
    ("backlog", ColumnType::Count),
    ("client_group", ColumnType::Text),
    ("kind", ColumnType::Text),
    ("rate", ColumnType::Real),
    ("ok", ColumnType::Count),
    ("missing", ColumnType::Count),
    ("kind_failed", ColumnType::Count),
    ("kind_indeterminate", ColumnType::Count),
    ("kind_drained", ColumnType::Count),
    ("kind_drained_nothing", ColumnType::Count),
    ("missed", ColumnType::Count),
    ("service_p50_ns", ColumnType::Count),
    ("service_p90_ns", ColumnType::Count),
    ("service_p99_ns", ColumnType::Count),
    ("service_p99_9_ns", ColumnType::Count),
    ("service_max_ns", ColumnType::Count),
    ("response_p50_ns", ColumnType::Count),
    ("response_p90_ns", ColumnType::Count),
    ("response_p99_ns", ColumnType::Count),
    ("response_p99_9_ns", ColumnType::Count),
    ("response_max_ns", ColumnType::Count),
    ("missed_service_p50_ns", ColumnType::Count),
    ("missed_service_p99_ns", ColumnType::Count),
    ("missed_service_max_ns", ColumnType::Count),
    ("missed_response_p50_ns", ColumnType::Count),
    ("missed_response_p99_ns", ColumnType::Count),
    ("missed_response_max_ns", ColumnType::Count),
    ("latest_send_ns", ColumnType::Count),
    ("errors", ColumnType::Text),
    ("wrong", ColumnType::Text),
];

/// Writes the rows of the intervals beside the result at `path`, for the phases in it.
///
/// # Errors
/// [`ExportError`] if there are no intervals, or a line cannot be read.
pub(super) fn write(
    result: &RunResult,
    path: &Path,
    to: &mut impl TableWriter,
) -> Result<(), ExportError> {
    let timeline = timeline_of(path)?;
    let unreadable = |source| ExportError::Intervals { path: timeline.clone(), source };
    let mut bytes = fs::read(&timeline).map_err(|error| unreadable(error.into()))?;
    // A run that was killed may have left a part of its last line.
    bytes.truncate(bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1));
    let labels = store_labels(result);
    let mut reader = csv::ReaderBuilder::new().flexible(true).from_reader(&bytes[..]);
    for row in reader.deserialize::<TimelineRow>() {
        row_of(result, &labels, &row.map_err(unreadable)?, to);
    }
    Ok(())
}

/// Returns the timeline of the result at `path`; a file beside a result of another name does not belong to it.
fn timeline_of(path: &Path) -> Result<PathBuf, ExportError> {
    let file = if path.is_dir() { path.join(RESULT_FILE) } else { path.to_owned() };
    let timeline = file.with_file_name(TIMELINE_FILE);
    match is_whole(&file) && timeline.is_file() {
        true => Ok(timeline),
        false => Err(ExportError::NoIntervals(path.to_owned())),
    }
}

fn row_of(result: &RunResult, labels: &[String], row: &TimelineRow, to: &mut impl TableWriter) {
    let Some(run) = result.runs.get(row.run) else { return };
    let Some(phase) = run.phases.iter().find(|phase| phase.index == row.phase) else { return };
    let group = row.group.and_then(|group| phase.groups.get(usize::from(group)));
    let count = |count: u64| Cell::Count(Some(count));
    let carried = |latency: Option<u64>, operations: u64, quantile| {
        Cell::Count(latency.filter(|_| operations >= least_for(quantile)))
    };
    let hits = |latency, quantile| carried(latency, row.found(), quantile);
    let misses = |latency, quantile| carried(latency, row.ok - row.found(), quantile);
    let cells: [Cell<'_>; COLUMNS.len()] = [
        Cell::Text(Some(&result.started)),
        Cell::Text(Some(&result.suite.name)),
        Cell::Text(Some(&labels[row.run])),
        Cell::Text(run.store.version.as_deref()),
        Cell::Text(run.verdict.as_ref().map(|verdict| verdict.level.name())),
        Cell::Text(Some(&phase.name)),
        Cell::Truth(phase.prepares()),
        count(row.interval.into()),
        Cell::Real(Some(row.start_s)),
        Cell::Real(Some(row.length_s)),
        count(row.offered),
        count(row.started),
        count(row.completed),
        count(row.failed),
        count(row.drained),
        count(row.backlog),
        Cell::Text(group.map(|group| group.name.as_str())),
        Cell::Text(Some(row.kind.as_str()).filter(|kind| !kind.is_empty())),
        Cell::Real(rate(phase, row)),
        count(row.ok),
        count(row.missing),
        count(row.kind_failed),
        count(row.kind_indeterminate),
        count(row.kind_drained),
        count(row.kind_drained_nothing),
        count(row.missed),
        hits(row.service_p50_ns, 0.5),
        hits(row.service_p90_ns, 0.9),
        hits(row.service_p99_ns, 0.99),
        hits(row.service_p99_9_ns, 0.999),
        Cell::Count(row.service_max_ns),
        hits(row.response_p50_ns, 0.5),
        hits(row.response_p90_ns, 0.9),
        hits(row.response_p99_ns, 0.99),
        hits(row.response_p99_9_ns, 0.999),
        Cell::Count(row.response_max_ns),
        misses(row.missed_service_p50_ns, 0.5),
        misses(row.missed_service_p99_ns, 0.99),
        Cell::Count(row.missed_service_max_ns),
        misses(row.missed_response_p50_ns, 0.5),
        misses(row.missed_response_p99_ns, 0.99),
        Cell::Count(row.missed_response_max_ns),
        count(row.latest_send_ns),
        Cell::Text(Some(row.errors.as_str()).filter(|errors| !errors.is_empty())),
        Cell::Text(Some(row.wrong.as_str()).filter(|wrong| !wrong.is_empty())),
    ];
    to.row(&cells);
}

/// Returns the operations that succeeded in time, a second, as in the charts: without gets that found nothing, unless the
/// phase has no others.
fn rate(phase: &PhaseResult, row: &TimelineRow) -> Option<f64> {
    let in_time = match phase.only_misses() {
        true => row.ok.saturating_sub(row.kind_drained),
        false => row.found().saturating_sub(row.found_drained()),
    };
    (row.length_s > 0.0).then(|| in_time as f64 / row.length_s)
}

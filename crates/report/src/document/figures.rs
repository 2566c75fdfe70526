//! The main table of a store: rates, latencies, errors and wrong reads of each phase; and the charts.

use kvdyno_core::workload::Kind;

use super::subject::{StoreSubject, Subject, detail_of};
use super::{Block, DataColumn, DataRow, DataTable, Detail, RowKind, Sentence};
use crate::cell::{Cell, LatencyUnit};
use crate::lines::{ReportLine, has_misses, report_lines, run_has_misses};
use crate::result::PhaseResult;
use crate::view::{Clock, PhaseView, Scope, title};

/// Meaning of the mark of rows whose latencies may be longer.
const LOWER_BOUNDS: &str = "≥: operations that were due and never started are in it at their age when the phase \
                            stopped, so these are lower bounds";

/// Meaning of the latencies of one kind of operation.
const SEEN: &str = "put-seen: from the put's answer until a get found what was put; the time that a write takes to be \
                    seen where this store's reads go";

fn has_seen(phase: &PhaseResult) -> bool {
    phase.series.iter().any(|series| series.kind == Kind::PutSeen)
}

/// Builds the table with what is to be known to read it.
pub(super) fn blocks(store: &StoreSubject<'_>) -> Vec<Block> {
    let lines = report_lines(run_has_misses(store.run));
    let mut rows = Vec::new();
    for (phase, views) in store.phases() {
        let detail = detail_of(phase);
        let row = |view| DataRow { detail, ..row(view, lines, store.all.unit) };
        rows.extend(views.iter().map(row));
    }
    if rows.is_empty() {
        return vec![Block::sentence("no phase came to its end")];
    }
    let views = || store.phases().flat_map(|(_, views)| views);
    let clock = match views().any(|view| view.clock == Clock::Response) {
        true => "response and service time as named",
        false => "service time: arrivals are closed",
    };
    let unit = format!("Latencies in {}; {clock}", store.all.unit.name());
    let table = DataTable { columns: columns(lines), rows, ..DataTable::default() };
    let bounds = views().any(|view| view.lower_bound).then(|| Block::sentence(LOWER_BOUNDS));
    let seen = store.phases().any(|(phase, _)| has_seen(phase)).then(|| Block::sentence(SEEN));
    [Block::sentence(unit), Block::Table(table)].into_iter().chain(bounds).chain(seen).collect()
}

/// Returns the columns of a table of these lines, after the one that names the test.
pub(crate) fn columns(lines: &[ReportLine]) -> Vec<DataColumn> {
    let column = |line: &ReportLine| DataColumn {
        label: line.label.to_owned(),
        meaning: line.meaning,
        has_words: false,
        is_spare: line.spare,
    };
    std::iter::once(DataColumn::words("Test")).chain(lines.iter().map(column)).collect()
}

fn row(view: &PhaseView, lines: &[ReportLine], unit: LatencyUnit) -> DataRow {
    let mark = if view.lower_bound { " ≥" } else { "" };
    let first = Cell::Text(format!("{}{mark}", title(&view.test, view.record_rate)));
    let kind = match view.scope {
        Scope::Published => RowKind::Published,
        _ if view.prepares => RowKind::Preparation,
        Scope::Phase => RowKind::Whole,
        Scope::Series | Scope::Missed => RowKind::Part,
    };
    let figures = lines.iter().map(|line| line.cell(view, unit));
    DataRow { kind, ..DataRow::new(std::iter::once(first).chain(figures)) }
}

/// Builds what the columns of the tables mean.
pub(super) fn meanings(subject: &Subject<'_>) -> Vec<Block> {
    let lines = report_lines(has_misses(subject.result)).iter();
    let facts = lines.map(|line| (line.label.to_owned(), Cell::Text(line.meaning.to_owned())));
    vec![
        Block::sentence(
            "response time counts from when a request was due, service time from when it was sent; rows that name \
             neither are service time, as their clients wait for the last answer before they ask again",
        ),
        Block::Folded("What the columns mean".to_owned(), vec![Block::Facts(facts.collect())]),
    ]
}

/// Builds the place of the charts of searches.
pub(super) fn capacity_charts(subject: &Subject<'_>) -> Vec<Block> {
    let is_empty = subject.result.runs.iter().all(|run| run.capacity.is_empty());
    let chart = Block::Chart { id: "capacity", is_empty };
    if is_empty && !subject.is_live { Vec::new() } else { vec![chart] }
}

/// Builds the place of the other charts.
pub(super) fn charts(subject: &Subject<'_>) -> Vec<Block> {
    let none = "this folder holds no timeline, so there are no charts over time";
    let none = (!subject.has_timeline && !subject.is_live)
        .then(|| Block::Paragraph(Sentence::new(none).shown(Detail::Page)));
    none.into_iter().chain([Block::Chart { id: "charts", is_empty: false }]).collect()
}

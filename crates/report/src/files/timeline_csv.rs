//! `timeline.csv`: one row for each interval and series, for spreadsheets and for the report's charts. An interval in
//! which nothing ended has one row without a series, so that a stall is visible.

use std::path::Path;

use hdrhistogram::Histogram;
use kvdyno_core::measure::{Interval, KindMeasure, Series};
use serde::{Deserialize, Serialize};

use super::rows::{Cells, ColumnReader};
use super::{IntervalPlace, rows};

/// A row. Latencies are ns, times are seconds since the run began; columns from `offered` to `backlog`, `drained`,
/// `latest_send_ns`, `errors` and `wrong` are about the interval as a whole and the same in each of its rows.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct TimelineRow {
    pub run: usize,
    pub store: String,
    pub phase: u16,
    pub phase_name: String,
    pub interval: u32,
    pub start_s: f64,
    pub length_s: f64,
    pub offered: u64,
    pub started: u64,
    pub completed: u64,
    pub failed: u64,
    pub backlog: u64,
    pub group: Option<u16>,
    pub kind: String,
    pub ok: u64,
    pub missing: u64,
    pub kind_failed: u64,
    pub kind_indeterminate: u64,
    pub service_p50_ns: Option<u64>,
    pub service_p90_ns: Option<u64>,
    pub service_p99_ns: Option<u64>,
    pub service_p99_9_ns: Option<u64>,
    pub service_max_ns: Option<u64>,
    pub response_p50_ns: Option<u64>,
    pub response_p90_ns: Option<u64>,
    pub response_p99_ns: Option<u64>,
    pub response_p99_9_ns: Option<u64>,
    pub response_max_ns: Option<u64>,
    pub drained: u64,
    pub kind_drained: u64,
    pub kind_drained_nothing: u64,
    pub missed: u64,
    pub missed_service_p50_ns: Option<u64>,
    pub missed_service_p99_ns: Option<u64>,
    pub missed_service_max_ns: Option<u64>,
    pub missed_response_p50_ns: Option<u64>,
    pub missed_response_p99_ns: Option<u64>,
    pub missed_response_max_ns: Option<u64>,
    /// Longest delay between when a request was due and when it was sent although a client was free, ns.
    pub latest_send_ns: u64,
    /// Errors by class: `refused=2 timeout=1`.
    pub errors: String,
    /// Wrong reads by kind, in the same form: all of them, as they were made.
    pub wrong: String,
}

/// Part of a row that charts show.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct DrawnRow<'a> {
    pub run: usize,
    pub phase: u16,
    pub start_s: f64,
    pub length_s: f64,
    pub offered: u64,
    pub backlog: u64,
    pub kind: &'a str,
    pub ok: u64,
    /// Gets among them that found nothing.
    pub found_nothing: u64,
    pub drained: u64,
    pub drained_nothing: u64,
    pub failed: u64,
    pub latest_send_ns: u64,
    pub errors: &'a str,
    pub wrong: &'a str,
}

/// Names of the columns of a [`DrawnRow`].
const DRAWN: [&str; 17] = [
    "run",
    "phase",
    "start_s",
    "length_s",
    "offered",
    "backlog",
    "kind",
    "ok",
    "missing",
    "missed",
    "kind_drained",
    "kind_drained_nothing",
    "kind_failed",
    "kind_indeterminate",
    "latest_send_ns",
    "errors",
    "wrong",
];

/// Hands on the drawn part of each row of a file, at most `most` rows; none if there is no file. Broken rows leave gaps.
pub(crate) fn each_drawn(path: &Path, most: usize, mut each: impl FnMut(&DrawnRow<'_>)) {
    let Some(mut reader) = ColumnReader::open(path, DRAWN) else { return };
    for _ in 0..most {
        let Some(cells) = reader.next() else { return };
        if let Some(row) = drawn(&cells) {
            each(&row);
        }
    }
}

fn drawn<'a>(cells: &Cells<'a, 17>) -> Option<DrawnRow<'a>> {
    let [start_s, length_s] = [cells.value(2)?, cells.value(3)?];
    let [offered, backlog, ok] = [cells.value(4)?, cells.value(5)?, cells.value(7)?];
    Some(DrawnRow {
        run: cells.value(0)?,
        phase: cells.value(1)?,
        start_s,
        length_s,
        offered,
        backlog,
        kind: cells.text(6),
        ok,
        found_nothing: found_nothing(cells.count(8), cells.count(9)),
        drained: cells.count(10),
        drained_nothing: cells.count(11),
        failed: cells.count(12).saturating_add(cells.count(13)),
        latest_send_ns: cells.count(14),
        errors: cells.text(15),
        wrong: cells.text(16),
    })
}

/// Returns the number of gets that found nothing; 0 for deletes, which have no missed records.
fn found_nothing(missing: u64, missed: u64) -> u64 {
    if missed > 0 { missing } else { 0 }
}

impl TimelineRow {
    /// Returns the operations that succeeded, without gets that found nothing.
    pub(crate) fn found(&self) -> u64 {
        self.ok.saturating_sub(found_nothing(self.missing, self.missed))
    }

    /// Returns the operations among them that ended after the phase.
    pub(crate) fn found_drained(&self) -> u64 {
        self.kind_drained.saturating_sub(self.kind_drained_nothing)
    }
}

/// Returns the counts by name in a cell such as [`TimelineRow::errors`].
pub(crate) fn counts(text: &str) -> impl Iterator<Item = (&str, u64)> {
    let words = text.split_ascii_whitespace().filter_map(|word| word.split_once('='));
    words.filter_map(|(name, count)| Some((name, count.parse().ok()?)))
}

fn counts_text(counts: impl Iterator<Item = (&'static str, u64)>) -> String {
    counts.map(|(name, count)| format!("{name}={count}")).collect::<Vec<_>>().join(" ")
}

/// Adds the rows of an interval, whose times count from the begin of the run.
pub(crate) fn write(to: &mut Vec<u8>, place: IntervalPlace<'_>, interval: &Interval) {
    let seconds = |nanos: u64| nanos as f64 / 1e9;
    let whole = TimelineRow {
        run: place.run,
        store: place.store.to_owned(),
        phase: place.phase,
        phase_name: place.phase_name.to_owned(),
        interval: interval.index,
        start_s: seconds(interval.start),
        length_s: seconds(interval.end.saturating_sub(interval.start)),
        offered: interval.offered,
        started: interval.started,
        completed: interval.completed,
        failed: interval.failed,
        backlog: interval.backlog,
        drained: interval.drained,
        latest_send_ns: interval.troubles.latest_send,
        errors: counts_text(interval.troubles.errors.iter().map(|(c, n)| (c.name(), *n))),
        wrong: counts_text(interval.troubles.wrong.iter().map(|(kind, n)| (kind.name(), *n))),
        ..TimelineRow::default()
    };
    if interval.series.is_empty() {
        rows::push(to, &whole);
    }
    for series in &interval.series {
        rows::push(to, &row(&whole, series));
    }
}

fn row(whole: &TimelineRow, (series, measure): &(Series, KindMeasure)) -> TimelineRow {
    let at =
        |of: &Option<Histogram<u32>>, quantile| of.as_ref().map(|h| h.value_at_quantile(quantile));
    let service = |quantile| at(&measure.service, quantile);
    let response = |quantile| at(&measure.response, quantile);
    let (missed_service, missed_response) = (&measure.missed_service, &measure.missed_response);
    TimelineRow {
        group: Some(series.group),
        kind: series.kind.name().to_owned(),
        ok: measure.ok,
        missing: measure.missing,
        kind_failed: measure.failed,
        kind_indeterminate: measure.indeterminate,
        service_p50_ns: service(0.5),
        service_p90_ns: service(0.9),
        service_p99_ns: service(0.99),
        service_p99_9_ns: service(0.999),
        service_max_ns: measure.service.as_ref().map(|h| h.max()),
        response_p50_ns: response(0.5),
        response_p90_ns: response(0.9),
        response_p99_ns: response(0.99),
        response_p99_9_ns: response(0.999),
        response_max_ns: measure.response.as_ref().map(|h| h.max()),
        kind_drained: measure.drained.ok,
        kind_drained_nothing: measure.drained.found_nothing,
        missed: measure.missed,
        missed_service_p50_ns: at(missed_service, 0.5),
        missed_service_p99_ns: at(missed_service, 0.99),
        missed_service_max_ns: missed_service.as_ref().map(|h| h.max()),
        missed_response_p50_ns: at(missed_response, 0.5),
        missed_response_p99_ns: at(missed_response, 0.99),
        missed_response_max_ns: missed_response.as_ref().map(|h| h.max()),
        ..whole.clone()
    }
}

//! `timeline.csv`: one row for each interval and series, for spreadsheets and for the report's
//! charts. An interval in which nothing ended has one row without a series: a stall is a finding.

use hdrhistogram::Histogram;
use kvdyno_core::measure::{Interval, KindMeasure, Series};
use serde::{Deserialize, Serialize};

use super::{IntervalPlace, rows};

/// A row. Latencies are ns, times are seconds since the run began; columns from `offered` to
/// `backlog`, and `drained`, are about the interval as a whole and the same in each of its rows.
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
    #[serde(default)]
    pub drained: u64,
    #[serde(default)]
    pub kind_drained: u64,
    #[serde(default)]
    pub kind_drained_nothing: u64,
    #[serde(default)]
    pub missed: u64,
    #[serde(default)]
    pub missed_service_p50_ns: Option<u64>,
    #[serde(default)]
    pub missed_service_p99_ns: Option<u64>,
    #[serde(default)]
    pub missed_service_max_ns: Option<u64>,
    #[serde(default)]
    pub missed_response_p50_ns: Option<u64>,
    #[serde(default)]
    pub missed_response_p99_ns: Option<u64>,
    #[serde(default)]
    pub missed_response_max_ns: Option<u64>,
}

impl TimelineRow {
    /// Operations that succeeded, without gets that found nothing.
    pub(crate) fn found(&self) -> u64 {
        // Files from before there was such a column have misses among the latencies, too.
        let missing = if self.missed > 0 { self.missing } else { 0 };
        self.ok.saturating_sub(missing)
    }

    /// Of these, what ended after the phase.
    pub(crate) fn found_drained(&self) -> u64 {
        self.kind_drained.saturating_sub(self.kind_drained_nothing)
    }
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
        ..TimelineRow::default()
    };
    if interval.series.is_empty() {
        rows::push(to, &whole);
    }
    for series in &interval.series {
        rows::push(to, &row(&whole, series));
    }
}

fn row(whole: &TimelineRow, (series, measure): &(Series, KindMeasure<u32>)) -> TimelineRow {
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

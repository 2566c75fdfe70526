//! One row of the table: a phase, one of its clocks, or a figure that somebody published, all in
//! one shape, so that one list of report lines serves them.

use hdrhistogram::Histogram;
use kvdyno_core::ground::numbers::approximate_count;
use kvdyno_core::measure::least_for;
use kvdyno_core::workload::Kind;

use crate::result::{HistogramError, Latency, PhaseResult, Published, SeriesResult, rate};

/// Latency figures, ns.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct LatencyFigures {
    /// Operations that they are of; `None` of figures that somebody published.
    pub samples: Option<u64>,
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
    /// Longest.
    pub max: Option<f64>,
    /// Arithmetic mean.
    pub mean: Option<f64>,
}

/// Time that the latencies of a row count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clock {
    /// From when a request was sent to its answer.
    Service,
    /// From when a request was due to its answer.
    Response,
}

impl Clock {
    /// Its name in tables for other tools.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Clock::Service => "service",
            Clock::Response => "response",
        }
    }
}

/// Subject of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// A phase as a whole.
    Phase,
    /// One kind of operation of one group of it.
    Series,
    /// Gets of one kind and group that found nothing.
    Missed,
    /// Figures that somebody published.
    Published,
}

/// A row.
#[derive(Clone, Debug, PartialEq)]
pub struct PhaseView {
    /// Name of the row.
    pub test: String,
    /// Subject of the row.
    pub scope: Scope,
    /// Time that its latencies count.
    pub clock: Clock,
    /// True for a warm-up or a load: its speed does not matter.
    pub prepares: bool,
    /// Latencies of operations that were never started are in it, as lower bounds.
    pub lower_bound: bool,
    /// Successful operations a second.
    pub rate: Option<f64>,
    /// Records a second that these moved, where each of them is a batch: it is not as slow as it looks.
    pub record_rate: Option<f64>,
    /// Duration, ms.
    pub wall_ms: Option<f64>,
    /// Latencies of the operations that succeeded.
    pub latency: LatencyFigures,
    /// Operations that ended in an error.
    pub errors: Option<u64>,
    /// Reads that failed verification, and unexpected misses.
    pub failures: Option<u64>,
    /// Share of the records asked for by gets that they found.
    pub hit_ratio: Option<f64>,
    /// Clients.
    pub clients: Option<u32>,
    /// Seed of the value sizes.
    pub value_seed: Option<i64>,
}

impl LatencyFigures {
    /// Returns the same without percentiles that so few operations do not carry.
    #[must_use]
    pub fn carried(&self) -> LatencyFigures {
        let of = |value: Option<f64>, quantile| {
            value.filter(|_| self.samples.is_none_or(|samples| samples >= least_for(quantile)))
        };
        LatencyFigures {
            p50: of(self.p50, 0.5),
            p90: of(self.p90, 0.9),
            p99: of(self.p99, 0.99),
            p99_5: of(self.p99_5, 0.995),
            p99_9: of(self.p99_9, 0.999),
            ..*self
        }
    }

    fn of(latency: Option<&Latency>) -> LatencyFigures {
        let Some(latency) = latency else { return LatencyFigures::default() };
        LatencyFigures {
            samples: Some(latency.count),
            p50: Some(latency.p50_ns as f64),
            p90: Some(latency.p90_ns as f64),
            p99: Some(latency.p99_ns as f64),
            p99_5: Some(latency.p99_5_ns as f64),
            p99_9: Some(latency.p99_9_ns as f64),
            max: Some(latency.max_ns as f64),
            mean: latency.mean_ns,
        }
    }
}

/// The rows of a phase: the phase itself (response time before service time where arrivals are
/// open), then its kinds of operation if it has several, then published figures if `published`.
///
/// # Errors
/// [`HistogramError`] if a histogram cannot be decoded.
pub fn rows(phase: &PhaseResult, published: bool) -> Result<Vec<PhaseView>, HistogramError> {
    let mut rows = Vec::new();
    let label = label(phase);
    if phase.open() {
        rows.push(phase_row(phase, format!("{label} response"), Clock::Response)?);
        rows.push(phase_row(phase, format!("{label} service"), Clock::Service)?);
    } else {
        rows.push(phase_row(phase, label, Clock::Service)?);
    }
    for series in &phase.series {
        rows.extend((phase.series.len() > 1).then(|| series_row(phase, series)));
        rows.extend(missed_row(phase, series));
    }
    if published {
        rows.extend(phase.published.iter().map(published_row));
    }
    Ok(rows)
}

/// The row that stands for a phase: response time where arrivals are open, else service time.
///
/// # Errors
/// As [`rows`].
pub fn main_row(phase: &PhaseResult) -> Result<PhaseView, HistogramError> {
    let clock = if phase.open() { Clock::Response } else { Clock::Service };
    phase_row(phase, label(phase), clock)
}

/// Returns the name of a phase. Every warm-up has the same label, so its name tells which one it is.
fn label(phase: &PhaseResult) -> String {
    match phase.name.strip_suffix(":warm-up") {
        Some(warmed) if phase.warmup => format!("{warmed} (warm-up)"),
        _ => phase.label.clone(),
    }
}

/// Records a second of a phase that has nothing but batches, by the operations that its rate is made of.
fn record_rate(phase: &PhaseResult) -> Option<f64> {
    let [series] = &phase.series[..] else { return None };
    let batches = matches!(series.kind, Kind::GetBatch | Kind::PutBatch | Kind::InsertBatch);
    let each = series.records as f64 / series.ok.max(1) as f64;
    rate(series.in_time(), phase.wall_ns).filter(|_| batches).map(|rate| rate * each)
}

/// The first column of a row that is called `test`.
#[must_use]
pub fn title(test: &str, record_rate: Option<f64>) -> String {
    match record_rate {
        Some(rate) => format!("{test} ({} records/s)", approximate_count(rate)),
        None => test.to_owned(),
    }
}

/// The latencies of a phase by one clock, all series together; of gets the hits, unless it has nothing
/// but misses. Operations that were never started
/// are in the response time.
///
/// # Errors
/// As [`rows`].
pub fn phase_latency(phase: &PhaseResult, clock: Clock) -> Result<Option<Latency>, HistogramError> {
    Latency::sum(latencies(phase, clock))
}

/// The histogram of these.
///
/// # Errors
/// As [`rows`].
pub fn phase_histogram(
    phase: &PhaseResult,
    clock: Clock,
) -> Result<Option<Histogram<u64>>, HistogramError> {
    Latency::histogram(latencies(phase, clock))
}

fn latencies(phase: &PhaseResult, clock: Clock) -> impl Iterator<Item = &Latency> {
    let misses = phase.only_misses();
    let answered = phase.series.iter().filter_map(move |series| match (clock, misses) {
        (Clock::Service, false) => series.service.as_ref(),
        (Clock::Service, true) => series.missed_service.as_ref(),
        (Clock::Response, false) => series.response.as_ref(),
        (Clock::Response, true) => series.missed_response.as_ref(),
    });
    answered.chain(phase.unstarted.iter().filter(move |_| clock == Clock::Response))
}

fn phase_row(phase: &PhaseResult, test: String, clock: Clock) -> Result<PhaseView, HistogramError> {
    let latency = phase_latency(phase, clock)?;
    let failures = phase.tally.as_ref().map(|t| t.illegal().saturating_add(t.unexpected_misses));
    Ok(PhaseView {
        test,
        scope: Scope::Phase,
        clock,
        prepares: phase.prepares(),
        // What was never started may be an estimate, or known to nobody.
        lower_bound: clock == Clock::Response
            && (phase.unstarted.is_some() || phase.offered_estimated),
        rate: phase.found_rate(),
        record_rate: record_rate(phase),
        wall_ms: Some(phase.wall_ns as f64 / 1e6),
        latency: LatencyFigures::of(latency.as_ref()),
        errors: Some(phase.unsuccessful()),
        failures,
        hit_ratio: phase.hit_ratio(),
        clients: Some(phase.clients()),
        value_seed: phase.groups.iter().find_map(|group| group.value_seed),
    })
}

fn series_row(phase: &PhaseResult, series: &SeriesResult) -> PhaseView {
    let group = phase.groups.get(usize::from(series.group));
    let open = group.is_some_and(|group| group.open);
    let latency = if open { &series.response } else { &series.service };
    PhaseView {
        test: format!("  {}", series_name(phase, series)),
        scope: Scope::Series,
        clock: if open { Clock::Response } else { Clock::Service },
        prepares: phase.prepares(),
        lower_bound: false,
        rate: rate(series.found_in_time(), phase.wall_ns),
        record_rate: None,
        wall_ms: None,
        latency: LatencyFigures::of(latency.as_ref()),
        errors: Some(series.unsuccessful()),
        failures: None,
        hit_ratio: series.hit_ratio(),
        clients: group.filter(|_| phase.groups.len() > 1).map(|group| group.clients),
        value_seed: None,
    }
}

fn series_name(phase: &PhaseResult, series: &SeriesResult) -> String {
    let (kind, group) = (series.kind.name(), phase.groups.get(usize::from(series.group)));
    match group {
        Some(group) if phase.groups.len() > 1 => format!("{}: {kind}", group.name),
        _ => kind.to_owned(),
    }
}

/// The gets of a series that found nothing, if there were any.
fn missed_row(phase: &PhaseResult, series: &SeriesResult) -> Option<PhaseView> {
    let row = series_row(phase, series);
    let latency = match row.clock {
        Clock::Response => series.missed_response.as_ref(),
        Clock::Service => series.missed_service.as_ref(),
    };
    (series.found_nothing() > 0).then(|| PhaseView {
        test: format!("  {} missed", series_name(phase, series)),
        scope: Scope::Missed,
        rate: rate(series.found_nothing_in_time(), phase.wall_ns),
        latency: LatencyFigures::of(latency),
        // Those that failed stand in the other row.
        errors: None,
        hit_ratio: None,
        ..row
    })
}

fn published_row(figures: &Published) -> PhaseView {
    let nanos = |ms: Option<f64>| ms.map(|ms| ms * 1e6);
    PhaseView {
        test: format!("  published: {}", figures.store),
        scope: Scope::Published,
        clock: Clock::Service,
        prepares: false,
        lower_bound: false,
        rate: figures.rate,
        record_rate: None,
        wall_ms: figures.wall_ms,
        latency: LatencyFigures {
            samples: None,
            p50: nanos(figures.p50_ms),
            p90: nanos(figures.p90_ms),
            p99: nanos(figures.p99_ms),
            p99_5: nanos(figures.p99_5_ms),
            p99_9: nanos(figures.p99_9_ms),
            max: nanos(figures.max_ms),
            mean: nanos(figures.mean_ms),
        },
        errors: figures.errors,
        failures: figures.failures,
        hit_ratio: None,
        clients: figures.clients,
        value_seed: figures.value_seed,
    }
}

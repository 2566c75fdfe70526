//! The data of the page's charts. Times are seconds since the phase began, latencies µs; numbers
//! have four significant digits, which is more than a chart shows.

use hdrhistogram::Histogram;
use serde::Serialize;

use super::brief::rounded;
use super::capacity::CapacityCharts;
use crate::ranking::store_labels;
use crate::result::{HistogramError, PhaseResult, RunResult, gathered, moments};
use crate::timeline::heat::Heat;
use crate::timeline::{
    ALL_KINDS, DrawnTimeline, Percentiles, PhaseTimeline, Point, ProcessTimeline, Use,
};
use crate::view::{Clock, phase_latency};

/// Points of a percentile curve for each halving of the distance to 100 %.
const POINTS_PER_HALVING: u32 = 4;

/// Most columns of all heat maps together: about 60 bytes each in the page.
const MOST_COLUMNS_IN_ALL: usize = 2_400;
/// Most columns of one heat map.
const MOST_COLUMNS: usize = 120;

/// Share of a whole interval below which one has no rate of its own.
const SLIVER: f64 = 0.05;

/// Everything that is drawn.
#[derive(Serialize)]
pub(super) struct Charts {
    stores: Vec<String>,
    phases: Vec<PhaseCharts>,
    capacity: Vec<CapacityCharts>,
}

#[derive(Serialize)]
struct PhaseCharts {
    title: String,
    prepares: bool,
    open: bool,
    runs: Vec<RunCharts>,
}

#[derive(Serialize)]
struct RunCharts {
    /// Index in `stores`.
    store: usize,
    /// Successful operations a second, the whole phase.
    rate: Option<f64>,
    /// Begin and length of each point.
    start: Vec<f64>,
    length: Vec<f64>,
    backlog: Vec<u64>,
    kinds: Vec<KindCharts>,
    heat: HeatChart,
    service_curve: Option<Curve>,
    response_curve: Option<Curve>,
    processes: Vec<ProcessCharts>,
    /// Faults, what servers did, the end of the warm-up, dips and excursions.
    marks: Vec<Mark>,
}

/// Latencies over time, all kinds: response time where there is one.
#[derive(Serialize)]
struct HeatChart {
    /// So many points make a column.
    every: usize,
    /// The first cell of each column, then the operations in it and in each that follows ([`Heat`]).
    columns: Vec<Vec<u64>>,
}

/// Something that happened, s since the phase began.
#[derive(Serialize)]
struct Mark {
    /// `fault`, `event`, `settled` or `excursion`.
    kind: &'static str,
    text: String,
    begin: f64,
    end: f64,
}

/// What kvdyno or a node used over time.
#[derive(Serialize)]
struct ProcessCharts {
    name: String,
    start: Vec<f64>,
    length: Vec<f64>,
    processors: Vec<Option<f64>>,
    /// MB.
    memory: Vec<Option<f64>>,
    /// Bytes a second sent to storage.
    written: Vec<Option<f64>>,
    /// Bytes a second received and sent.
    network: Vec<Option<f64>>,
}

#[derive(Serialize)]
struct KindCharts {
    name: String,
    rate: Vec<Option<f64>>,
    missed: Vec<Option<f64>>,
    failed: Vec<Option<f64>>,
    service: Option<Bands>,
    response: Option<Bands>,
}

/// Percentiles over time.
#[derive(Serialize)]
struct Bands {
    p50: Vec<Option<f64>>,
    p90: Vec<Option<f64>>,
    p99: Vec<Option<f64>>,
    p99_9: Vec<Option<f64>>,
    max: Vec<Option<f64>>,
}

/// Latency against 1 / (1 − percentile).
#[derive(Serialize)]
struct Curve {
    x: Vec<f64>,
    y: Vec<f64>,
}

impl Charts {
    pub(super) fn new(
        result: &RunResult,
        timeline: &DrawnTimeline,
    ) -> Result<Charts, HistogramError> {
        let mut phases: Vec<(u16, PhaseCharts)> = Vec::new();
        let count: usize = result.runs.iter().map(|run| run.phases.len()).sum();
        let columns = (MOST_COLUMNS_IN_ALL / count.max(1)).clamp(10, MOST_COLUMNS);
        for (store, run) in result.runs.iter().enumerate() {
            for phase in &run.phases {
                let over_time = timeline.phase(store, phase.index);
                let uses = timeline.uses(store, phase.index);
                let charts = run_charts(store, phase, (over_time, columns), uses)?;
                match phases.iter_mut().find(|(i, p)| *i == phase.index && p.title == title(phase))
                {
                    Some((_, known)) => known.runs.push(charts),
                    None => phases.push((phase.index, phase_charts(phase, charts))),
                }
            }
        }
        let phases = phases.into_iter().map(|(_, phase)| phase).collect();
        let capacity = CapacityCharts::all(result);
        Ok(Charts { stores: store_labels(result), phases, capacity })
    }

    /// Something can be drawn over time.
    pub(super) fn has_timeline(&self) -> bool {
        self.phases.iter().flat_map(|phase| &phase.runs).any(|run| !run.start.is_empty())
    }
}

fn title(phase: &PhaseResult) -> String {
    match phase.label.eq_ignore_ascii_case(&phase.name) {
        true => phase.label.clone(),
        false => format!("{} · {}", phase.label, phase.name),
    }
}

fn phase_charts(phase: &PhaseResult, charts: RunCharts) -> PhaseCharts {
    PhaseCharts {
        title: title(phase),
        prepares: phase.prepares(),
        open: phase.open(),
        runs: vec![charts],
    }
}

fn run_charts(
    store: usize,
    phase: &PhaseResult,
    (timeline, columns): (Option<&PhaseTimeline>, usize),
    uses: &[ProcessTimeline],
) -> Result<RunCharts, HistogramError> {
    let curve = |clock| -> Result<Option<Curve>, HistogramError> {
        phase_latency(phase, clock)?.map(|latency| Ok(curve(&latency.decode()?))).transpose()
    };
    let slots = timeline.map_or(&[][..], |t| &t.slots);
    let mut kinds: Vec<KindCharts> = Vec::new();
    for (name, points) in timeline.iter().flat_map(|t| &t.kinds) {
        let lengths: Vec<f64> = slots.iter().map(|slot| slot.length_s).collect();
        kinds.push(kind_charts(name, points, &lengths));
    }
    kinds.sort_by_key(|kind| kind.name != ALL_KINDS);
    Ok(RunCharts {
        store,
        rate: phase.rate().and_then(rounded),
        start: slots.iter().map(|slot| (slot.start_s * 1e3).round() / 1e3).collect(),
        length: slots.iter().map(|slot| (slot.length_s * 1e3).round() / 1e3).collect(),
        backlog: slots.iter().map(|slot| slot.backlog).collect(),
        kinds,
        heat: heat_chart(timeline.map_or(&[], |timeline| &timeline.heat), slots.len(), columns),
        service_curve: curve(Clock::Service)?,
        response_curve: if phase.open() { curve(Clock::Response)? } else { None },
        processes: uses.iter().map(process_charts).collect(),
        marks: marks(phase),
    })
}

/// The heat of `slots` points in at most `most` columns.
fn heat_chart(heat: &[Heat], slots: usize, most: usize) -> HeatChart {
    let every = slots.div_ceil(most).max(1);
    let columns = heat.chunks(every).map(|heat| Heat::sum(heat).column()).collect();
    HeatChart { every, columns }
}

fn marks(phase: &PhaseResult) -> Vec<Mark> {
    let mark = |kind, text: &str, begin: u64, end: u64| {
        let seconds = |ns: u64| (ns as f64 / 1e6).round() / 1e3;
        Mark { kind, text: text.trim_end().to_owned(), begin: seconds(begin), end: seconds(end) }
    };
    let faults = moments(&phase.faults);
    let faults = faults.iter().map(|fault| {
        let text = format!("{} {}", fault.what, fault.node);
        mark("fault", &text, fault.began_ns, fault.ended_ns)
    });
    let course = || phase.course.iter();
    let settled = course().filter_map(|course| course.settled_ns.filter(|ns| *ns > 0));
    let settled = settled.map(|at| mark("settled", "settled", at, at));
    let excursions = course().flat_map(|course| &course.excursions);
    let excursions = excursions.map(|e| mark("excursion", "", e.from_ns, e.to_ns));
    let events = gathered(course().flat_map(|course| &course.events));
    let events = events.iter().map(|event| mark("event", &event.what, event.from_ns, event.to_ns));
    faults.chain(events).chain(settled).chain(excursions).collect()
}

fn process_charts(line: &ProcessTimeline) -> ProcessCharts {
    let of = |figure: fn(&Use) -> Option<f64>| {
        line.points.iter().map(|point| rounded(figure(point)?)).collect()
    };
    let seconds = |figure: fn(&Use) -> f64| {
        line.points.iter().map(|point| (figure(point) * 1e3).round() / 1e3).collect()
    };
    ProcessCharts {
        name: line.process.clone(),
        start: seconds(|point| point.start_s),
        length: seconds(|point| point.length_s),
        processors: of(|point| Some(point.processors)),
        memory: of(|point| Some(point.rss_bytes as f64 / 1e6)),
        written: of(|point| Some(point.written_bytes? as f64 / point.length_s)),
        network: of(|point| Some(point.network_bytes? as f64 / point.length_s)),
    }
}

fn kind_charts(name: &str, points: &[Point], lengths: &[f64]) -> KindCharts {
    let mut lengths = lengths.to_vec();
    let sliver = joins_sliver(&mut lengths);
    let per_second = |count: fn(&Point) -> u64| {
        let mut counts: Vec<u64> = points.iter().map(count).collect();
        if let (true, [.., before, last]) = (sliver, &mut counts[..]) {
            *before += *last;
            *last = *before;
        }
        counts.iter().zip(&lengths).map(|(&n, length)| rounded(n as f64 / length)).collect()
    };
    KindCharts {
        name: name.to_owned(),
        rate: per_second(|point| point.ok.saturating_sub(point.drained)),
        missed: per_second(|point| point.missed),
        failed: per_second(|point| point.failed),
        service: bands(points, |point| point.service),
        response: bands(points, |point| point.response),
    }
}

/// A phase ends with a sliver of an interval, whose few operations are no rate of its own: where
/// there is one, it and the interval before it get the length of both.
fn joins_sliver(lengths: &mut [f64]) -> bool {
    let longest = lengths.iter().copied().fold(0.0, f64::max);
    match lengths {
        [.., before, last] if *last < longest * SLIVER => {
            *before += *last;
            *last = *before;
            true
        }
        _ => false,
    }
}

fn bands(points: &[Point], clock: fn(&Point) -> Option<Percentiles>) -> Option<Bands> {
    if points.iter().all(|point| clock(point).is_none()) {
        return None;
    }
    let line = |figure: fn(Percentiles) -> u64| {
        points.iter().map(|p| rounded(figure(clock(p)?) as f64 / 1e3)).collect()
    };
    Some(Bands {
        p50: line(|p| p.p50),
        p90: line(|p| p.p90),
        p99: line(|p| p.p99),
        p99_9: line(|p| p.p99_9),
        max: line(|p| p.max),
    })
}

/// The curve as far as the samples carry it: the last point is the one before the longest.
fn curve(histogram: &Histogram<u64>) -> Curve {
    let mut curve = Curve { x: Vec::new(), y: Vec::new() };
    for step in histogram.iter_quantiles(POINTS_PER_HALVING) {
        let quantile = step.quantile_iterated_to();
        if quantile >= 1.0 {
            break;
        }
        let both =
            rounded(1.0 / (1.0 - quantile)).zip(rounded(step.value_iterated_to() as f64 / 1e3));
        if let Some((x, y)) = both {
            curve.x.push(x);
            curve.y.push(y);
        }
    }
    curve
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sliver_at_the_end_takes_its_rate_from_both_intervals() {
        let point = |ok| Point { ok, ..Point::default() };
        let charts = kind_charts("get", &[point(100), point(90), point(10)], &[1.0, 0.99, 0.01]);
        assert_eq!(charts.rate, [Some(100.0); 3]);
        let last = Point { drained: 5, ..point(30) };
        let charts = kind_charts("get", &[point(100), last], &[1.0, 0.5]);
        assert_eq!(charts.rate, [Some(100.0), Some(50.0)], "without what ended later");
    }

    #[test]
    fn numbers_are_cut_to_four_digits() {
        assert_eq!(rounded(123_456.0), Some(123_500.0));
        assert_eq!(rounded(0.001_234_56), Some(0.001_235));
        assert_eq!(rounded(f64::INFINITY), None);
        assert_eq!(rounded(0.0), Some(0.0));
    }

    #[test]
    fn what_happened_is_marked() {
        use crate::result::{CourseResult, ExcursionResult};
        let mut phase = crate::sample::two_stores().runs.swap_remove(0).phases.swap_remove(0);
        assert!(marks(&phase).is_empty());
        let (what, beside) = ("p99".to_owned(), Vec::new());
        let (from_ns, to_ns, level) = (2_000_000_000, 3_000_000_000, 4.0);
        let start_up = false;
        let excursions = vec![ExcursionResult { what, from_ns, to_ns, level, beside, start_up }];
        let settled_ns = Some(5_500_000_000);
        phase.course = Some(CourseResult { settled_ns, excursions, ..CourseResult::default() });
        let found: Vec<_> = marks(&phase).iter().map(|m| (m.kind, m.begin, m.end)).collect();
        assert_eq!(found, [("settled", 5.5, 5.5), ("excursion", 2.0, 3.0)]);
    }

    #[test]
    fn a_curve_rises_and_ends_before_the_last_sample() {
        let mut histogram = kvdyno_core::measure::latency_histogram::<u64>();
        for n in 1..=1_000 {
            histogram.saturating_record(n * 1_000);
        }
        let curve = curve(&histogram);
        assert!(curve.x.windows(2).all(|pair| pair[0] <= pair[1]));
        assert!(curve.y.windows(2).all(|pair| pair[0] <= pair[1]));
        assert!(*curve.x.last().unwrap() >= 500.0);
    }
}

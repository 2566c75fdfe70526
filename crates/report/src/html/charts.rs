//! The data of the page's charts. Times are seconds since the phase began, latencies µs; numbers
//! have four significant digits, which is more than a chart shows.

use std::cmp::Reverse;
use std::ops::Range;
use std::path::Path;

use hdrhistogram::Histogram;
use serde::Serialize;

use super::brief::rounded;
use super::capacity::CapacityCharts;
use crate::ranking::store_labels;
use crate::result::{AgentResult, HistogramError, PhaseResult, RunResult, gathered, moments};
use crate::timeline::counted::Counted;
use crate::timeline::heat::Heat;
use crate::timeline::{
    ALL_KINDS, DrawnTimeline, Percentiles, PhaseTimeline, Point, ProcessTimeline, Slot, Use,
};
use crate::view::{Clock, phase_histogram};

/// Points of a percentile curve for each halving of the distance to 100 %.
const POINTS_PER_HALVING: u32 = 4;

/// Most columns of all heat maps together: about 60 bytes each in the page.
const MOST_COLUMNS_IN_ALL: usize = 2_400;
/// Most columns of one heat map.
const MOST_COLUMNS: usize = 120;

/// Most agents in one chart: more lines are told apart by nobody.
const MOST_AGENTS: usize = 30;

/// Share of a whole interval below which one has no rate of its own.
const SLIVER: f64 = 0.05;

/// Everything that is drawn.
#[derive(Serialize)]
pub(crate) struct Charts {
    pub stores: Vec<String>,
    pub phases: Vec<PhaseCharts>,
    pub capacity: Vec<CapacityCharts>,
}

/// A phase, of one store or of several.
#[derive(Serialize)]
pub(crate) struct PhaseCharts {
    pub title: String,
    pub prepares: bool,
    pub open: bool,
    pub runs: Vec<RunCharts>,
}

/// A phase of one store, or the points that have joined it.
#[derive(Serialize)]
pub(crate) struct RunCharts {
    /// Index in `stores`.
    store: usize,
    /// Successful operations a second, the whole phase.
    rate: Option<f64>,
    /// Begin and length of each point.
    start: Vec<f64>,
    length: Vec<f64>,
    backlog: Vec<u64>,
    /// Operations that fell due a second: the rate that was asked for.
    due: Vec<Option<f64>>,
    /// Largest delay of sent requests behind their due times, µs.
    latest_send: Vec<Option<f64>>,
    /// Errors a second by class, and wrong reads by kind.
    errors: Vec<CountCharts>,
    wrong: Vec<CountCharts>,
    kinds: Vec<KindCharts>,
    heat: HeatChart,
    service_curve: Option<Curve>,
    response_curve: Option<Curve>,
    processes: Vec<ProcessCharts>,
    /// Those that carried the load, where several did; at most [`MOST_AGENTS`], the slowest.
    agents: Vec<AgentLine>,
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
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Mark {
    /// `fault`, `event`, `settled` or `excursion`.
    pub kind: &'static str,
    pub text: String,
    pub begin: f64,
    /// `None` while it goes on.
    pub end: Option<f64>,
}

/// Data of the charts of a phase of one store.
#[derive(Default)]
pub(crate) struct RunSource<'a> {
    /// Index in the charts' stores.
    pub store: usize,
    pub rate: Option<f64>,
    pub timeline: Option<&'a PhaseTimeline>,
    pub uses: &'a [ProcessTimeline],
    /// Points before these are left out: of the timeline, and of each process.
    pub from: (usize, &'a [usize]),
    /// Columns of the heat map at most; `None` if each point has its own.
    pub columns: Option<usize>,
    pub service: Option<Histogram<u64>>,
    pub response: Option<Histogram<u64>>,
    pub marks: Vec<Mark>,
    pub agents: Vec<AgentLine>,
}

/// The p99 of one agent over time.
#[derive(Serialize)]
pub(crate) struct AgentLine {
    name: String,
    /// s since the phase began.
    x: Vec<f64>,
    /// µs.
    y: Vec<f64>,
}

/// Use of resources by kvdyno or a node over time.
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

/// Counts under a name, a second.
#[derive(Serialize)]
struct CountCharts {
    name: String,
    rate: Vec<Option<f64>>,
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
    pub(crate) fn new(
        result: &RunResult,
        timeline: &DrawnTimeline,
    ) -> Result<Charts, HistogramError> {
        let count: usize = result.runs.iter().map(|run| run.phases.len()).sum();
        let columns = (MOST_COLUMNS_IN_ALL / count.max(1)).clamp(10, MOST_COLUMNS);
        let of_run = |&(store, phase): &(usize, &PhaseResult)| {
            RunCharts::drawn(store, phase, timeline, Some(columns))
        };
        let of_phase = |runs: Vec<(usize, &PhaseResult)>| {
            let first = runs[0].1;
            Ok(PhaseCharts {
                title: title(&first.label, &first.name),
                prepares: first.prepares(),
                open: first.open(),
                runs: runs.iter().map(of_run).collect::<Result<_, _>>()?,
            })
        };
        let phases = phases_of(result).into_iter().map(of_phase).collect::<Result<_, _>>()?;
        let capacity = CapacityCharts::all(result);
        Ok(Charts { stores: store_labels(result), phases, capacity })
    }

    /// The points of a stretch, seconds since it began, of the phase of this index: of each store that has it.
    pub(crate) fn stretch(
        result: &RunResult,
        folder: &Path,
        phase: usize,
        stretch: &Range<f64>,
    ) -> Result<Vec<RunCharts>, HistogramError> {
        let mut phases = phases_of(result);
        let runs = if phase < phases.len() { phases.swap_remove(phase) } else { Vec::new() };
        let timeline = DrawnTimeline::read_stretch(folder, runs.iter().copied(), stretch);
        let of_run = |(store, phase)| RunCharts::drawn(store, phase, &timeline, None);
        runs.into_iter().map(of_run).collect()
    }

    /// Something can be drawn over time.
    pub(super) fn has_timeline(&self) -> bool {
        self.phases.iter().flat_map(|phase| &phase.runs).any(|run| !run.start.is_empty())
    }
}

/// Label and name of a phase, once where they are the same.
pub(crate) fn title(label: &str, name: &str) -> String {
    match label.eq_ignore_ascii_case(name) {
        true => label.to_owned(),
        false => format!("{label} · {name}"),
    }
}

/// The phases as charts have them: each with the number of every store that has it.
fn phases_of(result: &RunResult) -> Vec<Vec<(usize, &PhaseResult)>> {
    let mut phases: Vec<Vec<(usize, &PhaseResult)>> = Vec::new();
    for (store, run) in result.runs.iter().enumerate() {
        for phase in &run.phases {
            let name = |phase: &PhaseResult| (phase.index, title(&phase.label, &phase.name));
            match phases.iter_mut().find(|known| name(known[0].1) == name(phase)) {
                Some(known) => known.push((store, phase)),
                None => phases.push(vec![(store, phase)]),
            }
        }
    }
    phases
}

impl RunSource<'_> {
    /// Takes the charts from a phase's result; the timeline is added later.
    pub(crate) fn of_result<'a>(
        store: usize,
        phase: &PhaseResult,
    ) -> Result<RunSource<'a>, HistogramError> {
        Ok(RunSource {
            store,
            rate: phase.rate(),
            service: phase_histogram(phase, Clock::Service)?,
            response: if phase.open() { phase_histogram(phase, Clock::Response)? } else { None },
            marks: marks(phase),
            agents: agent_lines(&phase.agents),
            ..RunSource::default()
        })
    }
}

impl RunCharts {
    /// A phase of a result, with what its folder tells of how it went over time.
    fn drawn(
        store: usize,
        phase: &PhaseResult,
        timeline: &DrawnTimeline,
        columns: Option<usize>,
    ) -> Result<RunCharts, HistogramError> {
        Ok(RunCharts::of(RunSource {
            timeline: timeline.phase(store, phase.index),
            uses: timeline.uses(store, phase.index),
            columns,
            ..RunSource::of_result(store, phase)?
        }))
    }

    /// A phase of run `run` of some result, as the side of this number in a comparison.
    pub(crate) fn of_side(
        side: usize,
        run: usize,
        phase: &PhaseResult,
        timeline: &DrawnTimeline,
        columns: usize,
    ) -> Result<RunCharts, HistogramError> {
        let charts = RunCharts::drawn(run, phase, timeline, Some(columns))?;
        Ok(RunCharts { store: side, ..charts })
    }

    pub(crate) fn of(source: RunSource<'_>) -> RunCharts {
        let (from, used_from) = source.from;
        let slots = source.timeline.map_or(&[][..], |timeline| after(&timeline.slots, from));
        let lengths: Vec<f64> = slots.iter().map(|slot| slot.length_s).collect();
        // A phase with one kind only is charted once.
        let is_one = source.timeline.is_some_and(|timeline| timeline.kinds.len() == 2);
        let kinds = source.timeline.iter().flat_map(|timeline| &timeline.kinds);
        let mut kinds: Vec<KindCharts> = kinds
            .filter(|(name, _)| !is_one || *name == ALL_KINDS)
            .map(|(name, points)| kind_charts(name, points, from, &lengths))
            .collect();
        kinds.sort_by_key(|kind| kind.name != ALL_KINDS);
        let heat = source.timeline.map_or(&[][..], |timeline| after(&timeline.heat, from));
        let uses = source.uses.iter();
        let counted = |of: fn(&PhaseTimeline) -> &Counted| {
            let of = source.timeline.map(of);
            let lines = of.into_iter().flat_map(|counted| counted.lines(from, from + slots.len()));
            let line = |(name, counts): (&str, Vec<u64>)| CountCharts {
                name: name.to_owned(),
                rate: per_second(counts, &lengths),
            };
            lines.map(line).collect()
        };
        let late = |slot: &Slot| match slot.latest_send {
            0 => None,
            late => rounded(late as f64 / 1e3),
        };
        RunCharts {
            store: source.store,
            rate: source.rate.and_then(rounded),
            start: slots.iter().map(|slot| millis(slot.start_s)).collect(),
            length: slots.iter().map(|slot| millis(slot.length_s)).collect(),
            backlog: slots.iter().map(|slot| slot.backlog).collect(),
            due: per_second(slots.iter().map(|slot| slot.offered).collect(), &lengths),
            latest_send: slots.iter().map(late).collect(),
            errors: counted(|timeline| &timeline.errors),
            wrong: counted(|timeline| &timeline.wrong),
            kinds,
            heat: heat_chart(heat, slots.len(), source.columns.unwrap_or(usize::MAX)),
            service_curve: source.service.as_ref().map(curve),
            response_curve: source.response.as_ref().map(curve),
            processes: uses
                .enumerate()
                .map(|(number, line)| {
                    let from = used_from.get(number).copied().unwrap_or(0);
                    process_charts(&line.process, after(&line.points, from))
                })
                .collect(),
            agents: source.agents,
            marks: source.marks,
        }
    }
}

/// Returns the elements after the first `from`.
fn after<T>(all: &[T], from: usize) -> &[T] {
    &all[from.min(all.len())..]
}

/// Seconds, to the millisecond.
fn millis(seconds: f64) -> f64 {
    (seconds * 1e3).round() / 1e3
}

/// The heat of `slots` points in at most `most` columns.
fn heat_chart(heat: &[Heat], slots: usize, most: usize) -> HeatChart {
    let every = slots.div_ceil(most).max(1);
    let columns = heat.chunks(every).map(|heat| Heat::sum(heat).column()).collect();
    HeatChart { every, columns }
}

fn marks(phase: &PhaseResult) -> Vec<Mark> {
    let mark = |kind, text: &str, begin: u64, end: u64| {
        let seconds = |ns: u64| millis(ns as f64 / 1e9);
        let (text, end) = (text.trim_end().to_owned(), Some(seconds(end)));
        Mark { kind, text, begin: seconds(begin), end }
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
    let steered = phase.steered.iter();
    let steered = steered.map(|by| mark("event", &by.text(), by.at_ns, by.at_ns));
    faults.chain(steered).chain(events).chain(settled).chain(excursions).collect()
}

/// Intervals are as long as those of the timeline: a second.
fn agent_lines(agents: &[AgentResult]) -> Vec<AgentLine> {
    let mut slowest: Vec<&AgentResult> =
        agents.iter().filter(|agent| !agent.p99s_ns.is_empty()).collect();
    slowest.sort_by_key(|agent| Reverse(agent.p99_ns));
    slowest.truncate(MOST_AGENTS);
    let line = |agent: &AgentResult| AgentLine {
        name: format!("{} ({})", agent.name, agent.machine),
        x: agent.p99s_ns.iter().map(|(interval, _)| f64::from(*interval) + 0.5).collect(),
        y: agent.p99s_ns.iter().map(|(_, p99)| *p99 as f64 / 1e3).collect(),
    };
    slowest.into_iter().map(line).collect()
}

fn process_charts(name: &str, points: &[Use]) -> ProcessCharts {
    let of = |figure: fn(&Use) -> Option<f64>| {
        points.iter().map(|point| rounded(figure(point)?)).collect()
    };
    let seconds =
        |figure: fn(&Use) -> f64| points.iter().map(|point| millis(figure(point))).collect();
    ProcessCharts {
        name: name.to_owned(),
        start: seconds(|point| point.start_s),
        length: seconds(|point| point.length_s),
        processors: of(|point| Some(point.processors)),
        memory: of(|point| Some(point.rss_bytes as f64 / 1e6)),
        written: of(|point| Some(point.written_bytes? as f64 / point.length_s)),
        network: of(|point| Some(point.network_bytes? as f64 / point.length_s)),
    }
}

/// Builds the charts of a kind from the points after the first `from`, which are `lengths` long, s.
fn kind_charts(name: &str, all: &[Point], from: usize, lengths: &[f64]) -> KindCharts {
    let points = after(all, from);
    let per_second =
        |count: fn(&Point) -> u64| per_second(points.iter().map(count).collect(), lengths);
    KindCharts {
        name: name.to_owned(),
        rate: per_second(|point| point.ok.saturating_sub(point.drained)),
        missed: per_second(|point| point.missed),
        failed: per_second(|point| point.failed),
        service: bands(all, from, |point| point.service),
        response: bands(all, from, |point| point.response),
    }
}

/// Divides counts of points by the points' `lengths`, s.
fn per_second(mut counts: Vec<u64>, lengths: &[f64]) -> Vec<Option<f64>> {
    let mut lengths = lengths.to_vec();
    let sliver = joins_sliver(&mut lengths);
    if let (true, [.., before, last]) = (sliver, &mut counts[..]) {
        *before += *last;
        *last = *before;
    }
    counts.iter().zip(&lengths).map(|(&n, length)| rounded(n as f64 / length)).collect()
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

/// Percentiles of the points after the first `from`; `None` if no point has any.
fn bands(all: &[Point], from: usize, clock: fn(&Point) -> Option<Percentiles>) -> Option<Bands> {
    if all.iter().all(|point| clock(point).is_none()) {
        return None;
    }
    let line = |figure: fn(Percentiles) -> u64| {
        after(all, from).iter().map(|p| rounded(figure(clock(p)?) as f64 / 1e3)).collect()
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
        let charts = kind_charts("get", &[point(100), point(90), point(10)], 0, &[1.0, 0.99, 0.01]);
        assert_eq!(charts.rate, [Some(100.0); 3]);
        let last = Point { drained: 5, ..point(30) };
        let charts = kind_charts("get", &[point(100), last], 0, &[1.0, 0.5]);
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
        assert_eq!(found, [("settled", 5.5, Some(5.5)), ("excursion", 2.0, Some(3.0))]);
    }

    #[test]
    fn the_slowest_agents_are_drawn_with_their_p99_over_time() {
        let agent = |number: u64| AgentResult {
            name: format!("agent-{number}"),
            machine: "m".to_owned(),
            p99_ns: Some(number * 1_000),
            p99s_ns: vec![(0, number * 1_000), (2, number * 2_000)],
            ..AgentResult::default()
        };
        let mut all: Vec<AgentResult> = (1..=40).map(agent).collect();
        all.push(AgentResult { p99_ns: Some(u64::MAX), ..AgentResult::default() });
        let lines = agent_lines(&all);
        assert_eq!((lines.len(), lines[0].name.as_str()), (30, "agent-40 (m)"));
        assert_eq!((&lines[0].x, &lines[0].y), (&vec![0.5, 2.5], &vec![40.0, 80.0]));
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

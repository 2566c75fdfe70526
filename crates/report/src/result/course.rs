//! Course of a phase: when it settled, where throughput or latency left their level, and what else went on at that time.

mod beside;

use std::time::Duration;

use kvdyno_core::ground::median;
use kvdyno_core::measure::{
    Interval, Nanos, Offspring, Resources, Settling, Stalls, Timeline, TimelinePoint, segments,
};
use serde::{Deserialize, Serialize};

use super::fault::{FaultResult, several};
use beside::Witnesses;

/// A throughput below this share of the usual one is a dip.
const DIP: f64 = 0.7;
/// A 99th percentile above this multiple of the usual one is an excursion.
const EXCURSION: f64 = 2.0;
/// An interval shorter than this share of the longest is not judged by itself.
const SLIVER: f64 = 0.5;
/// Fewest intervals among which one can stand out.
const FEWEST: usize = 8;
/// Longest gap between two pieces of the same work that count as one, ns.
const NEXT: u64 = 250_000_000;
/// Processor time below which a helper process did no work worth telling: a tick of the system's clock.
const IDLE: Duration = Duration::from_millis(10);
/// Most dips and excursions of a phase, and most events of servers, that a result keeps; all of them are counted.
const MOST: usize = 50;

/// Text between work and server in [`EventResult::what`].
const OF: &str = " of ";

/// Course of a phase.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct CourseResult {
    /// Begin of the steady part, ns since the phase began; `None` if there was none, or if the phase had too few
    /// intervals to tell.
    pub settled_ns: Option<u64>,
    /// True if the phase never settled.
    pub never_settled: bool,
    /// Change of the throughput (closed arrivals) or of the median latency (open ones) over the phase, as a share, if
    /// that is a trend that goes on to its end; else 0.
    pub trend: f64,
    /// Dips of the throughput and excursions of the latency, in order of time.
    pub excursions: Vec<ExcursionResult>,
    /// Number of all of them, of which `excursions` has the first; 0 in results of versions that did not count them.
    pub excursions_in_all: u64,
    /// Other work of servers and engines than answering requests: snapshots, rewrites, compactions.
    pub events: Vec<EventResult>,
    /// Number of all of it, of which `events` has the longest; 0 as above.
    pub events_in_all: u64,
}

/// A piece of a server's other work than answering requests.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct EventResult {
    /// Kind of work and name of the server: `snapshot of redis-1`.
    pub what: String,
    /// Time at which it was first seen, ns since the phase began; 0 if it was under way.
    pub from_ns: u64,
    /// Time at which it was last seen, ns since the phase began.
    pub to_ns: u64,
}

impl EventResult {
    /// Describes the work and its time; a single moment is given without an end.
    pub(crate) fn text(&self) -> String {
        let seconds = |ns: u64| format!("{:.1} s", ns as f64 / 1e9);
        match seconds(self.from_ns) {
            at if self.to_ns == self.from_ns => format!("{} at {at}", self.what),
            from => format!("{} from {from} to {}", self.what, seconds(self.to_ns)),
        }
    }
}

/// A stretch in which throughput or latency left their level.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ExcursionResult {
    /// Figure that left its level: `throughput` or `p99`.
    pub what: String,
    /// Begin, ns since the phase began.
    pub from_ns: u64,
    /// End, ns since the phase began.
    pub to_ns: u64,
    /// Its level in that stretch, as a multiple of the usual one.
    pub level: f64,
    /// Explanations, a phrase each without a stop: events that are large enough, and go on more than in the rest of the
    /// phase. Empty if it is unexplained.
    pub beside: Vec<String>,
    /// True if the load was not yet level with its schedule: open arrivals at the begin of a phase, before any fault.
    /// Events beside it do not matter then.
    pub start_up: bool,
}

/// Known events of a phase.
#[derive(Clone, Copy, Debug)]
pub struct Known<'a> {
    /// Faults and repairs of the testbed.
    pub faults: &'a [FaultResult],
    /// Resources that the machine and the servers used.
    pub resources: Option<&'a Resources>,
    /// Names of the sampled servers, in their order.
    pub nodes: &'a [String],
    /// Work that servers and engines reported.
    pub work: &'a [EventResult],
    /// Stretches in which kvdyno itself stood still.
    pub stalls: &'a Stalls,
}

impl CourseResult {
    /// Describes the course of a phase, if there are enough intervals; `open` is true if arrivals had due times.
    #[must_use]
    pub fn of(timeline: &Timeline, open: bool, known: Known<'_>) -> Option<CourseResult> {
        let (points, start) = (whole(timeline), timeline.start);
        if points.len() < FEWEST {
            return None;
        }
        let rates: Vec<f64> = points.iter().map(|point| point.interval.rate()).collect();
        let mut course = CourseResult::default();
        let spans: Vec<Span> = points.iter().map(|point| Span::of(point)).collect();
        // With open arrivals the schedule sets the rate, so latency tells whether the store has settled.
        let (judged, of_judged) = match open {
            true => carried(timeline, |point| point.p50),
            false => (rates.clone(), spans.clone()),
        };
        if let Some(settling) = Settling::of(&judged) {
            let since = |index: usize| of_judged[index].from.saturating_sub(start);
            course.never_settled = settling.from.is_none();
            course.settled_ns = settling.from.map(|from| if from == 0 { 0 } else { since(from) });
            course.trend = settling.trend;
        }
        course.excursions.extend(dips(&spans, &rates, start));
        let (p99s, of_p99s) = carried(timeline, |point| point.p99);
        if p99s.len() >= FEWEST {
            course.excursions.extend(excursions(&of_p99s, &p99s, start));
        }
        course.excursions.sort_by_key(|excursion| excursion.from_ns);
        course.excursions_in_all = course.excursions.len() as u64;
        course.excursions.truncate(MOST);
        let events = known.events(start);
        let witnesses = Witnesses { known: &known, events: &events, points: &points, start };
        for excursion in &mut course.excursions {
            excursion.beside = witnesses.beside(excursion);
            excursion.start_up = open && starts_up(timeline, excursion, known.faults);
        }
        course.events_in_all = events.len() as u64;
        course.events = longest(events);
        Some(course)
    }
}

/// Returns true if an excursion begins before the load is level with its schedule, and no fault was begun by its end.
fn starts_up(timeline: &Timeline, it: &ExcursionResult, faults: &[FaultResult]) -> bool {
    let level = timeline.level_from.map_or(u64::MAX, |from| from.saturating_sub(timeline.start));
    let disturbed = faults.iter().any(|f| f.error.is_none() && f.began_ns < it.to_ns);
    (it.from_ns == 0 || it.from_ns < level) && !disturbed
}

/// Returns the intervals that are long enough to be judged.
fn whole(timeline: &Timeline) -> Vec<&TimelinePoint> {
    let longest = timeline.intervals().map(Interval::length).max().unwrap_or(0) as f64;
    let whole = |point: &&TimelinePoint| {
        let length = point.interval.length();
        length > 0 && length as f64 >= longest * SLIVER
    };
    timeline.points.iter().filter(whole).collect()
}

/// Time that a value is about, on core's clock.
#[derive(Clone, Copy, Debug)]
struct Span {
    from: Nanos,
    to: Nanos,
}

impl Span {
    fn of(point: &TimelinePoint) -> Span {
        Span { from: point.interval.start, to: point.interval.end }
    }
}

/// Returns a latency over the phase's time: a value for each stretch with enough operations for it, and these stretches.
fn carried(
    timeline: &Timeline,
    figure: fn(&TimelinePoint) -> Option<u64>,
) -> (Vec<f64>, Vec<Span>) {
    let (mut values, mut spans, mut from) = (Vec::new(), Vec::new(), None);
    for point in &timeline.points {
        let Span { from: begin, to } = Span::of(point);
        let since = *from.get_or_insert(begin);
        if let Some(value) = figure(point) {
            values.push(value.max(1) as f64);
            spans.push(Span { from: since, to });
            from = None;
        }
    }
    (values, spans)
}

fn dips(spans: &[Span], rates: &[f64], start: Nanos) -> Vec<ExcursionResult> {
    let usual = median(rates);
    if usual <= 0.0 {
        return Vec::new();
    }
    let relative: Vec<f64> = rates.iter().map(|rate| rate / usual).collect();
    stretches(spans, &relative, "throughput", start, |level| level < DIP, |level| level)
}

fn excursions(spans: &[Span], p99s: &[f64], start: Nanos) -> Vec<ExcursionResult> {
    let logs: Vec<f64> = p99s.iter().map(|p99| p99.ln()).collect();
    let usual = median(&logs);
    let relative: Vec<f64> = logs.iter().map(|log| log - usual).collect();
    stretches(spans, &relative, "p99", start, |level| level > EXCURSION.ln(), f64::exp)
}

/// Returns the stretches whose level is `out`; neighbours are joined.
fn stretches(
    spans: &[Span],
    series: &[f64],
    what: &str,
    start: Nanos,
    out: impl Fn(f64) -> bool,
    told: impl Fn(f64) -> f64,
) -> Vec<ExcursionResult> {
    let mut joined: Vec<(usize, usize)> = Vec::new();
    for segment in segments(series).iter().filter(|segment| out(segment.level)) {
        match joined.last_mut() {
            Some((_, to)) if *to == segment.from => *to = segment.to,
            _ => joined.push((segment.from, segment.to)),
        }
    }
    let stretch = |(from, to): (usize, usize)| {
        let level = series[from..to].iter().sum::<f64>() / (to - from) as f64;
        ExcursionResult {
            what: what.to_owned(),
            from_ns: spans[from].from.saturating_sub(start),
            to_ns: spans[to - 1].to.saturating_sub(start),
            level: told(level),
            beside: Vec::new(),
            start_up: false,
        }
    };
    joined.into_iter().map(stretch).collect()
}

impl Known<'_> {
    /// Returns the other work of the servers, in processes of their own or as they report it, with pieces of the same
    /// work joined if they follow one another closely.
    fn events(&self, start: Nanos) -> Vec<EventResult> {
        let children = self.resources.into_iter().flat_map(|resources| &resources.offspring);
        let event = |child: &Offspring| {
            let since = |at: Nanos| at.saturating_sub(start);
            let what = named_event(child, self.nodes);
            EventResult { what, from_ns: since(child.from), to_ns: since(child.to) }
        };
        // A process that is only idle did no work.
        let worked =
            |child: &&Offspring| is_named(child) || child.worked(start, Nanos::MAX) >= IDLE;
        let children = children.filter(|child| child.to >= start).filter(worked).map(event);
        let mut all: Vec<EventResult> = self.work.iter().cloned().chain(children).collect();
        all.sort_by_key(|event| event.from_ns);
        let mut joined: Vec<EventResult> = Vec::new();
        for event in all {
            let near = |last: &&mut EventResult| {
                last.what == event.what && event.from_ns <= last.to_ns.saturating_add(NEXT)
            };
            match joined.iter_mut().rev().find(near) {
                Some(last) => last.to_ns = last.to_ns.max(event.to_ns),
                None => joined.push(event),
            }
        }
        joined
    }
}

/// Returns the events that a result keeps: the longest, in order of time.
fn longest(mut events: Vec<EventResult>) -> Vec<EventResult> {
    events.sort_by_key(|event| std::cmp::Reverse(event.to_ns.saturating_sub(event.from_ns)));
    events.truncate(MOST);
    events.sort_by_key(|event| event.from_ns);
    events
}

/// Joins the same work of several servers at the same time, or of one server right after the other.
pub(crate) fn gathered<'a>(events: impl Iterator<Item = &'a EventResult>) -> Vec<EventResult> {
    let mut all: Vec<&EventResult> = events.collect();
    all.sort_by_key(|event| event.from_ns);
    let mut works: Vec<(&str, Vec<&str>, u64, u64)> = Vec::new();
    for event in all {
        let (work, node) = event.what.rsplit_once(OF).unwrap_or((event.what.as_str(), ""));
        let known = works
            .iter_mut()
            .rfind(|(known, _, _, to)| *known == work && event.from_ns <= to.saturating_add(NEXT));
        match known {
            Some((_, nodes, _, to)) => {
                if !nodes.contains(&node) {
                    nodes.push(node);
                }
                *to = (*to).max(event.to_ns);
            }
            None => works.push((work, vec![node], event.from_ns, event.to_ns)),
        }
    }
    let event = |(work, nodes, from_ns, to_ns): (&str, Vec<&str>, u64, u64)| EventResult {
        what: format!("{work}{OF}{}", several(&nodes)),
        from_ns,
        to_ns,
    };
    works.into_iter().map(event).collect()
}

/// Names the purpose of a process that a server started, if its name tells; else its name.
fn work(child: &Offspring) -> &str {
    match child.name.as_str() {
        name if name.contains("aof-rewrite") => "rewrite of the append-only file",
        name if name.contains("rdb-bgsave") => "snapshot",
        name if name.contains("rdb-to-slaves") => "snapshot for a replica",
        // The process ended before it was renamed after its work.
        name if name.ends_with("-server") => "fork",
        name => name,
    }
}

/// Returns true if the purpose of a process that a server started is known.
fn is_named(child: &Offspring) -> bool {
    work(child) != child.name
}

/// Names the work of a process that a server started, and the server.
fn named_event(child: &Offspring, nodes: &[String]) -> String {
    let node = nodes.get(child.server).map_or("a server", String::as_str);
    format!("{}{OF}{node}", work(child))
}

#[cfg(test)]
mod tests;

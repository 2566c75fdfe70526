//! Explanations for throughput or latency that left their level. An event at the same time is no explanation by itself:
//! it must have gone on more than usual, and be large enough. Else the result says that the excursion is unexplained.

use kvdyno_core::measure::{LEAST_GAP, Nanos, Offspring, Sample, TimelinePoint};

use super::{EventResult, ExcursionResult, Known, gathered, is_named, named_event};
use crate::result::fault::moments;
use kvdyno_core::ground::numbers::grouped;

/// Longest time between the end of a cause and its effect, ns: intervals are seconds.
const SHORTLY_BEFORE: u64 = 2_000_000_000;
/// Least share of the missing throughput that an explanation of a dip must account for.
const ENOUGH: f64 = 0.5;
/// Multiple of its share in the rest of the phase from which on an event goes on more than usual.
const MORE: f64 = 2.0;
/// Share of the requests that must be hit to move a 99th percentile.
const ONE_IN_A_HUNDRED: f64 = 0.01;
/// Steal beyond the usual that may move a 99th percentile, as a share of all processors' time.
const STEAL: f64 = 0.05;
/// Least processors' time of which a share of steal can be told, ns: a hundred ticks of the system's clock.
const TICKED: f64 = 1e9;
/// Least share of a processor that a helper process must have used to slow down others.
const WORKED: f64 = 0.05;
/// Length by which a momentary event counts, ns: servers are sampled ten times a second.
const MOMENT: u64 = 100_000_000;

/// All possible explanations in a phase.
pub(super) struct Witnesses<'a> {
    pub known: &'a Known<'a>,
    /// Other work of servers and engines; all of it.
    pub events: &'a [EventResult],
    pub points: &'a [&'a TimelinePoint],
    /// Begin of the phase, on core's clock.
    pub start: Nanos,
}

/// A part of a phase, ns since its begin.
#[derive(Clone, Copy)]
struct Window {
    from: u64,
    to: u64,
}

impl Window {
    fn length(self) -> u64 {
        self.to.saturating_sub(self.from)
    }

    fn overlap(self, from: u64, to: u64) -> u64 {
        to.min(self.to).saturating_sub(from.max(self.from))
    }

    fn touches(self, from: u64, to: u64) -> bool {
        from <= self.to && to >= self.from
    }
}

/// Sums within a stretch and in the rest of the phase: of a part, and of the whole that it is a part of.
#[derive(Default)]
struct Shares {
    within: [f64; 2],
    without: [f64; 2],
}

impl Shares {
    fn add(&mut self, inside: bool, part: f64, whole: f64) {
        let sums = if inside { &mut self.within } else { &mut self.without };
        sums[0] += part;
        sums[1] += whole;
    }

    fn within(&self) -> f64 {
        self.within[0] / self.within[1].max(1.0)
    }

    fn usual(&self) -> f64 {
        self.without[0] / self.without[1].max(1.0)
    }

    fn more_than_usual(&self) -> bool {
        self.within() > MORE * self.usual()
    }
}

impl Witnesses<'_> {
    /// Lists the explanations of a stretch, weightiest first; a phrase each, without a stop.
    pub(super) fn beside(&self, stretch: &ExcursionResult) -> Vec<String> {
        let mut found = Vec::new();
        found.extend(self.standstill(stretch));
        found.extend(self.faults(stretch));
        found.extend(self.failures(stretch));
        found.extend(self.work(stretch));
        found.extend(self.steal(stretch));
        found
    }

    /// Explains a stretch by a standstill of kvdyno itself, if it lasted long enough.
    fn standstill(&self, stretch: &ExcursionResult) -> Option<String> {
        let at = |ns: u64| self.start.saturating_add(ns);
        let still = self.known.stalls.between(at(stretch.from_ns), at(stretch.to_ns));
        let share = still as f64 / during(stretch).length().max(1) as f64;
        let enough = u128::from(still) >= LEAST_GAP.as_nanos() && share >= least_share(stretch);
        let lasted = format!("{:.1} s", still as f64 / 1e9);
        enough.then(|| format!("a standstill of kvdyno itself of {lasted}"))
    }

    fn faults(&self, stretch: &ExcursionResult) -> Vec<String> {
        let window = shortly_before(stretch);
        let all = moments(self.known.faults);
        let done = all.iter().filter(|fault| fault.error.is_none());
        let near = done.filter(|fault| window.touches(fault.began_ns, fault.ended_ns));
        near.map(|fault| {
            let name = format!("{} {}", fault.what, fault.node);
            format!("{} at {:.1} s", name.trim_end(), fault.began_ns as f64 / 1e9)
        })
        .collect()
    }

    /// Explains a stretch by failed operations, if there were more of them than usual.
    fn failures(&self, stretch: &ExcursionResult) -> Option<String> {
        let since = |at: Nanos| at.saturating_sub(self.start);
        let mut shares = Shares::default();
        for TimelinePoint { interval, .. } in self.points {
            let inside = during(stretch).overlap(since(interval.start), since(interval.end)) > 0;
            shares.add(inside, interval.failed as f64, interval.completed as f64);
        }
        let more = shares.within() > ONE_IN_A_HUNDRED && shares.more_than_usual();
        more.then(|| format!("{} failed operations", grouped(shares.within[0])))
    }

    /// Explains a stretch by work of servers and engines that went on more than usual.
    fn work(&self, stretch: &ExcursionResult) -> Vec<String> {
        let window = shortly_before(stretch);
        let near = self.events.iter().filter(|event| window.touches(event.from_ns, event.to_ns));
        let explains = near.filter(|event| match self.helpers(&event.what) {
            helpers if helpers.is_empty() => self.went_on_more(&event.what, window),
            helpers => self.worked_more(&helpers, stretch),
        });
        gathered(explains).iter().map(EventResult::text).collect()
    }

    /// Returns the processes behind these events, if only their names are known.
    fn helpers(&self, what: &str) -> Vec<&Offspring> {
        let children = self.known.resources.into_iter().flat_map(|found| &found.offspring);
        let unnamed = children.filter(|child| !is_named(child));
        unnamed.filter(|child| named_event(child, self.known.nodes) == what).collect()
    }

    /// Returns true if the processes used more of a processor than in the rest of the phase, and enough to matter.
    fn worked_more(&self, helpers: &[&Offspring], stretch: &ExcursionResult) -> bool {
        let worked = |from: u64, to: u64| -> f64 {
            let (from, to) = (self.start.saturating_add(from), self.start.saturating_add(to));
            helpers.iter().map(|child| child.worked(from, to).as_nanos() as f64).sum()
        };
        let (all, window) = (self.whole(), during(stretch));
        let inside = worked(window.from, window.to);
        let mut shares = Shares::default();
        shares.add(true, inside, window.length() as f64);
        let rest = all.length().saturating_sub(window.length());
        shares.add(false, worked(all.from, all.to) - inside, rest as f64);
        shares.within() >= WORKED && shares.more_than_usual()
    }

    /// Returns true if the work went on for a larger share of the time than in the rest of the phase.
    fn went_on_more(&self, what: &str, window: Window) -> bool {
        let lasted = |within: Window| -> u64 {
            let alike = self.events.iter().filter(|event| event.what == what);
            alike.map(|e| within.overlap(e.from_ns, e.to_ns.max(e.from_ns + MOMENT))).sum()
        };
        let all = self.whole();
        let inside = lasted(window);
        let mut shares = Shares::default();
        shares.add(true, inside as f64, window.length() as f64);
        let rest = all.length().saturating_sub(window.length());
        shares.add(false, lasted(all).saturating_sub(inside) as f64, rest as f64);
        shares.more_than_usual()
    }

    fn whole(&self) -> Window {
        Window { from: 0, to: self.points.last().map_or(0, |last| last.interval.end - self.start) }
    }

    /// Explains a stretch by steal, if other virtual machines took more than usual, and enough for what is missing.
    fn steal(&self, stretch: &ExcursionResult) -> Option<String> {
        let since = |sample: &Sample| sample.at.saturating_sub(self.start);
        let mut shares = Shares::default();
        for pair in self.known.resources?.samples.windows(2) {
            let inside = during(stretch).overlap(since(&pair[0]), since(&pair[1])) > 0;
            let between = pair[1].machine.since(&pair[0].machine);
            let (stolen, all) = (between.steal.as_nanos(), between.total().as_nanos());
            shares.add(inside, stolen as f64, all as f64);
        }
        let least = if of_throughput(stretch) { least_share(stretch) } else { STEAL };
        let enough = shares.within[1] >= TICKED && shares.within() - shares.usual() >= least;
        let stolen = shares.within() * 100.0;
        (enough && shares.more_than_usual()).then(|| {
            format!("{stolen:.0} % of the processors' time gone to other virtual machines")
        })
    }
}

fn of_throughput(stretch: &ExcursionResult) -> bool {
    stretch.what == "throughput"
}

/// Returns the share of a stretch, or of the machine in it, that an event must have taken to explain it.
fn least_share(stretch: &ExcursionResult) -> f64 {
    match of_throughput(stretch) {
        true => (1.0 - stretch.level) * ENOUGH,
        false => ONE_IN_A_HUNDRED,
    }
}

fn during(stretch: &ExcursionResult) -> Window {
    Window { from: stretch.from_ns, to: stretch.to_ns }
}

fn shortly_before(stretch: &ExcursionResult) -> Window {
    Window { from: stretch.from_ns.saturating_sub(SHORTLY_BEFORE), to: stretch.to_ns }
}

//! A phase while it lasts, with its figures so far.

use std::collections::BTreeMap;
use std::ops::Range;

use hdrhistogram::{Counter, Histogram};
use kvdyno_core::measure::{
    Interval, KindTotal, OldRecords, Series, Troubles, latency_histogram, least_for,
};
use kvdyno_core::workload::PhasePlan;

use super::Change;
use crate::events::{MACHINE, PhaseBegan, Used};
use crate::html::charts::{Mark, RunCharts, RunSource, title};
use crate::result::{
    EventResult, FaultResult, PhaseResult, SeriesResult, SteeredResult, add, gathered,
};
use crate::timeline::growing::Growing;
use crate::timeline::{ProcessTimeline, Use, sum};

/// Most points of a process: beyond them neighbours are merged.
const MOST_USES: usize = 1_500;
/// Most events of servers that are marked in the charts.
const MOST_WORK: usize = 50;
/// Most events of servers that are kept, before those that belong together are merged.
const MOST_EVENTS: usize = 1_000;

/// A phase that has begun.
pub(super) struct LivePhase {
    run: usize,
    plan: PhasePlan,
    /// Begin, ns since the run began.
    offset_ns: u64,
    timeline: Growing,
    uses: Vec<ProcessTimeline>,
    published_uses: Vec<usize>,
    marks: Vec<Mark>,
    /// Events that servers reported of their other work.
    work: Vec<EventResult>,
    /// Errors and wrong reads so far.
    pub troubles: Troubles,
    /// Records that were old or absent, by what became of them, once they were read again.
    pub old: Option<OldRecords>,
    /// Latest interval.
    pub latest: Interval,
    /// Sums over all intervals so far.
    pub whole: BTreeMap<Series, KindTotal>,
    /// Seconds that have been measured.
    pub measured_s: f64,
    is_over: bool,
}

impl LivePhase {
    pub(super) fn new(began: &PhaseBegan) -> LivePhase {
        LivePhase {
            run: began.run,
            plan: began.plan.clone(),
            offset_ns: began.offset_ns,
            timeline: Growing::default(),
            uses: Vec::new(),
            published_uses: Vec::new(),
            marks: Vec::new(),
            work: Vec::new(),
            troubles: Troubles::default(),
            old: None,
            latest: Interval::default(),
            whole: BTreeMap::new(),
            measured_s: 0.0,
            is_over: false,
        }
    }

    pub(super) fn run(&self) -> usize {
        self.run
    }

    pub(super) fn plan(&self) -> &PhasePlan {
        &self.plan
    }

    pub(super) fn is_over(&self) -> bool {
        self.is_over
    }

    /// Returns true if it is phase `index` of run `run`.
    pub(super) fn is(&self, run: usize, index: u16) -> bool {
        self.run == run && self.plan.index == index
    }

    /// Returns true if it is the same phase, maybe of another store.
    pub(super) fn goes_with(&self, other: &LivePhase) -> bool {
        self.plan.index == other.plan.index && self.title() == other.title()
    }

    /// Returns the key by which phases are ordered: number of the run, and begin.
    pub(super) fn place(&self) -> (usize, u64) {
        (self.run, self.offset_ns)
    }

    pub(super) fn title(&self) -> String {
        title(&self.plan.label, &self.plan.name)
    }

    pub(super) fn prepares(&self) -> bool {
        self.plan.warmup || self.plan.load
    }

    pub(super) fn is_open(&self) -> bool {
        self.plan.groups.iter().any(|group| group.arrival.is_open())
    }

    pub(super) fn interval(&mut self, interval: &Interval) -> Change {
        let before = self.timeline.shown();
        let (points, series) = (before.slots.len(), before.series());
        self.timeline.add(interval, self.offset_ns);
        for (series, measure) in &interval.series {
            self.whole.entry(*series).or_default().add(measure);
        }
        self.troubles.add(&interval.troubles);
        self.measured_s += interval.length() as f64 / 1e9;
        self.latest = interval.clone();
        let after = self.timeline.shown();
        match (after.slots.len() >= points, after.series() == series) {
            (true, true) => Change::Points(points),
            _ => Change::Charts,
        }
    }

    pub(super) fn used(&mut self, used: &Used) -> Change {
        let (processes, mut is_thinned) = (self.uses.len(), false);
        for process in used.processes.iter().filter(|process| process.process != MACHINE) {
            let name = &process.process;
            let place = self.uses.iter().position(|known| known.process == *name);
            let place = place.unwrap_or_else(|| {
                self.uses.push(ProcessTimeline { process: name.clone(), points: Vec::new() });
                self.uses.len() - 1
            });
            let line = &mut self.uses[place];
            line.points.push(Use {
                start_s: used.from_ns.saturating_sub(self.offset_ns) as f64 / 1e9,
                length_s: used.to_ns.saturating_sub(used.from_ns) as f64 / 1e9,
                processors: process.processors,
                rss_bytes: process.rss_bytes.unwrap_or_default(),
                written_bytes: process.written_bytes,
                network_bytes: sum(process.received_bytes, process.sent_bytes),
            });
            if line.points.len() > MOST_USES {
                line.thin(MOST_USES / 2);
                is_thinned = true;
            }
        }
        match !is_thinned && processes == self.uses.len() {
            true => Change::Points(self.timeline.shown().slots.len()),
            false => Change::Charts,
        }
    }

    /// Returns the number of points of each process that viewers know.
    pub(super) fn published_uses(&self) -> &[usize] {
        &self.published_uses
    }

    /// Marks all points of processes as known to viewers.
    pub(super) fn mark_uses_published(&mut self) {
        self.published_uses.clear();
        self.published_uses.extend(self.uses.iter().map(|line| line.points.len()));
    }

    /// Returns the latest resource use of each process.
    pub(super) fn last_uses(&self) -> impl Iterator<Item = (&str, Use)> {
        self.uses.iter().filter_map(|line| Some((line.process.as_str(), *line.points.last()?)))
    }

    pub(super) fn fault_began(&mut self, what: &str, at_ns: u64) -> Change {
        let (text, begin) = (what.to_owned(), at_ns as f64 / 1e9);
        self.marks.push(Mark { kind: "fault", text, begin, end: None });
        Change::Points(self.timeline.shown().slots.len())
    }

    pub(super) fn fault_done(&mut self, fault: &FaultResult) -> Change {
        let text = format!("{} {}", fault.what, fault.node);
        let (begin, end) = (fault.began_ns as f64 / 1e9, Some(fault.ended_ns as f64 / 1e9));
        // The fault has had a mark since it began; of two of a kind that go on at once, the one that began with it.
        let is_its =
            |mark: &Mark| mark.end.is_none() && mark.begin <= begin && text.starts_with(&mark.text);
        let open = self.marks.iter().enumerate().filter(|(_, mark)| is_its(mark));
        let latest = open.max_by(|(_, a), (_, b)| a.begin.total_cmp(&b.begin)).map(|(at, _)| at);
        latest.map(|at| self.marks.remove(at));
        self.marks.push(Mark { kind: "fault", text: text.trim_end().to_owned(), begin, end });
        Change::Points(self.timeline.shown().slots.len())
    }

    pub(super) fn steered(&mut self, steered: &SteeredResult) -> Change {
        if let Some((group, change)) = steered.change()
            && let Some(group) = self.plan.groups.get_mut(group)
        {
            group.changes.push(change);
        }
        let begin = steered.at_ns as f64 / 1e9;
        self.marks.push(Mark { kind: "event", text: steered.text(), begin, end: Some(begin) });
        Change::Points(self.timeline.shown().slots.len())
    }

    /// Adds events that servers reported of their other work.
    pub(super) fn worked(&mut self, work: &[EventResult]) -> Change {
        self.work.extend(work.iter().cloned());
        let too_many = self.work.len().saturating_sub(MOST_EVENTS);
        self.work.drain(..too_many);
        Change::Points(self.timeline.shown().slots.len())
    }

    /// Returns marks for actions on the phase, and for the latest events of its servers.
    pub(super) fn all_marks(&self) -> Vec<Mark> {
        let work = gathered(self.work.iter());
        let mark = |work: &EventResult| {
            let seconds = |ns: u64| ns as f64 / 1e9;
            let (text, begin, end) =
                (work.what.clone(), seconds(work.from_ns), seconds(work.to_ns));
            Mark { kind: "event", text, begin, end: Some(end) }
        };
        // Only the latest are marked: a server that compacts all day has very many.
        let latest = work.iter().rev().take(MOST_WORK).rev().map(mark);
        self.marks.iter().cloned().chain(latest).collect()
    }

    /// Ends the phase: its clients are done, and records with suspicious reads were read again.
    pub(super) fn end(&mut self, old: OldRecords) {
        self.old = Some(old);
        self.timeline.end();
        self.is_over = true;
    }

    /// Draws its charts without the first points (of the timeline, of each process); for a phase that is over, from
    /// `result`. `None` if the result cannot be read.
    pub(super) fn charts(
        &self,
        from: (usize, &[usize]),
        result: Option<&PhaseResult>,
    ) -> Option<RunCharts> {
        let of_phase = match result {
            Some(result) => RunSource::of_result(self.run, result).ok()?,
            None => RunSource {
                store: self.run,
                rate: self.rate(),
                service: self.latency(|measure| (&measure.service, &measure.missed_service)),
                response: self.latency(|measure| (&measure.response, &measure.missed_response)),
                marks: self.all_marks(),
                ..RunSource::default()
            },
        };
        let timeline = Some(self.timeline.shown());
        Some(RunCharts::of(RunSource { timeline, uses: &self.uses, from, ..of_phase }))
    }

    /// Returns the points of a stretch, in seconds since the phase began, as finely as they are kept; nothing that is
    /// about the whole phase.
    pub(super) fn stretch(&self, stretch: &Range<f64>) -> RunCharts {
        let timeline = &self.timeline.stretch(stretch);
        let (store, uses) = (self.run, &self.uses[..]);
        RunCharts::of(RunSource { store, timeline: Some(timeline), uses, ..RunSource::default() })
    }

    /// Returns the results of its operations so far, and the measured time, ns.
    pub(super) fn so_far(&self) -> (Vec<SeriesResult>, u64) {
        let wall_ns = (self.measured_s * 1e9) as u64;
        let all = self.whole.iter();
        let series = all.map(|(series, m)| SeriesResult::new(&(*series, m.clone()), wall_ns));
        (series.collect(), wall_ns)
    }

    /// Returns the operations a second that succeeded so far.
    fn rate(&self) -> Option<f64> {
        let in_time = |measure: &KindTotal| measure.ok.saturating_sub(measure.drained.ok);
        let ok: u64 = self.whole.values().map(in_time).sum();
        (self.measured_s > 0.0).then(|| ok as f64 / self.measured_s)
    }

    /// Returns the latencies of all kinds so far; those of gets that found nothing only if all of them did.
    fn latency(&self, clock: Clock) -> Option<Histogram<u64>> {
        let is_miss = self.whole.values().all(|measure| measure.found() == 0);
        let mut all: Option<Histogram<u64>> = None;
        for measure in self.whole.values() {
            let (hits, misses) = clock(measure);
            if let Some(part) = if is_miss { misses } else { hits } {
                add(all.get_or_insert_with(latency_histogram), part);
            }
        }
        all
    }
}

/// Returns median, 90 %, 99 %, 99.9 % and the longest, µs; a percentile is left out if there are too few operations for it.
pub(super) fn latency<C: Counter>(histogram: &Histogram<C>) -> [Option<f64>; 5] {
    let count = histogram.len();
    [0.5, 0.9, 0.99, 0.999, 1.0].map(|quantile| match quantile {
        1.0 => (count > 0).then(|| histogram.max() as f64 / 1e3),
        quantile if count < least_for(quantile) => None,
        quantile => Some(histogram.value_at_quantile(quantile) as f64 / 1e3),
    })
}

/// Choice of a clock: latencies of operations that succeeded, and of gets that found nothing.
type Clock = fn(&KindTotal) -> (&Option<Histogram<u64>>, &Option<Histogram<u64>>);

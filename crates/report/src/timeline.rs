//! Timeline of a run for the charts: read back from the folder's files, so that a report made later shows the same as the
//! first one. Long runs are thinned by merging neighbouring intervals: counts are added and histograms merged,
//! percentiles never averaged.

pub(crate) mod counted;
pub(crate) mod growing;
pub(crate) mod heat;

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;

use hdrhistogram::Histogram;
use kvdyno_core::measure::{HistogramReader, add_latencies, five_figures, no_latencies};
use serde::Serialize;

use crate::events::MACHINE;
use crate::files::interval_log::{Measured, each_line, interval_at};
use crate::files::timeline_csv::{DrawnRow, counts};
use crate::files::{INTERVALS_FILE, RESOURCES_FILE, TIMELINE_FILE, resources_csv, timeline_csv};
use crate::result::{PhaseResult, RunResult};
use counted::Counted;
use heat::Heat;

/// Most points of one series on a chart.
const MOST_POINTS: usize = 2_000;
/// Most points of all series together: about 80 bytes each in the page, so some 640 kB.
const MOST_POINTS_IN_ALL: usize = 8_000;
/// Most series that are charted; a suite of a hundred phases with several kinds has fewer.
const MOST_SERIES: usize = 800;
/// Most rows of `timeline.csv` that are read: two weeks of seconds with four kinds.
const MOST_ROWS: usize = 5_000_000;
/// Most points of the resource use of all processes together.
const MOST_USES_IN_ALL: usize = 8_000;
/// Name of the series with all kinds together.
pub(crate) const ALL_KINDS: &str = "all";
/// Stretch that covers a whole phase.
const EVER: Range<f64> = f64::NEG_INFINITY..f64::INFINITY;

/// Timeline of each phase of each store.
#[derive(Debug, Default)]
pub struct DrawnTimeline {
    phases: BTreeMap<(usize, u16), PhaseTimeline>,
    /// Resource use of each process, by run and phase and in the order of the file.
    uses: BTreeMap<(usize, u16), Vec<ProcessTimeline>>,
}

/// Resource use of one process over time.
#[derive(Debug, Default)]
pub(crate) struct ProcessTimeline {
    /// `kvdyno` or the name of a node.
    pub process: String,
    pub points: Vec<Use>,
}

/// Resource use of a process during a stretch of time.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Use {
    /// Seconds since the phase began.
    pub start_s: f64,
    pub length_s: f64,
    pub processors: f64,
    pub rss_bytes: u64,
    pub written_bytes: Option<u64>,
    /// Bytes received and sent, by a node with a network namespace of its own.
    pub network_bytes: Option<u64>,
}

/// Timeline of a phase.
#[derive(Debug, Default)]
pub(crate) struct PhaseTimeline {
    /// Begin of each interval as in the file, to find an interval by its time.
    starts: Vec<f64>,
    /// Begin of the phase's first interval as in the file.
    began: Option<f64>,
    /// Intervals that make one point.
    factor: usize,
    /// True if the phase had nothing but gets that found nothing: else they are left out.
    misses: bool,
    /// Begin (seconds since the phase began) and length of each point, with figures of all kinds.
    pub slots: Vec<Slot>,
    /// Figures of each slot, by kind and for [`ALL_KINDS`].
    pub kinds: BTreeMap<String, Vec<Point>>,
    /// Latencies in each slot, all kinds: response time where there is one. Shorter than `slots` where the last ones have
    /// none.
    pub heat: Vec<Heat>,
    /// Errors by class.
    pub errors: Counted,
    /// Wrong reads by kind, as they were made.
    pub wrong: Counted,
}

/// Stretch of time of a point.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Slot {
    pub start_s: f64,
    pub length_s: f64,
    /// Operations that fell due, or with closed arrivals began.
    pub offered: u64,
    pub backlog: u64,
    /// Longest lag of a request, sent later than due although a client was free, ns.
    pub latest_send: u64,
}

/// Figures of one kind of operation in a slot.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Point {
    pub ok: u64,
    /// Operations among them that ended after the phase: they count in no rate.
    pub drained: u64,
    /// Gets that found nothing, where they are not among `ok`.
    pub missed: u64,
    pub failed: u64,
    pub service: Option<Percentiles>,
    pub response: Option<Percentiles>,
}

/// Latencies of a point, ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Percentiles {
    pub p50: u64,
    pub p90: u64,
    pub p99: u64,
    pub p99_9: u64,
    pub max: u64,
}

impl Percentiles {
    fn of(histogram: &Histogram<u64>) -> Option<Percentiles> {
        (!histogram.is_empty()).then(|| {
            let [p50, p90, p99, p99_9, max] = five_figures(histogram);
            Percentiles { p50, p90, p99, p99_9, max }
        })
    }
}

impl DrawnTimeline {
    /// Reads the timeline of `result` from its folder. Missing files and broken lines leave gaps: a report is made of the
    /// rest.
    #[must_use]
    pub fn read(folder: &Path, result: &RunResult) -> DrawnTimeline {
        let runs = result.runs.iter().enumerate();
        let phases = runs.flat_map(|(number, run)| run.phases.iter().map(move |p| (number, p)));
        DrawnTimeline::read_stretch(folder, phases, &EVER)
    }

    /// Reads a stretch (seconds since the phase began) of these phases alone, by the number of their run, as finely as a
    /// chart can show it.
    pub(crate) fn read_stretch<'a>(
        folder: &Path,
        phases: impl IntoIterator<Item = (usize, &'a PhaseResult)>,
        stretch: &Range<f64>,
    ) -> DrawnTimeline {
        let mut timeline = DrawnTimeline::default();
        for (run, phase) in phases {
            let charted = timeline.phases.entry((run, phase.index)).or_default();
            charted.misses = phase.only_misses();
        }
        timeline.read_rows(&folder.join(TIMELINE_FILE), stretch);
        timeline.thin();
        timeline.read_histograms(&folder.join(INTERVALS_FILE));
        timeline.read_uses(&folder.join(RESOURCES_FILE), stretch);
        timeline
    }

    /// Returns the resource use of each process during a phase of a run.
    pub(crate) fn uses(&self, run: usize, phase: u16) -> &[ProcessTimeline] {
        self.uses.get(&(run, phase)).map_or(&[], Vec::as_slice)
    }

    fn read_uses(&mut self, path: &Path, stretch: &Range<f64>) {
        resources_csv::each_drawn(path, MOST_ROWS, |row| {
            let began = self.phases.get(&(row.run, row.phase)).and_then(|phase| phase.began);
            let (Some(began), true) = (began, row.process != MACHINE) else { return };
            let start_s = row.start_s - began;
            if !overlaps(stretch, start_s, row.length_s) {
                return;
            }
            let processes = self.uses.entry((row.run, row.phase)).or_default();
            let process = match processes.iter_mut().find(|known| known.process == row.process) {
                Some(known) => known,
                None => {
                    let process = row.process.to_owned();
                    processes.push(ProcessTimeline { process, points: Vec::new() });
                    processes.last_mut().expect("it was just added")
                }
            };
            process.points.push(Use {
                start_s,
                length_s: row.length_s,
                processors: row.processors,
                rss_bytes: row.rss_bytes,
                written_bytes: row.written_bytes,
                network_bytes: sum(row.received_bytes, row.sent_bytes),
            });
            // A day has a hundred times as many points as can be drawn.
            if process.points.len() >= 2 * MOST_POINTS {
                process.thin(MOST_POINTS);
            }
        });
        let lines: usize = self.uses.values().map(Vec::len).sum();
        let most = (MOST_USES_IN_ALL / lines.max(1)).clamp(10, MOST_POINTS);
        self.uses.values_mut().flatten().for_each(|process| process.thin(most));
    }

    /// Returns the timeline of a phase of a run; `None` if it has no points.
    pub(crate) fn phase(&self, run: usize, phase: u16) -> Option<&PhaseTimeline> {
        self.phases.get(&(run, phase)).filter(|phase| !phase.slots.is_empty())
    }

    fn read_rows(&mut self, path: &Path, stretch: &Range<f64>) {
        let mut series = 0;
        timeline_csv::each_drawn(path, MOST_ROWS, |row| {
            if let Some(phase) = self.phases.get_mut(&(row.run, row.phase)) {
                series += phase.add_row(row, stretch, series < MOST_SERIES);
            }
        });
    }

    fn thin(&mut self) {
        let series: usize = self.phases.values().map(|p| p.kinds.len()).sum();
        let most = (MOST_POINTS_IN_ALL / series.max(1)).clamp(10, MOST_POINTS);
        for phase in self.phases.values_mut() {
            phase.thin(most);
        }
    }

    fn read_histograms(&mut self, path: &Path) {
        let mut gathered = Gathered::default();
        let mut reader = HistogramReader::default();
        each_line(path, |line| {
            let key = (line.run, line.phase);
            let Some(phase) = self.phases.get(&key) else { return };
            let Some(clock) = clock_of(line.measured, phase.misses) else { return };
            let Some(slot) = phase.slot_at(line.start_s) else { return };
            if gathered.place != Some((key, slot)) {
                self.settle(std::mem::take(&mut gathered));
                gathered.place = Some((key, slot));
            }
            if reader.read(line.encoded).is_ok() {
                reader.add_to(gathered.of(line.kind, clock));
            }
        });
        self.settle(gathered);
    }

    fn settle(&mut self, gathered: Gathered) {
        let Some((key, slot)) = gathered.place else { return };
        let Some(phase) = self.phases.get_mut(&key) else { return };
        let [service, response] = [0, 1].map(|clock| gathered.all(clock));
        phase.heat.resize_with(slot, Heat::default);
        phase.heat.push(response.as_ref().or(service.as_ref()).map(Heat::of).unwrap_or_default());
        let all = std::iter::once((ALL_KINDS.to_owned(), [service, response]));
        for (kind, [service, response]) in all.chain(gathered.kinds) {
            if let Some(point) = phase.kinds.get_mut(&kind).and_then(|k| k.get_mut(slot)) {
                point.service = service.as_ref().and_then(Percentiles::of);
                point.response = response.as_ref().and_then(Percentiles::of);
            }
        }
    }
}

/// Returns the clock by which a chart's latencies are measured (0 for service, 1 for response time); `None` if they are
/// not charted.
fn clock_of(measured: Measured, misses: bool) -> Option<usize> {
    match measured {
        Measured::Service => Some(0),
        Measured::Response => Some(1),
        Measured::MissedService if misses => Some(0),
        Measured::MissedResponse if misses => Some(1),
        _ => None,
    }
}

/// Returns true if a time that begins at `start_s` and lasts `length_s` overlaps the stretch.
fn overlaps(stretch: &Range<f64>, start_s: f64, length_s: f64) -> bool {
    start_s < stretch.end && start_s + length_s > stretch.start
}

/// Returns the sum of the known numbers; `None` if neither is known.
pub(crate) fn sum(one: Option<u64>, other: Option<u64>) -> Option<u64> {
    one.into_iter().chain(other).reduce(u64::saturating_add)
}

impl ProcessTimeline {
    /// Merges neighbours until at most `most` points are left: bytes are added, processors weighted with their time, and
    /// the most memory is kept.
    pub(crate) fn thin(&mut self, most: usize) {
        let factor = self.points.len().div_ceil(most).max(1);
        let merged = |points: &[Use]| {
            let length_s: f64 = points.iter().map(|point| point.length_s).sum();
            let busy: f64 = points.iter().map(|point| point.processors * point.length_s).sum();
            Use {
                length_s,
                processors: busy / length_s,
                rss_bytes: points.iter().map(|point| point.rss_bytes).max().unwrap_or_default(),
                written_bytes: points.iter().map(|point| point.written_bytes).sum(),
                network_bytes: points.iter().map(|point| point.network_bytes).sum(),
                ..points[0]
            }
        };
        self.points = self.points.chunks(factor).map(merged).collect();
    }
}

/// Histograms of one slot, while its lines are read. Lines come in the order of time, so that no more than one slot is in
/// memory.
#[derive(Default)]
struct Gathered {
    place: Option<((usize, u16), usize)>,
    kinds: BTreeMap<String, [Option<Histogram<u64>>; 2]>,
}

impl Gathered {
    /// Returns the latencies of a kind by a clock.
    fn of(&mut self, kind: &str, clock: usize) -> &mut Histogram<u64> {
        if !self.kinds.contains_key(kind) {
            self.kinds.insert(kind.to_owned(), [None, None]);
        }
        let both = self.kinds.get_mut(kind).expect("it is there");
        both[clock].get_or_insert_with(no_latencies)
    }

    /// Returns the latencies of all kinds by a clock.
    fn all(&self, clock: usize) -> Option<Histogram<u64>> {
        let mut kinds = self.kinds.values().filter_map(|both| both[clock].as_ref());
        let mut all = kinds.next()?.clone();
        kinds.for_each(|kind| add_latencies(&mut all, kind));
        Some(all)
    }
}

impl PhaseTimeline {
    /// Returns the number of lines that can be drawn: of each kind, and of each clock that has been read.
    pub(crate) fn series(&self) -> usize {
        let has =
            |points: &[Point], clock: fn(&Point) -> bool| usize::from(points.iter().any(clock));
        let of_kind = |points: &Vec<Point>| {
            1 + has(points, |point| point.service.is_some())
                + has(points, |point| point.response.is_some())
        };
        let kinds: usize = self.kinds.values().map(of_kind).sum();
        kinds + self.errors.names() + self.wrong.names()
    }

    /// Adds a row of the stretch; returns the number of series that it began. New kinds are taken only if there is `room`.
    fn add_row(&mut self, row: &DrawnRow<'_>, stretch: &Range<f64>, room: bool) -> usize {
        let since = row.start_s - *self.began.get_or_insert(row.start_s);
        if !overlaps(stretch, since, row.length_s) {
            return 0;
        }
        if self.starts.last() != Some(&row.start_s) {
            if !row.start_s.is_finite() || self.starts.last().is_some_and(|s| *s > row.start_s) {
                return 0;
            }
            self.starts.push(row.start_s);
            let DrawnRow { length_s, offered, backlog, latest_send_ns, .. } = *row;
            let latest_send = latest_send_ns;
            let slot = self.slots.len();
            self.slots.push(Slot { start_s: since, length_s, offered, backlog, latest_send });
            counts(row.errors).for_each(|(name, count)| self.errors.add(name, slot, count));
            counts(row.wrong).for_each(|(name, count)| self.wrong.add(name, slot, count));
        }
        let before = self.kinds.len();
        let count = self.slots.len();
        for kind in [ALL_KINDS, row.kind] {
            if kind.is_empty() || (!room && !self.kinds.contains_key(kind)) {
                continue;
            }
            if !self.kinds.contains_key(kind) {
                self.kinds.insert(kind.to_owned(), Vec::new());
            }
            let points = self.kinds.get_mut(kind).expect("it is there");
            points.resize_with(count, Point::default);
            let point = &mut points[count - 1];
            let (missed, drained_missed) = match self.misses {
                true => (0, 0),
                false => (row.found_nothing, row.drained_nothing),
            };
            point.ok = point.ok.saturating_add(row.ok.saturating_sub(missed));
            let drained = row.drained.saturating_sub(drained_missed);
            point.drained = point.drained.saturating_add(drained);
            point.missed = point.missed.saturating_add(missed.min(row.ok));
            point.failed = point.failed.saturating_add(row.failed);
        }
        self.kinds.len() - before
    }

    /// Merges neighbours until at most `most` points are left.
    fn thin(&mut self, most: usize) {
        self.factor = self.slots.len().div_ceil(most).max(1);
        let merged = |slots: &[Slot]| {
            let last = slots[slots.len() - 1];
            let end = last.start_s + last.length_s;
            let offered = slots.iter().fold(0, |sum, slot| slot.offered.saturating_add(sum));
            let length_s = end - slots[0].start_s;
            let latest_send = slots.iter().map(|slot| slot.latest_send).max().unwrap_or(0);
            Slot { length_s, offered, backlog: last.backlog, latest_send, ..slots[0] }
        };
        let count = self.slots.len();
        self.slots = self.slots.chunks(self.factor).map(merged).collect();
        self.errors.thin(self.factor);
        self.wrong.thin(self.factor);
        for points in self.kinds.values_mut() {
            points.resize_with(count, Point::default);
            let sum = |points: &[Point]| Point {
                ok: points.iter().fold(0, |sum, p| sum.saturating_add(p.ok)),
                drained: points.iter().fold(0, |sum, p| sum.saturating_add(p.drained)),
                missed: points.iter().fold(0, |sum, p| sum.saturating_add(p.missed)),
                failed: points.iter().fold(0, |sum, p| sum.saturating_add(p.failed)),
                ..Point::default()
            };
            *points = points.chunks(self.factor).map(sum).collect();
        }
        // A phase with one kind only is charted once.
        if self.kinds.len() == 2 {
            self.kinds.retain(|kind, _| kind == ALL_KINDS);
        }
    }

    /// Returns the slot of the interval that began at `start_s`; the log rounds to the millisecond.
    fn slot_at(&self, start_s: f64) -> Option<usize> {
        let interval = interval_at(&self.starts, start_s)?;
        Some(interval / self.factor.max(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;
    use kvdyno_core::measure::{histogram_from_text, latency_histogram};

    #[test]
    fn the_files_tell_what_was_measured() {
        let folder = tempfile::tempdir().unwrap();
        let result = sample::written(folder.path());
        let timeline = DrawnTimeline::read(folder.path(), &result);
        let phase = timeline.phase(0, 1).unwrap();
        let measured = &result.runs[0].phases[1];
        let all = &phase.kinds[ALL_KINDS];
        assert_eq!(all.iter().map(|p| p.ok).sum::<u64>(), measured.ok());
        assert_eq!(all.iter().map(|p| p.failed).sum::<u64>(), measured.unsuccessful());
        let longest = measured.series.iter().filter_map(|s| Some(s.service.as_ref()?.max_ns)).max();
        assert_eq!(all.iter().filter_map(|p| Some(p.service?.max)).max(), longest);
        assert_eq!(phase.kinds.len(), 3, "all, get and update: {:?}", phase.kinds.keys());
    }

    #[test]
    fn thinning_keeps_counts_and_merges_histograms() {
        let folder = tempfile::tempdir().unwrap();
        let result = sample::written(folder.path());
        let whole = DrawnTimeline::read(folder.path(), &result);
        let mut thin = DrawnTimeline::default();
        for key in whole.phases.keys() {
            thin.phases.insert(*key, PhaseTimeline::default());
        }
        thin.read_rows(&folder.path().join(TIMELINE_FILE), &EVER);
        thin.phases.values_mut().for_each(|phase| phase.thin(2));
        thin.read_histograms(&folder.path().join(INTERVALS_FILE));
        let (thin, whole) = (thin.phase(0, 1).unwrap(), whole.phase(0, 1).unwrap());
        assert!(whole.slots.len() > 2);
        assert_eq!(thin.slots.len(), 2);
        let ok = |phase: &PhaseTimeline| phase.kinds["get"].iter().map(|p| p.ok).sum::<u64>();
        assert_eq!(ok(thin), ok(whole));
        let max = |phase: &PhaseTimeline| {
            phase.kinds["get"].iter().filter_map(|p| Some(p.service?.max)).max()
        };
        assert_eq!(max(thin), max(whole));
        assert!(thin.kinds["get"].iter().all(|point| point.service.is_some()));
    }

    #[test]
    fn a_thin_point_is_the_merge_of_the_histograms_it_stands_for() {
        let folder = tempfile::tempdir().unwrap();
        let result = sample::written(folder.path());
        let mut thin = DrawnTimeline::default();
        thin.phases.insert((0, 1), PhaseTimeline::default());
        thin.read_rows(&folder.path().join(TIMELINE_FILE), &EVER);
        thin.phases.values_mut().for_each(|phase| phase.thin(3));
        thin.read_histograms(&folder.path().join(INTERVALS_FILE));
        let phase = thin.phase(0, 1).unwrap();
        assert_eq!(phase.slots.len(), 3);
        for (slot, of) in phase.slots.iter().enumerate() {
            let from = of.start_s + result.runs[0].phases[1].offset_ns as f64 / 1e9 - 0.01;
            let mut merged = [ALL_KINDS, "get", "update"].map(|kind| (kind, latency_histogram()));
            each_line(&folder.path().join(INTERVALS_FILE), |fine| {
                let is_in = fine.start_s >= from && fine.start_s < from + of.length_s;
                let is_of = (fine.run, fine.phase, fine.measured) == (0, 1, Measured::Service);
                for (kind, sum) in merged.iter_mut().filter(|_| is_in && is_of) {
                    if *kind == ALL_KINDS || *kind == fine.kind {
                        sum.add(histogram_from_text::<u64>(fine.encoded).unwrap()).unwrap();
                    }
                }
            });
            for (kind, sum) in &merged {
                assert_eq!(phase.kinds[*kind][slot].service, Percentiles::of(sum), "{kind} {slot}");
                assert!(!sum.is_empty());
            }
            assert_eq!(phase.heat[slot], Heat::of(&merged[0].1));
        }
    }

    #[test]
    fn each_process_has_its_use_over_time() {
        let folder = tempfile::tempdir().unwrap();
        let result = sample::written(folder.path());
        let timeline = DrawnTimeline::read(folder.path(), &result);
        let uses = timeline.uses(0, 1);
        let names: Vec<&str> = uses.iter().map(|line| line.process.as_str()).collect();
        assert_eq!(names, ["kvdyno", "node-1"]);
        let node = &uses[1].points;
        assert_eq!(node.len(), 3);
        assert!(node.iter().all(|point| (point.processors - 0.5).abs() < 1e-6), "{node:?}");
        assert_eq!(node.iter().map(|point| point.rss_bytes).max(), Some(4 << 20));
        assert_eq!(node[0].written_bytes, Some(1000));
        let mut thin = ProcessTimeline { process: String::new(), points: node.clone() };
        thin.thin(1);
        assert_eq!((thin.points[0].length_s, thin.points[0].written_bytes), (3.0, Some(3000)));
        assert!((thin.points[0].processors - 0.5).abs() < 1e-6);
        assert!(timeline.uses(9, 9).is_empty());
    }

    #[test]
    fn a_stall_is_a_point_without_operations() {
        let folder = tempfile::tempdir().unwrap();
        let result = sample::written(folder.path());
        let timeline = DrawnTimeline::read(folder.path(), &result);
        let all = &timeline.phase(1, 1).unwrap().kinds[ALL_KINDS];
        assert!(all.iter().any(|point| point.ok == 0 && point.service.is_none()));
    }

    #[test]
    fn broken_files_leave_gaps_and_nothing_worse() {
        let folder = tempfile::tempdir().unwrap();
        let result = sample::written(folder.path());
        for name in [TIMELINE_FILE, INTERVALS_FILE] {
            let path = folder.path().join(name);
            let bytes = std::fs::read(&path).unwrap();
            std::fs::write(&path, &bytes[..bytes.len() - 30]).unwrap();
        }
        assert!(DrawnTimeline::read(folder.path(), &result).phase(0, 0).is_some());
        std::fs::write(folder.path().join(TIMELINE_FILE), b"\xff\xfe,,\n\"").unwrap();
        std::fs::write(folder.path().join(INTERVALS_FILE), b"Tag=a,1,2,3,xx\n\xff").unwrap();
        assert!(DrawnTimeline::read(folder.path(), &result).phase(0, 0).is_none());
    }
}

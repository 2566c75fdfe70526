//! The timelines of the parts of a load become one. Each part has told of its own intervals; those that were at
//! one time, by the parts' calendars, are added: counts and whole histograms. No interval is split, so one that
//! lies over a border belongs where its middle is. One interval of each part is in memory at a time.

use std::iter::Peekable;
use std::path::Path;

use csv::{DeserializeRecordsIntoIter, ReaderBuilder};
use hdrhistogram::Histogram;
use kvdyno_core::measure::{Interval, KindMeasure, Nanos, Series, latency_histogram};
use kvdyno_core::workload::Kind;

use crate::files::interval_log::{LoggedHistogram, Measured, read_log};
use crate::files::timeline_csv::TimelineRow;
use crate::files::{INTERVALS_FILE, TIMELINE_FILE};
use crate::result::{PhaseResult, RunResult};

/// Length of an interval, ns.
const SECOND: Nanos = 1_000_000_000;

/// An interval of all parts together.
#[derive(Clone, Debug, PartialEq)]
pub struct JoinedInterval {
    /// Number of the store's run, from 0.
    pub run: usize,
    /// Place of the phase among those of the run, from 0.
    pub phase: usize,
    /// What all parts did; its times count from the begin of the merged run.
    pub interval: Interval,
}

/// The intervals of parts, in the order of time. Files that are missing and lines that are broken leave gaps.
pub struct JoinedTimeline<'a> {
    whole: &'a RunResult,
    parts: Vec<PartTimeline<'a>>,
}

/// Where an interval of a part belongs in the whole: run, phase, interval.
type Place = (usize, usize, u64);

impl<'a> JoinedTimeline<'a> {
    /// Of parts, each with its folder, that make up `whole`.
    pub fn of(
        parts: impl IntoIterator<Item = (&'a Path, &'a RunResult)>,
        whole: &'a RunResult,
    ) -> JoinedTimeline<'a> {
        let parts = parts.into_iter().map(|(folder, part)| PartTimeline::open(folder, part, whole));
        JoinedTimeline { whole, parts: parts.collect() }
    }
}

impl Iterator for JoinedTimeline<'_> {
    type Item = JoinedInterval;

    fn next(&mut self) -> Option<JoinedInterval> {
        let next = |part: &PartTimeline<'_>| part.next.as_ref().map(|(place, _)| *place);
        let place = self.parts.iter().filter_map(next).min()?;
        let (run, phase, index) = place;
        let of_phase = &self.whole.runs[run].phases[phase];
        let start = of_phase.offset_ns.saturating_add(index.saturating_mul(SECOND));
        let end = of_phase.offset_ns.saturating_add(of_phase.wall_ns);
        let end = start.saturating_add(SECOND).min(end).max(start);
        let index = u32::try_from(index).unwrap_or(u32::MAX);
        let mut interval = Interval { index, start, end, ..Interval::default() };
        for part in &mut self.parts {
            while part.next.as_ref().is_some_and(|(theirs, _)| *theirs == place) {
                if let Some((_, theirs)) = part.next.take() {
                    add(&mut interval, theirs);
                }
                part.advance();
            }
        }
        Some(JoinedInterval { run, phase, interval })
    }
}

/// Adds what another part did at the same time.
fn add(to: &mut Interval, other: Interval) {
    let Interval { index: _, start: _, end: _, offered, started, completed, failed, .. } = other;
    to.offered += offered;
    to.started += started;
    to.completed += completed;
    to.failed += failed;
    to.backlog += other.backlog;
    to.drained += other.drained;
    to.drained_failed += other.drained_failed;
    to.troubles.add(&other.troubles);
    for (series, measure) in other.series {
        match to.series.iter_mut().find(|(mine, _)| *mine == series) {
            Some((_, mine)) => mine.add(&measure),
            None => to.series.push((series, measure)),
        }
    }
    to.series.sort_by_key(|(series, _)| *series);
}

/// What one part has told, interval by interval.
struct PartTimeline<'a> {
    part: &'a RunResult,
    whole: &'a RunResult,
    rows: Option<Peekable<DeserializeRecordsIntoIter<std::fs::File, TimelineRow>>>,
    logged: Peekable<Box<dyn Iterator<Item = LoggedHistogram>>>,
    next: Option<(Place, Interval)>,
}

impl<'a> PartTimeline<'a> {
    fn open(folder: &Path, part: &'a RunResult, whole: &'a RunResult) -> PartTimeline<'a> {
        let reader = ReaderBuilder::new().flexible(true).from_path(folder.join(TIMELINE_FILE));
        let rows = reader.ok().map(|reader| reader.into_deserialize().peekable());
        let logged: Box<dyn Iterator<Item = _>> = Box::new(read_log(&folder.join(INTERVALS_FILE)));
        let mut timeline =
            PartTimeline { part, whole, rows, logged: logged.peekable(), next: None };
        timeline.advance();
        timeline
    }

    /// Reads the next interval of a phase that the result has.
    fn advance(&mut self) {
        while let Some(first) = self.row(|_| true) {
            let Some(phase) = self.phase_at(first.run, first.phase) else { continue };
            let mut interval = of_row(&first);
            let same = |row: &TimelineRow| {
                (row.run, row.phase, row.interval) == (first.run, first.phase, first.interval)
            };
            let mut rows = vec![first.clone()];
            while let Some(row) = self.row(same) {
                rows.push(row);
            }
            interval.series = rows.iter().filter_map(series_of).collect();
            let succeeded: u64 = rows.iter().map(|row| row.kind_drained).sum();
            interval.drained_failed = interval.drained.saturating_sub(succeeded);
            self.add_latencies(&first, phase, &mut interval);
            let (part, whole) = (&self.part.runs[first.run], &self.whole.runs[first.run]);
            let index = index_of(&first, &part.phases[phase], &whole.phases[phase]);
            self.next = Some(((first.run, phase, index), interval));
            return;
        }
    }

    /// The next row, if it is one that is wanted; broken ones are passed over.
    fn row(&mut self, wanted: impl Fn(&TimelineRow) -> bool) -> Option<TimelineRow> {
        let rows = self.rows.as_mut()?;
        while rows.next_if(|row| row.is_err()).is_some() {}
        rows.next_if(|row| row.as_ref().is_ok_and(&wanted))?.ok()
    }

    /// Place of a phase among those of its run.
    fn phase_at(&self, run: usize, index: u16) -> Option<usize> {
        let phases = &self.part.runs.get(run)?.phases;
        phases.iter().position(|phase| phase.index == index)
    }

    /// Adds the histograms of an interval, which began with `row`.
    fn add_latencies(&mut self, row: &TimelineRow, phase: usize, interval: &mut Interval) {
        // The log rounds to the millisecond.
        let at = (row.run, phase, (row.start_s * 1e3).round() as i64);
        loop {
            let told = self.logged.peek();
            let Some((run, phase, start_s)) = told.map(|l| (l.run, l.phase, l.start_s)) else {
                return;
            };
            let of = self.phase_at(run, phase);
            let theirs = of.map(|of| (run, of, (start_s * 1e3).round() as i64));
            let same = theirs.is_some_and(|(run, of, millis)| {
                (run, of) == (at.0, at.1) && (millis - at.2).abs() <= 1
            });
            if !same && theirs.is_some_and(|theirs| theirs > at) {
                return;
            }
            if let (Some(logged), true) = (self.logged.next(), same) {
                add_histogram(interval, &logged);
            }
        }
    }
}

/// Number of the interval of the whole in which the middle of a part's interval is.
fn index_of(row: &TimelineRow, part: &PhaseResult, whole: &PhaseResult) -> u64 {
    let nanos = |seconds: f64| (seconds.max(0.0) * 1e9) as Nanos;
    let late = part.started_at().zip(whole.started_at());
    let late = late.and_then(|(part, whole)| part.duration_since(whole).ok()).unwrap_or_default();
    let since = nanos(row.start_s).saturating_sub(part.offset_ns);
    let middle = since.saturating_add(nanos(row.length_s) / 2);
    let last = whole.wall_ns.div_ceil(SECOND).saturating_sub(1);
    let middle = middle.saturating_add(u64::try_from(late.as_nanos()).unwrap_or(u64::MAX));
    (middle / SECOND).min(last)
}

/// What a row tells of its interval as a whole.
fn of_row(row: &TimelineRow) -> Interval {
    let TimelineRow { offered, started, completed, failed, backlog, drained, .. } = *row;
    let troubles = row.troubles();
    let whole = Interval { offered, started, completed, failed, backlog, ..Interval::default() };
    Interval { drained, troubles, ..whole }
}

/// What a row tells of one kind of operation; nothing where nothing ended.
fn series_of(row: &TimelineRow) -> Option<(Series, KindMeasure)> {
    let kind = kind_of(&row.kind)?;
    let mut measure = KindMeasure {
        ok: row.ok,
        missing: row.missing,
        missed: row.missed,
        failed: row.kind_failed,
        indeterminate: row.kind_indeterminate,
        ..KindMeasure::default()
    };
    measure.drained.ok = row.kind_drained;
    measure.drained.found_nothing = row.kind_drained_nothing;
    Some((Series { group: row.group?, kind }, measure))
}

fn kind_of(name: &str) -> Option<Kind> {
    Kind::ALL.into_iter().find(|kind| kind.name() == name)
}

fn add_histogram(interval: &mut Interval, logged: &LoggedHistogram) {
    let kind = kind_of(&logged.kind);
    let of_it = |series: &Series| (series.group, Some(series.kind)) == (logged.group, kind);
    let Some((_, measure)) = interval.series.iter_mut().find(|(series, _)| of_it(series)) else {
        return;
    };
    let to = match logged.measured {
        Measured::Service => &mut measure.service,
        Measured::Response => &mut measure.response,
        Measured::MissedService => &mut measure.missed_service,
        Measured::MissedResponse => &mut measure.missed_response,
        Measured::FailedService => &mut measure.unsuccessful_service,
        Measured::FailedResponse => &mut measure.unsuccessful_response,
    };
    let to: &mut Histogram<u32> = to.get_or_insert_with(latency_histogram);
    for step in logged.histogram.iter_recorded() {
        let count = u32::try_from(step.count_at_value()).unwrap_or(u32::MAX);
        to.saturating_record_n(step.value_iterated_to(), count);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::time::Duration;

    use super::*;
    use crate::result::{Absent, merge, rfc3339};
    use crate::sample;
    use kvdyno_core::workload::Part;

    /// Two parts that did the same, the second `late` after the first, and all their intervals.
    fn joined(late: Duration) -> (Vec<RunResult>, RunResult, Vec<JoinedInterval>) {
        let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
        let parts: Vec<RunResult> = (0..)
            .zip(&folders)
            .map(|(index, folder)| {
                let mut part = sample::written(folder.path());
                part.part = Part { index, count: 2 };
                for phase in part.runs.iter_mut().flat_map(|run| &mut run.phases) {
                    let began = phase.started_at().unwrap() + late * index;
                    phase.started = rfc3339(began);
                }
                part
            })
            .collect();
        let whole = merge(&parts, Absent::Refuse).unwrap();
        let paths = folders.iter().map(|folder| folder.path());
        let all = JoinedTimeline::of(paths.zip(&parts), &whole).collect();
        (parts, whole, all)
    }

    fn of_phase(all: &[JoinedInterval], phase: usize) -> Vec<&Interval> {
        let of_it = all.iter().filter(|joined| (joined.run, joined.phase) == (0, phase));
        of_it.map(|joined| &joined.interval).collect()
    }

    #[test]
    fn what_was_at_one_time_is_added_with_its_latencies() {
        let (parts, whole, all) = joined(Duration::from_millis(300));
        for (number, phase) in whole.runs[0].phases.iter().enumerate() {
            let intervals = of_phase(&all, number);
            let alone = &parts[0].runs[0].phases[number];
            let mut counts: BTreeMap<Series, (u64, u64)> = BTreeMap::new();
            for (series, measure) in intervals.iter().flat_map(|interval| &interval.series) {
                let histogram = measure.service.as_ref().map_or(0, |service| service.len());
                let sum = counts.entry(*series).or_default();
                *sum = (sum.0 + measure.ok, sum.1 + histogram);
            }
            for series in &alone.series {
                let of_it = counts[&Series { group: series.group, kind: series.kind }];
                let latencies = series.service.as_ref().map_or(0, |service| service.count);
                assert_eq!(
                    of_it,
                    (2 * series.ok, 2 * latencies),
                    "{} {:?}",
                    phase.name,
                    series.kind
                );
            }
            let completed: u64 = intervals.iter().map(|interval| interval.completed).sum();
            assert_eq!(completed, phase.ok() + phase.unsuccessful(), "{}", phase.name);
            assert_eq!(intervals[0].start, phase.offset_ns);
            assert!(intervals.windows(2).all(|two| two[0].end == two[1].start), "{intervals:?}");
        }
    }

    #[test]
    fn what_was_two_seconds_later_stands_two_intervals_later() {
        let count = |late| {
            let (_, _, all) = joined(Duration::from_secs(late));
            let intervals = of_phase(&all, 1);
            intervals.iter().map(|interval| interval.completed).collect::<Vec<_>>()
        };
        let (together, apart) = (count(0), count(2));
        assert_eq!(apart.len(), together.len() + 2, "{together:?} {apart:?}");
        // Until the second part begins there is what the first did alone.
        assert_eq!((2 * apart[0], 2 * apart[1]), (together[0], together[1]));
        assert_eq!(apart.iter().sum::<u64>(), together.iter().sum::<u64>());
    }
}

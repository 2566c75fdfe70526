//! Samples for comparisons: each phase of each trial, interval by interval, with whole histograms. Percentiles cannot be
//! averaged, so a resample is made of intervals and its histograms are added.

use std::collections::BTreeMap;
use std::path::Path;

use kvdyno_core::measure::HistogramReader;
use kvdyno_core::workload::Kind;

use crate::files::interval_log::{Measured, each_line, interval_at};
use crate::files::timeline_csv::TimelineRow;
use crate::files::{INTERVALS_FILE, TIMELINE_FILE};
use crate::result::{HistogramError, Latency, PhaseResult, RunResult};

/// Most rows of `timeline.csv` that are read: two weeks of seconds with four kinds.
const MOST_ROWS: usize = 5_000_000;
/// An interval shorter than this share of the longest has no figures of its own.
const SLIVER: f64 = 0.5;
/// Most intervals of a trial; in longer ones neighbours are merged.
const MOST_SLOTS: usize = 240;

/// A stretch of a phase, with the outcomes of some operations in it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SampleSlot {
    /// Length, s.
    pub length_s: f64,
    /// Operations that succeeded, without gets that found nothing; in a phase that has no other gets, those gets.
    pub ok: u64,
    /// Operations among them that ended after the phase: they count in no rate.
    pub drained: u64,
    /// Operations that did not succeed.
    pub failed: u64,
    /// Latencies of those that succeeded, as (ns, count), ascending: response times where arrivals are open, else service
    /// times.
    pub latencies: Vec<(u64, u64)>,
}

impl SampleSlot {
    fn add(&mut self, other: &SampleSlot) {
        self.ok = self.ok.saturating_add(other.ok);
        self.drained = self.drained.saturating_add(other.drained);
        self.failed = self.failed.saturating_add(other.failed);
        let mut sum: BTreeMap<u64, u64> = self.latencies.iter().copied().collect();
        for &(value, count) in &other.latencies {
            *sum.entry(value).or_default() += count;
        }
        self.latencies = sum.into_iter().collect();
    }

    fn follow(&mut self, next: &SampleSlot) {
        self.length_s += next.length_s;
        self.add(next);
    }
}

/// A phase of one trial: its intervals in order, for each kind of operation.
#[derive(Clone, Debug, Default)]
pub struct PhaseSamples {
    kinds: BTreeMap<Kind, Vec<SampleSlot>>,
}

impl PhaseSamples {
    /// Makes a phase with one kind of operation.
    #[must_use]
    pub fn of_kind(kind: Kind, slots: Vec<SampleSlot>) -> PhaseSamples {
        PhaseSamples { kinds: BTreeMap::from([(kind, slots)]) }
    }

    /// Returns the intervals with all operations for whose kind `include` is true; none if there are no such operations.
    #[must_use]
    pub fn of(&self, include: impl Fn(Kind) -> bool) -> Vec<SampleSlot> {
        let mut sum: Vec<SampleSlot> = Vec::new();
        for (_, slots) in self.kinds.iter().filter(|(kind, _)| include(**kind)) {
            match sum.is_empty() {
                true => sum.clone_from(slots),
                false => sum.iter_mut().zip(slots).for_each(|(sum, slot)| sum.add(slot)),
            }
        }
        merged(sum)
    }
}

/// Merges slivers at the end, and intervals beyond [`MOST_SLOTS`], with their neighbours.
fn merged(mut slots: Vec<SampleSlot>) -> Vec<SampleSlot> {
    let longest = slots.iter().map(|slot| slot.length_s).fold(0.0, f64::max);
    if slots.len() > 1
        && let Some(last) = slots.pop_if(|last| last.length_s < longest * SLIVER)
        && let Some(before) = slots.last_mut()
    {
        before.follow(&last);
    }
    let factor = slots.len().div_ceil(MOST_SLOTS).max(1);
    if factor == 1 {
        return slots;
    }
    let joined = |slots: &[SampleSlot]| {
        let mut first = slots[0].clone();
        slots[1..].iter().for_each(|slot| first.follow(slot));
        first
    };
    slots.chunks(factor).map(joined).collect()
}

/// Every phase of a result, by number of the run and of the phase.
#[derive(Debug, Default)]
pub struct Samples {
    phases: BTreeMap<(usize, u16), Reading>,
}

/// A phase while its files are read.
#[derive(Debug, Default)]
struct Reading {
    starts: Vec<f64>,
    lengths: Vec<f64>,
    kinds: BTreeMap<Kind, Vec<SampleSlot>>,
    clocks: BTreeMap<Kind, Measured>,
}

impl Samples {
    /// Reads the intervals of `result` from its folder. A phase without intervals there becomes one interval: the whole
    /// of it, from `result.json`.
    ///
    /// # Errors
    /// [`HistogramError`] if a histogram of the result cannot be decoded.
    pub fn read(folder: &Path, result: &RunResult) -> Result<Samples, HistogramError> {
        let mut samples = Samples::default();
        for (number, run) in result.runs.iter().enumerate() {
            for phase in &run.phases {
                samples.phases.insert((number, phase.index), Reading::of(phase));
            }
        }
        samples.read_rows(&folder.join(TIMELINE_FILE));
        samples.read_histograms(&folder.join(INTERVALS_FILE));
        for (number, run) in result.runs.iter().enumerate() {
            for phase in &run.phases {
                if let Some(reading) = samples.phases.get_mut(&(number, phase.index)) {
                    reading.complete(phase)?;
                }
            }
        }
        Ok(samples)
    }

    /// Returns a phase of a run, for each kind of operation; empty if it is not in the result.
    #[must_use]
    pub fn phase(&self, run: usize, phase: u16) -> PhaseSamples {
        let reading = self.phases.get(&(run, phase));
        PhaseSamples { kinds: reading.map(|reading| reading.kinds.clone()).unwrap_or_default() }
    }

    fn read_rows(&mut self, path: &Path) {
        let Ok(reader) = csv::ReaderBuilder::new().flexible(true).from_path(path) else { return };
        for row in reader.into_deserialize::<TimelineRow>().take(MOST_ROWS) {
            let Ok(row) = row else { continue };
            if let Some(reading) = self.phases.get_mut(&(row.run, row.phase)) {
                reading.add_row(&row);
            }
        }
    }

    fn read_histograms(&mut self, path: &Path) {
        let mut reader = HistogramReader::default();
        each_line(path, |line| {
            let Some(reading) = self.phases.get_mut(&(line.run, line.phase)) else { return };
            let Some(at) = interval_at(&reading.starts, line.start_s) else { return };
            let kind = reading.clocks.iter().find(|(kind, _)| kind.name() == line.kind);
            let Some((&kind, _)) = kind.filter(|(_, clock)| **clock == line.measured) else {
                return;
            };
            let Ok(cells) = reader.read(line.encoded) else { return };
            let slots = reading.kinds.entry(kind).or_default();
            slots.resize_with(reading.starts.len(), SampleSlot::default);
            slots[at].add(&SampleSlot { latencies: cells.to_vec(), ..SampleSlot::default() });
        });
    }
}

impl Reading {
    /// Begins to read a phase. If a kind is in groups with open and with closed arrivals, its response time counts.
    fn of(phase: &PhaseResult) -> Reading {
        let mut reading = Reading::default();
        for series in &phase.series {
            let group = phase.groups.get(usize::from(series.group));
            let open = group.is_some_and(|group| group.open);
            let clock = match (open, phase.only_misses()) {
                (true, false) => Measured::Response,
                (false, false) => Measured::Service,
                (true, true) => Measured::MissedResponse,
                (false, true) => Measured::MissedService,
            };
            let known = reading.clocks.entry(series.kind).or_insert(clock);
            if open {
                *known = clock;
            }
        }
        reading
    }

    fn add_row(&mut self, row: &TimelineRow) {
        if self.starts.last() != Some(&row.start_s) {
            let forward = self.starts.last().is_none_or(|last| *last < row.start_s);
            if !(row.start_s.is_finite() && row.length_s > 0.0 && forward) {
                return;
            }
            self.starts.push(row.start_s);
            self.lengths.push(row.length_s);
        }
        let Some(&kind) = self.clocks.keys().find(|kind| kind.name() == row.kind) else { return };
        let slots = self.kinds.entry(kind).or_default();
        slots.resize_with(self.starts.len(), SampleSlot::default);
        let slot = slots.last_mut().expect("there is an interval");
        let clock = self.clocks.get(&kind);
        slot.ok = slot.ok.saturating_add(if misses(clock) { row.ok } else { row.found() });
        let drained = if misses(clock) { row.kind_drained } else { row.found_drained() };
        slot.drained = slot.drained.saturating_add(drained);
        let failed = row.kind_failed.saturating_add(row.kind_indeterminate);
        slot.failed = slot.failed.saturating_add(failed);
    }

    /// Gives every interval its length. Where histograms are missing, the phase's own replace them.
    fn complete(&mut self, phase: &PhaseResult) -> Result<(), HistogramError> {
        for slots in self.kinds.values_mut() {
            slots.resize_with(self.starts.len(), SampleSlot::default);
            slots.iter_mut().zip(&self.lengths).for_each(|(slot, &length)| slot.length_s = length);
        }
        let logged = |kind: &Kind| {
            let slots = self.kinds.get(kind).into_iter().flatten();
            slots.flat_map(|slot| &slot.latencies).map(|cell| cell.1).sum::<u64>()
        };
        let counted = |kind: &Kind| -> u64 {
            let of_kind = phase.series.iter().filter(|series| series.kind == *kind);
            let all = misses(self.clocks.get(kind));
            of_kind.map(|series| if all { series.ok } else { series.found() }).sum()
        };
        if self.clocks.keys().any(|kind| logged(kind) < counted(kind)) {
            for (&kind, &clock) in &self.clocks {
                self.kinds.insert(kind, vec![whole(phase, kind, clock)?]);
            }
        }
        if let (Some(unstarted), Some(slots)) = (&phase.unstarted, self.kinds.values_mut().next()) {
            // These operations waited until the phase was over, so they belong to its end.
            let last = slots.last_mut().expect("each kind has an interval");
            last.add(&SampleSlot { latencies: cells(unstarted)?, ..SampleSlot::default() });
        }
        Ok(())
    }
}

/// Returns true if gets that found nothing are measured: the phase has no other gets.
fn misses(clock: Option<&Measured>) -> bool {
    matches!(clock, Some(Measured::MissedService | Measured::MissedResponse))
}

/// Returns one kind of a phase as one interval.
fn whole(phase: &PhaseResult, kind: Kind, clock: Measured) -> Result<SampleSlot, HistogramError> {
    let mut slot = SampleSlot { length_s: phase.wall_ns as f64 / 1e9, ..SampleSlot::default() };
    for series in phase.series.iter().filter(|series| series.kind == kind) {
        let latency = match clock {
            Measured::Response => &series.response,
            Measured::MissedService => &series.missed_service,
            Measured::MissedResponse => &series.missed_response,
            _ => &series.service,
        };
        let (ok, in_time) = match misses(Some(&clock)) {
            true => (series.ok, series.in_time()),
            false => (series.found(), series.found_in_time()),
        };
        let latencies = latency.as_ref().map(cells).transpose()?.unwrap_or_default();
        let (failed, drained) = (series.unsuccessful(), ok.saturating_sub(in_time));
        slot.add(&SampleSlot { ok, drained, failed, latencies, length_s: 0.0 });
    }
    Ok(slot)
}

fn cells(latency: &Latency) -> Result<Vec<(u64, u64)>, HistogramError> {
    let histogram = latency.decode()?;
    Ok(histogram.iter_recorded().map(|c| (c.value_iterated_to(), c.count_at_value())).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;

    #[test]
    fn intervals_hold_what_the_result_counts() {
        let folder = tempfile::tempdir().unwrap();
        let result = sample::written(folder.path());
        let samples = Samples::read(folder.path(), &result).unwrap();
        let measured = &result.runs[1].phases[1];
        let gets = samples.phase(1, 1).of(|kind| kind == Kind::Get);
        let series = measured.series.iter().find(|s| s.kind == Kind::Get).unwrap();
        assert_eq!(gets.len(), 12);
        assert_eq!(gets.iter().map(|slot| slot.ok).sum::<u64>(), series.ok);
        assert_eq!(gets.iter().map(|slot| slot.failed).sum::<u64>(), series.unsuccessful());
        let longest = gets.iter().flat_map(|slot| &slot.latencies).map(|cell| cell.0).max();
        assert_eq!(longest, series.service.as_ref().map(|latency| latency.max_ns));
        assert!(gets.iter().all(|slot| (slot.length_s - 1.0).abs() < 1e-9));
        let all = samples.phase(1, 1).of(|_| true);
        assert_eq!(all.iter().map(|slot| slot.ok).sum::<u64>(), measured.ok());
    }

    #[test]
    fn open_arrivals_are_judged_by_response_time_with_what_never_started() {
        let folder = tempfile::tempdir().unwrap();
        let result = sample::written(folder.path());
        let samples = Samples::read(folder.path(), &result).unwrap();
        let measured = &result.runs[1].phases[2];
        let all = samples.phase(1, 2).of(|_| true);
        let count: u64 = all.iter().flat_map(|slot| &slot.latencies).map(|cell| cell.1).sum();
        let response = measured.series[0].response.as_ref().unwrap().count;
        assert_eq!(count, response + measured.unstarted.as_ref().unwrap().count);
    }

    #[test]
    fn without_its_files_a_phase_is_one_interval() {
        let folder = tempfile::tempdir().unwrap();
        let result = sample::two_stores();
        let samples = Samples::read(folder.path(), &result).unwrap();
        let all = samples.phase(0, 0).of(|_| true);
        assert_eq!(all.len(), 1);
        assert_eq!(all[0].ok, result.runs[0].phases[0].ok());
        assert!(samples.phase(7, 0).of(|_| true).is_empty());
    }

    #[test]
    fn slivers_join_their_neighbour_and_long_runs_are_merged() {
        let slot = |length_s, ok| SampleSlot {
            length_s,
            ok,
            latencies: vec![(5, ok)],
            ..SampleSlot::default()
        };
        let joined = merged(vec![slot(1.0, 10), slot(1.0, 10), slot(0.1, 1)]);
        assert_eq!(joined.len(), 2);
        assert_eq!(joined[1], slot(1.1, 11));
        let long = merged(vec![slot(1.0, 1); 1_000]);
        assert!(long.len() <= MOST_SLOTS && long.len() > MOST_SLOTS / 2);
        assert_eq!(long.iter().map(|slot| slot.ok).sum::<u64>(), 1_000);
    }
}

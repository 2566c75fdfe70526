//! Timeline of a phase that goes on: points of 1, 10, 60 and 600 intervals, each from merged histograms, since
//! percentiles cannot be merged. The finest level whose points fit on a chart is shown; for a stretch of the phase a
//! finer one may be.

use std::collections::BTreeMap;
use std::ops::Range;

use hdrhistogram::Histogram;
use kvdyno_core::measure::{Interval, KindMeasure, Troubles, latency_histogram};

use super::heat::Heat;
use super::{ALL_KINDS, Percentiles, PhaseTimeline, Point, Slot};
use crate::result::add;

/// Most points that are shown.
const MOST: usize = 1_500;
/// Most points that are kept of a level finer than the shown one, the latest; up to twice as many are in memory. With
/// five kinds of operation each takes about 1 kB: 10 MB a level.
const KEPT: usize = 5_000;
/// Number of points of the level before that make one point of each level: 1, 10, 60 and 600 intervals.
const EVERY: [u32; 4] = [1, 10, 6, 10];

/// A timeline that grows.
#[derive(Debug, Default)]
pub(crate) struct Growing {
    levels: [Level; EVERY.len()],
    /// Level that is shown; only the latest points of the levels before it are kept.
    shown: usize,
    /// True once a get has found something, or another kind has succeeded.
    has_hits: bool,
}

#[derive(Debug, Default)]
struct Level {
    open: Gathered,
    timeline: PhaseTimeline,
}

/// Intervals that will make a point.
#[derive(Debug, Default)]
struct Gathered {
    /// Number of points of the level before.
    held: u32,
    slot: Slot,
    troubles: Troubles,
    kinds: BTreeMap<String, GatheredKind>,
}

/// Figures of one kind. Its latencies are not yet in the point.
#[derive(Debug, Default)]
struct GatheredKind {
    point: Point,
    service: Option<Histogram<u64>>,
    response: Option<Histogram<u64>>,
}

impl Growing {
    /// Returns the timeline that is shown.
    pub(crate) fn shown(&self) -> &PhaseTimeline {
        &self.levels[self.shown].timeline
    }

    /// Returns the points that overlap a stretch, in seconds since the phase began: the finest that reach so far back and
    /// that fit on a chart.
    pub(crate) fn stretch(&self, stretch: &Range<f64>) -> PhaseTimeline {
        let finer = self.levels[..self.shown].iter().map(|level| &level.timeline);
        let mut parts = finer.filter_map(|timeline| {
            let reaches = timeline.slots.first().is_some_and(|slot| slot.start_s <= stretch.start);
            let within = timeline.within(stretch);
            (reaches && within.len() <= MOST).then(|| timeline.part(within))
        });
        parts.next().unwrap_or_else(|| self.shown().part(self.shown().within(stretch)))
    }

    /// Takes in an interval of a phase that began at `began`, ns on the interval's clock.
    pub(crate) fn add(&mut self, interval: &Interval, began: u64) {
        self.has_hits |= interval.series.iter().any(|(_, measure)| measure.found() > 0);
        self.pass_on(Gathered::of(interval, began, self.has_hits), false);
        if self.shown().slots.len() > MOST && self.shown + 1 < EVERY.len() {
            self.shown += 1;
        }
        for Level { timeline, .. } in &mut self.levels[..self.shown] {
            let count = timeline.slots.len();
            if count > 2 * KEPT {
                *timeline = timeline.part(count - KEPT..count);
            }
        }
    }

    /// Ends the timeline: no more intervals come, and all that are gathered are shown.
    pub(crate) fn end(&mut self) {
        self.pass_on(Gathered::default(), true);
    }

    fn pass_on(&mut self, part: Gathered, is_last: bool) {
        let mut part = part;
        for (level, every) in self.levels.iter_mut().zip(EVERY) {
            level.open.add(part);
            if level.open.held < every && !is_last {
                return;
            }
            part = std::mem::take(&mut level.open);
            part.held = part.held.min(1);
            if part.held > 0 {
                level.timeline.push(&part);
            }
        }
    }
}

impl Gathered {
    fn of(interval: &Interval, began: u64, has_hits: bool) -> Gathered {
        let slot = Slot {
            start_s: interval.start.saturating_sub(began) as f64 / 1e9,
            length_s: interval.length() as f64 / 1e9,
            offered: interval.offered,
            backlog: interval.backlog,
            latest_send: interval.troubles.latest_send,
        };
        let troubles = interval.troubles.clone();
        let mut gathered = Gathered { held: 1, slot, troubles, kinds: BTreeMap::new() };
        gathered.kinds.entry(ALL_KINDS.to_owned()).or_default();
        for (series, measure) in &interval.series {
            for kind in [ALL_KINDS, series.kind.name()] {
                gathered.kinds.entry(kind.to_owned()).or_default().add_measure(measure, has_hits);
            }
        }
        gathered
    }

    fn add(&mut self, part: Gathered) {
        if self.held == 0 {
            *self = part;
            return;
        }
        if part.held == 0 {
            return;
        }
        self.held += part.held;
        self.slot.length_s = part.slot.start_s + part.slot.length_s - self.slot.start_s;
        self.slot.offered = self.slot.offered.saturating_add(part.slot.offered);
        self.slot.backlog = part.slot.backlog;
        self.slot.latest_send = self.slot.latest_send.max(part.slot.latest_send);
        self.troubles.add(&part.troubles);
        for (kind, of) in part.kinds {
            self.kinds.entry(kind).or_default().add(of);
        }
    }
}

impl GatheredKind {
    fn add_measure(&mut self, measure: &KindMeasure, has_hits: bool) {
        // Gets that find nothing are told apart, unless there are no others.
        let missed = if has_hits { measure.ok - measure.found() } else { 0 };
        let drained = if has_hits { measure.drained.found_nothing } else { 0 };
        let (service, response) = match has_hits {
            true => (&measure.service, &measure.response),
            false => (&measure.missed_service, &measure.missed_response),
        };
        for (to, from) in [(&mut self.service, service), (&mut self.response, response)] {
            if let Some(from) = from {
                add(to.get_or_insert_with(latency_histogram), from);
            }
        }
        self.count(&Point {
            ok: measure.ok.saturating_sub(missed),
            drained: measure.drained.ok.saturating_sub(drained),
            missed,
            failed: measure.failed + measure.indeterminate,
            ..Point::default()
        });
    }

    fn count(&mut self, other: &Point) {
        self.point.ok += other.ok;
        self.point.drained += other.drained;
        self.point.missed += other.missed;
        self.point.failed += other.failed;
    }

    fn add(&mut self, other: GatheredKind) {
        self.count(&other.point);
        for (to, from) in [(&mut self.service, other.service), (&mut self.response, other.response)]
        {
            match (to, from) {
                (Some(to), Some(from)) => add(to, &from),
                (to, from) => *to = to.take().or(from),
            }
        }
    }
}

impl PhaseTimeline {
    /// Returns the range of points that overlap a stretch, in seconds since the phase began.
    fn within(&self, stretch: &Range<f64>) -> Range<usize> {
        let first =
            self.slots.partition_point(|slot| slot.start_s + slot.length_s <= stretch.start);
        first..self.slots.partition_point(|slot| slot.start_s < stretch.end).max(first)
    }

    /// Returns some of its points.
    fn part(&self, points: Range<usize>) -> PhaseTimeline {
        let heat = points.start.min(self.heat.len())..points.end.min(self.heat.len());
        let kinds = self.kinds.iter();
        PhaseTimeline {
            kinds: kinds.map(|(kind, all)| (kind.clone(), all[points.clone()].to_vec())).collect(),
            heat: self.heat[heat].to_vec(),
            errors: self.errors.part(points.clone()),
            wrong: self.wrong.part(points.clone()),
            slots: self.slots[points].to_vec(),
            ..PhaseTimeline::default()
        }
    }

    fn push(&mut self, gathered: &Gathered) {
        let before = self.slots.len();
        self.slots.push(gathered.slot);
        for (class, count) in &gathered.troubles.errors {
            self.errors.add(class.name(), before, *count);
        }
        for (kind, count) in &gathered.troubles.wrong {
            self.wrong.add(kind.name(), before, *count);
        }
        for (kind, of) in &gathered.kinds {
            let points = self.kinds.entry(kind.clone()).or_default();
            points.resize_with(before, Point::default);
            points.push(Point {
                service: of.service.as_ref().and_then(Percentiles::of),
                response: of.response.as_ref().and_then(Percentiles::of),
                ..of.point
            });
        }
        self.kinds.values_mut().for_each(|points| points.resize_with(before + 1, Point::default));
        let all = &gathered.kinds[ALL_KINDS];
        self.heat
            .push(all.response.as_ref().or(all.service.as_ref()).map(Heat::of).unwrap_or_default());
    }
}

#[cfg(test)]
mod tests {
    use kvdyno_core::measure::{Ending, KindTotal, Series};
    use kvdyno_core::store::ErrorClass;
    use kvdyno_core::workload::Kind;

    use super::*;

    const SECOND: u64 = 1_000_000_000;

    fn interval(index: u32, latency: Option<u64>) -> Interval {
        let mut measure: KindMeasure = KindMeasure::default();
        if let Some(latency) = latency {
            measure.record(Kind::Get, Ending::Ok { missed: 0 }, 1, latency, None);
        }
        let start = 7 * SECOND + u64::from(index) * SECOND;
        let series = vec![(Series { group: 0, kind: Kind::Get }, measure)];
        let series = if latency.is_some() { series } else { Vec::new() };
        Interval { index, start, end: start + SECOND, series, ..Interval::default() }
    }

    /// Makes up a timeline with an operation every 20 s, of which one in 50 takes a thousand times as long.
    fn grown(seconds: u32) -> Growing {
        let mut growing = Growing::default();
        for second in 0..seconds {
            let latency = if second % 1_000 == 0 { 1_000_000 } else { 1_000 };
            growing.add(&interval(second, (second % 20 == 0).then_some(latency)), 7 * SECOND);
        }
        growing
    }

    #[test]
    fn a_day_is_shown_whole_with_few_points_of_merged_histograms() {
        let day = 24 * 60 * 60;
        let mut growing = grown(day);
        growing.end();
        let shown = growing.shown();
        assert_eq!(shown.slots.len(), 1_440, "a point a minute");
        assert_eq!(shown.slots[1].start_s, 60.0);
        let all = &shown.kinds[ALL_KINDS];
        assert_eq!(all.iter().map(|point| point.ok).sum::<u64>(), u64::from(day) / 20);
        let slow = all.iter().filter(|point| point.service.unwrap().max >= 1_000_000).count();
        assert_eq!(slow, 87, "none of the slow ones is averaged away");
        assert_eq!(shown.heat.len(), shown.slots.len());
    }

    #[test]
    fn a_coarse_point_is_the_merge_of_the_fine_ones_it_stands_for() {
        let mut random = 7_u64;
        let mut growing = Growing::default();
        let mut fine = Vec::new();
        for second in 0..1_800 {
            let mut measure: KindMeasure = KindMeasure::default();
            for _ in 0..second % 7 {
                random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                let latency = (random >> 40) << (random >> 61);
                measure.record(Kind::Get, Ending::Ok { missed: 0 }, 1, latency, Some(2 * latency));
            }
            let series = vec![(Series { group: 0, kind: Kind::Get }, measure)];
            let errors = vec![(ErrorClass::Timeout, u64::from(second % 3 == 0))];
            let troubles = Troubles { errors, latest_send: random >> 50, ..Troubles::default() };
            let interval = Interval { series, troubles, ..interval(second, None) };
            growing.add(&interval, 7 * SECOND);
            fine.push(interval);
        }
        let sizes = EVERY.iter().scan(1, |size, every| {
            *size *= *every as usize;
            Some(*size)
        });
        assert_eq!(sizes.clone().collect::<Vec<_>>(), [1, 10, 60, 600]);
        for (level, size) in growing.levels.iter().zip(sizes) {
            let timeline = &level.timeline;
            assert_eq!(timeline.slots.len(), fine.len() / size, "points of {size}");
            for (slot, parts) in fine.chunks(size).enumerate() {
                let mut merged = KindTotal::default();
                parts.iter().for_each(|part| merged.add(&part.series[0].1));
                let point = &timeline.kinds["get"][slot];
                assert_eq!(point.ok, merged.ok);
                assert_eq!(point.service, merged.service.as_ref().and_then(Percentiles::of));
                assert_eq!(point.response, merged.response.as_ref().and_then(Percentiles::of));
                let heat = merged.response.as_ref().map(Heat::of).unwrap_or_default();
                assert_eq!(timeline.heat[slot], heat);
                let late = parts.iter().map(|part| part.troubles.latest_send).max();
                assert_eq!(Some(timeline.slots[slot].latest_send), late);
                let errors = parts.iter().filter(|part| part.index % 3 == 0).count() as u64;
                let told: Vec<_> = timeline.errors.lines(slot, slot + 1).collect();
                assert_eq!(told, [("timeout", vec![errors])]);
            }
        }
        assert_eq!(growing.shown, 1, "finer ones are kept, too");
    }

    #[test]
    fn a_stretch_has_the_finest_points_that_a_chart_can_hold_and_that_reach_back_so_far() {
        let day = 24 * 60 * 60;
        let growing = grown(day);
        let seen = |from: u32, to: u32| {
            let part = growing.stretch(&(f64::from(from)..f64::from(to)));
            let first = part.slots.first().map(|slot| (slot.start_s, slot.length_s));
            let ok: u64 = part.kinds[ALL_KINDS].iter().map(|point| point.ok).sum();
            assert_eq!(part.kinds[ALL_KINDS].len(), part.slots.len());
            assert_eq!(part.heat.len(), part.slots.len());
            (first.unwrap(), part.slots.len(), ok)
        };
        assert_eq!(seen(day - 1_000, day - 100), ((f64::from(day - 1_000), 1.0), 900, 45));
        assert_eq!(seen(day - 4_000, day), ((f64::from(day - 4_000), 10.0), 400, 200));
        assert_eq!(seen(605, 700), ((600.0, 10.0), 10, 5), "finer ones are gone");
        assert_eq!(seen(0, day), ((0.0, 60.0), 1_440, u64::from(day) / 20));
        let kept: usize = growing.levels.iter().map(|level| level.timeline.slots.len()).sum();
        assert!(kept < 4 * KEPT, "{kept} points");
        let none = growing.stretch(&(f64::from(2 * day)..f64::from(3 * day)));
        assert!(none.slots.is_empty());
    }

    #[test]
    fn the_finest_level_that_has_room_is_shown_and_its_end_is_not_lost() {
        let mut growing = grown(100);
        assert_eq!((growing.shown, growing.shown().slots.len()), (0, 100));
        growing.end();
        assert_eq!(growing.shown().slots.len(), 100);
        let mut growing = grown(1_507);
        assert_eq!((growing.shown, growing.shown().slots.len()), (1, 150), "7 s wait for a point");
        growing.end();
        assert_eq!(growing.shown().slots.len(), 151);
        assert_eq!(growing.shown().slots[150].length_s, 7.0);
        assert_eq!(growing.shown().kinds["get"].iter().map(|point| point.ok).sum::<u64>(), 76);
    }

    #[test]
    fn gets_that_find_nothing_are_apart_unless_there_is_nothing_else() {
        let mut measure: KindMeasure = KindMeasure::default();
        measure.record(Kind::Get, Ending::Ok { missed: 1 }, 1, 500, None);
        let only_misses = Interval {
            end: SECOND,
            series: vec![(Series { group: 0, kind: Kind::Get }, measure.clone())],
            ..Interval::default()
        };
        let mut growing = Growing::default();
        growing.add(&only_misses, 0);
        let point = growing.shown().kinds[ALL_KINDS][0].clone();
        assert_eq!((point.ok, point.missed, point.service.map(|s| s.max)), (1, 0, Some(500)));
        measure.record(Kind::Get, Ending::Ok { missed: 0 }, 1, 900, None);
        let mixed = Interval {
            series: vec![(Series { group: 0, kind: Kind::Get }, measure)],
            ..only_misses
        };
        growing.add(&mixed, 0);
        let point = growing.shown().kinds[ALL_KINDS][1].clone();
        assert_eq!((point.ok, point.missed, point.service.map(|s| s.max)), (1, 1, Some(900)));
    }
}

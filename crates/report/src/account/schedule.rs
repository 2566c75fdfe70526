//! What fell due over a phase with open arrivals, and how much of it waited when: what throughput after a
//! fault is held against, and what has to be worked off before the fault is over.

use kvdyno_core::measure::{PhaseMeasure, Side, Stretch};
use kvdyno_core::workload::{GroupPlan, PhasePlan};

use crate::result::BacklogAccount;
use kvdyno_core::ground::median;

/// What falls due in this time may wait without being a backlog, ns.
const PROMPT: u64 = 100_000_000;

/// What fell due, and when. Times count from the begin of the phase, ns.
pub(super) struct Schedule {
    /// The end of each interval, with all that had fallen due by then.
    due: Vec<(u64, f64)>,
    /// Which share of it reads and which writes.
    shares: [f64; 2],
}

impl Schedule {
    /// `None` if the next request of some clients waits for an answer: then nobody asks for a rate.
    pub fn of(plan: &PhasePlan, measure: &PhaseMeasure) -> Option<Schedule> {
        let rates: Vec<f64> = plan.groups.iter().map(rate).collect::<Option<_>>()?;
        let all: f64 = rates.iter().sum();
        if measure.timeline.points.is_empty() || all <= 0.0 {
            return None;
        }
        let shares = Side::BOTH.map(|side| {
            let groups = plan.groups.iter().zip(&rates);
            groups.map(|(group, rate)| part(group, side) * rate).sum::<f64>() / all
        });
        let mut sum = 0;
        let due = measure.timeline.intervals().map(|interval| {
            sum += interval.offered;
            (interval.end.saturating_sub(measure.start), sum as f64)
        });
        Some(Schedule { due: due.collect(), shares })
    }

    /// What had fallen due by then, of both sides: within an interval evenly.
    pub fn due_by(&self, at: u64) -> f64 {
        let place = self.due.partition_point(|(end, _)| *end < at);
        let before = place.checked_sub(1).map_or((0, 0.0), |before| self.due[before]);
        match self.due.get(place) {
            Some(&(end, due)) if end > before.0 => {
                let part = (at - before.0) as f64 / (end - before.0) as f64;
                before.1 + (due - before.1) * part
            }
            _ => before.1,
        }
    }

    /// What fell due of one side between two times.
    pub fn due_in(&self, side: Side, from: u64, to: u64) -> f64 {
        self.shares[side as usize] * (self.due_by(to) - self.due_by(from))
    }
}

/// Requests a second; of a rate that changes the one that it comes to.
fn rate(group: &GroupPlan) -> Option<f64> {
    let curve = group.arrival.curve()?;
    Some(group.changes.last().map_or(curve.comes_to(), |change| change.rate))
}

/// Share of a group's operations that are on one side.
fn part(group: &GroupPlan, side: Side) -> f64 {
    let parts = &group.mix.parts;
    let sum = |of: &dyn Fn(Side) -> bool| -> f64 {
        parts.iter().filter(|(kind, _)| of(Side::of(*kind))).map(|part| f64::from(part.1)).sum()
    };
    sum(&|of| of == side) / sum(&|_| true).max(1.0)
}

/// What was due and had not ended, at the end of each slot.
pub(super) struct Waiting {
    width: u64,
    /// How many, and how many fell due in [`PROMPT`] before.
    slots: Vec<(f64, f64)>,
    /// Before the first fault, from when on the load was level with its schedule.
    usual: f64,
}

impl Waiting {
    /// In a phase whose first fault was begun at `first` since its begin.
    pub fn of(schedule: &Schedule, measure: &PhaseMeasure, first: u64) -> Waiting {
        let timeline = &measure.timeline;
        let width = timeline.slot.max(1);
        let count = measure.end.saturating_sub(measure.start) / width;
        let mut ended = 0;
        let mut slots = Vec::with_capacity(count as usize);
        for index in 0..count {
            let sides = timeline.slots.get(index as usize).into_iter().flatten();
            ended += sides.map(|slot| slot.ok + slot.failed + slot.indeterminate).sum::<u64>();
            let at = (index + 1) * width;
            let due = schedule.due_by(at);
            slots.push((due - ended as f64, due - schedule.due_by(at.saturating_sub(PROMPT))));
        }
        let level = timeline.level_from.map(|from| from.saturating_sub(timeline.start));
        let level = level.map_or(0..0, |from| from.div_ceil(width)..first / width);
        let before: Vec<f64> = slots.iter().map(|slot| slot.0).collect();
        let before = before.get(level.start as usize..level.end as usize).unwrap_or_default();
        Waiting { width, usual: median(before).max(0.0), slots }
    }

    /// From a fault's begin to whatever came next.
    pub fn after(&self, span: Stretch) -> BacklogAccount {
        let from = (span.from / self.width) as usize;
        let to = ((span.to / self.width) as usize).min(self.slots.len());
        let watched = self.slots.get(from..to).unwrap_or_default();
        let most = watched.iter().map(|slot| slot.0).fold(0.0, f64::max).round() as u64;
        let piled = |slot: &(f64, f64)| slot.0 > (2.0 * self.usual).max(slot.1).max(1.0);
        let drained_ns = match watched.iter().rposition(piled) {
            None => Some(0),
            Some(last) if last + 1 == watched.len() => None,
            // At the end of that slot there were more still.
            Some(last) => Some(((from + last + 2) as u64 * self.width).saturating_sub(span.from)),
        };
        BacklogAccount { most, drained_ns }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use kvdyno_core::measure::{Interval, Slot};
    use kvdyno_core::workload::Arrival;
    use kvdyno_core::workload::Kind;

    use super::*;
    use crate::sample;

    const SECOND: u64 = 1_000_000_000;
    const SLOT: u64 = 20_000_000;
    const START: u64 = 7 * SECOND;

    fn group(mix: &[(Kind, u16)], rate: f64) -> GroupPlan {
        GroupPlan { arrival: Arrival::Constant { rate }, ..GroupPlan::plain("load", mix, 1) }
    }

    fn plan(groups: Vec<GroupPlan>) -> PhasePlan {
        PhasePlan::plain(1, "load", groups, Duration::from_secs(60))
    }

    /// A thousand requests a second for 12.5 s; `ended` says how many end in the slot that begins then.
    fn measure(ended: impl Fn(u64) -> u64) -> PhaseMeasure {
        let mut measure = sample::recordings(0).remove(0).measure;
        (measure.start, measure.end) = (START, START + 25 * SECOND / 2);
        let interval = |index: u64| {
            let (start, end) = (START + index * SECOND, START + (index + 1) * SECOND);
            let end = end.min(measure.end);
            let offered = (end - start) / 1_000_000;
            Interval { start, end, offered, ..Interval::default() }
        };
        measure.timeline = (0..13).map(interval).collect();
        let slot = |index: u64| {
            let ended = ended(index * SLOT);
            let reads = Slot { ok: ended / 2, ..Slot::default() };
            [reads, Slot { failed: ended - ended / 2, ..Slot::default() }]
        };
        let slots = (0..13 * SECOND / SLOT).map(slot).collect();
        measure.timeline.slots = slots;
        measure
    }

    #[test]
    fn what_falls_due_is_told_for_any_time_and_each_side() {
        let reads = group(&[(Kind::Get, 1000)], 600.0);
        let mixed = group(&[(Kind::Scan, 250), (Kind::Update, 750)], 400.0);
        let measure = measure(|_| 20);
        let schedule = Schedule::of(&plan(vec![reads.clone(), mixed]), &measure).unwrap();
        let due = [0, 100, 1_000, 2_250, 12_500, 99_000].map(|ms| schedule.due_by(ms * 1_000_000));
        assert_eq!(due, [0.0, 100.0, 1_000.0, 2_250.0, 12_500.0, 12_500.0]);
        let of = |side| schedule.due_in(side, SECOND, 2 * SECOND).round();
        assert_eq!((of(Side::Reads), of(Side::Writes)), (700.0, 300.0));
        let closed = GroupPlan { arrival: Arrival::Closed, ..reads.clone() };
        assert!(Schedule::of(&plan(vec![reads, closed]), &measure).is_none());
    }

    #[test]
    fn a_backlog_is_drained_when_what_had_piled_up_has_ended() {
        // Two seconds of nothing; then, for four seconds, half as much again as falls due.
        let outage = |at: u64| match at / SECOND {
            4 | 5 => 0,
            6..=9 => 31,
            _ => 20,
        };
        let (measure, plan) = (measure(outage), plan(vec![group(&[(Kind::Get, 1000)], 1_000.0)]));
        let schedule = Schedule::of(&plan, &measure).unwrap();
        let waiting = Waiting::of(&schedule, &measure, 4 * SECOND);
        let after =
            |from: u64, to: u64| waiting.after(Stretch { from: from * SECOND, to: to * SECOND });
        let told = after(4, 12);
        assert_eq!(told.most, 2_000);
        // What falls due in a tenth of a second is none: 1,900 of 2,000 are worked off, at 550 a second.
        assert_eq!(told.drained_ns, Some(2 * SECOND + 3_460_000_000));
        assert_eq!(after(4, 8).drained_ns, None, "something was done before");
        assert_eq!(after(10, 12), BacklogAccount { most: 0, drained_ns: Some(0) });
        assert_eq!(after(12, 12).drained_ns, Some(0));
    }

    #[test]
    fn what_always_waits_is_no_backlog() {
        // 300 are always in flight.
        let slow = |at: u64| if at < 300_000_000 { 0 } else { 20 };
        let (measure, plan) = (measure(slow), plan(vec![group(&[(Kind::Get, 1000)], 1_000.0)]));
        let schedule = Schedule::of(&plan, &measure).unwrap();
        let span = Stretch { from: 4 * SECOND, to: 12 * SECOND };
        let told = Waiting::of(&schedule, &measure, 4 * SECOND).after(span);
        assert_eq!(told, BacklogAccount { most: 300, drained_ns: Some(0) });
        // Without a level from before it is one.
        let told = Waiting::of(&schedule, &measure, 0).after(span);
        assert_eq!(told.drained_ns, None);
    }
}

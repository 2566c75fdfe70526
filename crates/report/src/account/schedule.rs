//! Counts operations that fell due over a phase with open arrivals, and how many of them waited at each time: throughput
//! after a fault is compared with them, and the backlog must be worked off before the fault is over.

use kvdyno_core::measure::{PhaseMeasure, Side, Stretch};
use kvdyno_core::workload::{GroupPlan, PhasePlan};

use kvdyno_core::ground::median;

use super::recovery::window_of;
use crate::result::{BacklogAccount, Undecided};

/// Time for which due operations may wait without being a backlog, ns.
const PROMPT: u64 = 100_000_000;
/// Share of ended operations that may fail; with more the backlog was refused rather than worked off.
const REFUSED: f64 = 0.01;
/// Two-sided 95 % point of the normal distribution, rounded up.
const RANGE: f64 = 2.0;

/// Operations that fell due, by time. Times count from the begin of the phase, ns.
pub(super) struct Schedule {
    /// The end of each interval, with all that had fallen due by then.
    due: Vec<(u64, f64)>,
    /// Shares of reads and of writes in them.
    shares: [f64; 2],
}

impl Schedule {
    /// Builds the schedule of a phase; `None` if some clients have closed arrivals, since nothing falls due at a rate then.
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

    /// Returns how many operations of both sides had fallen due by `at`; they are spread evenly within an interval.
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

    /// Returns how many operations of one side fell due between two times.
    pub fn due_in(&self, side: Side, from: u64, to: u64) -> f64 {
        self.shares[side as usize] * (self.due_by(to) - self.due_by(from))
    }
}

/// Returns a group's rate in requests a second; of a rate that changes, the last one. `None` with closed arrivals.
fn rate(group: &GroupPlan) -> Option<f64> {
    let curve = group.arrival.curve()?;
    Some(group.changes.last().map_or(curve.comes_to(), |change| change.rate))
}

/// Returns the share of a group's operations that are on one side.
fn part(group: &GroupPlan, side: Side) -> f64 {
    let parts = &group.mix.parts;
    let sum = |of: &dyn Fn(Side) -> bool| -> f64 {
        parts.iter().filter(|(kind, _)| of(Side::of(*kind))).map(|part| f64::from(part.1)).sum()
    };
    sum(&|of| of == side) / sum(&|_| true).max(1.0)
}

/// Operations that were due and had not ended, at the end of each slot.
pub(super) struct Waiting {
    width: u64,
    slots: Vec<WaitingSlot>,
    /// Operations that waited before the first fault, from when on the load was level with its schedule.
    usual: f64,
    /// Slots of the longest time before the first fault in which more waited than usual.
    usual_pile: usize,
    /// Share of operations ended before the first fault that did not succeed.
    usual_refused: f64,
}

/// One slot of a load with a schedule.
#[derive(Clone, Copy)]
struct WaitingSlot {
    /// Operations due and not ended, at its end.
    waiting: f64,
    /// Operations that fell due in [`PROMPT`] before its end.
    prompt: f64,
    ended: u64,
    refused: u64,
}

impl Waiting {
    /// Counts waiting operations of a phase whose first fault began at `first` since the phase's begin.
    pub fn of(schedule: &Schedule, measure: &PhaseMeasure, first: u64) -> Waiting {
        let timeline = &measure.timeline;
        let width = timeline.slot.max(1);
        let count = measure.end.saturating_sub(measure.start) / width;
        let mut all_ended = 0;
        let mut slots = Vec::with_capacity(count as usize);
        for index in 0..count {
            let sides = timeline.slots.get(index as usize).into_iter().flatten();
            let (mut ended, mut refused) = (0, 0);
            for slot in sides {
                ended += slot.ok + slot.failed + slot.indeterminate;
                refused += slot.failed + slot.indeterminate;
            }
            all_ended += ended;
            let at = (index + 1) * width;
            let due = schedule.due_by(at);
            let (waiting, prompt) =
                (due - all_ended as f64, due - schedule.due_by(at.saturating_sub(PROMPT)));
            slots.push(WaitingSlot { waiting, prompt, ended, refused });
        }
        let level = timeline.level_from.map(|from| from.saturating_sub(timeline.start));
        let level = level.map_or(0..0, |from| from.div_ceil(width)..first / width);
        let before = slots.get(level.start as usize..level.end as usize).unwrap_or_default();
        let waited: Vec<f64> = before.iter().map(|slot| slot.waiting).collect();
        let sum = |of: fn(&WaitingSlot) -> u64| before.iter().map(of).sum::<u64>() as f64;
        let usual_refused = sum(|slot| slot.refused) / sum(|slot| slot.ended).max(1.0);
        let usual = median(&waited).max(0.0);
        let usual_pile = longest_pile(before, usual);
        Waiting { width, usual, usual_pile, usual_refused, slots }
    }

    /// Accounts for the backlog from a fault's begin to the next action.
    pub fn after(&self, span: Stretch) -> BacklogAccount {
        let from = (span.from / self.width) as usize;
        let to = ((span.to / self.width) as usize).min(self.slots.len());
        let watched = self.slots.get(from..to).unwrap_or_default();
        let most = watched.iter().map(|slot| slot.waiting).fold(0.0, f64::max).round() as u64;
        let refused = |slots: &[WaitingSlot]| slots.iter().map(|slot| slot.refused).sum::<u64>();
        let told = BacklogAccount { most, given_up: refused(watched), ..BacklogAccount::default() };
        let Some(window_ns) = window_of(span) else {
            return BacklogAccount { undecided: Some(Undecided::WatchedTooShort), ..told };
        };
        let window = (window_ns / self.width).max(1) as usize;
        let drained = self.drained(watched, window);
        // At the end of the slot before, still more were waiting.
        let since = |at: usize| ((from + at + 1) as u64 * self.width).saturating_sub(span.from);
        let answered_ns = drained.map(|at| if at == 0 { 0 } else { since(at) });
        let given_up = drained.map_or(told.given_up, |at| refused(&watched[..at]));
        let watched_ns = since(watched.len().saturating_sub(window));
        BacklogAccount { given_up, answered_ns, watched_ns, window_ns, ..told }
    }

    /// Returns the first slot from which on, for a window, no operation waits longer than before and no more are refused.
    fn drained(&self, watched: &[WaitingSlot], window: usize) -> Option<usize> {
        let begins = (watched.len() + 1).saturating_sub(window);
        let allowed = self.usual_pile + (PROMPT / self.width) as usize;
        (0..begins).find(|&at| {
            let slots = &watched[at..at + window];
            (at == 0 || !piled(&slots[0], self.usual))
                && longest_pile(slots, self.usual) <= allowed
                && !self.refuses(slots)
        })
    }

    /// Returns true if a larger share of what ended was refused than before the fault.
    fn refuses(&self, slots: &[WaitingSlot]) -> bool {
        let sum = |of: fn(&WaitingSlot) -> u64| slots.iter().map(of).sum::<u64>() as f64;
        let (ended, refused) = (sum(|slot| slot.ended), sum(|slot| slot.refused));
        let expected = ended * self.usual_refused;
        refused > expected + RANGE * expected.sqrt() + REFUSED * ended
    }
}

/// Returns true if more operations wait than is usual: than fall due in [`PROMPT`], and than twice as many as before.
fn piled(slot: &WaitingSlot, usual: f64) -> bool {
    slot.waiting > (2.0 * usual).max(slot.prompt).max(1.0)
}

/// Returns the largest number of slots in a row in which more operations wait than usual.
fn longest_pile(slots: &[WaitingSlot], usual: f64) -> usize {
    let runs = slots.chunk_by(|one, next| piled(one, usual) == piled(next, usual));
    runs.filter(|run| piled(&run[0], usual)).map(<[_]>::len).max().unwrap_or(0)
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

    /// Makes up a phase with 1,000 requests a second for 22.5 s; `ended` gives how many end in the slot that begins at a
    /// time.
    fn measure(ended: impl Fn(u64) -> u64) -> PhaseMeasure {
        let mut measure = sample::recordings(0).remove(0).measure;
        (measure.start, measure.end) = (START, START + 45 * SECOND / 2);
        let interval = |index: u64| {
            let (start, end) = (START + index * SECOND, START + (index + 1) * SECOND);
            let end = end.min(measure.end);
            let offered = (end - start) / 1_000_000;
            Interval { start, end, offered, ..Interval::default() }
        };
        measure.timeline = (0..23).map(interval).collect();
        let slot = |index: u64| {
            let ended = ended(index * SLOT);
            let reads = Slot { ok: ended / 2, ..Slot::default() };
            [reads, Slot { failed: ended - ended / 2, ..Slot::default() }]
        };
        let slots = (0..23 * SECOND / SLOT).map(slot).collect();
        measure.timeline.slots = slots;
        measure
    }

    #[test]
    fn what_falls_due_is_told_for_any_time_and_each_side() {
        let reads = group(&[(Kind::Get, 1000)], 600.0);
        let mixed = group(&[(Kind::Scan, 250), (Kind::Update, 750)], 400.0);
        let measure = measure(|_| 20);
        let schedule = Schedule::of(&plan(vec![reads.clone(), mixed]), &measure).unwrap();
        let due = [0, 100, 1_000, 2_250, 22_500, 99_000].map(|ms| schedule.due_by(ms * 1_000_000));
        assert_eq!(due, [0.0, 100.0, 1_000.0, 2_250.0, 22_500.0, 22_500.0]);
        let of = |side| schedule.due_in(side, SECOND, 2 * SECOND).round();
        assert_eq!((of(Side::Reads), of(Side::Writes)), (700.0, 300.0));
        let closed = GroupPlan { arrival: Arrival::Closed, ..reads.clone() };
        assert!(Schedule::of(&plan(vec![reads, closed]), &measure).is_none());
    }

    #[test]
    fn a_backlog_is_drained_when_what_had_piled_up_has_ended() {
        // Two seconds without an answer; then, for four seconds, half as many again as fall due.
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
        let told = after(4, 22);
        assert_eq!(
            (told.most, told.window_ns, told.watched_ns),
            (2_000, 9 * SECOND, 9_020_000_000)
        );
        // The operations of a tenth of a second are no backlog: 1,900 of 2,000 are worked off, at 550 a second. Half of
        // all operations failed before, too.
        assert_eq!(told.answered_ns, Some(2 * SECOND + 3_460_000_000));
        assert_eq!(after(4, 8).answered_ns, None, "something was done before");
        assert_eq!((after(11, 19).most, after(11, 19).answered_ns), (0, Some(0)));
        assert_eq!(after(11, 14).undecided, Some(Undecided::WatchedTooShort));
    }

    #[test]
    fn a_backlog_that_is_refused_is_given_up_and_not_drained() {
        // No answer for two seconds; then all of it is refused within half a second, as what falls due is from then on.
        let refusing = |until: u64| {
            let mut measure = measure(|at| match at / (SECOND / 2) {
                8..12 => 0,
                12 => 100,
                _ => 20,
            });
            for (number, slot) in measure.timeline.slots.iter_mut().enumerate() {
                let all = slot[0].ok + slot[1].failed;
                let is_refused = (4 * SECOND..until).contains(&(number as u64 * SLOT));
                slot[0].ok = if is_refused { 0 } else { all };
                slot[1].failed = all - slot[0].ok;
            }
            let plan = plan(vec![group(&[(Kind::Get, 1000)], 1_000.0)]);
            let schedule = Schedule::of(&plan, &measure).unwrap();
            let span = Stretch { from: 4 * SECOND, to: 22 * SECOND };
            Waiting::of(&schedule, &measure, 4 * SECOND).after(span)
        };
        let never = refusing(23 * SECOND);
        assert_eq!((never.answered_ns, never.given_up, never.most), (None, 18_000, 2_000));
        // The backlog is drained as soon as no more than one in a hundred is refused.
        let later = refusing(10 * SECOND);
        let after = later.answered_ns.unwrap();
        assert!((5_900_000_000..=6_000_000_000).contains(&after), "{later:?}");
        assert!((5_900..=6_000).contains(&later.given_up), "{later:?}");
    }

    #[test]
    fn a_later_hiccup_is_no_backlog_of_the_fault() {
        let hiccup = |at: u64| match at {
            at if (4 * SECOND..5 * SECOND).contains(&at) => 0,
            at if (5 * SECOND..6 * SECOND).contains(&at) => 40,
            at if (20 * SECOND..20 * SECOND + 300_000_000).contains(&at) => 0,
            _ => 20,
        };
        let (measure, plan) = (measure(hiccup), plan(vec![group(&[(Kind::Get, 1000)], 1_000.0)]));
        let schedule = Schedule::of(&plan, &measure).unwrap();
        let span = Stretch { from: 4 * SECOND, to: 22 * SECOND };
        let told = Waiting::of(&schedule, &measure, 4 * SECOND).after(span);
        let after = told.answered_ns.unwrap();
        assert!((1_900_000_000..=1_920_000_000).contains(&after), "{told:?}");
    }

    #[test]
    fn what_always_waits_is_no_backlog() {
        // 300 operations are always in flight.
        let slow = |at: u64| if at < 300_000_000 { 0 } else { 20 };
        let (measure, plan) = (measure(slow), plan(vec![group(&[(Kind::Get, 1000)], 1_000.0)]));
        let schedule = Schedule::of(&plan, &measure).unwrap();
        let span = Stretch { from: 4 * SECOND, to: 12 * SECOND };
        let told = Waiting::of(&schedule, &measure, 4 * SECOND).after(span);
        assert_eq!((told.most, told.answered_ns), (300, Some(0)));
        // Without a level from before, they are a backlog.
        let told = Waiting::of(&schedule, &measure, 0).after(span);
        assert_eq!(told.answered_ns, None);
    }
}

//! Reads off a phase's timeline what each fault cost: errors, time without success, time until the load
//! goes as it did before. Reads and writes apart; docs/FAILOVER.md says what each figure means.

pub(crate) mod lines;
mod schedule;
#[cfg(test)]
mod tests;

use kvdyno_core::ground::median;
use kvdyno_core::measure::{Nanos, PhaseMeasure, Side, Slot, Stretch, Timeline, TimelinePoint};
use kvdyno_core::verify::AnomalyKind;
use kvdyno_core::workload::PhasePlan;

use self::schedule::{Schedule, Waiting};

use crate::result::{
    FaultAccount, FaultResult, Recovery, SideAccount, StaleAccount, StretchResult, Unavailable,
};

/// Shares of the throughput that is asked, or was before, whose return is told.
pub const SHARES: [f64; 5] = [0.5, 0.8, 0.9, 0.95, 0.99];
/// Throughput is looked at over windows of this length, ns.
const WINDOW: u64 = 1_000_000_000;
/// A window begins in a stretch that works: in its first part at least half of what is expected.
const HEAD: u64 = 100_000_000;
/// The load takes so long to get going, ns: left out of what was before.
const GETTING_GOING: u64 = 1_000_000_000;
/// Windows with fewer operations tell nothing of a throughput.
const FEWEST: f64 = 20.0;
/// Equal things done within this time of each other are one: all nodes at once, ns.
const AT_ONCE: u64 = 1_000_000_000;

/// The longest stretches without success of a phase; `None` if nothing was recorded.
pub(crate) fn unavailable(measure: &PhaseMeasure) -> Option<Unavailable> {
    let [reads, writes] = measure.timeline.silences.as_ref()?;
    let longest = |silences: &kvdyno_core::measure::Silences| {
        let stretch = silences.longest(measure.start, measure.end);
        let from_ns = stretch.from.saturating_sub(measure.start);
        StretchResult { from_ns, length_ns: stretch.length() }
    };
    let has = |side| measure.series.iter().any(|(series, _)| Side::of(series.kind) == side);
    Some(Unavailable {
        all: longest(&reads.and(writes)),
        reads: has(Side::Reads).then(|| longest(reads)),
        writes: has(Side::Writes).then(|| longest(writes)),
    })
}

/// How far stale reads were behind; `None` if there was none.
pub(crate) fn stale(measure: &PhaseMeasure) -> Option<StaleAccount> {
    let (reads, behind) = (measure.tally.of(AnomalyKind::Stale), &measure.behind);
    let (least, most) = behind.versions.unwrap_or_default();
    (reads > 0).then(|| StaleAccount {
        reads,
        examined: behind.reads,
        absent: behind.absent,
        outlived: behind.outlived,
        earlier: behind.earlier,
        least_versions: least.into(),
        most_versions: most.into(),
        most_behind_ns: behind.longest.map(|longest| longest.as_nanos() as u64),
    })
}

/// When faults were at work, on core's clock: each from its begin to the end of its repair, of a node that
/// is not repaired to the end of time. What is at an end when it is done, such as a rewrite, is at
/// work for so long.
#[must_use]
pub fn outages(measure: &PhaseMeasure, faults: &[FaultResult]) -> Vec<Stretch> {
    let done = |fault: &&FaultResult| fault.error.is_none();
    let broken = faults.iter().filter(done).filter(|fault| !fault.repairs());
    let windows = broken.map(|fault| {
        let of_it = |other: &&FaultResult| {
            let same = other.node == fault.node || other.node.is_empty();
            other.repairs() && same && other.began_ns >= fault.began_ns
        };
        let repaired = faults.iter().filter(done).find(of_it).map(|repair| repair.ended_ns);
        let by_itself = fault.ends_by_itself().then_some(fault.ended_ns);
        let to = repaired.or(by_itself).map(|end| measure.start.saturating_add(end));
        let from = measure.start.saturating_add(fault.began_ns);
        Stretch { from, to: to.unwrap_or(Nanos::MAX).max(from) }
    });
    windows.collect()
}

/// What followed each fault of a phase until the next one, and each repair until anything was done, in order. Nothing for what could not be done.
pub(crate) fn of_faults(
    plan: &PhasePlan,
    measure: &PhaseMeasure,
    faults: &[FaultResult],
) -> Vec<FaultAccount> {
    let wall = measure.end.saturating_sub(measure.start);
    let mut accounts: Vec<FaultAccount> = Vec::new();
    let done = faults.iter().filter(|fault| fault.error.is_none() && fault.began_ns < wall);
    for fault in done {
        match accounts.last_mut() {
            Some(last)
                if last.what == fault.what
                    && fault.began_ns < last.ended_ns + AT_ONCE
                    && !last.nodes.contains(&fault.node) =>
            {
                last.nodes.push(fault.node.clone());
                last.ended_ns = last.ended_ns.max(fault.ended_ns);
            }
            _ => accounts.push(FaultAccount {
                what: fault.what.clone(),
                nodes: vec![fault.node.clone()],
                began_ns: fault.began_ns,
                ended_ns: fault.ended_ns,
                ..FaultAccount::default()
            }),
        }
    }
    let repairs = |what: &str| faults.iter().any(|fault| fault.what == what && fault.repairs());
    let begins: Vec<(u64, bool)> =
        accounts.iter().map(|account| (account.began_ns, repairs(&account.what))).collect();
    let Some(&(first, _)) = begins.first() else { return accounts };
    // Where the suite plans no fault, slots are not kept: what one that came by hand cost is not known then.
    let is_kept = !measure.timeline.slots.is_empty();
    let schedule = Schedule::of(plan, measure).filter(|_| is_kept);
    let waiting = schedule.as_ref().map(|schedule| Waiting::of(schedule, measure, first));
    for (number, account) in accounts.iter_mut().enumerate() {
        // A fault is watched beyond its repair; a repair until anything is done.
        let (_, repair) = begins[number];
        let next = begins[number + 1..].iter().find(|(_, repairs)| repair || !repairs);
        account.until_ns = next.map_or(wall, |(began, _)| *began);
        let span = Stretch { from: account.began_ns, to: account.until_ns };
        let of = |side| {
            let has = measure.series.iter().any(|(series, _)| Side::of(series.kind) == side);
            let (timeline, schedule) = (&measure.timeline, schedule.as_ref());
            (has && is_kept)
                .then(|| Sight { timeline, schedule, side, first, span, wall }.account())
        };
        (account.reads, account.writes) = (of(Side::Reads), of(Side::Writes));
        account.backlog = waiting.as_ref().map(|waiting| waiting.after(span));
    }
    accounts
}

/// What is looked at: one side of a phase from a fault to whatever came next. Times count from the
/// begin of the phase.
struct Sight<'a> {
    timeline: &'a Timeline,
    /// What falls due, where all arrivals are open.
    schedule: Option<&'a Schedule>,
    side: Side,
    /// When the first fault of the phase was begun.
    first: u64,
    span: Stretch,
    wall: u64,
}

/// How the throughput was before, and from which count on a window counts as low.
struct Former {
    rate: f64,
    /// Scatter of windows of [`WINDOW`] that is not to be taken for a fault's.
    scatter: f64,
}

impl Sight<'_> {
    fn account(&self) -> SideAccount {
        let slots = self.slots(self.span.from, self.ended_by());
        let sum = |count: fn(&Slot) -> u64| slots.iter().map(count).sum();
        let (first_error_ns, last_error_ns) = self.errors();
        let silence = self.silence();
        let long_enough = self.span.length() >= WINDOW;
        let former = self.former().filter(|_| long_enough);
        let former_p99_ns = self.timeline.former_p99[self.side as usize].filter(|p| p.is_finite());
        SideAccount {
            ok: sum(|slot| slot.ok),
            failed: sum(|slot| slot.failed),
            indeterminate: sum(|slot| slot.indeterminate),
            first_error_ns,
            last_error_ns,
            unavailable_ns: silence.length(),
            unavailable_from_ns: silence.from,
            asked_rate: self.asked_rate(self.span.from, self.span.to),
            former_rate: former.as_ref().map(|former| former.rate),
            recoveries: match self.expected_rate(former.as_ref()) {
                Some(rate) if long_enough && rate >= FEWEST => self.recoveries(former.as_ref()),
                _ => Vec::new(),
            },
            former_p99_ns,
            calm_ns: former_p99_ns.and_then(|former| self.calm(2.0 * former)),
        }
    }

    /// Until when operations count that followed: what ends after the phase followed the last fault.
    fn ended_by(&self) -> u64 {
        match self.span.to == self.wall {
            true => self.wall.max(self.timeline.slots.len() as u64 * self.timeline.slot),
            false => self.span.to,
        }
    }

    /// What fell due between two times, a second.
    fn asked_rate(&self, from: u64, to: u64) -> Option<f64> {
        let seconds = to.saturating_sub(from) as f64 / 1e9;
        let due = self.schedule?.due_in(self.side, from, to);
        (seconds > 0.0).then(|| due / seconds)
    }

    /// What should succeed a second from the fault on.
    fn expected_rate(&self, former: Option<&Former>) -> Option<f64> {
        let asked = self.asked_rate(self.span.from, self.span.to);
        asked.or(former.map(|former| former.rate))
    }

    /// What should succeed between two times: what falls due, or as much as before.
    fn expected(&self, former: Option<&Former>, from: u64, to: u64) -> f64 {
        match (self.schedule, former) {
            (Some(schedule), _) => schedule.due_in(self.side, from, to),
            (None, former) => former.map_or(0.0, |f| f.rate * (to - from) as f64 / 1e9),
        }
    }

    /// The slots that begin in `from..to`, and the one in which `from` lies.
    fn slots(&self, from: u64, to: u64) -> Vec<Slot> {
        let width = self.timeline.slot.max(1);
        let range = (from / width) as usize..to.div_ceil(width) as usize;
        let slots = self.timeline.slots.iter().map(|slot| slot[self.side as usize]);
        let known: Vec<Slot> = slots.skip(range.start).take(range.len()).collect();
        // Nothing ended in those behind the last one that is known.
        let missing = range.len() - known.len();
        known.into_iter().chain(std::iter::repeat_n(Slot::default(), missing)).collect()
    }

    /// First and last error, since the fault.
    fn errors(&self) -> (Option<u64>, Option<u64>) {
        let (from, to) = (self.span.from, self.ended_by());
        let since = |at: Nanos| at.saturating_sub(self.timeline.start);
        let slots = self.slots(from, to);
        let errors = slots.iter().filter_map(|slot| slot.errors);
        let within: Vec<(u64, u64)> = errors
            .map(|errors| (since(errors.from), since(errors.to)))
            .filter(|&(begin, end)| end >= from && begin < to)
            .map(|(begin, end)| (begin.max(from) - from, end.min(to) - from))
            .collect();
        (within.iter().map(|e| e.0).min(), within.iter().map(|e| e.1).max())
    }

    /// The longest stretch without success that reaches into the span.
    fn silence(&self) -> Stretch {
        let Some(silences) = &self.timeline.silences else { return Stretch { from: 0, to: 0 } };
        let start = self.timeline.start;
        let (from, to) = (start + self.span.from, start + self.wall);
        // A stretch may last beyond the next thing that was done.
        let begun: Vec<Stretch> = silences[self.side as usize]
            .stretches
            .iter()
            .filter(|stretch| stretch.from < start + self.span.to)
            .copied()
            .collect();
        let least = silences[self.side as usize].least;
        let begun = kvdyno_core::measure::Silences { least, stretches: begun };
        let Stretch { from, to } = begun.longest(from, to);
        Stretch { from: from.saturating_sub(start), to: to.saturating_sub(start) }
    }

    fn former(&self) -> Option<Former> {
        // A load that works off what had piled up at its begin shows what the store can do, not what it does.
        let level = self.timeline.level_from?.saturating_sub(self.timeline.start);
        let begin = GETTING_GOING.min(self.first / 2).max(level);
        if begin >= self.first {
            return None;
        }
        let slots = self.slots(begin, self.first);
        let end = slots.len().saturating_sub(1);
        let whole = &slots[end.min(1)..end];
        let seconds = whole.len() as f64 * self.timeline.slot as f64 / 1e9;
        let rate = whole.iter().map(|slot| slot.ok).sum::<u64>() as f64 / seconds;
        if !(seconds >= 0.5 && rate >= FEWEST) {
            return None;
        }
        let width = (WINDOW / self.timeline.slot.max(1)).max(1) as usize;
        let windows: Vec<f64> = whole
            .chunks_exact(width)
            .map(|window| window.iter().map(|slot| slot.ok).sum::<u64>() as f64)
            .collect();
        // At least as of events by chance.
        let scatter = rate.sqrt().max(match windows.len() {
            0..3 => 0.0,
            // By the median absolute deviation (times 1.4826 it is the standard deviation of what is
            // normally distributed): a machine that stood still for a second before the fault must not
            // make whatever follows look usual.
            _ => {
                let middle = median(&windows);
                let away: Vec<f64> = windows.iter().map(|window| (window - middle).abs()).collect();
                1.4826 * median(&away)
            }
        });
        let asked = self.asked_rate(begin, self.first).unwrap_or(f64::INFINITY);
        Some(Former { rate: rate.min(asked), scatter })
    }

    fn recoveries(&self, former: Option<&Former>) -> Vec<Recovery> {
        let width = self.timeline.slot.max(1);
        // The slot in which the phase ends is cut, and has what ended later.
        let slots = self.slots(self.span.from, self.span.to / width * width);
        let (window, head) = ((WINDOW / width).max(1) as usize, (HEAD / width).max(1) as usize);
        let mut sums = vec![0];
        sums.extend(slots.iter().scan(0, |sum, slot| {
            *sum += slot.ok;
            Some(*sum)
        }));
        let count = |from: usize, slots: usize| (sums[from + slots] - sums[from]) as f64;
        // The first slot began a little before the fault.
        let begin = self.span.from / width * width;
        let expected = |from: usize, slots: usize| {
            let (from, length) = (begin + from as u64 * width, slots as u64 * width);
            self.expected(former, from, from + length)
        };
        let begins = (slots.len() + 1).saturating_sub(window);
        let recovery = |share: f64| {
            let enough = |at: usize| {
                let asked = share * expected(at, window);
                let scatter = former.map_or(asked.sqrt(), |former| former.scatter);
                // However much it scattered: half of the share is never as it was.
                (asked - 3.0 * scatter).max(0.5 * asked)
            };
            let low = (0..begins).rev().find(|&at| count(at, window) < enough(at));
            let works = |at: &usize| count(*at, head) >= 0.5 * share * expected(*at, head);
            let after = match low {
                None => Some(0),
                // From the first success on: a burst after an outage makes its window look well early.
                Some(low) => (low + 1..begins)
                    .find(works)
                    .map(|at| (at..slots.len()).find(|&at| slots[at].ok > 0).unwrap_or(at)),
            };
            let since = |at: usize| (begin + at as u64 * width).saturating_sub(self.span.from);
            Recovery { share, after_ns: after.map(since) }
        };
        SHARES.into_iter().map(recovery).collect()
    }

    /// Until the 99th percentile stayed below `most`.
    fn calm(&self, most: f64) -> Option<u64> {
        let since = |at: Nanos| at.saturating_sub(self.timeline.start);
        let within: Vec<_> = (self.timeline.points.iter())
            .filter(|TimelinePoint { interval, .. }| {
                since(interval.end) > self.span.from && since(interval.start) < self.span.to
            })
            .collect();
        let restless = |p99: Option<f64>| p99.is_none_or(|p99| p99 > most);
        let side = self.side as usize;
        match within.iter().rposition(|point| restless(point.sides_p99[side])) {
            None if within.is_empty() => None,
            None => Some(0),
            Some(last) if last + 1 == within.len() => None,
            Some(last) => Some(since(within[last].interval.end) - self.span.from),
        }
    }
}

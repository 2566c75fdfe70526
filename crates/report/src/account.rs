//! Reads off a phase's timeline what each fault cost: errors, time without success, time until the load goes as it did
//! before.
//! Reads and writes are told apart; docs/FAILOVER.md says what each figure means.

mod latency;
pub(crate) mod lines;
mod recovery;
mod schedule;
mod silence;
#[cfg(test)]
mod tests;

use kvdyno_core::measure::{Nanos, PhaseMeasure, Side, Slot, Stretch, Timeline};
use kvdyno_core::verify::AnomalyKind;
use kvdyno_core::workload::PhasePlan;

use self::recovery::{After, MOST_WIDTH, Pair, Usual, level, window_of};
use self::schedule::{Schedule, Waiting};
use self::silence::Silent;

use crate::result::{
    FaultAccount, FaultResult, ShareRecovery, SideAccount, StaleAccount, StretchResult,
    ThroughputRecovery, Unavailable, Undecided,
};

/// Shares of the throughput that is asked for, or that was before, for which the time of return is told; the last is all
/// of it.
pub const SHARES: [f64; 6] = [0.5, 0.8, 0.9, 0.95, 0.99, 1.0];
/// Shortest time before the first fault from which the usual throughput can be told, ns.
const SHORTEST_BEFORE: u64 = 2_000_000_000;
/// Time in which a load gets going, ns: it does not count as time before the fault.
const GETTING_GOING: u64 = 1_000_000_000;
/// Fewest operations a second from which a throughput can be told.
const FEWEST: f64 = 20.0;
/// Multiple of the mean gap between two successes beyond which a gap is not chance.
const USUAL_GAPS: f64 = 5.0;
/// Time within which equal actions count as one, ns: all nodes killed at once are one fault.
const AT_ONCE: u64 = 1_000_000_000;

/// Returns the longest stretches without success of a phase, of reads, of writes and of both; `None` if nothing was
/// recorded.
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

/// Tells by how much stale reads were behind; `None` if there was none.
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

/// Returns the stretches in which faults were at work, on core's clock: each from its begin to the end of its repair, or
/// to the end of time for a node that is not repaired. A fault that is over when it is done, such as a rewrite, is at
/// work until then.
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

/// Accounts for what followed each fault of a phase until the next fault, and each repair until the next action of any
/// kind, in order. Faults that could not be carried out have no account.
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
    // Where the suite plans no fault, slots are not kept: the cost of a fault by manual control is not known then.
    let is_kept = !measure.timeline.slots.is_empty();
    let schedule = Schedule::of(plan, measure).filter(|_| is_kept);
    let waiting = schedule.as_ref().map(|schedule| Waiting::of(schedule, measure, first));
    let all: Vec<u64> = begins.iter().map(|(began, _)| *began).collect();
    let broken: Vec<u64> = begins.iter().filter(|(_, r)| !r).map(|(began, _)| *began).collect();
    for (number, account) in accounts.iter_mut().enumerate() {
        // A fault is watched beyond its repair; a repair until the next action of any kind.
        let (_, repair) = begins[number];
        let next = begins[number + 1..].iter().find(|(_, repairs)| repair || !repairs);
        account.until_ns = next.map_or(wall, |(began, _)| *began);
        let span = Stretch { from: account.began_ns, to: account.until_ns };
        let of = |side| {
            let has = measure.series.iter().any(|(series, _)| Side::of(series.kind) == side);
            let (timeline, schedule) = (&measure.timeline, schedule.as_ref());
            // A fault's row covers its repair; a repair's row has only what no other action began.
            let begins = if repair { &all[..] } else { &broken[..] };
            (has && is_kept)
                .then(|| Sight { timeline, schedule, side, first, span, wall, begins }.account())
        };
        (account.reads, account.writes) = (of(Side::Reads), of(Side::Writes));
        account.backlog = waiting.as_ref().map(|waiting| waiting.after(span));
    }
    accounts
}

/// View of one side of a phase from a fault to the next action. Times count from the begin of the phase, ns.
struct Sight<'a> {
    timeline: &'a Timeline,
    /// Operations as they fall due, where all arrivals are open.
    schedule: Option<&'a Schedule>,
    side: Side,
    /// Begin of the phase's first fault.
    first: u64,
    span: Stretch,
    wall: u64,
    /// Begins of all actions that may have begun a stretch without success.
    begins: &'a [u64],
}

/// Throughput before the first fault.
struct Former {
    /// Operations that succeeded, a second; never more than fell due.
    rate: f64,
    /// Operations that were expected in each slot, and those that succeeded.
    slots: Vec<Pair>,
}

impl Sight<'_> {
    fn account(&self) -> SideAccount {
        let slots = self.slots(self.span.from, self.ended_by());
        let sum = |count: fn(&Slot) -> u64| slots.iter().map(count).sum();
        let (first_error_ns, last_error_ns) = self.errors();
        let silence = self.silence();
        let former = self.former();
        let former_p99_ns = self.timeline.former_p99[self.side as usize].filter(|p| p.is_finite());
        SideAccount {
            ok: sum(|slot| slot.ok),
            failed: sum(|slot| slot.failed),
            indeterminate: sum(|slot| slot.indeterminate),
            first_error_ns,
            last_error_ns,
            unavailable_ns: silence.map(Stretch::length),
            unavailable_from_ns: silence.map(|silence| silence.from),
            asked_rate: self.asked_rate(self.span.from, self.span.to),
            former_rate: former.as_ref().map(|former| former.rate),
            throughput: Some(self.throughput(former.as_ref())),
            former_p99_ns,
            latency: latency::recovery(self.timeline, self.side as usize, self.first, self.span),
        }
    }

    /// Returns the time until which operations count as having followed: what ends after the phase followed the last fault.
    fn ended_by(&self) -> u64 {
        match self.span.to == self.wall {
            true => self.wall.max(self.timeline.slots.len() as u64 * self.timeline.slot),
            false => self.span.to,
        }
    }

    /// Returns the rate at which operations fell due between two times, per second.
    fn asked_rate(&self, from: u64, to: u64) -> Option<f64> {
        let seconds = to.saturating_sub(from) as f64 / 1e9;
        let due = self.schedule?.due_in(self.side, from, to);
        (seconds > 0.0).then(|| due / seconds)
    }

    /// Returns how many operations should succeed in a slot: those that fall due, or as many as before.
    fn expected(&self, slot: usize, former_rate: f64) -> f64 {
        let (from, width) = (slot as u64 * self.width(), self.width());
        match self.schedule {
            Some(schedule) => schedule.due_in(self.side, from, from + width),
            None => former_rate * width as f64 / 1e9,
        }
    }

    fn width(&self) -> u64 {
        self.timeline.slot.max(1)
    }

    /// Returns the slots that begin in `from..to`, and the one in which `from` lies.
    fn slots(&self, from: u64, to: u64) -> Vec<Slot> {
        let width = self.timeline.slot.max(1);
        let range = (from / width) as usize..to.div_ceil(width) as usize;
        let slots = self.timeline.slots.iter().map(|slot| slot[self.side as usize]);
        let known: Vec<Slot> = slots.skip(range.start).take(range.len()).collect();
        // Nothing ended in the slots behind the last one that is known.
        let missing = range.len() - known.len();
        known.into_iter().chain(std::iter::repeat_n(Slot::default(), missing)).collect()
    }

    /// Returns first and last error, in ns since the fault.
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

    /// Returns the longest stretch without success that this action began; `None` if it never had a success to end.
    fn silence(&self) -> Option<Stretch> {
        let start = self.timeline.start;
        let silences = &self.timeline.silences.as_ref()?[self.side as usize];
        let begins: Vec<Nanos> = self.begins.iter().map(|begin| start + begin).collect();
        let (from, end) = (start + self.span.from, start + self.wall);
        let number = begins.iter().position(|begin| *begin == from)?;
        let usual = |at| self.usual_gap(at);
        let silent = Silent { silences, begins: &begins, usual: &usual };
        let none = Stretch { from, to: (from + silences.least).min(end) };
        let longest = match silent.longest(number, end) {
            Some(longest) => longest,
            None if silent.covers(Stretch { from, to: start + self.span.to }) => return None,
            None => none,
        };
        let since = |at: Nanos| at.saturating_sub(start);
        Some(Stretch { from: since(longest.from), to: since(longest.to) })
    }

    /// Returns the longest time between two successes, ns, that was usual before the first fault, or that chance explains
    /// at the rate of the second before `at`.
    fn usual_gap(&self, at: Nanos) -> Nanos {
        let start = self.timeline.start;
        let Some(silences) = &self.timeline.silences else { return 0 };
        let silences = &silences[self.side as usize];
        let before = self.former_begin().map_or(0, |begin| {
            let (from, to) = (start + begin, start + self.first);
            let whole = |stretch: &&Stretch| stretch.from >= from && stretch.to <= to;
            let lengths = silences.stretches.iter().filter(whole).map(|stretch| stretch.length());
            lengths.max().unwrap_or(0)
        });
        let at = at.saturating_sub(start);
        let last = self.slots(at.saturating_sub(1_000_000_000), at);
        let ok: u64 = last.iter().map(|slot| slot.ok).sum();
        let by_chance = match ok as f64 > USUAL_GAPS {
            true => (USUAL_GAPS * 1e9 / ok as f64) as Nanos,
            false => 0,
        };
        before.max(by_chance).max(silences.least)
    }

    /// Returns the time from which on the load before the first fault shows what is usual.
    fn former_begin(&self) -> Option<u64> {
        // A load that works off what had piled up at its begin shows what the store can do, not what it does.
        let level = self.timeline.level_from?.saturating_sub(self.timeline.start);
        let begin = GETTING_GOING.min(self.first / 2).max(level);
        (begin < self.first).then_some(begin)
    }

    fn former(&self) -> Option<Former> {
        let begin = self.former_begin()?;
        let slots = self.slots(begin, self.first);
        let end = slots.len().saturating_sub(1);
        let whole = &slots[end.min(1)..end];
        let seconds = whole.len() as f64 * self.timeline.slot as f64 / 1e9;
        let counts: Vec<f64> = whole.iter().map(|slot| slot.ok as f64).collect();
        let rate = level(&counts) * 1e9 / self.width() as f64;
        if !(seconds >= 0.5 && rate >= FEWEST) {
            return None;
        }
        let asked = self.asked_rate(begin, self.first).unwrap_or(f64::INFINITY);
        let rate = rate.min(asked);
        let first = (begin / self.width()) as usize + 1;
        let pair = |(number, ok): (usize, &f64)| Pair {
            expected: self.expected(first + number, rate),
            ok: *ok,
        };
        let slots = counts.iter().enumerate().map(pair).collect();
        Some(Former { rate, slots })
    }

    /// Finds when throughput was as before.
    fn throughput(&self, former: Option<&Former>) -> ThroughputRecovery {
        let undecided =
            |why| ThroughputRecovery { undecided: Some(why), ..ThroughputRecovery::default() };
        let width = self.width();
        let Some(window_ns) = window_of(self.span) else {
            return undecided(Undecided::WatchedTooShort);
        };
        let window = (window_ns / width).max(1) as usize;
        let before =
            former.filter(|former| former.slots.len() as u64 * width >= SHORTEST_BEFORE / 10 * 9);
        let usual =
            before.and_then(|former| Some((former.rate, Usual::of(&former.slots, window)?)));
        let Some((rate, usual)) = usual else { return undecided(Undecided::NothingBefore) };
        // The slot in which the phase ends is cut short, and also holds what ended later. The first slot began a little
        // before the fault.
        let begin = self.span.from / width;
        let slots = self.slots(self.span.from, self.span.to / width * width);
        let pair = |(number, slot): (usize, &Slot)| Pair {
            expected: self.expected(begin as usize + number, rate),
            ok: slot.ok as f64,
        };
        let series: Vec<Pair> = slots.iter().enumerate().map(pair).collect();
        let expected: f64 = series.iter().map(|pair| pair.expected).sum();
        if expected * 1e9 < FEWEST * self.span.length() as f64 {
            return undecided(Undecided::TooFewOperations);
        }
        let after = After { series: &series, usual, window };
        let since = |at: usize| ((begin + at as u64) * width).saturating_sub(self.span.from);
        let varied = after.width() > MOST_WIDTH;
        let told = SHARES.iter().filter(|share| **share < 1.0 || !varied);
        let shares =
            told.map(|&share| ShareRecovery { share, after_ns: after.recovered(share).map(since) });
        let shares: Vec<ShareRecovery> = shares.collect();
        let recovered = if varied { None } else { after.recovered(1.0) };
        let later = recovered.map_or(Vec::new(), |at| {
            after.long_dips(1.0).into_iter().filter(|dip| dip.from >= at).collect()
        });
        let longest = later.iter().max_by_key(|dip| dip.length()).map(|dip| StretchResult {
            from_ns: since(dip.from),
            length_ns: dip.length() as u64 * width,
        });
        ThroughputRecovery {
            window_ns,
            watched_ns: since(series.len().saturating_sub(window)),
            may_lack: after.width().min(MOST_WIDTH),
            usual_dip_ns: usual.dip as u64 * width,
            shares,
            later_dips: later.len() as u64,
            longest_later_dip: longest,
            undecided: varied.then_some(Undecided::TooVaried),
        }
    }
}

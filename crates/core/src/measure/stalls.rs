//! Stalls: times in which the whole client stood still. It was stopped (SIGSTOP, Ctrl-Z), its machine was
//! suspended, it was given no processor, or a quota of its control group was used up. Requests that fall due or
//! time out in them are not the store's doing, and no figure of a single request can show that.
//!
//! A small thread looks at the clock every few milliseconds and sees the gaps.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};

use super::cgroup::Throttling;
use super::clock::{Nanos, now};
use super::silence::Stretch;
use super::thread_time::Waiting;
use super::worker_use::WorkerUse;

/// Time between two looks at the clock.
const EVERY: Duration = Duration::from_millis(5);
/// Shortest gap that counts: a thread that sleeps most of the time is woken far sooner, even where every processor
/// has work for several.
pub const LEAST_GAP: Duration = Duration::from_millis(50);
/// Sum of gaps from which on they count; two gaps always do. One short gap alone may be anything.
pub const LEAST_IN_ALL: Duration = Duration::from_millis(100);
/// Time after a gap, ns, within which a time-out still counts as one in the gap: clients are woken one after the
/// other.
const AFTER: Nanos = 50_000_000;

/// Stalls of a phase, as its clocks showed them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stalls {
    /// Gaps in which the process stood still, in order, each 50 ms and longer.
    pub gaps: Vec<Stretch>,
    /// Part of the gaps in which it waited for a processor; in the rest it was stopped.
    pub waited: Duration,
    /// Time that the machine slept, its clock with it: no other figure contains this time.
    pub suspended: Duration,
    /// Time for which a quota of its control group held it up; each processor counts by itself.
    pub throttled: Duration,
}

/// Time for which a client stood still, and its parts by cause.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Standstill {
    /// Time in all.
    pub total: Duration,
    /// Part in which it waited for a processor, without a used-up quota.
    pub waiting: Duration,
    /// Part in which a quota was used up.
    pub throttled: Duration,
}

impl Standstill {
    /// Returns the part in which it was stopped, or its machine was.
    #[must_use]
    pub fn stopped(&self) -> Duration {
        self.total.saturating_sub(self.waiting + self.throttled)
    }
}

impl Stalls {
    /// Returns how long the client stood still; zero where that was too little to matter. Processors that a quota
    /// held up count as far as one of the `workers` waited meanwhile: a thread without work loses nothing, and two
    /// that are held up at once lose the time once.
    #[must_use]
    pub fn standstill(&self, workers: &[WorkerUse]) -> Standstill {
        let gaps = self.gaps.iter().map(|gap| Duration::from_nanos(gap.length())).sum::<Duration>();
        let starved = workers.iter().map(|worker| worker.waited).max().unwrap_or_default();
        let throttled = self.throttled.min(starved.max(self.waited));
        // What a quota takes shows in gaps as well, where they are long enough.
        let total = (gaps + self.suspended).max(throttled);
        if total < LEAST_IN_ALL {
            return Standstill::default();
        }
        let waiting = self.waited.saturating_sub(throttled);
        Standstill { total, waiting, throttled }
    }

    /// Returns the same with the gaps within `from..to` alone.
    #[must_use]
    pub fn within(self, from: Nanos, to: Nanos) -> Stalls {
        let cut = |gap: &Stretch| Stretch { from: gap.from.max(from), to: gap.to.min(to) };
        let gaps = self.gaps.iter().map(cut).filter(|gap| gap.length() > 0).collect();
        Stalls { gaps, ..self }
    }

    /// Returns how long the client stood still between two moments, as far as gaps show it, ns.
    #[must_use]
    pub fn between(&self, from: Nanos, to: Nanos) -> Nanos {
        let within = |gap: &Stretch| gap.to.min(to).saturating_sub(gap.from.max(from));
        self.gaps.iter().map(within).sum()
    }

    /// Returns true if a request timed out at this time because the client stood still.
    #[must_use]
    pub fn explain_timeout(&self, at: Nanos, timeout: Duration) -> bool {
        let after = AFTER.min(timeout.as_nanos() as Nanos);
        let counts = self.gaps.len() > 1 || self.between(0, Nanos::MAX) >= ns(LEAST_IN_ALL);
        counts && self.gaps.iter().any(|gap| (gap.from..=gap.to + after).contains(&at))
    }

    fn add(&mut self, before: &Look, after: &Look) {
        if let Some(gap) = gap(before, after) {
            self.waited += waited(before, after).min(Duration::from_nanos(gap.length()));
            self.gaps.push(gap);
        }
        let slept = after.asleep.0.saturating_sub(before.asleep.1);
        if slept >= LEAST_GAP {
            self.suspended += slept;
        }
    }
}

fn ns(duration: Duration) -> Nanos {
    duration.as_nanos() as Nanos
}

/// Readings of the clocks at one moment.
#[derive(Clone, Copy, Debug, Default)]
struct Look {
    at: Nanos,
    /// Time that the machine has slept since it was started: at least and at most, because any time may pass
    /// between the readings of two clocks.
    asleep: (Duration, Duration),
    /// Time that this thread has waited for a processor.
    waited: Duration,
    /// Processor time of the whole process.
    cpu: Duration,
}

impl Look {
    fn take(waiting: &mut Waiting) -> Look {
        let before = system_clock(ClockId::Monotonic);
        let all = system_clock(ClockId::Boottime);
        let after = system_clock(ClockId::Monotonic);
        Look {
            at: now(),
            asleep: (all.saturating_sub(after), all.saturating_sub(before)),
            waited: waiting.now(),
            cpu: system_clock(ClockId::ProcessCPUTime),
        }
    }
}

fn waited(before: &Look, after: &Look) -> Duration {
    after.waited.saturating_sub(before.waited)
}

/// Returns the gap between two looks, if it is long enough: the time by which the second came later than asked. If
/// this thread waited for a processor, other threads of the process may have had one: then the process did not
/// stand still.
fn gap(before: &Look, after: &Look) -> Option<Stretch> {
    let late = after.at.saturating_sub(before.at + ns(EVERY));
    let starved = 2 * ns(waited(before, after)) > late;
    let worked = ns(after.cpu.saturating_sub(before.cpu));
    let still = if starved { late.saturating_sub(worked) } else { late };
    (still >= ns(LEAST_GAP)).then(|| Stretch { from: after.at - still, to: after.at })
}

fn system_clock(clock: ClockId) -> Duration {
    let time = clock_gettime(clock);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// Thread that looks at the clock from [`Watchdog::start`] to [`Watchdog::stop`]. It costs about a thousandth of a
/// processor.
#[derive(Debug)]
pub struct Watchdog {
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<Stalls>>,
}

impl Watchdog {
    /// Starts to look at the time `from`. Where the system has no thread left, the result has no stalls.
    #[must_use]
    pub fn start(from: Nanos) -> Watchdog {
        let over = Arc::new(AtomicBool::new(false));
        let told = Arc::clone(&over);
        let thread = std::thread::Builder::new().name("stalls".to_owned());
        Watchdog { over, thread: thread.spawn(move || watch(from, &told)).ok() }
    }

    /// Stops the thread and returns what was seen.
    #[must_use]
    pub fn stop(mut self) -> Stalls {
        self.over.store(true, Ordering::Relaxed);
        let Some(thread) = self.thread.take() else { return Stalls::default() };
        thread.thread().unpark();
        thread.join().unwrap_or_default()
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
    }
}

fn watch(from: Nanos, over: &AtomicBool) -> Stalls {
    let (mut waiting, mut quotas) = (Waiting::of_this_thread(), Throttling::open());
    while let Some(left) = from.checked_sub(now()).filter(|left| *left > 0)
        && !over.load(Ordering::Relaxed)
    {
        std::thread::park_timeout(Duration::from_nanos(left));
    }
    let mut stalls = Stalls::default();
    let (throttled, mut last) = (quotas.now(), Look::take(&mut waiting));
    while !over.load(Ordering::Relaxed) {
        std::thread::park_timeout(EVERY);
        let look = Look::take(&mut waiting);
        stalls.add(&last, &look);
        last = look;
    }
    stalls.throttled = quotas.now().saturating_sub(throttled);
    stalls
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Nanos = 1_000_000;

    fn millis(n: u64) -> Duration {
        Duration::from_millis(n)
    }

    /// A look `late` ms after it should have come, in which this thread waited and the process worked.
    fn look(late: u64, waited: u64, cpu: u64) -> Look {
        let at = (1_000 + 5 + late) * MS;
        Look { at, asleep: Default::default(), waited: millis(waited), cpu: millis(cpu) }
    }

    fn seen(late: u64, waited: u64, cpu: u64) -> Option<u64> {
        let before = Look { at: 1_000 * MS, ..Look::default() };
        gap(&before, &look(late, waited, cpu)).map(|gap| gap.length() / MS)
    }

    #[test]
    fn a_gap_is_a_look_that_came_late_unless_others_of_the_process_worked() {
        assert_eq!(seen(49, 0, 0), None);
        assert_eq!(seen(50, 0, 0), Some(50));
        // Stopped: what the workers were charged for does not matter.
        assert_eq!(seen(6_000, 1, 6_000), Some(6_000));
        // It stood in the queue: for a processor that nobody of this process had, or for one of its workers.
        assert_eq!(seen(80, 79, 3), Some(77));
        assert_eq!(seen(80, 79, 160), None);
        assert_eq!(seen(80, 79, 40), None);
    }

    #[test]
    fn one_short_gap_is_nothing_and_two_are() {
        let gap = |from: u64, ms: u64| Stretch { from: from * MS, to: (from + ms) * MS };
        let stalls = |gaps: &[Stretch]| Stalls { gaps: gaps.to_vec(), ..Stalls::default() };
        let total = |gaps: &[Stretch]| stalls(gaps).standstill(&[]).total;
        assert_eq!(total(&[gap(0, 99)]), Duration::ZERO);
        assert_eq!(total(&[gap(0, 100)]), millis(100));
        assert_eq!(total(&[gap(0, 50), gap(70, 50)]), millis(100));
        let cut = stalls(&[gap(0, 90), gap(150, 90)]).within(60 * MS, 200 * MS);
        assert_eq!(cut.gaps, [gap(60, 30), gap(150, 50)]);
        assert_eq!(cut.between(80 * MS, 160 * MS), 20 * MS);
    }

    /// Each processor that a quota holds up counts by itself; what was lost is what a worker waited.
    #[test]
    fn a_quota_counts_as_far_as_a_worker_waited() {
        let waited = |ms| WorkerUse { waited: millis(ms), ..WorkerUse::default() };
        let stalls = Stalls { throttled: millis(9_000), ..Stalls::default() };
        assert_eq!(stalls.standstill(&[waited(40)]), Standstill::default());
        let still = stalls.standstill(&[waited(300), waited(6_400)]);
        assert_eq!((still.total, still.throttled), (millis(6_400), millis(6_400)));
        assert_eq!((still.waiting, still.stopped()), (Duration::ZERO, Duration::ZERO));
        // Threads that wait for other programs only are another matter.
        let free = Stalls::default();
        assert_eq!(free.standstill(&[waited(6_400)]), Standstill::default());
    }

    #[test]
    fn a_machine_that_slept_with_its_clock_stood_still() {
        let mut stalls = Stalls::default();
        let before = Look::default();
        let asleep =
            |least, most| Look { at: 5 * MS, asleep: (millis(least), millis(most)), ..before };
        // Between the two readings of that look half a second went by: that is no sleep.
        stalls.add(&before, &asleep(0, 500));
        assert_eq!(stalls.suspended, Duration::ZERO);
        stalls.add(&before, &asleep(60_000, 60_001));
        assert_eq!(stalls.standstill(&[]).stopped(), millis(60_000));
    }

    #[test]
    fn what_times_out_in_a_gap_or_right_after_it_is_the_clients() {
        let gaps = vec![Stretch { from: 1_000 * MS, to: 4_000 * MS }];
        let stalls = Stalls { gaps, ..Stalls::default() };
        let explained = |ms: u64| stalls.explain_timeout(ms * MS, millis(2_000));
        assert_eq!([999, 1_000, 4_030, 4_051].map(explained), [false, true, true, false]);
        // A request sent after the gap may have timed out by itself.
        assert!(!stalls.explain_timeout(4_030 * MS, millis(10)));
    }

    #[test]
    fn the_watchdog_looks_and_ends() {
        let begun = now();
        let watchdog = Watchdog::start(begun);
        std::thread::sleep(millis(60));
        let stalls = watchdog.stop();
        assert!(stalls.gaps.iter().all(|gap| gap.from >= begun && gap.to <= now()), "{stalls:?}");
        // One that was to begin later is not waited for.
        assert_eq!(Watchdog::start(now() + 3_600_000 * MS).stop().gaps, []);
    }
}

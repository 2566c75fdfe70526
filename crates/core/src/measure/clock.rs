//! The clock for everything that is compared: nanoseconds since this process first asked the time.
//!
//! Each operation reads the clock twice. The system's clock takes 20 to 35 ns a reading, a good part of what an
//! in-process engine takes for a whole get. So where the processor's time stamp counter is fit for it
//! (invariant, and trusted by the kernel itself) it is read directly: 8 to 12 ns (`cargo xtask bench null`). It
//! is set by CLOCK_MONOTONIC once, over 10 ms, to about 5 ppm.
//!
//! A processor works on some hundreds of instructions at a time, and reads its counter as soon as it meets the
//! instruction, even while earlier ones are unfinished. A fence waits for these: 9 ns, and the work of the next
//! instructions cannot begin meanwhile. So there are two readings: [`now`] with the fence, for the end of what
//! is timed, and [`departure`] without, for its beginning. The second may come early by the time of what was
//! unfinished, some tens of ns, and never late: latencies may come out that much too long, never too short.

use std::sync::OnceLock;
use std::time::Instant;

use rustix::time::{ClockId, clock_gettime};

/// Nanoseconds since the process first asked the time.
pub type Nanos = u64;

static SOURCE: OnceLock<Source> = OnceLock::new();

#[derive(Debug)]
enum Source {
    System(Instant),
    #[cfg(target_arch = "x86_64")]
    Counter(counter::Counter),
}

/// Returns the time now, read after all earlier work is done. It never goes back, and is the same on every
/// thread.
#[inline]
#[must_use]
pub fn now() -> Nanos {
    match SOURCE.get_or_init(Source::choose) {
        Source::System(epoch) => epoch.elapsed().as_nanos() as Nanos,
        #[cfg(target_arch = "x86_64")]
        Source::Counter(counter) => counter.at(counter::ticks_after_all()),
    }
}

/// Returns the time now, for work that begins next: never later than its begin, perhaps some tens of ns earlier.
/// A later [`now`] on the same thread is not earlier.
#[inline]
#[must_use]
pub fn departure() -> Nanos {
    match SOURCE.get_or_init(Source::choose) {
        Source::System(epoch) => epoch.elapsed().as_nanos() as Nanos,
        #[cfg(target_arch = "x86_64")]
        Source::Counter(counter) => counter.at(counter::ticks()),
    }
}

/// Returns the time of the system's own clock (CLOCK_MONOTONIC), ns. It has the same zero for all processes of a
/// machine, except those in a time namespace of their own.
#[must_use]
pub fn system_time() -> Nanos {
    let time = clock_gettime(ClockId::Monotonic);
    time.tv_sec as Nanos * 1_000_000_000 + time.tv_nsec as Nanos
}

impl Source {
    #[cold]
    fn choose() -> Source {
        #[cfg(target_arch = "x86_64")]
        if let Some(counter) = counter::Counter::calibrated() {
            return Source::Counter(counter);
        }
        Source::System(Instant::now())
    }
}

#[cfg(target_arch = "x86_64")]
mod counter {
    use std::arch::x86_64::{__cpuid, _mm_lfence, _rdtsc};
    use std::time::{Duration, Instant};

    use super::Nanos;

    /// Time for which the counter is compared with the system's clock.
    const CALIBRATION: Duration = Duration::from_millis(10);
    /// Number of pairs of readings of which the tightest is kept.
    const ATTEMPTS: usize = 32;

    /// The time stamp counter and its rate.
    #[derive(Debug)]
    pub(super) struct Counter {
        epoch: u64,
        /// Nanoseconds a tick, times 2^32.
        scale: u64,
    }

    impl Counter {
        /// Calibrates the counter; `None` where it is not fit to be a clock.
        pub(super) fn calibrated() -> Option<Counter> {
            if !is_fit() {
                return None;
            }
            let (epoch, begun) = pair();
            std::thread::sleep(CALIBRATION);
            let (end, ended) = pair();
            let nanos = ended.duration_since(begun).as_nanos();
            let ticks = u128::from(end.checked_sub(epoch).filter(|&ticks| ticks > 0)?);
            let scale = u64::try_from((nanos << 32) / ticks).ok()?;
            Some(Counter { epoch, scale })
        }

        /// Converts a reading of the counter to the time at which it was taken.
        #[inline]
        pub(super) fn at(&self, ticks: u64) -> Nanos {
            // Another processor's counter may lag by a few ticks: never below the epoch.
            let ticks = ticks.saturating_sub(self.epoch);
            ((u128::from(ticks) * u128::from(self.scale)) >> 32) as Nanos
        }
    }

    /// Returns true if the counter runs at one rate in every state of the processor (CPUID 8000_0007h, EDX bit
    /// 8), and the kernel has not found it out of step.
    fn is_fit() -> bool {
        let highest = __cpuid(0x8000_0000).eax;
        let invariant = highest >= 0x8000_0007 && __cpuid(0x8000_0007).edx & (1 << 8) != 0;
        let path = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
        let kernel = std::fs::read_to_string(path).unwrap_or_default();
        invariant && ["tsc", "kvm-clock"].contains(&kernel.trim())
    }

    /// Reads the counter and the system's clock at one moment, as near to each other as they can be read.
    fn pair() -> (u64, Instant) {
        let reading = || {
            let before = ticks_after_all();
            let system = Instant::now();
            let after = ticks_after_all();
            (after - before, before + (after - before) / 2, system)
        };
        let best = (0..ATTEMPTS).map(|_| reading()).min_by_key(|&(width, ..)| width);
        best.map_or_else(
            || (ticks_after_all(), Instant::now()),
            |(_, counter, system)| (counter, system),
        )
    }

    /// Reads the counter before the work that follows; earlier work may be unfinished.
    #[inline]
    pub(super) fn ticks() -> u64 {
        // SAFETY: the instruction exists on every x86-64 processor and touches no memory.
        unsafe { _rdtsc() }
    }

    /// Reads the counter after all earlier work: the answer that it times is there.
    #[inline]
    pub(super) fn ticks_after_all() -> u64 {
        // SAFETY: the instruction exists on every x86-64 processor and touches no memory.
        unsafe { _mm_lfence() };
        ticks()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn keeps_the_system_clocks_pace() {
        let (begun, system) = (now(), Instant::now());
        std::thread::sleep(Duration::from_millis(300));
        let (ours, theirs) = ((now() - begun) as f64, system.elapsed().as_nanos() as f64);
        assert!((ours / theirs - 1.0).abs() < 1e-3, "{ours} ns here, {theirs} ns by the system");
    }

    #[test]
    fn what_is_timed_never_ends_before_it_begins() {
        let mut last = now();
        for _ in 0..200_000 {
            let sent = departure();
            let done = now();
            assert!(sent <= done, "sent at {sent} ns, done at {done} ns");
            assert!(last <= done, "{last} ns, then {done} ns");
            last = done;
        }
    }

    #[test]
    fn never_goes_back_between_threads() {
        let (to, from) = std::sync::mpsc::sync_channel::<Nanos>(0);
        let other = std::thread::spawn(move || {
            for sent in from {
                assert!(now() >= sent);
            }
        });
        let moments = (0..10_000).map(|turn| if turn % 2 == 0 { now() } else { departure() });
        moments.for_each(|moment| to.send(moment).expect("the other thread listens"));
        drop(to);
        other.join().expect("time went back");
    }
}

//! Stop signals from outside the load: the user, the hard time bound, a store that is gone.

use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};

use crate::measure::Nanos;

/// Stop signals of a phase, shared by the thread that watches it and the workers that carry it. Workers only read
/// them, so their cache line stays shared.
#[derive(Debug)]
pub struct Controls {
    /// No operation starts at or after this time.
    stop_at: AtomicU64,
    abandoned: AtomicBool,
}

impl Default for Controls {
    fn default() -> Self {
        Controls { stop_at: AtomicU64::new(Nanos::MAX), abandoned: AtomicBool::new(false) }
    }
}

impl Controls {
    /// Forbids operations to start at or after `when`; an earlier bound stays.
    #[inline]
    pub fn stop_at(&self, when: Nanos) {
        self.stop_at.fetch_min(when, Ordering::Relaxed);
    }

    /// Returns the time from which no operation starts.
    #[inline]
    #[must_use]
    pub fn deadline(&self) -> Nanos {
        self.stop_at.load(Ordering::Relaxed)
    }

    /// Makes the workers give up requests in flight instead of waiting for them.
    pub fn abandon(&self) {
        self.abandoned.store(true, Ordering::Relaxed);
    }

    /// Returns true if requests in flight are no longer waited for.
    #[must_use]
    #[inline]
    pub fn is_abandoned(&self) -> bool {
        self.abandoned.load(Ordering::Relaxed)
    }
}

/// The user's wish to stop: a count of interrupts, 0 to 2, that only ever rises.
#[derive(Debug, Default)]
pub struct Interrupt(AtomicU8);

impl Interrupt {
    /// Counts an interrupt. After the first a phase stops issuing requests and drains; after the second it no longer
    /// waits for requests in flight.
    pub fn raise(&self) {
        let _ = self.0.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |n| Some((n + 1).min(2)));
    }

    /// Returns true after a first interrupt.
    #[must_use]
    #[inline]
    pub fn is_raised(&self) -> bool {
        self.0.load(Ordering::Relaxed) >= 1
    }

    /// Returns true after a second interrupt.
    #[must_use]
    pub fn was_raised_twice(&self) -> bool {
        self.0.load(Ordering::Relaxed) >= 2
    }
}

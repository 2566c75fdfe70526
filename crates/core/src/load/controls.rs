//! Stop signals from outside the load: the user, the hard time bound, a store that is gone.

use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};

use crate::measure::Nanos;

/// Shared by the thread that watches a phase and the workers that carry it. Workers only read it,
/// so its cache line stays shared.
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
    /// No operation is to start at or after `when`; an earlier bound stays.
    #[inline]
    pub fn stop_at(&self, when: Nanos) {
        self.stop_at.fetch_min(when, Ordering::Relaxed);
    }

    /// The time from which no operation starts.
    #[inline]
    #[must_use]
    pub fn deadline(&self) -> Nanos {
        self.stop_at.load(Ordering::Relaxed)
    }

    /// Requests in flight are not to be waited for.
    pub fn abandon(&self) {
        self.abandoned.store(true, Ordering::Relaxed);
    }

    /// Whether requests in flight are to be left alone.
    #[must_use]
    #[inline]
    pub fn is_abandoned(&self) -> bool {
        self.abandoned.load(Ordering::Relaxed)
    }
}

/// How the user's wish to stop reaches a phase: a value that only ever rises.
#[derive(Debug, Default)]
pub struct Interrupt(AtomicU8);

impl Interrupt {
    /// First call: stop issuing and drain; second: do not wait for requests in flight.
    pub fn raise(&self) {
        let _ = self.0.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |n| Some((n + 1).min(2)));
    }

    /// Someone asked to stop.
    #[must_use]
    #[inline]
    pub fn is_raised(&self) -> bool {
        self.0.load(Ordering::Relaxed) >= 1
    }

    /// Someone asked twice.
    #[must_use]
    pub fn was_raised_twice(&self) -> bool {
        self.0.load(Ordering::Relaxed) >= 2
    }
}

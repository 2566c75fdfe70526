//! The moment when the first fault of a phase was begun, shared by the nemesis and the thread that watches the phase.

use std::sync::atomic::{AtomicU64, Ordering};

use kvdyno_core::measure::Nanos;

/// Moment when the first fault was begun, for the thread that watches the phase.
pub(super) struct First(AtomicU64);

impl First {
    const NONE: Nanos = Nanos::MAX;

    /// None was.
    pub(super) fn none() -> First {
        First(AtomicU64::new(First::NONE))
    }

    pub(super) fn begin(&self, at: Nanos) {
        let _ = self.0.compare_exchange(First::NONE, at, Ordering::Relaxed, Ordering::Relaxed);
    }

    /// Nothing could be done of what was begun `at` that time.
    pub(super) fn take_back(&self, at: Nanos) {
        let _ = self.0.compare_exchange(at, First::NONE, Ordering::Relaxed, Ordering::Relaxed);
    }

    pub(super) fn begun(&self) -> Option<Nanos> {
        Some(self.0.load(Ordering::Relaxed)).filter(|at| *at != First::NONE)
    }
}

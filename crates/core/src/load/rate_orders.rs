//! Changes of a group's rate while its phase runs: manual control or the conductor adds one, and every lane makes it
//! with the operation that it names. Lanes only read a number as long as there is none.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::workload::RateChange;

/// The changes of one group's rate, in order.
#[derive(Debug, Default)]
pub struct RateOrders {
    count: AtomicUsize,
    changes: Mutex<Vec<RateChange>>,
    late: AtomicBool,
}

impl RateOrders {
    /// Begins with the changes that are planned.
    #[must_use]
    pub fn of(changes: &[RateChange]) -> RateOrders {
        RateOrders {
            count: AtomicUsize::new(changes.len()),
            changes: Mutex::new(changes.to_vec()),
            late: AtomicBool::new(false),
        }
    }

    /// Adds a change. It must be far enough ahead that no lane has passed its operation.
    pub fn add(&self, change: RateChange) {
        let mut changes = self.locked();
        changes.push(change);
        self.count.store(changes.len(), Ordering::Release);
    }

    /// Returns all changes so far.
    #[must_use]
    pub fn all(&self) -> Vec<RateChange> {
        self.locked().clone()
    }

    /// Returns the number of changes so far.
    #[inline]
    #[must_use]
    pub fn count(&self) -> usize {
        self.count.load(Ordering::Acquire)
    }

    /// Returns true if a lane had passed the operation of a change before it saw the change.
    #[must_use]
    pub fn was_late(&self) -> bool {
        self.late.load(Ordering::Relaxed)
    }

    pub(super) fn change(&self, number: usize) -> Option<RateChange> {
        self.locked().get(number).copied()
    }

    pub(super) fn note_late(&self) {
        self.late.store(true, Ordering::Relaxed);
    }

    fn locked(&self) -> MutexGuard<'_, Vec<RateChange>> {
        self.changes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

//! Shares what the clients of a store have found out about the records in it.

use std::sync::atomic::{AtomicBool, Ordering};

/// Findings of the clients of a store about the records in it.
#[derive(Default)]
pub(super) struct Learned {
    /// True if records are hashes: they have several fields.
    pub(super) hashes: AtomicBool,
    /// True if some hashes have a time to live.
    pub(super) expiring_hashes: AtomicBool,
}

/// Sets a flag that all workers read with each operation: written only if that changes it.
pub(super) fn learn(flag: &AtomicBool, value: bool) {
    if flag.load(Ordering::Acquire) != value {
        flag.store(value, Ordering::Release);
    }
}

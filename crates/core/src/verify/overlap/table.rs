//! The side table's entries, in shards under a lock each. Their number is bounded over all shards
//! together.

use std::collections::HashMap;
use std::collections::hash_map;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::Entry;

const SHARDS: usize = 128;
/// Number of empty entries that each shard keeps for reuse, so that a steady load allocates
/// nothing.
const SPARES: usize = 16;

/// Entries of all slots whose writes overlap or are indeterminate.
pub(in crate::verify) struct Table {
    shards: Box<[Padded]>,
    held: AtomicUsize,
    capacity: usize,
}

/// A shard, aligned so that no two share a cache line.
#[derive(Default)]
#[repr(align(128))]
struct Padded(Mutex<Entries>);

#[derive(Default)]
struct Entries {
    by_slot: HashMap<u64, Entry>,
    spares: Vec<Entry>,
}

impl Table {
    #[inline]
    pub(in crate::verify) fn new(capacity: usize) -> Table {
        let shards = std::iter::repeat_with(Padded::default).take(SHARDS).collect();
        Table { shards, held: AtomicUsize::new(0), capacity }
    }

    /// Returns the number of entries now.
    #[inline]
    pub(in crate::verify) fn held(&self) -> usize {
        self.held.load(Ordering::Relaxed)
    }

    /// Locks the shard of `slot`. While it is held, a word that says *overlapped* stays.
    #[inline]
    pub(in crate::verify) fn lock(&self, slot: u64) -> Shard<'_> {
        // Fibonacci hashing: neighbouring slots go to different shards.
        let place = slot.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - SHARDS.ilog2());
        let entries = self.shards[place as usize].0.lock().unwrap_or_else(PoisonError::into_inner);
        Shard { entries, table: self }
    }
}

/// A locked shard.
pub(in crate::verify) struct Shard<'a> {
    entries: MutexGuard<'a, Entries>,
    table: &'a Table,
}

impl Shard<'_> {
    /// Returns the entry of `slot`.
    #[inline]
    pub(in crate::verify) fn get(&mut self, slot: u64) -> Option<&mut Entry> {
        self.entries.by_slot.get_mut(&slot)
    }

    /// Opens an empty entry for `slot`, which has none; `None` if the table is full.
    #[inline]
    pub(in crate::verify) fn open(&mut self, slot: u64) -> Option<&mut Entry> {
        let more = |held| (held < self.table.capacity).then_some(held + 1);
        let held = &self.table.held;
        held.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).ok()?;
        let Entries { by_slot, spares } = &mut *self.entries;
        match by_slot.entry(slot) {
            hash_map::Entry::Vacant(place) => Some(place.insert(spares.pop().unwrap_or_default())),
            hash_map::Entry::Occupied(place) => {
                held.fetch_sub(1, Ordering::Relaxed);
                Some(place.into_mut())
            }
        }
    }

    /// Gives the entry of `slot` back.
    #[inline]
    pub(in crate::verify) fn close(&mut self, slot: u64) {
        if let Some(entry) = self.entries.by_slot.remove(&slot) {
            self.table.held.fetch_sub(1, Ordering::Relaxed);
            if self.entries.spares.len() < SPARES {
                self.entries.spares.push(entry);
            }
        }
    }
}

#[cfg(all(test, debug_assertions))]
mod tests {
    use super::*;
    use crate::verify::judgement::WriteKind;

    #[test]
    #[should_panic(expected = "superseded-after-end")]
    fn a_version_that_is_superseded_while_it_is_in_flight() {
        let table = Table::new(1);
        let mut shard = table.lock(0);
        let entry = shard.open(0).unwrap();
        entry.begin(1, WriteKind::Put);
        entry.versions[0].superseded_at = 2;
        entry.prune();
    }
}

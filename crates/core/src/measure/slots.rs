//! Slots: counts of operations that ended in each 20 ms of a phase with faults, reads and writes
//! apart.

use serde::{Deserialize, Serialize};

use super::clock::Nanos;
use super::series::Ending;
use super::silence::Stretch;
use crate::workload::Kind;

/// Width of a slot, ns.
pub const SLOT: Nanos = 20_000_000;

/// Side of an operation: reads or writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Side {
    /// Operations that only read.
    Reads = 0,
    /// Operations that write, whatever else they do.
    Writes = 1,
}

impl Side {
    /// Both sides, in the order of their numbers.
    pub const BOTH: [Side; 2] = [Side::Reads, Side::Writes];

    /// Returns the side of a kind of operation.
    #[inline]
    #[must_use]
    pub fn of(kind: Kind) -> Side {
        if kind.read_only() { Side::Reads } else { Side::Writes }
    }

    /// Returns the word used in results.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Side::Reads => "reads",
            Side::Writes => "writes",
        }
    }
}

/// Counts of one side's operations that ended in a slot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Slot {
    /// Operations that succeeded.
    pub ok: u64,
    /// Operations surely not applied.
    pub failed: u64,
    /// Operations perhaps applied.
    pub indeterminate: u64,
    /// First and last end of an operation without success; `None` if there was none.
    pub errors: Option<Stretch>,
    /// Records that gets found.
    pub hits: u64,
    /// Records that gets did not find, whether they should have been there or not.
    pub misses: u64,
}

impl Slot {
    #[inline]
    fn note(&mut self, kind: Kind, ending: Ending, records: u64, at: Nanos) {
        match ending {
            Ending::Ok { missed } => {
                if kind.gets() {
                    self.misses += u64::from(missed);
                    self.hits += records.saturating_sub(missed.into());
                }
                return self.ok += 1;
            }
            Ending::Failed => self.failed += 1,
            Ending::Indeterminate => self.indeterminate += 1,
        }
        let errors = self.errors.get_or_insert(Stretch { from: at, to: at });
        errors.to = errors.to.max(at);
    }

    #[inline]
    pub(super) fn add(&mut self, other: &Slot) {
        self.ok += other.ok;
        self.failed += other.failed;
        self.indeterminate += other.indeterminate;
        self.hits += other.hits;
        self.misses += other.misses;
        if let Some(theirs) = other.errors {
            let mine = self.errors.get_or_insert(theirs);
            *mine = Stretch { from: mine.from.min(theirs.from), to: mine.to.max(theirs.to) };
        }
    }
}

/// One worker's slots, while it works.
#[derive(Debug)]
pub(super) struct Slots {
    start: Nanos,
    index: u32,
    current: [Slot; 2],
    done: Vec<(u32, [Slot; 2])>,
}

impl Slots {
    pub(super) fn new(start: Nanos) -> Self {
        Slots { start, index: 0, current: [Slot::default(); 2], done: Vec::new() }
    }

    #[inline]
    pub(super) fn note(&mut self, kind: Kind, ending: Ending, records: u64, at: Nanos) {
        let index = (at.saturating_sub(self.start) / SLOT) as u32;
        if index != self.index {
            self.close();
            self.index = index;
        }
        self.current[Side::of(kind) as usize].note(kind, ending, records, at);
    }

    #[inline]
    fn close(&mut self) {
        let current = std::mem::take(&mut self.current);
        if current != [Slot::default(); 2] {
            self.done.push((self.index, current));
        }
    }

    /// Takes all slots since the last call.
    #[inline]
    pub(super) fn take(&mut self) -> Vec<(u32, [Slot; 2])> {
        self.close();
        std::mem::take(&mut self.done)
    }
}

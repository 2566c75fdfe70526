//! The ledger: for every slot (a record, or a field where fields are written apart), what a read
//! may return, kept while any number of threads write and read.
//!
//! # Definition
//!
//! All begins and ends of a slot's writes are in one order, its logical clock. A write begins before its request is
//! sent and ends after its answer; one in flight or indeterminate never ends; one that failed does not count. A
//! read takes a snapshot of the clock before it is sent. Then
//!
//! - version `v` is illegal to a read if and only if an acknowledged write began after `v`'s
//!   write had ended, and itself ended before the read's snapshot;
//! - so is a version that failed, or that has not begun when the read ends;
//! - finding nothing is legal if and only if a delete, or the state before the first write, is
//!   legal as a version is, or the store may forget, or a legal value may have expired.
//!
//! # No false alarm
//!
//! A logical interval contains the real one: begin precedes the send, end follows the answer, the
//! snapshot precedes the read's send. So if the clock says that `w` began after `v` ended and ended
//! before the read was sent, it was so in fact, and a store that promises to show acknowledged
//! writes cannot return `v`. The order of memory that this needs: each change of a word is a
//! compare-and-swap that acquires and releases, the snapshot is a load that acquires; neither can move
//! past the send that follows it or before the answer that precedes it, and a snapshot that sees `w`
//! ended comes after all that led to it.
//!
//! # One word is exact while writes do not overlap
//!
//! The order of the compare-and-swaps of a slot's word is its clock. With at most one write in
//! flight and every ended one acknowledged or failed, each acknowledged write began after all
//! earlier ones had ended, so at any moment just two versions are legal: the last acknowledged one
//! and the one in flight. A word holds both, so a read's ticket is the word itself: it alone tells
//! which of the versions begun by then are legal; all later ones are. The word at the read's end
//! tells which of those exist and have not failed. When a second write begins, or one ends
//! indeterminate, the slot moves to the side table (`overlap.rs`) and back when one version is left.
//!
//! Under a linearizable store a read that found the write in flight marks the word *observed*: reads
//! sent from then on must not find what was there before. A write that was observed counts as
//! acknowledged even if its answer never comes; if it is said to have failed, the mark is taken back.
//!
//! # A store that may be stale
//!
//! If the store promises that a read is stale by `S` at most, a version is legal to a read until `S` after it
//! became illegal to reads of a store without staleness: `overwritten.rs`. Reads raise no floor there. Reads that
//! go past a cache, to the store behind it, are allowed that one's staleness only.
//!
//! # Exceptions, always towards *legal*
//!
//! Two concern a read whose ticket is a word (no overlap when it was sent). A version that failed while the read
//! was in flight is no longer known to have failed once a later write was acknowledged too. If two or more writes
//! began meanwhile, finding nothing passes if the ledger has seen any delete in any slot, because the kinds of
//! versions between are not kept. One concerns names: a failed version that is read after a later one was
//! acknowledged is named stale instead of phantom. All else that has a ticket is judged exactly.

mod again;
mod overwritten;
mod reading;
pub(super) mod slots;
mod snapshot;
pub(super) mod word;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use super::judgement::{Expiry, Rules, SlotState, Tick, WriteEnd, WriteKind};
use super::overlap::{Entry, Shard, Table};
use crate::ground::numbers::bytes_text;
use crate::measure::{Nanos, now};
use overwritten::Overwritten;
pub use reading::ReadTicket;
use slots::Slots;
use word::{MOST_VERSIONS, Word};

/// Content of the slots before the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Initial {
    /// Nothing.
    Never,
    /// Perhaps data of an earlier run, which is checked by its stamp only, until a read has found
    /// it or a write of ours is acknowledged.
    Unjudged,
}

/// Facts of the store and the run that a ledger needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LedgerConfig {
    /// Number of slots: records × fields written apart (× 1 where records are written whole).
    pub slots: u64,
    /// True if the store promises linearizability: reads raise the floor.
    pub linearizable: bool,
    /// Longest time for which a read may still return what an acknowledged write had replaced, up to when the read
    /// was sent; zero if no read may.
    pub staleness: Duration,
    /// True if the store may drop records: finding nothing is a legal miss.
    pub may_forget: bool,
    /// Highest number of slots whose writes overlap or are indeterminate at a time.
    pub overlap_capacity: usize,
    /// Content of the slots before the run.
    pub initial: Initial,
    /// Bounds between which records vanish by time to live; `None` if they do not.
    pub expiry: Option<Expiry>,
    /// True if the driver may apply a write again after it was answered.
    pub may_apply_again: bool,
    /// Slots of records that are taken over from a process that is lost, if any are.
    pub taken_over: Option<TakenOver>,
}

/// Slots of records that another process of this load had written before it was lost. What is in them is data of an
/// earlier run. Requests that the lost process had sent may arrive at any time, so that no value of its is ever
/// called wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TakenOver {
    /// First of the slots; all after it are taken over, too.
    pub from: u64,
    /// True if the run deletes, so that requests of the lost process may take a record away, too.
    pub deletes: bool,
}

/// Error of a ledger that cannot be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LedgerError {
    /// It would not fit into memory.
    #[error(
        "verification of {slots} records and fields needs {} of memory; this machine has {}, swap included: \
         use fewer records, or turn verification off (--no-verify)",
        bytes_text(*bytes as f64), bytes_text(*machine as f64)
    )]
    TooLarge {
        /// Slots asked for.
        slots: u64,
        /// Bytes that they need.
        bytes: u128,
        /// Bytes of memory and swap.
        machine: u64,
    },
    /// The machine has room for it, but the system refuses it to this process.
    #[error(
        "verification of {slots} records and fields needs {} of memory, which the system refuses this process{}: \
         use fewer records, turn verification off (--no-verify), or raise the limit",
        bytes_text(*bytes as f64),
        limit.map_or_else(String::new, |limit| {
            format!(", whose memory is limited to {} (`ulimit -v`)", bytes_text(limit as f64))
        })
    )]
    Refused {
        /// Slots asked for.
        slots: u64,
        /// Bytes that they need.
        bytes: u128,
        /// Limit of the process's address space in bytes, if it has one.
        limit: Option<u64>,
    },
}

/// A write in flight. Give it to [`Ledger::end_write`], whatever becomes of the write.
#[derive(Debug)]
#[must_use = "a write that never ends stays in flight for ever"]
pub struct WriteTicket {
    /// Version to stamp on the value.
    pub version: u32,
    /// Effect of the write.
    pub kind: WriteKind,
}

/// The ledger: what every slot may legally hold. Shared by all threads.
pub struct Ledger {
    slots: Slots,
    table: Table,
    rules: Rules,
    taken_over: Option<TakenOver>,
    /// Staleness that a read may have now, ns.
    staleness: AtomicU64,
    /// Times at which versions were replaced; only where the store may be stale.
    overwritten: Option<Overwritten>,
    may_apply_again: bool,
    /// True once some slot had a delete.
    deletes: AtomicBool,
    /// Number of slots that became unknown.
    lost: AtomicU64,
}

impl Ledger {
    /// Creates a ledger in which nothing was written yet. Its memory is taken from the system as slots are touched.
    ///
    /// # Errors
    /// [`LedgerError::TooLarge`] if the machine could not hold it, [`LedgerError::Refused`] if the system refuses
    /// the memory.
    pub fn new(config: LedgerConfig) -> Result<Ledger, LedgerError> {
        let rules = Rules {
            existing_data: config.initial == Initial::Unjudged,
            may_forget: config.may_forget,
            linearizable: config.linearizable,
            expiry: config.expiry,
        };
        let staleness = nanos(config.staleness);
        Ok(Ledger {
            slots: Slots::new(config.slots)?,
            table: Table::new(config.overlap_capacity),
            rules,
            taken_over: config.taken_over,
            staleness: AtomicU64::new(staleness),
            overwritten: (staleness > 0).then(|| Overwritten::new(staleness)),
            may_apply_again: config.may_apply_again,
            deletes: AtomicBool::new(false),
            lost: AtomicU64::new(0),
        })
    }

    /// Returns the number of slots.
    #[must_use]
    #[inline]
    pub fn slots(&self) -> u64 {
        self.slots.count()
    }

    /// Returns the bytes that the words take once every slot has been touched. The side table comes on top.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.slots.count() * 8
    }

    /// Returns the number of slots in the side table now.
    #[must_use]
    #[inline]
    pub fn overlapping(&self) -> usize {
        self.table.held()
    }

    /// Returns true if records vanish by time to live.
    #[must_use]
    #[inline]
    pub fn expires(&self) -> bool {
        self.rules.expiry.is_some()
    }

    /// Sets the staleness that a read may have from now on; no more than the ledger was made for. To be called
    /// while no read is in flight.
    pub fn allow_staleness(&self, staleness: Duration) {
        self.staleness.store(nanos(staleness), Ordering::Relaxed);
    }

    /// Returns the number of slots that the ledger lost track of.
    #[must_use]
    #[inline]
    pub fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }

    /// Asks for the slot's cache line, for use soon. Any number is allowed.
    #[inline]
    pub fn prefetch(&self, slot: u64) {
        self.slots.prefetch(slot);
    }

    /// Begins a write that is about to be sent: draws its version.
    ///
    /// # Panics
    /// If there is no such slot; all methods that take a slot panic then, except [`Ledger::prefetch`].
    #[inline]
    pub fn begin_write(&self, slot: u64, kind: WriteKind) -> WriteTicket {
        let cell = self.slots.word(slot);
        if kind == WriteKind::Delete && !self.deletes.load(Ordering::Relaxed) {
            self.deletes.store(true, Ordering::SeqCst);
        }
        let word = load(cell);
        let version = match self.can_begin(word) && replace(cell, word, word.begun(kind)) {
            true => word.issued() + 1,
            false => self.begin_rarer(slot, kind),
        };
        WriteTicket { version, kind }
    }

    /// Returns true if nothing is in flight in the slot, versions are left, and the word says all of it.
    #[inline]
    fn can_begin(&self, word: Word) -> bool {
        let idle = word.is_plain() && !word.in_flight() && word.issued() < MOST_VERSIONS;
        idle && !self.may_apply_again
    }

    /// Begins a write in a slot that is not at rest, or whose word has just changed.
    #[cold]
    #[inline]
    fn begin_rarer(&self, slot: u64, kind: WriteKind) -> u32 {
        let cell = self.slots.word(slot);
        if self.may_apply_again {
            return again::begin_write(cell, kind);
        }
        loop {
            let word = load(cell);
            let begun = if self.can_begin(word) {
                let next = word.begun(kind);
                replace(cell, word, next).then_some(next.issued())
            } else if word.is_unknown() {
                let next = word.counted();
                replace(cell, word, next).then_some(next.issued())
            } else {
                self.begin_overlapping(slot, kind)
            };
            if let Some(version) = begun {
                return version;
            }
        }
    }

    /// Begins a write while another is in flight, or when no version is left. `None` asks the caller to try again.
    #[inline]
    fn begin_overlapping(&self, slot: u64, kind: WriteKind) -> Option<u32> {
        let cell = self.slots.word(slot);
        let (mut shard, word) = self.lock(slot);
        let next = word.counted().issued();
        if word.is_overlapped() {
            let entry = shard.get(slot).filter(|_| next > word.issued());
            let held = entry.map(|entry| {
                entry.begin(next, kind);
                entry.prune();
                !entry.is_overfull()
            });
            if held == Some(true) {
                store(cell, Word::overlapped(next));
            } else {
                self.lose(slot, next, &mut shard);
            }
            return Some(next);
        }
        if !word.is_plain() || !word.in_flight() && next > word.issued() {
            return None;
        }
        let entry = if next > word.issued() { self.open(slot, word, &mut shard) } else { None };
        let moved = match &entry {
            Some(_) => replace(cell, word, Word::overlapped(next)),
            None => replace(cell, word, Word::unknown(next)),
        };
        match (entry, moved) {
            (Some(entry), true) => entry.begin(next, kind),
            (Some(_), false) => shard.close(slot),
            (None, true) => self.count_lost(),
            (None, false) => {}
        }
        moved.then_some(next)
    }

    /// Ends a write; `done` is when its answer came.
    #[inline]
    pub fn end_write(&self, slot: u64, ticket: WriteTicket, end: WriteEnd, done: Nanos) {
        let cell = self.slots.word(slot);
        let word = load(cell);
        let alone = word.is_plain() && word.in_flight() && word.issued() == ticket.version;
        let plain = alone && !self.may_apply_again && self.overwritten.is_none();
        if end == WriteEnd::Acknowledged
            && plain
            && replace(cell, word, word.acknowledged(ticket.kind, Tick::of(done)))
        {
            return;
        }
        self.end_rarer(slot, ticket, end, done);
    }

    /// Ends a write that was not acknowledged or had others beside it, or whose word has just changed.
    #[cold]
    #[inline]
    fn end_rarer(&self, slot: u64, ticket: WriteTicket, end: WriteEnd, done: Nanos) {
        let cell = self.slots.word(slot);
        if self.may_apply_again {
            return again::end_write(cell, ticket.kind, end, done);
        }
        // If a read has seen it, it took effect by now, but perhaps only after its client gave up.
        let done = if end == WriteEnd::Indeterminate { done.max(now()) } else { done };
        loop {
            let word = load(cell);
            if word.is_unknown() {
                return;
            }
            let next = if word.is_overlapped() {
                None
            } else if !word.in_flight() || word.issued() != ticket.version {
                debug_assert!(false, "ends-once: version {} in {word:?}", ticket.version);
                return;
            } else {
                match end {
                    WriteEnd::Failed => word.failed(),
                    WriteEnd::Indeterminate if !word.observed() => None,
                    _ => {
                        self.note_replacing(slot, word, Tick::of(done));
                        Some(word.acknowledged(ticket.kind, Tick::of(done)))
                    }
                }
            };
            let ended = match next {
                Some(next) => replace(cell, word, next),
                None => self.end_overlapping(slot, &ticket, end, done),
            };
            if ended {
                return;
            }
        }
    }

    /// Ends a write in the side table, or one that by its end brings the slot there. `false` asks the caller to try
    /// again.
    #[inline]
    fn end_overlapping(&self, slot: u64, ticket: &WriteTicket, end: WriteEnd, done: Nanos) -> bool {
        let cell = self.slots.word(slot);
        let (mut shard, word) = self.lock(slot);
        if word.is_unknown() {
            return true;
        }
        if word.is_plain() {
            let room = self.open(slot, word, &mut shard).is_some();
            let next = if room { Word::overlapped } else { Word::unknown };
            if !replace(cell, word, next(word.issued())) {
                if room {
                    shard.close(slot);
                }
                return false;
            }
            if !room {
                self.count_lost();
                return true;
            }
        }
        let slack = self.slack();
        let ended = shard.get(slot).map(|entry| entry.end(ticket.version, end, done, slack));
        if let (Some(overwritten), Some(entry)) = (&self.overwritten, shard.get(slot))
            && end == WriteEnd::Acknowledged
        {
            let done = Tick::of(done);
            overwritten.note(slot, entry.superseded_below(), done, done);
        }
        match ended {
            Some(Ok(())) => self.rest(slot, &mut shard),
            // Read, and said to have failed: no order can be told any more.
            _ => self.lose(slot, word.issued(), &mut shard),
        }
        true
    }

    /// Returns what must be in the slot, once nothing is in flight.
    #[must_use]
    #[inline]
    pub fn state(&self, slot: u64) -> SlotState {
        let cell = self.slots.word(slot);
        let word = load(cell);
        if self.may_apply_again {
            return again::state(word, &self.rules_of(slot));
        }
        if word.is_overlapped() {
            let (mut shard, word) = self.lock(slot);
            if let Some(entry) = shard.get(slot).filter(|_| word.is_overlapped()) {
                return entry.state(word.issued(), &self.rules_of(slot));
            }
        }
        word::state(load(cell), &self.rules_of(slot))
    }

    /// Returns true if the slot's record was taken over from a process that is lost.
    #[inline]
    fn is_taken_over(&self, slot: u64) -> bool {
        self.taken_over.is_some_and(|taken| slot >= taken.from)
    }

    /// Returns the rules that the slot is judged by.
    #[inline]
    fn rules_of(&self, slot: u64) -> Rules {
        let existing_data = self.rules.existing_data || self.is_taken_over(slot);
        Rules { existing_data, ..self.rules }
    }

    /// Locks the shard of `slot` and reads the slot's word, which then agrees with the side table.
    #[inline]
    fn lock(&self, slot: u64) -> (Shard<'_>, Word) {
        let mut shard = self.table.lock(slot);
        let word = load(self.slots.word(slot));
        debug_assert!(
            word.is_overlapped() == shard.get(slot).is_some(),
            "table-in-step: slot {slot} is {word:?}"
        );
        (shard, word)
    }

    /// Keeps what `word` says of the last acknowledged write, which is about to be replaced, where reads may be
    /// stale.
    #[inline]
    fn note_replacing(&self, slot: u64, word: Word, now: Tick) {
        if let Some(overwritten) = &self.overwritten {
            overwritten.note(slot, word.current(), word.tick(), now);
        }
    }

    #[inline]
    fn slack(&self) -> Nanos {
        self.rules.expiry.map_or(0, |expiry| expiry.slack())
    }

    /// Opens an entry that says what `word` says; `None` if the table is full.
    #[inline]
    fn open<'a>(&self, slot: u64, word: Word, shard: &'a mut Shard<'_>) -> Option<&'a mut Entry> {
        let entry = shard.open(slot)?;
        entry.open(word, self.rules_of(slot).existing_data, self.slack());
        self.note_replacing(slot, word, word.tick());
        Some(entry)
    }

    /// Drops what the slot's entry no longer needs, and the entry if a word says all of it.
    fn rest(&self, slot: u64, shard: &mut Shard<'_>) {
        let cell = self.slots.word(slot);
        let issued = load(cell).issued();
        let Some(entry) = shard.get(slot) else { return };
        entry.prune();
        if let Some(word) = entry.resting(issued, self.rules_of(slot).existing_data) {
            shard.close(slot);
            store(cell, word);
        }
    }

    #[inline]
    fn lose(&self, slot: u64, issued: u32, shard: &mut Shard<'_>) {
        shard.close(slot);
        store(self.slots.word(slot), Word::unknown(issued));
        self.count_lost();
    }

    fn count_lost(&self) {
        self.lost.fetch_add(1, Ordering::Relaxed);
    }
}

#[inline]
fn nanos(duration: Duration) -> Nanos {
    Nanos::try_from(duration.as_nanos()).unwrap_or(Nanos::MAX)
}

#[inline]
fn load(cell: &AtomicU64) -> Word {
    Word(cell.load(Ordering::Acquire))
}

/// Writes the word of a slot whose shard is locked.
#[inline]
fn store(cell: &AtomicU64, new: Word) {
    debug_assert!(rises(load(cell), new), "counter-rises: {:?} to {new:?}", load(cell));
    cell.store(new.0, Ordering::Release);
}

#[inline]
fn replace(cell: &AtomicU64, old: Word, new: Word) -> bool {
    debug_assert!(rises(old, new), "counter-rises: {old:?} to {new:?}");
    cell.compare_exchange(old.0, new.0, Ordering::AcqRel, Ordering::Relaxed).is_ok()
}

/// Returns true if `new` counts as many versions as `old`, or one more.
#[inline]
fn rises(old: Word, new: Word) -> bool {
    matches!(new.issued().checked_sub(old.issued()), Some(0 | 1))
}

#[cfg(test)]
mod tests;

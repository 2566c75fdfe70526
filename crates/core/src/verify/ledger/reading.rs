//! Reads of the ledger: the ticket taken before one is sent, the verdict when it has ended, and what the read tells of
//! the slot.

use std::sync::atomic::Ordering;

use super::snapshot::{Now, Snapshot};
use super::word::{Base, Flight, Word};
use super::{Ledger, again, load, replace};
use crate::measure::Nanos;
use crate::verify::anomaly::AnomalyKind;
use crate::verify::judgement::{Found, Judgement, Past, Read, Tick, Times};
use crate::verify::overlap::{Entry, Registered, View};
use crate::verify::stamp::WriterRun;

/// A read in flight. Give it to [`Ledger::end_read`] or [`Ledger::abandon_read`].
#[derive(Debug)]
#[must_use = "a read that never ends keeps versions in memory"]
pub struct ReadTicket {
    word: Word,
    /// Clock of the slot's entry when the read began, if the word says that it had one.
    clock: u64,
}

impl ReadTicket {
    #[inline]
    fn registered(&self) -> Registered {
        Registered { at: self.clock, next: self.word.issued() + 1 }
    }
}

impl Ledger {
    /// Begins a read that is about to be sent.
    #[inline]
    pub fn begin_read(&self, slot: u64) -> ReadTicket {
        let word = load(self.slots.word(slot));
        if word.is_overlapped() {
            self.begin_registered(slot)
        } else {
            ReadTicket { word, clock: 0 }
        }
    }

    /// Begins a read of a slot that was in the side table just now.
    #[cold]
    #[inline]
    fn begin_registered(&self, slot: u64) -> ReadTicket {
        let (mut shard, word) = self.lock(slot);
        let registered = match shard.get(slot) {
            Some(entry) if word.is_overlapped() => entry.register(word.issued()).at,
            _ => 0,
        };
        ReadTicket { word, clock: registered }
    }

    /// Judges what a read has found. `sent` is when it was sent, taken before [`Ledger::begin_read`] or right after it;
    /// `answered` when the answer came.
    #[inline(always)]
    pub fn end_read(
        &self,
        slot: u64,
        ticket: ReadTicket,
        read: Read,
        sent: Nanos,
        answered: Nanos,
    ) -> Judgement {
        if self.found_at_rest(ticket.word, read) {
            return Judgement::Legal;
        }
        self.end_read_of_other(slot, ticket, read, sent, answered)
    }

    /// Judges a read that found something else than what rested there.
    #[cold]
    #[inline]
    fn end_read_of_other(
        &self,
        slot: u64,
        ticket: ReadTicket,
        read: Read,
        sent: Nanos,
        answered: Nanos,
    ) -> Judgement {
        if self.found_first(slot, ticket.word, read) {
            return Judgement::StampOnly;
        }
        let times = self.times(sent, answered);
        let judgement = self.judge_ticket(slot, ticket, read, times);
        let judgement = self.excuse_lost(slot, read, judgement);
        self.allow_stale(slot, read, judgement, times)
    }

    /// Returns true if the read found what was current when it was sent, while nothing was in flight. Then it is legal
    /// whatever has happened since and tells the ledger nothing new. So the word, which a busy cache may have lost by
    /// now, need not be read again.
    #[inline(always)]
    fn found_at_rest(&self, then: Word, read: Read) -> bool {
        let at_rest = match read {
            Read::Version { version, session: WriterRun::Ours } => then.rests_at(version),
            Read::Version { session: WriterRun::Earlier, .. } => then.rests_as_found(),
            _ => false,
        };
        at_rest && self.rules.expiry.is_none() && !self.may_apply_again
    }

    /// Returns true if the read is the first answered one of all requests about this record, and found what was there
    /// before the run. That is then entered as found, and the read is not judged, because nobody knows what was there.
    #[inline]
    fn found_first(&self, slot: u64, then: Word, read: Read) -> bool {
        let earlier = matches!(read, Read::Version { session: WriterRun::Earlier, .. });
        earlier
            && then == Word::UNTOUCHED
            && self.rules_of(slot).existing_data
            && !self.may_apply_again
            && replace(self.slots.word(slot), then, then.with_base(Base::Found))
    }

    #[inline]
    fn times(&self, sent: Nanos, answered: Nanos) -> Times {
        Times { sent, answered, staleness: self.staleness.load(Ordering::Relaxed) }
    }

    /// Judges a read as of a store that is never stale.
    #[inline]
    fn judge_ticket(&self, slot: u64, ticket: ReadTicket, read: Read, times: Times) -> Judgement {
        let cell = self.slots.word(slot);
        let then = ticket.word;
        if self.may_apply_again {
            return again::judge(cell, then, read, &self.rules_of(slot), times);
        }
        if then.is_overlapped() {
            return self.end_registered(slot, &ticket, read, times);
        }
        loop {
            let last = load(cell);
            let judgement = if then.is_unknown() {
                Some(self.judge_unknown(slot, read, last))
            } else if last.is_overlapped() {
                self.end_in_entry(slot, then, read, times)
            } else {
                self.end_plain(slot, (then, last), read, times)
            };
            if let Some(judgement) = judgement {
                return judgement;
            }
        }
    }

    /// Lets a value pass that a process which is lost may have written to a record that this one took over: its request
    /// may have been on the way for long. Nobody knows in which order that is, so it is not judged.
    #[inline]
    fn excuse_lost(&self, slot: u64, read: Read, judgement: Judgement) -> Judgement {
        let Some(taken) = self.taken_over.filter(|taken| slot >= taken.from) else {
            return judgement;
        };
        if !matches!(judgement, Judgement::Illegal { .. }) {
            return judgement;
        }
        match read {
            Read::Version { session: WriterRun::Earlier | WriterRun::Unseen, .. } => {
                Judgement::StampOnly
            }
            Read::Absent if taken.deletes => Judgement::UnexpectedMiss,
            _ => judgement,
        }
    }

    /// Lets a stale read pass if what it found was replaced no longer ago than the store may be
    /// stale. A read that found nothing may have found any delete.
    #[inline]
    fn allow_stale(&self, slot: u64, read: Read, judgement: Judgement, times: Times) -> Judgement {
        let (Some(overwritten), Judgement::Illegal { kind, behind, .. }) =
            (&self.overwritten, judgement)
        else {
            return judgement;
        };
        if !matches!(kind, AnomalyKind::Stale | AnomalyKind::Resurrected) {
            return judgement;
        }
        let version = match read {
            Read::Absent if self.deletes.load(Ordering::SeqCst) => None,
            Read::Absent | Read::Version { session: WriterRun::Earlier, .. } => Some(0),
            Read::Version { version, .. } => Some(version),
        };
        let allowed = overwritten.allows(slot, version, behind, times);
        if allowed { Judgement::LegalStale } else { judgement }
    }

    /// Judges a read of a slot that is not in the side table. `None` asks the caller to try again, because the slot has
    /// changed.
    #[inline]
    fn end_plain(
        &self,
        slot: u64,
        (then, last): (Word, Word),
        read: Read,
        times: Times,
    ) -> Option<Judgement> {
        let (cell, rules) = (self.slots.word(slot), self.rules_of(slot));
        let found = Found::of(read, rules.existing_data, last.issued());
        let snapshot = self.snapshot(slot, then, last, Now::Word(last));
        let judgement = rules.judge(found, &snapshot, times);
        let next = self.word_after(found, judgement, &snapshot);
        (next == last || replace(cell, last, next)).then_some(judgement)
    }

    /// Returns the word as it is after what a read has told.
    #[inline]
    fn word_after(&self, found: Found, judgement: Judgement, snapshot: &Snapshot<'_>) -> Word {
        let last = snapshot.last;
        if !last.is_plain() || matches!(judgement, Judgement::Illegal { .. }) {
            return last;
        }
        match found {
            Found::Earlier if last.base() == Base::Pristine => last.with_base(Base::Found),
            Found::Ours(version)
                if self.rules.linearizable
                    && last.flight() == Flight::Put
                    && version == last.issued() =>
            {
                last.seen()
            }
            Found::Absent
                if self.rules.absence_is_evidence() && snapshot.only_delete_in_flight() =>
            {
                last.seen()
            }
            _ => last,
        }
    }

    /// Judges a read of a slot that came to the side table after the read was sent. `None` asks the caller to try
    /// again, because the slot has left the table.
    #[inline]
    fn end_in_entry(&self, slot: u64, then: Word, read: Read, times: Times) -> Option<Judgement> {
        let (mut shard, last) = self.lock(slot);
        let entry = shard.get(slot).filter(|_| last.is_overlapped())?;
        let rules = self.rules_of(slot);
        let found = Found::of(read, rules.existing_data, last.issued());
        let snapshot = self.snapshot(slot, then, last, Now::Entry(entry));
        let judgement = rules.judge(found, &snapshot, times);
        let blank = snapshot.blank();
        let deleted = then.base() == Base::Deleted && !then.observed();
        let open = then.open();
        // Everything that explains finding nothing is kept.
        let only =
            entry.keeps_deletes_since(if deleted { then.current() } else { then.deletes_from() })
                && (!blank || entry.keeps_blank());
        let legal = |number: u32, _| match number {
            0 => blank,
            _ => number >= open || deleted && number == then.current(),
        };
        self.observe(entry, found, judgement, None, times.answered, (&legal, only));
        self.rest(slot, &mut shard);
        Some(judgement)
    }

    /// Judges a read that began when the slot was in the side table. There it still is, unless the ledger lost track of
    /// it.
    #[inline]
    fn end_registered(
        &self,
        slot: u64,
        ticket: &ReadTicket,
        read: Read,
        times: Times,
    ) -> Judgement {
        let (mut shard, last) = self.lock(slot);
        debug_assert!(!last.is_plain(), "read-keeps-entry: slot {slot} is {last:?}");
        let issued = last.issued();
        let Some(entry) = shard.get(slot).filter(|_| last.is_overlapped()) else {
            return self.judge_unknown(slot, read, last);
        };
        let rules = self.rules_of(slot);
        let found = Found::of(read, rules.existing_data, issued);
        let registered = ticket.registered();
        let view = View { entry, read: registered, issued };
        let judgement = rules.judge(found, &view, times);
        let only = !view.dropped_delete();
        let legal = |_, superseded_at| superseded_at > registered.at;
        let at = Some(registered.at);
        self.observe(entry, found, judgement, at, times.answered, (&legal, only));
        entry.unregister(registered);
        self.rest(slot, &mut shard);
        judgement
    }

    /// Enters into the slot's entry what a legal read has told. `deletes` says which deletes it may have found, and
    /// whether the entry keeps all of them.
    #[inline]
    fn observe(
        &self,
        entry: &mut Entry,
        found: Found,
        judgement: Judgement,
        at: Option<u64>,
        answered: Nanos,
        deletes: (&dyn Fn(u32, u64) -> bool, bool),
    ) {
        if matches!(judgement, Judgement::Illegal { .. }) {
            return;
        }
        match found {
            Found::Earlier => {
                entry.observe_existing(at.filter(|_| self.rules.linearizable), answered);
            }
            Found::Ours(version) if self.rules.linearizable => {
                entry.observe_put(version, at, answered, self.rules.expiry.is_none());
            }
            Found::Absent if self.rules.absence_is_evidence() => {
                entry.observe_absence(deletes.0, deletes.1, at, answered);
            }
            _ => {}
        }
    }

    /// Gives back the ticket of a read that has failed, or whose answer is not looked at.
    #[inline]
    pub fn abandon_read(&self, slot: u64, ticket: ReadTicket) {
        if self.may_apply_again || !ticket.word.is_overlapped() {
            return;
        }
        self.abandon_registered(slot, &ticket);
    }

    #[cold]
    #[inline]
    fn abandon_registered(&self, slot: u64, ticket: &ReadTicket) {
        let (mut shard, last) = self.lock(slot);
        debug_assert!(!last.is_plain(), "read-keeps-entry: slot {slot} is {last:?}");
        if !last.is_overlapped() {
            return;
        }
        if let Some(entry) = shard.get(slot) {
            entry.unregister(ticket.registered());
            self.rest(slot, &mut shard);
        }
    }

    /// Judges a row of a scan, which had no ticket: its order only if all that the ledger knows of
    /// the slot was acknowledged at least a tick (1 ms) before `sent`.
    #[inline]
    pub fn judge_late(&self, slot: u64, read: Read, sent: Nanos) -> Judgement {
        let cell = self.slots.word(slot);
        let last = load(cell);
        // When the answer came is not told: whatever may have expired has.
        let (times, rules) = (self.times(sent, Nanos::MAX), self.rules_of(slot));
        let sent = Tick::of(sent);
        let (judgement, in_order) = if self.may_apply_again {
            let judgement = again::judge(cell, last.acknowledged_only(), read, &rules, times);
            (judgement, last.tick() < sent)
        } else if last.is_unknown() {
            return self.judge_unknown(slot, read, last);
        } else if last.is_overlapped() {
            let (mut shard, last) = self.lock(slot);
            let Some(entry) = shard.get(slot).filter(|_| last.is_overlapped()) else {
                return Judgement::StampOnly;
            };
            let found = Found::of(read, rules.existing_data, last.issued());
            let view = View::now(entry, last.issued());
            (rules.judge(found, &view, times), view.settled_before(sent))
        } else {
            let found = Found::of(read, rules.existing_data, last.issued());
            let snapshot = self.snapshot(slot, last.acknowledged_only(), last, Now::Word(last));
            (rules.judge(found, &snapshot, times), last.tick() < sent)
        };
        match self.excuse_lost(slot, read, judgement) {
            judgement @ Judgement::Illegal { kind: AnomalyKind::Phantom, .. } => judgement,
            Judgement::Illegal { .. } if !in_order => Judgement::StampOnly,
            judgement => self.allow_stale(slot, read, judgement, times),
        }
    }

    #[inline]
    fn snapshot<'a>(&self, slot: u64, then: Word, last: Word, now: Now<'a>) -> Snapshot<'a> {
        let deletes = self.deletes.load(Ordering::SeqCst);
        let existing_data = self.rules_of(slot).existing_data;
        Snapshot { then, last, now, existing_data, deletes }
    }

    /// Judges a read of an unknown slot, of which the ledger knows only which versions were sent.
    #[inline]
    fn judge_unknown(&self, slot: u64, read: Read, last: Word) -> Judgement {
        let (next, existing_data) = (last.issued() + 1, self.rules_of(slot).existing_data);
        match Found::of(read, existing_data, last.issued()) {
            Found::Newer if !existing_data => Judgement::OtherRun,
            Found::Ours(version) if version >= next => {
                Judgement::Illegal { kind: AnomalyKind::Phantom, floor: 0, next, behind: None }
            }
            _ => Judgement::Unknown,
        }
    }
}

//! The word of a slot: the eight bytes that it takes while its writes do not overlap, and what they
//! say about a read that is sent next.
//!
//! From the top: versions issued so far (28 bits) | gap: versions just below that surely failed (3)
//! | tick of the last acknowledgement (28) | state (5: flight × 4 + base). Zero is a slot that was
//! never touched, so that fresh memory is a fresh ledger.

use crate::verify::judgement::{Presence, Rules, SlotState, Tick, WriteKind};

const STATE_BITS: u32 = 5;
const TICK_AT: u32 = STATE_BITS;
const GAP_AT: u32 = TICK_AT + Tick::BITS;
const GAP_BITS: u32 = 3;
const ISSUED_AT: u32 = GAP_AT + GAP_BITS;
const OVERLAPPED: u64 = 30;
const UNKNOWN: u64 = 31;

/// Highest number of versions of a slot.
pub(in crate::verify) const MOST_VERSIONS: u32 = (1 << (64 - ISSUED_AT)) - 1;
/// Highest number of failed versions in a row that a word remembers.
pub(in crate::verify) const MOST_GAP: u32 = (1 << GAP_BITS) - 1;

/// Content that is current if the write in flight is left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::verify) enum Base {
    /// State before the run: nothing, or, with existing data, what nobody knows.
    Pristine = 0,
    /// Existing data that a read has found.
    Found = 1,
    /// An acknowledged put.
    Present = 2,
    /// An acknowledged delete.
    Deleted = 3,
}

/// Write in flight. It is observed if a read of a linearizable store has found what it did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::verify) enum Flight {
    None = 0,
    Put = 1,
    Delete = 2,
    PutObserved = 3,
    DeleteObserved = 4,
}

/// State of a slot (see the top of the file).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::verify) struct Word(pub(in crate::verify) u64);

impl Word {
    /// Word of a slot about which no request has told anything yet.
    pub(in crate::verify) const UNTOUCHED: Word = Word(0);

    #[inline]
    pub(in crate::verify) fn new(issued: u32, gap: u32, tick: Tick, base: Base) -> Word {
        debug_assert!(
            issued <= MOST_VERSIONS && gap <= MOST_GAP,
            "word-fits: {issued} versions, a gap of {gap}"
        );
        let counts = u64::from(issued) << ISSUED_AT | u64::from(gap) << GAP_AT;
        Word(counts | u64::from(tick.0) << TICK_AT | base as u64)
    }

    #[inline]
    pub(in crate::verify) fn overlapped(issued: u32) -> Word {
        Word(u64::from(issued) << ISSUED_AT | OVERLAPPED)
    }

    #[inline]
    pub(in crate::verify) fn unknown(issued: u32) -> Word {
        Word(u64::from(issued) << ISSUED_AT | UNKNOWN)
    }

    /// Returns the highest version sent so far.
    #[inline]
    pub(in crate::verify) fn issued(self) -> u32 {
        (self.0 >> ISSUED_AT) as u32
    }

    #[inline]
    fn gap(self) -> u32 {
        (self.0 >> GAP_AT) as u32 & MOST_GAP
    }

    #[inline]
    pub(in crate::verify) fn tick(self) -> Tick {
        Tick((self.0 >> TICK_AT) as u32 & Tick::SATURATED.0)
    }

    #[inline]
    fn state(self) -> u64 {
        self.0 & ((1 << STATE_BITS) - 1)
    }

    #[inline]
    pub(in crate::verify) fn is_overlapped(self) -> bool {
        self.state() == OVERLAPPED
    }

    #[inline]
    pub(in crate::verify) fn is_unknown(self) -> bool {
        self.state() == UNKNOWN
    }

    /// Returns true if the slot is neither in the side table nor lost track of. The methods below
    /// hold for such words only.
    #[inline]
    pub(in crate::verify) fn is_plain(self) -> bool {
        self.state() < OVERLAPPED
    }

    #[inline]
    pub(in crate::verify) fn base(self) -> Base {
        match self.state() & 3 {
            0 => Base::Pristine,
            1 => Base::Found,
            2 => Base::Present,
            _ => Base::Deleted,
        }
    }

    #[inline]
    pub(in crate::verify) fn flight(self) -> Flight {
        match self.state() >> 2 {
            0 => Flight::None,
            1 => Flight::Put,
            2 => Flight::Delete,
            3 => Flight::PutObserved,
            _ => Flight::DeleteObserved,
        }
    }

    #[inline]
    pub(in crate::verify) fn with_base(self, base: Base) -> Word {
        Word(self.0 & !3 | base as u64)
    }

    #[inline]
    fn with_flight(self, flight: Flight) -> Word {
        Word(self.0 & !0b11100 | (flight as u64) << 2)
    }

    #[inline]
    pub(in crate::verify) fn in_flight(self) -> bool {
        self.flight() != Flight::None
    }

    #[inline]
    pub(in crate::verify) fn observed(self) -> bool {
        matches!(self.flight(), Flight::PutObserved | Flight::DeleteObserved)
    }

    /// Returns the kind of the write in flight, if there is one.
    #[inline]
    pub(in crate::verify) fn flight_kind(self) -> Option<WriteKind> {
        match self.flight() {
            Flight::None => None,
            Flight::Put | Flight::PutObserved => Some(WriteKind::Put),
            Flight::Delete | Flight::DeleteObserved => Some(WriteKind::Delete),
        }
    }

    /// Returns the word with one more version, nothing else changed. The counter stops at its end.
    #[inline]
    pub(in crate::verify) fn counted(self) -> Word {
        if self.issued() == MOST_VERSIONS { self } else { Word(self.0 + (1 << ISSUED_AT)) }
    }

    /// Returns the word of an idle slot in which a write begins. The caller has seen that versions
    /// are left.
    #[inline]
    pub(in crate::verify) fn begun(self, kind: WriteKind) -> Word {
        debug_assert!(
            self.is_plain() && !self.in_flight() && self.issued() < MOST_VERSIONS,
            "begins-at-rest: {self:?}"
        );
        self.counted().with_flight(match kind {
            WriteKind::Put => Flight::Put,
            WriteKind::Delete => Flight::Delete,
        })
    }

    /// Returns the word once the write in flight is acknowledged.
    #[inline]
    pub(in crate::verify) fn acknowledged(self, kind: WriteKind, tick: Tick) -> Word {
        let base = match kind {
            WriteKind::Put => Base::Present,
            WriteKind::Delete => Base::Deleted,
        };
        Word::new(self.issued(), 0, tick, base)
    }

    /// Returns the word once the write in flight surely failed; `None` if the gap has no room for
    /// it. Before the first acknowledged write every ended version has failed, and no gap is needed
    /// to tell.
    #[inline]
    pub(in crate::verify) fn failed(self) -> Option<Word> {
        let idle = self.with_flight(Flight::None);
        match self.base() {
            Base::Pristine | Base::Found => Some(idle),
            _ if self.gap() == MOST_GAP => None,
            _ => Some(Word(idle.0 + (1 << GAP_AT))),
        }
    }

    /// Returns the word once a read has found the write in flight.
    #[inline]
    pub(in crate::verify) fn seen(self) -> Word {
        match self.flight() {
            Flight::Put => self.with_flight(Flight::PutObserved),
            Flight::Delete => self.with_flight(Flight::DeleteObserved),
            _ => self,
        }
    }

    /// Returns the version of the last acknowledged write; 0 before the first.
    #[inline]
    pub(in crate::verify) fn current(self) -> u32 {
        match self.base() {
            Base::Pristine | Base::Found => 0,
            _ => self.issued() - u32::from(self.in_flight()) - self.gap(),
        }
    }

    /// Returns true if the last acknowledged write is a put of this version, and nothing is in
    /// flight.
    #[inline(always)]
    pub(in crate::verify) fn rests_at(self, version: u32) -> bool {
        self.state() == Base::Present as u64 && self.current() == version
    }

    /// Returns true if a read has found existing data, and no write is in flight or was
    /// acknowledged since.
    #[inline(always)]
    pub(in crate::verify) fn rests_as_found(self) -> bool {
        self.state() == Base::Found as u64
    }

    /// Returns the lowest version that had not ended when this word was read.
    #[inline]
    pub(in crate::verify) fn open(self) -> u32 {
        self.issued() + u32::from(!self.in_flight())
    }

    /// Returns what this word says of acknowledged writes alone, whatever reads have told.
    #[inline]
    pub(in crate::verify) fn acknowledged_only(self) -> Word {
        let word = match self.flight() {
            Flight::PutObserved => self.with_flight(Flight::Put),
            Flight::DeleteObserved => self.with_flight(Flight::Delete),
            _ => self,
        };
        if self.base() == Base::Found { word.with_base(Base::Pristine) } else { word }
    }

    /// Returns the lowest version that may be a delete which had not ended when this word was read.
    /// A put that was in flight is none, whatever has become of it.
    #[inline]
    pub(in crate::verify) fn deletes_from(self) -> u32 {
        self.open() + u32::from(self.flight_kind() == Some(WriteKind::Put))
    }

    /// Returns true if the word still remembers that `version` surely failed.
    #[inline]
    pub(in crate::verify) fn remembers_failed(self, version: u32) -> bool {
        version > self.current() && version < self.open()
    }

    #[inline]
    pub(in crate::verify) fn put_begun(self) -> bool {
        self.base() == Base::Present || self.flight_kind() == Some(WriteKind::Put)
    }

    /// Returns true if a delete of version `from` or later has begun and not failed, as far as this
    /// word tells; `None` if it no longer tells.
    #[inline]
    pub(in crate::verify) fn delete_since(self, from: u32) -> Option<bool> {
        if self.flight_kind() == Some(WriteKind::Delete) {
            return Some(true);
        }
        match self.base() {
            Base::Deleted if self.current() >= from => Some(true),
            Base::Present if self.current() > from => None,
            _ => Some(false),
        }
    }
}

/// Returns what must be in a slot once nothing is in flight.
#[inline]
pub(in crate::verify) fn state(word: Word, rules: &Rules) -> SlotState {
    let next = word.issued() + 1;
    if !word.is_plain() {
        let presence = Presence::Unknown;
        return SlotState { presence, floor: 0, next, acknowledged: false };
    }
    let may_vanish = rules.may_forget || rules.expiry.is_some();
    let presence = match word.base() {
        _ if word.in_flight() => Presence::MayBeEither,
        Base::Present | Base::Found if may_vanish => Presence::MayBeEither,
        Base::Present | Base::Found => Presence::MustBePresent,
        Base::Deleted => Presence::MustBeAbsent,
        Base::Pristine if rules.existing_data => Presence::MayBeEither,
        Base::Pristine => Presence::NeverWritten,
    };
    let acknowledged = matches!(word.base(), Base::Present | Base::Deleted);
    SlotState { presence, floor: word.current(), next, acknowledged }
}

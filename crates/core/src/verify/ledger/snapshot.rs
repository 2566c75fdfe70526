//! Snapshots by which reads are judged: the slot's word when the read was sent, and what is known
//! of the slot when its answer came.

use super::word::{Base, Flight, Word};
use crate::measure::Nanos;
use crate::verify::judgement::{Expiry, Past, Tick, VersionStatus, WriteKind};
use crate::verify::overlap::Entry;

/// Knowledge of a slot when a read ends.
#[derive(Clone, Copy)]
pub(in crate::verify) enum Now<'a> {
    Word(Word),
    Entry(&'a Entry),
}

/// A read sent while the slot's word was `then`: the word alone tells the order of all versions
/// that had begun by then; `now` tells which later ones exist and which have failed.
pub(in crate::verify) struct Snapshot<'a> {
    pub(in crate::verify) then: Word,
    /// The slot's word when the read ended.
    pub(in crate::verify) last: Word,
    pub(in crate::verify) now: Now<'a>,
    pub(in crate::verify) existing_data: bool,
    /// True if some delete has begun in some slot of the ledger.
    pub(in crate::verify) deletes: bool,
}

impl Snapshot<'_> {
    /// Returns true if exactly one delete can explain that the read found nothing, and it is in
    /// flight.
    #[inline]
    pub(in crate::verify) fn only_delete_in_flight(&self) -> bool {
        let (then, last) = (self.then, self.last);
        let others = self.blank() || then.base() == Base::Deleted && !then.observed();
        let between = match last.base() {
            Base::Found => false,
            Base::Present => last.current() > then.deletes_from(),
            Base::Pristine | Base::Deleted => true,
        };
        last.flight() == Flight::Delete && !others && !between
    }
}

impl Past for Snapshot<'_> {
    #[inline]
    fn standing(&self, version: u32) -> VersionStatus {
        if version == 0 || version > self.last.issued() {
            return VersionStatus::NeverSent;
        }
        let then = self.then;
        let failed = match self.now {
            Now::Word(word) => word.is_plain() && word.remembers_failed(version),
            Now::Entry(entry) => entry.has_failed(version),
        };
        if failed || then.remembers_failed(version) {
            return VersionStatus::Failed;
        }
        if version >= then.open() {
            let delete = version < then.open() + u32::from(then.in_flight())
                && then.flight_kind() == Some(WriteKind::Delete);
            return if delete { VersionStatus::NeverSent } else { VersionStatus::Legal(None) };
        }
        if version == then.current() && then.base() == Base::Present && !then.observed() {
            return VersionStatus::Legal(Some(then.tick()));
        }
        VersionStatus::Superseded
    }

    #[inline]
    fn earlier(&self) -> bool {
        let base = self.then.base();
        !self.then.observed()
            && (base == Base::Found || base == Base::Pristine && self.existing_data)
    }

    #[inline]
    fn blank(&self) -> bool {
        !self.then.observed() && self.then.base() == Base::Pristine
    }

    #[inline]
    fn deleted(&self) -> bool {
        if self.then.base() == Base::Deleted && !self.then.observed() {
            return true;
        }
        let from = self.then.deletes_from();
        let since = match self.now {
            Now::Word(word) if word.is_plain() => word.delete_since(from),
            Now::Word(_) => None,
            Now::Entry(entry) => entry.delete_since(from),
        };
        since.unwrap_or(self.deletes)
    }

    #[inline]
    fn put_begun(&self) -> bool {
        match self.now {
            Now::Word(word) => !word.is_plain() || word.put_begun(),
            Now::Entry(entry) => entry.put_begun(),
        }
    }

    #[inline]
    fn buried(&self, version: u32) -> bool {
        let then = self.then;
        then.base() == Base::Deleted && !then.observed() && version < then.current()
    }

    #[inline]
    fn may_have_expired(&self, expiry: &Expiry, answered: Nanos) -> bool {
        // Existing data has an unknown age; all else was sent at most `slack` before the last
        // acknowledgement, or after it.
        let sent = self.then.tick().earliest().saturating_sub(expiry.slack());
        self.earlier() || expiry.may_be_gone(sent, answered)
    }

    #[inline]
    fn floor(&self) -> u32 {
        if self.then.observed() { self.then.issued() } else { self.then.current() }
    }

    #[inline]
    fn acknowledged(&self) -> Option<Tick> {
        let acknowledged = matches!(self.then.base(), Base::Present | Base::Deleted);
        (acknowledged && !self.then.observed()).then(|| self.then.tick())
    }

    #[inline]
    fn issued(&self) -> u32 {
        self.last.issued()
    }
}

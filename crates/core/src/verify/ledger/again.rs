//! Slots of a store whose driver may apply a write again after it was answered.
//!
//! A version may then come back at any later time, so no write of this run ever takes another's
//! place for good: every put sent may be current, for ever, and so may every delete. The ledger can
//! still see three faults: versions never sent; nothing where a put was acknowledged and no delete
//! was ever sent; existing data after an acknowledged write. Writes may overlap freely, so the word
//! has no write in flight and the side table is not used; a failed write counts as indeterminate,
//! for the driver speaks of its last attempt only.

use std::sync::atomic::AtomicU64;

use super::word::{Base, Word};
use super::{load, replace};
use crate::measure::Nanos;
use crate::verify::judgement::{
    Expiry, Found, Judgement, Past, Presence, Rules, SlotState, Tick, Times, VersionStatus,
    WriteEnd, WriteKind,
};

/// Begins a write and returns its version. The base of the word says, of a slot of such a store:
/// pristine or found: no put was acknowledged; present: one was, and no delete has begun; deleted:
/// a delete has begun at some time.
#[inline]
pub(super) fn begin_write(slot: &AtomicU64, kind: WriteKind) -> u32 {
    loop {
        let word = load(slot);
        let next = match kind {
            WriteKind::Put => word.counted(),
            WriteKind::Delete => word.counted().with_base(Base::Deleted),
        };
        if replace(slot, word, next) {
            return next.issued();
        }
    }
}

#[inline]
pub(super) fn end_write(slot: &AtomicU64, kind: WriteKind, end: WriteEnd, done: Nanos) {
    if end != WriteEnd::Acknowledged || kind != WriteKind::Put {
        return;
    }
    loop {
        let word = load(slot);
        if word.base() == Base::Deleted {
            return;
        }
        let tick = Tick::of(done).max(word.tick());
        if replace(slot, word, Word::new(word.issued(), 0, tick, Base::Present)) {
            return;
        }
    }
}

#[inline]
pub(super) fn judge(
    slot: &AtomicU64,
    then: Word,
    read: crate::verify::Read,
    rules: &Rules,
    times: Times,
) -> Judgement {
    loop {
        let last = load(slot);
        let found = Found::of(read, rules.existing_data, last.issued());
        let view = View { then, last, existing_data: rules.existing_data };
        let judgement = rules.judge(found, &view, times);
        let first_found =
            found == Found::Earlier && last.base() == Base::Pristine && rules.existing_data;
        if !first_found || replace(slot, last, last.with_base(Base::Found)) {
            return judgement;
        }
    }
}

/// Returns what the slot must hold once nothing is in flight.
#[inline]
pub(super) fn state(word: Word, rules: &Rules) -> SlotState {
    let may_vanish = rules.may_forget || rules.expiry.is_some();
    let presence = match word.base() {
        Base::Present | Base::Found if !may_vanish => Presence::MustBePresent,
        Base::Pristine if word.issued() == 0 && !rules.existing_data => Presence::NeverWritten,
        _ => Presence::MayBeEither,
    };
    let floor = u32::from(word.base() == Base::Present);
    let acknowledged = matches!(word.base(), Base::Present | Base::Deleted);
    SlotState { presence, floor, next: word.issued() + 1, acknowledged }
}

struct View {
    then: Word,
    last: Word,
    existing_data: bool,
}

impl Past for View {
    #[inline]
    fn standing(&self, version: u32) -> VersionStatus {
        if version == 0 || version > self.last.issued() {
            return VersionStatus::NeverSent;
        }
        VersionStatus::Legal(None)
    }

    #[inline]
    fn earlier(&self) -> bool {
        self.existing_data && self.then.base() != Base::Present
    }

    #[inline]
    fn blank(&self) -> bool {
        self.then.base() == Base::Pristine
    }

    #[inline]
    fn deleted(&self) -> bool {
        self.then.base() == Base::Deleted || self.last.base() == Base::Deleted
    }

    #[inline]
    fn put_begun(&self) -> bool {
        self.last.issued() > 0
    }

    #[inline]
    fn buried(&self, _version: u32) -> bool {
        false
    }

    #[inline]
    fn may_have_expired(&self, _expiry: &Expiry, _answered: Nanos) -> bool {
        true
    }

    #[inline]
    fn floor(&self) -> u32 {
        u32::from(self.then.base() == Base::Present)
    }

    #[inline]
    fn acknowledged(&self) -> Option<Tick> {
        (self.then.base() == Base::Present).then(|| self.then.tick())
    }

    #[inline]
    fn issued(&self) -> u32 {
        self.last.issued()
    }
}

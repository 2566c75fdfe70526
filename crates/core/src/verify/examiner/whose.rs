//! Ownership of records, as the examiner needs it: which slot of the ledger a record has, in which session it is
//! written, and whether it is judged here or by the floors of its owner.

use super::sight::Sight;
use super::{AnsweredRead, Examiner};
use crate::measure::Nanos;
use crate::verify::floors::ForeignRead;
use crate::verify::judgement::WriteEnd;

impl Examiner {
    #[inline]
    pub(super) fn slots(&self, record: u64, field: Option<u16>) -> std::ops::Range<u64> {
        let slot = self.by.ownership.slot(record);
        if self.one_word {
            return slot..slot.wrapping_add(1);
        }
        let words = u64::from(self.by.dataset.fields);
        let first = slot.wrapping_mul(words);
        match field {
            Some(field) => first + u64::from(field)..first + u64::from(field) + 1,
            None => first..first.wrapping_add(words),
        }
    }

    /// Returns the session in which this process writes `record`.
    #[inline]
    pub(super) fn session(&self, record: u64) -> u32 {
        self.by.ownership.session(record, self.by.dataset.session)
    }

    #[inline]
    pub(super) fn is_own(&self, record: u64) -> bool {
        self.alone || self.is_own_of_several(record)
    }

    #[inline]
    pub(super) fn is_own_of_several(&self, record: u64) -> bool {
        let part = self.by.part;
        let of_part = part.count == 1 || record % u64::from(part.count) == u64::from(part.index);
        of_part && self.by.ownership.owns(record)
    }

    /// Takes what a read showed of a word that this process's ledger does not judge: leaves it to the floors, or counts
    /// it as judged by its stamp only.
    #[inline]
    pub(super) fn see_without_ticket(&mut self, read: &AnsweredRead<'_>, field: u16, sight: Sight) {
        let seen = match sight {
            // It is noted already.
            Sight::Unreadable => return,
            Sight::Absent => None,
            Sight::Value(seen) => Some(seen),
        };
        match &self.by.floors {
            Some(floors) if self.ledger.is_some() && !self.is_own(read.record) => {
                let &AnsweredRead { operation, record, sent, answered, .. } = read;
                floors.read(ForeignRead { operation, record, field, seen, sent, answered });
            }
            _ => self.tally.stamp_only += 1,
        }
    }

    /// Tells other processes the floor of a slot whose write has ended.
    #[cold]
    pub(super) fn publish_floor(&self, slot: u64, end: WriteEnd, answered: Nanos) {
        if let (WriteEnd::Acknowledged, Some(floors), Some(ledger)) =
            (end, &self.by.floors, &self.ledger)
        {
            floors.acknowledge(&self.by.ownership, slot, ledger.state(slot).floor, answered);
        }
    }
}

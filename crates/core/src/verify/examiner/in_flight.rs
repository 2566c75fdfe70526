//! What an examiner keeps of a request while it is in flight: the versions of a write, the tickets of a read.

use crate::verify::history::Noted;
use crate::verify::judgement::WriteKind;
use crate::verify::ledger::ReadTicket;

/// One word of the ledger while a write on it is in flight. Plain, and no ticket that can be taken: this is
/// stored and loaded for each write.
#[derive(Clone, Copy, Debug)]
pub(super) struct WriteSlot {
    pub(super) slot: u64,
    /// 0 if there is no ledger.
    pub(super) version: u32,
    pub(super) kind: WriteKind,
    pub(super) noted: Option<Noted>,
}

/// The words of the ledger that writes in flight are about; a buffer to use again.
#[derive(Debug, Default)]
pub struct WriteSlots {
    /// The only one of most writes: not behind a pointer, which would be waited for.
    pub(super) first: Option<WriteSlot>,
    pub(super) others: Vec<WriteSlot>,
}

impl WriteSlots {
    /// Forgets them.
    #[inline]
    pub fn clear(&mut self) {
        self.first = None;
        self.others.clear();
    }

    /// How many there are.
    #[inline]
    #[must_use]
    pub fn count(&self) -> usize {
        usize::from(self.first.is_some()) + self.others.len()
    }

    /// The version to write to the word of this number; 0 if there is no ledger.
    #[inline]
    #[must_use]
    pub fn version(&self, number: usize) -> u32 {
        let slot = match number {
            0 => self.first.as_ref(),
            _ => self.others.get(number - 1),
        };
        slot.map_or(0, |slot| slot.version)
    }

    #[inline]
    pub(super) fn push(&mut self, slot: WriteSlot) {
        match self.first {
            None => self.first = Some(slot),
            Some(_) => self.others.push(slot),
        }
    }
}

/// The words of the ledger that a read in flight is about; a buffer to use again.
#[derive(Debug, Default)]
pub struct ReadTickets {
    /// The first of the words, one after the other.
    pub(super) slot: u64,
    /// Of the first word, the only one of most records: not behind a pointer, which would be waited for.
    pub(super) first: Option<ReadTicket>,
    /// Of those after it, where each field has a word of its own.
    pub(super) others: Vec<Option<ReadTicket>>,
    pub(super) noted: Option<Noted>,
}

impl ReadTickets {
    /// How many words there are; none if the read is not to be judged by the ledger.
    #[inline]
    pub(super) fn count(&self) -> usize {
        if self.first.is_some() { 1 + self.others.len() } else { 0 }
    }

    /// The word of a field, and its ticket: each is taken once.
    #[inline(always)]
    pub(super) fn take(&mut self, field: usize) -> Option<(u64, ReadTicket)> {
        let ticket = match field {
            0 => self.first.take(),
            _ => self.others.get_mut(field - 1).and_then(Option::take),
        };
        Some((self.slot + field as u64, ticket?))
    }
}

//! State of an examiner's requests in flight: the versions of a write, the tickets of a read.

use crate::verify::history::Noted;
use crate::verify::judgement::WriteKind;
use crate::verify::ledger::ReadTicket;

/// One word of the ledger while a write on it is in flight. It is plain data and not a ticket to be taken,
/// because it is stored and loaded for each write.
#[derive(Clone, Copy, Debug)]
pub(super) struct WriteSlot {
    pub(super) slot: u64,
    /// Version of the write; 0 if there is no ledger.
    pub(super) version: u32,
    pub(super) kind: WriteKind,
    pub(super) noted: Option<Noted>,
}

/// Words of the ledger that writes in flight are about; a reusable buffer.
#[derive(Debug, Default)]
pub struct WriteSlots {
    /// First word, the only one of most writes. It is not behind a pointer, whose load would be waited for.
    pub(super) first: Option<WriteSlot>,
    pub(super) others: Vec<WriteSlot>,
}

impl WriteSlots {
    /// Removes all words.
    #[inline]
    pub fn clear(&mut self) {
        self.first = None;
        self.others.clear();
    }

    /// Returns the number of words.
    #[inline]
    #[must_use]
    pub fn count(&self) -> usize {
        usize::from(self.first.is_some()) + self.others.len()
    }

    /// Returns the version to write to the word of this number; 0 if there is no ledger.
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

/// Words of the ledger that a read in flight is about; a reusable buffer.
#[derive(Debug, Default)]
pub struct ReadTickets {
    /// Slot of the first word; the others follow it.
    pub(super) slot: u64,
    /// Ticket of the first word, the only one of most records. It is not behind a pointer, whose load would
    /// be waited for.
    pub(super) first: Option<ReadTicket>,
    /// Tickets of the words after it, where each field has a word of its own.
    pub(super) others: Vec<Option<ReadTicket>>,
    pub(super) noted: Option<Noted>,
}

impl ReadTickets {
    /// Returns the number of words; 0 if the ledger is not to judge the read.
    #[inline]
    pub(super) fn count(&self) -> usize {
        if self.first.is_some() { 1 + self.others.len() } else { 0 }
    }

    /// Returns true if no ticket is left.
    pub(super) fn are_taken(&self) -> bool {
        self.first.is_none() && self.others.iter().all(Option::is_none)
    }

    /// Takes the slot of a field's word, and its ticket; `None` if it was taken before, or there is none.
    #[inline(always)]
    pub(super) fn take(&mut self, field: usize) -> Option<(u64, ReadTicket)> {
        let ticket = match field {
            0 => self.first.take(),
            _ => self.others.get_mut(field - 1).and_then(Option::take),
        };
        Some((self.slot + field as u64, ticket?))
    }
}

#[cfg(all(test, debug_assertions))]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use super::*;
    use crate::verify::ledger::{Initial, Ledger, LedgerConfig};
    use crate::verify::{Examination, Examiner};
    use crate::workload::{Dataset, KeyForm, KeyModel, Ownership, Part};

    fn examiner() -> Examiner {
        let config = LedgerConfig {
            slots: 4,
            linearizable: false,
            staleness: Duration::ZERO,
            may_forget: false,
            overlap_capacity: 4,
            initial: Initial::Never,
            expiry: None,
            may_apply_again: false,
            taken_over: None,
        };
        let key = KeyModel { form: KeyForm::Decimal, length: 16 };
        Examiner::new(Examination {
            dataset: Dataset { id: 1, session: 1, key, fields: 1, capacity: 4 },
            ledger: Some(Arc::new(Ledger::new(config).unwrap())),
            fields_apart: false,
            check_reads: true,
            part: Part::WHOLE,
            ownership: Ownership::ALL,
            fabricated: false,
            time_misses: false,
            sample: None,
            suspects: None,
            answered: None,
            sightings: None,
            floors: None,
        })
    }

    #[test]
    #[should_panic(expected = "tickets-taken")]
    fn a_read_that_begins_before_the_former_has_ended() {
        let mut reads = ReadTickets::default();
        (0..2).for_each(|_| examiner().begin_read(1, &mut reads));
    }

    #[test]
    #[should_panic(expected = "judged-once")]
    fn a_read_that_is_judged_twice() {
        let mut examiner = examiner();
        examiner.tally.judged = 1;
        let _ = examiner.into_findings();
    }
}

//! Counts records that reads did not find although the ledger expects one: once for each record,
//! however many fields it has. Touched where a read found nothing, and nowhere else.

use std::collections::BTreeMap;

use super::anomaly::Tally;
use crate::measure::{Nanos, SLOT};

/// Number of records that were missed, by the begin (ns) of the 20 ms in which the read was
/// answered.
pub(crate) type MissedAt = BTreeMap<Nanos, u64>;

/// Values that a record lacks, as the judgement of its words has found. It is counted for each
/// record, not for each word.
#[derive(Debug)]
pub(super) struct Missing {
    /// True if a value is not there that the store may have forgotten, or that was there before the
    /// run.
    expected: bool,
    /// True if a value is not there that must be.
    demanded: bool,
    /// Times of the misses, where the phase asks for them.
    at: Option<MissedAt>,
}

impl Missing {
    /// Creates the count, with nothing missed yet. If `timed`, the times of misses are kept.
    #[inline]
    pub(super) fn new(timed: bool) -> Missing {
        Missing { expected: false, demanded: false, at: timed.then(MissedAt::new) }
    }

    /// Begins the words of another record.
    #[inline]
    pub(super) fn begin(&mut self) {
        (self.expected, self.demanded) = (false, false);
    }

    /// Notes that a word of the record lacks a value that the store may be without.
    #[inline]
    pub(super) fn expected(&mut self) {
        self.expected = true;
    }

    /// Notes that a word of the record is wrong.
    #[inline]
    pub(super) fn demanded(&mut self) {
        self.demanded = true;
    }

    /// Counts a record that was not found, once all its words are judged.
    #[inline]
    pub(super) fn of_absent(&mut self, answered: Nanos, tally: &mut Tally) {
        let Missing { expected, demanded, .. } = *self;
        tally.wrong_misses += u64::from(demanded);
        tally.unexpected_misses += u64::from(expected && !demanded);
        if expected || demanded {
            self.note(answered);
        }
    }

    /// Counts a record that was found, once all its fields are judged. A field that is wrong is an
    /// anomaly, and no miss.
    #[inline]
    pub(super) fn of_found(&mut self, answered: Nanos, tally: &mut Tally) {
        tally.unexpected_misses += u64::from(self.expected);
        if self.expected {
            self.note(answered);
        }
    }

    /// Takes the times at which records were missed; from then on none are kept.
    #[inline]
    pub(super) fn take_at(&mut self) -> MissedAt {
        self.at.take().unwrap_or_default()
    }

    #[inline]
    fn note(&mut self, answered: Nanos) {
        if let Some(at) = &mut self.at {
            *at.entry(answered / SLOT * SLOT).or_default() += 1;
        }
    }
}

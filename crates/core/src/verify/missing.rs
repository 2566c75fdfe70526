//! Counts records that reads did not find although the ledger expects one: once for each record,
//! however many fields it has. Touched where a read found nothing, and nowhere else.

use std::collections::BTreeMap;

use super::anomaly::Tally;
use crate::measure::{Nanos, SLOT};

/// How many records were missed, by the begin of the 20 ms in which that was answered.
pub(crate) type MissedAt = BTreeMap<Nanos, u64>;

/// What judging the words of a record brought to light, beyond what is counted for each word.
#[derive(Debug)]
pub(super) struct Missing {
    /// A value is not there that the store may have forgotten, or that was there before the run.
    expected: bool,
    /// A value is not there that must be.
    demanded: bool,
    /// Where the phase asks for it.
    at: Option<MissedAt>,
}

impl Missing {
    /// Nothing is missed yet. `timed`: it is kept when.
    #[inline]
    pub(super) fn new(timed: bool) -> Missing {
        Missing { expected: false, demanded: false, at: timed.then(MissedAt::new) }
    }

    /// The words of another record are judged next.
    #[inline]
    pub(super) fn begin(&mut self) {
        (self.expected, self.demanded) = (false, false);
    }

    /// A word of the record lacks a value that the store may be without.
    #[inline]
    pub(super) fn expected(&mut self) {
        self.expected = true;
    }

    /// A word of the record is wrong.
    #[inline]
    pub(super) fn demanded(&mut self) {
        self.demanded = true;
    }

    /// All words of a record are judged that was not found.
    #[inline]
    pub(super) fn of_absent(&mut self, answered: Nanos, tally: &mut Tally) {
        let Missing { expected, demanded, .. } = *self;
        tally.wrong_misses += u64::from(demanded);
        tally.unexpected_misses += u64::from(expected && !demanded);
        if expected || demanded {
            self.note(answered);
        }
    }

    /// All fields of a record are judged that was found. A field that is wrong is an anomaly, and no
    /// miss.
    #[inline]
    pub(super) fn of_found(&mut self, answered: Nanos, tally: &mut Tally) {
        tally.unexpected_misses += u64::from(self.expected);
        if self.expected {
            self.note(answered);
        }
    }

    /// When records were missed; nothing from then on.
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

//! Suspects: all records that had wrong reads, however many there are. One bit marks a record to be read again.
//! One word for each word of the ledger keeps what was found wrong there last, and how many reads in a row have
//! found just that, so that what stays wrong is counted once. Unlike the examples, their number is not bounded:
//! they take no more memory than the ledger does, and none for pages of records that were right.

use std::sync::atomic::Ordering;

use super::LedgerError;
use super::anomaly::{Anomaly, AnomalyKind};
use super::ledger::slots::Slots;
use crate::workload::Marks;

/// Bits of the count of reads; the count stops at its highest value.
const READS_BITS: u32 = 28;
const MOST_READS: u64 = (1 << READS_BITS) - 1;
const KIND_BITS: u32 = 3;
const HAS_SEEN: u64 = 1 << (READS_BITS + KIND_BITS);
const SEEN_AT: u32 = 32;
/// Code in the place of a kind: stale, but no older than the last write, because the value outlived its time to
/// live.
const OUTLIVED: u64 = 7;

/// Fault of a ledger word, and how many reads in a row have found it. Zero: none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WordFinding(u64);

impl WordFinding {
    /// Returns what was found, without how often.
    fn what(self) -> u64 {
        self.0 >> READS_BITS
    }

    /// Returns true if both are the same fault.
    pub(crate) fn is_same(self, other: WordFinding) -> bool {
        self.what() == other.what()
    }

    /// Returns the number of reads in a row that found it, at most 268,435,455.
    pub(crate) fn reads(self) -> u64 {
        self.0 & MOST_READS
    }

    /// Returns true if the reads found something older than what was acknowledged, or nothing at all.
    pub(crate) fn is_old(self) -> bool {
        self.what() & 7 == AnomalyKind::Stale as u64 + 1
    }

    /// Returns the kind of the reads that found it.
    pub(crate) fn kind(self) -> AnomalyKind {
        let at = (self.what() & 7).saturating_sub(1) as usize;
        AnomalyKind::ALL.get(at).copied().unwrap_or(AnomalyKind::Stale)
    }

    /// Returns the kind that it has once it was found again after the load.
    pub(crate) fn last_name(self) -> AnomalyKind {
        if self.is_old() { AnomalyKind::Lost } else { self.kind() }
    }
}

/// Records with wrong reads (see the top of the file). Shared by the threads of a phase.
pub(crate) struct Suspects {
    marks: Marks,
    found: Slots,
    records: u64,
    /// Number of ledger words of a record.
    words: u64,
    /// True if records vanish by time to live.
    expires: bool,
}

impl Suspects {
    /// Creates a set without suspects yet, for the records 0..`records`, each of `words` ledger words.
    ///
    /// # Errors
    /// [`LedgerError::TooLarge`] if the machine could not hold them all.
    pub(crate) fn new(records: u64, words: u64, expires: bool) -> Result<Suspects, LedgerError> {
        let found = Slots::sparse(records.saturating_mul(words))?;
        Ok(Suspects { marks: Marks::new(records), found, records, words, expires })
    }

    /// Creates a set without suspects yet, for the same records.
    ///
    /// # Errors
    /// Those of [`Suspects::new`].
    pub(crate) fn none_of_these(&self) -> Result<Suspects, LedgerError> {
        Suspects::new(self.records, self.words, self.expires)
    }

    /// Returns the records that are marked.
    pub(crate) fn marks(&self) -> &Marks {
        &self.marks
    }

    /// Returns the ledger words of a record.
    pub(crate) fn slots(&self, record: u64) -> std::ops::Range<u64> {
        record * self.words..(record + 1) * self.words
    }

    /// Returns the ledger word that an anomaly is about; `None` if the dataset has no such record or field.
    pub(crate) fn slot(&self, record: u64, field: u16) -> Option<u64> {
        let field = if self.words > 1 { u64::from(field) } else { 0 };
        (record < self.records && field < self.words).then(|| record * self.words + field)
    }

    /// Converts an anomaly to a finding of one read.
    pub(crate) fn finding(&self, anomaly: &Anomaly) -> WordFinding {
        let Anomaly { kind, field, seen, floor, .. } = *anomaly;
        let outlived =
            self.expires && kind == AnomalyKind::Stale && seen.is_some_and(|seen| seen >= floor);
        let kind_bits = if outlived { OUTLIVED } else { kind as u64 + 1 };
        let shown = match seen {
            Some(seen) => HAS_SEEN | u64::from(seen) << SEEN_AT,
            // Which field it is that nobody can read.
            None if kind == AnomalyKind::Corrupt => u64::from(field) << SEEN_AT,
            None => 0,
        };
        WordFinding(shown | kind_bits << READS_BITS | 1)
    }

    /// Notes a wrong read.
    pub(crate) fn note(&self, anomaly: &Anomaly) {
        let Some(slot) = self.slot(anomaly.record, anomaly.field) else { return };
        let finding = self.finding(anomaly);
        let counted = |before: u64| {
            let before = WordFinding(before);
            let again = before.is_same(finding) && before.reads() < MOST_READS;
            Some(match before.is_same(finding) {
                true => before.0 + u64::from(again),
                false => finding.0,
            })
        };
        let word = self.found.word(slot);
        let _ = word.fetch_update(Ordering::Relaxed, Ordering::Relaxed, counted);
        self.marks.set(anomaly.record);
    }

    /// Returns what was found wrong with a ledger word last.
    pub(crate) fn found(&self, slot: u64) -> Option<WordFinding> {
        let word = self.found.word(slot).load(Ordering::Relaxed);
        (word != 0).then_some(WordFinding(word))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::OperationId;

    fn anomaly(kind: AnomalyKind, record: u64, field: u16, seen: Option<u32>) -> Anomaly {
        Anomaly {
            kind,
            operation: OperationId { phase: 0, group: 0, id: 0 },
            writer: None,
            record,
            field,
            seen,
            floor: 3,
            next: 4,
            sent: 1,
            answered: 2,
            behind: None,
            again: String::new(),
            detail: String::new(),
        }
    }

    #[test]
    fn the_last_reads_in_a_row_that_found_the_same_are_counted() {
        let suspects = Suspects::new(100, 1, false).unwrap();
        for seen in [None, None, Some(1), Some(1), None, Some(1), Some(1), Some(1)] {
            suspects.note(&anomaly(AnomalyKind::Stale, 70, 0, seen));
        }
        let found = suspects.found(70).unwrap();
        assert_eq!((found.reads(), found.kind()), (3, AnomalyKind::Stale));
        assert_eq!((found.is_old(), found.last_name()), (true, AnomalyKind::Lost));
        assert_eq!(suspects.marks().records().collect::<Vec<_>>(), [70]);
        assert_eq!(suspects.found(71), None);
    }

    #[test]
    fn every_kind_version_and_field_is_told_from_every_other() {
        let suspects = Suspects::new(10, 1, false).unwrap();
        let mut findings = Vec::new();
        for kind in AnomalyKind::ALL {
            for seen in [None, Some(0), Some(1), Some(u32::MAX)] {
                findings.push(suspects.finding(&anomaly(kind, 1, 0, seen)));
                assert_eq!(findings.last().unwrap().kind(), kind);
            }
        }
        findings.push(suspects.finding(&anomaly(AnomalyKind::Corrupt, 1, 7, None)));
        for (at, one) in findings.iter().enumerate() {
            assert_eq!(findings.iter().position(|other| one.is_same(*other)), Some(at));
        }
    }

    #[test]
    fn what_outlived_its_time_to_live_is_never_lost() {
        let named = |expires, seen| {
            let suspects = Suspects::new(10, 1, expires).unwrap();
            let finding = suspects.finding(&anomaly(AnomalyKind::Stale, 1, 0, seen));
            assert_eq!(finding.kind(), AnomalyKind::Stale);
            finding.last_name()
        };
        assert_eq!(named(true, Some(3)), AnomalyKind::Stale);
        assert_eq!(named(true, Some(2)), AnomalyKind::Lost);
        assert_eq!(named(true, None), AnomalyKind::Lost);
        // The version of an earlier run says nothing about those of this one.
        assert_eq!(named(false, Some(3)), AnomalyKind::Lost);
    }

    #[test]
    fn fields_written_apart_have_findings_of_their_own() {
        let suspects = Suspects::new(10, 3, false).unwrap();
        suspects.note(&anomaly(AnomalyKind::Stale, 9, 2, None));
        // Neither is a place of the dataset.
        suspects.note(&anomaly(AnomalyKind::Phantom, 10, 0, None));
        suspects.note(&anomaly(AnomalyKind::Phantom, 2, 3, None));
        let found = (0..30).filter(|&slot| suspects.found(slot).is_some());
        assert_eq!(found.collect::<Vec<_>>(), [29]);
        assert_eq!((suspects.slots(9), suspects.marks().count()), (27..30, 1));
    }

    #[test]
    fn no_read_is_left_out_when_threads_find_the_same() {
        let suspects = Suspects::new(4, 1, false).unwrap();
        let find =
            || (0..5_000).for_each(|_| suspects.note(&anomaly(AnomalyKind::Stale, 2, 0, None)));
        std::thread::scope(|scope| {
            (0..4).for_each(|_| {
                scope.spawn(find);
            });
        });
        assert_eq!(suspects.found(2).map(WordFinding::reads), Some(20_000));
    }
}

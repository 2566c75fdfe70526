//! Findings of looking at records before a run: which are missing, and under which keys lies what kvdyno did
//! not write. There is one bit for each record, so that all missing ones are known exactly, however many
//! there are.

use super::stamp::{self, Form, StampFlaw};
use crate::workload::Marks;

/// Marks of missing records and of foreign values (see the top of the file). Shared by the workers that
/// look.
#[derive(Debug)]
pub struct Sightings {
    missing: Marks,
    foreign: Marks,
}

impl Sightings {
    /// Creates sightings of records 0..`records`, of which nothing was seen yet.
    pub(crate) fn new(records: u64) -> Sightings {
        Sightings { missing: Marks::new(records), foreign: Marks::new(records) }
    }

    /// Marks a record as missing.
    pub(super) fn miss(&self, record: u64) {
        self.missing.set(record);
    }

    /// Marks a record as foreign if the value found in its place, or in one of its fields, bears no stamp of
    /// kvdyno. `flaw` is what the check of `bytes` found.
    pub(super) fn wrong(&self, record: u64, bytes: &[u8], flaw: &StampFlaw) {
        if bears_no_stamp(bytes, flaw) {
            self.foreign.set(record);
        }
    }

    /// Returns the number of records that are missing.
    #[must_use]
    pub fn missing(&self) -> u64 {
        self.missing.count()
    }

    /// Returns the number of keys under which lies what kvdyno did not write, and the record of the first of
    /// them.
    #[must_use]
    pub fn foreign(&self) -> Option<(u64, u64)> {
        let first = self.foreign.records().next()?;
        Some((self.foreign.count(), first))
    }

    /// Returns marks of the missing records for which `wanted` holds.
    pub(crate) fn missing_of(&self, wanted: impl Fn(u64) -> bool) -> Marks {
        let marks = self.missing.none_of_these();
        self.missing.records().filter(|record| wanted(*record)).for_each(|at| marks.set(at));
        marks
    }
}

/// Returns true if the bytes bear no stamp of kvdyno. A full stamp can be told from none; of a short one it
/// can be told only that it is not the one that should be there. Bytes too short for any stamp may be
/// anybody's: false.
fn bears_no_stamp(bytes: &[u8], flaw: &StampFlaw) -> bool {
    match Form::of(bytes.len()) {
        None => false,
        Some(Form::Full) => stamp::claim(bytes).is_none(),
        Some(Form::Short | Form::Tiny) => {
            matches!(flaw, StampFlaw::Checksum { .. } | StampFlaw::Fields { .. })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verify::stamp::{Expected, Identity, check, seal};

    #[test]
    fn what_bears_a_stamp_of_kvdynos_is_told_from_what_bears_none() {
        let identity = Identity { dataset: 1, session: 2, record: 3, field: 0, version: 4 };
        let expected =
            Expected { dataset: 1, session: 2, record: 3, field: 0, fabricated_key: None };
        let foreign =
            |bytes: &[u8]| check(bytes, &expected).is_err_and(|flaw| bears_no_stamp(bytes, &flaw));
        for length in [8, 15, 16, 31, 32, 100, 5_000] {
            let mut sealed = vec![7; length];
            seal(&mut sealed, &identity);
            assert!(!foreign(&sealed), "{length}: sound");
            assert!(foreign(&vec![b'x'; length]), "{length}: somebody else's");
            if length >= 32 {
                *sealed.last_mut().unwrap() ^= 1;
                assert!(!foreign(&sealed), "{length}: kvdyno's, and broken");
                assert!(!foreign(&sealed[..20]), "{length}: kvdyno's, and cut");
            }
        }
        assert!(!foreign(b"short"), "it may be anybody's");
    }
}

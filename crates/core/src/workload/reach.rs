//! The records that an operation may go to: those that existed when the phase began and those that were inserted
//! since, of the whole load or of one part.

use super::plan::Part;

/// Records that a group (or a part of it) inserts, in order.
#[derive(Clone, Copy, Debug)]
pub(super) struct Inserts {
    first: u64,
    step: u64,
}

impl Inserts {
    /// Takes the records from `first` on that leave (`first` mod `groups`) × parts + part when divided by `groups` ×
    /// parts: a class for each group and part, in which each record leaves the part's index when divided by the
    /// number of parts.
    #[inline]
    pub fn new(first: u64, groups: u64, part: Part) -> Self {
        let step = groups * u64::from(part.count);
        let class = (first % groups) * u64::from(part.count) + u64::from(part.index);
        let up = (class + step - first % step) % step;
        Inserts { first: first.saturating_add(up), step }
    }

    /// Returns the k-th record, from 0.
    #[inline]
    pub fn record(&self, k: u64) -> u64 {
        self.following(self.first, k)
    }

    /// Returns the k-th record from `record` on.
    #[inline]
    pub fn following(&self, record: u64, k: u64) -> u64 {
        record.saturating_add(k.saturating_mul(self.step))
    }

    /// Returns the number of `record`: the inverse of [`Inserts::record`]. `None` if it is no record of these inserts.
    #[inline]
    pub fn number_of(&self, record: u64) -> Option<u64> {
        let beyond = record.checked_sub(self.first)?;
        (beyond % self.step == 0).then_some(beyond / self.step)
    }
}

/// Records from which a batch may be filled up, numbered from 0 without gaps ("slots").
#[derive(Clone, Copy, Debug)]
pub(super) struct Reach {
    /// Slots of records that existed when the phase began.
    before: u64,
    inserted: u64,
    inserts: Inserts,
    part: Part,
}

impl Reach {
    /// Takes those of the records 0..`records` that are `part`'s, then `inserted` records.
    #[inline]
    pub fn new(records: u64, inserted: u64, inserts: Inserts, part: Part) -> Self {
        let before = records.saturating_sub(part.index.into()).div_ceil(part.count.into());
        Reach { before, inserted, inserts, part }
    }

    /// Returns the number of slots.
    #[inline]
    pub fn count(&self) -> u64 {
        self.before.saturating_add(self.inserted)
    }

    /// Returns the number of slots of inserted records, the last ones.
    #[inline]
    pub fn inserted(&self) -> u64 {
        self.inserted
    }

    /// Returns the record in a slot, counted around the end; without a slot, the first record of the part.
    #[inline]
    pub fn record(&self, slot: u64) -> u64 {
        let slot = slot.checked_rem(self.count()).unwrap_or(0);
        if slot >= self.before && self.inserted > 0 {
            return self.inserts.record(slot - self.before);
        }
        slot * u64::from(self.part.count) + u64::from(self.part.index)
    }

    /// Returns the slot of a record that [`Reach::record`] gave.
    #[inline]
    pub fn slot(&self, record: u64) -> u64 {
        let slot = record / u64::from(self.part.count);
        match self.inserts.number_of(record) {
            Some(number) if slot >= self.before => self.before + number,
            _ => slot,
        }
    }
}

//! The records of one batch, all different where there are enough records.

use std::collections::HashSet;

use super::reach::Reach;
use crate::ground::random::Random;

/// Number of draws for one more record of a batch after which one that is not in it yet is looked for in order.
const TRIES: u32 = 8;

/// The records of the last batch drawn. Its memory is taken once.
#[derive(Debug)]
pub(super) struct BatchRecords {
    id: Option<u64>,
    records: Vec<u64>,
    seen: HashSet<u64>,
}

impl BatchRecords {
    /// Makes room for batches of so many records.
    pub fn new(most: u32) -> Self {
        let most = most as usize;
        BatchRecords {
            id: None,
            records: Vec::with_capacity(most),
            seen: HashSet::with_capacity(most),
        }
    }

    /// Returns true if these are the records of operation `id`.
    #[inline]
    pub fn holds(&self, id: u64) -> bool {
        self.id == Some(id)
    }

    /// Returns the i-th record, counted around the end.
    #[inline]
    pub fn record(&self, i: u32) -> u64 {
        self.records[i as usize % self.records.len()]
    }

    /// Forgets the last batch and puts in the first record of this one.
    #[inline]
    pub fn begin(&mut self, id: u64, first: u64) {
        self.id = Some(id);
        self.records.clear();
        self.records.push(first);
        self.seen.clear();
    }

    /// Fills up to `count` with the records that follow the first; with the first itself where
    /// there is no record.
    #[inline]
    pub fn fill_in_order(&mut self, count: u32, reach: &Reach) {
        if reach.count() == 0 {
            self.records.resize(count as usize, self.records[0]);
            return;
        }
        let first = reach.slot(self.records[0]);
        for i in 1..u64::from(count) {
            self.records.push(reach.record(first.wrapping_add(i)));
        }
    }

    /// Fills up to `count`, at most half of the records in reach, with different records that `choose` returns. If it
    /// returns known ones only (a hot record draws most choices), takes the next free record from a uniform draw on.
    #[inline]
    pub fn fill_distinct(
        &mut self,
        count: u32,
        reach: &Reach,
        random: &mut Random,
        mut choose: impl FnMut(&mut Random) -> u64,
    ) {
        self.seen.insert(self.records[0]);
        for _ in 1..count {
            let mut tries = 0;
            let mut record = choose(random);
            while tries < TRIES && self.seen.contains(&record) {
                record = choose(random);
                tries += 1;
            }
            let mut slot = random.below(reach.count());
            while !self.seen.insert(record) {
                record = reach.record(slot);
                slot += 1;
            }
            self.records.push(record);
        }
    }
}

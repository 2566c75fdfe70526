//! Whose a record is, where several processes carry one load together: each draws every operation, and
//! carries out those whose record is its own. Of each block of as many records as there are processes each
//! process owns one, and a hash of the block's number says which. So all own equally many, no stride of
//! record numbers favours one of them, and the numbers of the own blocks number the own records without gaps.

use serde::{Deserialize, Serialize};

use crate::ground::random::mix64;

/// Which records process `index` of `count` owns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ownership {
    /// From 0.
    pub index: u32,
    /// From 1.
    pub count: u32,
}

impl Ownership {
    /// One process owns all records.
    pub const ALL: Ownership = Ownership { index: 0, count: 1 };

    /// One process owns all records.
    #[inline]
    #[must_use]
    pub fn is_all(self) -> bool {
        self.count <= 1
    }

    /// Whether `record` is this process's.
    #[inline]
    #[must_use]
    pub fn owns(self, record: u64) -> bool {
        if self.is_all() {
            return true;
        }
        let count = u64::from(self.count);
        // Both are below `count`. A second division would take as long as all the rest.
        let place = record % count + turn(record / count, count);
        let place = if place >= count { place - count } else { place };
        place == u64::from(self.index)
    }

    /// Number of an own record among all own ones, from 0 and without gaps.
    #[inline]
    #[must_use]
    pub fn slot(self, record: u64) -> u64 {
        if self.is_all() { record } else { record / u64::from(self.count) }
    }

    /// The own record of this number: the inverse of [`Ownership::slot`].
    #[must_use]
    #[inline]
    pub fn record(self, slot: u64) -> u64 {
        if self.is_all() {
            return slot;
        }
        let count = u64::from(self.count);
        let place = (u64::from(self.index) + count - turn(slot, count)) % count;
        slot.saturating_mul(count).saturating_add(place)
    }

    /// Slots that the own ones of the records 0..`records` need.
    #[must_use]
    #[inline]
    pub fn slots(self, records: u64) -> u64 {
        records.div_ceil(u64::from(self.count.max(1)))
    }

    /// The own ones of the records 0..`records`, in order.
    #[inline]
    pub fn own(self, records: u64) -> impl Iterator<Item = u64> {
        let all = (0..self.slots(records)).map(move |slot| self.record(slot));
        all.filter(move |record| *record < records)
    }
}

/// By how much the owners of a block's records are turned, below `count`.
#[inline]
fn turn(block: u64, count: u64) -> u64 {
    ((u128::from(mix64(block)) * u128::from(count)) >> 64) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_record_has_one_owner_and_a_slot_of_its_own_there() {
        for count in [1, 2, 3, 5, 16, 200] {
            let owners = (0..count).map(|index| Ownership { index, count });
            let mut owner_of = vec![0; 10_007];
            for owner in owners {
                let own: Vec<u64> = owner.own(10_007).collect();
                assert!((own.len() as i64 - 10_007 / i64::from(count)).abs() <= 1, "{count}");
                for (slot, &record) in (0..).zip(&own) {
                    assert!(owner.owns(record), "{owner:?}: {record}");
                    assert_eq!((owner.slot(record), owner.record(slot)), (slot, record));
                    owner_of[record as usize] += 1;
                }
                assert!(owner.slots(10_007) >= own.len() as u64);
            }
            assert!(owner_of.iter().all(|owners| *owners == 1), "{count}");
        }
    }

    /// Groups that insert take every n-th record each.
    #[test]
    fn no_stride_of_records_falls_to_one_owner() {
        for count in [2_u32, 3, 4, 8] {
            for first in 0..u64::from(count) {
                let strided = (0..30_000).map(|n| first + n * u64::from(count));
                let owner = Ownership { index: 1, count };
                let own = strided.filter(|record| owner.owns(*record)).count() as f64;
                let share = own * f64::from(count) / 30_000.0;
                assert!((share - 1.0).abs() < 0.05, "{count} {first}: {share}");
            }
        }
    }
}

//! The owners of records, where several processes carry one load together: each draws every operation, and carries
//! out those on records of its own. Each process owns one record of every block of as many records as there are
//! processes; a hash of the block's number says which. So all own equally many, no stride of record numbers favours
//! one of them, and the numbers of the blocks number the own records without gaps.
//!
//! When a process was lost the others take over its records: a hash gives each of its blocks to one of them. The
//! records that a process had before stay its own, so that its ledger stays of use.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::ground::random::mix64;

/// A process that was lost, whose records the others have taken over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LostOwner {
    /// Number of the process, zero-based.
    pub index: u32,
    /// Session of the writes to its records from then on: its own writes have an earlier one.
    pub session: u32,
}

/// Set of the records that process `index` of `count` owns.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ownership {
    index: u32,
    count: u32,
    /// Processes that were lost; `None` if none was. They are not sent with the ownership: each process learns of a
    /// loss separately.
    #[serde(skip)]
    lost: Option<Arc<Lost>>,
}

/// Processes that were lost, in order, and the new owners of their records.
#[derive(Debug, PartialEq, Eq)]
struct Lost {
    /// Most blocks of records that there can be.
    blocks: u64,
    owners: Vec<LostOwner>,
    /// Processes that were left after each loss.
    heirs: Vec<Vec<u32>>,
}

impl Lost {
    fn new(owners: &[LostOwner], blocks: u64, count: u32) -> Lost {
        let mut left: Vec<u32> = (0..count).collect();
        let mut heirs = Vec::with_capacity(owners.len());
        for owner in owners {
            left.retain(|index| *index != owner.index);
            heirs.push(left.clone());
        }
        Lost { blocks, owners: owners.to_vec(), heirs }
    }

    /// Returns the owner of the record at `place` of a block, and the last loss that gave it the record; `None` if no
    /// loss did.
    fn owner(&self, place: u32, block: u64) -> (u32, Option<&LostOwner>) {
        let (mut owner, mut by) = (place, None);
        for ((number, lost), heirs) in (0_u64..).zip(&self.owners).zip(&self.heirs) {
            if lost.index == owner && !heirs.is_empty() {
                // Which process had a block says nothing of who has it next.
                let chosen = turn(block ^ mix64(number + 1), heirs.len() as u32);
                (owner, by) = (heirs[chosen as usize], Some(lost));
            }
        }
        (owner, by)
    }
}

impl Ownership {
    /// Ownership of all records by one process.
    pub const ALL: Ownership = Ownership { index: 0, count: 1, lost: None };

    /// Makes the ownership of process `index`, from 0, of `count`.
    #[must_use]
    pub fn new(index: u32, count: u32) -> Ownership {
        Ownership { index, count, lost: None }
    }

    /// Returns the ownership of the same process after all of `lost` were lost, in this order, in a load of `records`
    /// records at most.
    #[must_use]
    pub fn after(&self, lost: &[LostOwner], records: u64) -> Ownership {
        let lost = (!lost.is_empty()).then(|| Lost::new(lost, self.slots(records), self.count));
        Ownership { lost: lost.map(Arc::new), ..*self }
    }

    /// Returns the number of the process, from 0.
    #[inline]
    #[must_use]
    pub fn index(&self) -> u32 {
        self.index
    }

    /// Returns the number of processes, with those that were lost.
    #[inline]
    #[must_use]
    pub fn count(&self) -> u32 {
        self.count
    }

    /// Returns the approximate share of all records that it owns.
    #[inline]
    #[must_use]
    pub fn share(&self) -> f64 {
        let lost = self.lost.as_ref().map_or(0, |lost| lost.owners.len() as u32);
        1.0 / f64::from(self.count.saturating_sub(lost).max(1))
    }

    /// Returns true if one process owns all records.
    #[inline]
    #[must_use]
    pub fn is_all(&self) -> bool {
        self.count <= 1
    }

    /// Returns true if this process owns `record`.
    #[inline]
    #[must_use]
    pub fn owns(&self, record: u64) -> bool {
        if self.is_all() {
            return true;
        }
        let place = self.place(record);
        place == u64::from(self.index) || self.lost.is_some() && self.has_taken(record)
    }

    /// Returns the number of the process that owned `record` before any was lost.
    #[inline]
    #[must_use]
    pub fn owner(&self, record: u64) -> u32 {
        if self.is_all() { 0 } else { self.place(record) as u32 }
    }

    /// Returns true if processes were lost whose records the others have taken over.
    #[must_use]
    pub fn has_lost(&self) -> bool {
        self.lost.is_some()
    }

    /// Returns the place of `record` in its block, turned by the block's hash: the number of its first owner.
    #[inline]
    fn place(&self, record: u64) -> u64 {
        let count = u64::from(self.count);
        // Both are below `count`. A second division would take as long as all the rest.
        let place = record % count + turn(record / count, self.count);
        if place >= count { place - count } else { place }
    }

    /// Returns true if this process has taken `record` over from one that was lost.
    #[must_use]
    pub fn has_taken(&self, record: u64) -> bool {
        let Some(lost) = self.lost.as_deref().filter(|_| !self.is_all()) else { return false };
        let place = self.place(record) as u32;
        let owner = || lost.owner(place, record / u64::from(self.count)).0;
        place != self.index && owner() == self.index
    }

    /// Returns the session of the writes to `record`, in a run whose own session is `session`.
    #[inline]
    #[must_use]
    pub fn session(&self, record: u64, session: u32) -> u32 {
        if self.lost.is_none() { session } else { self.session_of_taken(record, session) }
    }

    #[cold]
    fn session_of_taken(&self, record: u64, session: u32) -> u32 {
        let Some(lost) = self.lost.as_deref().filter(|_| !self.is_all()) else { return session };
        let by = lost.owner(self.place(record) as u32, record / u64::from(self.count)).1;
        by.map_or(session, |lost| lost.session)
    }

    /// Returns the number of an own record among all own ones, from 0 and without gaps. Records that were taken over
    /// come behind [`Ownership::slots`], with gaps.
    #[inline]
    #[must_use]
    pub fn slot(&self, record: u64) -> u64 {
        match (self.is_all(), &self.lost) {
            (true, _) => record,
            (false, None) => record / u64::from(self.count),
            (false, Some(lost)) => self.slot_of_several(record, lost),
        }
    }

    #[cold]
    fn slot_of_several(&self, record: u64, lost: &Lost) -> u64 {
        let (place, block) = (self.place(record) as u32, record / u64::from(self.count));
        // One that nobody has lost is either the own one, or another's, which has no slot here.
        let number = lost.owners.iter().position(|lost| lost.index == place);
        match number.filter(|_| place != self.index) {
            Some(number) => (number as u64 + 1).saturating_mul(lost.blocks).saturating_add(block),
            None => block,
        }
    }

    /// Returns the own record of this number: the inverse of [`Ownership::slot`], but not for records that were taken over.
    #[must_use]
    #[inline]
    pub fn record(&self, slot: u64) -> u64 {
        if self.is_all() {
            return slot;
        }
        let count = u64::from(self.count);
        let place = (u64::from(self.index) + count - turn(slot, self.count)) % count;
        slot.saturating_mul(count).saturating_add(place)
    }

    /// Returns the number of slots that the own ones of the records 0..`records` need, without those that were taken over.
    #[must_use]
    #[inline]
    pub fn slots(&self, records: u64) -> u64 {
        records.div_ceil(u64::from(self.count.max(1)))
    }

    /// Returns the number of slots that the records 0..`records` need, however many other processes are lost.
    #[must_use]
    pub fn slots_of_all(&self, records: u64) -> u64 {
        self.slots(records).saturating_mul(u64::from(self.count.max(1)))
    }

    /// Iterates over the own ones of the records 0..`records`, in order, without those that were taken over.
    #[inline]
    pub fn own(&self, records: u64) -> impl Iterator<Item = u64> {
        let own = Ownership { lost: None, ..*self };
        let all = (0..self.slots(records)).map(move |slot| own.record(slot));
        all.filter(move |record| *record < records)
    }
}

/// Returns the number of places by which the owners of a block's records are turned, below `count`.
#[inline]
fn turn(block: u64, count: u32) -> u64 {
    ((u128::from(mix64(block)) * u128::from(count)) >> 64) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_record_has_one_owner_and_a_slot_of_its_own_there() {
        for count in [1, 2, 3, 5, 16, 200] {
            let owners = (0..count).map(|index| Ownership::new(index, count));
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

    /// Each of n inserting groups takes every n-th record.
    #[test]
    fn no_stride_of_records_falls_to_one_owner() {
        for count in [2_u32, 3, 4, 8] {
            for first in 0..u64::from(count) {
                let strided = (0..30_000).map(|n| first + n * u64::from(count));
                let owner = Ownership::new(1, count);
                let own = strided.filter(|record| owner.owns(*record)).count() as f64;
                let share = own * f64::from(count) / 30_000.0;
                assert!((share - 1.0).abs() < 0.05, "{count} {first}: {share}");
            }
        }
    }

    /// Every record of every block has one owner, whichever processes were lost and in whichever order; a process
    /// keeps what it had before in the same slot.
    #[test]
    fn the_records_of_the_lost_go_to_those_that_are_left_and_nobody_loses_his_own() {
        const RECORDS: u64 = 6_000;
        for (count, order) in [(3, vec![1]), (4, vec![2, 0]), (5, vec![4, 1, 0]), (2, vec![0])] {
            let lost = |n: usize| -> Vec<LostOwner> {
                let taken = order[..n].iter().zip(100..);
                taken.map(|(&index, session)| LostOwner { index, session }).collect()
            };
            let mut before: Vec<Ownership> =
                (0..count).map(|index| Ownership::new(index, count)).collect();
            for n in 1..=order.len() {
                let lost = lost(n);
                let gone: Vec<u32> = lost.iter().map(|lost| lost.index).collect();
                let all =
                    (0..count).map(|index| Ownership::new(index, count).after(&lost, RECORDS));
                let all: Vec<Ownership> = all.collect();
                let left = all.iter().filter(|owner| !gone.contains(&owner.index()));
                let left: Vec<&Ownership> = left.collect();
                for record in 0..RECORDS {
                    let owners: Vec<_> = left.iter().filter(|owner| owner.owns(record)).collect();
                    assert_eq!(owners.len(), 1, "{count} {order:?} {record}");
                }
                for owner in &left {
                    let was = &before[owner.index() as usize];
                    let mut slots = std::collections::BTreeSet::new();
                    for record in (0..RECORDS).filter(|record| owner.owns(*record)) {
                        assert!(slots.insert(owner.slot(record)), "a slot of two records");
                        assert!(owner.slot(record) < owner.slots_of_all(RECORDS));
                        let is_taken = owner.slot(record) >= owner.slots(RECORDS);
                        assert_eq!(is_taken, owner.has_taken(record), "{record}");
                        if was.owns(record) {
                            assert_eq!(was.slot(record), owner.slot(record), "{record}");
                            assert_eq!(was.session(record, 7), owner.session(record, 7));
                        } else {
                            assert_eq!(owner.session(record, 7), 99 + n as u32, "of the last loss");
                        }
                    }
                    let kept = (0..RECORDS).filter(|record| was.owns(*record));
                    assert!(kept.into_iter().all(|record| owner.owns(record)));
                    let share = slots.len() as f64 / RECORDS as f64;
                    assert!((share - owner.share()).abs() < 0.04, "{share} {owner:?}");
                    assert_eq!(owner.own(RECORDS).count() as u64, owner.slots(RECORDS));
                }
                before = all;
            }
        }
    }

    /// Hot keys are neighbours: when their owner is lost, they are not all given to the same process.
    #[test]
    fn no_run_of_records_of_the_lost_falls_to_one_owner() {
        let lost = [LostOwner { index: 0, session: 1 }];
        let owner = Ownership::new(1, 3).after(&lost, 90_000);
        for first in (0..90_000).step_by(3_000) {
            let taken = (first..first + 3_000).filter(|record| owner.has_taken(*record)).count();
            assert!((400..600).contains(&taken), "{taken} of 1,000 from {first} on");
        }
    }
}

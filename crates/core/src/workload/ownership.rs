//! Whose a record is, where several processes carry one load together: each draws every operation, and
//! carries out those whose record is its own. Of each block of as many records as there are processes each
//! process owns one, and a hash of the block's number says which. So all own equally many, no stride of
//! record numbers favours one of them, and the numbers of the own blocks number the own records without gaps.
//!
//! Where a process was lost the others take its records over: of each of its blocks a hash says who. The records that
//! each had before stay its own, so that what it knows of them stays of use.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::ground::random::mix64;

/// A process that was lost, whose records the others have taken over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LostOwner {
    /// Number of the process, from 0.
    pub index: u32,
    /// Session of the writes to its records from then on: what it wrote itself is of an earlier one.
    pub session: u32,
}

/// Set of the records that process `index` of `count` owns.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ownership {
    index: u32,
    count: u32,
    /// Processes that were lost, if any were. Each process is told of that by itself.
    #[serde(skip)]
    lost: Option<Arc<Lost>>,
}

/// Processes that were lost, in order, and who has their records.
#[derive(Debug, PartialEq, Eq)]
struct Lost {
    /// Blocks of records that there are at most.
    blocks: u64,
    owners: Vec<LostOwner>,
    /// Those that were left after each loss.
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

    /// Owner of the record at `place` of a block, and the last loss that gave it the record.
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
    /// One process owns all records.
    pub const ALL: Ownership = Ownership { index: 0, count: 1, lost: None };

    /// The records of process `index`, from 0, of `count`.
    #[must_use]
    pub fn new(index: u32, count: u32) -> Ownership {
        Ownership { index, count, lost: None }
    }

    /// The same process, where all of `lost` were lost, in this order, of a load of `records` records at most.
    #[must_use]
    pub fn after(&self, lost: &[LostOwner], records: u64) -> Ownership {
        let lost = (!lost.is_empty()).then(|| Lost::new(lost, self.slots(records), self.count));
        Ownership { lost: lost.map(Arc::new), ..*self }
    }

    /// Number of the process, from 0.
    #[inline]
    #[must_use]
    pub fn index(&self) -> u32 {
        self.index
    }

    /// Number of processes, those that were lost included.
    #[inline]
    #[must_use]
    pub fn count(&self) -> u32 {
        self.count
    }

    /// Share of all records that it owns, about.
    #[inline]
    #[must_use]
    pub fn share(&self) -> f64 {
        let lost = self.lost.as_ref().map_or(0, |lost| lost.owners.len() as u32);
        1.0 / f64::from(self.count.saturating_sub(lost).max(1))
    }

    /// One process owns all records.
    #[inline]
    #[must_use]
    pub fn is_all(&self) -> bool {
        self.count <= 1
    }

    /// Returns true if `record` is this process's.
    #[inline]
    #[must_use]
    pub fn owns(&self, record: u64) -> bool {
        if self.is_all() {
            return true;
        }
        let place = self.place(record);
        place == u64::from(self.index) || self.lost.is_some() && self.has_taken(record)
    }

    /// Number of the process that owned `record` before any was lost.
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

    /// Which record of its block `record` is, turned by the block's hash: the number of its first owner.
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

    /// Session of the writes to `record`, of a run whose own session is `session`.
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

    /// Number of an own record among all own ones, from 0 and without gaps. Those that were taken over come behind
    /// [`Ownership::slots`], with gaps.
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

    /// The own record of this number: the inverse of [`Ownership::slot`], but for those that were taken over.
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

    /// Slots that the own ones of the records 0..`records` need, those that were taken over left out.
    #[must_use]
    #[inline]
    pub fn slots(&self, records: u64) -> u64 {
        records.div_ceil(u64::from(self.count.max(1)))
    }

    /// Slots that the records 0..`records` need, however many other processes are lost.
    #[must_use]
    pub fn slots_of_all(&self, records: u64) -> u64 {
        self.slots(records).saturating_mul(u64::from(self.count.max(1)))
    }

    /// The own ones of the records 0..`records`, in order, those that were taken over left out.
    #[inline]
    pub fn own(&self, records: u64) -> impl Iterator<Item = u64> {
        let own = Ownership { lost: None, ..*self };
        let all = (0..self.slots(records)).map(move |slot| own.record(slot));
        all.filter(move |record| *record < records)
    }
}

/// By how much the owners of a block's records are turned, below `count`.
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

    /// Groups that insert take every n-th record each.
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

    /// Of every block somebody has each record, whoever was lost and in whichever order; what one had before it keeps, in
    /// the same slot.
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

    /// Hot keys are neighbours: where one is lost, they are not all dealt to the same one.
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

//! The few records whose whole history is kept, to be checked for linearizability, and the operations that are aimed
//! at them.

use crate::ground::random::mix64;

/// Number of records whose history is kept, where there are so many.
pub const SAMPLED_RECORDS: u64 = 16;
/// Operations of one record that are kept; then its history stops.
pub const OPERATIONS_KEPT: u32 = 10_000;
/// One operation in so many is aimed at a sampled record.
const ONE_IN: u64 = 100;

/// Sample of a number of records, evenly spread over them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sampled {
    records: u64,
    count: u64,
}

impl Sampled {
    /// Makes the sample of the records 0..`records`.
    #[must_use]
    pub fn of(records: u64) -> Sampled {
        Sampled { records, count: records.min(SAMPLED_RECORDS) }
    }

    /// Returns the number of records in the sample.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Returns the i-th record of the sample, from 0.
    #[must_use]
    #[inline]
    pub fn record(&self, i: u64) -> u64 {
        (u128::from(i) * u128::from(self.records) / u128::from(self.count.max(1))) as u64
    }

    /// Returns the number of `record` in the sample, from 0; `None` if it is not sampled.
    #[inline]
    #[must_use]
    pub fn number(&self, record: u64) -> Option<usize> {
        if record >= self.records {
            return None;
        }
        let spread = u128::from(record) * u128::from(self.count);
        let i = spread.div_ceil(u128::from(self.records)) as u64;
        (i < self.count && self.record(i) == record).then_some(i as usize)
    }

    /// Returns the sampled record that operation `id` is aimed at; `None` if it is aimed at none. Exactly one in each
    /// 100 ids is, until each record can have had its 10,000.
    #[inline]
    pub(super) fn aim(&self, id: u64, seed: u64) -> Option<u64> {
        let block = id / ONE_IN;
        let chance = mix64(seed ^ mix64(block));
        let aimed = id % ONE_IN == chance % ONE_IN
            && self.count > 0
            && block < self.count * u64::from(OPERATIONS_KEPT);
        aimed.then(|| self.record((chance / ONE_IN) % self.count))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sample_is_spread_over_the_records_and_found_again() {
        for records in [0, 1, 2, 15, 16, 17, 31, 33, 1_000, 999_999_999_999] {
            let sampled = Sampled::of(records);
            let all: Vec<u64> = (0..sampled.count()).map(|i| sampled.record(i)).collect();
            assert_eq!(all.len() as u64, records.min(16));
            assert!(all.windows(2).all(|pair| pair[0] < pair[1]), "{records}: {all:?}");
            assert!(all.iter().all(|&record| record < records));
            for (i, &record) in all.iter().enumerate() {
                assert_eq!(sampled.number(record), Some(i), "{records}: {record}");
            }
            let others = (0..records.min(2_000)).filter(|record| !all.contains(record));
            assert!(others.into_iter().all(|record| sampled.number(record).is_none()));
            assert_eq!(sampled.number(records), None);
        }
    }

    #[test]
    fn one_operation_in_a_hundred_is_aimed_and_no_more_when_all_are_full() {
        let sampled = Sampled::of(1_000_000);
        for block in [0, 1, 77, 159_999] {
            let aimed = (block * 100..block * 100 + 100).filter_map(|id| sampled.aim(id, 9));
            assert_eq!(aimed.filter(|record| sampled.number(*record).is_some()).count(), 1);
        }
        assert!((16_000_000..16_000_100).all(|id| sampled.aim(id, 9).is_none()));
        let hit: std::collections::HashSet<u64> =
            (0..100_000).filter_map(|id| sampled.aim(id, 9)).collect();
        assert_eq!(hit.len(), 16);
        assert!((0..1_000).all(|id| Sampled::of(0).aim(id, 9).is_none()));
    }
}

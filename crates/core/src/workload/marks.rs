//! Which records a pass goes to: one bit for each record, set by any number of threads, and the set
//! records in order once nobody sets any more. However many there are, none is left out.

use std::sync::atomic::{AtomicU64, Ordering};

const BITS: u64 = u64::BITS as u64;
/// Words whose set bits are counted together, so that the n-th is found without looking at all.
const BLOCK: usize = 8;

/// One bit for each of the records 0..n.
#[derive(Debug, Default)]
pub(crate) struct Marks(Vec<AtomicU64>);

impl Marks {
    /// No record of 0..`records` is marked. It takes a bit for each.
    pub(crate) fn new(records: u64) -> Marks {
        Marks((0..records.div_ceil(BITS)).map(|_| AtomicU64::new(0)).collect())
    }

    /// The same records are marked.
    pub(crate) fn copy(&self) -> Marks {
        self.without(&Marks::default())
    }

    /// None of as many records is marked.
    pub(crate) fn none_of_these(&self) -> Marks {
        Marks::new(self.0.len() as u64 * BITS)
    }

    /// Marked are the records that are here and are not in `others`.
    pub(crate) fn without(&self, others: &Marks) -> Marks {
        let load = |word: Option<&AtomicU64>| word.map_or(0, |word| word.load(Ordering::Relaxed));
        let left = self.0.iter().enumerate();
        let left = left.map(|(at, word)| load(Some(word)) & !load(others.0.get(at)));
        Marks(left.map(AtomicU64::new).collect())
    }

    /// Marks a record; one beyond the last word is passed over.
    pub(crate) fn set(&self, record: u64) {
        if let Some(word) = self.0.get((record / BITS) as usize) {
            word.fetch_or(1 << (record % BITS), Ordering::Relaxed);
        }
    }

    /// Whether the record is marked.
    pub(crate) fn has(&self, record: u64) -> bool {
        let word = self.0.get((record / BITS) as usize);
        word.is_some_and(|word| word.load(Ordering::Relaxed) >> (record % BITS) & 1 == 1)
    }

    /// How many are marked.
    pub(crate) fn count(&self) -> u64 {
        self.0.iter().map(|word| u64::from(word.load(Ordering::Relaxed).count_ones())).sum()
    }

    /// The marked records, in order.
    pub(crate) fn records(&self) -> impl Iterator<Item = u64> + '_ {
        let words = (0..).zip(&self.0).map(|(at, word)| (at, word.load(Ordering::Relaxed)));
        words.filter(|(_, word)| *word != 0).flat_map(|(at, word)| {
            (0..BITS).filter(move |bit| word >> bit & 1 == 1).map(move |bit| at * BITS + bit)
        })
    }
}

/// The records that were marked, numbered from 0.
#[derive(Debug)]
pub(crate) struct Marked {
    words: Vec<u64>,
    /// How many are marked before each block.
    before: Vec<u64>,
    count: u64,
}

impl Marked {
    /// Those that are marked now.
    pub(crate) fn of(marks: &Marks) -> Marked {
        let words: Vec<u64> = marks.0.iter().map(|word| word.load(Ordering::Relaxed)).collect();
        let mut count = 0;
        let mut before = Vec::with_capacity(words.len().div_ceil(BLOCK));
        for block in words.chunks(BLOCK) {
            before.push(count);
            count += block.iter().map(|word| u64::from(word.count_ones())).sum::<u64>();
        }
        Marked { words, before, count }
    }

    /// How many there are.
    pub(crate) fn count(&self) -> u64 {
        self.count
    }

    /// The n-th of them, counted around the end; `None` if there is none.
    pub(super) fn nth(&self, n: u64) -> Option<u64> {
        let n = n.checked_rem(self.count)?;
        let block = self.before.partition_point(|&before| before <= n) - 1;
        let mut left = n - self.before[block];
        for (at, &word) in (block * BLOCK..).zip(self.words.get(block * BLOCK..)?) {
            let ones = u64::from(word.count_ones());
            if left < ones {
                // What is set below the one that is looked for goes.
                let rest = (0..left).fold(word, |word, _| word & (word - 1));
                return Some(at as u64 * BITS + u64::from(rest.trailing_zeros()));
            }
            left -= ones;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_marked_record_is_found_by_its_number_and_no_other() {
        let sets: [Vec<u64>; 5] = [
            vec![],
            vec![0],
            vec![63, 64, 511, 512, 513, 4_095, 4_096, 9_999],
            (0..10_000).collect(),
            (0..10_000).filter(|n| n % 7 == 3 || n / 600 == 5).collect(),
        ];
        for set in sets {
            let marks = Marks::new(10_000);
            set.iter().rev().chain(&set).for_each(|&record| marks.set(record));
            // Beyond the last word, as a key that was never written is.
            marks.set(u64::MAX);
            assert_eq!((marks.count(), marks.has(u64::MAX)), (set.len() as u64, false));
            assert!((0..10_000).all(|n| marks.has(n) == set.binary_search(&n).is_ok()));
            assert_eq!(marks.records().collect::<Vec<_>>(), set);
            let marked = Marked::of(&marks);
            assert_eq!(marked.count(), set.len() as u64);
            let found: Vec<u64> = (0..marked.count()).filter_map(|n| marked.nth(n)).collect();
            assert_eq!(found, set);
            assert_eq!(marked.nth(marked.count()), set.first().copied(), "around the end");
            let other = marks.none_of_these();
            assert_eq!(other.count(), 0);
            set.iter().skip(1).for_each(|&record| other.set(record));
            let left = marks.without(&other);
            assert_eq!(left.records().collect::<Vec<_>>(), set[..set.len().min(1)]);
            assert_eq!(marks.copy().records().collect::<Vec<_>>(), set);
        }
    }
}

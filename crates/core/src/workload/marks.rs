//! Marks on the records that a pass goes to: one bit for each record, set by any number of threads, and the marked
//! records in order once no thread sets marks any more. However many there are, none is left out.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

const BITS: u64 = u64::BITS as u64;
/// Words whose set bits are counted together, so that the n-th is found without looking at all.
const BLOCK: usize = 8;
/// Words that are made together, when the first of their records is marked: 32 KiB.
const CHUNK: usize = 4096;

type Chunk = OnceLock<Box<[AtomicU64]>>;

/// One bit for each of the records 0..n. Memory is taken for chunks with a mark only.
#[derive(Debug, Default)]
pub(crate) struct Marks {
    chunks: Box<[Chunk]>,
    /// Number of words that the records need.
    words: u64,
}

impl Marks {
    /// Makes marks for the records 0..`records`, none of which is marked.
    pub(crate) fn new(records: u64) -> Marks {
        let words = records.div_ceil(BITS);
        let chunks = words.div_ceil(CHUNK as u64);
        Marks { chunks: (0..chunks).map(|_| Chunk::new()).collect(), words }
    }

    /// Returns a copy with the same records marked.
    pub(crate) fn copy(&self) -> Marks {
        self.without(&Marks::default())
    }

    /// Returns marks for as many records, none of which is marked.
    pub(crate) fn none_of_these(&self) -> Marks {
        Marks::new(self.words * BITS)
    }

    /// Returns marks on the records that are marked here and not in `others`.
    #[inline]
    pub(crate) fn without(&self, others: &Marks) -> Marks {
        let left = self.none_of_these();
        for (at, word) in self.set_words() {
            let there = others.word(at).map_or(0, |word| word.load(Ordering::Relaxed));
            if word & !there != 0 {
                left.made(at).store(word & !there, Ordering::Relaxed);
            }
        }
        left
    }

    /// Marks a record; one beyond the last word is passed over.
    #[inline]
    pub(crate) fn set(&self, record: u64) {
        let at = record / BITS;
        if at < self.words {
            self.made(at).fetch_or(1 << (record % BITS), Ordering::Relaxed);
        }
    }

    /// Returns true if the record is marked.
    #[inline]
    pub(crate) fn has(&self, record: u64) -> bool {
        let word = self.word(record / BITS);
        word.is_some_and(|word| word.load(Ordering::Relaxed) >> (record % BITS) & 1 == 1)
    }

    /// Returns the number of marked records.
    #[inline]
    pub(crate) fn count(&self) -> u64 {
        self.set_words().map(|(_, word)| u64::from(word.count_ones())).sum()
    }

    /// Iterates over the marked records, in order.
    pub(crate) fn records(&self) -> impl Iterator<Item = u64> + '_ {
        self.set_words().flat_map(|(at, word)| {
            (0..BITS).filter(move |bit| word >> bit & 1 == 1).map(move |bit| at * BITS + bit)
        })
    }

    /// Returns the word at a place; `None` if no record of its chunk was ever marked.
    #[inline]
    fn word(&self, at: u64) -> Option<&AtomicU64> {
        let chunk = usize::try_from(at / CHUNK as u64).ok()?;
        self.chunks.get(chunk)?.get()?.get((at % CHUNK as u64) as usize)
    }

    /// Returns the word at a place, which must be below the number of words; makes its chunk if need be.
    #[inline]
    fn made(&self, at: u64) -> &AtomicU64 {
        let chunk = &self.chunks[(at / CHUNK as u64) as usize];
        let words = chunk.get_or_init(|| (0..CHUNK).map(|_| AtomicU64::new(0)).collect());
        &words[(at % CHUNK as u64) as usize]
    }

    /// Iterates over the words with a mark, each with its place, in order.
    fn set_words(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        let made = (0..).step_by(CHUNK).zip(&self.chunks);
        let made = made.filter_map(|(first, chunk)| Some((first, chunk.get()?)));
        let words = made.flat_map(|(first, words)| {
            (first..).zip(words).map(|(at, word)| (at, word.load(Ordering::Relaxed)))
        });
        words.filter(|(_, word)| *word != 0)
    }
}

/// The records that were marked, numbered from 0.
#[derive(Debug, Default)]
pub(crate) struct Marked {
    /// The blocks with a mark, in order.
    blocks: Vec<Block>,
    count: u64,
}

#[derive(Debug)]
struct Block {
    /// Number of records that are marked before it.
    before: u64,
    /// Its number among all blocks.
    number: u64,
    words: [u64; BLOCK],
}

impl Marked {
    /// Takes the records that are marked now.
    pub(crate) fn of(marks: &Marks) -> Marked {
        let mut marked = Marked::default();
        for (at, word) in marks.set_words() {
            let number = at / BLOCK as u64;
            if marked.blocks.last().is_none_or(|block| block.number != number) {
                let before = marked.count;
                marked.blocks.push(Block { before, number, words: [0; BLOCK] });
            }
            if let Some(block) = marked.blocks.last_mut() {
                block.words[(at % BLOCK as u64) as usize] = word;
            }
            marked.count += u64::from(word.count_ones());
        }
        marked
    }

    /// Returns the number of records.
    #[inline]
    pub(crate) fn count(&self) -> u64 {
        self.count
    }

    /// Returns the n-th of them, counted around the end; `None` if there is none.
    pub(super) fn nth(&self, n: u64) -> Option<u64> {
        let n = n.checked_rem(self.count)?;
        let at = self.blocks.partition_point(|block| block.before <= n) - 1;
        let block = &self.blocks[at];
        let mut left = n - block.before;
        for (at, &word) in (block.number * BLOCK as u64..).zip(&block.words) {
            let ones = u64::from(word.count_ones());
            if left < ones {
                // What is set below the one that is looked for goes.
                let rest = (0..left).fold(word, |word, _| word & (word - 1));
                return Some(at * BITS + u64::from(rest.trailing_zeros()));
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

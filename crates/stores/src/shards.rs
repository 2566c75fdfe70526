//! Records in key order, spread over locks by a hash of the key: what `map:` and `sim:` keep
//! their records in.

use std::cmp::Reverse;
use std::collections::hash_map::RandomState;
use std::collections::{BTreeMap, BinaryHeap};
use std::hash::BuildHasher;
use std::ops::Bound;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Enough that a few dozen threads seldom meet at one lock.
const SHARDS: usize = 64;

/// The records of one shard, in key order.
pub(crate) type Shard<T> = BTreeMap<Box<[u8]>, T>;

/// Records of type `T` by key.
#[derive(Debug)]
pub(crate) struct Shards<T> {
    shards: [Mutex<Shard<T>>; SHARDS],
    hasher: RandomState,
}

impl<T> Default for Shards<T> {
    fn default() -> Self {
        let shards = std::array::from_fn(|_| Mutex::new(BTreeMap::new()));
        Shards { shards, hasher: RandomState::new() }
    }
}

impl<T> Shards<T> {
    /// Locks the shard in which `key` lies, or would lie.
    pub(crate) fn lock(&self, key: &[u8]) -> MutexGuard<'_, Shard<T>> {
        hold(&self.shards[self.hasher.hash_one(key) as usize % SHARDS])
    }

    /// Shows records in key order from the first at or after `from`, until `show` answers `false`.
    /// All shards are locked meanwhile, so that it sees one instant.
    pub(crate) fn scan(&self, from: &[u8], mut show: impl FnMut(&[u8], &mut T) -> bool) {
        let mut guards: Vec<_> = self.shards.iter().map(hold).collect();
        let start = (Bound::Included(from), Bound::Unbounded);
        let mut ranges: Vec<_> =
            guards.iter_mut().map(|shard| shard.range_mut::<[u8], _>(start)).collect();
        let mut heads: Vec<_> = ranges.iter_mut().map(Iterator::next).collect();
        let mut order: BinaryHeap<_> = (heads.iter().enumerate())
            .filter_map(|(at, head)| head.as_ref().map(|(key, _)| Reverse((*key, at))))
            .collect();
        while let Some(Reverse((_, at))) = order.pop() {
            let Some((key, record)) = heads[at].take() else { continue };
            if !show(key, record) {
                return;
            }
            heads[at] = ranges[at].next();
            if let Some((key, _)) = &heads[at] {
                order.push(Reverse((*key, at)));
            }
        }
    }

    /// Shows each shard to `visit`, one after the other.
    pub(crate) fn each(&self, mut visit: impl FnMut(&mut Shard<T>)) {
        self.shards.iter().for_each(|shard| visit(&mut hold(shard)));
    }
}

/// A thread that panicked left its record as it was before or after its write, never between.
fn hold<T>(shard: &Mutex<Shard<T>>) -> MutexGuard<'_, Shard<T>> {
    shard.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scans_see_all_shards_in_key_order() {
        let shards = Shards::default();
        for number in (0..1000u32).rev() {
            let key: Box<[u8]> = format!("{number:04}").into_bytes().into();
            shards.lock(&key).insert(key, number);
        }
        let mut seen = Vec::new();
        shards.scan(b"0123", |_, number| {
            seen.push(*number);
            seen.len() < 700
        });
        assert_eq!(seen, (123..823).collect::<Vec<_>>());
        let mut rest = 0;
        shards.scan(b"0990x", |_, _| {
            rest += 1;
            true
        });
        assert_eq!(rest, 9);
        let mut used = 0;
        shards.each(|shard| used += usize::from(!shard.is_empty()));
        assert!(used > SHARDS / 2, "records lie in {used} shards only");
    }
}

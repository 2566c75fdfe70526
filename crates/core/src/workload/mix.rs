//! The kind of operation that belongs to each id. Kinds are exact within each block of 1,000 ids, so that the number
//! of records inserted before an id is known at once.
//!
//! A few shuffles of the block are made when the workload is built. Each block takes one of them from a place of its
//! own on, both drawn from the seed: kinds can be asked for in any order of ids, and for neighbouring ids each costs
//! one look into a table.

use super::invalid::PlanError;
use super::plan::{Kind, Mix};
use crate::ground::random::{Random, derive_seed};

/// Ids in a block.
const BLOCK: u64 = 1000;
/// Shuffles made; with 1,000 places to begin at, that makes 16,000 different blocks.
const SHUFFLES: u64 = 16;

/// Gives ids their kinds and counts inserts.
#[derive(Debug)]
pub struct Mixer {
    sequence: Sequence,
    /// Records that one id inserts, for each kind that inserts any.
    batch: u64,
}

#[derive(Debug)]
enum Sequence {
    Single(Kind),
    Shuffled {
        kinds: Vec<Kind>,
        /// Records inserted in a shuffle before each of its places.
        inserted: Vec<u32>,
        /// Records inserted in a block.
        per_block: u64,
        seed: u64,
    },
}

impl Mixer {
    /// Compiles `mix`; `batch` is the number of records that an insert-batch makes, at most 65,536.
    ///
    /// # Errors
    /// [`PlanError::MixSum`] or [`PlanError::MixTwice`].
    pub fn new(mix: &Mix, batch: u32, seed: u64) -> Result<Self, PlanError> {
        for (place, &(kind, _)) in mix.parts.iter().enumerate() {
            if mix.parts[..place].iter().any(|&(other, _)| other == kind) {
                return Err(PlanError::MixTwice { kind });
            }
        }
        let sum = mix.parts.iter().map(|&(_, part)| u64::from(part)).sum();
        if sum != BLOCK {
            return Err(PlanError::MixSum { sum });
        }
        let batch = u64::from(batch);
        let sequence = match mix.parts.iter().find(|&&(_, part)| u64::from(part) == BLOCK) {
            Some(&(kind, _)) => Sequence::Single(kind),
            None => shuffled(mix, batch, seed),
        };
        Ok(Mixer { sequence, batch })
    }

    /// Returns the kind of the n-th operation. `cursor` only saves time.
    #[inline]
    #[must_use]
    pub fn kind(&self, n: u64, cursor: &mut MixCursor) -> Kind {
        match &self.sequence {
            Sequence::Single(kind) => *kind,
            Sequence::Shuffled { kinds, seed, .. } => kinds[cursor.block(n, *seed).place(n)],
        }
    }

    /// Returns true if some operations go to several records that exist.
    #[must_use]
    pub fn has_batches(&self) -> bool {
        let batched = |kind: &Kind| matches!(kind, Kind::GetBatch | Kind::PutBatch);
        match &self.sequence {
            Sequence::Single(kind) => batched(kind),
            Sequence::Shuffled { kinds, .. } => kinds.iter().any(batched),
        }
    }

    /// Returns the number of records that the operations before the n-th insert.
    #[inline]
    #[must_use]
    pub fn inserted_before(&self, n: u64) -> u64 {
        match &self.sequence {
            Sequence::Single(kind) => n.saturating_mul(made(*kind, self.batch)),
            Sequence::Shuffled { inserted, per_block, seed, .. } => {
                if *per_block == 0 {
                    return 0;
                }
                let block = Block::of(n, *seed);
                let (first, here) = (block.place(block.start), block.place(n));
                // Gone around the end of the shuffle.
                let around = if here < first { *per_block } else { 0 };
                let in_block = around + u64::from(inserted[here]) - u64::from(inserted[first]);
                (n / BLOCK).saturating_mul(*per_block).saturating_add(in_block)
            }
        }
    }
}

#[inline]
fn made(kind: Kind, batch: u64) -> u64 {
    match kind {
        Kind::InsertBatch => batch,
        kind => u64::from(kind.inserts()),
    }
}

#[inline]
fn shuffled(mix: &Mix, batch: u64, seed: u64) -> Sequence {
    let mut kinds = Vec::with_capacity((SHUFFLES * BLOCK) as usize);
    let mut inserted = Vec::with_capacity(kinds.capacity());
    let mut per_block = 0;
    for shuffle in 0..SHUFFLES {
        let first = kinds.len();
        for &(kind, part) in &mix.parts {
            kinds.extend(std::iter::repeat_n(kind, usize::from(part)));
        }
        let mut random = Random::new(seed, shuffle);
        for end in (1..BLOCK).rev() {
            kinds.swap(first + end as usize, first + random.below(end + 1) as usize);
        }
        per_block = 0;
        for &kind in &kinds[first..] {
            inserted.push(per_block as u32);
            per_block += made(kind, batch);
        }
    }
    Sequence::Shuffled { kinds, inserted, per_block, seed: derive_seed(seed, SHUFFLES) }
}

/// The block that a [`Mixer`] was asked about last.
#[derive(Debug, Default)]
pub struct MixCursor(Option<Block>);

impl MixCursor {
    #[inline]
    fn block(&mut self, n: u64, seed: u64) -> &Block {
        self.0.take_if(|block| !block.holds(n));
        self.0.get_or_insert_with(|| Block::of(n, seed))
    }
}

/// Place of a block's operations in the shuffles.
#[derive(Debug)]
struct Block {
    /// Its first operation.
    start: u64,
    /// Position of its shuffle's begin in the table.
    shuffle: u64,
    /// Place in the shuffle at which it begins; it goes around the shuffle's end.
    turn: u64,
}

impl Block {
    /// Returns the block of the n-th operation.
    fn of(n: u64, seed: u64) -> Block {
        let number = n / BLOCK;
        let drawn = Random::new(seed, number).next_u64();
        // The upper 32 bits, scaled to 0..1,000: a bias of 1 in 4 million.
        let turn = ((drawn >> 32) * BLOCK) >> 32;
        Block { start: number * BLOCK, shuffle: (drawn % SHUFFLES) * BLOCK, turn }
    }

    #[inline]
    fn holds(&self, n: u64) -> bool {
        n.checked_sub(self.start).is_some_and(|place| place < BLOCK)
    }

    /// Returns the position in the table of an operation that it holds.
    #[inline]
    fn place(&self, n: u64) -> usize {
        let place = self.turn + (n - self.start);
        (self.shuffle + if place < BLOCK { place } else { place - BLOCK }) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mixer(parts: &[(Kind, u16)], batch: u32, seed: u64) -> Mixer {
        Mixer::new(&Mix { parts: parts.to_vec() }, batch, seed).unwrap()
    }

    fn kind_of(mixer: &Mixer, n: u64) -> Kind {
        mixer.kind(n, &mut MixCursor::default())
    }

    #[test]
    fn a_cursor_changes_no_kind() {
        let mixer = mixer(&[(Kind::Get, 500), (Kind::Update, 500)], 1, 3);
        let mut cursor = MixCursor::default();
        let ahead = (0..5000).chain((0..5000).rev());
        for n in ahead.chain([999, 1000, u64::MAX, 0, u64::MAX - 999, 2000]) {
            assert_eq!(mixer.kind(n, &mut cursor), kind_of(&mixer, n), "{n}");
        }
    }

    #[test]
    fn kinds_are_exact_in_every_block() {
        let parts =
            [(Kind::Get, 637), (Kind::Update, 250), (Kind::Insert, 112), (Kind::InsertBatch, 1)];
        let mixer = mixer(&parts, 10, 5);
        for block in 0..500 {
            for (kind, part) in parts {
                let ids = block * 1000..(block + 1) * 1000;
                assert_eq!(ids.filter(|&n| kind_of(&mixer, n) == kind).count(), usize::from(part));
            }
        }
    }

    #[test]
    fn inserts_before_equal_a_count_by_hand() {
        for parts in [
            vec![(Kind::Get, 900), (Kind::Insert, 100)],
            vec![(Kind::Insert, 999), (Kind::Scan, 1)],
            vec![(Kind::Get, 500), (Kind::InsertBatch, 300), (Kind::Insert, 200)],
            vec![(Kind::Insert, 1000)],
            vec![(Kind::InsertBatch, 1000)],
            vec![(Kind::Get, 1000)],
            vec![(Kind::Get, 500), (Kind::Update, 500)],
        ] {
            let mixer = mixer(&parts, 7, 42);
            let mut inserted = 0;
            for n in 0..30_000 {
                assert_eq!(mixer.inserted_before(n), inserted, "{parts:?} at {n}");
                inserted += made(kind_of(&mixer, n), 7);
            }
        }
    }

    /// Half of the ids are gets: neighbours agree half of the time, in a block and between blocks,
    /// at any distance.
    #[test]
    fn kinds_are_shuffled() {
        let mixer = mixer(&[(Kind::Get, 500), (Kind::Update, 500)], 1, 9);
        for distance in [1, 2, 3, 8, 16, 1000, 16_000] {
            let same = (0..200_000)
                .filter(|&n| kind_of(&mixer, n) == kind_of(&mixer, n + distance))
                .count();
            assert!(same.abs_diff(100_000) < 2500, "{same} at distance {distance}");
        }
        let other = self::mixer(&[(Kind::Get, 500), (Kind::Update, 500)], 1, 10);
        let same = (0..200_000).filter(|&n| kind_of(&mixer, n) == kind_of(&other, n)).count();
        assert!(same.abs_diff(100_000) < 2500, "{same} of two seeds");
    }

    #[test]
    fn huge_numbers_do_not_overflow() {
        let mixer = mixer(&[(Kind::Get, 1), (Kind::InsertBatch, 999)], 65_536, 1);
        assert!(mixer.inserted_before(u64::MAX) > 0);
        let _ = kind_of(&mixer, u64::MAX);
    }

    #[test]
    fn wrong_mixes_are_refused() {
        let refusal = |parts: &[(Kind, u16)]| {
            Mixer::new(&Mix { parts: parts.to_vec() }, 1, 1).unwrap_err().to_string()
        };
        assert_eq!(refusal(&[]), "the parts of the mix sum to 0; they must sum to 1,000");
        assert_eq!(
            refusal(&[(Kind::Get, 999)]),
            "the parts of the mix sum to 999; they must sum to 1,000"
        );
        assert_eq!(
            refusal(&[(Kind::PutGet, 500), (Kind::PutGet, 500)]),
            "the mix names put-get twice; name each kind once"
        );
    }
}

//! Randomness that a run can repeat: a generator that starts from (seed, operation id), the
//! one-to-one mixing of 64 bits that it rests on, and one-to-one shuffles of 0..n.

/// 2^64 divided by the golden ratio, odd: the step of Steele, Lea and Flood's SplitMix64.
pub const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

const FIRST: u64 = 0xbf58_476d_1ce4_e5b9;
const SECOND: u64 = 0x94d0_49bb_1331_11eb;

/// Mixes 64 bits one to one: the finaliser of SplitMix64 (Stafford's variant 13).
#[inline]
#[must_use]
pub fn mix64(x: u64) -> u64 {
    let x = mix64_high(x);
    x ^ (x >> 31)
}

/// Mixes as [`mix64`] does, without its last step, which only the low half needs.
#[inline]
#[must_use]
pub fn mix64_high(x: u64) -> u64 {
    let x = (x ^ (x >> 30)).wrapping_mul(FIRST);
    (x ^ (x >> 27)).wrapping_mul(SECOND)
}

/// Inverts [`mix64`].
#[inline]
#[must_use]
pub fn unmix64(x: u64) -> u64 {
    const FIRST_INVERSE: u64 = odd_inverse(FIRST);
    const SECOND_INVERSE: u64 = odd_inverse(SECOND);
    let x = (x ^ (x >> 31) ^ (x >> 62)).wrapping_mul(SECOND_INVERSE);
    let x = (x ^ (x >> 27) ^ (x >> 54)).wrapping_mul(FIRST_INVERSE);
    x ^ (x >> 30) ^ (x >> 60)
}

/// Returns the inverse of an odd number modulo 2^64 by Newton's iteration, which doubles the number of right bits
/// each time (3, 6, 12, 24, 48, 96).
const fn odd_inverse(odd: u64) -> u64 {
    let mut inverse = odd;
    let mut round = 0;
    while round < 5 {
        inverse = inverse.wrapping_mul(2u64.wrapping_sub(odd.wrapping_mul(inverse)));
        round += 1;
    }
    inverse
}

/// Derives a seed for one purpose, so that kinds, records and sizes of an operation are independent.
#[must_use]
pub(crate) fn derive_seed(seed: u64, purpose: u64) -> u64 {
    mix64(mix64(seed) ^ purpose.wrapping_mul(GOLDEN))
}

/// SplitMix64, started from a seed and a number: the same two give the same draws.
#[derive(Clone, Debug)]
pub struct Random {
    state: u64,
}

impl Random {
    /// Makes the generator of operation `id` under `seed`.
    #[inline]
    #[must_use]
    pub fn new(seed: u64, id: u64) -> Self {
        Random { state: seed ^ mix64(id) }
    }

    /// Draws the next 64 bits.
    #[inline]
    pub fn next_u64(&mut self) -> u64 {
        self.state = self.state.wrapping_add(GOLDEN);
        mix64(self.state)
    }

    /// Draws a multiple of 2^-53, uniform in [0, 1).
    #[inline]
    pub fn next_f64(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }

    /// Draws a number uniform in 0..n, without bias (Lemire, "Fast Random Integer Generation in an Interval", 2019);
    /// 0 if `n` is 0.
    #[inline]
    pub fn below(&mut self, n: u64) -> u64 {
        let mut product = u128::from(self.next_u64()) * u128::from(n);
        if (product as u64) < n {
            let threshold = n.wrapping_neg() % n;
            while (product as u64) < threshold {
                product = u128::from(self.next_u64()) * u128::from(n);
            }
        }
        (product >> 64) as u64
    }
}

/// Rounds of the network, in pairs. Halves of a few bits need more of them to shuffle well.
const ROUNDS: usize = 4;
const ROUNDS_OF_SMALL: usize = 12;
const SMALL_BITS: u32 = 12;
/// Fewest bits of a network: with fewer it cannot reach all shuffles alike.
const LEAST_BITS: u32 = 6;

/// A one-to-one shuffle of 0..n: a Feistel network over the next power of two, walked along its
/// cycle until the result is below n (Black and Rogaway, "Ciphers with Arbitrary Finite Domains").
#[derive(Clone, Debug)]
pub struct Permutation {
    n: u64,
    right_bits: u32,
    left_mask: u64,
    right_mask: u64,
    rounds: usize,
    keys: [u64; ROUNDS_OF_SMALL],
}

impl Permutation {
    /// Makes the shuffle of 0..n that belongs to `seed`.
    #[must_use]
    pub fn new(n: u64, seed: u64) -> Self {
        let bits = (64 - n.saturating_sub(1).leading_zeros()).max(LEAST_BITS);
        let left_bits = bits / 2;
        let right_bits = bits - left_bits;
        let mut random = Random::new(seed, 0);
        Permutation {
            n,
            right_bits,
            left_mask: (1 << left_bits) - 1,
            right_mask: (1 << right_bits) - 1,
            rounds: if bits <= SMALL_BITS { ROUNDS_OF_SMALL } else { ROUNDS },
            keys: std::array::from_fn(|_| random.next_u64()),
        }
    }

    /// Returns the number of numbers that it shuffles.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.n
    }

    /// Returns the number that `x` is mapped to; a number that is not below n is mapped to itself.
    #[inline]
    #[must_use]
    pub fn apply(&self, x: u64) -> u64 {
        if x >= self.n {
            return x;
        }
        let mut y = self.forward(x);
        while y >= self.n {
            y = self.forward(y);
        }
        y
    }

    /// Returns the number that is mapped to `y`: the inverse of [`Permutation::apply`].
    #[inline]
    #[must_use]
    pub fn invert(&self, y: u64) -> u64 {
        if y >= self.n {
            return y;
        }
        let mut x = self.backward(y);
        while x >= self.n {
            x = self.backward(x);
        }
        x
    }

    #[inline]
    fn forward(&self, x: u64) -> u64 {
        let (mut left, mut right) = (x >> self.right_bits, x & self.right_mask);
        for keys in self.keys[..self.rounds].chunks_exact(2) {
            left ^= fold(right ^ keys[0]) & self.left_mask;
            right ^= fold(left ^ keys[1]) & self.right_mask;
        }
        (left << self.right_bits) | right
    }

    #[inline]
    fn backward(&self, y: u64) -> u64 {
        let (mut left, mut right) = (y >> self.right_bits, y & self.right_mask);
        for keys in self.keys[..self.rounds].chunks_exact(2).rev() {
            right ^= fold(left ^ keys[1]) & self.right_mask;
            left ^= fold(right ^ keys[0]) & self.left_mask;
        }
        (left << self.right_bits) | right
    }
}

/// Folds both halves of a 128-bit product: one multiplication that carries every bit into every other.
#[inline]
fn fold(x: u64) -> u64 {
    let product = u128::from(x) * u128::from(FIRST);
    (product >> 64) as u64 ^ product as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mix_is_inverted() {
        let mut random = Random::new(1, 1);
        for x in [0, 1, u64::MAX].into_iter().chain((0..10_000).map(|_| random.next_u64())) {
            assert_eq!(unmix64(mix64(x)), x);
            assert_eq!(mix64(unmix64(x)), x);
        }
    }

    /// The first outputs of SplitMix64 from state 1234567, as Vigna's reference code gives them.
    #[test]
    fn generator_is_split_mix() {
        let mut random = Random { state: 1_234_567 };
        let drawn: Vec<u64> = (0..5).map(|_| random.next_u64()).collect();
        assert_eq!(
            drawn,
            [
                6_457_827_717_110_365_317,
                3_203_168_211_198_807_973,
                9_817_491_932_198_370_423,
                4_593_380_528_125_082_431,
                16_408_922_859_458_223_821
            ]
        );
    }

    #[test]
    fn draws_stay_in_range() {
        let mut random = Random::new(7, 3);
        assert_eq!(random.below(0), 0);
        assert_eq!(random.below(1), 0);
        for n in [2, 3, 1000, u64::MAX / 2 + 2, u64::MAX] {
            assert!((0..1000).all(|_| random.below(n) < n));
        }
        assert!((0..100_000).map(|_| random.next_f64()).all(|x| (0.0..1.0).contains(&x)));
    }

    /// With n = 3/4 of 2^64, taking the high half of a product without rejection would make every
    /// third number twice as likely as the others.
    #[test]
    fn below_is_without_bias() {
        let n = 3u64 << 62;
        let mut random = Random::new(9, 0);
        let mut counts = [0u32; 3];
        for _ in 0..90_000 {
            counts[(random.below(n) % 3) as usize] += 1;
        }
        assert!(counts.iter().all(|&c| c.abs_diff(30_000) < 700), "{counts:?}");
    }

    #[test]
    fn permutation_is_one_to_one_and_inverted() {
        for n in [1, 2, 3, 4, 5, 7, 8, 9, 100, 1000, 1023, 1024, 1025, 65_537] {
            for seed in 0..4 {
                let permutation = Permutation::new(n, seed);
                let mut seen = vec![false; n as usize];
                for x in 0..n {
                    let y = permutation.apply(x);
                    assert!(!std::mem::replace(&mut seen[y as usize], true), "{n}: {y} twice");
                    assert_eq!(permutation.invert(y), x);
                }
            }
        }
        for n in [u64::MAX, 1 << 63, (1 << 63) + 1] {
            let permutation = Permutation::new(n, 5);
            for x in [0, 1, n / 2, n - 1] {
                assert!(permutation.apply(x) < n);
                assert_eq!(permutation.invert(permutation.apply(x)), x);
            }
        }
        assert_eq!(Permutation::new(0, 1).apply(5), 5);
    }

    /// Over many seeds each number goes to each tenth of the places equally often.
    #[test]
    fn permutation_shuffles() {
        for n in [10, 4000, 5000, 100_000] {
            let mut cells = [[0u32; 10]; 10];
            for seed in 0..20_000 {
                let permutation = Permutation::new(n, seed);
                for (x, row) in cells.iter_mut().enumerate() {
                    row[(permutation.apply(x as u64) * 10 / n) as usize] += 1;
                }
            }
            // Standard deviation of a cell: sqrt(20,000 × 0.1 × 0.9) = 42.
            assert!(cells.iter().flatten().all(|&c| c.abs_diff(2000) < 200), "{n}: {cells:?}");
        }
    }

    /// Neighbours come apart: the distance between their images is as for independent places.
    #[test]
    fn permutation_parts_neighbours() {
        for n in [4000, 5000, 1_000_000] {
            let permutation = Permutation::new(n, 3);
            let mut tenths = [0u32; 10];
            for x in 0..2000 {
                let apart = permutation.apply(x + 1) + n - permutation.apply(x);
                tenths[(apart % n * 10 / n) as usize] += 1;
            }
            assert!(tenths.iter().all(|&c| c.abs_diff(200) < 70), "{n}: {tenths:?}");
        }
    }

    #[test]
    fn seeds_and_ids_matter() {
        let first = |seed, id| Random::new(seed, id).next_u64();
        assert_ne!(first(1, 1), first(2, 1));
        assert_ne!(first(1, 1), first(1, 2));
        assert_ne!(derive_seed(1, 1), derive_seed(1, 2));
        assert_ne!(derive_seed(1, 1), derive_seed(2, 1));
    }
}

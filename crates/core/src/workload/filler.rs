//! The bytes that fill values: some that no compressor can shorten, and a set share that it can take away.

use super::invalid::{self, PlanError};

/// Bytes of a chunk. Compressors look back at least this far, and stores compress blocks of about this size.
const CHUNK: usize = 4096;

/// Step and key of wyrand (Wang Yi's public-domain wyhash), which makes 8 bytes with one multiplication and whose
/// steps do not wait for each other. Here each step makes 16 bytes: no compressor tells the second word, which is the
/// first one turned and laid over its state, from random bytes.
const STEP: u64 = 0xa076_1d64_78bd_642f;
const KEY: u64 = 0xe703_7ed1_a0b4_28db;

/// Fills values.
#[derive(Clone, Copy, Debug)]
pub struct Filler {
    compressible: f64,
}

impl Filler {
    /// Makes a filler; `compressible` is the share of the bytes that a compressor can take away, 0 to 1.
    ///
    /// # Errors
    /// [`PlanError::Number`] if it is anything else.
    pub fn new(compressible: f64) -> Result<Self, PlanError> {
        let compressible = invalid::share("the compressible share of values", compressible)?;
        Ok(Filler { compressible })
    }

    /// Returns the bytes that [`Filler::fill`] makes of `seed`, for callers that do more with each word than store
    /// it: pairs of words, the lowest byte first, and of the last pair as many bytes as there is room for. `None` if
    /// some bytes are to be compressible.
    #[inline]
    #[must_use]
    pub fn words(&self, seed: u64) -> Option<impl FnMut() -> [u64; 2]> {
        (self.compressible == 0.0).then(|| random_words(seed))
    }

    /// Overwrites `bytes` with the filler of `seed`, which is random, but for the first `taken`, in whose place
    /// something else will be written. In each chunk of 4 KiB the first bytes are random, and the compressible share
    /// at its end is one byte, repeated. At a share of 1 only that byte depends on the seed.
    #[inline]
    pub fn fill(&self, seed: u64, bytes: &mut [u8], taken: usize) {
        let repeated = (seed >> 56) as u8;
        let (mut taken, mut words) = (taken, random_words(seed));
        if self.compressible == 0.0 {
            random_bytes(&mut words, bytes, taken);
            return;
        }
        for chunk in bytes.chunks_mut(CHUNK) {
            let run = (self.compressible * chunk.len() as f64).round() as usize;
            let (random, run) = chunk.split_at_mut(chunk.len() - run);
            random_bytes(&mut words, random, taken);
            run.fill(repeated);
            taken = 0;
        }
    }
}

#[inline]
fn random_words(mut state: u64) -> impl FnMut() -> [u64; 2] {
    move || {
        state = state.wrapping_add(STEP);
        let product = u128::from(state) * u128::from(state ^ KEY);
        let first = (product >> 64) as u64 ^ product as u64;
        [first, first.rotate_left(29) ^ state]
    }
}

#[inline]
fn random_bytes(words: &mut impl FnMut() -> [u64; 2], bytes: &mut [u8], taken: usize) {
    for pair in bytes.get_mut(taken..).unwrap_or_default().chunks_mut(16) {
        let made = words().map(u64::to_le_bytes);
        pair.copy_from_slice(&made.as_flattened()[..pair.len()]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::mix64;
    use std::collections::HashSet;
    use std::io::Write;

    fn deflate(bytes: &[u8]) -> usize {
        let mut encoder =
            flate2::write::DeflateEncoder::new(vec![], flate2::Compression::default());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap().len()
    }

    fn lz4(bytes: &[u8]) -> usize {
        lz4_flex::block::compress(bytes).len()
    }

    /// Each value for itself, by a compressor that adds next to nothing to what it cannot shorten.
    /// (Of a single value of 1,000 bytes, 300 of them a run, deflate leaves 757.)
    #[test]
    fn a_value_shrinks_by_the_share() {
        for share in [0.0, 0.3, 0.5, 0.9] {
            for length in [1000, 4096, 10_000] {
                let filler = Filler::new(share).unwrap();
                let mut value = vec![0; length];
                let mut compressed = 0;
                for seed in 0..100 {
                    filler.fill(mix64(seed), &mut value, 0);
                    compressed += lz4(&value);
                }
                let removed = 1.0 - compressed as f64 / (100 * length) as f64;
                assert!((removed - share).abs() < 0.03, "{share} of {length} bytes: {removed}");
            }
        }
    }

    /// A store compresses several values together.
    #[test]
    fn a_block_of_values_shrinks_by_the_share() {
        for share in [0.0, 0.3, 0.5, 0.9] {
            for length in [1000, 4096] {
                let filler = Filler::new(share).unwrap();
                let mut block = vec![0; 64 * length];
                for (seed, value) in block.chunks_mut(length).enumerate() {
                    filler.fill(mix64(seed as u64), value, 0);
                }
                for compress in [deflate, lz4] {
                    let removed = 1.0 - compress(&block) as f64 / block.len() as f64;
                    assert!((removed - share).abs() < 0.03, "{share} of {length} bytes: {removed}");
                }
            }
        }
    }

    #[test]
    fn no_value_comes_twice() {
        let filler = Filler::new(0.3).unwrap();
        let mut seen = HashSet::new();
        let mut value = [0; 24];
        for seed in 0..100_000 {
            filler.fill(mix64(seed), &mut value, 0);
            assert!(seen.insert(value), "the value of seed {seed} came before");
        }
    }

    #[test]
    fn bytes_belong_to_the_seed() {
        for share in [0.0, 0.4, 1.0] {
            let filler = Filler::new(share).unwrap();
            for length in [0, 1, 7, 8, 9, 4095, 4096, 4097, 10_000] {
                let (mut one, mut two) = (vec![1; length], vec![2; length]);
                filler.fill(mix64(5), &mut one, 0);
                filler.fill(mix64(5), &mut two, 0);
                assert_eq!(one, two, "{length} bytes");
                filler.fill(mix64(6), &mut two, 0);
                assert!(length < 8 || one != two, "{length} bytes");
            }
        }
    }

    #[test]
    fn what_is_taken_is_left_alone() {
        for share in [0.0, 0.4, 1.0] {
            let filler = Filler::new(share).unwrap();
            for (length, taken) in [(8, 8), (31, 16), (32, 32), (100, 32), (5000, 32)] {
                let (mut one, mut two) = (vec![1; length], vec![2; length]);
                filler.fill(mix64(5), &mut one, taken);
                filler.fill(mix64(5), &mut two, taken);
                assert_eq!(one[taken..], two[taken..], "{length} bytes");
                // The run at the end is longer than what the stamp leaves of the rest.
                let run = (share * length.min(CHUNK) as f64).round() as usize;
                let left = taken.min(length.min(CHUNK) - run);
                assert!(one[..left].iter().all(|&byte| byte == 1), "{length} bytes");
            }
        }
    }

    #[test]
    fn random_bytes_are_even() {
        let mut counts = [0u32; 256];
        let mut bytes = vec![0; 1 << 20];
        Filler::new(0.0).unwrap().fill(mix64(1), &mut bytes, 0);
        for byte in bytes {
            counts[usize::from(byte)] += 1;
        }
        // Expected 4,096, standard deviation 64.
        assert!(counts.iter().all(|&count| count.abs_diff(4096) < 300), "{counts:?}");
    }

    #[test]
    fn wrong_shares_are_refused() {
        for share in [-0.1, 1.1, f64::NAN] {
            let said = Filler::new(share).unwrap_err().to_string();
            assert!(said.starts_with("the compressible share of values is "), "{said}");
        }
    }
}

//! MurmurHash by Austin Appleby (public domain, github.com/aappleby/smhasher), in the two versions that clients place keys
//! by.

/// MurmurHash64A (MurmurHash2.cpp), a hash of 64 bits.
pub(super) fn murmur64a(bytes: &[u8], seed: u64) -> u64 {
    const M: u64 = 0xc6a4_a793_5bd1_e995;
    let mut hash = seed ^ (bytes.len() as u64).wrapping_mul(M);
    let (blocks, rest) = bytes.as_chunks::<8>();
    for block in blocks {
        let mut word = u64::from_le_bytes(*block).wrapping_mul(M);
        word ^= word >> 47;
        hash = (hash ^ word.wrapping_mul(M)).wrapping_mul(M);
    }
    if !rest.is_empty() {
        let mut last = [0; 8];
        last[..rest.len()].copy_from_slice(rest);
        hash = (hash ^ u64::from_le_bytes(last)).wrapping_mul(M);
    }
    hash = (hash ^ (hash >> 47)).wrapping_mul(M);
    hash ^ (hash >> 47)
}

/// MurmurHash3 for 32 bits (MurmurHash3.cpp, `MurmurHash3_x86_32`) with the seed 0, of which bytes are fed one by one.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Murmur3 {
    hash: u32,
    /// Bytes of a word that is not whole yet.
    word: u32,
    length: u32,
}

impl Murmur3 {
    /// Feeds more bytes.
    pub(super) fn feed(mut self, bytes: &[u8]) -> Murmur3 {
        for byte in bytes {
            self.word |= u32::from(*byte) << (8 * (self.length % 4));
            self.length += 1;
            if self.length.is_multiple_of(4) {
                self.hash = (self.hash ^ scramble(self.word))
                    .rotate_left(13)
                    .wrapping_mul(5)
                    .wrapping_add(0xe654_6b64);
                self.word = 0;
            }
        }
        self
    }

    /// Returns the hash of all bytes that were fed.
    pub(super) fn finish(self) -> u32 {
        let mut hash = self.hash ^ scramble(self.word) ^ self.length;
        hash = (hash ^ (hash >> 16)).wrapping_mul(0x85eb_ca6b);
        hash = (hash ^ (hash >> 13)).wrapping_mul(0xc2b2_ae35);
        hash ^ (hash >> 16)
    }
}

fn scramble(word: u32) -> u32 {
    word.wrapping_mul(0xcc9e_2d51).rotate_left(15).wrapping_mul(0x1b87_3593)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_are_those_that_are_published() {
        // By the tables of tests that other authors keep: Wikipedia's of MurmurHash3, seed 0.
        let murmur3 = |text: &str| Murmur3::default().feed(text.as_bytes()).finish();
        assert_eq!(murmur3(""), 0);
        assert_eq!(murmur3("test"), 0xba6b_d213);
        assert_eq!(murmur3("Hello, world!"), 0xc036_3e43);
        assert_eq!(murmur3("The quick brown fox jumps over the lazy dog"), 0x2e4f_f723);
    }

    #[test]
    fn bytes_may_come_in_parts() {
        let whole = Murmur3::default().feed(b"host:1-key").finish();
        assert_eq!(Murmur3::default().feed(b"host:1").feed(b"-").feed(b"key").finish(), whole);
    }
}

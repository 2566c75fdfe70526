//! A hash that is the same in every build, for names that outlive a program and for what other tools compute alike.

/// Returns the FNV-1a hash of some bytes, 64 bits (draft-eastlake-fnv).
#[must_use]
pub fn fnv_1a(bytes: impl IntoIterator<Item = u8>) -> u64 {
    bytes.into_iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(1_099_511_628_211)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Test vectors of the draft.
    #[test]
    fn hashes_are_those_of_the_draft() {
        let hashes = ["", "a", "foobar"].map(|text| fnv_1a(text.bytes()));
        assert_eq!(hashes, [0xcbf2_9ce4_8422_2325, 0xaf63_dc4c_8601_ec8c, 0x8594_4171_f739_67e8]);
    }
}

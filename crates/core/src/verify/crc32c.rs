//! CRC-32C (RFC 3720) of a value. Values of a few hundred bytes are what most runs have: for these the
//! processor's own instruction is called here, word by word, for the library's way to it, made for
//! kilobytes, takes 110 instructions more (of some 1,000 of a whole operation of `null:`).

/// Longest that is not left to the library, which has three sums under way at once from here on.
const SHORT: usize = 768;

/// Goes on with a checksum: `crc` is that of what came before `bytes`, 0 if nothing did.
#[inline]
pub(super) fn append(crc: u32, bytes: &[u8]) -> u32 {
    #[cfg(target_arch = "x86_64")]
    if bytes.len() < SHORT && is_x86_feature_detected!("sse4.2") {
        // SAFETY: the processor has the instruction, as was asked just now.
        return unsafe { append_short(crc, bytes) };
    }
    crc32c::crc32c_append(crc, bytes)
}

/// As [`append`], of words that are little endian in the value: from registers, none waits for its way
/// through memory.
#[inline]
pub(super) fn append_words(crc: u32, words: &[u64]) -> u32 {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("sse4.2") {
        // SAFETY: the processor has the instruction, as was asked just now.
        return unsafe { append_registers(crc, words) };
    }
    words.iter().fold(crc, |crc, word| crc32c::crc32c_append(crc, &word.to_le_bytes()))
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "sse4.2")]
#[inline]
fn append_registers(crc: u32, words: &[u64]) -> u32 {
    use std::arch::x86_64::_mm_crc32_u64;

    !words.iter().fold(u64::from(!crc), |state, word| _mm_crc32_u64(state, *word)) as u32
}

/// Fills `bytes` with the words that `next` makes, and goes on with the checksum by them: in one go, for a
/// sum of what was only just stored waits for it to come back from there. Of the last word as many bytes
/// are taken as there is room for.
#[inline]
pub(super) fn append_made(crc: u32, bytes: &mut [u8], next: impl FnMut() -> u64) -> u32 {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("sse4.2") {
        // SAFETY: the processor has the instruction, as was asked just now.
        return unsafe { append_made_here(crc, bytes, next) };
    }
    make(bytes, next);
    append(crc, bytes)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "sse4.2")]
#[inline]
fn append_made_here(crc: u32, bytes: &mut [u8], mut next: impl FnMut() -> u64) -> u32 {
    use std::arch::x86_64::_mm_crc32_u64;

    let (words, rest) = bytes.as_chunks_mut::<8>();
    let mut state = u64::from(!crc);
    for word in words {
        let made = next();
        *word = made.to_le_bytes();
        state = _mm_crc32_u64(state, made);
    }
    make(rest, next);
    append_short(!(state as u32), rest)
}

#[inline]
fn make(bytes: &mut [u8], mut next: impl FnMut() -> u64) {
    for word in bytes.chunks_mut(8) {
        word.copy_from_slice(&next().to_le_bytes()[..word.len()]);
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "sse4.2")]
fn append_short(crc: u32, bytes: &[u8]) -> u32 {
    use std::arch::x86_64::{_mm_crc32_u8, _mm_crc32_u32, _mm_crc32_u64};

    let (words, rest) = bytes.as_chunks::<8>();
    let (halves, rest) = rest.as_chunks::<4>();
    let state = words
        .iter()
        .fold(u64::from(!crc), |state, word| _mm_crc32_u64(state, u64::from_le_bytes(*word)))
        as u32;
    let state =
        halves.iter().fold(state, |state, half| _mm_crc32_u32(state, u32::from_le_bytes(*half)));
    !rest.iter().fold(state, |state, byte| _mm_crc32_u8(state, *byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_the_checksum_of_the_rfc_at_every_length() {
        // RFC 3720, B.4: 32 bytes of zeroes, and those from 0 to 31.
        assert_eq!(append(0, &[0; 32]), 0x8a91_36aa);
        assert_eq!(append(0, &std::array::from_fn::<u8, 32, _>(|i| i as u8)), 0x46dd_794e);
        let bytes: Vec<u8> = (0..2 * SHORT).map(|i| (i * 31 + i / 7) as u8).collect();
        for start in 0..9 {
            for end in start..=bytes.len() {
                let (crc, part) = (end as u32 * 0x9e37, &bytes[start..end]);
                assert_eq!(append(crc, part), crc32c::crc32c_append(crc, part), "{start}..{end}");
            }
        }
        let words = [7, u64::MAX, 1 << 40];
        let bytes = words.map(u64::to_le_bytes);
        assert_eq!(append_words(5, &words), append(5, bytes.as_flattened()));
    }
}

//! CRC-32C (RFC 3720) of a value. Most runs have values of a few hundred bytes. For these the processor's
//! own instruction is called here, word by word: the library, which is made for kilobytes, takes 110
//! instructions more (of some 1,000 of a whole operation of `null:`).

/// Length in bytes from which on a value is left to the library, which then computes three sums at once.
const SHORT: usize = 768;

/// Continues a checksum with `bytes`. `crc` is the checksum of what came before them, 0 if nothing did.
#[inline]
pub(super) fn append(crc: u32, bytes: &[u8]) -> u32 {
    #[cfg(target_arch = "x86_64")]
    if bytes.len() < SHORT && is_x86_feature_detected!("sse4.2") {
        // SAFETY: the processor has the instruction, as was asked just now.
        return unsafe { append_short(crc, bytes) };
    }
    crc32c::crc32c_append(crc, bytes)
}

/// Continues a checksum with `words`, little endian in the value, and then with `bytes`, which it fills with
/// the pairs of words that `next` makes. It does both in one go, because a sum over what was only just
/// stored waits for it to come back from memory. The last pair gives as many bytes as there is room for.
#[inline]
pub(super) fn append_made(
    crc: u32,
    words: &[u64; 3],
    bytes: &mut [u8],
    next: impl FnMut() -> [u64; 2],
) -> u32 {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("sse4.2") {
        // SAFETY: the processor has the instruction, as was asked just now.
        return unsafe { append_made_here(crc, words, bytes, next) };
    }
    make(bytes, next);
    let crc = words.iter().fold(crc, |crc, word| crc32c::crc32c_append(crc, &word.to_le_bytes()));
    crc32c::crc32c_append(crc, bytes)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "sse4.2")]
#[inline]
fn append_made_here(
    crc: u32,
    words: &[u64; 3],
    bytes: &mut [u8],
    mut next: impl FnMut() -> [u64; 2],
) -> u32 {
    use std::arch::x86_64::_mm_crc32_u64;

    let mut state = u64::from(!crc);
    for word in words {
        state = _mm_crc32_u64(state, *word);
    }
    let (pairs, rest) = bytes.as_chunks_mut::<16>();
    for pair in pairs {
        let [first, second] = next();
        pair[..8].copy_from_slice(&first.to_le_bytes());
        pair[8..].copy_from_slice(&second.to_le_bytes());
        state = _mm_crc32_u64(_mm_crc32_u64(state, first), second);
    }
    if rest.is_empty() { !(state as u32) } else { append_last(state as u32, rest, next()) }
}

/// Stores and sums the part of a pair of words that there is room for. It goes by eights, fours and single
/// bytes: a copy of a length that the compiler does not know would be a call.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "sse4.2")]
#[inline]
fn append_last(mut state: u32, bytes: &mut [u8], [first, second]: [u64; 2]) -> u32 {
    use std::arch::x86_64::{_mm_crc32_u8, _mm_crc32_u32, _mm_crc32_u64};

    let mut word = first;
    let (whole, rest) = bytes.as_chunks_mut::<8>();
    if let Some(whole) = whole.first_mut() {
        *whole = word.to_le_bytes();
        state = _mm_crc32_u64(state.into(), word) as u32;
        word = second;
    }
    let (half, rest) = rest.as_chunks_mut::<4>();
    if let Some(half) = half.first_mut() {
        *half = (word as u32).to_le_bytes();
        state = _mm_crc32_u32(state, word as u32);
        word >>= 32;
    }
    for byte in rest {
        *byte = word as u8;
        state = _mm_crc32_u8(state, *byte);
        word >>= 8;
    }
    !state
}

#[inline]
fn make(bytes: &mut [u8], mut next: impl FnMut() -> [u64; 2]) {
    for pair in bytes.chunks_mut(16) {
        let made = next().map(u64::to_le_bytes);
        pair.copy_from_slice(&made.as_flattened()[..pair.len()]);
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "sse4.2")]
#[inline]
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
    }

    #[test]
    fn what_is_made_is_stored_and_summed_at_every_length() {
        let words = [7, u64::MAX, 1 << 40];
        let start = append(5, words.map(u64::to_le_bytes).as_flattened());
        for length in 0..200 {
            let pairs = || {
                let mut last = 0x0123_4567_89ab_cdef_u64;
                move || {
                    last = last.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(1);
                    [last, !last.rotate_left(17)]
                }
            };
            let (mut one, mut two) = (vec![1; length], vec![2; length]);
            let sum = append_made(5, &words, &mut one, pairs());
            make(&mut two, pairs());
            assert_eq!((&one, sum), (&two, append(start, &two)), "{length} bytes");
        }
    }
}

//! Keys: a one-to-one function from a record's number to bytes, and back.

use super::invalid::{self, PlanError};
use super::plan::{KeyForm, KeyModel};
use crate::ground::random::{GOLDEN, Permutation, derive_seed, mix64, unmix64};

/// Hexadecimal digits of 64 bits.
const WORD: usize = 16;
/// Decimal digits written at once.
const EIGHT: usize = 8;

/// Purposes of the seeds that a dataset's number gives.
const START: u64 = 1;
const REST: u64 = 2;

/// Writes and reads the keys of one dataset.
#[derive(Clone, Debug)]
pub struct KeyWriter {
    length: usize,
    capacity: u64,
    form: Form,
}

#[derive(Clone, Debug)]
enum Form {
    Decimal,
    /// Fewer digits than 64 bits have: a shuffle of the numbers that these digits can write.
    ShortHash(Permutation),
    /// The first 16 digits are a hash that names the record; `rest` is the seed of the further digits, made from them.
    LongHash {
        start: u64,
        rest: u64,
    },
    /// Digits of `LongHash`, cut to a length that the first digits give.
    Varied {
        start: u64,
        rest: u64,
    },
}

impl KeyWriter {
    /// Makes the writer of a dataset's keys. Hash keys differ between datasets; decimal ones are the same for all.
    ///
    /// # Errors
    /// [`PlanError::Count`] if the length is not 8 to 250 bytes.
    pub fn new(model: KeyModel, dataset: u32) -> Result<Self, PlanError> {
        invalid::count("the key length", u64::from(model.length), 8, 250)?;
        if model.form == KeyForm::Varied {
            invalid::count("the longest key", u64::from(model.length), WORD as u64, 250)?;
        }
        let length = usize::from(model.length);
        let seed = |purpose| derive_seed(u64::from(dataset), purpose);
        let (form, capacity) = match model.form {
            KeyForm::Decimal => {
                (Form::Decimal, 10u64.checked_pow(length as u32).unwrap_or(u64::MAX))
            }
            KeyForm::Hash if length < WORD => {
                let capacity = 1 << (4 * length);
                (Form::ShortHash(Permutation::new(capacity, seed(START))), capacity)
            }
            KeyForm::Hash => (Form::LongHash { start: seed(START), rest: seed(REST) }, 1 << 63),
            KeyForm::Varied => (Form::Varied { start: seed(START), rest: seed(REST) }, 1 << 63),
        };
        Ok(KeyWriter { length, capacity, form })
    }

    /// Returns the number of records that such keys can name: 10^length or 16^length, at most 2^64 - 1 for decimal
    /// keys and 2^63 for hash keys.
    #[must_use]
    pub fn capacity(&self) -> u64 {
        self.capacity
    }

    /// Returns the bytes of a key; of the longest one where they vary.
    #[must_use]
    #[inline]
    pub fn length(&self) -> usize {
        self.length
    }

    /// Returns the record of an absent key: the n-th of the upper half of the numbers that keys can name. A workload
    /// with absent keys leaves that half free.
    #[inline]
    #[must_use]
    pub fn absent(&self, n: u64) -> u64 {
        let half = self.capacity / 2;
        half + n % (self.capacity - half)
    }

    /// Replaces what `key` holds by the key of `record`, which must be below
    /// [`KeyWriter::capacity`]; a greater number loses its upper digits.
    #[inline]
    pub fn write(&self, record: u64, key: &mut Vec<u8>) {
        if key.len() != self.length {
            key.clear();
            key.resize(self.length, b'0');
        }
        match &self.form {
            Form::Varied { start, rest } => {
                let first = mix64(record.wrapping_add(*start));
                key.truncate(self.varied_length(first));
                write_words(first, *rest, key);
            }
            Form::Decimal => write_decimal(record, key),
            Form::ShortHash(shuffle) => {
                let digits = word_digits(shuffle.apply(record & (self.capacity - 1)));
                key.copy_from_slice(&digits[WORD - self.length..]);
            }
            Form::LongHash { start, rest } => {
                write_words(mix64(record.wrapping_add(*start)), *rest, key);
            }
        }
    }

    /// Returns the length of the varied key that begins with the digits of `first`.
    #[inline]
    fn varied_length(&self, first: u64) -> usize {
        // Other bits than those that tell the records' neighbours apart.
        WORD + (mix64(first) % (self.length - WORD + 1) as u64) as usize
    }

    /// Returns the record of which `key` is the key; `None` if it is no key of this dataset.
    #[must_use]
    #[inline]
    pub fn parse(&self, key: &[u8]) -> Option<u64> {
        let length = match self.form {
            Form::Varied { .. } => self.varied_length(parse_hexadecimal(key.get(..WORD)?)?),
            _ => self.length,
        };
        if key.len() != length {
            return None;
        }
        let record = match &self.form {
            Form::Decimal => parse_decimal(key)?,
            Form::ShortHash(shuffle) => shuffle.invert(parse_hexadecimal(key)?),
            Form::LongHash { start, rest } | Form::Varied { start, rest } => {
                let (first, others) = key.split_at(WORD);
                let first = parse_hexadecimal(first)?;
                let mut words = others.chunks(WORD).zip(1..);
                let alike = |(digits, n): (&[u8], u64)| {
                    digits == &word_digits(further_word(first, *rest, n))[..digits.len()]
                };
                words.all(alike).then(|| unmix64(first).wrapping_sub(*start))?
            }
        };
        (record < self.capacity).then_some(record)
    }
}

/// Writes eight digits at a time from the end on, for as long as there are any but zeros; the upper digits of a
/// number too long for `key` are lost.
#[inline]
fn write_decimal(record: u64, key: &mut [u8]) {
    let (mut end, mut left) = (key.len(), record);
    while left > 0 && end >= EIGHT {
        key[end - EIGHT..end].copy_from_slice(&eight_digits((left % 100_000_000) as u32));
        (end, left) = (end - EIGHT, left / 100_000_000);
    }
    let first = &mut key[..end];
    if left > 0 {
        first.copy_from_slice(&eight_digits((left % 100_000_000) as u32)[EIGHT - end..]);
    } else {
        first.fill(b'0');
    }
}

/// Returns the decimal digits of a number below 10^8. Splits it in halves, fourths and eighths, each in its own lane
/// of a word; 10,486 / 2^20 and 103 / 2^10 stand for 1 / 100 and 1 / 10 (exact for the values that a lane can have).
#[inline]
fn eight_digits(number: u32) -> [u8; EIGHT] {
    let halves = u64::from(number / 10_000) | (u64::from(number % 10_000) << 32);
    let upper = ((halves * 10_486) >> 20) & 0x0000_007f_0000_007f;
    let fourths = upper | ((halves - 100 * upper) << 16);
    let upper = ((fourths * 103) >> 10) & 0x000f_000f_000f_000f;
    let eighths = upper | ((fourths - 10 * upper) << 8);
    (eighths | 0x3030_3030_3030_3030).to_le_bytes()
}

#[inline]
fn parse_decimal(key: &[u8]) -> Option<u64> {
    key.iter().try_fold(0u64, |number, &digit| {
        if !digit.is_ascii_digit() {
            return None;
        }
        number.checked_mul(10)?.checked_add(u64::from(digit - b'0'))
    })
}

/// Writes the word `first` and the words made from it; `key` is at least 16 bytes long.
#[inline]
fn write_words(first: u64, rest: u64, key: &mut [u8]) {
    let Some((digits, others)) = key.split_first_chunk_mut() else { return };
    *digits = word_digits(first);
    if !others.is_empty() {
        write_further_words(first, rest, others);
    }
}

#[inline]
fn write_further_words(first: u64, rest: u64, key: &mut [u8]) {
    let (words, end) = key.as_chunks_mut::<WORD>();
    let mut n = 1;
    for digits in words {
        *digits = word_digits(further_word(first, rest, n));
        n += 1;
    }
    if !end.is_empty() {
        end.copy_from_slice(&word_digits(further_word(first, rest, n))[..end.len()]);
    }
}

/// Returns the n-th word after the first.
#[inline]
fn further_word(first: u64, rest: u64, n: u64) -> u64 {
    mix64(first ^ rest.wrapping_add(n.wrapping_mul(GOLDEN)))
}

/// Returns the 16 hexadecimal digits of a word, the highest first: its nibbles in a byte each, to which '0' is added,
/// or for those from 10 on the distance to 'a'. It is a part of the cost of each operation: vectors, which every
/// x86-64 processor has, take a third of the instructions.
#[cfg(target_arch = "x86_64")]
#[inline]
fn word_digits(word: u64) -> [u8; WORD] {
    use std::arch::x86_64::{
        _mm_add_epi8, _mm_and_si128, _mm_cmpgt_epi8, _mm_cvtsi64_si128, _mm_cvtsi128_si64,
        _mm_set1_epi8, _mm_srli_epi16, _mm_unpackhi_epi64, _mm_unpacklo_epi8,
    };
    // SAFETY: every x86-64 processor has SSE2, and nothing here touches memory.
    let halves = unsafe {
        let bytes = _mm_cvtsi64_si128(word.swap_bytes().cast_signed());
        let nibble = _mm_set1_epi8(0x0f);
        let upper = _mm_and_si128(_mm_srli_epi16::<4>(bytes), nibble);
        let nibbles = _mm_unpacklo_epi8(upper, _mm_and_si128(bytes, nibble));
        let is_letter = _mm_cmpgt_epi8(nibbles, _mm_set1_epi8(9));
        let to_letter = _mm_and_si128(is_letter, _mm_set1_epi8((b'a' - b'0' - 10).cast_signed()));
        let zero = _mm_set1_epi8(b'0'.cast_signed());
        let all = _mm_add_epi8(_mm_add_epi8(nibbles, zero), to_letter);
        [_mm_cvtsi128_si64(all), _mm_cvtsi128_si64(_mm_unpackhi_epi64(all, all))]
    };
    let mut digits = [0; WORD];
    digits[..8].copy_from_slice(&halves[0].to_le_bytes());
    digits[8..].copy_from_slice(&halves[1].to_le_bytes());
    digits
}

/// Returns the 16 hexadecimal digits of a word, the highest first.
#[cfg(not(target_arch = "x86_64"))]
#[inline]
fn word_digits(word: u64) -> [u8; WORD] {
    let nibble = |place: usize| (word >> (60 - 4 * place)) as usize & 0xf;
    std::array::from_fn(|place| b"0123456789abcdef"[nibble(place)])
}

/// Parses at most 16 lower-case hexadecimal digits.
#[inline]
fn parse_hexadecimal(digits: &[u8]) -> Option<u64> {
    digits.iter().try_fold(0, |number, &digit| {
        let value = match digit {
            b'0'..=b'9' => digit - b'0',
            b'a'..=b'f' => digit - b'a' + 10,
            _ => return None,
        };
        Some((number << 4) | u64::from(value))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    const FORMS: [KeyForm; 2] = [KeyForm::Decimal, KeyForm::Hash];
    const LENGTHS: [u16; 12] = [8, 9, 10, 15, 16, 17, 19, 20, 24, 32, 33, 250];

    fn writer(form: KeyForm, length: u16) -> KeyWriter {
        KeyWriter::new(KeyModel { form, length }, 7).unwrap()
    }

    fn key(writer: &KeyWriter, record: u64) -> Vec<u8> {
        let mut key = vec![b'x'; 3];
        writer.write(record, &mut key);
        key
    }

    #[test]
    fn keys_are_one_to_one_and_parsed() {
        for (form, length) in FORMS.iter().flat_map(|&f| LENGTHS.map(|length| (f, length))) {
            let writer = writer(form, length);
            let mut seen = HashSet::new();
            let mut written = vec![];
            let top = writer.capacity() - 1;
            let records = (0..20_000).chain([top, top / 2, top / 3, top - 1, 12_345_678]);
            for record in records {
                writer.write(record, &mut written);
                assert_eq!(written.len(), usize::from(length));
                assert_eq!(writer.parse(&written), Some(record), "{form:?} {length}");
                assert!(seen.insert(written.clone()));
            }
        }
    }

    #[test]
    fn varied_keys_have_every_length_and_come_back() {
        let writer = writer(KeyForm::Varied, 64);
        let (mut written, mut lengths, mut seen) = (vec![], HashSet::new(), HashSet::new());
        for record in 0..20_000 {
            writer.write(record, &mut written);
            lengths.insert(written.len());
            assert_eq!(writer.parse(&written), Some(record));
            assert_eq!(writer.parse(&written[..written.len() - 1]), None);
            assert_eq!(writer.parse(&[&written[..], b"0"].concat()), None);
            assert!(seen.insert(written.clone()));
        }
        assert!((16..=64).all(|length| lengths.contains(&length)) && lengths.len() == 49);
        let short = KeyModel { form: KeyForm::Varied, length: 15 };
        assert!(KeyWriter::new(short, 1).is_err());
    }

    #[test]
    fn decimal_keys_are_padded_numbers() {
        let mut random = crate::workload::Random::new(1, 1);
        for length in LENGTHS {
            let writer = writer(KeyForm::Decimal, length);
            for shift in 0..64 {
                let record = (random.next_u64() >> shift) % writer.capacity();
                let expected = format!("{record:0width$}", width = usize::from(length));
                assert_eq!(key(&writer, record), expected.as_bytes());
            }
        }
    }

    #[test]
    fn hash_keys_are_hexadecimal() {
        let mut random = crate::workload::Random::new(2, 1);
        for word in (0..1000).map(|_| random.next_u64()).chain([0, u64::MAX, 0x0123_4567_89ab_cdef])
        {
            assert_eq!(word_digits(word), format!("{word:016x}").as_bytes());
        }
        let key = String::from_utf8(key(&writer(KeyForm::Hash, 32), 1)).unwrap();
        assert_ne!(key[..16], key[16..]);
    }

    /// Record numbers that follow each other give keys that are spread over the key space.
    #[test]
    fn hash_keys_are_spread() {
        for length in [8, 16, 32] {
            let writer = writer(KeyForm::Hash, length);
            let mut counts = vec![[0u32; 256]; usize::from(length)];
            for record in 0..64_000 {
                for (place, digit) in key(&writer, record).into_iter().enumerate() {
                    counts[place][usize::from(digit)] += 1;
                }
            }
            for digits in counts {
                // Expected 4,000 of each of the 16 digits, standard deviation 61.
                let seen: Vec<u32> = digits.into_iter().filter(|&count| count > 0).collect();
                assert_eq!(seen.len(), 16);
                assert!(seen.iter().all(|&c| c.abs_diff(4000) < 300), "{length}: {seen:?}");
            }
        }
    }

    #[test]
    fn datasets_have_keys_of_their_own() {
        for length in [8, 16, 32] {
            let model = KeyModel { form: KeyForm::Hash, length };
            let (one, two) = (KeyWriter::new(model, 1).unwrap(), KeyWriter::new(model, 2).unwrap());
            let same = (0..1000).filter(|&record| key(&one, record) == key(&two, record));
            assert_eq!(same.count(), 0);
        }
        let model = KeyModel { form: KeyForm::Hash, length: 16 };
        let (one, two) = (KeyWriter::new(model, 1).unwrap(), KeyWriter::new(model, 2).unwrap());
        assert!((0..1000).all(|record| two.parse(&key(&one, record)).is_none_or(|r| r > 1 << 40)));
    }

    #[test]
    fn what_is_never_written_is_no_key() {
        for (form, length) in FORMS.iter().flat_map(|&f| LENGTHS.map(|length| (f, length))) {
            let writer = writer(form, length);
            let good = key(&writer, 1234);
            assert_eq!(writer.parse(&good[1..]), None);
            assert_eq!(writer.parse(&[&good[..], b"0"].concat()), None);
            assert_eq!(writer.parse(b""), None);
            for place in 0..good.len() {
                for wrong in [b'A', b'g', b'/', b':', b'`', b' ', 0, 0xff] {
                    let mut bad = good.clone();
                    bad[place] = wrong;
                    assert_eq!(writer.parse(&bad), None, "{form:?} {length}");
                }
                // Another digit gives no key, or that of another record.
                let mut bad = good.clone();
                bad[place] = if bad[place] == b'1' { b'2' } else { b'1' };
                if let Some(record) = writer.parse(&bad) {
                    assert_eq!(key(&writer, record), bad);
                }
            }
        }
        let long = writer(KeyForm::Decimal, 20);
        assert_eq!(long.parse(b"18446744073709551614"), Some(u64::MAX - 1));
        assert_eq!(long.parse(b"18446744073709551615"), None);
        assert_eq!(long.parse(b"18446744073709551616"), None);
        assert_eq!(long.parse(b"99999999999999999999"), None);
    }

    #[test]
    fn absent_keys_lie_in_the_upper_half() {
        for (form, length) in FORMS.iter().flat_map(|&f| LENGTHS.map(|length| (f, length))) {
            let writer = writer(form, length);
            let half = writer.capacity() / 2;
            for n in [0, 1, 1000, half, u64::MAX] {
                assert!((half..writer.capacity()).contains(&writer.absent(n)));
            }
            assert_ne!(writer.absent(0), writer.absent(1));
        }
    }

    #[test]
    fn capacities_are_those_of_the_digits() {
        assert_eq!(writer(KeyForm::Decimal, 8).capacity(), 100_000_000);
        assert_eq!(writer(KeyForm::Decimal, 19).capacity(), 10_000_000_000_000_000_000);
        assert_eq!(writer(KeyForm::Decimal, 20).capacity(), u64::MAX);
        assert_eq!(writer(KeyForm::Hash, 8).capacity(), 1 << 32);
        assert_eq!(writer(KeyForm::Hash, 16).capacity(), 1 << 63);
        assert_eq!(writer(KeyForm::Hash, 250).capacity(), 1 << 63);
    }

    #[test]
    fn wrong_lengths_are_refused() {
        for length in [0, 7, 251, u16::MAX] {
            let said = KeyWriter::new(KeyModel { form: KeyForm::Hash, length }, 1).unwrap_err();
            assert_eq!(
                said.to_string(),
                format!("the key length is {length}; it must be 8 to 250")
            );
        }
    }
}

//! The stamp that every value carries, so that a read can be checked by its bytes alone. It tells record, field,
//! version, dataset and run of the value, and shows if a bit has changed.
//!
//! The form depends on the length of the value (of the field, where a record has several). Numbers are little endian.
//!
//! | form  | length  | at the front of the value |
//! | ----- | ------- | ------------------------- |
//! | full  | ≥ 32    | checksum u32, magic u16, field u16, length u32, dataset u32, record u64, session u32, version u32 |
//! | short | 16…31   | checksum u32 salted with dataset, field, length, record (high 32 bits); version u32, session u32, record (low 32 bits) u32 |
//! | tiny  | 8…15    | checksum u32 salted with dataset, record, field, length; version u32 |
//!
//! The checksum is a CRC-32C (RFC 3720) of every byte behind it, to which the salt is the state to
//! begin from. It comes first so that one call computes it; the full form takes its second word
//! as the state, so that the rest is aligned when the value is. A changed state, as a changed bit,
//! always changes the sum, and salts of records with the same high bits differ.
//!
//! A session's number grows with time (and is compared around the end of its 32 bits), so that a value tells
//! whether an earlier run wrote it or one that began later.
//!
//! A store that answers without storing fabricates values: checksum, a hash of the key asked for, and in full forms the
//! length's complement (which no stamp has in its place) and magic of its own. The checksum leaves the hash out, so that
//! one template serves all keys.

use std::fmt;

use super::crc32c;
use crate::ground::random::{GOLDEN, mix64_high};

/// Fewest bytes of a value that can carry a stamp.
pub const SMALLEST: usize = 8;

const SHORT: usize = 16;
const FULL: usize = 32;
const MAGIC: u16 = 0x4b9d;
const MAGIC_FABRICATED: u32 = 0x7cfa_4b9d;
const LOW: u64 = 0xffff_ffff;

/// Form of a stamp: how much of it a value has room for, by its length.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Form {
    /// Form of values of 8 to 15 bytes.
    Tiny,
    /// Form of values of 16 to 31 bytes.
    Short,
    /// Form of values of 32 bytes and more: everything can be seen.
    Full,
}

impl Form {
    /// Returns the form for a value of `length` bytes; `None` below [`SMALLEST`].
    #[must_use]
    #[inline]
    pub fn of(length: usize) -> Option<Form> {
        match length {
            0..SMALLEST => None,
            SMALLEST..SHORT => Some(Form::Tiny),
            SHORT..FULL => Some(Form::Short),
            _ => Some(Form::Full),
        }
    }

    /// Lists for the user what a value of this form cannot show, one line each.
    #[must_use]
    pub fn cannot_see(self) -> &'static [&'static str] {
        match self {
            Form::Full => &[],
            Form::Short => &[
                "values of 16 to 31 bytes: a value of another dataset or field, or one that was cut short, is \
                 reported as corrupt only, because their short stamp does not tell these apart",
            ],
            Form::Tiny => &[
                "values of 8 to 15 bytes: a value of another dataset, record or field, or one that was cut short, is \
                 reported as corrupt only, because their short stamp does not tell these apart",
                "values of 8 to 15 bytes: a value that another run wrote, before or meanwhile, cannot be detected, \
                 because their short stamp does not name the run; it passes if its version is one that a read may \
                 return, and counts as a mistake of the store otherwise",
            ],
        }
    }
}

/// Identity of a value, as its stamp tells it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity {
    /// Number of the dataset: it tells values of this one from those of any other.
    pub dataset: u32,
    /// Number of the session: it tells this run's writes from those of other runs over the same dataset. A later run
    /// has a higher one.
    pub session: u32,
    /// Number of the record.
    pub record: u64,
    /// Number of the field, from 0.
    pub field: u16,
    /// Version of the record, or of the field where fields are written apart.
    pub version: u32,
}

/// Identity that a reader expects of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Expected<'a> {
    /// The run's dataset.
    pub dataset: u32,
    /// The run's session.
    pub session: u32,
    /// Number of the record.
    pub record: u64,
    /// Number of the field, from 0.
    pub field: u16,
    /// Key for which the value must be fabricated, of a store that answers without storing: no other value passes.
    /// `None` for every store that stores; then nothing fabricated passes.
    pub fabricated_key: Option<&'a [u8]>,
}

/// Run that wrote a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum WriterRun {
    /// This run.
    Ours,
    /// A run over the same dataset that began before this one.
    Earlier,
    /// A run that is not known: the value is too short to say ([`Form::Tiny`]).
    Unseen,
    /// A run over the same dataset that began after this one.
    Newer,
}

/// Version and writer that a sound stamp told. They are one word and not three fields: fields would be stored one by
/// one and loaded together, and such a load waits until all earlier stores are done.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct SeenStamp(u64);

impl SeenStamp {
    const FABRICATED: u64 = 1 << 34;
    const APART: u32 = 35;

    #[inline]
    pub(super) fn of(version: u32, session: WriterRun) -> SeenStamp {
        SeenStamp(u64::from(version) | (session as u64) << 32)
    }

    /// Returns the session that wrote the value, of a run whose own session is `ours`, if they are within 310 days.
    #[must_use]
    pub fn writer(self, ours: u32) -> u32 {
        ours.wrapping_add((self.0 as i64 >> SeenStamp::APART) as u32)
    }

    /// Returns the version of the value.
    #[inline]
    #[must_use]
    pub fn version(self) -> u32 {
        self.0 as u32
    }

    /// Returns the run that wrote it.
    #[inline]
    #[must_use]
    pub fn session(self) -> WriterRun {
        match (self.0 >> 32) & 3 {
            0 => WriterRun::Ours,
            1 => WriterRun::Earlier,
            2 => WriterRun::Unseen,
            _ => WriterRun::Newer,
        }
    }

    /// Returns true if a store that does not store made the value up. Its version and session say nothing then.
    #[inline]
    #[must_use]
    pub fn is_fabricated(self) -> bool {
        self.0 & SeenStamp::FABRICATED != 0
    }
}

impl fmt::Debug for SeenStamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (version, session, fabricated) = (self.version(), self.session(), self.is_fabricated());
        f.debug_struct("SeenStamp")
            .field("version", &version)
            .field("session", &session)
            .field("fabricated", &fabricated)
            .finish()
    }
}

/// Flaw of a value, as far as its bytes show.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StampFlaw {
    /// The bytes do not begin with a stamp, or are too few to hold one.
    #[error("no stamp in the {length} bytes read")]
    Missing {
        /// Bytes read.
        length: usize,
    },
    /// The stamp tells another length: the value was cut short or extended.
    #[error("{found} bytes read, but the stamp says {stamped}")]
    Length {
        /// Bytes that the value had when it was written.
        stamped: u32,
        /// Bytes read.
        found: usize,
    },
    /// The checksum does not fit the bytes.
    #[error(
        "checksum over the {length} bytes read is {computed:08x}, but the stamp says {stamped:08x}"
    )]
    Checksum {
        /// Checksum in the stamp.
        stamped: u32,
        /// Checksum over the bytes read.
        computed: u32,
        /// Bytes read.
        length: usize,
    },
    /// A sound value of another dataset.
    #[error("the value belongs to dataset {dataset:08x}")]
    OtherDataset {
        /// The other dataset.
        dataset: u32,
    },
    /// A sound value of another record.
    #[error("the value belongs to record {record}")]
    OtherRecord {
        /// The other record.
        record: u64,
    },
    /// A sound value of another field of the record.
    #[error("the value belongs to field {field}")]
    OtherField {
        /// The other field.
        field: u16,
    },
    /// A value fabricated for another key.
    #[error("the value was fabricated for another key")]
    OtherKey,
    /// A whole record's bytes do not divide into its fields.
    #[error("the {length} bytes read do not divide into {fields} fields")]
    Fields {
        /// Bytes read.
        length: usize,
        /// Fields expected.
        fields: u16,
    },
}

/// Run and version that a value claims, for a reader who does not know which record to expect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StampClaim {
    /// Session of the run that wrote it; `None` of [`Form::Tiny`], which does not say.
    pub session: Option<u32>,
    /// Version that the value claims.
    pub version: u32,
}

/// Returns what the stamp in front of a value says, unchecked: for stores that give several values of a record to
/// choose from. `None` if there is no room for a stamp, or if the bytes are no stamp of kvdyno.
#[must_use]
#[inline]
pub fn claim(bytes: &[u8]) -> Option<StampClaim> {
    match Form::of(bytes.len())? {
        Form::Full if get16(bytes, 4) != MAGIC => None,
        Form::Full => {
            Some(StampClaim { session: Some(get32(bytes, 24)), version: get32(bytes, 28) })
        }
        Form::Short => {
            Some(StampClaim { session: Some(get32(bytes, 8)), version: get32(bytes, 4) })
        }
        Form::Tiny => Some(StampClaim { session: None, version: get32(bytes, 4) }),
    }
}

/// Returns the number of bytes that the stamp takes at the front of a value of `length` bytes.
#[must_use]
#[inline]
pub fn taken(length: usize) -> usize {
    match Form::of(length) {
        None => 0,
        Some(Form::Tiny) => SMALLEST,
        Some(Form::Short) => SHORT,
        Some(Form::Full) => FULL,
    }
}

/// Writes the stamp over the front of `bytes`, whose rest is the payload already.
///
/// Fewer than [`SMALLEST`] bytes are left as they are: they cannot carry a stamp.
#[inline]
pub fn seal(bytes: &mut [u8], identity: &Identity) {
    let length = bytes.len();
    match Form::of(length) {
        None => {}
        Some(Form::Full) => {
            let (second, words) = full_words(bytes.len(), identity);
            [8, 16, 24].iter().zip(words).for_each(|(&at, word)| put64(bytes, at, word));
            let sum = crc32c::append(second, &bytes[8..]);
            put64(bytes, 0, u64::from(sum) | u64::from(second) << 32);
        }
        Some(Form::Short) => {
            put32(bytes, 4, identity.version);
            put32(bytes, 8, identity.session);
            put32(bytes, 12, identity.record as u32);
            let high = identity.record & !LOW;
            let salt = salt(identity.dataset, high, identity.field, length);
            put32(bytes, 0, crc32c::append(salt, &bytes[4..]));
        }
        Some(Form::Tiny) => {
            put32(bytes, 4, identity.version);
            let salt = salt(identity.dataset, identity.record, identity.field, length);
            put32(bytes, 0, crc32c::append(salt, &bytes[4..]));
        }
    }
}

/// Makes the payload of a value from the pairs of words that `next` gives, and writes the stamp in front of it, as
/// [`seal`] does. The value must have room for a full stamp.
///
/// # Panics
/// If there is no room for a full stamp.
#[inline(always)]
pub fn seal_made(bytes: &mut [u8], identity: &Identity, next: impl FnMut() -> [u64; 2]) {
    let (second, words) = full_words(bytes.len(), identity);
    let (front, payload) = bytes.split_at_mut(FULL);
    let sum = crc32c::append_made(second, &words, payload, next);
    [8, 16, 24].iter().zip(words).for_each(|(&at, word)| put64(front, at, word));
    put64(front, 0, u64::from(sum) | u64::from(second) << 32);
}

/// Returns the content of a full stamp of a value of `length` bytes: magic and field, behind the checksum, and the
/// three words that follow. They are stored as the words that the checksum reads: a processor hands a store on to a
/// load that is as large, and waits for memory where two stores make up one load.
#[inline(always)]
fn full_words(length: usize, identity: &Identity) -> (u32, [u64; 3]) {
    let words = [
        length as u64 & LOW | u64::from(identity.dataset) << 32,
        identity.record,
        u64::from(identity.session) | u64::from(identity.version) << 32,
    ];
    (u32::from(MAGIC) | u32::from(identity.field) << 16, words)
}

/// Checks a value of one field (or a record without fields) against what was asked for.
///
/// # Errors
/// The flaw of the value. Another record, field or dataset is named only if the checksum fits.
#[inline(always)]
pub fn check(bytes: &[u8], expected: &Expected<'_>) -> Result<SeenStamp, StampFlaw> {
    if let Some(key) = expected.fabricated_key {
        return check_fabricated(bytes, key);
    }
    match Form::of(bytes.len()) {
        Some(Form::Full) => check_full(bytes, expected),
        Some(Form::Short) => check_short(bytes, expected),
        Some(Form::Tiny) => check_tiny(bytes, expected),
        None => Err(StampFlaw::Missing { length: bytes.len() }),
    }
}

#[inline(always)]
fn check_full(bytes: &[u8], expected: &Expected<'_>) -> Result<SeenStamp, StampFlaw> {
    let length = bytes.len();
    if get16(bytes, 4) != MAGIC {
        return Err(StampFlaw::Missing { length });
    }
    let stamped = get32(bytes, 8);
    if stamped as usize != length {
        return Err(StampFlaw::Length { stamped, found: length });
    }
    matches_checksum(bytes, crc32c::append(get32(bytes, 4), &bytes[8..]))?;
    let dataset = get32(bytes, 12);
    if dataset != expected.dataset {
        return Err(StampFlaw::OtherDataset { dataset });
    }
    let record = get64(bytes, 16);
    if record != expected.record {
        return Err(StampFlaw::OtherRecord { record });
    }
    let field = get16(bytes, 6);
    if field != expected.field {
        return Err(StampFlaw::OtherField { field });
    }
    Ok(seen(get32(bytes, 28), get32(bytes, 24), expected))
}

#[inline]
fn check_short(bytes: &[u8], expected: &Expected<'_>) -> Result<SeenStamp, StampFlaw> {
    let high = expected.record & !LOW;
    let salt = salt(expected.dataset, high, expected.field, bytes.len());
    let sound = matches_checksum(bytes, crc32c::append(salt, &bytes[4..]));
    sound.map_err(|flaw| cut(bytes, flaw))?;
    let record = high | u64::from(get32(bytes, 12));
    if record != expected.record {
        return Err(StampFlaw::OtherRecord { record });
    }
    Ok(seen(get32(bytes, 4), get32(bytes, 8), expected))
}

#[inline]
fn check_tiny(bytes: &[u8], expected: &Expected<'_>) -> Result<SeenStamp, StampFlaw> {
    let salt = salt(expected.dataset, expected.record, expected.field, bytes.len());
    let sound = matches_checksum(bytes, crc32c::append(salt, &bytes[4..]));
    sound.map_err(|flaw| cut(bytes, flaw))?;
    Ok(SeenStamp::of(get32(bytes, 4), WriterRun::Unseen))
}

/// Names the former length of a value that was cut to less than a full stamp, if its bytes still tell it; else returns
/// `flaw`.
#[inline]
fn cut(bytes: &[u8], flaw: StampFlaw) -> StampFlaw {
    if bytes.len() < 12 || get16(bytes, 4) != MAGIC || (get32(bytes, 8) as usize) < FULL {
        return flaw;
    }
    StampFlaw::Length { stamped: get32(bytes, 8), found: bytes.len() }
}

/// Makes a value that [`fabricate_for`] turns into any key's with four bytes written, for a store that
/// answers without storing. Fewer than [`SMALLEST`] bytes are left as they are.
pub fn fabricate_template(bytes: &mut [u8]) {
    let length = bytes.len();
    if length < SMALLEST {
        return;
    }
    if length >= FULL {
        put32(bytes, 8, !(length as u32));
        put32(bytes, 12, MAGIC_FABRICATED);
    }
    put32(bytes, 0, fabricated_checksum(bytes));
}

/// Makes a template (see [`fabricate_template`]) the value of `key`.
#[inline]
pub fn fabricate_for(bytes: &mut [u8], key: &[u8]) {
    if bytes.len() >= SMALLEST {
        put32(bytes, 4, key_hash(key));
    }
}

/// Hashes a key, to tell keys apart: a folded multiplication for each 16 bytes, as in Wang Yi's public-domain wyhash.
/// `null:` makes one for each operation, so its cost is part of what `null:` shows as kvdyno's own.
#[inline]
fn key_hash(key: &[u8]) -> u32 {
    const KEYS: [u64; 2] = [0xa076_1d64_78bd_642f, 0xe703_7ed1_a0b4_28db];
    let fold = |state: u64, first: u64, second: u64| {
        let product = u128::from(first ^ KEYS[0]) * u128::from(second ^ KEYS[1] ^ state);
        (product >> 64) as u64 ^ product as u64
    };
    let (words, rest) = key.as_chunks::<8>();
    let (pairs, single) = words.as_chunks::<2>();
    let mut state = pairs.iter().fold(0, |state, [first, second]| {
        fold(state, u64::from_le_bytes(*first), u64::from_le_bytes(*second))
    });
    if !single.is_empty() || !rest.is_empty() {
        let single = single.first().map_or(0, |word| u64::from_le_bytes(*word));
        let rest = rest.iter().fold(1, |word, &byte| word << 8 | u64::from(byte));
        state = fold(state, single, rest);
    }
    (state >> 32) as u32 ^ state as u32 ^ key.len() as u32
}

/// Computes the checksum of a fabricated value: over all bytes but itself and the key's hash, which lie in front.
#[inline]
fn fabricated_checksum(bytes: &[u8]) -> u32 {
    crc32c::append(MAGIC_FABRICATED ^ bytes.len() as u32, &bytes[8..])
}

#[inline]
fn check_fabricated(bytes: &[u8], key: &[u8]) -> Result<SeenStamp, StampFlaw> {
    let length = bytes.len();
    if length < SMALLEST {
        return Err(StampFlaw::Missing { length });
    }
    if length >= FULL {
        if get32(bytes, 12) != MAGIC_FABRICATED {
            return Err(StampFlaw::Missing { length });
        }
        let stamped = !get32(bytes, 8);
        if stamped as usize != length {
            return Err(StampFlaw::Length { stamped, found: length });
        }
    }
    matches_checksum(bytes, fabricated_checksum(bytes))?;
    if get32(bytes, 4) != key_hash(key) {
        return Err(StampFlaw::OtherKey);
    }
    Ok(SeenStamp(SeenStamp::FABRICATED))
}

/// The fields of a whole record, each with its stamp: see [`split`].
#[derive(Clone, Debug)]
pub struct Split<'a> {
    rest: &'a [u8],
    left: u16,
    fields: u16,
    total: usize,
}

/// Divides a whole record, its fields end to end, into `fields` fields.
///
/// Either every field has at least 32 bytes, and its stamp tells how many; or all fields have the
/// same length, the total divided by `fields`. Ends with an error if the bytes do not divide.
#[must_use]
#[inline]
pub fn split(bytes: &[u8], fields: u16) -> Split<'_> {
    Split { rest: bytes, left: fields, fields, total: bytes.len() }
}

impl<'a> Iterator for Split<'a> {
    type Item = Result<&'a [u8], StampFlaw>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let even = self.total / usize::from(self.fields.max(1));
        let length = match self.left {
            0 if self.rest.is_empty() => return None,
            // Bytes are left over: no field of this record.
            0 => None,
            _ if self.fields == 1 => Some(self.total),
            _ if even < FULL => self.total.is_multiple_of(usize::from(self.fields)).then_some(even),
            _ => stamped_length(self.rest),
        };
        let Some(length) = length.filter(|length| *length <= self.rest.len()) else {
            self.left = 0;
            self.rest = &[];
            return Some(Err(StampFlaw::Fields { length: self.total, fields: self.fields }));
        };
        let (field, rest) = self.rest.split_at(length);
        self.rest = rest;
        self.left -= 1;
        Some(Ok(field))
    }
}

#[inline]
fn stamped_length(bytes: &[u8]) -> Option<usize> {
    if bytes.len() < FULL {
        return None;
    }
    let stamped = (get16(bytes, 4) == MAGIC).then(|| get32(bytes, 8) as usize);
    let fits = |length: &usize| (FULL..=bytes.len()).contains(length);
    let fabricated = || (get32(bytes, 12) == MAGIC_FABRICATED).then(|| !get32(bytes, 8) as usize);
    stamped.filter(fits).or_else(|| fabricated().filter(fits))
}

#[inline]
fn seen(version: u32, session: u32, expected: &Expected<'_>) -> SeenStamp {
    let apart = session.wrapping_sub(expected.session) as i32;
    if apart == 0 {
        return SeenStamp::of(version, WriterRun::Ours);
    }
    let run = if apart < 0 { WriterRun::Earlier } else { WriterRun::Newer };
    SeenStamp(SeenStamp::of(version, run).0 | (apart as u64) << SeenStamp::APART)
}

#[inline]
fn matches_checksum(bytes: &[u8], computed: u32) -> Result<(), StampFlaw> {
    let stamped = get32(bytes, 0);
    if stamped == computed {
        return Ok(());
    }
    Err(StampFlaw::Checksum { stamped, computed, length: bytes.len() })
}

/// Mixes into one word what a short form has no room for. Records that differ in their low 32 bits only always get
/// different salts; all else does but for one case in 2^32 (SplitMix64's finalizer).
#[inline]
fn salt(dataset: u32, record: u64, field: u16, length: usize) -> u32 {
    let mut mixed = u64::from(dataset) << 32 | u64::from(field) << 16 | length as u64;
    mixed = mixed.wrapping_add((record >> 32).wrapping_mul(GOLDEN));
    (mix64_high(mixed) >> 32) as u32 ^ record as u32
}

#[inline]
fn put32(bytes: &mut [u8], at: usize, number: u32) {
    bytes[at..at + 4].copy_from_slice(&number.to_le_bytes());
}

#[inline]
fn put64(bytes: &mut [u8], at: usize, number: u64) {
    bytes[at..at + 8].copy_from_slice(&number.to_le_bytes());
}

#[inline]
fn get16(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([bytes[at], bytes[at + 1]])
}

#[inline]
fn get32(bytes: &[u8], at: usize) -> u32 {
    let mut four = [0; 4];
    four.copy_from_slice(&bytes[at..at + 4]);
    u32::from_le_bytes(four)
}

#[inline]
fn get64(bytes: &[u8], at: usize) -> u64 {
    let mut eight = [0; 8];
    eight.copy_from_slice(&bytes[at..at + 8]);
    u64::from_le_bytes(eight)
}

#[cfg(test)]
mod tests;

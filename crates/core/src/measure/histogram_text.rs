//! Histograms as text, so that what one process measured can be read, and added up, by another: base64 of
//! HdrHistogram's V2 deflate encoding.

use std::cell::RefCell;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::{Decompress, FlushDecompress, Status};
use hdrhistogram::serialization::{Serializer, V2DeflateSerializer};
use hdrhistogram::{Counter, Histogram};

use super::clock::Nanos;
use super::histogram::{CELLS, DIGITS, LONGEST, SHORTEST, latency_histogram, shortest_of};

/// Longest encoded histogram that is read, bytes of base64. A full one of ours (three digits, one
/// hour) has some 34,000 cells and stays far below.
const MOST_ENCODED: usize = 1 << 20;
/// Header of a histogram once inflated, bytes.
const HEADER: usize = 40;
/// Longest histogram once inflated, bytes: cells of at most 9 bytes, and the header.
const MOST_INFLATED: usize = HEADER + 9 * CELLS;
/// First bytes of a histogram before and after inflation, as the format's reference implementation
/// (HdrHistogram, `EncodableHistogram`) defines them.
const COMPRESSED_COOKIE: u32 = 0x1c84_9304 | 0x10;
const COOKIE: u32 = 0x1c84_9303 | 0x10;

/// Error of a text that is no histogram which kvdyno can use.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("histogram cannot be decoded: {0}")]
pub struct HistogramError(String);

impl HistogramError {
    fn new(what: impl ToString) -> Self {
        HistogramError(what.to_string())
    }
}

/// Encodes a histogram as base64 of HdrHistogram's V2 deflate encoding.
///
/// # Panics
/// Never: writing to memory succeeds, and no count reaches 2^63.
#[must_use]
pub fn histogram_to_text<C: Counter>(histogram: &Histogram<C>) -> String {
    let mut bytes = Vec::new();
    V2DeflateSerializer::new()
        .serialize(histogram, &mut bytes)
        .expect("writing to memory succeeds and counts stay below 2^63");
    STANDARD.encode(bytes)
}

/// Decodes base64 of a V2 deflate histogram with kvdyno's bounds. The bytes may come from anyone:
/// sizes are bounded before anything is made of them.
///
/// # Errors
/// [`HistogramError`] says what is wrong.
pub fn histogram_from_text<C: Counter>(base64: &str) -> Result<Histogram<C>, HistogramError> {
    // No count is beyond 2^63.
    let written = WrittenHistogram::read(base64, u64::MAX)?;
    let mut histogram = latency_histogram();
    for cell in written.cells().flatten() {
        let count = C::from_u64(cell.count).ok_or_else(too_much)?;
        histogram.saturating_record_n(shortest_of(cell.number), count);
    }
    Ok(histogram)
}

/// Histogram as it was written: its counts one after the other, without room for those that are 0.
#[derive(Clone, Debug)]
pub struct WrittenHistogram {
    /// Inflated bytes with the header; they have been checked.
    bytes: Box<[u8]>,
    total: u64,
}

impl WrittenHistogram {
    /// Reads what [`histogram_to_text`] wrote; no cell may have more than `most`. The text may come from anyone.
    ///
    /// # Errors
    /// [`HistogramError`] says what is wrong.
    pub(super) fn read(base64: &str, most: u64) -> Result<WrittenHistogram, HistogramError> {
        let bytes = INFLATER.with_borrow_mut(|inflater| inflater.inflate(base64).map(Box::from))?;
        let mut written = WrittenHistogram { bytes, total: 0 };
        let mut total = 0_u64;
        for cell in written.cells() {
            let count = cell?.count;
            total = total.checked_add(count).filter(|_| count <= most).ok_or_else(too_much)?;
        }
        written.total = total;
        Ok(written)
    }

    /// Returns the number of latencies that it holds.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.total
    }

    /// Calls `seen` with each latency that was measured, ns, and how often.
    pub fn each(&self, mut seen: impl FnMut(Nanos, u64)) {
        for cell in self.cells().flatten() {
            seen(shortest_of(cell.number), cell.count);
        }
    }

    fn cells(&self) -> Cells<'_> {
        Cells { left: &self.bytes[HEADER..], next: 0 }
    }
}

fn too_much() -> HistogramError {
    HistogramError::new("a count is too large")
}

/// A cell that counts something.
struct Cell {
    number: usize,
    count: u64,
}

/// Iterator over the cells of a written histogram that count something. The text has numbers one after the other:
/// counts, and where several in a row are 0, their number as a negative one.
struct Cells<'a> {
    left: &'a [u8],
    next: usize,
}

impl Iterator for Cells<'_> {
    type Item = Result<Cell, HistogramError>;

    fn next(&mut self) -> Option<Self::Item> {
        while !self.left.is_empty() {
            let Some(number) = self.number() else {
                return self.fail("it is cut short");
            };
            let Ok(count) = u64::try_from(number) else {
                let skipped = usize::try_from(number.unsigned_abs()).unwrap_or(CELLS);
                self.next = self.next.saturating_add(skipped).min(CELLS + 1);
                continue;
            };
            let number = self.next;
            if number >= CELLS {
                return self.fail("it has more cells than there are");
            }
            self.next += 1;
            if count > 0 {
                return Some(Ok(Cell { number, count }));
            }
        }
        // An end in which nothing was counted is not written, and may not be beyond the last cell either.
        match self.next > CELLS {
            true => self.fail("it has more cells than there are"),
            false => None,
        }
    }
}

impl Cells<'_> {
    /// Reads the next number, if it is whole: seven bits a byte, the lowest first, up to eight bytes of which each but
    /// the last has its highest bit set; of a ninth all bits count. The lowest bit of all is the sign.
    fn number(&mut self) -> Option<i64> {
        let (mut written, mut shift) = (0_u64, 0);
        for (at, byte) in self.left.iter().take(9).enumerate() {
            let last = at == 8 || byte & 0x80 == 0;
            let bits = if at == 8 { *byte } else { byte & 0x7f };
            written |= u64::from(bits) << shift;
            shift += 7;
            if last {
                self.left = &self.left[at + 1..];
                return Some((written >> 1) as i64 ^ -((written & 1) as i64));
            }
        }
        None
    }

    fn fail(&mut self, why: &str) -> Option<Result<Cell, HistogramError>> {
        (self.left, self.next) = (&[], 0);
        Some(Err(HistogramError::new(why)))
    }
}

/// Reader of many histograms that come as text. It reads their cells and makes no histogram of them, which would take
/// more time and memory.
#[derive(Debug, Default)]
pub struct HistogramReader {
    inflater: Inflater,
    /// Longest latency, ns, and count of each cell that has any.
    cells: Vec<(Nanos, u64)>,
}

impl HistogramReader {
    /// Reads a histogram in the form of [`histogram_from_text`]: longest latency, ns, and count of each cell that has
    /// any.
    ///
    /// # Errors
    /// [`HistogramError`] says what is wrong.
    pub fn read(&mut self, base64: &str) -> Result<&[(Nanos, u64)], HistogramError> {
        let inflated = self.inflater.inflate(base64)?;
        self.cells.clear();
        for cell in (Cells { left: &inflated[HEADER..], next: 0 }) {
            let Cell { number, count } = cell?;
            self.cells.push((shortest_of(number + 1) - 1, count));
        }
        Ok(&self.cells)
    }

    /// Adds the histogram that was read last.
    pub fn add_to(&self, histogram: &mut Histogram<u64>) {
        for &(latency, count) in &self.cells {
            histogram.saturating_record_n(latency, count);
        }
    }
}

thread_local! {
    /// Inflater, made once a thread: its state takes 40 kB, and the room for its results 300 kB.
    static INFLATER: RefCell<Inflater> = RefCell::default();
}

#[derive(Debug)]
struct Inflater {
    state: Decompress,
    bytes: Vec<u8>,
    /// Room for the longest histogram once inflated; a result takes a part of it.
    inflated: Vec<u8>,
}

impl Default for Inflater {
    fn default() -> Inflater {
        let (state, inflated) = (Decompress::new(true), vec![0; MOST_INFLATED]);
        Inflater { state, bytes: Vec::new(), inflated }
    }
}

impl Inflater {
    /// Decodes and inflates a text; the result begins with a header of kvdyno's bounds.
    fn inflate(&mut self, base64: &str) -> Result<&[u8], HistogramError> {
        if base64.len() > MOST_ENCODED {
            return Err(HistogramError::new("it is too long"));
        }
        self.bytes.clear();
        STANDARD.decode_vec(base64, &mut self.bytes).map_err(HistogramError::new)?;
        let word = |at: usize| self.bytes.get(at..at + 4).and_then(|b| b.try_into().ok());
        let (Some(cookie), Some(_length)) = (word(0), word(4)) else {
            return Err(HistogramError::new("it is cut short"));
        };
        if u32::from_be_bytes(cookie) != COMPRESSED_COOKIE {
            return Err(HistogramError::new("it is not in the V2 deflate format"));
        }
        self.state.reset(true);
        let (zipped, room) = (&self.bytes[8..], &mut self.inflated[..]);
        let ended = self.state.decompress(zipped, room, FlushDecompress::Finish);
        let ended = ended.map_err(HistogramError::new)?;
        let inflated = &self.inflated[..self.state.total_out() as usize];
        if ended != Status::StreamEnd {
            let is_full = inflated.len() == MOST_INFLATED;
            let why = if is_full { "it is too long" } else { "it is cut short" };
            return Err(HistogramError::new(why));
        }
        check_header(inflated)?;
        Ok(inflated)
    }
}

/// Checks the header: cookie, payload length, offset, digits (4 bytes each), lowest, highest, ratio (8 each).
fn check_header(inflated: &[u8]) -> Result<(), HistogramError> {
    let Some((header, payload)) = inflated.split_at_checked(HEADER) else {
        return Err(HistogramError::new("it is cut short"));
    };
    let word = |at: usize| header[at..at + 4].iter().fold(0u32, |n, b| n << 8 | u32::from(*b));
    let long = |at: usize| header[at..at + 8].iter().fold(0u64, |n, b| n << 8 | u64::from(*b));
    if word(0) != COOKIE {
        return Err(HistogramError::new("it is not in the V2 format"));
    }
    if word(4) as usize != payload.len() {
        return Err(HistogramError::new("it is cut short"));
    }
    if word(12) != u32::from(DIGITS) || long(16) != SHORTEST || long(24) != LONGEST {
        return Err(HistogramError::new("it has bounds other than 1 ns to one hour, 3 digits"));
    }
    if word(8) != 0 || long(32) != 1f64.to_bits() {
        return Err(HistogramError::new("its counts are shifted or scaled"));
    }
    Ok(())
}

/// Value that can be written as text and read again.
pub trait AsText: Sized {
    /// Returns the value as text.
    fn to_text(&self) -> String;

    /// Reads the value from a text.
    fn from_text(text: &str) -> Result<Self, HistogramError>;
}

impl<C: Counter> AsText for Histogram<C> {
    fn to_text(&self) -> String {
        histogram_to_text(self)
    }

    fn from_text(text: &str) -> Result<Histogram<C>, HistogramError> {
        histogram_from_text(text)
    }
}

/// Serialises latencies, where there are some, as text in a field.
pub(crate) mod as_text {
    use std::borrow::Cow;

    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use super::AsText;

    pub(crate) fn serialize<T: AsText, S: Serializer>(
        latencies: &Option<T>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        latencies.as_ref().map(T::to_text).serialize(serializer)
    }

    pub(crate) fn deserialize<'de, T: AsText, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<T>, D::Error> {
        let text = Option::<Cow<'de, str>>::deserialize(deserializer)?;
        text.map(|text| T::from_text(&text)).transpose().map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Histogram<u64> {
        let mut histogram = latency_histogram();
        (1..10_000).for_each(|n| histogram.saturating_record(n * 37));
        histogram
    }

    #[test]
    fn texts_add_up_to_what_their_histograms_do() {
        let (mut reader, mut sum) = (HistogramReader::default(), latency_histogram::<u64>());
        let mut known = latency_histogram::<u64>();
        let mut at = 1_u64;
        for round in 0..50 {
            let mut one = latency_histogram::<u32>();
            for _ in 0..round * 20 {
                at = at.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                one.saturating_record_n((at >> 20) % (1 << (at % 43)) + 1, at as u32 % 300 + 1);
            }
            let text = histogram_to_text(&one);
            let cells = reader.read(&text).unwrap();
            let by_library = one.iter_recorded();
            let by_library =
                by_library.map(|cell| (cell.value_iterated_to(), u64::from(cell.count_at_value())));
            assert_eq!(cells, by_library.collect::<Vec<_>>());
            reader.add_to(&mut sum);
            let whole: Histogram<u64> = histogram_from_text(&text).unwrap();
            known.add(whole).unwrap();
            assert!(sum == known, "after {round}");
        }
        assert_eq!(sum.len(), known.len());
        assert!(sum.max() > LONGEST / 2 && sum.min() < 20, "cells of every width");
    }

    #[test]
    fn hostile_encodings_are_errors() {
        let good = histogram_to_text(&sample());
        let raw = STANDARD.decode(&good).unwrap();
        for cut in 0..raw.len() {
            assert!(refused(&STANDARD.encode(&raw[..cut])).is_some(), "cut at {cut}");
        }
        let mut foreign = Histogram::<u64>::new_with_bounds(1, u64::MAX / 2, 5).unwrap();
        foreign.record(7).unwrap();
        assert!(refused(&histogram_to_text(&foreign)).unwrap().contains("bounds"));
        assert!(refused("!").is_some());
        assert!(refused(&"A".repeat(MOST_ENCODED + 4)).unwrap().contains("long"));
    }

    /// Returns the reason for which both ways to read a text refuse it, if they do.
    fn refused(text: &str) -> Option<String> {
        let mut reader = HistogramReader::default();
        let cells = reader.read(text);
        let read = histogram_from_text::<u64>(text);
        assert_eq!(cells.is_err(), read.is_err(), "{cells:?}");
        read.err().map(|why| why.to_string())
    }

    #[test]
    fn an_impossible_count_or_a_bomb_is_an_error() {
        use std::io::Write;
        let ours = latency_histogram::<u64>();
        let wrap = |payload: &[u8]| {
            let mut inner = Vec::new();
            inner.extend_from_slice(&0x1c84_9313_u32.to_be_bytes());
            inner.extend_from_slice(&(payload.len() as u32).to_be_bytes());
            inner.extend_from_slice(&0u32.to_be_bytes());
            inner.extend_from_slice(&3u32.to_be_bytes());
            inner.extend_from_slice(&ours.low().to_be_bytes());
            inner.extend_from_slice(&ours.high().to_be_bytes());
            inner.extend_from_slice(&1f64.to_be_bytes());
            inner.extend_from_slice(payload);
            let mut zip = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::new(6));
            zip.write_all(&inner).unwrap();
            let zipped = zip.finish().unwrap();
            let mut outer = COMPRESSED_COOKIE.to_be_bytes().to_vec();
            outer.extend_from_slice(&(zipped.len() as u32).to_be_bytes());
            outer.extend_from_slice(&zipped);
            STANDARD.encode(outer)
        };
        assert_eq!(histogram_from_text::<u64>(&wrap(&[2])).unwrap().len(), 1);
        assert!(refused(&wrap(&[0xff; 9])).unwrap().contains("more cells"));
        assert!(refused(&wrap(&vec![0; 10 << 20])).unwrap().contains("long"));
        // A count behind the last cell: many empty ones before it.
        let coded = 2 * 40_000 - 1;
        let far = [coded & 0x7f | 0x80, coded >> 7 & 0x7f | 0x80, coded >> 14, 2];
        assert!(refused(&wrap(&far.map(|byte| byte as u8))).is_some());
        assert!(refused(&wrap(&[0x81])).is_some(), "a number that does not end");
    }
}

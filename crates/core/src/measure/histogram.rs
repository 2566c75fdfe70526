//! The histograms of all latencies: their bounds, and how they are written as text, so that what one process
//! measured can be read, and added up, by another.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::{Decompress, FlushDecompress, Status};
use hdrhistogram::serialization::{Deserializer, Serializer, V2DeflateSerializer};
use hdrhistogram::{Counter, Histogram};

use super::clock::Nanos;

/// Longest latency that a histogram can hold; longer ones are counted as this. One hour.
pub const LONGEST: Nanos = 3_600_000_000_000;

/// A histogram as all of kvdyno's are: unit 1 ns, 1 ns to one hour, 3 significant digits.
///
/// # Panics
/// Never: the bounds are constants that the library accepts.
#[must_use]
pub fn latency_histogram<C: Counter>() -> Histogram<C> {
    Histogram::new_with_bounds(1, LONGEST, DIGITS).expect("constant bounds are valid")
}

/// Longest encoded histogram that is read, bytes of base64. A full one of ours (three digits, one
/// hour) has some 33,000 cells and stays far below.
const MOST_ENCODED: usize = 1 << 20;
/// Longest histogram once inflated, bytes: cells of at most 9 bytes, and the header.
const MOST_INFLATED: usize = HEADER + 9 * MOST_CELLS;
/// Cells of one of ours.
const MOST_CELLS: usize = 33_792;
/// Bytes before the cells.
const HEADER: usize = 40;
/// Significant digits.
const DIGITS: u8 = 3;
/// Cells of a histogram of so many digits for which a value has one; from there on, for each doubling, as many
/// times ever wider cells (HdrHistogram, `subBucketHalfCount`).
const CELLS: usize = 1_024;
/// First bytes of a histogram before and after inflation, without the word-size bits, as the
/// format's reference implementation (HdrHistogram, `EncodableHistogram`) defines them.
const COMPRESSED_COOKIE: u32 = 0x1c84_9304 | 0x10;
const COOKIE: u32 = 0x1c84_9303 | 0x10;

/// A histogram as text that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("histogram cannot be decoded: {0}")]
pub struct HistogramError(String);

impl HistogramError {
    fn new(what: impl ToString) -> Self {
        HistogramError(what.to_string())
    }
}

/// Base64 of HdrHistogram's V2 deflate encoding.
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
    let mut reader = HistogramReader::default();
    let mut inflated = reader.inflate(base64)?;
    Deserializer::new().deserialize(&mut inflated).map_err(HistogramError::new)
}

/// Reads many histograms that come as text. None of them is made: it would take more time and memory than its few cells.
#[derive(Debug)]
pub struct HistogramReader {
    inflater: Decompress,
    bytes: Vec<u8>,
    /// Room for the longest; how much of it is in use differs.
    inflated: Vec<u8>,
    /// The highest value and the count of each cell that has any.
    cells: Vec<(u64, u64)>,
}

impl Default for HistogramReader {
    fn default() -> Self {
        let (inflater, inflated) = (Decompress::new(true), vec![0; MOST_INFLATED]);
        HistogramReader { inflater, bytes: Vec::new(), inflated, cells: Vec::new() }
    }
}

impl HistogramReader {
    /// Reads a histogram in the form of [`histogram_from_text`]: the highest value and the count of each cell that has any.
    ///
    /// # Errors
    /// [`HistogramError`] says what is wrong.
    pub fn read(&mut self, base64: &str) -> Result<&[(u64, u64)], HistogramError> {
        let length = self.inflate(base64)?.len();
        self.cells.clear();
        let mut cell = 0_usize;
        let mut rest = &self.inflated[HEADER..length];
        while let Some((coded, after)) = variable(rest)? {
            rest = after;
            let number = (coded >> 1) as i64 ^ -((coded & 1) as i64);
            // A negative number is a run of empty cells.
            let passed = if number < 0 { number.unsigned_abs() } else { 1 };
            let next = cell.saturating_add(usize::try_from(passed).unwrap_or(usize::MAX));
            if number > 0 {
                if next > MOST_CELLS {
                    return Err(HistogramError::new("it has too many cells"));
                }
                self.cells.push((lowest_of(next) - 1, number.unsigned_abs()));
            }
            cell = next;
        }
        Ok(&self.cells)
    }

    /// Adds what was read last.
    pub fn add_to(&self, histogram: &mut Histogram<u64>) {
        for &(value, count) in &self.cells {
            histogram.saturating_record_n(value, count);
        }
    }

    /// The bytes that are meant by the text; their header is one of ours.
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
        self.inflater.reset(true);
        let (zipped, room) = (&self.bytes[8..], &mut self.inflated[..]);
        let ended = self.inflater.decompress(zipped, room, FlushDecompress::Finish);
        let ended = ended.map_err(HistogramError::new)?;
        let inflated = &self.inflated[..self.inflater.total_out() as usize];
        if ended != Status::StreamEnd {
            let is_full = inflated.len() == MOST_INFLATED;
            return Err(HistogramError::new(if is_full {
                "it is too long"
            } else {
                "it is cut short"
            }));
        }
        check_header(inflated)?;
        Ok(inflated)
    }
}

// What the library does with a histogram is compiled where it is called. These are called for thousands of histograms by
// who is not optimised.

/// An empty histogram of latencies.
#[must_use]
pub fn no_latencies() -> Histogram<u64> {
    latency_histogram()
}

/// Adds a histogram to another.
///
/// # Panics
/// Never: both have the bounds of every latency.
pub fn add_latencies(to: &mut Histogram<u64>, from: &Histogram<u64>) {
    to.add(from).expect("same bounds");
}

/// The values at 50, 90, 99 and 99.9 %, and the longest.
#[must_use]
pub fn five_figures(histogram: &Histogram<u64>) -> [u64; 5] {
    let [p50, p90, p99, p99_9] =
        [0.5, 0.9, 0.99, 0.999].map(|quantile| histogram.value_at_quantile(quantile));
    [p50, p90, p99, p99_9, histogram.max()]
}

/// The lowest value of a cell.
fn lowest_of(cell: usize) -> u64 {
    match (cell / CELLS).checked_sub(1) {
        None => cell as u64,
        Some(doublings) => ((cell % CELLS + CELLS) as u64) << doublings,
    }
}

/// A number of variable length, seven bits a byte and eight in the ninth, and what follows; `None` at the end.
fn variable(bytes: &[u8]) -> Result<Option<(u64, &[u8])>, HistogramError> {
    let mut number = 0;
    for (place, byte) in bytes.iter().take(9).enumerate() {
        let is_last = place == 8;
        let bits = if is_last { *byte } else { byte & 0x7f };
        number |= u64::from(bits) << (7 * place);
        if is_last || byte & 0x80 == 0 {
            return Ok(Some((number, &bytes[place + 1..])));
        }
    }
    if bytes.is_empty() { Ok(None) } else { Err(HistogramError::new("it is cut short")) }
}

/// Header: cookie, payload length, offset, digits (4 bytes each), lowest, highest, ratio (8 each).
fn check_header(inflated: &[u8]) -> Result<(), HistogramError> {
    let Some((header, payload)) = inflated.split_at_checked(HEADER) else {
        return Err(HistogramError::new("it is cut short"));
    };
    let word = |at: usize| header[at..at + 4].iter().fold(0u32, |n, b| n << 8 | u32::from(*b));
    let long = |at: usize| header[at..at + 8].iter().fold(0u64, |n, b| n << 8 | u64::from(*b));
    if word(4) as usize != payload.len() {
        return Err(HistogramError::new("it is cut short"));
    }
    if word(0) != COOKIE || word(8) != 0 || long(32) != 1_f64.to_bits() {
        return Err(HistogramError::new("it is not in the V2 format, or its values are scaled"));
    }
    if word(12) != u32::from(DIGITS) || long(16) != 1 || long(24) != LONGEST {
        return Err(HistogramError::new("it has bounds other than 1 ns to one hour, 3 digits"));
    }
    // Nine such bytes are a count of −2^63, which no histogram holds and which the library's
    // decoder would negate.
    if payload.windows(9).any(|run| run.iter().all(|b| *b == 0xff)) {
        return Err(HistogramError::new("it holds an impossible count"));
    }
    Ok(())
}

/// A histogram, where there is one, as a field of something serialised.
pub(crate) mod as_text {
    use std::borrow::Cow;

    use hdrhistogram::{Counter, Histogram};
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(crate) fn serialize<C: Counter, S: Serializer>(
        histogram: &Option<Histogram<C>>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        histogram.as_ref().map(super::histogram_to_text).serialize(serializer)
    }

    pub(crate) fn deserialize<'de, C: Counter, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<Histogram<C>>, D::Error> {
        let text = Option::<Cow<'de, str>>::deserialize(deserializer)?;
        text.map(|text| super::histogram_from_text(&text)).transpose().map_err(D::Error::custom)
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
        assert_eq!(latency_histogram::<u8>().distinct_values(), MOST_CELLS);
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

    /// Why both ways to read a text refuse it, if they do.
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
        assert!(refused(&wrap(&[0xff; 9])).unwrap().contains("impossible"));
        assert!(refused(&wrap(&vec![0; 10 << 20])).unwrap().contains("long"));
        // A count behind the last cell: many empty ones before it.
        let coded = 2 * 40_000 - 1;
        let far = [coded & 0x7f | 0x80, coded >> 7 & 0x7f | 0x80, coded >> 14, 2];
        assert!(refused(&wrap(&far.map(|byte| byte as u8))).is_some());
        assert!(refused(&wrap(&[0x81])).is_some(), "a number that does not end");
    }
}

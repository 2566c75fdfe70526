//! The histograms of all latencies: their bounds, and how they are written as text, so that what one process
//! measured can be read, and added up, by another.

use std::io::Read;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::read::ZlibDecoder;
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
    Histogram::new_with_bounds(1, LONGEST, 3).expect("constant bounds are valid")
}

/// Longest encoded histogram that is read, bytes of base64. A full one of ours (three digits, one
/// hour) has some 34,000 cells and stays far below.
const MOST_ENCODED: usize = 1 << 20;
/// Longest histogram once inflated, bytes: 34,816 cells of at most 9 bytes, and the header.
const MOST_INFLATED: u64 = 40 + 9 * 34_816;
/// First bytes of a histogram before and after inflation, without the word-size bits, as the
/// format's reference implementation (HdrHistogram, `EncodableHistogram`) defines them.
const COMPRESSED_COOKIE: u32 = 0x1c84_9304 | 0x10;

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
    if base64.len() > MOST_ENCODED {
        return Err(HistogramError::new("it is too long"));
    }
    let bytes = STANDARD.decode(base64).map_err(HistogramError::new)?;
    let inflated = inflate(&bytes)?;
    check_header(&inflated)?;
    Deserializer::new().deserialize(&mut inflated.as_slice()).map_err(HistogramError::new)
}

fn inflate(bytes: &[u8]) -> Result<Vec<u8>, HistogramError> {
    let word = |at: usize| bytes.get(at..at + 4).and_then(|b| b.try_into().ok());
    let (Some(cookie), Some(_length)) = (word(0), word(4)) else {
        return Err(HistogramError::new("it is cut short"));
    };
    if u32::from_be_bytes(cookie) != COMPRESSED_COOKIE {
        return Err(HistogramError::new("it is not in the V2 deflate format"));
    }
    let mut inflated = Vec::new();
    ZlibDecoder::new(&bytes[8..])
        .take(MOST_INFLATED + 1)
        .read_to_end(&mut inflated)
        .map_err(HistogramError::new)?;
    if inflated.len() as u64 > MOST_INFLATED {
        return Err(HistogramError::new("it is too long"));
    }
    Ok(inflated)
}

/// Header: cookie, payload length, offset, digits (4 bytes each), lowest, highest, ratio (8 each).
fn check_header(inflated: &[u8]) -> Result<(), HistogramError> {
    let Some((header, payload)) = inflated.split_at_checked(40) else {
        return Err(HistogramError::new("it is cut short"));
    };
    let word = |at: usize| header[at..at + 4].iter().fold(0u32, |n, b| n << 8 | u32::from(*b));
    let long = |at: usize| header[at..at + 8].iter().fold(0u64, |n, b| n << 8 | u64::from(*b));
    if word(4) as usize != payload.len() {
        return Err(HistogramError::new("it is cut short"));
    }
    let ours = latency_histogram::<u64>();
    if word(12) != u32::from(ours.sigfig()) || long(16) != ours.low() || long(24) != ours.high() {
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
    fn hostile_encodings_are_errors() {
        let good = histogram_to_text(&sample());
        let raw = STANDARD.decode(&good).unwrap();
        for cut in 0..raw.len() {
            assert!(
                histogram_from_text::<u64>(&STANDARD.encode(&raw[..cut])).is_err(),
                "cut at {cut}"
            );
        }
        let mut foreign = Histogram::<u64>::new_with_bounds(1, u64::MAX / 2, 5).unwrap();
        foreign.record(7).unwrap();
        assert!(
            histogram_from_text::<u64>(&histogram_to_text(&foreign))
                .unwrap_err()
                .to_string()
                .contains("bounds")
        );
        assert!(histogram_from_text::<u64>("!").is_err());
        assert!(
            histogram_from_text::<u64>(&"A".repeat(MOST_ENCODED + 4))
                .unwrap_err()
                .to_string()
                .contains("long")
        );
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
        assert!(
            histogram_from_text::<u64>(&wrap(&[0xff; 9]))
                .unwrap_err()
                .to_string()
                .contains("impossible")
        );
        assert!(
            histogram_from_text::<u64>(&wrap(&vec![0; 10 << 20]))
                .unwrap_err()
                .to_string()
                .contains("long")
        );
    }
}

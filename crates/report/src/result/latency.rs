//! Latencies as a result file holds them: the figures for people, the whole histogram for merging.
//! Percentiles cannot be averaged, so every sum of latencies starts from the histograms.

use std::io::Read;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::read::ZlibDecoder;
use hdrhistogram::serialization::{Deserializer, Serializer, V2DeflateSerializer};
use hdrhistogram::{Counter, Histogram};
use kvdyno_core::measure::latency_histogram;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Longest encoded histogram that is read, bytes of base64. A full one of ours (three digits, one
/// hour) has some 34,000 cells and stays far below.
const MOST_ENCODED: usize = 1 << 20;
/// Longest histogram once inflated, bytes: 34,816 cells of at most 9 bytes, and the header.
const MOST_INFLATED: u64 = 40 + 9 * 34_816;
/// First bytes of a histogram before and after inflation, without the word-size bits, as the
/// format's reference implementation (HdrHistogram, `EncodableHistogram`) defines them.
const COMPRESSED_COOKIE: u32 = 0x1c84_9304 | 0x10;

/// A histogram in a file that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("histogram cannot be decoded: {0}")]
pub struct HistogramError(String);

impl HistogramError {
    fn new(what: impl ToString) -> Self {
        HistogramError(what.to_string())
    }
}

/// Latencies of a set of operations, ns. Percentiles are the highest value that the histogram
/// cannot tell from the true one: at most 0.1 % above it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Latency {
    /// Operations.
    pub count: u64,
    /// Arithmetic mean, ns.
    pub mean_ns: Option<f64>,
    /// Median, ns.
    pub p50_ns: u64,
    /// 90th percentile, ns.
    pub p90_ns: u64,
    /// 99th percentile, ns.
    pub p99_ns: u64,
    /// 99.5th percentile, ns.
    pub p99_5_ns: u64,
    /// 99.9th percentile, ns.
    pub p99_9_ns: u64,
    /// Longest, ns.
    pub max_ns: u64,
    /// The whole histogram: base64 of HdrHistogram's V2 deflate encoding.
    pub histogram: String,
}

impl Latency {
    /// The figures and the encoding of a histogram; `None` if it is empty.
    #[must_use]
    pub fn of(histogram: &Histogram<u64>) -> Option<Latency> {
        if histogram.is_empty() {
            return None;
        }
        Some(Latency {
            count: histogram.len(),
            mean_ns: finite(histogram.mean()),
            p50_ns: histogram.value_at_quantile(0.5),
            p90_ns: histogram.value_at_quantile(0.9),
            p99_ns: histogram.value_at_quantile(0.99),
            p99_5_ns: histogram.value_at_quantile(0.995),
            p99_9_ns: histogram.value_at_quantile(0.999),
            max_ns: histogram.max(),
            histogram: encode(histogram),
        })
    }

    /// The whole histogram.
    ///
    /// # Errors
    /// [`HistogramError`] if the encoding is not one of kvdyno's histograms.
    pub fn decode(&self) -> Result<Histogram<u64>, HistogramError> {
        decode(&self.histogram)
    }

    /// All of them together, from their histograms; `None` if there is none.
    ///
    /// # Errors
    /// [`HistogramError`] as [`Latency::decode`].
    pub fn sum<'a>(
        parts: impl IntoIterator<Item = &'a Latency>,
    ) -> Result<Option<Latency>, HistogramError> {
        let mut parts = parts.into_iter();
        let Some(first) = parts.next() else { return Ok(None) };
        let Some(second) = parts.next() else { return Ok(Some(first.clone())) };
        let mut total = first.decode()?;
        for part in std::iter::once(second).chain(parts) {
            add(&mut total, &part.decode()?);
        }
        Ok(Latency::of(&total))
    }
}

/// `value` if JSON can hold it.
pub(crate) fn finite(value: f64) -> Option<f64> {
    value.is_finite().then_some(value)
}

/// Adds `from` to `to`; both have kvdyno's bounds, so every value has a place.
pub(crate) fn add<C: Counter + Into<u64>>(to: &mut Histogram<u64>, from: &Histogram<C>) {
    for step in from.iter_recorded() {
        to.saturating_record_n(step.value_iterated_to(), step.count_at_value().into());
    }
}

fn encode(histogram: &Histogram<u64>) -> String {
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
pub(crate) fn decode(base64: &str) -> Result<Histogram<u64>, HistogramError> {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Histogram<u64> {
        let mut histogram = latency_histogram();
        for n in 1..10_000 {
            histogram.saturating_record(n * 37);
        }
        histogram
    }

    #[test]
    fn comes_back_as_it_went() {
        let histogram = sample();
        let latency = Latency::of(&histogram).unwrap();
        assert_eq!(latency.decode().unwrap(), histogram);
        assert_eq!(latency.count, 9_999);
        assert_eq!(latency.p99_ns, histogram.value_at_quantile(0.99));
    }

    #[test]
    fn an_empty_histogram_has_no_figures() {
        assert_eq!(Latency::of(&latency_histogram()), None);
    }

    #[test]
    fn a_sum_is_the_histogram_of_all_and_not_a_mean_of_percentiles() {
        let mut fast = latency_histogram::<u64>();
        fast.record_n(1_000, 990).unwrap();
        let mut slow = latency_histogram::<u64>();
        slow.record_n(1_000_000, 10).unwrap();
        let parts = [Latency::of(&fast).unwrap(), Latency::of(&slow).unwrap()];
        let sum = Latency::sum(&parts).unwrap().unwrap();
        assert_eq!(sum.count, 1_000);
        assert_eq!(sum.p50_ns, 1_000);
        assert!(sum.p99_5_ns >= 1_000_000);
    }

    #[test]
    fn hostile_encodings_are_errors() {
        let good = Latency::of(&sample()).unwrap().histogram;
        let raw = STANDARD.decode(&good).unwrap();
        for cut in 0..raw.len() {
            assert!(decode(&STANDARD.encode(&raw[..cut])).is_err(), "cut at {cut}");
        }
        let mut foreign = Histogram::<u64>::new_with_bounds(1, u64::MAX / 2, 5).unwrap();
        foreign.record(7).unwrap();
        assert!(decode(&encode(&foreign)).unwrap_err().to_string().contains("bounds"));
        assert!(decode("!").is_err());
        assert!(decode(&"A".repeat(MOST_ENCODED + 4)).unwrap_err().to_string().contains("long"));
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
        assert_eq!(decode(&wrap(&[2])).unwrap().len(), 1);
        assert!(decode(&wrap(&[0xff; 9])).unwrap_err().to_string().contains("impossible"));
        assert!(decode(&wrap(&vec![0; 10 << 20])).unwrap_err().to_string().contains("long"));
    }
}

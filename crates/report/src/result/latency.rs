//! Latencies in a result file: the figures for people, the whole histogram for merging. Percentiles cannot be averaged,
//! so every sum of latencies starts from the histograms.

use hdrhistogram::{Counter, Histogram};
use kvdyno_core::measure::{HistogramError, histogram_from_text, histogram_to_text};
use serde::{Deserialize, Serialize};

/// Latencies of a set of operations, ns. A percentile is the highest value in its bucket of the histogram: at most 0.1 %
/// above the true one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Latency {
    /// Number of operations.
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
    /// Longest latency, ns.
    pub max_ns: u64,
    /// Whole histogram: base64 of HdrHistogram's V2 deflate encoding.
    pub histogram: String,
}

impl Latency {
    /// Computes the figures of a histogram and encodes it; `None` if it is empty.
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
            histogram: histogram_to_text(histogram),
        })
    }

    /// Decodes the whole histogram.
    ///
    /// # Errors
    /// [`HistogramError`] if the encoding is not one of kvdyno's histograms.
    pub fn decode(&self) -> Result<Histogram<u64>, HistogramError> {
        histogram_from_text(&self.histogram)
    }

    /// Merges latencies from their histograms; `None` if there are none.
    ///
    /// # Errors
    /// [`HistogramError`] as for [`Latency::decode`].
    pub fn sum<'a>(
        parts: impl IntoIterator<Item = &'a Latency>,
    ) -> Result<Option<Latency>, HistogramError> {
        let mut parts = parts.into_iter();
        let Some(first) = parts.next() else { return Ok(None) };
        let Some(second) = parts.next() else { return Ok(Some(first.clone())) };
        let all = [first, second].into_iter().chain(parts);
        Ok(Latency::histogram(all)?.as_ref().and_then(Latency::of))
    }

    /// Merges latencies like [`Latency::sum`], and returns only the histogram: to encode it would take as long as to
    /// merge it.
    ///
    /// # Errors
    /// [`HistogramError`] as for [`Latency::decode`].
    pub fn histogram<'a>(
        parts: impl IntoIterator<Item = &'a Latency>,
    ) -> Result<Option<Histogram<u64>>, HistogramError> {
        let mut total: Option<Histogram<u64>> = None;
        for part in parts {
            let histogram = part.decode()?;
            match &mut total {
                None => total = Some(histogram),
                Some(total) => add(total, &histogram),
            }
        }
        Ok(total)
    }
}

/// Returns `value` if JSON can hold it.
pub(crate) fn finite(value: f64) -> Option<f64> {
    value.is_finite().then_some(value)
}

/// Adds `from` to `to`; both have kvdyno's bounds, so every value has a place.
pub(crate) fn add<C: Counter + Into<u64>>(to: &mut Histogram<u64>, from: &Histogram<C>) {
    for step in from.iter_recorded() {
        to.saturating_record_n(step.value_iterated_to(), step.count_at_value().into());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kvdyno_core::measure::latency_histogram;

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
}

//! Latencies for monitoring systems: counts in fixed buckets, each 9 % wider than the one before, so that a quantile read
//! from them is within 10 % of the true one.

use hdrhistogram::{Counter, Histogram};

/// Number of bounds in each doubling: each is 2^(1/8) = 1.0905 times the one before.
const STEPS_A_DOUBLING: f64 = 8.0;
/// Lowest bound, ns: all shorter latencies are in one bucket.
const LOWEST: f64 = 100.0;
/// Least value of the highest bound, ns: one hour, the longest latency that kvdyno records.
const HIGHEST: f64 = 3.6e12;

/// Counts of latencies in buckets.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Buckets {
    /// Number of latencies no longer than each bound and longer than the one before; the last one counts the rest.
    pub counts: Vec<u64>,
    /// Sum of the latencies, ns.
    pub sum_ns: f64,
}

/// Returns the upper bounds of the buckets, ns, each inclusive.
pub(crate) fn bounds_ns() -> impl Iterator<Item = f64> {
    let last = ((HIGHEST / LOWEST).log2() * STEPS_A_DOUBLING).ceil() as u32;
    (0..=last).map(|step| LOWEST * (f64::from(step) / STEPS_A_DOUBLING).exp2())
}

impl Default for Buckets {
    fn default() -> Self {
        Buckets { counts: vec![0; bounds_ns().count() + 1], sum_ns: 0.0 }
    }
}

impl Buckets {
    pub fn add<C: Counter + Into<u64>>(&mut self, histogram: &Histogram<C>) {
        let bounds: Vec<f64> = bounds_ns().collect();
        for step in histogram.iter_recorded() {
            let (value, count) = (step.value_iterated_to() as f64, step.count_at_value().into());
            self.counts[bounds.partition_point(|bound| *bound < value)] += count;
            self.sum_ns += value * count as f64;
        }
    }

    pub fn count(&self) -> u64 {
        self.counts.iter().sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kvdyno_core::measure::latency_histogram;

    #[test]
    fn each_bound_is_at_most_a_tenth_above_the_one_before_and_an_hour_has_a_place() {
        let bounds: Vec<f64> = bounds_ns().collect();
        assert!(bounds.windows(2).all(|pair| pair[1] > pair[0] && pair[1] <= pair[0] * 1.1));
        assert!(*bounds.last().unwrap() >= 3.6e12 && bounds.len() < 300, "{}", bounds.len());
    }

    #[test]
    fn every_latency_is_in_the_bucket_that_holds_it() {
        let mut histogram = latency_histogram::<u32>();
        for value in [50_u64, 101, 1_000_000, 3_600_000_000_000] {
            histogram.saturating_record(value);
        }
        let mut buckets = Buckets::default();
        buckets.add(&histogram);
        assert_eq!(buckets.count(), 4);
        let bounds: Vec<f64> = bounds_ns().collect();
        let of = |at: usize| (if at == 0 { 0.0 } else { bounds[at - 1] }, bounds[at]);
        let filled: Vec<(f64, f64)> =
            (0..bounds.len()).filter(|at| buckets.counts[*at] > 0).map(of).collect();
        assert_eq!((filled[0].0, filled[0].1), (0.0, 100.0));
        // HdrHistogram resolves 1 ms to a thousandth.
        assert!(filled[2].0 < 1e6 && filled[2].1 > 1e6 && filled.len() >= 3, "{filled:?}");
        assert!((buckets.sum_ns - 3.600_001e12).abs() < 5e9, "{}", buckets.sum_ns);
    }
}

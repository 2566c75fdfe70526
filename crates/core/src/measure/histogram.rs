//! Bounds of the histograms of all latencies.

use hdrhistogram::{Counter, Histogram};

use super::clock::Nanos;

/// Shortest latency that a histogram tells apart from none.
pub(super) const SHORTEST: Nanos = 1;
/// Longest latency that a histogram can hold; longer ones are counted as this. One hour.
pub const LONGEST: Nanos = 3_600_000_000_000;
/// Number of significant decimal digits.
pub(super) const DIGITS: u8 = 3;
/// Number of cells of a histogram.
pub(super) const CELLS: usize = 33 * HALF;
/// Number of cells of each power of two but the first, which has twice as many: those of 2,048 ns to an hour are 32
/// powers.
const HALF: usize = 1_024;

/// Creates a histogram with the bounds that all of kvdyno's have: unit 1 ns, 1 ns to one hour, 3 significant digits.
///
/// # Panics
/// Never: the bounds are constants that the library accepts.
#[must_use]
pub fn latency_histogram<C: Counter>() -> Histogram<C> {
    Histogram::new_with_bounds(SHORTEST, LONGEST, DIGITS).expect("constant bounds are valid")
}

/// Returns the shortest latency of a cell, ns.
pub(super) fn shortest_of(cell: usize) -> Nanos {
    match cell / HALF {
        0 | 1 => cell as Nanos,
        power => ((cell % HALF + HALF) as Nanos) << (power - 1),
    }
}

// The library is generic: its code is compiled in the crate that calls it, and as much optimised. Reports need these for
// thousands of histograms, and their crate is not optimised in a release build; this one is.

/// Creates an empty histogram of latencies.
#[must_use]
pub fn no_latencies() -> Histogram<u64> {
    latency_histogram()
}

/// Number of operations beyond a percentile from which on it is more than chance.
const BEYOND: f64 = 10.0;

/// Returns the number of operations from which on the latency at `quantile` (0 to 1) is told: 20 for a median, 1,000
/// for a 99th percentile.
#[must_use]
pub fn least_for(quantile: f64) -> u64 {
    (BEYOND / (1.0 - quantile)).round() as u64
}

/// Adds a histogram to another.
///
/// # Panics
/// Never: both have the bounds of every latency.
pub fn add_latencies(to: &mut Histogram<u64>, from: &Histogram<u64>) {
    to.add(from).expect("same bounds");
}

/// Returns the values at 50, 90, 99 and 99.9 %, and the longest, ns.
#[must_use]
pub fn five_figures(histogram: &Histogram<u64>) -> [u64; 5] {
    let [p50, p90, p99, p99_9] =
        [0.5, 0.9, 0.99, 0.999].map(|quantile| histogram.value_at_quantile(quantile));
    [p50, p90, p99, p99_9, histogram.max()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_those_of_the_library() {
        let mut histogram = latency_histogram::<u64>();
        assert_eq!(histogram.distinct_values(), CELLS);
        for cell in 0..CELLS {
            let shortest = shortest_of(cell);
            assert_eq!(histogram.lowest_equivalent(shortest), shortest);
            histogram.record(shortest).unwrap();
            assert_eq!(histogram.count_at(shortest), 1, "cell {cell} is one of its own");
        }
        assert_eq!(shortest_of(CELLS), histogram.next_non_equivalent(shortest_of(CELLS - 1)));
    }
}

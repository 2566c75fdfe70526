//! Changes of level in a series: dips of the throughput and excursions of the latency are stretches
//! between two such changes.

use crate::ground::median;

/// Strength that a change must have, in units of the noise's variance and the logarithm of the length:
/// twice what a change of level costs by Schwarz's criterion.
const STRENGTH: f64 = 4.0;
/// Factor by which the noise that matters is larger than the differences of neighbours show, because
/// neighbouring intervals resemble each other: √((1 + φ) / (1 − φ)) for a correlation of 0.5.
const CORRELATED: f64 = 1.732;
/// Reciprocal of the median absolute deviation of a normal distribution of standard deviation 1.
const NORMAL: f64 = 1.4826;

/// A stretch of one level.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Segment {
    /// Number of the first interval.
    pub from: usize,
    /// Number of the last interval plus one.
    pub to: usize,
    /// Mean of the stretch.
    pub level: f64,
}

/// Splits a series into stretches of one level: by the least squared error with a price for each change
/// (PELT: Killick, Fearnhead and Eckley, Journal of the American Statistical Association 107, 2012).
/// The noise is taken from the differences of neighbours, so that changes of level do not count as
/// noise.
#[must_use]
pub fn segments(series: &[f64]) -> Vec<Segment> {
    let n = series.len();
    if n == 0 {
        return Vec::new();
    }
    let price = STRENGTH * noise(series).powi(2) * (n as f64).ln().max(1.0);
    let (mut sums, mut squares) = (vec![0.0], vec![0.0]);
    let shift = median(series);
    for value in series.iter().map(|value| value - shift) {
        sums.push(sums[sums.len() - 1] + value);
        squares.push(squares[squares.len() - 1] + value * value);
    }
    let cost = |from: usize, to: usize| {
        let sum: f64 = sums[to] - sums[from];
        (squares[to] - squares[from] - sum * sum / (to - from) as f64).max(0.0)
    };
    // best[t]: least cost of the first t; cut[t]: where its last stretch begins.
    let (mut best, mut cut) = (vec![-price], vec![0]);
    let mut candidates = vec![0];
    for to in 1..=n {
        let total = |from: &usize| best[*from] + cost(*from, to) + price;
        let from = *candidates.iter().min_by(|a, b| total(a).total_cmp(&total(b))).unwrap_or(&0);
        let least = total(&from);
        candidates.retain(|from| best[*from] + cost(*from, to) <= least);
        candidates.push(to);
        best.push(least);
        cut.push(from);
    }
    let (mut found, mut to) = (Vec::new(), n);
    while to > 0 {
        let from = cut[to];
        let level = series[from..to].iter().sum::<f64>() / (to - from) as f64;
        found.push(Segment { from, to, level });
        to = from;
    }
    found.reverse();
    found
}

/// Returns the standard deviation of the noise about the level, for sums of neighbours; always above
/// zero.
pub(super) fn noise(series: &[f64]) -> f64 {
    let steps = series.windows(2).map(|pair| (pair[1] - pair[0]).abs()).collect::<Vec<_>>();
    let size = median(&series.iter().map(|value| value.abs()).collect::<Vec<_>>());
    (median(&steps) * NORMAL / 2f64.sqrt() * CORRELATED).max(size * 1e-3).max(1e-9)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::Random;

    fn noisy(n: usize, seed: u64) -> Vec<f64> {
        let mut random = Random::new(seed, 4);
        let mut last = 0.0;
        (0..n)
            .map(|_| {
                let normal = (0..12).map(|_| random.next_f64()).sum::<f64>() - 6.0;
                last = 0.5 * last + 4.0 * normal;
                100.0 + last
            })
            .collect()
    }

    #[test]
    fn noise_has_no_changes() {
        let split = (0..100).filter(|&seed| segments(&noisy(120, seed)).len() > 1).count();
        assert!(split <= 5, "{split} of 100 are split");
    }

    #[test]
    fn a_dip_is_found_where_it_is() {
        for seed in 0..50 {
            let mut series = noisy(120, seed);
            series[40..50].iter_mut().for_each(|value| *value *= 0.4);
            let found = segments(&series);
            let dip = found.iter().find(|segment| segment.level < 60.0).unwrap();
            assert_eq!((dip.from, dip.to), (40, 50));
        }
    }

    #[test]
    fn a_stall_of_one_interval_is_found() {
        let mut series = noisy(120, 1);
        series[70] = 0.0;
        let found = segments(&series);
        assert!(found.iter().any(|s| (s.from, s.to, s.level) == (70, 71, 0.0)), "{found:?}");
    }

    #[test]
    fn the_whole_series_is_covered_once() {
        let mut series = noisy(500, 2);
        series[100..300].iter_mut().for_each(|value| *value *= 2.0);
        let found = segments(&series);
        assert_eq!((found[0].from, found[found.len() - 1].to), (0, 500));
        assert!(found.windows(2).all(|pair| pair[0].to == pair[1].from));
        assert!(segments(&[]).is_empty());
        assert_eq!(segments(&[7.0]).len(), 1);
        assert_eq!(segments(&[7.0; 50]).len(), 1);
    }
}

//! Resampling of a series whose neighbours resemble each other. Intervals of a run are not independent: drawing them one
//! by one would make every margin too narrow, so they are drawn in blocks, whose length follows from the series itself.

use kvdyno_core::workload::Random;

/// Autocorrelations below this many standard errors count as none (Politis and White's `c`).
const NONE_BELOW: f64 = 2.0;
/// Fewest lags in a row whose autocorrelations must all count as none.
const FEWEST_LAGS: usize = 5;

/// Returns the mean length of the blocks that the stationary bootstrap of `series` should draw: Politis and White
/// (Econometric Reviews 23, 2004) as corrected by Patton, Politis and White (Econometric Reviews 28, 2009). From 1 to a
/// third of the series.
#[must_use]
pub fn length(series: &[f64]) -> f64 {
    let n = series.len();
    let longest = (3.0 * (n as f64).sqrt()).min(n as f64 / 3.0).max(1.0);
    let mean = series.iter().sum::<f64>() / n.max(1) as f64;
    let centred: Vec<f64> = series.iter().map(|value| value - mean).collect();
    let covariance = |lag: usize| {
        let pairs = centred.iter().zip(centred.iter().skip(lag));
        pairs.map(|(a, b)| a * b).sum::<f64>() / n as f64
    };
    let variance = covariance(0);
    if n < 4 || variance <= mean * mean * 1e-18 {
        return 1.0;
    }
    let quiet = FEWEST_LAGS.max((n as f64).log10().sqrt().ceil() as usize);
    let most = ((n as f64).sqrt().ceil() as usize + quiet).min(n - 1);
    let bound = NONE_BELOW * ((n as f64).log10() / n as f64).sqrt();
    let correlations: Vec<f64> = (0..=most).map(|lag| covariance(lag) / variance).collect();
    let last = last_lag(&correlations, quiet, bound);
    let window = (2 * last).clamp(1, most);
    let (mut g, mut spectrum) = (0.0, covariance(0));
    for lag in 1..=window {
        let weight = flat_top(lag as f64 / window as f64);
        g += 2.0 * weight * lag as f64 * covariance(lag);
        spectrum += 2.0 * weight * covariance(lag);
    }
    let length = (g * g / (spectrum * spectrum) * n as f64).cbrt();
    if length.is_finite() { length.clamp(1.0, longest) } else { longest }
}

/// Returns the smallest lag after which `quiet` autocorrelations in a row count as none.
fn last_lag(correlations: &[f64], quiet: usize, bound: f64) -> usize {
    let all = correlations.len();
    let silent = |lag: &usize| {
        correlations[lag + 1..(lag + 1 + quiet).min(all)].iter().all(|r| r.abs() < bound)
    };
    (0..all - 1).find(silent).unwrap_or(all - 1)
}

/// Weighs a lag by the trapezoidal window of Politis and Romano (Journal of Time Series Analysis 16, 1995).
fn flat_top(at: f64) -> f64 {
    if at <= 0.5 { 1.0 } else { (2.0 * (1.0 - at)).max(0.0) }
}

/// Counts in `counts` the draws of each of `n` intervals in one resample of the stationary bootstrap (Politis and Romano,
/// Journal of the American Statistical Association 89, 1994): blocks of geometric length with mean `length`, around the
/// end of the series.
pub fn draw(n: usize, length: f64, random: &mut Random, counts: &mut Vec<u32>) {
    counts.clear();
    counts.resize(n, 0);
    let mut at = 0;
    for drawn in 0..n {
        at = match drawn > 0 && random.next_f64() * length >= 1.0 {
            true => (at + 1) % n,
            false => random.below(n as u64) as usize,
        };
        counts[at] += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn autoregressive(phi: f64, n: usize, seed: u64) -> Vec<f64> {
        let mut random = Random::new(seed, 1);
        let mut last = 0.0;
        let mut noise = || (0..12).map(|_| random.next_f64()).sum::<f64>() - 6.0;
        (0..n)
            .map(|_| {
                last = phi * last + noise();
                100.0 + last
            })
            .collect()
    }

    #[test]
    fn blocks_grow_with_the_correlation() {
        let mean = |phi: f64| {
            (0..20).map(|seed| length(&autoregressive(phi, 200, seed))).sum::<f64>() / 20.0
        };
        let (independent, weak, strong) = (mean(0.0), mean(0.5), mean(0.9));
        assert!(independent < 3.0, "{independent}");
        assert!(weak > independent + 1.0 && strong > 1.5 * weak, "{independent} {weak} {strong}");
    }

    #[test]
    fn constant_and_short_series_have_blocks_of_one() {
        assert_eq!(length(&[5.0; 100]), 1.0);
        assert_eq!(length(&[]), 1.0);
        assert_eq!(length(&[1.0, 2.0]), 1.0);
    }

    #[test]
    fn the_error_of_a_mean_is_found_where_neighbours_resemble_each_other() {
        // Variance of the mean of an AR(1): σ² (1 + φ) / (1 − φ) / n of its own variance.
        let (phi, n) = (0.7, 400);
        let truth = ((1.0 / (1.0 - phi) / (1.0 - phi)) / n as f64).sqrt();
        let mut found = 0.0;
        for seed in 0..10 {
            let series = autoregressive(phi, n, seed);
            let (length, mut random) = (length(&series), Random::new(seed, 2));
            let (mut counts, mut means) = (Vec::new(), Vec::new());
            for _ in 0..200 {
                draw(n, length, &mut random, &mut counts);
                assert_eq!(counts.iter().sum::<u32>() as usize, n);
                let sum: f64 = series.iter().zip(&counts).map(|(x, &c)| x * f64::from(c)).sum();
                means.push(sum / n as f64);
            }
            let middle = means.iter().sum::<f64>() / 200.0;
            let square: f64 = means.iter().map(|m| (m - middle).powi(2)).sum();
            found += (square / 199.0).sqrt() / 10.0;
        }
        assert!((0.75..1.15).contains(&(found / truth)), "{found} for {truth}");
    }
}

//! Measures how evenly records and requests are spread over servers: the fullest one limits them all.

use kvdyno_core::store::{Figure, FigureUnit};

/// Share of the fullest server, in means, from which the reader is warned.
const UNEVEN: f64 = 1.1;
/// Probability of an unevenness by chance below which the reader is warned.
const UNLIKELY: f64 = 0.001;

/// Pearson's test of the hypothesis that all servers have the same share.
#[derive(Clone, Copy, Debug)]
pub struct ChiSquare {
    /// The statistic.
    pub statistic: f64,
    /// Degrees of freedom: servers less one.
    pub freedom: usize,
    /// Share of even placements that would look at least as uneven.
    pub p: f64,
}

/// Tests `counts`, one for each server, against equal shares.
#[must_use]
pub fn chi_square(counts: &[u64]) -> ChiSquare {
    let freedom = counts.len().saturating_sub(1);
    let mean = counts.iter().sum::<u64>() as f64 / counts.len().max(1) as f64;
    if mean == 0.0 || freedom == 0 {
        return ChiSquare { statistic: 0.0, freedom, p: 1.0 };
    }
    let statistic = counts.iter().map(|&n| (n as f64 - mean).powi(2) / mean).sum();
    ChiSquare { statistic, freedom, p: upper_tail(statistic, freedom) }
}

/// Returns the figures of one thing that is spread: `what` is `keys` or `requests`, `servers` has a name and a count for
/// each, `advice` is what to do if they are uneven.
#[must_use]
pub fn figures(what: &str, servers: &[(String, u64)], advice: &str) -> Vec<Figure> {
    let counts: Vec<u64> = servers.iter().map(|(_, count)| *count).collect();
    let total: u64 = counts.iter().sum();
    let Some((fullest, most)) = servers.iter().max_by_key(|(_, count)| *count) else {
        return Vec::new();
    };
    if total == 0 || servers.len() < 2 {
        return Vec::new();
    }
    let test = chi_square(&counts);
    let over_mean = *most as f64 * counts.len() as f64 / total as f64;
    let warning = (over_mean > UNEVEN && test.p < UNLIKELY).then(|| {
        let more = (over_mean - 1.0) * 100.0;
        format!(
            "{what} are spread unevenly: {fullest} has {more:.0} % more than the mean; {advice}"
        )
    });
    let each: Vec<String> = servers.iter().map(|(name, count)| format!("{name} {count}")).collect();
    vec![
        Figure {
            name: format!("{what} on the fullest server, over the mean"),
            value: over_mean,
            unit: FigureUnit::Ratio,
            detail: each.join(", "),
            warning,
        },
        Figure {
            name: format!("chi-square of {what}"),
            value: test.statistic,
            unit: FigureUnit::Ratio,
            detail: format!(
                "{} degrees of freedom; by chance as uneven or more: p = {:.3}",
                test.freedom, test.p
            ),
            warning: None,
        },
        Figure {
            name: format!("chance of {what} as uneven"),
            value: test.p,
            unit: FigureUnit::Share,
            detail: "or more so, if every server were as likely as every other".to_owned(),
            warning: None,
        },
    ]
}

/// Returns the share of the chi-square distribution above `x`, for whole degrees of freedom: the finite sums of
/// Abramowitz and Stegun, 26.4.4 and 26.4.5.
fn upper_tail(x: f64, freedom: usize) -> f64 {
    let half = x / 2.0;
    let mut sum = 0.0;
    // Each term by its logarithm, so that neither power nor factorial overflows.
    if freedom.is_multiple_of(2) {
        let mut log_term = -half;
        for k in 0..freedom / 2 {
            if k > 0 {
                log_term += (half / k as f64).ln();
            }
            sum += log_term.exp();
        }
    } else {
        sum = 2.0 * normal_tail(x.sqrt());
        // √(2/π)·e^(−x/2)·√x, then times x/3, x/5, …
        let mut log_term = (2.0 / std::f64::consts::PI).ln() / 2.0 - half + x.ln() / 2.0;
        for k in 1..=(freedom - 1) / 2 {
            if k > 1 {
                log_term += (x / (2 * k - 1) as f64).ln();
            }
            sum += log_term.exp();
        }
    }
    sum.clamp(0.0, 1.0)
}

/// Returns the share of the normal distribution above `z` ≥ 0 (Abramowitz and Stegun, 26.2.17; error below
/// 7.5e-8, far below what a warning at 0.001 needs).
fn normal_tail(z: f64) -> f64 {
    const B: [f64; 5] = [0.319381530, -0.356563782, 1.781477937, -1.821255978, 1.330274429];
    let t = 1.0 / (1.0 + 0.2316419 * z);
    let polynomial = B.iter().rev().fold(0.0, |sum, b| (sum + b) * t);
    (-z * z / 2.0).exp() / (2.0 * std::f64::consts::PI).sqrt() * polynomial
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tail_is_that_of_the_tables() {
        // Critical values of the chi-square distribution (NIST/SEMATECH e-Handbook, 1.3.6.7.4).
        for (freedom, x, p) in [
            (1, 3.841, 0.05),
            (1, 10.828, 0.001),
            (2, 5.991, 0.05),
            (3, 7.815, 0.05),
            (3, 16.266, 0.001),
            (4, 18.467, 0.001),
            (11, 19.675, 0.05),
            (15, 37.697, 0.001),
            (100, 124.342, 0.05),
        ] {
            let found = upper_tail(x, freedom);
            assert!((found / p - 1.0).abs() < 0.01, "{freedom}, {x}: {found} for {p}");
        }
        assert!(upper_tail(1e9, 15) < 1e-9);
        assert!((upper_tail(0.0, 4) - 1.0).abs() < 1e-12);
        assert!((upper_tail(0.0, 3) - 1.0).abs() < 1e-6);
    }

    fn servers(counts: &[u64]) -> Vec<(String, u64)> {
        counts.iter().enumerate().map(|(n, &count)| (format!("s{n}"), count)).collect()
    }

    #[test]
    fn an_uneven_spread_is_warned_of_with_its_server() {
        let found = figures("keys", &servers(&[100_000, 100_000, 160_000, 40_000]), "reshard");
        assert!((found[0].value - 1.6).abs() < 1e-9);
        let warning = found[0].warning.as_deref().unwrap();
        assert!(warning.contains("s2 has 60 % more") && warning.ends_with("reshard"), "{warning}");
        assert!((found[1].value - 72_000.0).abs() < 1e-6);
        assert_eq!((found[2].name.as_str(), found[2].value), ("chance of keys as uneven", 0.0));
    }

    #[test]
    fn chance_and_small_differences_are_not_warned_of() {
        // 12 keys can lie like this; 1 % more is significant in a million and harms nobody.
        for counts in [&[4, 2, 5, 1][..], &[252_500, 249_000, 249_500, 249_000]] {
            assert_eq!(figures("keys", &servers(counts), "")[0].warning, None, "{counts:?}");
        }
        assert!(figures("keys", &servers(&[0, 0]), "").is_empty());
        assert!(figures("keys", &servers(&[7]), "").is_empty());
        assert!(figures("keys", &[], "").is_empty());
    }
}

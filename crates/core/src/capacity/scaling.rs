//! Gunther's Universal Scalability Law, fitted to a sweep: throughput over the number of clients,
//! threads or servers, X(N) = λN / (1 + σ(N − 1) + κN(N − 1)), with contention σ and coherency κ
//! (N. J. Gunther, "A General Theory of Computational Scalability Based on Rational Functions",
//! arXiv:0808.1431, 2008).
//!
//! N / X(N) is linear in 1 / λ, σ / λ and κ / λ, so it is fitted by linear least squares, each point weighted such
//! that relative errors of X count alike. σ and κ below 0 have no meaning here: a coefficient that would be below 0
//! is held at 0, and the others are fitted again.

/// Fewest points of a fit of three coefficients: one more than it has coefficients, so that the fit can be checked.
const POINTS: usize = 4;
/// Least share of the variance that the law must explain, or nothing is read off it.
const GOOD: f64 = 0.9;

/// The coefficients of the law.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scaling {
    /// Throughput of one client, thread or server, operations a second.
    pub lambda: f64,
    /// Contention: the share of work that is done one at a time. 0 or more.
    pub sigma: f64,
    /// Coherency: the cost of each pair of clients, threads or servers. 0 or more.
    pub kappa: f64,
}

/// The law that fits a sweep, with its goodness.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fit {
    /// The law.
    pub scaling: Scaling,
    /// Share of the variance of the throughput that it explains; below 0 it is worse than the mean.
    pub r2: f64,
    /// Greatest number in the sweep.
    pub largest: f64,
}

/// Number at which the law's throughput is highest.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Peak {
    /// Number of clients, threads or servers.
    pub at: f64,
    /// Throughput there, operations a second.
    pub rate: f64,
}

/// Error of a sweep of too few different numbers for a fit; holds how many there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "a fit of three coefficients needs at least {POINTS} measurements at different sizes; there are {0}"
)]
pub struct TooFewPoints(pub usize);

impl Scaling {
    /// Returns the throughput at `n`, operations a second.
    #[must_use]
    pub fn rate(&self, n: f64) -> f64 {
        self.lambda * n / (1.0 + self.sigma * (n - 1.0) + self.kappa * n * (n - 1.0))
    }

    /// Returns the place of the highest throughput; `None` if it never falls.
    #[must_use]
    pub fn peak(&self) -> Option<Peak> {
        let at = ((1.0 - self.sigma).max(0.0) / self.kappa).sqrt().max(1.0);
        at.is_finite().then(|| Peak { at, rate: self.rate(at) })
    }
}

impl Fit {
    /// Fits the law to `points` of (number, operations a second).
    ///
    /// # Errors
    /// [`TooFewPoints`] if fewer than four different numbers have a throughput.
    pub fn of(points: &[(f64, f64)]) -> Result<Fit, TooFewPoints> {
        let usable = |&&(n, x): &&(f64, f64)| n >= 1.0 && x > 0.0 && x.is_finite();
        let points: Vec<(f64, f64)> = points.iter().filter(usable).copied().collect();
        let mut numbers: Vec<f64> = points.iter().map(|point| point.0).collect();
        numbers.sort_by(f64::total_cmp);
        numbers.dedup();
        if numbers.len() < POINTS {
            return Err(TooFewPoints(numbers.len()));
        }
        let candidates = [[true, true], [true, false], [false, true], [false, false]];
        let fits = candidates.into_iter().filter_map(|free| fit_with(&points, free));
        let best = fits.min_by(|a, b| error_of(&points, a).total_cmp(&error_of(&points, b)));
        let scaling = best.ok_or(TooFewPoints(numbers.len()))?;
        let largest = numbers.last().copied().unwrap_or(1.0);
        Ok(Fit { scaling, r2: r2(&points, &scaling), largest })
    }

    /// Returns true if the law describes the sweep well enough to read anything off it.
    #[must_use]
    pub fn is_good(&self) -> bool {
        self.r2 >= GOOD
    }

    /// Returns the peak, if the fit is good and the sweep reached it: beyond the data nothing is forecast.
    #[must_use]
    pub fn peak_seen(&self) -> Option<Peak> {
        self.scaling.peak().filter(|peak| self.is_good() && peak.at <= self.largest)
    }

    /// Returns the law's throughput at `n`, operations a second, if the fit is good and `n` lies within the sweep.
    #[must_use]
    pub fn within(&self, n: f64) -> Option<f64> {
        (self.is_good() && n <= self.largest).then(|| self.scaling.rate(n))
    }
}

/// Fits by weighted least squares with σ and κ free or held at 0; `None` if a coefficient comes out below 0.
fn fit_with(points: &[(f64, f64)], free: [bool; 2]) -> Option<Scaling> {
    let mut normal = [[0.0; 4]; 3];
    for &(n, x) in points {
        // An error of 1 % in X is one of 1 % in N / X: divided by N / X, all weigh alike.
        let weight = x / n;
        let row = [1.0, n - 1.0, n * (n - 1.0)].map(|term| term * weight);
        for i in 0..3 {
            for j in 0..3 {
                normal[i][j] += row[i] * row[j];
            }
            normal[i][3] += row[i];
        }
    }
    for (coefficient, free) in free.into_iter().enumerate() {
        if !free {
            normal[coefficient + 1] = [0.0; 4];
            normal.iter_mut().for_each(|row| row[coefficient + 1] = 0.0);
            normal[coefficient + 1][coefficient + 1] = 1.0;
        }
    }
    let [a, b, c] = solved(normal)?;
    let scaling = Scaling { lambda: 1.0 / a, sigma: b / a, kappa: c / a };
    let fine = a > 0.0 && [b, c].iter().all(|k| *k >= 0.0) && scaling.lambda.is_finite();
    fine.then_some(scaling)
}

/// Solves the equations by Gaussian elimination with pivots; `None` if they have no single solution.
fn solved(mut rows: [[f64; 4]; 3]) -> Option<[f64; 3]> {
    for column in 0..3 {
        let pivot =
            (column..3).max_by(|&a, &b| rows[a][column].abs().total_cmp(&rows[b][column].abs()))?;
        rows.swap(column, pivot);
        if rows[column][column].abs() < f64::MIN_POSITIVE {
            return None;
        }
        for row in 0..3 {
            if row != column {
                let factor = rows[row][column] / rows[column][column];
                let above = rows[column];
                rows[row].iter_mut().zip(above).for_each(|(value, above)| *value -= factor * above);
            }
        }
    }
    Some([0, 1, 2].map(|i| rows[i][3] / rows[i][i]))
}

/// Returns the sum that the fit minimizes: squares of relative errors of N / X.
fn error_of(points: &[(f64, f64)], scaling: &Scaling) -> f64 {
    points.iter().map(|&(n, x)| (x / scaling.rate(n) - 1.0).powi(2)).sum()
}

fn r2(points: &[(f64, f64)], scaling: &Scaling) -> f64 {
    let mean = points.iter().map(|point| point.1).sum::<f64>() / points.len() as f64;
    let left: f64 = points.iter().map(|&(n, x)| (x - scaling.rate(n)).powi(2)).sum();
    let all: f64 = points.iter().map(|&(_, x)| (x - mean).powi(2)).sum();
    // All throughputs alike, and met: nothing is left to explain.
    if all == 0.0 { if left == 0.0 { 1.0 } else { 0.0 } } else { 1.0 - left / all }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::derive_seed;

    const CLIENTS: [f64; 8] = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0];

    /// Makes the sweep of a law, each point off by up to `noise` of itself.
    fn sweep(law: Scaling, noise: f64, seed: u64) -> Vec<(f64, f64)> {
        let off = |n: f64| derive_seed(seed, n as u64) as f64 / u64::MAX as f64 * 2.0 - 1.0;
        CLIENTS.map(|n| (n, law.rate(n) * (1.0 + noise * off(n)))).to_vec()
    }

    #[test]
    fn known_coefficients_come_back() {
        let laws = [(995.6, 0.026_7, 0.000_769), (50_000.0, 0.0, 0.001), (10.0, 0.3, 0.0)];
        for (lambda, sigma, kappa) in laws {
            let law = Scaling { lambda, sigma, kappa };
            let fit = Fit::of(&sweep(law, 0.0, 1)).unwrap();
            let near = |got: f64, want: f64| (got - want).abs() <= 1e-6 * want.max(1e-3);
            assert!(near(fit.scaling.lambda, lambda), "{fit:?}");
            assert!(near(fit.scaling.sigma, sigma) && near(fit.scaling.kappa, kappa), "{fit:?}");
            assert!(fit.r2 > 0.999_999);
        }
    }

    #[test]
    fn noise_of_a_few_per_cent_moves_the_peak_little() {
        let law = Scaling { lambda: 1_000.0, sigma: 0.02, kappa: 0.000_5 };
        let peak = law.peak().unwrap();
        for seed in 0..100 {
            let fit = Fit::of(&sweep(law, 0.03, seed)).unwrap();
            let found = fit.peak_seen().unwrap();
            assert!((found.at / peak.at - 1.0).abs() < 0.25, "{seed}: {fit:?}");
            assert!((found.rate / peak.rate - 1.0).abs() < 0.05, "{seed}: {fit:?}");
            assert!(fit.r2 > 0.95 && fit.scaling.sigma >= 0.0);
        }
    }

    #[test]
    fn a_peak_beyond_the_sweep_is_not_forecast() {
        let law = Scaling { lambda: 1_000.0, sigma: 0.01, kappa: 1e-6 };
        let fit = Fit::of(&sweep(law, 0.0, 1)).unwrap();
        assert!(fit.scaling.peak().unwrap().at > 900.0);
        assert_eq!(fit.peak_seen(), None);
        assert_eq!(fit.within(256.0), None);
        assert!(fit.within(100.0).is_some());
    }

    #[test]
    fn what_does_not_follow_the_law_is_not_read_off_it() {
        let points = [(1.0, 100.0), (2.0, 10.0), (4.0, 300.0), (8.0, 20.0), (16.0, 250.0)];
        let fit = Fit::of(&points).unwrap();
        assert!(!fit.is_good() && fit.peak_seen().is_none() && fit.within(4.0).is_none());
    }

    #[test]
    fn better_than_linear_is_held_at_linear() {
        let points = [(1.0, 100.0), (2.0, 210.0), (3.0, 330.0), (4.0, 460.0)];
        let fit = Fit::of(&points).unwrap();
        assert_eq!((fit.scaling.sigma, fit.scaling.kappa), (0.0, 0.0));
        assert_eq!(fit.scaling.peak(), None);
    }

    #[test]
    fn too_few_numbers_are_refused() {
        let points = [(1.0, 1.0), (2.0, 2.0), (2.0, 2.1), (4.0, 3.5), (8.0, 0.0)];
        assert_eq!(Fit::of(&points), Err(TooFewPoints(3)));
        assert_eq!(Fit::of(&[]), Err(TooFewPoints(0)));
    }

    #[test]
    fn a_level_sweep_is_all_contention() {
        let points = CLIENTS.map(|n| (n, 5_000.0));
        let fit = Fit::of(&points).unwrap();
        assert!((fit.scaling.sigma - 1.0).abs() < 1e-6 && fit.scaling.kappa < 1e-9, "{fit:?}");
    }
}

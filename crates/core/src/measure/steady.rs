//! Settling of a run: finds the end of the warm-up, or that the run never settled, from its figures and not by a guess.

use super::changes::noise;
use crate::ground::median;

/// Number of intervals in a batch of the truncation rule: MSER-5 has five.
const BATCH: usize = 5;
/// Lowest number of batches; in shorter runs a batch has fewer intervals.
const FEWEST_BATCHES: usize = 10;
/// Number of batches at the end for which the rule is not asked: it is erratic there.
const LAST_BATCHES: usize = 4;
/// Largest difference of a warm-up's mean from the mean of what follows at which there was no warm-up, as a share of
/// the latter.
const NO_WARMUP: f64 = 0.05;
/// Largest such difference in standard errors.
const NO_WARMUP_ERRORS: f64 = 5.0;
/// Two-sided 1 % point of the normal distribution.
const RARE: f64 = 2.576;
/// Lowest number of intervals of which anything is told.
const FEWEST: usize = 12;
/// Lowest number of points that can show a trend: of five no order is rare enough.
const FEWEST_POINTS: usize = 6;
/// Share of the median below which a level counts as this share: zero has no logarithm.
const NOTHING: f64 = 1e-3;
/// Highest number of points of which a trend is made; neighbours of longer runs are averaged.
const MOST_POINTS: usize = 300;

/// Settling of a series: when it settled, if it did, and its trend.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Settling {
    /// First interval of the steady part; `None` if the series never settled: if the steady part would begin in the
    /// second half, or if there is a trend.
    pub from: Option<usize>,
    /// Change of the series over its whole length, as a share of its level at the begin, if that is surely a trend
    /// which its second half continues; else 0. Never below −1: a series cannot fall by more than all of its level.
    pub trend: f64,
}

impl Settling {
    /// Looks at one figure per interval, such as the throughput; `None` of fewer than twelve.
    ///
    /// The warm-up ends by the rule MSER-5: where what follows has the smallest squared standard error (White,
    /// Simulation 69, 1997; White, Cobb and Spratt, Winter Simulation Conference 2000; the rule that fared best in
    /// Hoad, Robinson and Davies, Journal of the Operational Research Society 61, 2010). A trend is Mann and Kendall's,
    /// with the variance that correlated neighbours give it (Hamed and Rao, Journal of Hydrology 204, 1998), and as
    /// large as Sen's slope (Journal of the American Statistical Association 63, 1968) of the logarithms says.
    #[must_use]
    pub fn of(series: &[f64]) -> Option<Settling> {
        if series.len() < FEWEST {
            return None;
        }
        let whole = trend(series);
        let second = trend(&series[series.len() / 2..]);
        let trend = if whole * second > 0.0 { whole } else { 0.0 };
        let from = if trend == 0.0 { truncation(series) } else { None };
        Some(Settling { from, trend })
    }
}

/// Finds the first interval after the warm-up; `None` if the rule's best place lies in the second half.
fn truncation(series: &[f64]) -> Option<usize> {
    let size = (series.len() / FEWEST_BATCHES).clamp(1, BATCH);
    let batches: Vec<f64> = series.chunks_exact(size).map(mean).collect();
    let last = batches.len().saturating_sub(LAST_BATCHES).max(1);
    let error = |from: usize| {
        let rest = &batches[from..];
        let middle = mean(rest);
        let squares: f64 = rest.iter().map(|value| (value - middle).powi(2)).sum();
        squares / (rest.len() as f64).powi(2)
    };
    let best = |until: usize| {
        (0..until).min_by(|&a, &b| error(a).total_cmp(&error(b))).unwrap_or(0) * size
    };
    let (overall, early) = (best(last), best(last.min(batches.len() / 2 + 1)));
    // The rule is erratic where noise is all there is: what it cuts off must differ from the rest.
    if overall > early && apart(&series[early..overall], &series[overall..]) {
        return None;
    }
    match apart(&series[..early], &series[early..]) {
        true => Some(early),
        false => Some(0),
    }
}

/// Returns true if the means of two neighbouring stretches surely differ, and by enough to matter.
fn apart(before: &[f64], after: &[f64]) -> bool {
    if before.is_empty() || after.is_empty() {
        return false;
    }
    let scatter = noise(before).max(noise(after));
    let error = scatter * (1.0 / before.len() as f64 + 1.0 / after.len() as f64).sqrt();
    let difference = (mean(before) - mean(after)).abs();
    difference > NO_WARMUP * mean(after).abs() && difference > NO_WARMUP_ERRORS * error
}

/// Returns the change over the series as a share of its level at the begin; 0 unless it is surely a trend.
fn trend(series: &[f64]) -> f64 {
    let points: Vec<f64> =
        series.chunks(series.len().div_ceil(MOST_POINTS).max(1)).map(mean).collect();
    let n = points.len();
    let middle = median(&points);
    if n < FEWEST_POINTS || middle <= 0.0 {
        return 0.0;
    }
    // Of logarithms, so that what falls to a tenth has fallen by 90 %, and not by six times its median.
    let logs: Vec<f64> = points.iter().map(|point| point.max(middle * NOTHING).ln()).collect();
    let mut slopes = Vec::with_capacity(n * (n - 1) / 2);
    let mut growths = Vec::with_capacity(n * (n - 1) / 2);
    let mut sign = 0.0;
    for (i, a) in points.iter().enumerate() {
        for (j, b) in points.iter().enumerate().skip(i + 1) {
            slopes.push((b - a) / (j - i) as f64);
            growths.push((logs[j] - logs[i]) / (j - i) as f64);
            sign += f64::from(i8::from(b > a) - i8::from(b < a));
        }
    }
    let slope = median(&slopes);
    let count = n as f64;
    let variance = count * (count - 1.0) * (2.0 * count + 5.0) / 18.0 * inflation(&points, slope);
    let z = (sign.abs() - 1.0).max(0.0) / variance.sqrt();
    if z > RARE { (median(&growths) * (count - 1.0)).exp_m1() } else { 0.0 }
}

/// Returns the factor by which the variance of the test's statistic is larger because neighbours resemble each other.
/// It comes from the autocorrelations of the ranks of what the trend leaves, as far as these are significant.
fn inflation(points: &[f64], slope: f64) -> f64 {
    let left: Vec<f64> = points.iter().enumerate().map(|(i, p)| p - slope * i as f64).collect();
    let rank = |value: &f64| left.iter().filter(|other| *other < value).count() as f64;
    let ranks: Vec<f64> = left.iter().map(rank).collect();
    let (n, middle) = (ranks.len() as f64, mean(&ranks));
    let product = |lag: usize| -> f64 {
        let pairs = ranks.iter().zip(&ranks[lag..]);
        pairs.map(|(a, b)| (a - middle) * (b - middle)).sum()
    };
    let all = product(0);
    if all <= 0.0 {
        return 1.0;
    }
    let mut sum = 0.0;
    for lag in 1..ranks.len() / 3 {
        let correlation = product(lag) / all;
        if correlation.abs() > 1.96 / n.sqrt() {
            let left = n - lag as f64;
            sum += left * (left - 1.0) * (left - 2.0) * correlation;
        }
    }
    (1.0 + 2.0 / (n * (n - 1.0) * (n - 2.0)) * sum).max(1.0)
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::Random;

    /// Returns an autoregressive series about 100 with a standard deviation of 5.
    fn steady(n: usize, seed: u64) -> Vec<f64> {
        let mut random = Random::new(seed, 3);
        let mut last = 0.0;
        (0..n)
            .map(|_| {
                let normal = (0..12).map(|_| random.next_f64()).sum::<f64>() - 6.0;
                last = 0.6 * last + 4.0 * normal;
                100.0 + last
            })
            .collect()
    }

    #[test]
    fn what_is_steady_has_no_warm_up_and_no_trend() {
        let mut wrong = 0;
        for seed in 0..200 {
            let found = Settling::of(&steady(60, seed)).unwrap();
            wrong += usize::from(found.from.is_none() || found.trend.abs() > 0.1);
        }
        assert!(wrong <= 2, "{wrong} of 200 steady series are called unsettled");
    }

    #[test]
    fn the_end_of_a_warm_up_is_found() {
        let (mut found, mut near) = (0, 0);
        for seed in 0..50 {
            let mut series = steady(100, seed);
            series[..20].iter_mut().for_each(|value| *value *= 0.5);
            // The rule never keeps some of the warm-up; it may cut off more than that.
            let from = Settling::of(&series).unwrap().from;
            found += usize::from(from.is_some_and(|from| (15..=50).contains(&from)));
            near += usize::from(from.is_some_and(|from| (15..=30).contains(&from)));
        }
        assert!(found >= 47 && near >= 35, "found in {found} of 50, near its end in {near}");
    }

    #[test]
    fn a_run_that_keeps_falling_never_settles_or_has_a_trend() {
        for seed in 0..50 {
            let falling = steady(60, seed).into_iter().enumerate();
            let falling: Vec<f64> = falling.map(|(i, v)| v * (1.0 - 0.01 * i as f64)).collect();
            let found = Settling::of(&falling).unwrap();
            assert!(found.from.is_none() && found.trend < -0.1, "{found:?}");
        }
    }

    #[test]
    fn nothing_falls_by_more_than_all_of_it() {
        for seed in 0..20 {
            let falling = steady(60, seed).into_iter().enumerate();
            let falling: Vec<f64> = falling.map(|(i, v)| v * (-(i as f64) / 10.0).exp()).collect();
            let fell = Settling::of(&falling).unwrap().trend;
            assert!((-1.0..-0.99).contains(&fell), "to e^-5.9 of it: {fell}");
            let rose = Settling::of(&falling.into_iter().rev().collect::<Vec<_>>()).unwrap().trend;
            assert!((200.0..600.0).contains(&rose), "to e^5.9 of it: {rose}");
        }
    }

    #[test]
    fn one_stall_is_neither() {
        let mut series = steady(60, 7);
        series[30] = 1.0;
        let found = Settling::of(&series).unwrap();
        assert_eq!((found.from, found.trend), (Some(0), 0.0));
    }

    #[test]
    fn short_series_say_nothing() {
        assert_eq!(Settling::of(&[1.0; 11]), None);
        assert_eq!(Settling::of(&[5.0; 12]), Some(Settling { from: Some(0), trend: 0.0 }));
    }
}

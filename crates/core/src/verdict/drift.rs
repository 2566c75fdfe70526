//! Drift of the throughput over a phase. Single slow intervals must not count as drift, so the halves are compared
//! by rank and by median, not by mean.

use crate::ground::median;
use crate::measure::{Interval, Timeline};

/// Lowest number of whole intervals in a half: with three, no order of theirs would be rare enough.
const FEWEST: usize = 4;
/// Two-sided 1 % point of the normal distribution: a steady store passes 99 of 100 times even
/// before its medians are looked at.
const RARE: f64 = 2.576;
/// Separation of the halves that counts as rare, too: a complete one. With four intervals in a half the most
/// extreme order there is (2 in 70) only reaches 2.31.
const SEPARATED: f64 = 1.0;

/// Returns the median throughput of both halves, in operations a second, if they surely differ.
pub(super) fn halves_that_differ(timeline: &Timeline) -> Option<(f64, f64)> {
    let rates = whole_interval_rates(timeline);
    let half = rates.len() / 2;
    if half < FEWEST {
        return None;
    }
    let (first, second) = (&rates[..half], &rates[rates.len() - half..]);
    differ(first, second).then(|| (median(first), median(second)))
}

/// Returns the throughput of each whole interval, in operations a second that succeeded: intervals shorter than 95
/// % of the longest, such as a last one that was cut, are left out.
pub(super) fn whole_interval_rates(timeline: &Timeline) -> Vec<f64> {
    let whole = timeline.intervals().map(Interval::length).max().unwrap_or_default();
    timeline
        .intervals()
        .filter(|interval| interval.length() > 0 && interval.length() * 100 >= whole * 95)
        .map(Interval::rate)
        .collect()
}

/// Compares the halves by Mann and Whitney's test (Annals of Mathematical Statistics 18, 1947) in its normal
/// approximation. It takes intervals for independent, which they are not quite; the threshold on the medians makes
/// up for that.
fn differ(first: &[f64], second: &[f64]) -> bool {
    let (n, m) = (first.len() as f64, second.len() as f64);
    let wins = |x: f64, y: f64| {
        if x > y {
            1.0
        } else if x < y {
            0.0
        } else {
            0.5
        }
    };
    let u: f64 = first.iter().flat_map(|&x| second.iter().map(move |&y| wins(x, y))).sum();
    let deviation = (n * m * (n + m + 1.0) / 12.0).sqrt();
    let z = (u - n * m / 2.0).abs() / deviation;
    let separation = (2.0 * u / (n * m) - 1.0).abs();
    z >= RARE || separation >= SEPARATED
}

#[cfg(test)]
mod tests {
    use super::*;

    fn timeline(rates: &[u64]) -> Timeline {
        let intervals = (rates.iter().enumerate()).map(|(index, &completed)| Interval {
            index: index as u32,
            start: index as u64 * 1_000_000_000,
            end: (index as u64 + 1) * 1_000_000_000,
            offered: completed,
            started: completed,
            completed,
            ..Interval::default()
        });
        intervals.collect()
    }

    #[test]
    fn a_step_is_seen_and_its_medians_told() {
        let steps = timeline(&[100, 101, 99, 100, 70, 71, 69, 70]);
        assert_eq!(halves_that_differ(&steps), Some((100.0, 70.0)));
    }

    #[test]
    fn steady_noise_is_no_drift() {
        assert_eq!(halves_that_differ(&timeline(&[100, 80, 120, 90, 110, 85, 115, 95])), None);
    }

    #[test]
    fn a_single_stall_is_no_drift() {
        let stall = timeline(&[100, 101, 99, 100, 102, 100, 1, 101, 99, 103]);
        assert_eq!(halves_that_differ(&stall), None);
    }

    /// Halves of six intervals each, with `u` pairs against the order: z is 2.72 with one, 2.64 with one and a tie,
    /// 2.56 with two.
    #[test]
    fn halves_differ_where_their_order_is_rare() {
        let low = |last: f64| [1.0, 2.0, 3.0, 4.0, 5.0, last];
        let high = |second: f64| [6.0, second, 9.0, 10.0, 11.0, 12.0];
        for (low, high, rare) in
            [(low(7.0), high(8.0), true), (low(8.0), high(8.0), true), (low(8.0), high(7.0), false)]
        {
            assert_eq!(differ(&low, &high), rare, "{low:?}, {high:?}");
            assert_eq!(differ(&high, &low), rare, "{high:?}, {low:?}");
        }
    }

    #[test]
    fn three_intervals_a_half_are_too_few() {
        assert_eq!(halves_that_differ(&timeline(&[100, 100, 100, 10, 10, 10])), None);
    }

    #[test]
    fn a_cut_last_interval_is_left_out() {
        let mut cut = timeline(&[100, 100, 100, 100, 100, 100, 100, 100, 7]);
        let last = &mut cut.points[8].interval;
        last.end = last.start + 70_000_000;
        assert_eq!(whole_interval_rates(&cut), [100.0; 8]);
    }
}

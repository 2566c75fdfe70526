//! Finds when latency after a fault was as before: when no larger share of the operations was slow. Operations count, not
//! seconds, so that one slow moment of a long watch decides nothing.

use kvdyno_core::measure::{Nanos, Slow, Stretch, Timeline, TimelinePoint};

use crate::result::{LatencyRecovery, Undecided};

use super::recovery::window_of;

/// Fewest operations from which a share of slow ones can be told.
const FEWEST: u64 = 1_000;
/// Fewest operations of an interval that show how much the share of slow ones scatters.
const FEWEST_OF_INTERVAL: u64 = 100;
/// Fewest such intervals.
const FEWEST_INTERVALS: usize = 5;
/// Two-sided 95 % point of the normal distribution, rounded up.
const RANGE: f64 = 2.0;
/// Slow operations beyond the expected ones that are always put down to chance, however few there were before.
const A_FEW: f64 = 2.0;

/// Slow operations of one side before the first fault of a phase.
struct Before {
    slow: Slow,
    /// Scatter of the counts of intervals as a multiple of that of independent operations.
    clusters: f64,
}

impl Before {
    fn of(timeline: &Timeline, side: usize, first: Nanos) -> Before {
        let slow = timeline.former_slow[side];
        let share = slow.share();
        let level = timeline.level_from.unwrap_or(Nanos::MAX);
        let before = |point: &&TimelinePoint| {
            point.interval.start >= level && point.interval.end <= timeline.start + first
        };
        let counts: Vec<Slow> =
            timeline.points.iter().filter(before).map(|p| p.slow[side]).collect();
        let told: Vec<f64> = counts
            .iter()
            .filter(|slow| slow.of >= FEWEST_OF_INTERVAL)
            .map(|slow| {
                let expected = slow.of as f64 * share;
                (slow.slower as f64 - expected).powi(2) / (expected * (1.0 - share)).max(0.1)
            })
            .collect();
        let clusters = match told.len() >= FEWEST_INTERVALS {
            true => (told.iter().sum::<f64>() / (told.len() - 1) as f64).max(1.0),
            false => 1.0,
        };
        Before { slow, clusters }
    }

    /// Returns how many of `of` operations may be slow.
    fn allows(&self, of: u64) -> f64 {
        let (of, before) = (of as f64, self.slow.of as f64);
        let share = (self.slow.slower as f64 + 0.5) / (before + 1.0);
        let expected = of * share;
        let range = RANGE * (self.clusters * expected * (1.0 + of / before)).sqrt();
        expected + range + A_FEW
    }
}

/// Returns when latency on one side of a phase was as before the phase's `first` fault, after the action at the begin of
/// `span`; times since the phase began. `None` if there is no percentile from before.
pub(super) fn recovery(
    timeline: &Timeline,
    side: usize,
    first: Nanos,
    span: Stretch,
) -> Option<LatencyRecovery> {
    let former = timeline.former_p99[side].filter(|p99| p99.is_finite())?;
    let before = Before::of(timeline, side, first);
    let told = LatencyRecovery {
        bound_ns: 2.0 * former,
        former_share: before.slow.share(),
        ..LatencyRecovery::default()
    };
    let undecided = |why| Some(LatencyRecovery { undecided: Some(why), ..told });
    let Some(window) = window_of(span) else { return undecided(Undecided::WatchedTooShort) };
    if before.slow.of < FEWEST {
        return undecided(Undecided::TooFewOperations);
    }
    let since = |at: Nanos| at.saturating_sub(timeline.start);
    let within = |point: &&TimelinePoint| {
        since(point.interval.end) > span.from && since(point.interval.end) <= span.to
    };
    let points: Vec<&TimelinePoint> = timeline.points.iter().filter(within).collect();
    let begins = points.iter().map(|point| since(point.interval.start).max(span.from));
    let mut watched = None;
    for (number, begin) in begins.enumerate() {
        let Some(slow) = pooled(&points[number..], side, timeline.start + begin + window) else {
            break;
        };
        watched = Some(begin - span.from);
        if slow.slower as f64 <= before.allows(slow.of) {
            let after_ns = Some(begin - span.from);
            let watched_ns = begin - span.from;
            return Some(LatencyRecovery { window_ns: window, watched_ns, after_ns, ..told });
        }
    }
    match watched {
        Some(watched_ns) => Some(LatencyRecovery { window_ns: window, watched_ns, ..told }),
        None => undecided(Undecided::TooFewOperations),
    }
}

/// Counts the operations of intervals until `end`, and further until there are [`FEWEST`]; `None` if there are fewer.
fn pooled(points: &[&TimelinePoint], side: usize, end: Nanos) -> Option<Slow> {
    let mut sum = Slow::default();
    for point in points {
        let slow = point.slow[side];
        sum = Slow { slower: sum.slower + slow.slower, of: sum.of + slow.of };
        if point.interval.end >= end && sum.of >= FEWEST {
            return Some(sum);
        }
    }
    None
}

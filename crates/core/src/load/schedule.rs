//! When each request of a lane is due. A lane is one worker's share of a client group: of `lanes`
//! lanes, lane `l` owns the operation ids `first + k * stride`, k = 0, 1, 2…
//!
//! For constant and ramped rates a due time is a pure function of the operation id, so the lanes
//! interleave into one even schedule. Poisson lanes each run a Poisson process at their share of
//! the rate; independent Poisson processes together are one at the sum of the rates.

use crate::measure::Nanos;
use crate::workload::{Arrival, Random};

const SECOND: f64 = 1e9;

/// The due times of one lane in order: an endless, cloneable cursor.
#[derive(Clone, Debug)]
pub struct Dues {
    arrival: Arrival,
    start: Nanos,
    next_id: u64,
    stride: u64,
    poisson: Random,
    poisson_at: f64,
}

impl Dues {
    /// Due times from `start` on, of the ids `first`, `first + stride`…
    #[must_use]
    pub fn new(arrival: Arrival, start: Nanos, first: u64, stride: u64, seed: u64) -> Self {
        let mut dues = Dues {
            arrival,
            start,
            next_id: first,
            stride,
            poisson: Random::new(seed, first),
            poisson_at: 0.0,
        };
        dues.draw_gap();
        dues
    }

    /// The id that falls due next and its due time; closed arrivals are due at once, at `start`.
    #[inline]
    #[must_use]
    pub fn peek(&self) -> (u64, Nanos) {
        let id = self.next_id;
        let after = match self.arrival {
            Arrival::Poisson { .. } => nanos(self.poisson_at),
            arrival => due_after(arrival, id),
        };
        (id, self.start + after)
    }

    /// The id that falls due after `n` more than the next one.
    #[inline]
    #[must_use]
    pub fn id_after(&self, n: usize) -> u64 {
        self.next_id.saturating_add((n as u64).saturating_mul(self.stride))
    }

    /// Goes on to the next id.
    #[inline]
    pub fn advance(&mut self) {
        self.next_id += self.stride;
        self.draw_gap();
    }

    #[inline]
    fn draw_gap(&mut self) {
        if let Arrival::Poisson { rate } = self.arrival {
            // 1 − u lies in (0, 1], so the logarithm is finite.
            let gap = -(1.0 - self.poisson.next_f64()).ln();
            self.poisson_at += gap * self.stride as f64 / rate;
        }
    }
}

/// How long after the start request number `id` is due, ns; at once where that is not decided
/// beforehand.
#[inline]
pub(super) fn due_after(arrival: Arrival, id: u64) -> Nanos {
    nanos(match arrival {
        Arrival::Closed | Arrival::Poisson { .. } => return 0,
        Arrival::Constant { rate } => id as f64 / rate,
        Arrival::Ramp { from, to, over } => ramp_due(id as f64, from, to, over.as_secs_f64()),
    })
}

#[inline]
fn nanos(seconds: f64) -> Nanos {
    (seconds * SECOND).round() as Nanos
}

/// Seconds after the start at which request number `n` is due when the rate changes evenly from
/// `from` to `to` over `over` seconds and then stays: the inverse of the integral of the rate.
fn ramp_due(n: f64, from: f64, to: f64, over: f64) -> f64 {
    let during = (from + to) / 2.0 * over;
    if n >= during {
        return over + (n - during) / to;
    }
    let slope = (to - from) / over;
    if slope.abs() < 1e-12 {
        return n / from;
    }
    // Solves from·t + slope/2·t² = n, in the form that does not cancel for small slopes.
    2.0 * n / (from + (from * from + 2.0 * slope * n).max(0.0).sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn dues_of(arrival: Arrival, lanes: u64, count: usize) -> Vec<(u64, Nanos)> {
        let mut all = Vec::new();
        for lane in 0..lanes {
            let mut dues = Dues::new(arrival, 1_000, lane, lanes, 7 + lane);
            for _ in 0..count / lanes as usize {
                all.push(dues.peek());
                dues.advance();
            }
        }
        all.sort_by_key(|&(_, due)| due);
        all
    }

    #[test]
    fn constant_lanes_interleave_evenly() {
        let all = dues_of(Arrival::Constant { rate: 1e6 }, 3, 3_000);
        for (k, &(id, due)) in all.iter().enumerate() {
            assert_eq!((id, due), (k as u64, 1_000 + k as u64 * 1_000));
        }
    }

    #[test]
    fn poisson_gaps_are_exponential_at_the_asked_rate() {
        let all = dues_of(Arrival::Poisson { rate: 1e5 }, 4, 400_000);
        let gaps: Vec<f64> =
            all.windows(2).map(|w| (w[1].1 - w[0].1) as f64).take(200_000).collect();
        let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
        assert!((mean / 1e4 - 1.0).abs() < 0.02, "mean gap {mean} ns");
        let longer = gaps.iter().filter(|&&g| g > 1e4).count() as f64 / gaps.len() as f64;
        assert!((longer - (-1f64).exp()).abs() < 0.01, "share of gaps above the mean: {longer}");
    }

    #[test]
    fn a_ramp_offers_the_integral_of_its_rate() {
        let ramp = Arrival::Ramp { from: 100.0, to: 300.0, over: Duration::from_secs(10) };
        let mut dues = Dues::new(ramp, 0, 0, 1, 0);
        let mut by_second = [0u32; 12];
        for _ in 0..2_600 {
            let second = (dues.peek().1 / 1_000_000_000) as usize;
            by_second[second.min(11)] += 1;
            dues.advance();
        }
        for (second, &count) in by_second.iter().enumerate().take(10) {
            let expected = 100.0 + 20.0 * (second as f64 + 0.5);
            assert!((f64::from(count) - expected).abs() <= 1.0, "second {second}: {count}");
        }
        assert!((i64::from(by_second[10]) - 300).abs() <= 1);
    }
}

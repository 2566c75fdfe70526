//! Chance that repeats: every draw is a pure function of the seed, the operation and what is
//! drawn for, so that two runs of one suite are imperfect in the same places.

use std::time::Duration;

use kvdyno_core::ground::random::{GOLDEN, mix64};
use kvdyno_core::store::OperationId;

/// Purpose of a draw; each has draws of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub(super) enum Purpose {
    Service = 1,
    ServiceSpread,
    Refuse,
    Timeout,
    TimeoutEffect,
    Phantom,
    Lie,
    Lose,
    Stale,
    Corrupt,
    CorruptPlace,
    Resurrect,
    Absent,
    Outlive,
}

/// The draws of one request.
#[derive(Clone, Copy, Debug)]
pub(super) struct Chance {
    pub(super) seed: u64,
    pub(super) operation: OperationId,
    /// Number of the request in the operation, for an operation may make several.
    pub(super) request: u64,
    /// Number of the record in the request.
    pub(super) record: u64,
}

impl Chance {
    /// Returns the same request's draws for another of its records.
    pub(super) fn of_record(mut self, record: usize) -> Chance {
        self.record = record as u64;
        self
    }

    /// Returns 64 random bits.
    pub(super) fn draw(&self, purpose: Purpose) -> u64 {
        let place = u64::from(self.operation.phase) << 16 | u64::from(self.operation.group);
        [purpose as u64, place, self.operation.id, self.request, self.record]
            .into_iter()
            .fold(self.seed, |state, part| mix64((state ^ part).wrapping_add(GOLDEN)))
    }

    /// Returns true for one in `n`; never if `n` is 0.
    pub(super) fn hits(&self, purpose: Purpose, n: u64) -> bool {
        n != 0 && self.draw(purpose).is_multiple_of(n)
    }

    /// Returns a number from 0 to below 1.
    fn fraction(&self, purpose: Purpose) -> f64 {
        (self.draw(purpose) >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Returns a service time whose mean is `mean`.
    pub(super) fn service_time(&self, mean: Duration, spread: Spread) -> Duration {
        if mean.is_zero() {
            return mean;
        }
        let u = 1.0 - self.fraction(Purpose::Service);
        let factor = match spread {
            Spread::Constant => 1.0,
            Spread::Exponential => -u.ln(),
            Spread::LogNormal => {
                // Box and Muller's transform; with sigma 1 a median of exp(-1/2) has mean 1.
                let angle = std::f64::consts::TAU * self.fraction(Purpose::ServiceSpread);
                ((-2.0 * u.ln()).sqrt() * angle.cos() - 0.5).exp()
            }
        };
        mean.mul_f64(factor)
    }
}

/// Distribution of service times around their mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Spread {
    Constant,
    Exponential,
    /// Log-normal, with standard deviation 1 of the logarithm.
    LogNormal,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chance(id: u64) -> Chance {
        let operation = OperationId { phase: 1, group: 2, id };
        Chance { seed: 42, operation, request: 0, record: 0 }
    }

    #[test]
    fn one_in_n_hits_about_that_often_and_repeats() {
        let hits: Vec<u64> =
            (0..100_000).filter(|id| chance(*id).hits(Purpose::Lie, 100)).collect();
        // Binomial: mean 1,000, standard deviation 31.
        assert!((850..1150).contains(&hits.len()), "{}", hits.len());
        let again: Vec<u64> =
            (0..100_000).filter(|id| chance(*id).hits(Purpose::Lie, 100)).collect();
        assert_eq!(hits, again);
        let other: Vec<u64> =
            (0..100_000).filter(|id| chance(*id).hits(Purpose::Lose, 100)).collect();
        assert_ne!(hits, other);
        assert!(!chance(0).hits(Purpose::Lie, 0));
        assert!((0..100).all(|id| chance(id).hits(Purpose::Lie, 1)));
    }

    #[test]
    fn service_times_have_their_mean_and_shape() {
        let mean = Duration::from_micros(100);
        let sample = |spread| -> Vec<f64> {
            let mut all: Vec<f64> = (0..200_000)
                .map(|id| chance(id).service_time(mean, spread).as_secs_f64() * 1e6)
                .collect();
            all.sort_by(f64::total_cmp);
            all
        };
        // (spread, median): ln 2 of the mean, and exp(-1/2) of it.
        for (spread, median) in
            [(Spread::Constant, 100.0), (Spread::Exponential, 69.3), (Spread::LogNormal, 60.7)]
        {
            let all = sample(spread);
            let found = all.iter().sum::<f64>() / all.len() as f64;
            assert!((found - 100.0).abs() < 2.0, "{spread:?}: mean {found}");
            let middle = all[all.len() / 2];
            assert!((middle - median).abs() < 2.0, "{spread:?}: median {middle}");
        }
    }
}

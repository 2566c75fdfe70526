//! The choice of the record that an operation goes to: a plan's distribution, compiled so that a draw is quick.

use super::invalid::{self, PlanError};
use super::plan::Distribution;
use super::ycsb;
use crate::ground::random::{Permutation, Random};

/// Draws records after a [`Distribution`]. The state that it keeps between draws only saves time: the same arguments
/// give the same record whatever was drawn before.
#[derive(Clone, Debug)]
pub struct Chooser {
    law: Law,
}

#[derive(Clone, Debug)]
enum Law {
    Sequential,
    Uniform,
    Zipfian(Zipf),
    Scrambled {
        zipf: Zipf,
        shuffle: Permutation,
        seed: u64,
    },
    Latest(Zipf),
    Hotspot {
        records: f64,
        operations: f64,
    },
    /// Exponential, with `rate` above 0; from the last record on if `reversed`.
    Exponential {
        rate: f64,
        reach: f64,
        reversed: bool,
    },
    Ycsb(ycsb::Law),
}

impl Chooser {
    /// Compiles `plan`. `shuffle_seed` decides which records a scrambled distribution makes hot: groups and phases
    /// that share it share their hot records.
    ///
    /// # Errors
    /// [`PlanError::Number`] if an exponent, a percentile or a share is out of its range.
    pub fn new(plan: &Distribution, shuffle_seed: u64) -> Result<Self, PlanError> {
        let law = match *plan {
            Distribution::Sequential => Law::Sequential,
            Distribution::Uniform => Law::Uniform,
            Distribution::Zipfian { exponent, scrambled: false } => {
                Law::Zipfian(Zipf::new(exponent)?)
            }
            Distribution::Zipfian { exponent, scrambled: true } => Law::Scrambled {
                zipf: Zipf::new(exponent)?,
                shuffle: Permutation::new(0, shuffle_seed),
                seed: shuffle_seed,
            },
            Distribution::Latest { exponent } => Law::Latest(Zipf::new(exponent)?),
            Distribution::Hotspot { records, operations } => Law::Hotspot {
                records: invalid::share("the hot share of the records", records)?,
                operations: invalid::share("the hot share of the operations", operations)?,
            },
            Distribution::Exponential { percentile, share } => {
                match invalid::exponential(percentile, share)? {
                    0.0 => Law::Uniform,
                    rate => Law::Exponential {
                        rate: rate.abs(),
                        reach: (-rate.abs()).exp_m1(),
                        reversed: rate < 0.0,
                    },
                }
            }
            Distribution::Ycsb { ref law, records } => Law::Ycsb(ycsb::Law::new(law, records)?),
        };
        Ok(Chooser { law })
    }

    /// Returns a record in 0..`records`; 0 if there is none. `id` counts for sequential order only. Under `latest`,
    /// record `records - 1` is the newest.
    #[inline(always)]
    pub fn choose(&mut self, random: &mut Random, id: u64, records: u64) -> u64 {
        match self.law {
            Law::Uniform => random.below(records),
            _ => self.choose_unevenly(random, id, records),
        }
    }

    fn choose_unevenly(&mut self, random: &mut Random, id: u64, records: u64) -> u64 {
        if records < 2 {
            return 0;
        }
        match &mut self.law {
            Law::Uniform => random.below(records),
            Law::Sequential => id % records,
            Law::Zipfian(zipf) => zipf.rank(random, records),
            Law::Scrambled { zipf, shuffle, seed } => {
                if shuffle.count() != records {
                    *shuffle = Permutation::new(records, *seed);
                }
                shuffle.apply(zipf.rank(random, records))
            }
            Law::Latest(zipf) => records - 1 - zipf.rank(random, records),
            Law::Hotspot { records: share, operations } => {
                let hot = hot_records(*share, records);
                let goes_hot = random.next_f64() < *operations;
                if hot == records || (goes_hot && hot > 0) {
                    random.below(hot)
                } else {
                    hot + random.below(records - hot)
                }
            }
            Law::Ycsb(law) => law.choose(random, records),
            Law::Exponential { rate, reach, reversed } => {
                // The distribution function of an exponential cut at `records`, inverted.
                let place = -(random.next_f64() * *reach).ln_1p() / *rate;
                let place = if *reversed { 1.0 - place } else { place };
                ((place * records as f64) as u64).min(records - 1)
            }
        }
    }

    /// Returns true if records that were inserted since the phase began are chosen too.
    #[must_use]
    #[inline]
    pub fn follows_inserts(&self) -> bool {
        match &self.law {
            Law::Latest(_) => true,
            Law::Ycsb(law) => law.follows_inserts(),
            _ => false,
        }
    }

    /// Returns true if records come one after the other.
    #[must_use]
    #[inline]
    pub fn is_sequential(&self) -> bool {
        matches!(self.law, Law::Sequential)
    }
}

/// Returns the size of the hot set: at least one record where the share is above 0.
fn hot_records(share: f64, records: u64) -> u64 {
    let hot = (share * records as f64).round() as u64;
    hot.max(u64::from(share > 0.0)).min(records)
}

/// Zipf's law by rejection-inversion (Hörmann and Derflinger, "Rejection-inversion to generate
/// variates from monotone discrete distributions", 1996): exact for any exponent above 0, 1
/// included, and only one constant depends on the number of ranks.
#[derive(Clone, Debug)]
struct Zipf {
    exponent: f64,
    /// Integral of the hat up to the first rank, whose column is cut to its own weight.
    low: f64,
    /// Draws this near below a rank need no second look.
    near: f64,
    ranks: u64,
    /// Integral of the hat up to the last rank.
    high: f64,
}

impl Zipf {
    fn new(exponent: f64) -> Result<Self, PlanError> {
        let holds = exponent > 0.0 && exponent.is_finite();
        invalid::number("the zipfian exponent", exponent, holds, "a finite number above 0")?;
        let mut zipf = Zipf { exponent, low: 0.0, near: 0.0, ranks: 0, high: 0.0 };
        zipf.low = zipf.integral(1.5) - 1.0;
        zipf.near = 2.0 - zipf.inverse_integral(zipf.integral(2.5) - zipf.weight(2.0));
        Ok(zipf)
    }

    /// Draws a rank from 0 to `ranks` - 1; `ranks` from 1.
    #[inline]
    fn rank(&mut self, random: &mut Random, ranks: u64) -> u64 {
        if ranks != self.ranks {
            self.ranks = ranks;
            self.high = self.integral(ranks as f64 + 0.5);
        }
        loop {
            let u = self.high + random.next_f64() * (self.low - self.high);
            let x = self.inverse_integral(u);
            let rank = ((x + 0.5) as u64).clamp(1, ranks);
            let k = rank as f64;
            if k - x <= self.near || u >= self.integral(k + 0.5) - self.weight(k) {
                return rank - 1;
            }
        }
    }

    /// Returns the weight of a rank: x^-exponent.
    #[inline]
    fn weight(&self, x: f64) -> f64 {
        (-self.exponent * x.ln()).exp()
    }

    /// Returns (x^(1 - exponent) - 1) / (1 - exponent), or ln x for exponent 1, without the loss of digits near 1.
    #[inline]
    fn integral(&self, x: f64) -> f64 {
        let log = x.ln();
        let scaled = (1.0 - self.exponent) * log;
        let factor =
            if scaled.abs() > NEAR_ZERO { scaled.exp_m1() / scaled } else { 1.0 + scaled / 2.0 };
        factor * log
    }

    #[inline]
    fn inverse_integral(&self, u: f64) -> f64 {
        // Rounding must not push the argument of the logarithm below 0.
        let scaled = (u * (1.0 - self.exponent)).max(-1.0);
        let factor =
            if scaled.abs() > NEAR_ZERO { scaled.ln_1p() / scaled } else { 1.0 - scaled / 2.0 };
        (factor * u).exp()
    }
}

/// Below this the first two terms of the series are exact to the last digit.
const NEAR_ZERO: f64 = 1e-8;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::YcsbLaw;

    fn chooser(plan: Distribution) -> Chooser {
        Chooser::new(&plan, 11).unwrap()
    }

    #[test]
    fn sequential_is_exact() {
        let mut chooser = chooser(Distribution::Sequential);
        let mut random = Random::new(1, 1);
        for id in 0..2500 {
            assert_eq!(chooser.choose(&mut random, id, 1000), id % 1000);
        }
    }

    #[test]
    fn no_record_and_one_record_give_zero() {
        for plan in [
            Distribution::Sequential,
            Distribution::Uniform,
            Distribution::Zipfian { exponent: 0.99, scrambled: true },
            Distribution::Latest { exponent: 0.99 },
            Distribution::Hotspot { records: 0.2, operations: 0.8 },
            Distribution::Exponential { percentile: 0.95, share: 0.5 },
            Distribution::Ycsb { law: YcsbLaw::Latest, records: 0 },
            Distribution::Ycsb {
                law: YcsbLaw::Hotspot { records: 0.2, operations: 0.8 },
                records: 1,
            },
        ] {
            let mut chooser = chooser(plan);
            for id in 0..100 {
                let mut random = Random::new(1, id);
                assert_eq!(chooser.choose(&mut random, id, 0), 0);
                assert_eq!(chooser.choose(&mut random, id, 1), 0);
            }
        }
    }

    #[test]
    fn every_draw_is_a_record_for_extreme_parameters() {
        let exponents =
            [f64::MIN_POSITIVE, 1e-9, 0.5, 1.0 - 1e-12, 1.0, 1.0 + 1e-9, 20.0, 1e9, f64::MAX];
        let mut plans: Vec<Distribution> = exponents
            .iter()
            .map(|&exponent| Distribution::Zipfian { exponent, scrambled: false })
            .collect();
        for share in [0.0, 1e-300, 0.5, 1.0] {
            for operations in [0.0, 0.5, 1.0] {
                plans.push(Distribution::Hotspot { records: share, operations });
            }
        }
        for percentile in [f64::MIN_POSITIVE, 0.5, 1.0 - f64::EPSILON] {
            for share in [f64::MIN_POSITIVE, 0.5, 1.0 - f64::EPSILON] {
                plans.push(Distribution::Exponential { percentile, share });
            }
        }
        for records in [0, 1, 2, 1000, u64::MAX] {
            for law in [
                YcsbLaw::Latest,
                YcsbLaw::Hotspot { records: 0.0, operations: 1.0 },
                YcsbLaw::Hotspot { records: 1.0, operations: 0.0 },
                YcsbLaw::Exponential { percentile: 0.5, share: f64::MIN_POSITIVE },
            ] {
                plans.push(Distribution::Ycsb { law, records });
            }
        }
        let law = YcsbLaw::Zipfian { inserts: 1e9, operations: u64::MAX };
        plans.push(Distribution::Ycsb { law, records: 1000 });
        for plan in plans {
            let mut chooser = chooser(plan);
            for records in [2, 3, 1000, 1 << 53, u64::MAX] {
                for id in 0..200 {
                    assert!(chooser.choose(&mut Random::new(3, id), id, records) < records);
                }
            }
        }
    }

    /// docs/SUITES.md: `percentile` of the operations go to the first `share` of the records.
    #[test]
    fn an_exponential_gives_the_first_records_the_share_that_was_asked_for() {
        for (percentile, share) in [
            (0.6, 0.5),
            (0.95, 0.857_142_857_1),
            (0.99, 0.01),
            (0.5, 0.5),
            (0.3, 0.5),
            (0.501, 0.5),
        ] {
            let mut chooser = chooser(Distribution::Exponential { percentile, share });
            let (draws, records) = (200_000_u64, 10_000_u64);
            let first = (0..draws)
                .filter(|&id| {
                    let record = chooser.choose(&mut Random::new(7, id), id, records);
                    record < (share * records as f64) as u64
                })
                .count();
            let measured = first as f64 / draws as f64;
            assert!((measured - percentile).abs() < 0.005, "{measured} of {percentile} to {share}");
        }
    }

    /// `latest` changes the number of ranks at each insert; what is kept from the last draw must
    /// not show.
    #[test]
    fn what_was_drawn_before_does_not_count() {
        for plan in [
            Distribution::Latest { exponent: 0.99 },
            Distribution::Zipfian { exponent: 0.99, scrambled: true },
            Distribution::Ycsb { law: YcsbLaw::Latest, records: 1000 },
            Distribution::Ycsb {
                law: YcsbLaw::Zipfian { inserts: 0.5, operations: 500 },
                records: 1000,
            },
        ] {
            let mut used = chooser(plan);
            for id in 0..2000 {
                let records = 1000 + (id * 7919) % 500;
                let fresh = chooser(plan).choose(&mut Random::new(1, id), id, records);
                assert_eq!(used.choose(&mut Random::new(1, id), id, records), fresh);
            }
        }
    }

    #[test]
    fn values_out_of_range_are_named() {
        let message = |plan| Chooser::new(&plan, 0).unwrap_err().to_string();
        for exponent in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            let said = message(Distribution::Latest { exponent });
            assert!(said.starts_with("the zipfian exponent is "), "{said}");
        }
        let said = message(Distribution::Hotspot { records: 1.2, operations: 0.5 });
        assert_eq!(said, "the hot share of the records is 1.2; it must be 0 to 1");
        let said = message(Distribution::Hotspot { records: 0.2, operations: -0.5 });
        assert_eq!(said, "the hot share of the operations is -0.5; it must be 0 to 1");
        for (percentile, share) in [(0.0, 0.5), (1.0, 0.5), (f64::NAN, 0.5), (0.5, 0.0), (0.5, 1.0)]
        {
            let plan = Distribution::Exponential { percentile, share };
            assert!(message(plan).contains("exponential distribution"));
        }
    }
}

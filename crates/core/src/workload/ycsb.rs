//! The generators of YCSB's core (0.17), so that a YCSB file gives the load that YCSB would give. Their laws are
//! YCSB's down to its constants and its off-by-one; their randomness is kvdyno's, so that an operation stays a
//! function of seed and id. Where YCSB draws again until a record exists, this does so, too.

use super::invalid::{self, PlanError};
use super::plan::YcsbLaw;
use crate::ground::hash::fnv_1a;
use crate::ground::random::Random;

/// Skew of every zipfian generator of YCSB.
const THETA: f64 = 0.99;
/// `ScrambledZipfianGenerator.ITEM_COUNT`; both ends of its range count, so it draws from one more.
const SCRAMBLED_ITEMS: u64 = 10_000_000_000 + 1;
/// `ScrambledZipfianGenerator.ZETAN`, of 10^10 items.
const SCRAMBLED_ZETA: f64 = 26.469_028_201_783_02;
/// Multiple of the expected inserts that zipfian keeps room for; YCSB's "2 is fudge factor".
const FUDGE: f64 = 2.0;
/// Terms of zeta that are summed; the rest is an integral with corrections below the last digit.
const SUMMED: u64 = 100;
/// Most draws in a row that name no record that exists (where there is room for very many inserts, and there are few
/// records); the next is folded into those that do. YCSB would draw on.
const MOST_REDRAWS: u32 = 10_000;

/// A law of YCSB's over `records` records and those that are inserted after them.
#[derive(Clone, Debug)]
pub(super) enum Law {
    /// Zipfian over 10^10 items, each hashed and folded into `room`.
    Zipfian { gray: Gray, room: u64 },
    /// Zipfian over age. `first` is what YCSB makes its generator with.
    Latest { gray: Gray, first: u64 },
    /// `operations` of the operations to the `hot` first of `all` records.
    Hotspot { hot: u64, all: u64, operations: f64 },
    /// Exponential over age, `rate` a record.
    Exponential { rate: f64 },
}

impl Law {
    pub(super) fn new(law: &YcsbLaw, records: u64) -> Result<Self, PlanError> {
        Ok(match *law {
            YcsbLaw::Zipfian { inserts, operations } => {
                let holds = inserts >= 0.0 && inserts.is_finite();
                invalid::number("the share of inserts", inserts, holds, "a finite number from 0")?;
                let expected = (operations as f64 * inserts * FUDGE) as u64;
                let room = records.saturating_add(expected).saturating_add(1);
                Law::Zipfian { gray: Gray::new(SCRAMBLED_ITEMS, SCRAMBLED_ZETA), room }
            }
            YcsbLaw::Latest => {
                let first = records.saturating_sub(1);
                Law::Latest { gray: Gray::new(first, zeta(first)), first }
            }
            YcsbLaw::Hotspot { records: share, operations } => {
                let share = invalid::share("the hot share of the records", share)?;
                let operations = invalid::share("the hot share of the operations", operations)?;
                Law::Hotspot { hot: (share * records as f64) as u64, all: records, operations }
            }
            YcsbLaw::Exponential { percentile, share } => {
                let rate = invalid::endless_exponential(percentile, share)?;
                Law::Exponential { rate: rate / records.max(1) as f64 }
            }
        })
    }

    /// Returns a record in 0..`records`, of which there are at least two.
    pub(super) fn choose(&mut self, random: &mut Random, records: u64) -> u64 {
        match self {
            Law::Zipfian { gray, room } => {
                let mut record = fnv(gray.rank(random)) % *room;
                let mut redraws = 0;
                while record >= records && redraws < MOST_REDRAWS {
                    record = fnv(gray.rank(random)) % *room;
                    redraws += 1;
                }
                record % records
            }
            Law::Latest { gray, first } => {
                let newest = records - 1;
                if gray.items != newest {
                    *gray = Gray::grown(*first, newest);
                }
                newest - gray.rank(random)
            }
            Law::Hotspot { hot, all, operations } => {
                let all = records.min(*all);
                let hot = all.min(*hot);
                let goes_hot = random.next_f64() < *operations;
                // Where one of the sets is empty, YCSB divides by zero.
                if hot == all || (goes_hot && hot > 0) {
                    random.below(hot)
                } else {
                    hot + random.below(all - hot)
                }
            }
            Law::Exponential { rate } => {
                // Inverts the law that drawing again whatever lies before the first record gives.
                let reach = (-*rate * records as f64).exp_m1();
                let age = -(random.next_f64() * reach).ln_1p() / *rate;
                records - 1 - (age as u64).min(records - 1)
            }
        }
    }

    /// Returns true if records that were inserted since the phase began are chosen too.
    #[inline]
    pub(super) fn follows_inserts(&self) -> bool {
        !matches!(self, Law::Hotspot { .. })
    }
}

/// YCSB's `ZipfianGenerator`, after "Quickly Generating Billion-Record Synthetic Databases" (Gray et al.,
/// 1994): exact for the two hottest ranks and near for the others.
#[derive(Clone, Copy, Debug)]
pub(super) struct Gray {
    items: u64,
    zeta: f64,
    eta: f64,
}

impl Gray {
    fn new(items: u64, zeta: f64) -> Self {
        Gray { items, zeta, eta: eta(items, zeta) }
    }

    /// Makes a generator over all of `items`.
    #[inline]
    pub(super) fn over(items: u64) -> Self {
        Gray::new(items, zeta(items))
    }

    /// Makes a generator as it is when made for `first` items and grown to `items`: YCSB keeps `first` in one place
    /// of its formula.
    fn grown(first: u64, items: u64) -> Self {
        let zeta = zeta(items);
        Gray { items, zeta, eta: eta(first, zeta) }
    }

    /// Draws a rank from 0 to items - 1.
    #[inline]
    pub(super) fn rank(&self, random: &mut Random) -> u64 {
        self.rank_at(random.next_f64())
    }

    /// Returns the rank that the number `u` in [0, 1) stands for; ranks rise with it.
    #[inline]
    pub(super) fn rank_at(&self, u: f64) -> u64 {
        let weight = u * self.zeta;
        if weight < 1.0 {
            return 0;
        }
        if weight < two() {
            return 1.min(self.items.saturating_sub(1));
        }
        let place = (self.eta * u - self.eta + 1.0).powf(1.0 / (1.0 - THETA));
        // A conversion saturates, as Java's does.
        ((self.items as f64 * place) as u64).min(self.items.saturating_sub(1))
    }
}

/// Returns the weight of the two hottest ranks.
fn two() -> f64 {
    1.0 + 0.5f64.powf(THETA)
}

fn eta(items: u64, zeta: f64) -> f64 {
    (1.0 - (2.0 / items as f64).powf(1.0 - THETA)) / (1.0 - two() / zeta)
}

/// Returns the sum of k^-0.99 over 1..=n, by Euler and Maclaurin: the same whatever was summed before, and at no cost
/// for the many n that a growing number of records brings.
fn zeta(n: u64) -> f64 {
    let term = |k: f64| k.powf(-THETA);
    let sum: f64 = (1..=n.min(SUMMED)).map(|k| term(k as f64)).sum();
    if n <= SUMMED {
        return sum;
    }
    let (from, to) = (SUMMED as f64, n as f64);
    let integral = (to.powf(1.0 - THETA) - from.powf(1.0 - THETA)) / (1.0 - THETA);
    let slope = |k: f64| -THETA * term(k) / k;
    let third = |k: f64| slope(k) * (THETA + 1.0) * (THETA + 2.0) / (k * k);
    sum + integral + (term(to) - term(from)) / 2.0 + (slope(to) - slope(from)) / 12.0
        - (third(to) - third(from)) / 720.0
}

/// YCSB's `Utils.fnvhash64`: FNV-1a over the eight bytes from the lowest on, without its sign.
fn fnv(item: u64) -> u64 {
    fnv_1a(item.to_le_bytes()).cast_signed().unsigned_abs()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Compares with values of `site.ycsb.Utils.fnvhash64` of the core's jar.
    #[test]
    fn items_are_hashed_as_ycsb_does() {
        for (item, hash) in [
            (0, 6_284_781_860_667_377_211),
            (1, 8_517_097_267_634_966_620),
            (2, 1_820_151_046_732_198_393),
            (255, 8_064_062_821_143_829_734),
            (256, 2_056_600_594_528_442_646),
            (65_535, 8_476_454_546_330_126_581),
            (1_000_000, 1_011_632_231_655_643_464),
            (9_999_999_999, 3_605_131_173_811_637_474),
            (10_000_000_000, 1_201_321_332_300_452_516),
        ] {
            assert_eq!(fnv(item), hash, "{item}");
        }
    }

    /// Compares with values of `ZipfianGenerator.zetastatic` of the core's jar, which adds all terms up.
    #[test]
    fn zeta_is_the_sum() {
        for (n, sum) in [
            (1, 1.0),
            (2, 1.503_477_775_028_359_4),
            (99, 5.284_097_545_896_655),
            (100, 5.294_568_831_377_164),
            (101, 5.304_937_472_426_569),
            (999, 7.727_881_697_979_491),
            (99_999, 12.778_326_842_366_702),
            (1_000_000, 15.391_849_746_037_371),
            (10_000_000, 18.066_242_574_968_303),
        ] {
            assert!((zeta(n) / sum - 1.0).abs() < 1e-12, "{n}: {} for {sum}", zeta(n));
        }
        let exact: f64 = (1..=12_345).map(|k| f64::from(k).powf(-THETA)).sum();
        assert!((zeta(12_345) / exact - 1.0).abs() < 1e-13);
        assert!((zeta(SCRAMBLED_ITEMS - 1) / SCRAMBLED_ZETA - 1.0).abs() < 1e-8);
    }
}

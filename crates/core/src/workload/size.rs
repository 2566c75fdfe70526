//! Sizes: of values in bytes, of scans in records. A size is a pure function of (seed, id).

use super::invalid::{self, PlanError};
use super::java_random::{JavaCursor, JavaSequence};
use super::plan::SizeModel;
use super::ycsb::Gray;
use crate::ground::random::Random;

/// A [`SizeModel`] prepared for draws; shared by all drawers.
#[derive(Debug)]
pub struct Sizes {
    law: Law,
    seed: u64,
    smallest: u32,
    largest: u32,
    mean: f64,
}

#[derive(Debug)]
enum Law {
    Fixed,
    Uniform,
    Java(JavaSequence),
    LogNormal { log_median: f64, sigma: f64 },
    Weighted(Vec<Column>),
    Zipfian(Gray),
}

/// A column of Walker's alias table: a draw that falls into it gives `own` below `cut`, else
/// `other`.
#[derive(Clone, Copy, Debug)]
struct Column {
    cut: f64,
    own: u32,
    other: u32,
}

impl Sizes {
    /// Prepares `model`. `what` names the sizes in messages, such as "the value size". The sizes depend on `seed`,
    /// except those of `java-uniform`, which has its own. `expected` is the number of ids that will be asked for,
    /// where it is known; else 0.
    ///
    /// # Errors
    /// A [`PlanError`] if bounds, weights, median or sigma are out of range.
    pub fn new(
        what: &'static str,
        model: &SizeModel,
        seed: u64,
        expected: u64,
    ) -> Result<Self, PlanError> {
        let middle = |min: u32, max: u32| f64::midpoint(f64::from(min), f64::from(max));
        let (law, smallest, largest, mean) = match *model {
            SizeModel::Fixed { size } => (Law::Fixed, size, size, f64::from(size)),
            SizeModel::Uniform { min, max } => {
                in_order(what, min, max)?;
                (Law::Uniform, min, max, middle(min, max))
            }
            SizeModel::Zipfian { min, max } => {
                in_order(what, min, max)?;
                let gray = Gray::over(u64::from(max - min) + 1);
                let mean = f64::from(min) + mean_rank(&gray);
                (Law::Zipfian(gray), min, max, mean)
            }
            SizeModel::JavaUniform { min, max, seed } => {
                in_order(what, min, max)?;
                // Java's bound is a positive 32-bit number.
                let most = i32::MAX as u64;
                let bound = invalid::count(what, u64::from(max - min) + 1, 1, most)? as u32;
                let sequence = JavaSequence::new(seed, min, bound, expected);
                (Law::Java(sequence), min, max, middle(min, max))
            }
            SizeModel::LogNormal { median, sigma, min, max } => {
                in_order(what, min, max)?;
                let holds = median > 0.0 && median.is_finite();
                invalid::number(what, median, holds, "a finite median above 0")?;
                let holds = sigma >= 0.0 && sigma.is_finite();
                invalid::number(what, sigma, holds, "a finite sigma from 0")?;
                let law = Law::LogNormal { log_median: median.ln(), sigma };
                (law, min, max, mean_of_log_normal(median.ln(), sigma, min, max))
            }
            SizeModel::Weighted { ref choices } => weighted(what, choices)?,
        };
        Ok(Sizes { law, seed, smallest, largest, mean })
    }

    /// Returns the size that belongs to `id`. `cursor` belongs to the drawer and to this model alone.
    #[inline]
    pub fn size(&self, id: u64, cursor: &mut JavaCursor) -> u32 {
        match &self.law {
            Law::Fixed => self.largest,
            Law::Uniform => {
                let range = u64::from(self.largest - self.smallest) + 1;
                self.smallest + Random::new(self.seed, id).below(range) as u32
            }
            Law::Zipfian(gray) => self.smallest + gray.rank(&mut Random::new(self.seed, id)) as u32,
            Law::Java(sequence) => sequence.value(id, cursor),
            Law::LogNormal { log_median, sigma } => {
                let deviation = normal(&mut Random::new(self.seed, id));
                cut((log_median + sigma * deviation).exp(), self.smallest, self.largest)
            }
            Law::Weighted(columns) => {
                let mut random = Random::new(self.seed, id);
                let column = columns[random.below(columns.len() as u64) as usize];
                if random.next_f64() < column.cut { column.own } else { column.other }
            }
        }
    }

    /// Returns the smallest size.
    #[must_use]
    #[inline]
    pub fn smallest(&self) -> u32 {
        self.smallest
    }

    /// Returns the largest size.
    #[must_use]
    #[inline]
    pub fn largest(&self) -> u32 {
        self.largest
    }

    /// Returns the mean of the law, to estimate disk and memory with.
    #[must_use]
    pub fn mean(&self) -> f64 {
        self.mean
    }
}

#[inline]
fn in_order(what: &'static str, min: u32, max: u32) -> Result<(), PlanError> {
    if min <= max { Ok(()) } else { Err(PlanError::Order { what, min, max }) }
}

/// Rounds to a whole size; a size outside of the bounds is moved to the nearer one, which keeps the median.
#[inline]
fn cut(size: f64, min: u32, max: u32) -> u32 {
    // The conversion saturates.
    (size.round() as u32).clamp(min, max)
}

/// Draws from the standard normal law (Box and Muller, 1958).
fn normal(random: &mut Random) -> f64 {
    let radius = (-2.0 * (-random.next_f64()).ln_1p()).sqrt();
    radius * (std::f64::consts::TAU * random.next_f64()).cos()
}

/// Returns the mean of the sizes cut to their bounds: the sum over 2,000 slices of equal width from -8 to 8 standard
/// deviations.
fn mean_of_log_normal(log_median: f64, sigma: f64, min: u32, max: u32) -> f64 {
    let (mut sum, mut weights) = (0.0, 0.0);
    for slice in 0..2000 {
        let deviation = -8.0 + 16.0 * (f64::from(slice) + 0.5) / 2000.0;
        let weight = (-deviation * deviation / 2.0).exp();
        let size = (log_median + sigma * deviation).exp();
        sum += weight * size.clamp(f64::from(min), f64::from(max));
        weights += weight;
    }
    sum / weights
}

/// Returns the mean of the ranks, over 10,000 slices of equal share.
fn mean_rank(gray: &Gray) -> f64 {
    let slices = 10_000;
    let ranks = (0..slices).map(|slice| gray.rank_at((f64::from(slice) + 0.5) / f64::from(slices)));
    ranks.map(|rank| rank as f64).sum::<f64>() / f64::from(slices)
}

/// Walker's alias table by Vose's method: one draw, one comparison, whatever the number of sizes.
fn weighted(what: &'static str, choices: &[(u32, f64)]) -> Result<(Law, u32, u32, f64), PlanError> {
    for &(_, weight) in choices {
        let holds = weight > 0.0 && weight.is_finite();
        invalid::number(what, weight, holds, "a list of finite weights above 0")?;
    }
    let sizes = || choices.iter().map(|&(size, _)| size);
    let (Some(smallest), Some(largest)) = (sizes().min(), sizes().max()) else {
        return Err(PlanError::NoChoice { what });
    };
    // Divided by the largest first, so that the sum of any finite weights is finite.
    let heaviest = choices.iter().fold(0.0, |most: f64, &(_, weight)| most.max(weight));
    let sum: f64 = choices.iter().map(|&(_, weight)| weight / heaviest).sum();
    let shares = choices.iter().map(|&(size, weight)| (size, weight / heaviest / sum));
    let mean = shares.clone().map(|(size, share)| f64::from(size) * share).sum();

    let count = choices.len() as f64;
    let mut columns: Vec<Column> =
        shares.map(|(size, share)| Column { cut: share * count, own: size, other: size }).collect();
    let (mut short, mut tall): (Vec<usize>, Vec<usize>) =
        (0..columns.len()).partition(|&column| columns[column].cut < 1.0);
    while let (Some(&low), Some(&high)) = (short.last(), tall.last()) {
        short.pop();
        columns[low].other = columns[high].own;
        columns[high].cut -= 1.0 - columns[low].cut;
        if columns[high].cut < 1.0 {
            tall.pop();
            short.push(high);
        }
    }
    Ok((Law::Weighted(columns), smallest, largest, mean))
}

#[cfg(test)]
mod tests {
    use super::*;

    const DRAWS: u64 = 400_000;

    fn sizes(model: SizeModel) -> Sizes {
        Sizes::new("the value size", &model, 77, 0).unwrap()
    }

    fn drawn(sizes: &Sizes) -> Vec<u32> {
        let mut cursor = JavaCursor::default();
        (0..DRAWS).map(|id| sizes.size(id, &mut cursor)).collect()
    }

    fn mean(drawn: &[u32]) -> f64 {
        drawn.iter().map(|&size| f64::from(size)).sum::<f64>() / drawn.len() as f64
    }

    #[test]
    fn sizes_keep_their_bounds_and_mean() {
        for (model, tolerance) in [
            (SizeModel::Fixed { size: 100 }, 0.0),
            (SizeModel::Uniform { min: 100, max: 1899 }, 4.0),
            (SizeModel::JavaUniform { min: 100, max: 1899, seed: 5 }, 4.0),
            (SizeModel::Zipfian { min: 1, max: 100 }, 0.1),
            (SizeModel::Zipfian { min: 20, max: 20 }, 0.0),
            (SizeModel::Zipfian { min: 1, max: 1_000_000 }, 900.0),
            (SizeModel::LogNormal { median: 300.0, sigma: 0.8, min: 10, max: 3000 }, 3.0),
            (SizeModel::LogNormal { median: 300.0, sigma: 3.0, min: 200, max: 400 }, 1.0),
            (SizeModel::Weighted { choices: vec![(10, 1.0), (100, 2.0), (1000, 1.0)] }, 3.0),
        ] {
            let sizes = sizes(model.clone());
            let drawn = drawn(&sizes);
            assert_eq!(drawn.iter().min(), Some(&sizes.smallest()), "{model:?}");
            assert!(drawn.iter().all(|&size| size <= sizes.largest()), "{model:?}");
            let mean = mean(&drawn);
            assert!((mean - sizes.mean()).abs() <= tolerance, "{model:?}: {mean}");
        }
    }

    #[test]
    fn uniform_sizes_are_even() {
        let sizes = sizes(SizeModel::Uniform { min: 1, max: 20 });
        let mut counts = [0u32; 20];
        for size in drawn(&sizes) {
            counts[size as usize - 1] += 1;
        }
        // Standard deviation of a count: 138.
        assert!(counts.iter().all(|&count| count.abs_diff(20_000) < 600), "{counts:?}");
    }

    #[test]
    fn log_normal_has_its_quantiles() {
        let model = SizeModel::LogNormal { median: 1000.0, sigma: 0.5, min: 1, max: 1_000_000 };
        let mut drawn = drawn(&sizes(model));
        drawn.sort_unstable();
        // At one standard deviation below and above, and at two above.
        for (share, size) in
            [(0.158_655, 606.5), (0.5, 1000.0), (0.841_345, 1648.7), (0.977_25, 2718.3)]
        {
            let found = f64::from(drawn[(share * DRAWS as f64) as usize]);
            assert!((found / size - 1.0).abs() < 0.01, "{found} at {share}");
        }
    }

    #[test]
    fn weighted_sizes_have_their_shares() {
        let choices = vec![(64, 5.0), (128, 0.5), (1024, 3.5), (4096, 1.0), (70_000, 0.001)];
        let sum: f64 = choices.iter().map(|&(_, weight)| weight).sum();
        let drawn = drawn(&sizes(SizeModel::Weighted { choices: choices.clone() }));
        for (size, weight) in choices {
            let expected = weight / sum * DRAWS as f64;
            let found = drawn.iter().filter(|&&other| other == size).count() as f64;
            let error = (found - expected).abs();
            assert!(error < 4.5 * expected.sqrt(), "{size}: {found} for {expected}");
        }
    }

    #[test]
    fn weights_of_any_scale_are_drawn() {
        let choices = vec![(1, f64::MAX), (2, f64::MAX), (3, f64::MIN_POSITIVE)];
        let sizes = sizes(SizeModel::Weighted { choices });
        assert!((mean(&drawn(&sizes)) - 1.5).abs() < 0.01);
        assert!((sizes.mean() - 1.5).abs() < 1e-9);
    }

    #[test]
    fn wrong_models_are_refused() {
        let refusal = |model| Sizes::new("the value size", &model, 1, 0).unwrap_err().to_string();
        assert_eq!(
            refusal(SizeModel::Uniform { min: 5, max: 4 }),
            "the value size runs from 5 to 4; the first must not be above the second"
        );
        assert!(refusal(SizeModel::JavaUniform { min: 5, max: 4, seed: 0 }).contains("from 5"));
        let model = SizeModel::JavaUniform { min: 0, max: i32::MAX as u32, seed: 0 };
        assert!(refusal(model).ends_with("it must be 1 to 2147483647"));
        for (median, sigma) in [(0.0, 1.0), (f64::NAN, 1.0), (1.0, -1.0), (1.0, f64::INFINITY)] {
            let model = SizeModel::LogNormal { median, sigma, min: 1, max: 2 };
            assert!(refusal(model).starts_with("the value size is "));
        }
        assert!(refusal(SizeModel::Weighted { choices: vec![] }).contains("at least one"));
        for weight in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            let model = SizeModel::Weighted { choices: vec![(1, 1.0), (2, weight)] };
            assert!(refusal(model).contains("finite weights above 0"));
        }
    }

    #[test]
    fn extreme_models_stay_in_bounds() {
        for (median, sigma) in [(f64::MIN_POSITIVE, 1e300), (f64::MAX, 0.0), (1.0, f64::MAX)] {
            let sizes = sizes(SizeModel::LogNormal { median, sigma, min: 3, max: 9 });
            assert!(drawn(&sizes).iter().all(|size| (3..=9).contains(size)));
            assert!((3.0..=9.0).contains(&sizes.mean()));
        }
    }
}

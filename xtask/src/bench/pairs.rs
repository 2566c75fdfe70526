//! Two programs in turns, so that a change on the machine affects both; and the ratios of the pairs, with an interval
//! that assumes nothing about their distribution.

use std::fmt;

use crate::steps::StepFailure;

/// Lowest probability that an interval holds the true median.
const CONFIDENCE: f64 = 0.95;

/// Median of some figures, with the interval in which the true one lies.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Median {
    /// Middle figure.
    pub value: f64,
    /// Two-sided 95 % interval; `None` with fewer than six figures, which do not carry one.
    pub interval: Option<(f64, f64)>,
    /// Number of figures.
    pub count: usize,
}

impl Median {
    /// Computes it by order statistics: the true median lies between the k-th smallest and the k-th largest figure
    /// with a probability that the binomial distribution gives (David and Nagaraja, Order Statistics, 2003, section
    /// 7.1).
    pub(super) fn of(figures: &[f64]) -> Median {
        let mut sorted = figures.to_vec();
        sorted.sort_by(f64::total_cmp);
        let count = sorted.len();
        let value = match (count, count % 2) {
            (0, _) => f64::NAN,
            (_, 1) => sorted[count / 2],
            (_, _) => f64::midpoint(sorted[count / 2 - 1], sorted[count / 2]),
        };
        let interval = outer_rank(count).map(|rank| (sorted[rank], sorted[count - 1 - rank]));
        Median { value, interval, count }
    }
}

impl fmt::Display for Median {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.3}", self.value)?;
        match self.interval {
            Some((low, high)) => write!(f, " (95 %: {low:.3} to {high:.3}; n = {})", self.count),
            None => write!(f, " (n = {}: too few for an interval)", self.count),
        }
    }
}

/// Returns the rank, zero-based, of the innermost figure from each end whose interval still has the confidence.
fn outer_rank(count: usize) -> Option<usize> {
    let allowed = (1.0 - CONFIDENCE) / 2.0;
    // Probability that at most `rank` of `count` figures fall on one side of the median.
    let mut term = 0.5_f64.powi(count as i32);
    let mut tail = 0.0;
    let mut best = None;
    for rank in 0..count / 2 {
        tail += term;
        if tail > allowed {
            break;
        }
        best = Some(rank);
        term *= (count - rank) as f64 / (rank + 1) as f64;
    }
    best
}

/// Figures of both programs, pair by pair.
#[derive(Debug, Default)]
pub(super) struct Pairs {
    /// Figures of the first program, kvdyno.
    pub ours: Vec<f64>,
    /// Figures of the second program.
    pub theirs: Vec<f64>,
}

impl Pairs {
    /// Runs both once without counting, then in turns, the order changed from pair to pair.
    pub(super) fn measure(
        count: usize,
        mut ours: impl FnMut() -> Result<f64, StepFailure>,
        mut theirs: impl FnMut() -> Result<f64, StepFailure>,
    ) -> Result<Pairs, StepFailure> {
        ours()?;
        theirs()?;
        let mut pairs = Pairs::default();
        for pair in 0..count {
            let (our, their) = if pair % 2 == 0 {
                let our = ours()?;
                (our, theirs()?)
            } else {
                let their = theirs()?;
                (ours()?, their)
            };
            println!("pair {} of {count}: {our:.3} and {their:.3}", pair + 1);
            pairs.ours.push(our);
            pairs.theirs.push(their);
        }
        Ok(pairs)
    }

    /// Returns the median of our figures over theirs.
    pub(super) fn ratio(&self) -> Median {
        let ratios: Vec<_> = self.ours.iter().zip(&self.theirs).map(|(a, b)| a / b).collect();
        Median::of(&ratios)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_are_those_of_the_tables() {
        // Tables of the sign test's interval, 95 %: n = 6 takes the extremes, 15 the 4th, 20 the 6th.
        assert_eq!(outer_rank(5), None);
        assert_eq!(outer_rank(6), Some(0));
        assert_eq!(outer_rank(15), Some(3));
        assert_eq!(outer_rank(20), Some(5));
        assert_eq!(outer_rank(0), None);
    }

    #[test]
    fn the_median_stands_in_its_interval() {
        let figures: Vec<f64> = (1..=15).map(f64::from).collect();
        let median = Median::of(&figures);
        assert_eq!(median, Median { value: 8.0, interval: Some((4.0, 12.0)), count: 15 });
        assert_eq!(median.to_string(), "8.000 (95 %: 4.000 to 12.000; n = 15)");
        assert_eq!(Median::of(&[1.0, 3.0]).value, 2.0);
    }

    #[test]
    fn pairs_are_run_in_turns_after_an_uncounted_one() {
        let order = std::cell::RefCell::new(String::new());
        let step = |name: char, value: f64| {
            order.borrow_mut().push(name);
            Ok(value)
        };
        let pairs = Pairs::measure(3, || step('a', 2.0), || step('b', 4.0)).unwrap();
        assert_eq!(order.into_inner(), "ababbaab");
        assert_eq!((pairs.ratio().value, pairs.ratio().count), (0.5, 3));
    }
}

//! Estimates a figure of one side of a comparison with its standard error, by the bootstrap: over trials where there are
//! several, and over blocks of intervals within each.
//!
//! The levels of resampling follow Davison and Hinkley (Bootstrap Methods and their Application, 1997, 3.8): whole trials
//! are drawn with replacement, which carries the scatter within them along; to draw intervals as well would count that
//! twice. Intervals are drawn where there is only one trial, and for the least that the error can be: few trials may
//! agree by chance.

use kvdyno_core::verdict::ConditionFigure;
use kvdyno_core::workload::Random;

use super::blocks;
use super::samples::SampleSlot;

/// Resamples of a side.
const RESAMPLES: u32 = 400;
/// Relative resolution of a histogram of three digits.
const RESOLUTION: f64 = 0.001;

/// Some operations of one phase on one side: the intervals of each trial.
#[derive(Clone, Debug, Default)]
pub struct ComparedSide {
    trials: Vec<Trial>,
    /// Every latency that occurs, ns, ascending.
    values: Vec<u64>,
}

#[derive(Clone, Debug)]
struct Trial {
    slots: Vec<Row>,
    total: Row,
}

/// An interval, or a trial as a whole.
#[derive(Clone, Debug)]
struct Row {
    length_s: f64,
    ok: u64,
    drained: u64,
    failed: u64,
    /// Sum of the latencies, ns.
    sum: f64,
    /// Latencies up to each of [`ComparedSide::values`].
    up_to: Vec<u64>,
}

/// A figure and its error. The error of times and rates is on a logarithmic scale, so that differences are ratios; that
/// of shares is on their own scale.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// The figure itself: ns, operations a second, or a share.
    pub value: f64,
    /// Value on the scale of the error.
    pub scaled: f64,
    /// Standard error of `scaled` by the intervals.
    pub within: f64,
    /// Standard error of `scaled` by the trials; `None` if there is only one.
    pub between: Option<f64>,
    /// Independent blocks of intervals in a trial, on average.
    pub blocks: f64,
    /// Number of trials.
    pub trials: usize,
    /// Operations beyond the figure on its scarce side: of 1,000 operations, ten are at or above p99.
    pub behind: f64,
    /// True if no resample had a finite value: the figure is certainly without bound, or does not exist.
    pub boundless: bool,
}

impl ComparedSide {
    /// Collects trials of some operations of a phase. Trials without intervals are left out.
    #[must_use]
    pub fn new(trials: &[Vec<SampleSlot>]) -> ComparedSide {
        let slots = || trials.iter().flatten();
        let mut values: Vec<u64> = slots().flat_map(|s| &s.latencies).map(|cell| cell.0).collect();
        values.sort_unstable();
        values.dedup();
        let row = |slot: &SampleSlot| {
            let mut up_to = Vec::with_capacity(values.len());
            let (mut cells, mut sum) = (slot.latencies.iter().peekable(), 0);
            for value in &values {
                if let Some((_, count)) = cells.next_if(|cell| cell.0 == *value) {
                    sum += count;
                }
                up_to.push(sum);
            }
            let times = slot.latencies.iter().map(|&(value, count)| value as f64 * count as f64);
            let SampleSlot { length_s, ok, drained, failed, .. } = *slot;
            Row { length_s, ok, drained, failed, sum: times.sum(), up_to }
        };
        let trials = trials.iter().filter(|slots| !slots.is_empty());
        let trials = trials.map(|slots| Trial::new(slots.iter().map(row).collect())).collect();
        ComparedSide { trials, values }
    }

    /// Returns the number of trials.
    #[must_use]
    pub fn trials(&self) -> usize {
        self.trials.len()
    }

    /// Returns the number of operations that did not succeed.
    #[must_use]
    pub fn failed(&self) -> u64 {
        self.trials.iter().map(|trial| trial.total.failed).sum()
    }

    /// Estimates each figure with its error. The same `seed` gives the same answer.
    #[must_use]
    pub fn estimates(&self, figures: &[ConditionFigure], seed: u64) -> Vec<Estimate> {
        let lengths: Vec<f64> =
            self.trials.iter().map(|trial| self.length(trial, figures)).collect();
        let mut random = Random::new(seed, 1);
        let within = Scatter::of(figures.len(), || {
            let mut rows = Vec::new();
            let mut counts = Vec::new();
            for (trial, &length) in self.trials.iter().zip(&lengths) {
                blocks::draw(trial.slots.len(), length, &mut random, &mut counts);
                let drawn = trial.slots.iter().zip(counts.iter().copied());
                rows.extend(drawn.filter(|(_, count)| *count > 0));
            }
            self.scaled_values(figures, &rows)
        });
        let mut random = Random::new(seed, 2);
        let between = (self.trials.len() > 1).then(|| {
            Scatter::of(figures.len(), || {
                let any = |_| random.below(self.trials.len() as u64) as usize;
                let drawn: Vec<usize> = (0..self.trials.len()).map(any).collect();
                let rows: Vec<_> = drawn.iter().map(|&at| (&self.trials[at].total, 1)).collect();
                self.scaled_values(figures, &rows)
            })
        });
        let whole: Vec<(&Row, u32)> = self.trials.iter().map(|trial| (&trial.total, 1)).collect();
        let count = self.trials.len().max(1) as f64;
        let blocks =
            self.trials.iter().zip(&lengths).map(|(t, length)| t.slots.len() as f64 / length);
        let blocks = blocks.sum::<f64>() / count;
        let estimate = |(at, figure): (usize, &ConditionFigure)| {
            let value = self.value(figure, &whole);
            let least = self.resolution(figure, value);
            // A bootstrap of n takes their mean for the true one, which loses one degree of freedom of n.
            let unbiased = (count / (count - 1.0)).sqrt();
            Estimate {
                value,
                scaled: scaled(figure, value),
                within: within.deviation(at).hypot(least),
                between: between.as_ref().map(|b| (b.deviation(at) * unbiased).hypot(least)),
                blocks,
                trials: self.trials.len(),
                behind: self.behind(figure),
                boundless: within.boundless(at)
                    && between.as_ref().is_none_or(|between| between.boundless(at)),
            }
        };
        figures.iter().enumerate().map(estimate).collect()
    }

    /// Returns the length of the blocks for a trial: the longest that any figure needs.
    fn length(&self, trial: &Trial, figures: &[ConditionFigure]) -> f64 {
        let of_figure = |figure: &ConditionFigure| {
            let over_time: Vec<f64> = trial
                .slots
                .iter()
                .map(|row| scaled(figure, self.value(figure, &[(row, 1)])))
                .filter(|value| value.is_finite())
                .collect();
            blocks::length(&over_time)
        };
        figures.iter().map(of_figure).fold(1.0, f64::max)
    }

    fn scaled_values(&self, figures: &[ConditionFigure], rows: &[(&Row, u32)]) -> Vec<f64> {
        figures.iter().map(|figure| scaled(figure, self.value(figure, rows))).collect()
    }

    /// Computes a figure of some rows, each with its number of draws; NaN for figures that have no error of this kind.
    fn value(&self, figure: &ConditionFigure, rows: &[(&Row, u32)]) -> f64 {
        let sum = |part: fn(&Row) -> f64| -> f64 {
            rows.iter().map(|(row, times)| part(row) * f64::from(*times)).sum()
        };
        let (ok, failed) = (|row: &Row| row.ok as f64, |row: &Row| row.failed as f64);
        match figure {
            ConditionFigure::Rate => {
                (sum(ok) - sum(|row| row.drained as f64)) / sum(|row| row.length_s)
            }
            ConditionFigure::Mean if sum(failed) > 0.0 => f64::INFINITY,
            ConditionFigure::Mean => sum(|row| row.sum) / sum(|row| row.measured()),
            ConditionFigure::Errors | ConditionFigure::ErrorRatio => {
                sum(failed) / (sum(ok) + sum(failed))
            }
            ConditionFigure::Percentile(part) => self.percentile(f64::from(*part) / 1e5, rows),
            _ => f64::NAN,
        }
    }

    /// Returns the smallest latency, ns, that a share `part` of all operations does not exceed. An operation that did not
    /// succeed counts as taking for ever.
    fn percentile(&self, part: f64, rows: &[(&Row, u32)]) -> f64 {
        let count = |of: &dyn Fn(&Row) -> u64| -> u64 {
            rows.iter().map(|(row, times)| of(row).saturating_mul(u64::from(*times))).sum()
        };
        let measured = count(&|row| row.up_to.last().copied().unwrap_or(0));
        let all = measured + count(&|row| row.failed);
        let rank = ((part * all as f64).ceil() as u64).max(1);
        if all == 0 {
            return f64::NAN;
        }
        if rank > measured {
            return f64::INFINITY;
        }
        let (mut low, mut high) = (0, self.values.len() - 1);
        while low < high {
            let middle = usize::midpoint(low, high);
            if count(&|row| row.up_to[middle]) >= rank { high = middle } else { low = middle + 1 }
        }
        self.values[low] as f64
    }

    /// Returns the least error of a figure, on the scale of its error, that its resolution allows.
    fn resolution(&self, figure: &ConditionFigure, value: f64) -> f64 {
        match figure {
            // Two histograms of nanoseconds and three digits may round apart by this much.
            ConditionFigure::Percentile(_) => RESOLUTION.max(1.0 / value.max(1.0)) / 2.0,
            ConditionFigure::Errors | ConditionFigure::ErrorRatio => {
                let all: u64 = self.trials.iter().map(|t| t.total.ok + t.total.failed).sum();
                let all = all.max(1) as f64;
                (value * (1.0 - value) / all + 1.0 / (all * all)).sqrt()
            }
            _ => 0.0,
        }
    }

    fn behind(&self, figure: &ConditionFigure) -> f64 {
        let all: u64 = self.trials.iter().map(|trial| trial.total.ok + trial.total.failed).sum();
        match figure {
            ConditionFigure::Percentile(part) => {
                let part = f64::from(*part) / 1e5;
                all as f64 * part.min(1.0 - part)
            }
            _ => all as f64,
        }
    }
}

impl Trial {
    fn new(slots: Vec<Row>) -> Trial {
        let mut total = slots[0].clone();
        for row in &slots[1..] {
            total.length_s += row.length_s;
            total.ok += row.ok;
            total.drained += row.drained;
            total.failed += row.failed;
            total.sum += row.sum;
            total.up_to.iter_mut().zip(&row.up_to).for_each(|(sum, count)| *sum += count);
        }
        Trial { slots, total }
    }
}

impl Row {
    /// Returns the number of latencies in it.
    fn measured(&self) -> f64 {
        self.up_to.last().copied().unwrap_or(0) as f64
    }
}

/// Converts a figure to the scale of its error.
fn scaled(figure: &ConditionFigure, value: f64) -> f64 {
    if is_share(figure) { value } else { value.ln() }
}

/// Returns true for a share that may be zero: it has differences, and no ratios.
#[must_use]
pub fn is_share(figure: &ConditionFigure) -> bool {
    matches!(figure, ConditionFigure::Errors | ConditionFigure::ErrorRatio)
}

/// Resamples of each figure.
struct Scatter(Vec<Vec<f64>>);

impl Scatter {
    fn of(figures: usize, mut resample: impl FnMut() -> Vec<f64>) -> Scatter {
        let mut all = vec![Vec::with_capacity(RESAMPLES as usize); figures];
        for _ in 0..RESAMPLES {
            for (values, value) in all.iter_mut().zip(resample()) {
                values.push(value);
            }
        }
        Scatter(all)
    }

    /// Returns the standard deviation; infinite if some resample had no finite value.
    fn deviation(&self, at: usize) -> f64 {
        let values = &self.0[at];
        if values.iter().any(|value| !value.is_finite()) {
            return f64::INFINITY;
        }
        let n = values.len() as f64;
        let mean = values.iter().sum::<f64>() / n;
        let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        (squares / (n - 1.0)).sqrt()
    }

    fn boundless(&self, at: usize) -> bool {
        self.0[at].iter().all(|value| !value.is_finite())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slot(ok: u64, latencies: &[(u64, u64)]) -> SampleSlot {
        SampleSlot { length_s: 1.0, ok, latencies: latencies.to_vec(), ..SampleSlot::default() }
    }

    fn figures() -> Vec<ConditionFigure> {
        vec![
            ConditionFigure::Rate,
            ConditionFigure::Percentile(50_000),
            ConditionFigure::Percentile(99_000),
            ConditionFigure::ErrorRatio,
        ]
    }

    #[test]
    fn what_ended_after_the_phase_is_in_the_latencies_and_not_in_the_rate() {
        let last = SampleSlot { length_s: 0.5, drained: 10, ..slot(60, &[(10, 50), (900, 10)]) };
        let side = ComparedSide::new(&[vec![slot(100, &[(10, 100)]), last]]);
        let all = side.estimates(&[ConditionFigure::Rate, ConditionFigure::Percentile(99_000)], 1);
        assert_eq!((all[0].value, all[1].value), (100.0, 900.0));
    }

    #[test]
    fn figures_are_of_all_trials_together() {
        let side = ComparedSide::new(&[
            vec![slot(100, &[(10, 100)]), slot(100, &[(10, 50), (20, 50)])],
            vec![slot(200, &[(20, 190), (500, 10)])],
        ]);
        let found: Vec<f64> = side.estimates(&figures(), 1).iter().map(|e| e.value).collect();
        assert_eq!(found, [400.0 / 3.0, 20.0, 500.0, 0.0]);
    }

    #[test]
    fn operations_that_failed_took_for_ever() {
        let broken = SampleSlot { failed: 5, ..slot(95, &[(10, 95)]) };
        let side = ComparedSide::new(&[vec![broken.clone(), broken]]);
        let found = side.estimates(&figures(), 1);
        assert_eq!((found[1].value, found[2].value), (10.0, f64::INFINITY));
        assert!(found[2].boundless && !found[1].boundless);
        assert!((found[3].value - 0.05).abs() < 1e-12);
    }

    #[test]
    fn trials_that_differ_have_a_wider_error_than_their_intervals() {
        let trial = |rate: u64| (0..30).map(|n| slot(rate + n % 2, &[(10, rate)])).collect();
        let trials: Vec<Vec<SampleSlot>> = [1_000, 1_050, 980, 1_020].map(trial).to_vec();
        let rate = ComparedSide::new(&trials).estimates(&[ConditionFigure::Rate], 1)[0];
        let between = rate.between.unwrap();
        // The sample deviation of 1000.5, 1050.5, 980.5, 1020.5 is 29.9; half of that is the error.
        assert!((between / (29.9 / 2.0 / 1013.0) - 1.0).abs() < 0.15, "{rate:?}");
        assert!(rate.within < between / 10.0, "{rate:?}");
        assert_eq!(
            ComparedSide::new(&trials[..1]).estimates(&[ConditionFigure::Rate], 1)[0].between,
            None
        );
    }

    #[test]
    fn the_same_seed_gives_the_same_answer() {
        let trial: Vec<SampleSlot> =
            (0..20).map(|n| slot(100 + n * n % 7, &[(10 + n, 100)])).collect();
        let side = ComparedSide::new(&[trial.clone(), trial]);
        assert_eq!(side.estimates(&figures(), 5), side.estimates(&figures(), 5));
    }
}

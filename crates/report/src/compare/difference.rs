//! Difference of one figure between two sides: their ratio, its margin of error, and the conclusion.

use kvdyno_core::verdict::{Amount, ConditionFigure, Operator};
use serde::Serialize;

use super::estimate::{Estimate, is_share};
use super::student;

/// Confidence that all intervals of a row hold together.
pub const CONFIDENCE: f64 = 0.95;
/// Standard deviation, as a share, that is assumed between runs of one store where no side has more than one trial:
/// without it a difference between two runs says little about the stores.
pub const ASSUMED_SCATTER: f64 = 0.05;
/// Smallest difference of interest, as a share. Where no difference is shown, a larger one must be ruled out; else the
/// figure is too noisy to tell.
pub const OF_INTEREST: f64 = 0.10;
/// Smallest difference of interest in errors, as a share of all operations.
pub const OF_INTEREST_ERRORS: f64 = 0.001;
/// Fewest operations beyond a percentile: p99 of 1,000 rests on ten.
pub const FEWEST_BEHIND: f64 = 10.0;

/// Conclusion of a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Shown {
    /// The second side is better.
    Better,
    /// The second side is worse.
    Worse,
    /// No difference is shown, and none of interest is hidden.
    None,
    /// The figure is too noisy to tell.
    TooNoisy,
}

/// Comparison of one figure.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Difference {
    /// Name of the figure, such as `p99`.
    pub figure: String,
    /// Figure of the first side: ns, operations a second, or a share.
    pub first: Option<f64>,
    /// Figure of the second side, in the same unit.
    pub second: Option<f64>,
    /// Ratio of the second to the first; for errors the second minus the first. `None` where one of them has no bound.
    pub change: Option<f64>,
    /// Lower end of the confidence interval of `change`.
    pub low: Option<f64>,
    /// Upper end of the confidence interval of `change`.
    pub high: Option<f64>,
    /// Conclusion from the interval.
    pub shown: Shown,
    /// Reason why the figure is too noisy to tell, where it is.
    pub because: Option<String>,
    #[serde(skip)]
    pub(super) kind: ConditionFigure,
}

/// A standard error with its degrees of freedom.
#[derive(Clone, Copy, Debug)]
struct Margin {
    error: f64,
    freedom: f64,
}

impl Difference {
    /// Compares the second side with the first, at [`CONFIDENCE`] for `family` figures together (Bonferroni).
    #[must_use]
    pub fn of(
        figure: &ConditionFigure,
        first: &Estimate,
        second: &Estimate,
        family: usize,
    ) -> Difference {
        let mut difference = Difference {
            figure: figure.name().into_owned(),
            first: finite(first.value),
            second: finite(second.value),
            change: finite(transformed(figure, second.scaled - first.scaled)),
            low: None,
            high: None,
            shown: Shown::TooNoisy,
            because: None,
            kind: figure.clone(),
        };
        if let Some(shown) = without_bound(figure, first, second) {
            difference.shown = shown;
            return difference;
        }
        let few = [first, second].into_iter().any(|side| side.behind < FEWEST_BEHIND);
        if few && !is_share(figure) {
            difference.because = Some("too few operations".to_owned());
            return difference;
        }
        let Some(half) = half_width(figure, first, second, family) else {
            difference.because = Some(why_no_margin(first, second));
            return difference;
        };
        let middle = second.scaled - first.scaled;
        let (low, high) = (middle - half, middle + half);
        difference.low = finite(transformed(figure, low));
        difference.high = finite(transformed(figure, high));
        let of_interest = match is_share(figure) {
            true => OF_INTEREST_ERRORS,
            false => OF_INTEREST.ln_1p(),
        };
        difference.shown = match (low, high) {
            _ if low > 0.0 => of_sign(figure, true),
            _ if high < 0.0 => of_sign(figure, false),
            _ if -low <= of_interest && high <= of_interest => Shown::None,
            _ => Shown::TooNoisy,
        };
        if difference.shown == Shown::TooNoisy {
            difference.because = Some("the margin is too wide".to_owned());
        }
        difference
    }

    /// Returns the second side minus the first in the terms of `bound`: as a share of the first, or in the figure's own
    /// unit with the first as it was measured; errors as they are.
    #[must_use]
    pub fn less_first(&self, change: f64, bound: Amount) -> f64 {
        match bound {
            _ if is_share(&self.kind) => change,
            Amount::Shift(_) => (change - 1.0) * self.first.unwrap_or(f64::NAN),
            Amount::Change(_) | Amount::Value(_) => change - 1.0,
        }
    }

    /// Returns true if the figure of the second side has no bound: more operations failed than the figure allows, and a
    /// failed one counts as taking for ever.
    #[must_use]
    pub fn is_boundless(&self) -> bool {
        self.shown == Shown::Worse
            && self.change.is_none()
            && self.kind.lower_is_better() == Some(true)
    }

    /// Returns true if the whole interval of the change meets `operator` and `bound`, which is a change, and false if no
    /// part of it does; `None` if only a part does, or there is no interval.
    #[must_use]
    pub fn holds(&self, operator: Operator, bound: Amount) -> Option<bool> {
        let (Amount::Change(by) | Amount::Shift(by)) = bound else { return None };
        if self.is_boundless() {
            return Some(operator.holds(f64::INFINITY, by));
        }
        let (low, high) = self.low.zip(self.high)?;
        let [low, high] = [low, high].map(|end| operator.holds(self.less_first(end, bound), by));
        (low == high).then_some(low)
    }
}

/// Returns half the width of the interval on the scale of the error; `None` where it cannot be told.
fn half_width(
    figure: &ConditionFigure,
    first: &Estimate,
    second: &Estimate,
    family: usize,
) -> Option<f64> {
    let (a, b) = (margin(figure, first, second)?, margin(figure, second, first)?);
    let variance = a.error.powi(2) + b.error.powi(2);
    // Welch and Satterthwaite (Biometrics Bulletin 2, 1946).
    let freedom = variance.powi(2) / (a.error.powi(4) / a.freedom + b.error.powi(4) / b.freedom);
    let freedom = if freedom.is_nan() { a.freedom.min(b.freedom) } else { freedom };
    let tail = (1.0 - CONFIDENCE) / family.max(1) as f64 / 2.0;
    let half = student::quantile(1.0 - tail, freedom) * variance.sqrt();
    half.is_finite().then_some(half)
}

/// Returns the error of one side. A side of one trial is taken to scatter as the other side's trials do, or by
/// [`ASSUMED_SCATTER`] if that side, too, has one trial only.
fn margin(figure: &ConditionFigure, side: &Estimate, other: &Estimate) -> Option<Margin> {
    if let Some(between) = side.between {
        return Some(Margin { error: between.max(side.within), freedom: side.trials as f64 - 1.0 });
    }
    if let Some(between) = other.between {
        let of_one = between * (other.trials as f64).sqrt();
        return Some(Margin { error: of_one.max(side.within), freedom: other.trials as f64 - 1.0 });
    }
    let assumed = if is_share(figure) { 0.0 } else { ASSUMED_SCATTER };
    // Independent blocks of intervals are few, too.
    let freedom = side.blocks - 1.0;
    (freedom >= 1.0).then(|| Margin { error: side.within.hypot(assumed), freedom })
}

fn why_no_margin(first: &Estimate, second: &Estimate) -> String {
    let lone = first.between.is_none() && second.between.is_none();
    let short = first.blocks.min(second.blocks) < 2.0;
    match lone && short {
        true => "one trial, and too few intervals in it".to_owned(),
        false => "some resamples have no such figure".to_owned(),
    }
}

/// Concludes on a figure that certainly has no bound on one side (more than 1 % of all operations failed: there is no
/// p99), or on both.
fn without_bound(figure: &ConditionFigure, first: &Estimate, second: &Estimate) -> Option<Shown> {
    if is_share(figure) {
        return None;
    }
    match (first.boundless, second.boundless) {
        (true, true) => Some(Shown::TooNoisy),
        (false, true) if first.scaled.is_finite() => {
            Some(of_sign(figure, second.scaled > first.scaled))
        }
        (true, false) if second.scaled.is_finite() => {
            Some(of_sign(figure, second.scaled > first.scaled))
        }
        _ => None,
    }
}

fn of_sign(figure: &ConditionFigure, more: bool) -> Shown {
    match figure.lower_is_better().unwrap_or(true) == more {
        true => Shown::Worse,
        false => Shown::Better,
    }
}

/// Converts from the scale of the error to the one that is told.
fn transformed(figure: &ConditionFigure, scaled: f64) -> f64 {
    if is_share(figure) { scaled } else { scaled.exp() }
}

fn finite(value: f64) -> Option<f64> {
    value.is_finite().then_some(value)
}

/// Returns the interval of one side's figure alone, in its own unit, at [`CONFIDENCE`]; `None` where it cannot be told.
#[must_use]
pub fn interval(figure: &ConditionFigure, side: &Estimate, other: &Estimate) -> Option<(f64, f64)> {
    if side.boundless && side.value == f64::INFINITY {
        return Some((f64::INFINITY, f64::INFINITY));
    }
    let margin = margin(figure, side, other)?;
    let tail = (1.0 - CONFIDENCE) / 2.0;
    let half = student::quantile(1.0 - tail, margin.freedom) * margin.error;
    let ends = (side.scaled - half, side.scaled + half);
    let ends = (transformed(figure, ends.0), transformed(figure, ends.1));
    (ends.0.is_finite() && ends.1.is_finite()).then_some(ends)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn estimate(value: f64, within: f64, between: Option<f64>) -> Estimate {
        let trials = if between.is_some() { 6 } else { 1 };
        let scaled = value.ln();
        let (blocks, behind, boundless) = (20.0, 1e4, false);
        Estimate { value, scaled, within, between, blocks, trials, behind, boundless }
    }

    fn rate(first: &Estimate, second: &Estimate) -> Difference {
        Difference::of(&ConditionFigure::Rate, first, second, 1)
    }

    #[test]
    fn the_interval_is_that_of_the_two_sided_t_test() {
        let (a, b) = (estimate(100.0, 0.001, Some(0.01)), estimate(110.0, 0.001, Some(0.01)));
        let found = rate(&a, &b);
        // Ten degrees of freedom: 2.228 standard errors of √2 %.
        let half = 2.228 * 0.01 * 2f64.sqrt();
        assert!((found.low.unwrap() - (1.1f64.ln() - half).exp()).abs() < 1e-4, "{found:?}");
        assert!((found.high.unwrap() - (1.1f64.ln() + half).exp()).abs() < 1e-4, "{found:?}");
        assert_eq!(found.shown, Shown::Better);
        assert_eq!(rate(&b, &a).shown, Shown::Worse);
        let time = Difference::of(&ConditionFigure::Percentile(99_000), &a, &b, 1);
        assert_eq!(time.shown, Shown::Worse);
        let wider = Difference::of(&ConditionFigure::Rate, &a, &b, 5);
        assert!(wider.low < found.low && wider.high > found.high);
    }

    #[test]
    fn a_change_holds_if_its_whole_interval_does() {
        let (a, b) = (estimate(1e6, 0.001, Some(0.01)), estimate(1.1e6, 0.001, Some(0.01)));
        let found = Difference::of(&ConditionFigure::Mean, &a, &b, 1);
        // The difference is 0.1 ms, between 0.065 and 0.135 ms.
        let holds = |bound| found.holds(Operator::Less, bound);
        assert_eq!(holds(Amount::Shift(140_000.0)), Some(true));
        assert_eq!(holds(Amount::Shift(100_000.0)), None);
        assert_eq!(holds(Amount::Shift(60_000.0)), Some(false));
        assert_eq!(holds(Amount::Shift(-60_000.0)), Some(false));
        assert_eq!(holds(Amount::Change(0.14)), Some(true));
        assert_eq!(holds(Amount::Change(0.06)), Some(false));
        assert_eq!(holds(Amount::Value(1e9)), None, "no change");
        assert_eq!(found.holds(Operator::More, Amount::Shift(60_000.0)), Some(true));
        let lone = Estimate { blocks: 1.5, ..estimate(1e6, 0.001, None) };
        let unknown = Difference::of(&ConditionFigure::Mean, &lone, &lone, 1);
        assert_eq!(unknown.holds(Operator::Less, Amount::Shift(1e9)), None, "no interval");
    }

    #[test]
    fn equal_sides_show_nothing_or_are_too_noisy() {
        let (a, b) = (estimate(100.0, 0.001, Some(0.01)), estimate(100.5, 0.001, Some(0.01)));
        assert_eq!(rate(&a, &b).shown, Shown::None);
        let (a, b) = (estimate(100.0, 0.001, Some(0.05)), estimate(100.5, 0.001, Some(0.05)));
        let found = rate(&a, &b);
        assert_eq!(found.shown, Shown::TooNoisy);
        assert_eq!(found.because.as_deref(), Some("the margin is too wide"));
    }

    #[test]
    fn trials_that_agree_by_chance_are_held_to_their_intervals() {
        let (a, b) = (estimate(100.0, 0.03, Some(0.0001)), estimate(103.0, 0.03, Some(0.0001)));
        assert_ne!(rate(&a, &b).shown, Shown::Better);
    }

    #[test]
    fn one_trial_each_gets_an_assumed_scatter_and_shows_large_differences_only() {
        let a = estimate(100.0, 0.002, None);
        assert_eq!(rate(&a, &estimate(108.0, 0.002, None)).shown, Shown::TooNoisy);
        assert_eq!(rate(&a, &estimate(150.0, 0.002, None)).shown, Shown::Better);
        let short = Estimate { blocks: 1.5, ..a };
        let found = rate(&short, &estimate(150.0, 0.002, None));
        assert_eq!(found.shown, Shown::TooNoisy);
        assert!(found.because.unwrap().contains("too few intervals"));
    }

    #[test]
    fn one_trial_beside_several_scatters_as_they_do() {
        let several = estimate(100.0, 0.002, Some(0.01));
        let found = rate(&several, &estimate(108.0, 0.002, None));
        // √6 % for the lone one beside 1 %: 2.65 % and about six degrees of freedom.
        assert!((1.01..1.02).contains(&found.low.unwrap()), "{found:?}");
    }

    #[test]
    fn a_percentile_that_failures_reach_is_worse_without_a_ratio() {
        let fine = estimate(100.0, 0.002, Some(0.01));
        let broken = Estimate {
            value: f64::INFINITY,
            scaled: f64::INFINITY,
            within: f64::INFINITY,
            between: Some(f64::INFINITY),
            boundless: true,
            ..fine
        };
        let p99 = ConditionFigure::Percentile(99_000);
        let found = Difference::of(&p99, &fine, &broken, 1);
        assert_eq!((found.shown, found.change, found.second), (Shown::Worse, None, None));
        assert_eq!(found.holds(Operator::Less, Amount::Shift(1e9)), Some(false));
        assert_eq!(Difference::of(&p99, &broken, &fine, 1).shown, Shown::Better);
        let shaky = Estimate { boundless: false, ..broken };
        assert_eq!(Difference::of(&p99, &fine, &shaky, 1).shown, Shown::TooNoisy);
    }

    #[test]
    fn errors_are_compared_by_their_difference() {
        let share = |value: f64| Estimate { scaled: value, ..estimate(value, 1e-5, Some(2e-5)) };
        let found = Difference::of(&ConditionFigure::ErrorRatio, &share(0.0), &share(0.01), 1);
        assert_eq!((found.shown, found.change), (Shown::Worse, Some(0.01)));
        let found = Difference::of(&ConditionFigure::ErrorRatio, &share(0.0), &share(0.0), 1);
        assert_eq!(found.shown, Shown::None);
    }
}

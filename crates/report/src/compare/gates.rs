//! Conditions on a comparison: gates (`--fail-on`), which a release must not run into, and requirements (`--needs`),
//! which tell whether a difference matters.

use kvdyno_core::evidence::{Evidence, EvidenceStatus};
use kvdyno_core::ground::numbers::{duration_text, grouped, significant, small};
use kvdyno_core::verdict::{Amount, Condition, ConditionFigure, Operations, Operator};
use serde::Serialize;

use super::comparison::{Both, Comparison, PhaseComparison};
use super::difference::{Difference, Shown, interval};
use super::estimate::is_share;
use super::figures::{self, is_compared};
use super::source::CompareError;

/// Outcome of a gate or a requirement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// The change that a gate forbids is not there, or a requirement is met.
    Passed,
    /// The change that a gate forbids is shown, or a requirement is not met.
    Failed,
    /// The figure is too noisy to tell.
    NotShown,
}

impl Outcome {
    /// Returns the outcome of a requirement whose evidence comes to this status.
    fn of(status: EvidenceStatus) -> Outcome {
        match status {
            EvidenceStatus::Confirmed => Outcome::Passed,
            EvidenceStatus::Refuted => Outcome::Failed,
            EvidenceStatus::Inconclusive(_)
            | EvidenceStatus::NothingToShow
            | EvidenceStatus::Observed => Outcome::NotShown,
        }
    }

    /// Returns the outcome of a requirement in a phase by whether it `holds`, if that can be told. A gate is the
    /// requirement that the forbidden change is not there.
    fn of_requirement(phase: &PhaseComparison, holds: Option<bool>) -> Outcome {
        Outcome::of(Evidence::of_condition(Some(&phase.name), holds, 1, &[]).status())
    }
}

/// Outcome of a gate in a phase.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct GateResult {
    /// The condition that must not come true.
    pub condition: String,
    /// Name of the phase.
    pub phase: String,
    /// Names of the sides: `second against first`.
    pub sides: String,
    /// Outcome of the gate.
    pub outcome: Outcome,
    /// Figures behind the outcome, in a sentence without a stop.
    pub text: String,
}

/// Outcome of a requirement in a phase.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct NeedResult {
    /// The condition that must hold.
    pub condition: String,
    /// Name of the phase.
    pub phase: String,
    /// Outcome for the first side.
    pub first: Outcome,
    /// Outcome for the second side.
    pub second: Outcome,
    /// Both outcomes in words, in a sentence without a stop.
    pub text: String,
}

/// Judges a gate in each phase that it is about.
///
/// # Errors
/// [`CompareError`] if the condition cannot be asked, or is about nothing in the comparison.
pub fn gate(
    comparison: &Comparison,
    condition: &Condition,
) -> Result<Vec<GateResult>, CompareError> {
    if matches!(condition.operator, Operator::Equal | Operator::NotEqual) {
        return Err(CompareError::Condition {
            condition: condition.to_string(),
            problem:
                "a gate cannot use == or !=, because measured changes are never exact; use < or >"
                    .to_owned(),
        });
    }
    let mut results = Vec::new();
    for phase in asked(comparison, condition)? {
        let Some(both) =
            phase.both(condition.subject.operations, std::slice::from_ref(figure(condition)))
        else {
            continue;
        };
        let difference = Difference::of(figure(condition), &both.first[0], &both.second[0], 1);
        let is_there = match condition.bound {
            Amount::Change(bound) | Amount::Shift(bound) => {
                by_change(condition, &difference, bound)
            }
            Amount::Value(bound) => {
                by_ends(condition.operator, ends(figure(condition), &both, 1), bound)
            }
        };
        let outcome = Outcome::of_requirement(phase, is_there.map(|is_there| !is_there));
        results.push(GateResult {
            condition: condition.to_string(),
            phase: phase.name.clone(),
            sides: format!("{} against {}", comparison.second, comparison.first),
            outcome,
            text: sentence(&difference),
        });
    }
    some(results, comparison, condition)
}

/// Judges for each side whether it meets a requirement, in each phase that it is about.
///
/// # Errors
/// [`CompareError`] if the condition cannot be asked, or is about nothing in the comparison.
pub fn need(
    comparison: &Comparison,
    condition: &Condition,
) -> Result<Vec<NeedResult>, CompareError> {
    let Amount::Value(bound) = condition.bound else {
        return Err(CompareError::Condition {
            condition: condition.to_string(),
            problem: "a requirement has a value such as 10ms; changes belong to --fail-on"
                .to_owned(),
        });
    };
    let mut results = Vec::new();
    for phase in asked(comparison, condition)? {
        let figure = figure(condition);
        let Some(both) = phase.both(condition.subject.operations, std::slice::from_ref(figure))
        else {
            continue;
        };
        let judged = |side: usize| {
            let holds = by_ends(condition.operator, ends(figure, &both, side), bound);
            Outcome::of_requirement(phase, holds)
        };
        let (first, second) = (judged(0), judged(1));
        results.push(NeedResult {
            condition: condition.to_string(),
            phase: phase.name.clone(),
            first,
            second,
            text: need_text(comparison, condition, [first, second]),
        });
    }
    some(results, comparison, condition)
}

pub(super) fn figure(condition: &Condition) -> &ConditionFigure {
    &condition.subject.figure
}

/// Returns the phases that a condition is about.
pub(super) fn asked<'a>(
    comparison: &'a Comparison,
    condition: &Condition,
) -> Result<impl Iterator<Item = &'a PhaseComparison> + use<'a>, CompareError> {
    if !is_compared(figure(condition)) {
        let condition = condition.to_string();
        return Err(CompareError::NoMargin { condition, known: figures::words() });
    }
    let priced = comparison.phases.iter().all(PhaseComparison::is_priced);
    if *figure(condition) == ConditionFigure::Cost && !priced {
        return Err(CompareError::Condition {
            condition: condition.to_string(),
            problem:
                "both sides need servers with prices in one currency: write --servers KIND=N, here \
                      or with `kvdyno run`"
                    .to_owned(),
        });
    }
    let wanted = condition.subject.phase.clone();
    let is_wanted = move |phase: &&PhaseComparison| {
        wanted.as_deref().is_none_or(|wanted| phase.name == wanted || phase.label == wanted)
    };
    Ok(comparison.phases.iter().filter(is_wanted))
}

fn some<T>(
    results: Vec<T>,
    comparison: &Comparison,
    condition: &Condition,
) -> Result<Vec<T>, CompareError> {
    if !results.is_empty() {
        return Ok(results);
    }
    let known = comparison.phases.iter().map(|phase| {
        let kinds: Vec<&str> = phase.kinds().iter().map(|kind| kind.name()).collect();
        format!("{} ({})", phase.name, kinds.join(", "))
    });
    let known = known.collect::<Vec<_>>().join(", ");
    Err(CompareError::NotThere { condition: condition.to_string(), known })
}

/// Returns true if there is a change beyond the bound: the interval excludes no change, and the change itself is beyond
/// the bound; `None` where the figure is too noisy to tell.
fn by_change(condition: &Condition, difference: &Difference, bound: f64) -> Option<bool> {
    let holds = |change: f64| {
        condition.operator.holds(difference.less_first(change, condition.bound), bound)
    };
    match (difference.shown, difference.change) {
        (Shown::Better | Shown::Worse, Some(change)) if holds(change) => Some(true),
        // There is no ratio: one side has no bound at all.
        (Shown::Worse, None) => {
            Some(difference.is_boundless() && condition.operator.holds(f64::INFINITY, bound))
        }
        (Shown::TooNoisy, _) => match (difference.low, difference.high) {
            (Some(low), Some(high)) if !holds(low) && !holds(high) => Some(false),
            _ => None,
        },
        _ => Some(false),
    }
}

/// Returns the interval of the only figure of one side, in its own unit.
fn ends(figure: &ConditionFigure, both: &Both, side: usize) -> Option<(f64, f64)> {
    let (own, other) = match side {
        0 => (&both.first[0], &both.second[0]),
        _ => (&both.second[0], &both.first[0]),
    };
    match figure {
        // A count has no margin.
        ConditionFigure::Errors => Some((both.failed[side] as f64, both.failed[side] as f64)),
        _ => interval(figure, own, other),
    }
}

/// Returns true if the condition holds for the whole interval, false if for no part of it, else `None`.
fn by_ends(operator: Operator, ends: Option<(f64, f64)>, bound: f64) -> Option<bool> {
    let (low, high) = ends?;
    let [low, high] = [low, high].map(|end| operator.holds(end, bound));
    (low == high).then_some(low)
}

fn need_text(comparison: &Comparison, condition: &Condition, outcomes: [Outcome; 2]) -> String {
    let (first, second) = (&comparison.first, &comparison.second);
    match outcomes {
        [Outcome::Passed, Outcome::Passed] => {
            format!("both meet {condition}: the difference does not matter for it")
        }
        [Outcome::Failed, Outcome::Failed] => format!("neither meets {condition}"),
        [Outcome::Passed, Outcome::Failed] => {
            format!("only {first} meets {condition}: the difference matters")
        }
        [Outcome::Failed, Outcome::Passed] => {
            format!("only {second} meets {condition}: the difference matters")
        }
        outcomes => {
            let word = |outcome| match outcome {
                Outcome::Passed => "meets it",
                Outcome::Failed => "does not",
                Outcome::NotShown => "is too noisy to tell",
            };
            format!(
                "{condition} is not decided: {first} {}, {second} {}",
                word(outcomes[0]),
                word(outcomes[1])
            )
        }
    }
}

/// Names the operations of a row, for people.
#[must_use]
pub fn operations_text(operations: &str) -> &str {
    if operations == Operations::All.name() { "all operations" } else { operations }
}

/// Describes a difference in a sentence without a stop: `p99 12.1 ms → 13.0 ms: 1.07 × (1.02 to 1.13), slower`.
#[must_use]
pub fn sentence(difference: &Difference) -> String {
    let value = |value| value_text(difference, value);
    format!(
        "{} {} → {}{}, {}",
        difference.figure,
        value(difference.first),
        value(difference.second),
        change_text(difference).map_or(String::new(), |text| format!(": {text}")),
        words(difference)
    )
}

/// Formats a value of a figure in the unit that suits it.
#[must_use]
pub fn value_text(difference: &Difference, value: Option<f64>) -> String {
    let Some(value) = value else { return "without bound".to_owned() };
    match difference.kind {
        ConditionFigure::Rate if value >= 1_000.0 => format!("{}/s", grouped(value.round())),
        ConditionFigure::Rate => format!("{}/s", significant(value)),
        ConditionFigure::Cost => format!("{} a million", small(value)),
        _ if is_share(&difference.kind) => format!("{} %", significant(value * 100.0)),
        _ => duration_text(value),
    }
}

/// Formats the change with its interval, where there is one: `1.07 × (1.02 to 1.13)`.
#[must_use]
pub fn change_text(difference: &Difference) -> Option<String> {
    let change = difference.change?;
    let ends = difference.low.zip(difference.high);
    let (text, unit): (fn(f64) -> String, &str) = match is_share(&difference.kind) {
        // A share changes by at most the whole.
        true => (|share| format!("{:+.3}", share.clamp(-1.0, 1.0) * 100.0), " % of operations"),
        false => (ratio_text, " ×"),
    };
    Some(match ends {
        Some((low, high)) => format!("{}{unit} ({} to {})", text(change), text(low), text(high)),
        None => format!("{}{unit}", text(change)),
    })
}

/// Formats a ratio: near 1 with the digits in which it differs. Beyond a million, an end of an interval only tells that
/// there is no bound on that side.
fn ratio_text(ratio: f64) -> String {
    match ratio {
        near if (0.5..2.0).contains(&near) => format!("{near:.3}"),
        vast if vast > 1e6 => "over 1,000,000".to_owned(),
        tiny if tiny < 1e-5 => "under 0.00001".to_owned(),
        other => significant(other),
    }
}

/// Describes the difference from the second side's view, in words.
#[must_use]
pub fn words(difference: &Difference) -> String {
    let share = is_share(&difference.kind);
    match difference.shown {
        Shown::Better if share => "fewer errors".to_owned(),
        Shown::Worse if share => "more errors".to_owned(),
        Shown::Better if difference.kind == ConditionFigure::Cost => "cheaper".to_owned(),
        Shown::Worse if difference.kind == ConditionFigure::Cost => "dearer".to_owned(),
        Shown::Better => "faster".to_owned(),
        Shown::Worse => "slower".to_owned(),
        Shown::None => "no difference shown".to_owned(),
        Shown::TooNoisy => match &difference.because {
            Some(because) => format!("too noisy to tell ({because})"),
            None => "too noisy to tell".to_owned(),
        },
    }
}

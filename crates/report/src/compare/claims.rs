//! How a suite's claims about two deployments of a store stand: each is a change, and holds if the whole
//! interval of what was measured does.

use kvdyno_core::suite::Plan;
use kvdyno_core::verdict::{Amount, Claim, ClaimStatus, Condition};

use crate::claims::is_about;
use crate::result::{ClaimResult, ConditionResult, StoreRun};

use super::comparison::{Comparison, PhaseComparison};
use super::difference::Difference;
use super::gates::{asked, figure, sentence, value_text};
use super::source::Source;

/// The claims of the first side's suite that are about two deployments as these are.
pub(super) fn judge(comparison: &Comparison, first: &Source, second: &Source) -> Vec<ClaimResult> {
    let (Some((result, a)), Some((_, b))) = (first.runs().next(), second.runs().next()) else {
        return Vec::new();
    };
    let Ok(plan) = serde_json::from_value::<Plan>(result.suite.plan.clone()) else {
        return Vec::new();
    };
    let about = plan.claims.iter().filter(|claim| is_about_both(claim, a, b));
    about.map(|claim| of_claim(comparison, claim)).collect()
}

/// It is about two deployments of one store, and these are such.
fn is_about_both(claim: &Claim, first: &StoreRun, second: &StoreRun) -> bool {
    let Some(settings) = &claim.between else { return false };
    let fits = |(run, setting): (&StoreRun, &String)| {
        is_about(claim, run)
            && run.store.settings.iter().any(|(name, value)| *setting == format!("{name}={value}"))
    };
    first.store.name == second.store.name && [first, second].into_iter().zip(settings).all(fits)
}

/// How a claim stands by what the comparison shows.
pub(super) fn of_claim(comparison: &Comparison, claim: &Claim) -> ClaimResult {
    let conditions =
        claim.conditions.iter().flat_map(|condition| of_condition(comparison, condition));
    let conditions: Vec<ConditionResult> = conditions.collect();
    ClaimResult {
        says: claim.says.clone(),
        standing: ClaimStatus::of_all(conditions.iter().map(|condition| condition.standing)),
        conditions,
        reach: "as far as the two deployments differ in nothing else that matters".to_owned(),
    }
}

fn of_condition(comparison: &Comparison, condition: &Condition) -> Vec<ConditionResult> {
    let undecided = |phase: Option<&PhaseComparison>, why: String| ConditionResult {
        condition: condition.to_string(),
        phase: phase.map(|phase| phase.name.clone()),
        standing: ClaimStatus::Inconclusive,
        figure: None,
        stake: 1,
        measured: String::new(),
        why,
    };
    let phases: Vec<&PhaseComparison> = match asked(comparison, condition) {
        Ok(phases) => phases.collect(),
        Err(error) => return vec![undecided(None, error.to_string())],
    };
    if phases.is_empty() {
        return vec![undecided(None, "no such phase came to its end on both sides".to_owned())];
    }
    let of_phase = |phase: &&PhaseComparison| {
        let figures = std::slice::from_ref(figure(condition));
        let Some(both) = phase.both(condition.subject.operations, figures) else {
            return undecided(Some(phase), "no such operations on both sides".to_owned());
        };
        let difference = Difference::of(figure(condition), &both.first[0], &both.second[0], 1);
        let told = undecided(Some(phase), String::new());
        let measured = measured_text(&difference, condition.bound);
        match (comparison.invalid, difference.holds(condition.operator, condition.bound)) {
            (true, _) => {
                ConditionResult { measured, why: "a measurement is invalid".to_owned(), ..told }
            }
            (false, None) => {
                ConditionResult { measured, why: "too noisy to tell".to_owned(), ..told }
            }
            (false, holds) => {
                ConditionResult { measured, standing: ClaimStatus::of(holds), ..told }
            }
        }
    };
    phases.iter().map(of_phase).collect()
}

/// The difference, and if it is asked for in the figure's own unit, in that too.
fn measured_text(difference: &Difference, bound: Amount) -> String {
    let text = sentence(difference);
    let ends = (difference.change, difference.low, difference.high);
    let (Amount::Shift(_), (Some(change), Some(low), Some(high))) = (bound, ends) else {
        return text;
    };
    let [change, low, high] = [change, low, high].map(|change| {
        let by = difference.less_first(change, bound);
        format!("{}{}", if by < 0.0 { "-" } else { "+" }, value_text(difference, Some(by.abs())))
    });
    format!("{text}, {change} ({low} to {high})")
}

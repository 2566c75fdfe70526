//! Judges a suite's claims about two deployments of a store: each is about a change, and holds if the whole interval of
//! the measured change does.

use kvdyno_core::evidence::{Evidence, OpenReason};
use kvdyno_core::suite::Plan;
use kvdyno_core::verdict::{Amount, Claim, ClaimStatus, Condition};

use crate::claims::is_about;
use crate::result::{ClaimResult, ConditionResult, StoreRun};

use super::comparison::{Comparison, PhaseComparison};
use super::difference::Difference;
use super::gates::{asked, figure, sentence, value_text};
use super::source::Source;

/// Judges the claims of the first side's suite that are about two deployments such as these.
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

/// Returns true if a claim is about two deployments of one store, and these are such deployments.
fn is_about_both(claim: &Claim, first: &StoreRun, second: &StoreRun) -> bool {
    let Some(settings) = &claim.between else { return false };
    let fits = |(run, setting): (&StoreRun, &String)| {
        is_about(claim, run)
            && run.store.settings.iter().any(|(name, value)| *setting == format!("{name}={value}"))
    };
    first.store.name == second.store.name && [first, second].into_iter().zip(settings).all(fits)
}

/// Judges a claim by the comparison.
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
    let phases: Vec<&PhaseComparison> = match asked(comparison, condition) {
        Ok(phases) => phases.collect(),
        Err(error) => return vec![judge_condition(condition, None, None, error.to_string())],
    };
    if phases.is_empty() {
        let why = "no such phase came to its end on both sides".to_owned();
        return vec![judge_condition(condition, None, None, why)];
    }
    let of_phase = |phase: &&PhaseComparison| {
        let figures = std::slice::from_ref(figure(condition));
        let Some(both) = phase.both(condition.subject.operations, figures) else {
            return judge_condition(
                condition,
                Some(phase),
                None,
                "no such operations on both sides".to_owned(),
            );
        };
        let difference = Difference::of(figure(condition), &both.first[0], &both.second[0], 1);
        let why = match comparison.invalid {
            true => "a measurement is invalid",
            false => "too noisy to tell",
        };
        judge_condition(
            condition,
            Some(phase),
            Some((difference, comparison.invalid)),
            why.to_owned(),
        )
    };
    phases.iter().map(of_phase).collect()
}

/// Judges a condition in a phase and puts it into words, by the difference there, if there is one, and whether a
/// measurement is invalid. `why` says why it is not shown, if it is not.
fn judge_condition(
    condition: &Condition,
    phase: Option<&PhaseComparison>,
    measured: Option<(Difference, bool)>,
    why: String,
) -> ConditionResult {
    let phase = phase.map(|phase| phase.name.as_str());
    let holds = measured
        .as_ref()
        .and_then(|(difference, _)| difference.holds(condition.operator, condition.bound));
    let is_invalid = measured.as_ref().is_some_and(|(_, is_invalid)| *is_invalid);
    let doubts: &[OpenReason] = if is_invalid { &[OpenReason::MachineFailed] } else { &[] };
    let status = Evidence::of_condition(phase, holds, 1, doubts).status();
    ConditionResult {
        condition: condition.to_string(),
        phase: phase.map(str::to_owned),
        standing: ClaimStatus::from(status),
        figure: None,
        stake: 1,
        measured: measured.map_or_else(String::new, |(difference, _)| {
            measured_text(&difference, condition.bound)
        }),
        why: if status.reason().is_some() { why } else { String::new() },
    }
}

/// Describes the difference; if the bound is in the figure's own unit, in that unit, too.
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

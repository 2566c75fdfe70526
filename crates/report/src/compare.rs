//! Comparison of two stores, or of two versions of one: whether they differ, by how much, and how sure that is. Results,
//! folders of trials and the stores of one run are compared figure by figure, each with a confidence interval.
//! docs/COMPARE.md explains the method and its sources.

mod blocks;
mod claims;
mod comparison;
mod difference;
mod equality;
mod estimate;
mod figures;
mod gates;
mod page;
mod samples;
#[cfg(test)]
mod simulation;
mod source;
mod student;
mod text;

pub(crate) use comparison::missing_trials;
pub use comparison::{Comparison, PhaseComparison, RowComparison, Unequal};
pub use difference::{
    ASSUMED_SCATTER, CONFIDENCE, Difference, FEWEST_BEHIND, OF_INTEREST, OF_INTEREST_ERRORS, Shown,
};
pub(crate) use estimate::ComparedSide;
pub use gates::{GateResult, NeedResult, Outcome, gate, need, sentence, words};
pub use page::page;
pub use samples::{PhaseSamples, SampleSlot, Samples};
pub use source::{CompareError, Source, pairs, result_folders, sources, sources_of, store_key};
pub(crate) use student::quantile as student_quantile;
pub(crate) use text::document;
pub use text::{ComparisonReport, junit, markdown, terminal};

use crate::result::CostResult;

/// Compares the second side with the first, and judges the suite's claims about two such deployments. `stated` is the
/// cost of each side's servers; without it the cost in their results counts.
///
/// # Errors
/// [`CompareError`] if the sides are unequal and `unequal` refuses that, or have no phase in common.
pub fn compare(
    first: &Source,
    second: &Source,
    unequal: Unequal,
    stated: Option<&CostResult>,
) -> Result<Comparison, CompareError> {
    let comparison = Comparison::of(first, second, unequal, stated)?;
    let claims = claims::judge(&comparison, first, second);
    Ok(Comparison { claims, ..comparison })
}

//! Are two stores, or two versions of one, different, by how much, and how sure is that? Results,
//! folders of trials and the stores of one run are set against each other figure by figure, each with
//! a confidence interval. docs/COMPARE.md tells the method and where it comes from.

mod blocks;
mod claims;
mod comparison;
mod difference;
mod equality;
mod estimate;
mod figures;
mod gates;
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
pub use samples::{PhaseSamples, SampleSlot, Samples};
pub use source::{CompareError, Source, pairs, result_folders, sources, sources_of, store_key};
pub(crate) use student::quantile as student_quantile;
pub(crate) use text::document;
pub use text::{Report, junit, markdown, terminal};

use crate::result::CostResult;

/// The second side against the first, and how the suite's claims about two such deployments stand.
/// `stated` is what the servers of each side cost; without it what their results say.
///
/// # Errors
/// [`CompareError`] if they are unequal and that is not allowed, or have no phase in common.
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

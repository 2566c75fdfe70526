//! Evidence in a store's run: one pure function from its result to the evidence for and against each claim. Figures are
//! brought together here and judged nowhere but in [`Evidence::status`].

mod history;
mod known;
mod nodes;
mod outcome;
mod reads;
mod searches;
#[cfg(test)]
pub(crate) mod tests;
mod text;
mod whereabouts;
mod writes;

use kvdyno_core::evidence::{Claimed, Evidence, EvidenceStatus};

use crate::result::{CapacityResult, FaultResult, Level, PhaseResult, Reason, StoreRun};
use history::FaultHistory;

pub use outcome::{StatusOutcome, level, outcome};

pub(crate) use known::durability_text;
pub(crate) use text::{cut_figures, cut_text, reason_text};
pub(crate) use whereabouts::lie_elsewhere;

/// Gathers the evidence of a run for every claim that can be made about it: of its phases in their order, then of the whole.
#[must_use]
pub fn of(run: &StoreRun) -> Vec<Evidence> {
    let history = FaultHistory::of(run);
    let phases = run.phases.iter().enumerate();
    let mut all: Vec<Evidence> = phases
        .flat_map(|(at, phase)| {
            let read = reads::right(&history, at, phase);
            let histories = reads::linearizable(&history, phase);
            read.into_iter().chain(histories).chain(nodes::no_downtime(phase))
        })
        .collect();
    all.push(writes::nothing_lost(&history));
    all.extend(writes::survives_process_kill(&history));
    all.extend(writes::survives_power_loss(&history));
    all.extend(nodes::came_back(&history));
    for found in &run.capacity {
        all.extend(of_search(run, found));
    }
    all
}

/// Gathers the evidence of a search for the highest rate: whether the conditions held, and whose limit it found.
pub(crate) fn of_search(run: &StoreRun, found: &CapacityResult) -> [Evidence; 2] {
    [searches::met_objective(run, found), searches::own_limit(run, found)]
}

/// Gathers the evidence of a run, each piece with its outcome for a check that must pass: exit codes and test cases are
/// made of these.
#[must_use]
pub fn outcomes(run: &StoreRun) -> Vec<(Evidence, StatusOutcome)> {
    let judged = |one: Evidence| {
        let outcome = outcome(one.status(), one.claimed.is_asked());
        (one, outcome)
    };
    of(run).into_iter().map(judged).collect()
}

/// Returns the reason for which the measurement of a phase, or of the whole run, is invalid.
pub(crate) fn invalid<'a>(run: &'a StoreRun, phase: &str) -> Option<&'a Reason> {
    let mut reasons = run.verdict.iter().flat_map(|verdict| &verdict.reasons);
    let about = |name: &Option<String>| name.as_ref().is_none_or(|name| name == phase);
    reasons.find(|reason| reason.level == Level::Invalid && about(&reason.phase))
}

/// Returns the first action that was planned in a phase and not done, if any; one that a later fault had made meaningless
/// does not count.
pub(crate) fn undone(phase: &PhaseResult) -> Option<&FaultResult> {
    phase
        .faults
        .iter()
        .find(|fault| fault.error.is_some() && !history::is_meaningless(phase, fault))
}

/// Returns the combined status of the reads of all phases: the worst of them; phases without reads are passed over.
/// `None` where verification was off.
pub(crate) fn reads_status(run: &StoreRun) -> Option<EvidenceStatus> {
    let reads = of(run).into_iter().filter(|one| one.claimed == Claimed::ReadsRight);
    reads.map(|one| one.status()).max_by_key(|status| match status {
        EvidenceStatus::NothingToShow | EvidenceStatus::Observed => 0,
        EvidenceStatus::Confirmed => 1,
        EvidenceStatus::Inconclusive(_) => 2,
        EvidenceStatus::Refuted => 3,
    })
}

/// Returns the evidence of a run for one claim about the whole of it; `None` where the run neither promises nor tries
/// anything of the kind.
#[must_use]
pub fn of_run(run: &StoreRun, claimed: Claimed) -> Option<Evidence> {
    of(run).into_iter().find(|evidence| evidence.claimed == claimed && evidence.phase.is_none())
}

/// Returns the evidence of a run for one claim about one of its phases.
#[must_use]
pub fn of_phase(run: &StoreRun, claimed: Claimed, phase: &str) -> Option<Evidence> {
    let about = |evidence: &Evidence| evidence.phase.as_deref() == Some(phase);
    of(run).into_iter().find(|evidence| evidence.claimed == claimed && about(evidence))
}

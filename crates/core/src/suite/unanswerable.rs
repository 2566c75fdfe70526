//! Conditions that the plan can never answer, whatever the store does: about an operation that no phase has, or about
//! a fault where none is. They are reported before anything is measured.

use crate::verdict::{Claim, Condition, ConditionFigure, Operations};
use crate::workload::PhasePlan;

/// Returns the reason why none of the phases that `condition` is about can ever answer it; `None` if one can.
pub(super) fn why(condition: &Condition, phases: &[PhasePlan]) -> Option<String> {
    let about = |phase: &&PhasePlan| match &condition.subject.phase {
        Some(name) => phase.name.split('@').next() == Some(name) || phase.name == *name,
        None => !phase.warmup && !phase.load,
    };
    let mut last = None;
    for phase in phases.iter().filter(about) {
        last = Some(why_in(condition, phase)?);
    }
    last
}

/// Returns the reason why `phase` can never answer `condition`; `None` if it can.
pub(super) fn why_in(condition: &Condition, phase: &PhasePlan) -> Option<String> {
    let subject = &condition.subject;
    let of = subject.operations;
    let has = phase.groups.iter().any(|group| group.mix.has(|kind| of.include(kind)));
    let name = &phase.name;
    if of != Operations::All && !has {
        return Some(format!("phase {name} has no {}", of.name()));
    }
    match subject.figure {
        ConditionFigure::FirstError
        | ConditionFigure::LastError
        | ConditionFigure::Recovery(_)
        | ConditionFigure::Calm
            if phase.faults.is_empty() =>
        {
            Some(format!("phase {name} has no fault"))
        }
        ConditionFigure::Violations if !phase.groups.iter().any(|group| group.linearizability) => {
            Some(format!("phase {name} asks for no linearizability"))
        }
        ConditionFigure::Cost => {
            Some("only `kvdyno compare --servers KIND=N` knows what it costs".to_owned())
        }
        _ => None,
    }
}

/// Describes the first claim on one run that can never be judged, in a sentence; `None` if there is none.
pub(super) fn claim(claims: &[Claim], phases: &[PhasePlan]) -> Option<String> {
    let own = claims.iter().filter(|claim| claim.between.is_none());
    own.flat_map(|claim| claim.conditions.iter().map(move |condition| (claim, condition))).find_map(
        |(claim, condition)| {
            let why = why(condition, phases)?;
            Some(format!("the claim \"{}\" cannot be judged: {condition}: {why}", claim.says))
        },
    )
}

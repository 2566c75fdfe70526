//! Judges claims by a run's result and nothing else, so that anybody who has the result can judge them again. A figure
//! that cannot be told leaves a claim open; it confirms nothing.

#[cfg(test)]
mod tests;

use kvdyno_core::evidence::{Evidence, EvidenceStatus, OpenReason};
use kvdyno_core::measure::StopReason;
use kvdyno_core::suite::Plan;
use kvdyno_core::verdict::{Claim, ClaimStatus, Condition, ConditionFigure, Dimension, Measured};

use kvdyno_core::workload::PhasePlan;
use kvdyno_core::workload::fault::{BIT_ROT, DISK_LIES, FaultKind, POWER, ProcessOutcome};

use crate::evidence;
use crate::figures::{self, Operated};
use crate::result::{
    ClaimResult, ConditionResult, FaultResult, PhaseResult, SeriesResult, StoreRun,
};
use kvdyno_core::ground::numbers::{duration_text, grouped, significant};

/// Judges each claim of `plan` that is about the run's store alone.
#[must_use]
pub fn judge(plan: &Plan, run: &StoreRun) -> Vec<ClaimResult> {
    let about = |claim: &&Claim| claim.between.is_none() && is_about(claim, run);
    let judge = Judge { plan, run };
    plan.claims.iter().filter(about).map(|claim| judge.claim(claim)).collect()
}

/// Judges the conditions of claims about a phase that still goes on, by its figures so far; each comes with the sentence
/// of its claim. `load` returns the series of the phase's operations and its length so far, ns; it is called only if a
/// claim is about the phase.
pub(crate) fn so_far(
    plan: &Plan,
    run: &StoreRun,
    phase: &PhasePlan,
    load: impl FnOnce() -> (Vec<SeriesResult>, u64),
) -> Vec<(String, ConditionResult)> {
    let about = |claim: &&Claim| claim.between.is_none() && is_about(claim, run);
    let prepares = phase.load || phase.warmup;
    let concerns = |condition: &Condition| match &condition.subject.phase {
        Some(name) => *name == phase.name,
        None => !prepares,
    };
    let claims = plan.claims.iter().filter(about);
    let all = claims.flat_map(|claim| claim.conditions.iter().map(|one| (&claim.says, one)));
    let concerned: Vec<_> = all.filter(|(_, condition)| concerns(condition)).collect();
    if concerned.is_empty() {
        return Vec::new();
    }
    let (series, wall_ns) = load();
    let load = Operated { series: &series, wall_ns, unstarted: None };
    let stand = |(says, condition): (&String, &Condition)| {
        let measured = figures::of_operations(load, &condition.subject);
        let phase = Some(phase.name.clone());
        (
            says.clone(),
            ConditionResult { phase, ..judge_condition(condition, None, measured, (1, &[])) },
        )
    };
    concerned.into_iter().map(stand).collect()
}

/// Returns true if a claim is about the run's store.
pub(crate) fn is_about(claim: &Claim, run: &StoreRun) -> bool {
    let scheme = run.store.url.split(':').next().unwrap_or_default();
    claim.store.as_ref().is_none_or(|store| *store == run.store.name || store == scheme)
}

struct Judge<'a> {
    plan: &'a Plan,
    run: &'a StoreRun,
}

impl<'a> Judge<'a> {
    fn claim(&self, claim: &Claim) -> ClaimResult {
        let mut conditions: Vec<ConditionResult> = Vec::new();
        let mut standings: Vec<ClaimStatus> = Vec::new();
        for condition in &claim.conditions {
            let judged = self.condition(condition);
            standings.push(Self::standing(condition, &judged));
            conditions.extend(judged);
        }
        let phases = claim.conditions.iter().flat_map(|condition| self.reached(condition));
        let phases: Vec<&PhaseResult> = phases.collect();
        ClaimResult {
            says: claim.says.clone(),
            standing: ClaimStatus::of_all(standings),
            conditions,
            reach: reach(&phases, self.run),
        }
    }

    /// Combines the results of a condition in all phases that it is about. A phase that the condition does not name, and
    /// in which nothing of the kind was done, does not count against the others.
    fn standing(condition: &Condition, all: &[ConditionResult]) -> ClaimStatus {
        let is_shown = all.iter().any(|one| one.standing == ClaimStatus::Confirmed);
        let is_empty = |one: &&ConditionResult| one.standing == ClaimStatus::NothingToShow;
        let is_implied = is_shown && condition.subject.phase.is_none();
        let asked = all.iter().filter(|one| !(is_implied && is_empty(one)));
        ClaimStatus::of_all(asked.map(|one| one.standing))
    }

    /// Returns the phases whose faults a condition reaches: of one about acknowledged writes, all earlier phases, too.
    fn reached(&self, condition: &Condition) -> Vec<&'a PhaseResult> {
        let about = self.phases(condition);
        let last = about.last().filter(|_| is_of_writes(&condition.subject.figure));
        let last = last.and_then(|last| self.run.phases.iter().position(|p| p.index == last.index));
        last.map_or(about, |last| self.run.phases[..=last].iter().collect())
    }

    /// Judges the condition in each phase that it is about.
    fn condition(&self, condition: &Condition) -> Vec<ConditionResult> {
        let phases = self.phases(condition);
        if phases.is_empty() {
            let why = match &condition.subject.phase {
                Some(name) => match self.run.phases.iter().find(|phase| is_named(phase, name)) {
                    Some(phase) if !writes(phase) => {
                        return vec![nothing_written(condition, phase)];
                    }
                    Some(_) => format!("phase {name} was not read back"),
                    None => format!("phase {name} did not come to its end"),
                },
                None if is_of_writes(&condition.subject.figure) => {
                    "no phase was read back".to_owned()
                }
                None => "no measured phase came to its end".to_owned(),
            };
            return vec![judge_condition(condition, None, Err(why), (1, &[]))];
        }
        let of = |phase: &PhaseResult| {
            let may_forget = self.run.store.capabilities.may_forget;
            let measured = figures::measured(phase, &condition.subject, may_forget);
            let stake = figures::stake(phase, &condition.subject);
            judge_condition(
                condition,
                Some(phase),
                measured,
                (stake, &self.doubts(condition, phase)),
            )
        };
        phases.into_iter().map(of).collect()
    }

    /// Returns the phases that a condition is about.
    fn phases(&self, condition: &Condition) -> Vec<&'a PhaseResult> {
        let phases = self.run.phases.iter();
        let of_writes = is_of_writes(&condition.subject.figure);
        match &condition.subject.phase {
            // A phase's writes are accounted for when it is read back, or a later phase is.
            Some(name) if of_writes => {
                let from = self.run.phases.iter().position(|phase| is_named(phase, name));
                let later = from.map(|from| &self.run.phases[from..]).unwrap_or_default();
                later.iter().find(|phase| phase.writes.is_some()).into_iter().collect()
            }
            Some(name) => phases.filter(|phase| is_named(phase, name)).collect(),
            None if of_writes => phases.filter(|phase| phase.writes.is_some()).collect(),
            None => phases.filter(|phase| !phase.prepares()).collect(),
        }
    }

    /// Lists the doubts about the figure of a phase.
    fn doubts(&self, condition: &Condition, phase: &PhaseResult) -> Vec<Doubt> {
        let mut doubts = Vec::new();
        let mut doubt = |reason, why: Result<(), String>| {
            doubts.extend(why.err().map(|why| Doubt { reason, why }));
        };
        doubt(OpenReason::FaultNotDone, self.fault_was_done(phase));
        if is_of_speed(&condition.subject.figure) {
            doubt(OpenReason::MachineFailed, self.is_believed(phase));
        }
        if is_of_what_is_there(&condition.subject.figure) {
            doubt(OpenReason::LiesElsewhere, self.was_at_stake(phase));
        }
        let whole = matches!(phase.stopped, StopReason::Requests | StopReason::Duration);
        let whole = if whole { Ok(()) } else { Err("the phase was cut short".to_owned()) };
        doubt(OpenReason::CutShort, whole);
        doubts
    }

    /// Returns an error if a planned fault was not done: a claim about a fault is empty without it.
    fn fault_was_done(&self, phase: &PhaseResult) -> Result<(), String> {
        let planned = self.plan.phases.iter().find(|planned| planned.name == phase.name);
        if planned.is_none_or(|planned| planned.faults.is_empty()) {
            return Ok(());
        }
        match evidence::undone(phase) {
            Some(fault) => {
                let error = fault.error.as_deref().unwrap_or_default();
                Err(format!("{} was not done: {error}", fault.what))
            }
            None if phase.faults.is_empty() => Err("no fault was done".to_owned()),
            None => Ok(()),
        }
    }

    /// Returns an error if power was cut and the records lie elsewhere than on the disks that lost it: such a cut shows
    /// nothing about them.
    fn was_at_stake(&self, phase: &PhaseResult) -> Result<(), String> {
        let is_cut = |fault: &FaultResult| fault.was(&POWER) && fault.error.is_none();
        match phase.faults.iter().any(is_cut) && evidence::lie_elsewhere(self.run) {
            true => Err(evidence::reason_text(OpenReason::LiesElsewhere).to_owned()),
            false => Ok(()),
        }
    }

    fn is_believed(&self, phase: &PhaseResult) -> Result<(), String> {
        match evidence::invalid(self.run, &phase.name) {
            Some(reason) => Err(format!("the measurement is invalid: {}", reason.name)),
            None => Ok(()),
        }
    }
}

/// Returns true for the phase of this name, and for each of a sweep.
fn is_named(phase: &PhaseResult, name: &str) -> bool {
    phase.name == name || phase.name.split('@').next() == Some(name)
}

fn writes(phase: &PhaseResult) -> bool {
    phase.series.iter().any(|series| !series.kind.read_only())
}

/// Judges a condition about the writes of a phase that has none.
fn nothing_written(condition: &Condition, phase: &PhaseResult) -> ConditionResult {
    let status = Evidence::of_condition(Some(&phase.name), Some(true), 0, &[]).status();
    ConditionResult {
        condition: condition.to_string(),
        phase: Some(phase.name.clone()),
        standing: ClaimStatus::from(status),
        figure: None,
        stake: 0,
        measured: String::new(),
        why: "nothing was written".to_owned(),
    }
}

/// A reason to doubt the figure of a phase.
struct Doubt {
    reason: OpenReason,
    /// Reason in words.
    why: String,
}

/// Judges a condition as evidence, and puts it into words. `stake` is the amount of its subject that was at stake.
fn judge_condition(
    condition: &Condition,
    phase: Option<&PhaseResult>,
    measured: Result<Measured, String>,
    (stake, doubts): (u64, &[Doubt]),
) -> ConditionResult {
    let name = phase.map(|phase| phase.name.as_str());
    let holds = measured.as_ref().ok().and_then(|measured| condition.holds(*measured));
    let reasons: Vec<OpenReason> = doubts.iter().map(|doubt| doubt.reason).collect();
    let status = Evidence::of_condition(name, holds, stake, &reasons).status();
    let doubt = doubts.iter().find(|doubt| Some(doubt.reason) == status.reason());
    let why = match (status, doubt, &measured) {
        (EvidenceStatus::NothingToShow, ..) => "nothing was at stake".to_owned(),
        (EvidenceStatus::Inconclusive(_), Some(doubt), _) => doubt.why.clone(),
        (EvidenceStatus::Inconclusive(_), None, Err(why)) => why.clone(),
        (EvidenceStatus::Inconclusive(_), None, Ok(_)) => "there may be more".to_owned(),
        _ => String::new(),
    };
    let figure = measured.as_ref().ok().map(|measured| match *measured {
        Measured::Exactly(value) | Measured::AtLeast(value) => value,
    });
    ConditionResult {
        condition: condition.to_string(),
        phase: phase.map(|phase| phase.name.clone()),
        standing: ClaimStatus::from(status),
        figure: figure.filter(|figure| figure.is_finite()),
        stake,
        measured: measured.map_or(String::new(), |measured| {
            measured_text(measured, condition.subject.figure.dimension())
        }),
        why,
    }
}

fn measured_text(measured: Measured, dimension: Dimension) -> String {
    let (value, prefix) = match measured {
        Measured::Exactly(value) => (value, ""),
        Measured::AtLeast(value) => (value, "at least "),
    };
    let text = match dimension {
        _ if value.is_infinite() => return "never: too many did not succeed".to_owned(),
        Dimension::Time => duration_text(value),
        Dimension::Rate => format!("{}/s", significant(value)),
        Dimension::Share => format!("{} %", significant(value * 100.0)),
        Dimension::Count => grouped(value),
        Dimension::Any => significant(value),
    };
    format!("{prefix}{text}")
}

/// Returns true for figures that are read off the account of writes, which covers all earlier phases.
fn is_of_writes(figure: &ConditionFigure) -> bool {
    matches!(
        figure,
        ConditionFigure::Acked
            | ConditionFigure::AckedLost
            | ConditionFigure::Recovered
            | ConditionFigure::CopiesDiffer
    )
}

/// Returns true for figures that depend on what the store still holds after a fault.
fn is_of_what_is_there(figure: &ConditionFigure) -> bool {
    is_of_writes(figure)
        || matches!(
            figure,
            ConditionFigure::Anomalies
                | ConditionFigure::Stale
                | ConditionFigure::Corrupt
                | ConditionFigure::Phantom
                | ConditionFigure::Resurrected
                | ConditionFigure::Misses
        )
}

/// Returns true for figures that an invalid measurement cannot decide.
fn is_of_speed(figure: &ConditionFigure) -> bool {
    matches!(
        figure,
        ConditionFigure::Rate
            | ConditionFigure::Percentile(_)
            | ConditionFigure::Max
            | ConditionFigure::Mean
            | ConditionFigure::Recovery(_)
            | ConditionFigure::Calm
    )
}

/// Describes the faults that were injected in the phases, and what they prove nothing about.
fn reach(phases: &[&PhaseResult], run: &StoreRun) -> String {
    let (mut done, mut ended) = (Vec::<String>::new(), false);
    for fault in phases.iter().flat_map(|phase| &phase.faults) {
        let known = done.contains(&fault.what) || fault.repairs();
        if fault.error.is_none() && !known {
            done.push(fault.what.clone());
            let outcome = fault.kind().map(|kind| kind.outcome);
            ended |= matches!(outcome, Some(ProcessOutcome::Ended | ProcessOutcome::Renewed));
        }
    }
    if done.is_empty() {
        // If a run was interrupted, the claim may ask about phases that never began.
        let mut all = run.phases.iter().flat_map(|phase| &phase.faults);
        let elsewhere = all.any(|fault| fault.error.is_none() && !fault.repairs());
        let place = if elsewhere { " in the phases that it asks about" } else { "" };
        return format!("no fault was injected{place}: it says nothing of failures");
    }
    let did = |kind: &FaultKind| {
        let mut faults = phases.iter().flat_map(|phase| &phase.faults);
        faults.any(|fault| fault.error.is_none() && fault.was(kind))
    };
    let beyond = match ended {
        _ if did(&DISK_LIES) || did(&BIT_ROT) => {
            "the disk did not keep what was synced, and what that took is no store's doing"
        }
        _ if did(&POWER) => {
            "a cut of power with a disk that honours flushes, and keeps whatever it was handed before, but for \
             what a cut says that it took"
        }
        true => "a process that ends proves nothing about a loss of power",
        false => "it says nothing of other failures",
    };
    format!("as far as {}: {beyond}{}", done.join(", "), second_failures(phases))
}

/// Describes faults that came before copies were whole again after an earlier repair: for records with copies on both
/// nodes, more than one node was gone.
fn second_failures(phases: &[&PhaseResult]) -> String {
    let faults = phases.iter().flat_map(|phase| &phase.faults);
    let second = faults.filter(|fault| fault.error.is_none() && fault.not_whole.is_some());
    let second: Vec<String> = second
        .map(|fault| {
            format!("{} of {} at {:.1} s", fault.what, fault.node, fault.began_ns as f64 / 1e9)
        })
        .collect();
    match second.is_empty() {
        true => String::new(),
        false => format!("; a second failure before copies were whole: {}", second.join(", ")),
    }
}

//! Judges stores by requirements: each cell met, not met or not shown, by the run that shows it, and the table of all cells.

mod table;

use kvdyno_core::capacity::Seen;
use kvdyno_core::evidence::{Claimed, Evidence, EvidenceStatus, OpenReason};
use kvdyno_core::store::Durability;
use kvdyno_core::suite::Requirements;
use kvdyno_core::suite::requirements::{LatencyRequirement, can, phases};
use kvdyno_core::workload::Kind;
use kvdyno_core::workload::fault::{ADD, KILL};
use serde::Serialize;

use crate::evidence::{self, cut_text, of_phase, of_run, reason_text};
use crate::objective::met;
use crate::result::{FaultResult, Level, PhaseResult, Status, StoreRun};
use crate::wording::{judged_text, kinds_text};
use kvdyno_core::ground::numbers::grouped;

pub use table::{html, markdown, terminal};

/// Status of a requirement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum RequirementStatus {
    /// A run shows that the requirement is met.
    Met,
    /// A run shows that it is not met, or the store itself says so.
    NotMet,
    /// No run shows whether it is met.
    NotShown,
}

impl RequirementStatus {
    /// Returns the status of a requirement by the evidence for the required claim.
    #[must_use]
    pub fn of(status: EvidenceStatus) -> RequirementStatus {
        match status {
            EvidenceStatus::Confirmed => RequirementStatus::Met,
            EvidenceStatus::Refuted => RequirementStatus::NotMet,
            EvidenceStatus::Inconclusive(_)
            | EvidenceStatus::NothingToShow
            | EvidenceStatus::Observed => RequirementStatus::NotShown,
        }
    }

    /// Names the status in words.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            RequirementStatus::Met => "met",
            RequirementStatus::NotMet => "not met",
            RequirementStatus::NotShown => "not shown",
        }
    }

    /// Returns the level that colours the status.
    #[must_use]
    pub fn level(self) -> Level {
        match self {
            RequirementStatus::Met => Level::Valid,
            RequirementStatus::NotShown => Level::Suspect,
            RequirementStatus::NotMet => Level::Invalid,
        }
    }
}

/// One requirement against one store.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Cell {
    /// Requirement in words.
    pub requirement: String,
    /// Status of the requirement.
    pub standing: RequirementStatus,
    /// Evidence in words, or the reason why there is none.
    pub why: String,
    /// Phase that shows it; empty if none does.
    pub phase: String,
}

/// A store with its cells, in the order of the requirements.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Column {
    /// Name of the store.
    pub store: String,
    /// Folder of its run; empty if there was none.
    pub result: String,
    /// One cell for each requirement.
    pub cells: Vec<Cell>,
}

impl Column {
    /// Returns the worst status of its cells: not met, then not shown.
    #[must_use]
    pub fn standing(&self) -> RequirementStatus {
        let any = |standing| self.cells.iter().any(|cell| cell.standing == standing);
        match () {
            () if any(RequirementStatus::NotMet) => RequirementStatus::NotMet,
            () if any(RequirementStatus::NotShown) => RequirementStatus::NotShown,
            () => RequirementStatus::Met,
        }
    }
}

/// Describes the requirements, in the order of the rows.
#[must_use]
pub fn rows(required: &Requirements) -> Vec<String> {
    let mut rows: Vec<String> =
        required.operations.iter().map(|kind| format!("operation {}", kind.name())).collect();
    let mut row = |wanted: Option<String>| rows.extend(wanted);
    row(required.consistency.map(|level| format!("consistency: {}", level.describe())));
    row(required.durability.map(|level| format!("durability: {}", level.describe())));
    row(required.ttl.map(|ttl| format!("time to live of {ttl:?}")));
    row(required.latency.as_ref().map(latency_text));
    row(required.survives_killed_node.then(|| "survives a killed node".to_owned()));
    row(required.nodes_added_live.then(|| "nodes added live".to_owned()));
    row(required.budget.as_ref().map(|budget| format!("at most {} a month", budget.month)));
    rows
}

fn latency_text(latency: &LatencyRequirement) -> String {
    let conditions: Vec<String> = latency.conditions.iter().map(ToString::to_string).collect();
    let rate = kvdyno_core::ground::units::format_rate(latency.rate);
    format!("{} at {rate}", conditions.join(", "))
}

/// Returns the cells of a store that could not be run at all: nothing is shown.
#[must_use]
pub fn unrun(required: &Requirements, why: &str) -> Vec<Cell> {
    let cell = |requirement| Cell {
        requirement,
        standing: RequirementStatus::NotShown,
        why: why.to_owned(),
        phase: String::new(),
    };
    rows(required).into_iter().map(cell).collect()
}

/// Decision on a cell: its status, the reason, and the phase.
type Decided = (RequirementStatus, String, &'static str);

/// Judges a store's run. `month` is the cost of its servers a month, where that is stated.
#[must_use]
pub fn judge(required: &Requirements, run: &StoreRun, month: Option<f64>) -> Vec<Cell> {
    let mut decided: Vec<(RequirementStatus, String, String)> = Vec::new();
    for kind in &required.operations {
        let name = format!("{}{}", phases::OPERATION, kind.name());
        let (standing, why) = operation(run, *kind, phase(run, &name));
        decided.push((standing, why, name));
    }
    let mut add = |wanted: bool, judged: &dyn Fn() -> Decided| {
        if wanted {
            let (standing, why, phase) = judged();
            decided.push((standing, why, phase.to_owned()));
        }
    };
    add(required.consistency.is_some(), &|| consistency(required, run));
    add(required.durability.is_some(), &|| durability(required, run));
    add(required.ttl.is_some(), &|| time_to_live(run));
    if let Some(latency) = &required.latency {
        add(true, &|| at_rate(latency, run));
    }
    add(required.survives_killed_node, &|| killed(run));
    add(required.nodes_added_live, &|| added(run));
    add(required.budget.is_some(), &|| budget(required, month));
    let rows = rows(required).into_iter().zip(decided);
    rows.map(|(requirement, (standing, why, phase))| Cell { requirement, standing, why, phase })
        .collect()
}

fn phase<'a>(run: &'a StoreRun, name: &str) -> Option<&'a PhaseResult> {
    run.phases.iter().find(|phase| phase.name == name)
}

fn not_run(run: &StoreRun, phase: &'static str) -> Decided {
    let why = match &run.status {
        Status::Failed { message } => format!("the run ended before it: {message}"),
        _ => "its phase did not run".to_owned(),
    };
    (RequirementStatus::NotShown, why, phase)
}

/// Counts wrong reads of a phase, except those that the store's consistency allows. A requirement asks for a promise,
/// whether the store gives it or not.
fn wrong(run: &StoreRun, phase: &PhaseResult) -> u64 {
    let read = of_phase(run, Claimed::ReadsRight, &phase.name);
    read.map_or(0, |read| read.examined() - read.kept)
}

/// Returns the status that a phase gives a requirement: whether it `holds`, if that can be told, how many operations were
/// asked, and the doubts that keep it from being shown.
fn shown(
    phase: &PhaseResult,
    holds: Option<bool>,
    asked: u64,
    doubts: &[OpenReason],
) -> RequirementStatus {
    let evidence = Evidence::of_condition(Some(&phase.name), holds, asked, doubts);
    RequirementStatus::of(evidence.status())
}

fn operation(
    run: &StoreRun,
    kind: Kind,
    phase: Option<&PhaseResult>,
) -> (RequirementStatus, String) {
    if !can(&run.store.capabilities, kind) {
        return (RequirementStatus::NotMet, "the store has none such".to_owned());
    }
    let Some(phase) = phase else {
        let (standing, why, _) = not_run(run, "");
        return (standing, why);
    };
    let (ok, errors, wrong) = (phase.ok(), phase.unsuccessful(), wrong(run, phase));
    let told = format!("{} done, {errors} errors, {wrong} wrong reads", grouped(ok as f64));
    (shown(phase, Some(errors == 0 && wrong == 0), ok, &[]), told)
}

fn consistency(required: &Requirements, run: &StoreRun) -> Decided {
    let promise = run.store.consistency;
    let told = promise.level.describe();
    if required.consistency.is_some_and(|level| promise.level < level) {
        return (RequirementStatus::NotMet, format!("the store promises {told}"), "");
    }
    let tally = run.tally().unwrap_or_default();
    let reads = evidence::of(run).into_iter().filter(|one| one.claimed == Claimed::ReadsRight);
    let stand: Vec<EvidenceStatus> = reads.map(|one| one.status()).collect();
    if stand.contains(&EvidenceStatus::Refuted) {
        return (
            RequirementStatus::NotMet,
            format!("what was read broke it: {}", kinds_text(&tally)),
            "",
        );
    }
    let judged = judged_text(&tally);
    let open = stand.iter().find_map(|status| status.reason());
    let is_shown = promise.checked && stand.contains(&EvidenceStatus::Confirmed);
    match (is_shown, open) {
        (_, Some(reason)) => {
            (RequirementStatus::NotShown, format!("{judged}: {}", reason_text(reason)), "")
        }
        (true, None) => {
            (RequirementStatus::Met, format!("{told}, read back; {judged}, none wrong"), "")
        }
        (false, None) => {
            let why = format!("{told} is declared; {judged}, none wrong");
            (RequirementStatus::NotShown, why, "")
        }
    }
}

fn durability(required: &Requirements, run: &StoreRun) -> Decided {
    let promise = run.store.durability;
    let told = promise.level.describe();
    match required.durability {
        Some(level) if promise.level < level => {
            (RequirementStatus::NotMet, format!("the store promises: {told}"), "")
        }
        Some(Durability::PowerLoss) => {
            let cuts = of_run(run, Claimed::SurvivesPowerLoss);
            let Some(cuts) = cuts.filter(|cuts| cuts.exposure.moments > 0) else {
                let why = format!("{told} ({}); no power was taken away", promise.origin_text());
                return (RequirementStatus::NotShown, why, "");
            };
            let standing = RequirementStatus::of(cuts.status());
            (standing, format!("{told}: {}", cut_text(&cuts)), "")
        }
        Some(Durability::ProcessKill) => killed(run),
        Some(Durability::None) | None => (RequirementStatus::Met, told.to_owned(), ""),
    }
}

fn time_to_live(run: &StoreRun) -> Decided {
    if !run.store.capabilities.ttl {
        return (RequirementStatus::NotMet, "the store has none".to_owned(), "");
    }
    let Some(phase) = phase(run, phases::TTL) else { return not_run(run, phases::TTL) };
    let tally = phase.tally.clone().unwrap_or_default();
    let wrong = wrong(run, phase);
    let there = phase.ok().saturating_sub(phase.series.iter().map(|series| series.missing).sum());
    let told = format!(
        "{} reads found the record, {} found it gone, {} were wrong",
        grouped(there as f64),
        grouped(tally.legal_misses as f64),
        grouped(wrong as f64)
    );
    // Only records that were there and are gone show that they expired.
    let asked = if there > 0 { tally.legal_misses } else { 0 };
    (shown(phase, Some(wrong == 0), asked, &[]), told, phases::TTL)
}

fn at_rate(latency: &LatencyRequirement, run: &StoreRun) -> Decided {
    let Some(phase) = phase(run, phases::LATENCY) else { return not_run(run, phases::LATENCY) };
    let found = met(&latency.conditions, phase, run.store.capabilities.may_forget);
    // A rate that the store did not carry makes a measurement invalid, and is what was asked.
    let invalid = evidence::invalid(run, phases::LATENCY);
    let invalid = invalid.filter(|_| found.seen != Seen::Overloaded);
    let doubts: &[OpenReason] = if invalid.is_some() { &[OpenReason::MachineFailed] } else { &[] };
    let standing = RequirementStatus::of(found.evidence(phase, doubts).status());
    let why = match (invalid, found.why) {
        (Some(reason), _) => format!("not to be believed: {}", reason.text),
        (None, why) if why.is_empty() => "the conditions held".to_owned(),
        (None, why) => why,
    };
    (standing, why, phases::LATENCY)
}

/// Judges whether a node was killed, everything acknowledged is there, and the load went on.
fn killed(run: &StoreRun) -> Decided {
    let Some(phase) = phase(run, phases::KILLED) else {
        let nodes = run.testbed.is_some();
        let why = if nodes { not_run(run, "").1 } else { "the store is no testbed".to_owned() };
        return (RequirementStatus::NotShown, why, phases::KILLED);
    };
    let Some(kill) = phase.faults.iter().find(|fault| fault.was(&KILL)) else {
        return (RequirementStatus::NotShown, "no node was killed".to_owned(), phases::KILLED);
    };
    let back = format!("{}:read-back", phases::KILLED);
    let those = run.phases.iter().filter(|p| p.name == phases::KILLED || p.name == back);
    let lost: u64 = those.map(|phase| wrong(run, phase)).sum();
    let read_back = of_phase(run, Claimed::ReadsRight, &back)
        .is_some_and(|read| read.status() == EvidenceStatus::Confirmed);
    let errors = phase.unsuccessful();
    let told = format!(
        "{} killed, {} writes acknowledged, {} failed or may have, {lost} lost or wrong",
        kill.node,
        grouped(phase.ok() as f64),
        grouped(errors as f64),
    );
    let last = phase.errors.iter().map(|error| error.last_at_ns).max().unwrap_or(0);
    // With errors until the end, the store never came back.
    let went_on =
        run.status == Status::Complete && last < phase.wall_ns.saturating_sub(500_000_000);
    let doubts: &[OpenReason] = if read_back { &[] } else { &[OpenReason::NotReadBack] };
    (shown(phase, Some(lost == 0 && went_on), phase.ok(), doubts), told, phases::KILLED)
}

fn added(run: &StoreRun) -> Decided {
    let Some(phase) = phase(run, phases::ADDED) else {
        let why = match &run.testbed {
            None => "the store is no testbed".to_owned(),
            Some(_) => not_run(run, "").1,
        };
        return (RequirementStatus::NotShown, why, phases::ADDED);
    };
    match phase.faults.iter().find(|fault| fault.kind() == Some(&ADD)) {
        None => (RequirementStatus::NotShown, "no node was added".to_owned(), phases::ADDED),
        Some(FaultResult { error: Some(why), .. }) => {
            (shown(phase, None, 0, &[OpenReason::FaultNotDone]), why.clone(), phases::ADDED)
        }
        Some(_) => {
            let (errors, wrong) = (phase.unsuccessful(), wrong(run, phase));
            let why = match (errors, wrong) {
                (0, 0) => "added without an error".to_owned(),
                _ => format!("added with {errors} errors and {wrong} wrong reads"),
            };
            let holds = Some(errors == 0 && wrong == 0);
            (shown(phase, holds, phase.ok(), &[]), why, phases::ADDED)
        }
    }
}

fn budget(required: &Requirements, month: Option<f64>) -> Decided {
    let most = required.budget.as_ref().map_or(0.0, |budget| budget.month);
    let told = match month {
        None => "no servers are stated for this store".to_owned(),
        Some(month) => format!("{month:.2} a month"),
    };
    let evidence = Evidence::of_condition(None, month.map(|month| month <= most), 1, &[]);
    (RequirementStatus::of(evidence.status()), told, "")
}

#[cfg(test)]
mod tests;

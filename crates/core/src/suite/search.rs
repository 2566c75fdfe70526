//! Phases that are a search for the highest rate that meets the conditions of `slo`.

use serde::{Deserialize, Serialize};

use crate::verdict::Condition;
use crate::workload::{GroupPlan, Kind, PhasePlan};

use super::document::{Document, Mark};
use super::error::{Problem, SuiteError};
use super::reader::{Fields, Value};
use super::unanswerable;

/// Default of a search's step, as a share: from one rate that is tried to the next.
const STEP: f64 = 0.05;

/// A search for the highest rate at which conditions hold.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SearchPlan {
    /// Number of the phase that each probe repeats.
    pub phase: u16,
    /// Conditions, all of which must hold.
    pub conditions: Vec<Condition>,
    /// Step from one rate that is tried to the next, as a share.
    pub step: f64,
    /// The user named the number of clients.
    pub clients_named: bool,
}

impl SearchPlan {
    /// Writes the conditions as they can be read again.
    #[must_use]
    pub fn text(&self) -> String {
        self.conditions.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
    }
}

/// `slo` and `step` of a phase, which make it a search for the highest rate.
#[derive(Clone, Debug)]
pub(super) struct SearchSpec {
    pub(super) mark: Mark,
    pub(super) conditions: Vec<Condition>,
    pub(super) step: f64,
}

/// Reads `slo` and `step` of a phase; `None` if it is no search.
pub(super) fn search(phase: &Fields<'_>) -> Result<Option<SearchSpec>, SuiteError> {
    let step = phase.read("step", step)?;
    let Some(slo) = phase.get("slo") else {
        return match phase.get("step") {
            Some(step) => Err(step.error(
                Problem::Conflict("`step` does nothing without `slo`".to_owned()),
                "give the phase slo = \"p99 < 10ms\", or leave `step` out",
            )),
            None => Ok(None),
        };
    };
    let conditions = conditions(slo)?;
    Ok(Some(SearchSpec { mark: slo.mark(), conditions, step: step.unwrap_or(STEP) }))
}

/// Reads conditions on the figures of one phase: each has a value, not a change, and names no other phase.
pub(super) fn conditions(value: Value<'_>) -> Result<Vec<Condition>, SuiteError> {
    let list = Condition::parse_list(value.text()?)
        .map_err(|error| value.error(Problem::Conflict(error.problem), error.hint))?;
    for condition in &list {
        if condition.bound.is_change() || condition.subject.phase.is_some() {
            let message = format!("`{condition}` is no condition on one phase");
            return Err(value.error(Problem::Conflict(message), "for example p99(get) < 10ms"));
        }
    }
    Ok(list)
}

fn step(value: Value<'_>) -> Result<f64, SuiteError> {
    match value.share()? {
        step if (0.01..=0.5).contains(&step) => Ok(step),
        step => Err(value.out_of_range(step, "1% to 50%")),
    }
}

/// Returns true if the group has open arrivals whose rate changes over time.
fn rate_changes(group: &GroupPlan) -> bool {
    group.arrival.curve().is_some() && group.arrival.constant_rate().is_none()
}

impl SearchSpec {
    /// Makes the plan of the search that `phase` is.
    pub(super) fn plan(&self, phase: &PhasePlan, clients_named: bool) -> SearchPlan {
        let (conditions, step) = (self.conditions.clone(), self.step);
        SearchPlan { phase: phase.index, conditions, step, clients_named }
    }

    /// Refuses conditions that no probe could ever meet.
    fn check_conditions(&self, document: &Document, phase: &PhasePlan) -> Result<(), SuiteError> {
        let never = |condition| Some((condition, unanswerable::why_in(condition, phase)?));
        match self.conditions.iter().find_map(never) {
            Some((condition, why)) => {
                let message = format!("{condition} can never be met: {why}");
                let hint = "name an operation of its mix, such as p99(get) < 10ms";
                Err(document.error(self.mark, Problem::Conflict(message), hint))
            }
            None => Ok(()),
        }
    }

    /// Refuses a phase that cannot be repeated at different rates.
    pub(super) fn check(
        &self,
        document: &Document,
        phase: &PhasePlan,
        sweeps: bool,
    ) -> Result<(), SuiteError> {
        let changes = |kind: Kind| kind.inserts() || kind == Kind::Delete;
        let (wrong, hint) = match phase {
            _ if sweeps => ("a search has a sweep of its own", ""),
            _ if phase.groups.iter().any(|group| group.mix.has(changes)) => {
                ("a search neither inserts nor deletes: each probe must find the same records", "")
            }
            _ if phase.groups.iter().any(|group| group.requests.is_some()) => (
                "probes of a search stop by time, not by requests",
                "give the phase a duration (`--duration 2s` instead of `--requests`)",
            ),
            _ if phase.groups.iter().any(rate_changes) => (
                "a search chooses its rates itself, and a rate that changes over time is none of them",
                "write one rate, at which the search begins, such as 10k/s, or none",
            ),
            _ if phase.warmup || phase.load || !phase.faults.is_empty() => {
                ("a search is neither warm-up nor load and has no faults", "")
            }
            _ => return self.check_conditions(document, phase),
        };
        Err(document.error(self.mark, Problem::Conflict(wrong.to_owned()), hint))
    }
}

//! A fault of a phase: the harm, its targets, its time, and the time of its repair. A fault that makes no sense is
//! refused where it is read, from a suite or from the plan of a result.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::aim::{NodeSelector, Targets};
use super::kind::{FaultKind, Harm};
use super::values::{FaultValues, InvalidFault};

/// Condition that must hold before a fault is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FaultCondition {
    /// So many operations of the phase have succeeded.
    Acked(u64),
    /// The rate that the phase asks for was reached in one whole interval; where its clients ask for no rate, one
    /// whole interval is over.
    Rate,
}

/// A fault of a phase.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(into = "Written", try_from = "Written")]
pub struct FaultPlan {
    /// Harm that is done, with its targets.
    pub harm: Harm,
    /// Condition that must hold first; `None` if there is none.
    pub when: Option<FaultCondition>,
    /// Time at which it is due, from the phase's begin or from when the condition holds.
    pub at: Duration,
    /// Time after the fault at which it is repaired, at the latest when the phase is over; `None`: when the phase is
    /// over, if there is anything to repair.
    pub repair: Option<Duration>,
    /// Interval at which it is done again, until the phase is over; `None`: it is done once.
    pub every: Option<Duration>,
    /// Most by which it comes later each time, drawn by chance, so that it does not meet a rhythm of the servers
    /// always at the same place.
    pub spread: Option<Duration>,
}

impl FaultPlan {
    /// Returns its kind.
    #[must_use]
    pub fn kind(&self) -> &'static FaultKind {
        self.harm.kind()
    }

    /// Checks that its times go together, and returns it as it is.
    ///
    /// # Errors
    /// [`InvalidFault`] if there is nothing to repair, or it would come again before it was repaired.
    pub fn checked(self) -> Result<FaultPlan, InvalidFault> {
        let kind = self.kind();
        let lasts = kind.repair.is_some();
        if self.repair.is_some() && !lasts {
            let message = format!("the fault `{}` has no repair", kind.word);
            return Err(InvalidFault::new(message, "leave out `repair`"));
        }
        let again = self.every.filter(|_| lasts);
        if again.is_some_and(|every| self.repair.is_none_or(|repair| repair >= every)) {
            let message = format!("`{}` must be repaired before it can repeat", kind.word);
            return Err(InvalidFault::new(message, "give a `repair` shorter than `every`"));
        }
        Ok(self)
    }
}

/// A fault as it stands in plans of results.
#[derive(Clone, Serialize, Deserialize)]
struct Written {
    kind: String,
    aim: NodeSelector,
    count: Option<u32>,
    when: Option<FaultCondition>,
    at: Duration,
    repair: Option<Duration>,
    every: Option<Duration>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    spread: Option<Duration>,
    /// Values that were written with it, of whatever kind it is.
    network: FaultValues,
}

impl From<FaultPlan> for Written {
    fn from(plan: FaultPlan) -> Written {
        let FaultPlan { harm, when, at, repair, every, spread } = plan;
        let (kind, network) = (harm.kind().word.to_owned(), harm.values().written());
        let (aim, count) = match harm {
            Harm::ToNodes { aim, count, .. } => (aim, count),
            Harm::Split { .. } | Harm::Add => (NodeSelector::default(), None),
        };
        Written { kind, aim, count, when, at, repair, every, spread, network }
    }
}

impl TryFrom<Written> for FaultPlan {
    type Error = String;

    fn try_from(written: Written) -> Result<FaultPlan, String> {
        let Written { kind, aim, count, when, at, repair, every, spread, network } = written;
        let kind = FaultKind::of(&kind).ok_or_else(|| format!("`{kind}` is not a fault"))?;
        // An aim is always written.
        let targets =
            Targets { aim: Some(aim).filter(|aim| *aim != NodeSelector::default()), count };
        let harm = Harm::new(kind, &network.given(), targets);
        harm.and_then(|harm| FaultPlan { harm, when, at, repair, every, spread }.checked())
            .map_err(|invalid| invalid.message)
    }
}

//! A fault of a phase: what is done, to whom, when, and when it is put right again. What is no fault is refused
//! where it is read, from a suite or from the plan of a result.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::aim::{NodeSelector, Targets};
use super::kind::{FaultKind, Harm};
use super::values::{FaultValues, InvalidFault};

/// What must be so before a fault is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Condition {
    /// So many operations of the phase have succeeded.
    Acked(u64),
    /// The rate that the phase asks for was reached in one whole interval; for clients that ask for
    /// none, one whole interval is over.
    Rate,
}

/// A fault of a phase.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(into = "Written", try_from = "Written")]
pub struct FaultPlan {
    /// What is done, and to whom.
    pub harm: Harm,
    /// What must be so first.
    pub when: Option<Condition>,
    /// When, from the phase's begin, or from when the condition holds.
    pub at: Duration,
    /// What it did is put right so long after it was done; at the latest when the phase is over.
    pub repair: Option<Duration>,
    /// It is done again at this interval, until the phase is over.
    pub every: Option<Duration>,
    /// Each time it comes up to so much later, by chance: so that it meets no rhythm of the servers' always at
    /// the same place.
    pub spread: Option<Duration>,
}

impl FaultPlan {
    /// Its kind.
    #[must_use]
    pub fn kind(&self) -> &'static FaultKind {
        self.harm.kind()
    }

    /// As it is, if its times go together.
    ///
    /// # Errors
    /// [`InvalidFault`] if there is nothing to repair, or it would come again before it was repaired.
    pub fn checked(self) -> Result<FaultPlan, InvalidFault> {
        let kind = self.kind();
        let lasts = kind.repair.is_some();
        if self.repair.is_some() && !lasts {
            let message = format!("after `{}` there is nothing to repair", kind.word);
            return Err(InvalidFault::new(message, "leave out `repair`"));
        }
        let again = self.every.filter(|_| lasts);
        if again.is_some_and(|every| self.repair.is_none_or(|repair| repair >= every)) {
            let message = format!("`{}` cannot come again before it was repaired", kind.word);
            return Err(InvalidFault::new(message, "give a `repair` shorter than `every`"));
        }
        Ok(self)
    }
}

/// A fault as plans in results have it.
#[derive(Clone, Serialize, Deserialize)]
struct Written {
    kind: String,
    aim: NodeSelector,
    count: Option<u32>,
    when: Option<Condition>,
    at: Duration,
    repair: Option<Duration>,
    every: Option<Duration>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    spread: Option<Duration>,
    /// What was written with it, of whatever kind it is.
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
        let whom = Targets { aim: Some(aim).filter(|aim| *aim != NodeSelector::default()), count };
        let harm = Harm::new(kind, &network.given(), whom);
        harm.and_then(|harm| FaultPlan { harm, when, at, repair, every, spread }.checked())
            .map_err(|invalid| invalid.message)
    }
}

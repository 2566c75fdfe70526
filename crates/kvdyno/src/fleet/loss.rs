//! Choices of what becomes of a run that loses an agent, and of its records, as plain values: conductor, agents and
//! arguments know them.

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

/// Course of a run that loses an agent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OnAgentLost {
    /// It ends with the phase.
    #[default]
    End,
    /// The others carry on from the next phase on.
    GoOn,
}

/// Records that an agent may have to judge though another has written them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum TakesOver {
    /// None: a lost agent ends the run.
    Nothing,
    /// Those of agents that are lost.
    Lost,
    /// All, for they were dealt out anew.
    Everything,
}

/// Records that a lost agent left to the others.
#[derive(Clone, Copy, Debug)]
pub struct Estate {
    /// Its records then.
    pub records: u64,
}

//! The conduct of a run, resolved: made once from what was typed, handed on, stored in the result, and used again by
//! `kvdyno rerun`. The plan says what is measured.

use std::time::Duration;

use kvdyno_core::load::Pacing;
use serde::{Deserialize, Serialize};

use crate::args::{CarryingArguments, ConductArguments, DataPolicy, PriceArguments};
use crate::fleet::{OnAgentLost, ReadsFrom};

/// Conduct of a run, resolved.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct RunConfig {
    /// Treatment of existing records.
    pub data: DataPolicy,
    /// True if what is read is checked.
    pub verify: bool,
    /// Repetitions of the run.
    pub trials: u32,
    /// Agents, as typed: `local:4`, `3`, a file.
    pub agents: Option<String>,
    /// HOST:PORT where agents join.
    pub listen: Option<String>,
    /// Longest wait for agents.
    pub wait: Option<Duration>,
    /// Records that agents read, where that was asked for.
    pub reads: Option<ReadsFrom>,
    /// Course of the run when an agent is lost.
    pub on_agent_lost: OnAgentLost,
    /// HOST:PORT of rank 0, where it was told.
    pub conductor: Option<String>,
    /// Carrying of the load.
    pub carrying: Carrying,
    /// True if a suspect measurement ends with exit code 2, too.
    pub strict: bool,
    /// True if nobody is asked before nodes of a described deployment are harmed.
    pub yes: bool,
    /// True if stores of unequal durability or consistency are compared all the same.
    pub allow_unequal: bool,
    /// Cost of the servers, as typed.
    pub price: PriceArguments,
    /// True if the plan is shown and nothing is run; no such run has a result.
    #[serde(skip)]
    pub dry_run: bool,
}

/// Manner in which a load is carried.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Carrying {
    /// Means by which clients wait until a request is due.
    pub pace: Pacing,
    /// Time without a success after which requests that fail end the phase.
    pub give_up: Duration,
    /// Time that an eventually consistent store may take to settle.
    pub settle: Duration,
}

impl RunConfig {
    /// Resolves what was typed.
    pub fn of(typed: &ConductArguments) -> RunConfig {
        RunConfig {
            data: typed.data,
            verify: !typed.no_verify,
            trials: typed.trials,
            agents: typed.agents.clone(),
            listen: typed.listen.clone(),
            wait: typed.wait,
            reads: typed.reads,
            on_agent_lost: typed.on_agent_lost,
            conductor: typed.conductor.clone(),
            carrying: Carrying::from(&typed.carrying),
            strict: typed.strict,
            yes: typed.yes,
            allow_unequal: typed.allow_unequal,
            price: typed.price.clone(),
            dry_run: false,
        }
    }
}

impl From<&CarryingArguments> for Carrying {
    fn from(typed: &CarryingArguments) -> Carrying {
        Carrying { pace: typed.pace.into(), give_up: typed.give_up, settle: typed.settle }
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::args::{Arguments, Command};

    fn config(line: &str) -> RunConfig {
        let Command::Run(typed) = Arguments::parse_from(line.split(' ')).command else {
            panic!("{line} is a run");
        };
        RunConfig::of(&typed.measure.execution.conduct)
    }

    #[test]
    fn a_result_gives_back_how_its_run_was_conducted() {
        let config = config(
            "kvdyno run --store map: --data wipe --no-verify --agents local:2 --reads anywhere --wait 3s \
             --on-agent-lost go-on --pace spin --give-up 4s --settle 5s --strict --servers big=2",
        );
        assert!(!config.verify && config.strict && config.data == DataPolicy::Wipe);
        assert_eq!(config.carrying.pace, Pacing::Spin);
        let stored = serde_json::to_value(&config).expect("it can be written");
        assert_eq!(serde_json::from_value::<RunConfig>(stored).expect("and read"), config);
    }
}

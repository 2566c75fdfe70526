//! What a testbed can be told to do to nodes: the same value goes from whoever wants it to the keeper.

use serde::{Deserialize, Serialize};

use super::kind::repair::Repair;
use super::kind::{NodeFault, ProcessOutcome};

/// What a testbed can be told to do to nodes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum NodeAction {
    /// Harm them.
    Fault(NodeFault),
    /// Put them right.
    Repair(Repair),
}

/// Way in which something that was to be done to nodes failed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ActionFailure {
    /// The node was started, and its process ended or refused to serve.
    ProcessEnded,
    /// The node was started, and did not serve when the limit had passed.
    NotReady,
    /// What was asked for cannot be done to it.
    Usage,
    /// A part of kvdyno, or the machine below the nodes, failed.
    Machine,
    /// Another one.
    #[default]
    Other,
}

impl From<NodeFault> for NodeAction {
    fn from(fault: NodeFault) -> NodeAction {
        NodeAction::Fault(fault)
    }
}

impl From<Repair> for NodeAction {
    fn from(repair: Repair) -> NodeAction {
        NodeAction::Repair(repair)
    }
}

impl NodeAction {
    /// What results call it.
    #[must_use]
    pub fn told(&self) -> &'static str {
        match self {
            NodeAction::Fault(fault) => fault.kind().word,
            NodeAction::Repair(repair) => repair.told(),
        }
    }

    /// The word for it in deployment files.
    #[must_use]
    pub fn word(&self) -> &'static str {
        match self {
            NodeAction::Fault(fault) => fault.kind().word,
            NodeAction::Repair(repair) => repair.word().0,
        }
    }

    /// What becomes of the nodes' processes.
    #[must_use]
    pub fn fate(&self) -> ProcessOutcome {
        match self {
            NodeAction::Fault(fault) => fault.kind().fate,
            NodeAction::Repair(repair) => repair.fate(),
        }
    }

    /// What puts right what it did, if anything is to be put right.
    #[must_use]
    pub fn repair(&self) -> Option<Repair> {
        match self {
            NodeAction::Fault(fault) => fault.kind().repair,
            NodeAction::Repair(_) => None,
        }
    }
}

//! Actions on a testbed's nodes: the same value goes from the nemesis or the command line to the keeper.

use serde::{Deserialize, Serialize};

use super::kind::repair::Repair;
use super::kind::{NodeFault, ProcessOutcome};

/// Action on nodes of a testbed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum NodeAction {
    /// Harms the nodes.
    Fault(NodeFault),
    /// Repairs the nodes.
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
    /// The action cannot be done to the node.
    Usage,
    /// A part of kvdyno, or the machine below the nodes, failed.
    Machine,
    /// Any other failure.
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
    /// Returns the words for it in results.
    #[must_use]
    pub fn describe(&self) -> &'static str {
        match self {
            NodeAction::Fault(fault) => fault.kind().word,
            NodeAction::Repair(repair) => repair.describe(),
        }
    }

    /// Returns the word for it in deployment files.
    #[must_use]
    pub fn word(&self) -> &'static str {
        match self {
            NodeAction::Fault(fault) => fault.kind().word,
            NodeAction::Repair(repair) => repair.word().0,
        }
    }

    /// Returns the outcome for the nodes' processes.
    #[must_use]
    pub fn outcome(&self) -> ProcessOutcome {
        match self {
            NodeAction::Fault(fault) => fault.kind().outcome,
            NodeAction::Repair(repair) => repair.outcome(),
        }
    }

    /// Returns the repair of what it did; `None` if there is nothing to repair.
    #[must_use]
    pub fn repair(&self) -> Option<Repair> {
        match self {
            NodeAction::Fault(fault) => fault.kind().repair,
            NodeAction::Repair(_) => None,
        }
    }
}

//! The model of a testbed that is up, whoever set it up: what it is, and what can be done to its nodes.

use std::path::Path;
use std::time::Duration;

use kvdyno_core::ground::hints::hint;
use kvdyno_core::workload::fault::NodeAction;
use serde::{Deserialize, Serialize};

use crate::cut_figures::CutFigures;
use crate::error::TestbedError;
use crate::network::OwnNetwork;
use crate::pin::Pinned;
use crate::role::Role;
use crate::site::Step;

/// All that is to be known of a testbed, as it is written into results and sent between processes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Description {
    /// The words that asked for it.
    pub request: String,
    /// Name of its kind.
    pub kind: String,
    /// URL that kvdyno reaches it by.
    pub url: String,
    /// Version that the server itself names.
    pub version: Option<String>,
    /// Its nodes.
    pub nodes: Vec<NodeDescription>,
    /// Steps that set it up, in order.
    pub steps: Vec<Step>,
    /// Time from nothing to ready, without installing.
    pub ready_after: Duration,
    /// Whole effective configuration, as (name, value).
    pub configuration: Vec<(String, String)>,
    /// Settings given to the servers that differ from their defaults.
    pub changed: Vec<(String, String)>,
    /// Processors that servers and clients keep to, if they do.
    pub pinned: Option<Pinned>,
    /// Place for the clients, if the nodes have a network of their own.
    #[serde(default)]
    pub network: Option<OwnNetwork>,
    /// Description of each node's disk, if it has one of its own: file system, size, mount options, kernel.
    #[serde(default)]
    pub disk: Option<String>,
    /// True if it goes away with the command that started it, which still runs.
    #[serde(default)]
    pub attached: bool,
}

/// One node as it is now.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NodeDescription {
    /// Name of the node within the testbed: `redis-1`.
    pub name: String,
    /// Address that it listens at.
    pub address: String,
    /// Role of the node among the others, where that is known.
    pub role: Option<Role>,
    /// Number of its process on this machine.
    pub pid: Option<u32>,
    /// True if its process is there (paused counts).
    pub running: bool,
    /// Exit status of its process and the end of its log, if no order ended it.
    #[serde(default)]
    pub ended_by_itself: Option<String>,
}

/// Any testbed that is up, wherever its nodes are. It goes away when dropped.
pub trait Testbed {
    /// Returns its folder on this machine.
    fn root(&self) -> &Path;

    /// Returns what it is now.
    fn describe(&mut self) -> Description;

    /// Returns its nodes as they are now; roles are asked of the servers where they know.
    fn nodes(&mut self) -> Vec<NodeDescription>;

    /// Does something to several nodes at one moment. Says by which means.
    ///
    /// # Errors
    /// [`TestbedError::Node`] if there is no such node or it cannot be done to it, else what the
    /// system or the server says.
    fn act_on(&mut self, nodes: &[String], action: &NodeAction) -> Result<String, TestbedError>;

    /// Does something to one node. Says by which means.
    ///
    /// # Errors
    /// See [`Testbed::act_on`].
    fn act(&mut self, node: &str, action: impl Into<NodeAction>) -> Result<String, TestbedError>
    where
        Self: Sized,
    {
        self.act_on(&[node.to_owned()], &action.into())
    }

    /// Returns whether every copy of every record is there, on nodes that serve; what is missing if not. `None` where the
    /// servers cannot tell.
    fn whole(&mut self) -> Option<Result<(), String>>;

    /// Returns what failed of the machine below the nodes, or of kvdyno's own parts there: a node on it may do
    /// whatever it wants, and is not to blame. `None` if nothing did.
    fn machine_failure(&mut self) -> Option<String>;

    /// Returns the figures of the last cut of power, once; `None` if there was none since.
    fn take_cut(&mut self) -> Option<CutFigures>;

    /// Adds a node to the running system; returns its name when it belongs to it.
    ///
    /// # Errors
    /// [`TestbedError::Node`] if this kind cannot grow, else what the system or the server says.
    fn add_node(&mut self) -> Result<String, TestbedError>;
}

/// Returns the place of the node of this name among all names.
///
/// # Errors
/// [`TestbedError::Node`] with the nearest name.
pub(crate) fn find(node: &str, names: &[&str]) -> Result<usize, TestbedError> {
    names.iter().position(|name| *name == node).ok_or_else(|| {
        let advice = hint(node, names);
        TestbedError::Node(format!("there is no node {node}; {advice}"))
    })
}

//! Testbed of a run, disclosed whole: the published evaluations judge not only how fast a store is, but how easily it is
//! set up.

use serde::{Deserialize, Serialize};

/// Kind of a deployment that kvdyno did not set up and a file describes.
pub const DESCRIBED_KIND: &str = "described";

/// A testbed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct TestbedResult {
    /// Words by which it was requested: `cassandra:3?replication=3`.
    pub request: String,
    /// Name of its kind.
    pub kind: String,
    /// Version that the server itself names.
    pub version: Option<String>,
    /// Server processes.
    pub nodes: Vec<TestbedNode>,
    /// Server processes that came later, in order: of nodes that were started again, under the same name, and of nodes
    /// that were added.
    pub later: Vec<TestbedNode>,
    /// Steps of its set-up, in order.
    pub steps: Vec<TestbedStep>,
    /// Time from nothing to ready, ns, without the time to install.
    pub ready_after_ns: u64,
    /// Settings given to the servers that differ from their defaults, as (name, value).
    pub changed: Vec<(String, String)>,
    /// Whole effective configuration, as (name, value): from the servers themselves, where they tell it.
    pub configuration: Vec<(String, String)>,
    /// Processors that the servers were restricted to; `None` if they were free.
    pub server_processors: Option<Vec<usize>>,
    /// Processors that the clients were restricted to; `None` if they were free.
    pub client_processors: Option<Vec<usize>>,
    /// Disk of each node, if it had one of its own: file system, size, mount options and kernel.
    pub disk: Option<String>,
}

/// A server process, as it was when the testbed was up.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct TestbedNode {
    /// Name of the node within the testbed: `redis-1`.
    pub name: String,
    /// Address at which it listens.
    pub address: String,
    /// Role of the node, where it is known: `primary`.
    pub role: Option<String>,
    /// Number of the process, if it ran on this machine.
    pub pid: Option<u32>,
}

/// A step of the set-up.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct TestbedStep {
    /// Name of the step.
    pub name: String,
    /// Duration of the step, ns.
    pub took_ns: u64,
}

impl TestbedResult {
    /// Returns true if kvdyno has made the testbed, so that kvdyno may break it.
    #[must_use]
    pub fn is_made(&self) -> bool {
        self.kind != DESCRIBED_KIND
    }

    /// Returns true if each node has a real file system of its own, whose power can be cut.
    #[must_use]
    pub fn has_file_systems(&self) -> bool {
        self.disk.as_ref().is_some_and(|disk| !disk.starts_with("tmpfs"))
    }

    /// Returns the node whose process has this number.
    #[must_use]
    pub fn node_of(&self, pid: u32) -> Option<&TestbedNode> {
        self.nodes.iter().chain(&self.later).find(|node| node.pid == Some(pid))
    }
}

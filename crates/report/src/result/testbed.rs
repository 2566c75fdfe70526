//! The throwaway deployment that a run was against, disclosed whole: the published evaluations judge
//! not only how fast a store is, but how easily it is had.

use serde::{Deserialize, Serialize};

/// Kind of a deployment that somebody else has made and a file describes.
pub const DESCRIBED_KIND: &str = "described";

/// A throwaway deployment.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct TestbedResult {
    /// The words that asked for it: `cassandra:3?replication=3`.
    pub request: String,
    /// Name of its kind.
    pub kind: String,
    /// Version that the server itself names.
    pub version: Option<String>,
    /// Its server processes.
    pub nodes: Vec<TestbedNode>,
    /// Server processes that came later, in order: of nodes that were started again, under the same
    /// name, and of nodes that were added.
    pub later: Vec<TestbedNode>,
    /// What was done to set it up, in order.
    pub steps: Vec<TestbedStep>,
    /// From nothing to ready, ns; installing is not in it.
    pub ready_after_ns: u64,
    /// Settings given to the servers that differ from their defaults, as (name, value).
    pub changed: Vec<(String, String)>,
    /// The whole effective configuration, as (name, value): as the servers tell it, where they do.
    pub configuration: Vec<(String, String)>,
    /// Processors that the servers were kept to; `None` if they were free.
    pub server_processors: Option<Vec<usize>>,
    /// Processors that the clients were kept to; `None` if they were free.
    pub client_processors: Option<Vec<usize>>,
    /// What each node's disk was, if it had one of its own: file system, size, mount options and kernel.
    pub disk: Option<String>,
}

/// One server process, as it was when the testbed was up.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct TestbedNode {
    /// Its name within the testbed: `redis-1`.
    pub name: String,
    /// Where it listens.
    pub address: String,
    /// What it is to the others, where that is known: `primary`.
    pub role: Option<String>,
    /// Number of the process, if it ran on this machine.
    pub pid: Option<u32>,
}

/// A step of the set-up.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct TestbedStep {
    /// What was done.
    pub name: String,
    /// How long it took, ns.
    pub took_ns: u64,
}

impl TestbedResult {
    /// kvdyno has made it, so that kvdyno may break it.
    #[must_use]
    pub fn is_made(&self) -> bool {
        self.kind != DESCRIBED_KIND
    }

    /// Whether each node has a real file system of its own, whose power can be cut.
    #[must_use]
    pub fn has_file_systems(&self) -> bool {
        self.disk.as_ref().is_some_and(|disk| !disk.starts_with("tmpfs"))
    }

    /// The node whose process has this number.
    #[must_use]
    pub fn node_of(&self, pid: u32) -> Option<&TestbedNode> {
        self.nodes.iter().chain(&self.later).find(|node| node.pid == Some(pid))
    }
}

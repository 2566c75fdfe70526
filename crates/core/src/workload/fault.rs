//! What is done to a testbed while a phase runs, as plain data: whoever holds the testbed carries it
//! out. Jepsen calls the whole of it the nemesis. docs/FAULTS.md is its page for users.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// What is done to a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FaultKind {
    /// Its process is killed (-9).
    Kill,
    /// Its process is ended in good order.
    Stop,
    /// Its process stands still (SIGSTOP).
    Pause,
    /// Its process is killed and started again at once.
    Restart,
    /// It leaves the system in good order, its data moved to the others.
    Remove,
    /// One more node joins the system and takes its share of the data.
    Add,
    /// Packets between it and others are dropped.
    Partition,
    /// A share of its packets is dropped by chance.
    Lossy,
    /// Its network has less bandwidth, or each packet takes longer.
    Slow,
    /// The disk that holds its folder is full.
    DiskFull,
    /// It rewrites its log of writes, as Redis does with its append-only file.
    Rewrite,
    /// It merges its files, as Cassandra does with its tables.
    Compact,
}

impl FaultKind {
    /// Every kind with the word for it.
    pub const ALL: [(&'static str, FaultKind); 12] = [
        ("kill", FaultKind::Kill),
        ("stop", FaultKind::Stop),
        ("pause", FaultKind::Pause),
        ("restart", FaultKind::Restart),
        ("remove", FaultKind::Remove),
        ("add", FaultKind::Add),
        ("partition", FaultKind::Partition),
        ("lossy", FaultKind::Lossy),
        ("slow", FaultKind::Slow),
        ("disk-full", FaultKind::DiskFull),
        ("rewrite", FaultKind::Rewrite),
        ("compact", FaultKind::Compact),
    ];

    /// The word for it.
    #[must_use]
    pub fn name(self) -> &'static str {
        Self::ALL.iter().find(|(_, kind)| *kind == self).map_or("", |(word, _)| word)
    }

    /// Something is left to be repaired.
    #[must_use]
    pub fn lasts(self) -> bool {
        matches!(self, FaultKind::Kill | FaultKind::Stop | FaultKind::Pause | FaultKind::DiskFull)
            || self.is_of_network()
    }

    /// It is done to the network, and so each node needs one of its own.
    #[must_use]
    pub fn is_of_network(self) -> bool {
        matches!(self, FaultKind::Partition | FaultKind::Lossy | FaultKind::Slow)
    }
}

/// Which nodes are meant, decided when the fault is due.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Aim {
    /// Those that run and hold data, by chance.
    Any,
    /// Each one that runs and holds data.
    All,
    /// Those that take writes and pass them on.
    Primary,
    /// The same; where no node is a primary, as in a store of peers, those that run and hold data.
    PrimaryOrAny,
    /// Those that get their data from a primary.
    Replica,
    /// The one of this number, from 1.
    Number(u32),
    /// The one of this name.
    Name(String),
    /// Each of these, which are numbers and names.
    Several(Vec<Aim>),
}

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

/// From whom a node is cut off.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CutFrom {
    /// The other nodes and the clients.
    #[default]
    All,
    /// The other nodes; clients still reach it.
    Nodes,
    /// The clients; other nodes still reach it.
    Clients,
}

/// Which packets are dropped, as the node sees it that is cut off.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Way {
    /// All.
    #[default]
    Both,
    /// Those that it is sent: it hears nothing and is heard.
    In,
    /// Those that it sends: it hears and is not heard.
    Out,
}

/// What is done to the network, where a fault is of that kind.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct NetworkFault {
    /// From whom the nodes are cut off that the fault is aimed at.
    pub from: CutFrom,
    /// Instead of an aim: names of nodes that stay together, each list cut off from all others. The
    /// clients are called [`NetworkFault::CLIENTS`].
    pub sides: Vec<Vec<String>>,
    /// Which packets are dropped.
    pub way: Way,
    /// Share of packets that is lost, 0 to 1.
    pub loss: Option<f64>,
    /// Bytes a second that pass, each way.
    pub bandwidth: Option<u64>,
    /// How much longer each packet takes that a node sends.
    pub delay: Option<Duration>,
}

impl NetworkFault {
    /// What the clients are called among the names of nodes.
    pub const CLIENTS: &'static str = "clients";
}

/// A fault of a phase.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FaultPlan {
    /// What is done.
    pub kind: FaultKind,
    /// To which nodes.
    pub aim: Aim,
    /// To so many of them at one moment, drawn by chance; `None`: one of those that the aim describes,
    /// or each of those that it names.
    #[serde(default)]
    pub count: Option<u32>,
    /// What must be so first.
    #[serde(default)]
    pub when: Option<Condition>,
    /// When, from the phase's begin, or from when the condition holds.
    pub at: Duration,
    /// What it did is put right so long after it was done; at the latest when the phase is over.
    pub repair: Option<Duration>,
    /// It is done again at this interval, until the phase is over.
    pub every: Option<Duration>,
    /// What is done to the network.
    #[serde(default)]
    pub network: NetworkFault,
}

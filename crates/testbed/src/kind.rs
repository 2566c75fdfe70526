//! The description of a kind of testbed: its name, how many nodes it may have, its settings, the software that it needs.
//! Checks, lists and documentation are made from it.

use std::ops::RangeInclusive;

use kvdyno_core::store::Work;

use kvdyno_core::workload::fault::Ability;

use crate::error::TestbedError;
use crate::install::Software;
use crate::proof::Proof;
use crate::role::Role;
use crate::settings::{Setting, TestbedSettings};
use crate::site::{Served, Site};

/// A kind of testbed.
#[derive(Debug)]
pub struct TestbedKind {
    /// The word that names it: `redis-cluster`.
    pub name: &'static str,
    /// Description in one sentence without a stop.
    pub summary: &'static str,
    /// Number of nodes unless told otherwise.
    pub nodes: u16,
    /// Numbers of nodes that it can have.
    pub allowed: RangeInclusive<u16>,
    /// Settings that it has, beside [`SHARED`](crate::SHARED).
    pub settings: &'static [Setting],
    /// Software that must be installed.
    pub software: &'static [&'static Software],
    /// Starts it: every node, and what makes them one system.
    pub deploy: fn(&mut Site) -> Result<Served, TestbedError>,
    /// Questions to its nodes, as clients will ask, before they count as ready.
    pub proof: Proof,
    /// Changes that can be made to it once it is up, beside what every process takes.
    pub changes: Changes,
}

/// Asks for the role of each node now, in the order of [`Site::nodes`]; `None` for one that does not answer.
pub type AskRoles = fn(&Site) -> Vec<Option<Role>>;
/// Starts one more node and waits until it belongs to the system.
pub type AddNode = fn(&mut Site) -> Result<(), TestbedError>;
/// Takes the node of this number (from 0) out of the system in good order, and ends it.
pub type RemoveNode = fn(&mut Site, usize) -> Result<(), TestbedError>;

/// Has the nodes of these numbers (from 0) rewrite their logs of writes, or merge their files, and waits
/// until all are done.
pub type TidyUp = fn(&Site, &[usize]) -> Result<(), TestbedError>;

/// Asks whether the nodes of these numbers (from 0), which are up, have every copy that they are to have; the error tells in
/// words what is missing. Quick, and changes nothing.
pub type AskWhole = fn(&Site, &[usize]) -> Result<(), String>;

/// Returns the reason why a testbed with these settings cannot do what its kind can; `None` if it can.
pub type NameObstacle = fn(&TestbedSettings, Ability) -> Option<&'static str>;

/// Changes that a kind of testbed can make while it is up, and what it tells then. A request for a change that is absent is
/// refused with a clear line.
#[derive(Clone, Copy, Debug)]
pub struct Changes {
    /// Asks the servers for their roles.
    pub roles: Option<AskRoles>,
    /// Adds a node.
    pub add: Option<AddNode>,
    /// Gives up a node; ends with [`Site::end_node`].
    pub remove: Option<RemoveNode>,
    /// Rewrites a log of writes.
    pub rewrite: Option<TidyUp>,
    /// Merges files.
    pub compact: Option<TidyUp>,
    /// Reads the server's work beside requests off a line of its log.
    pub read_work: Option<fn(&str) -> Option<Work>>,
    /// Asks the servers whether every copy of every record is there, as far as they can tell it.
    pub whole: Option<AskWhole>,
    /// Names the reason why a testbed with some settings cannot do what its kind can, and the setting that would.
    pub cannot: Option<NameObstacle>,
}

impl Changes {
    /// A kind without any change beside what every process takes.
    pub const NONE: Changes = Changes {
        roles: None,
        add: None,
        remove: None,
        rewrite: None,
        compact: None,
        read_work: None,
        whole: None,
        cannot: None,
    };

    /// Returns true if the servers can do it.
    #[must_use]
    pub fn can(&self, ability: Ability) -> bool {
        match ability {
            Ability::Grow => self.add.is_some(),
            Ability::Shrink => self.remove.is_some(),
            Ability::Rewrite => self.rewrite.is_some(),
            Ability::Compact => self.compact.is_some(),
        }
    }
}

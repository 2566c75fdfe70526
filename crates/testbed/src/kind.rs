//! What a kind of testbed says of itself: its name, how many nodes it may have, its settings, the
//! software that it needs. What is checked, listed and documented comes from here.

use std::ops::RangeInclusive;
use std::time::Duration;

use kvdyno_core::ground::units;
use kvdyno_core::store::Work;

use crate::error::TestbedError;
use crate::install::Software;
use crate::proof::Proof;
use crate::site::{Served, Site};

/// A kind of testbed.
#[derive(Debug)]
pub struct Kind {
    /// The word that names it: `redis-cluster`.
    pub name: &'static str,
    /// What it is, in one sentence without a stop.
    pub summary: &'static str,
    /// How many nodes it has unless told otherwise.
    pub nodes: u16,
    /// How many nodes it can have.
    pub allowed: RangeInclusive<u16>,
    /// What can be set, beside [`SHARED`].
    pub settings: &'static [Setting],
    /// What must be installed.
    pub software: &'static [&'static Software],
    /// Starts it: every node, and what makes them one system.
    pub deploy: fn(&mut Site) -> Result<Served, TestbedError>,
    /// How its nodes are asked what clients will ask, before they count as ready.
    pub proof: Proof,
    /// What can be done to it once it is up, beside what every process takes.
    pub changes: Changes,
}

/// What each node is now, in the order of [`Site::nodes`]; `None` for one that does not answer.
pub type AskRoles = fn(&Site) -> Vec<Option<Role>>;
/// Starts one more node and waits until it belongs to the system.
pub type AddNode = fn(&mut Site) -> Result<(), TestbedError>;
/// Takes the node of this number (from 0) out of the system in good order, and ends it.
pub type RemoveNode = fn(&mut Site, usize) -> Result<(), TestbedError>;

/// Has the nodes of these numbers (from 0) rewrite their logs of writes, or merge their files, and waits
/// until all are done.
pub type TidyUp = fn(&Site, &[usize]) -> Result<(), TestbedError>;

/// Whether the nodes of these numbers (from 0), which are up, have every copy that they are to have; what
/// is missing in words if not. Quick, and changes nothing.
pub type AskWhole = fn(&Site, &[usize]) -> Result<(), String>;

/// What a kind of testbed can do while it is up, and tells of. What is absent is refused with a clear
/// line.
#[derive(Clone, Copy, Debug)]
pub struct Changes {
    /// Asks the servers who is what.
    pub roles: Option<AskRoles>,
    /// Adds a node.
    pub add: Option<AddNode>,
    /// Gives up a node; ends with [`Site::end_node`].
    pub remove: Option<RemoveNode>,
    /// Rewrites a log of writes.
    pub rewrite: Option<TidyUp>,
    /// Merges files.
    pub compact: Option<TidyUp>,
    /// What a line of a server's log tells of its work beside requests.
    pub tells: Option<fn(&str) -> Option<Work>>,
    /// Asks the servers whether every copy of every record is there, as far as they can tell it.
    pub whole: Option<AskWhole>,
}

impl Changes {
    /// Nothing beside what every process takes.
    pub const NONE: Changes = Changes {
        roles: None,
        add: None,
        remove: None,
        rewrite: None,
        compact: None,
        tells: None,
        whole: None,
    };
}

/// What a node is to the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// Takes writes and passes them on.
    Primary,
    /// Gets its data from a primary.
    Replica,
    /// All nodes are alike.
    Peer,
    /// Holds no data: a sentinel, an arbiter. Faults are aimed at it by name only.
    Observer,
}

impl Role {
    /// For people.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Role::Primary => "primary",
            Role::Replica => "replica",
            Role::Peer => "peer",
            Role::Observer => "observer",
        }
    }
}

/// Something that can be set: `?name=value`.
#[derive(Debug)]
pub struct Setting {
    /// Its name.
    pub name: &'static str,
    /// What it does, in one sentence without a stop.
    pub meaning: &'static str,
    /// What it can be.
    pub values: Values,
    /// What it is unless told otherwise; empty for the server's own default.
    pub default: &'static str,
}

/// What a setting can be.
#[derive(Clone, Copy, Debug)]
pub enum Values {
    /// One of these words.
    Choice(&'static [&'static str]),
    /// A whole number from the first to the second.
    Count(u64, u64),
    /// A number of bytes, such as `64MiB`.
    Bytes,
    /// A time, such as `10s`.
    Duration,
    /// Any text, as the server takes it.
    Text,
}

/// Settings that every testbed has.
pub static SHARED: [Setting; 4] = [
    Setting {
        name: "pin",
        meaning: "`servers`: servers run on one half of the processors and clients on the other",
        values: Values::Choice(&["none", "servers"]),
        default: "none",
    },
    Setting {
        name: "folder",
        meaning: "keep configuration, data and logs in this folder, and use what is in it; else \
                  they go away with the testbed",
        values: Values::Text,
        default: "",
    },
    Setting {
        name: "network",
        meaning: "`own`: each node in a network namespace of its own on a bridge, so that it can be \
                  cut off; needs root and nftables. A run whose suite has such faults takes it by itself",
        values: Values::Choice(&["host", "own"]),
        default: "host",
    },
    Setting {
        name: "disk",
        meaning: "size of a disk in memory for each node's folder, so that it can be filled; needs \
                  root; else folders are on this machine's disk",
        values: Values::Bytes,
        default: "",
    },
];

impl Values {
    /// What is wrong with `text`, as advice; `None` if nothing is.
    pub(crate) fn advice(self, text: &str) -> Option<String> {
        let number = || text.parse::<u64>().ok();
        match self {
            Values::Choice(words) if words.contains(&text) => None,
            Values::Choice(words) => Some(kvdyno_core::ground::hints::hint(text, words)),
            Values::Count(least, most) if number().is_some_and(|n| (least..=most).contains(&n)) => {
                None
            }
            Values::Count(least, most) => Some(format!("write a number from {least} to {most}")),
            Values::Bytes => units::parse_bytes(text).err().map(|error| error.hint()),
            Values::Duration => units::parse_duration(text).err().map(|error| error.hint()),
            Values::Text => text.is_empty().then(|| "write something after the `=`".to_owned()),
        }
    }

    /// For lists and documentation: `none|aof-always`, `SIZE`.
    #[must_use]
    pub fn shown(self) -> String {
        match self {
            Values::Choice(words) => words.join("|"),
            Values::Count(least, most) => format!("{least}..{most}"),
            Values::Bytes => "SIZE".to_owned(),
            Values::Duration => "TIME".to_owned(),
            Values::Text => "TEXT".to_owned(),
        }
    }
}

/// Reads what [`Values::advice`] has passed.
pub(crate) fn bytes(text: &str) -> Option<u64> {
    units::parse_bytes(text).ok()
}

/// Reads what [`Values::advice`] has passed.
pub(crate) fn duration(text: &str) -> Option<Duration> {
    units::parse_duration(text).ok()
}

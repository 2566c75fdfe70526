//! The nodes that a fault goes to.

use serde::{Deserialize, Serialize};

use super::values::InvalidFault;

/// Selector of nodes, evaluated when the fault is due.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum NodeSelector {
    /// Nodes that run and hold data, drawn by chance.
    #[default]
    Any,
    /// Every node that runs and holds data.
    All,
    /// Nodes that take writes and pass them on.
    Primary,
    /// Nodes that take writes and pass them on; where no node is a primary, as in a store of peers, nodes that run
    /// and hold data.
    PrimaryOrAny,
    /// Nodes that get their data from a primary.
    Replica,
    /// The node of this number, from 1.
    Number(u32),
    /// The node of this name.
    Name(String),
    /// Each of these nodes, by number or name.
    Several(Vec<NodeSelector>),
}

/// Targets of a fault, as far as they were written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Targets {
    /// Selector of the nodes; `None` if none was written.
    pub aim: Option<NodeSelector>,
    /// Number of nodes hit at one moment, drawn by chance; `None` if it was not written.
    pub count: Option<u32>,
}

impl Targets {
    /// Checks that no target was written, for the reason `why`.
    pub(super) fn nobody(self, why: &str) -> Result<(), InvalidFault> {
        let given = [("node", self.aim.is_some()), ("count", self.count.is_some())];
        match given.into_iter().find(|(_, given)| *given) {
            None => Ok(()),
            Some((key, _)) => Err(InvalidFault::new(why, format!("leave out `{key}`"))),
        }
    }
}

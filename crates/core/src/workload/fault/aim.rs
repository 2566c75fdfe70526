//! To whom a fault is done.

use serde::{Deserialize, Serialize};

use super::values::InvalidFault;

/// Which nodes are meant, decided when the fault is due.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum NodeSelector {
    /// Those that run and hold data, by chance.
    #[default]
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
    Several(Vec<NodeSelector>),
}

/// To whom something is done, as far as that was written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Targets {
    /// Which nodes are meant.
    pub aim: Option<NodeSelector>,
    /// To so many of them at one moment, drawn by chance.
    pub count: Option<u32>,
}

impl Targets {
    /// Nothing was written, because of this.
    pub(super) fn nobody(self, why: &str) -> Result<(), InvalidFault> {
        let given = [("node", self.aim.is_some()), ("count", self.count.is_some())];
        match given.into_iter().find(|(_, given)| *given) {
            None => Ok(()),
            Some((key, _)) => Err(InvalidFault::new(why, format!("leave out `{key}`"))),
        }
    }
}

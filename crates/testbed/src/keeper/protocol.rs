//! The messages between a keeper and its starter: one JSON object a line.

use kvdyno_core::workload::fault::{ActionFailure, NodeAction};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::cut_figures::CutFigures;
use crate::error::TestbedError;
use crate::model::{Description, NodeDescription};
use crate::site::Step;

/// Order to a keeper. Each is answered with one [`KeeperReport`], [`Order::Deploy`] with one for each step before it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Order {
    /// Set up a testbed: the first order, and given once.
    Deploy {
        /// Words that name the testbed.
        words: String,
        /// True if it stays up when its starter goes away.
        detached: bool,
    },
    /// Say what it is.
    Describe,
    /// Say how the nodes are.
    Nodes,
    /// Do something to nodes, at one moment.
    Act {
        /// Names of the nodes.
        nodes: Vec<String>,
        /// Action to carry out.
        action: NodeAction,
    },
    /// Add a node.
    AddNode,
    /// Say whether every copy is there.
    Whole,
    /// Say what failed of the machine below the nodes, or of kvdyno's own parts there.
    Machine,
    /// Give the figures of the last cut of power.
    Cut,
    /// End all of it.
    End,
}

/// Report of a keeper.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum KeeperReport {
    /// A step of the set-up is done.
    Step(Step),
    /// The testbed is up.
    Up(Box<Description>),
    /// The nodes as they are.
    Nodes(Vec<NodeDescription>),
    /// State of the copies: `Ok` if every one is there, else what is missing. `None` where the servers cannot tell.
    Whole(Option<Result<(), String>>),
    /// The failure of the machine, or of kvdyno's own parts below the nodes; `None` if nothing did.
    Machine(Option<String>),
    /// Figures of the last cut of power; `None` if there was none since they were asked for.
    Cut(Option<CutFigures>),
    /// The order is carried out.
    Done,
    /// Something was done to nodes, and by which means; or a node was added, and its name.
    Acted(String),
    /// The order could not be carried out.
    Failed(Failed),
}

/// Reason why an order could not be carried out.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Failed {
    /// One line for the user.
    message: String,
    /// The way in which it failed.
    #[serde(default)]
    failure: ActionFailure,
}

impl From<&TestbedError> for Failed {
    fn from(error: &TestbedError) -> Failed {
        Failed { message: error.to_string(), failure: error.failure() }
    }
}

impl From<Failed> for TestbedError {
    fn from(Failed { message, failure }: Failed) -> TestbedError {
        TestbedError::Kept { message, failure }
    }
}

/// Returns a line of the conversation.
pub fn line<T: Serialize>(message: &T) -> String {
    let text = serde_json::to_string(message).expect("messages are plain JSON");
    text + "\n"
}

/// Reads a line; `None` if it is none of this conversation.
pub fn read<T: DeserializeOwned>(line: &str) -> Option<T> {
    serde_json::from_str(line).ok()
}

#[cfg(test)]
mod tests {
    use kvdyno_core::workload::fault::NodeFault;

    use super::*;

    #[test]
    fn orders_and_reports_survive_the_wire() {
        let orders = [
            Order::Deploy { words: "redis?memory=1GB".to_owned(), detached: true },
            Order::Act { nodes: vec!["redis-1".to_owned()], action: NodeFault::Kill.into() },
            Order::End,
        ];
        for order in orders {
            assert_eq!(read::<Order>(&line(&order)), Some(order));
        }
        assert_eq!(line(&Order::End), "\"end\"\n");
        let ended = TestbedError::Ended {
            node: "n-1".to_owned(),
            status: std::os::unix::process::ExitStatusExt::from_raw(256),
            log: "panic".to_owned(),
        };
        for (error, failure) in [
            (TestbedError::Node("no such node".to_owned()), ActionFailure::Usage),
            (TestbedError::Machine("the disk below is full".to_owned()), ActionFailure::Machine),
            (ended, ActionFailure::ProcessEnded),
        ] {
            let report = KeeperReport::Failed(Failed::from(&error));
            let Some(KeeperReport::Failed(failed)) = read(&line(&report)) else {
                panic!("another report")
            };
            let again = TestbedError::from(failed);
            assert_eq!((again.to_string(), again.failure()), (error.to_string(), failure));
        }
        assert_eq!(read::<Order>("invalid"), None);
    }
}

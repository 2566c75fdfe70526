//! `kvdyno testbed fault`: something is done to one node of a testbed that is up.

use kvdyno_core::suite::hint;
use kvdyno_testbed::keeper::Standing;
use kvdyno_testbed::{Action, DESCRIBED};

use super::about;
use crate::exit::{Exit, Failure};

/// What can be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// To a node.
    Act(Action),
    /// One more node.
    Add,
}

/// Words for [`Fault`].
const WORDS: [(&str, Fault); 8] = [
    ("kill", Fault::Act(Action::Kill)),
    ("stop", Fault::Act(Action::Stop)),
    ("pause", Fault::Act(Action::Pause)),
    ("resume", Fault::Act(Action::Resume)),
    ("restart", Fault::Act(Action::Restart)),
    ("remove", Fault::Act(Action::Remove)),
    ("rewrite", Fault::Act(Action::Rewrite)),
    ("add", Fault::Add),
];

/// Reads a word of the command line.
///
/// # Errors
/// The nearest word.
pub fn parse(word: &str) -> Result<Fault, String> {
    let found = WORDS.iter().find(|(known, _)| *known == word);
    found.map(|(_, fault)| *fault).ok_or_else(|| hint(word, &WORDS.map(|(known, _)| known)))
}

/// Carries it out; returns when it is done.
///
/// # Errors
/// [`Failure`] if the testbed cannot, or is the user's own and was not meant to be harmed.
pub fn carry_out(
    testbed: &Standing,
    fault: Fault,
    node: Option<&str>,
    yes: bool,
) -> Result<Exit, Failure> {
    let described = testbed.describe().map_err(about)?;
    if described.kind == DESCRIBED && !yes {
        let path = described.request;
        let line = format!("{path} is a deployment of your own: add --yes to act on its nodes");
        return Err(Failure::usage(line));
    }
    match (fault, node) {
        (Fault::Act(action), Some(node)) => testbed.act(node, action).map_err(about)?,
        (Fault::Act(_), None) => {
            let names: Vec<&str> = described.nodes.iter().map(|node| node.name.as_str()).collect();
            return Err(Failure::usage(format!("name a node: {}", names.join(", "))));
        }
        (Fault::Add, None) => testbed.add_node().map_err(about)?,
        (Fault::Add, Some(_)) => {
            return Err(Failure::usage("a node that is added gets its name by itself"));
        }
    }
    let now = testbed.describe().map_err(about)?;
    for node in &now.nodes {
        say!("{}", super::node_line(node));
    }
    Ok(Exit::Done)
}

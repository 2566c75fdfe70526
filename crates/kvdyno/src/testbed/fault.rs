//! `kvdyno testbed fault`: something is done to nodes of a testbed that is up.

use kvdyno_core::workload::fault::{FaultField, Harm, InvalidFault, NodeSelector, Repair, Targets};
use kvdyno_testbed::keeper::RunningTestbed;
use kvdyno_testbed::{DESCRIBED, Description, TestbedError};

use super::aim::sides;
use super::wanted_action::{FaultArguments, WantedAction};
use super::{about, consent};
use crate::exit::{Exit, Failure};

/// Carries it out; returns when it is done.
///
/// # Errors
/// [`Failure`] if the testbed cannot, or is the user's own and was not meant to be harmed.
pub fn carry_out(testbed: &RunningTestbed, asked: &FaultArguments) -> Result<Exit, Failure> {
    let described = testbed.describe().map_err(about)?;
    if described.kind == DESCRIBED {
        consent(&described.request, "its nodes are acted on", asked.target.yes)?;
    }
    let nodes = &asked.target.nodes;
    let used = match &asked.wanted {
        WantedAction::Repairs(repairs) => {
            some(nodes, &described)?;
            put_right(testbed, nodes, repairs)
        }
        WantedAction::Fault { kind, values } => {
            let named = nodes.iter().cloned().map(NodeSelector::Name).collect();
            let aim = (!nodes.is_empty()).then_some(NodeSelector::Several(named));
            let harm = Harm::new(kind, values, Targets { aim, count: None });
            match harm.map_err(|invalid| refused(&invalid))? {
                Harm::Add => testbed.add_node().map(|name| format!("{name} was added")),
                Harm::ToNodes { fault, .. } => {
                    some(nodes, &described)?;
                    testbed.act_on(nodes.clone(), fault.into())
                }
                Harm::Split { sides: named, way } => {
                    let orders = sides(&described.nodes, &named, way).map_err(about)?;
                    let names = |aimed: Vec<(String, _)>| aimed.into_iter().map(|(name, _)| name);
                    let mut acted = orders
                        .into_iter()
                        .map(|(fault, aimed)| testbed.act_on(names(aimed).collect(), fault.into()));
                    acted.try_fold(String::new(), |_, used| used)
                }
            }
        }
    };
    say!("{}", used.map_err(about)?);
    let now = testbed.describe().map_err(about)?;
    for node in &now.nodes {
        say!("{}", super::node_line(node));
    }
    Ok(Exit::Done)
}

/// At least one node is named.
fn some(nodes: &[String], described: &Description) -> Result<(), Failure> {
    if !nodes.is_empty() {
        return Ok(());
    }
    let names: Vec<&str> = described.nodes.iter().map(|node| node.name.as_str()).collect();
    Err(Failure::usage(format!("name a node: {}", names.join(", "))))
}

fn refused(invalid: &InvalidFault) -> Failure {
    let write = |field: &FaultField| format!("--{} {}", field.key, field.example);
    Failure::usage(format!("{}; {}", invalid.message, invalid.advice(write)))
}

/// Whatever there is to repair of several things is repaired.
fn put_right(
    testbed: &RunningTestbed,
    nodes: &[String],
    repairs: &[Repair],
) -> Result<String, TestbedError> {
    let mut used: Vec<String> = Vec::new();
    let mut refused = None;
    for repair in repairs {
        match testbed.act_on(nodes.to_vec(), (*repair).into()) {
            Ok(said) => used.push(said),
            Err(error) => refused = Some(error),
        }
    }
    match refused {
        Some(error) if used.is_empty() => Err(error),
        _ => Ok(used.join(", ")),
    }
}

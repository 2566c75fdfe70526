//! `kvdyno testbed fault`: something is done to nodes of a testbed that is up.

use kvdyno_core::workload::{NetworkFault, Way};
use kvdyno_testbed::keeper::RunningTestbed;
use kvdyno_testbed::{Action, DESCRIBED, NodeDescription, Trouble};

use super::arguments::{self, FaultArguments, From, Word};
use super::{about, consent};
use crate::exit::{Exit, Failure};

/// Carries it out; returns when it is done.
///
/// # Errors
/// [`Failure`] if the testbed cannot, or is the user's own and was not meant to be harmed.
pub fn carry_out(testbed: &RunningTestbed, wanted: &FaultArguments) -> Result<Exit, Failure> {
    let described = testbed.describe().map_err(about)?;
    if described.kind == DESCRIBED {
        consent(&described.request, "its nodes are acted on", wanted.yes)?;
    }
    let nodes = &wanted.nodes;
    let used = match (wanted.fault, nodes.is_empty()) {
        (Word::Add, true) => testbed.add_node().map(|name| format!("{name} was added")),
        (Word::Add, false) => {
            return Err(Failure::usage("a node that is added gets its name by itself"));
        }
        (_, true) => {
            let names: Vec<&str> = described.nodes.iter().map(|node| node.name.as_str()).collect();
            return Err(Failure::usage(format!("name a node: {}", names.join(", "))));
        }
        (Word::Heal, false) => heal(testbed, nodes),
        (_, false) => testbed.act_on(nodes.clone(), action(wanted, &described.nodes)?),
    };
    say!("{}", used.map_err(about)?);
    let now = testbed.describe().map_err(about)?;
    for node in &now.nodes {
        say!("{}", super::node_line(node));
    }
    Ok(Exit::Done)
}

/// Whatever there is of trouble with the network of nodes is undone.
fn heal(
    testbed: &RunningTestbed,
    nodes: &[String],
) -> Result<String, kvdyno_testbed::TestbedError> {
    let all = [Trouble::Partition, Trouble::Lossy, Trouble::Slow];
    let tried = all.map(|trouble| testbed.act_on(nodes.to_vec(), Action::Heal(trouble)));
    let mut used: Vec<String> = Vec::new();
    let mut refused = None;
    for tried in tried {
        match tried {
            Ok(said) => used.push(said),
            Err(error) => refused = Some(error),
        }
    }
    match refused {
        Some(error) if used.is_empty() => Err(error),
        _ => Ok(used.join(", ")),
    }
}

fn action(wanted: &FaultArguments, nodes: &[NodeDescription]) -> Result<Action, Failure> {
    let needs = |what: &str| Failure::usage(format!("say how much: add {what}"));
    let FaultArguments { loss, bandwidth, delay, .. } = *wanted;
    Ok(match wanted.fault {
        Word::Kill => Action::Kill,
        Word::Stop => Action::Stop,
        Word::Pause => Action::Pause,
        Word::Resume => Action::Resume,
        Word::Restart => Action::Restart,
        Word::Partition => Action::Partition { from: from(wanted, nodes), way: way(wanted.way) },
        Word::Lossy => Action::Lossy { share: loss.ok_or_else(|| needs("--loss 10%"))? },
        Word::Slow if bandwidth.is_none() && delay.is_none() => {
            return Err(needs("--bandwidth 1MB/s, --delay 20ms, or both"));
        }
        Word::Slow => Action::Slow { bandwidth, delay },
        Word::DiskFull => Action::FillDisk,
        Word::DiskFree => Action::FreeDisk,
        Word::Rewrite => Action::Rewrite,
        Word::Compact => Action::Compact,
        Word::Remove | Word::Add | Word::Heal => Action::Remove,
    })
}

fn from(wanted: &FaultArguments, nodes: &[NodeDescription]) -> Vec<String> {
    let names = nodes.iter().map(|node| node.name.clone());
    let others = names.filter(|name| !wanted.nodes.contains(name));
    let clients = NetworkFault::CLIENTS.to_owned();
    match wanted.from {
        From::All => others.chain([clients]).collect(),
        From::Nodes => others.collect(),
        From::Clients => vec![clients],
    }
}

fn way(way: arguments::Way) -> Way {
    match way {
        arguments::Way::Both => Way::Both,
        arguments::Way::In => Way::In,
        arguments::Way::Out => Way::Out,
    }
}

//! From what a keeper says of its testbed to what a result holds of it.

use kvdyno_report::result::{TestbedNode, TestbedResult, TestbedStep};
use kvdyno_testbed::{Description, NodeDescription, Step};

/// All that is disclosed of a testbed.
pub fn disclosed(testbed: &Description) -> TestbedResult {
    let pinned = testbed.pinned.as_ref();
    TestbedResult {
        request: testbed.request.clone(),
        kind: testbed.kind.clone(),
        version: testbed.version.clone(),
        nodes: testbed.nodes.iter().map(node).collect(),
        later: Vec::new(),
        steps: testbed.steps.iter().map(step).collect(),
        ready_after_ns: testbed.ready_after.as_nanos() as u64,
        changed: testbed.changed.clone(),
        configuration: testbed.configuration.clone(),
        server_processors: pinned.map(|pinned| pinned.servers.clone()),
        client_processors: pinned.map(|pinned| pinned.clients.clone()),
    }
}

/// What is disclosed of a node.
pub fn node(node: &NodeDescription) -> TestbedNode {
    TestbedNode {
        name: node.name.clone(),
        address: node.address.clone(),
        role: node.role.map(|role| role.name().to_owned()),
        pid: node.pid,
    }
}

fn step(step: &Step) -> TestbedStep {
    TestbedStep { name: step.name.clone(), took_ns: step.took.as_nanos() as u64 }
}

//! Conversion of a keeper's description of its testbed into the part that a result discloses.

use kvdyno_core::redact::{self, MASK};
use kvdyno_report::result::{TestbedNode, TestbedResult, TestbedStep};
use kvdyno_testbed::{Description, NodeDescription, Step};

/// Returns all that a result discloses of a testbed.
pub fn disclosed(testbed: &Description) -> TestbedResult {
    let pinned = testbed.pinned.as_ref();
    // A deployment file may name the password of its URL in a setting, too.
    let clean = |pairs: &[(String, String)]| {
        pairs.iter().map(|(name, value)| (name.clone(), clean(name, value))).collect()
    };
    TestbedResult {
        request: redact::redact(&testbed.request),
        kind: testbed.kind.clone(),
        version: testbed.version.clone(),
        nodes: testbed.nodes.iter().map(node).collect(),
        later: Vec::new(),
        steps: testbed.steps.iter().map(step).collect(),
        ready_after_ns: testbed.ready_after.as_nanos() as u64,
        changed: clean(&testbed.changed),
        configuration: clean(&testbed.configuration),
        server_processors: pinned.map(|pinned| pinned.servers.clone()),
        client_processors: pinned.map(|pinned| pinned.clients.clone()),
        disk: testbed.disk.clone(),
    }
}

/// Returns the value of a setting, redacted if it is secret.
fn clean(name: &str, value: &str) -> String {
    // `masterauth` is a password, `authenticator` and `tls-auth-clients` are none.
    let is_secret =
        redact::names_secret(name) && (!name.contains("auth") || name.ends_with("auth"));
    match value {
        "" => String::new(),
        _ if is_secret => MASK.to_owned(),
        _ => redact::hide(redact::redact(value).into()).into_owned(),
    }
}

/// Returns what a result discloses of a node.
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

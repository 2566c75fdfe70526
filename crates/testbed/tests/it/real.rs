//! Testbeds of servers that no registry has, where a variable names them: three nodes come up, each
//! serves by the address that the cluster announces, one is killed and started again, and its copies
//! come back. `cargo xtask real` runs them.

use std::time::{Duration, Instant};

use kvdyno_core::workload::fault::NodeFault;
use kvdyno_testbed::{Deployment, Role, Testbed};

/// A testbed; none where no variable names its program.
fn up(variable: &str, words: &str) -> Option<Deployment> {
    if std::env::var_os(variable).is_none() {
        println!("{variable} names no program: not run against a real server");
        return None;
    }
    Some(Deployment::up(words).unwrap_or_else(|error| panic!("{words}: {error}")))
}

/// Waits until every copy is there; how long that took.
fn until_whole(testbed: &mut Deployment) -> Duration {
    let begin = Instant::now();
    loop {
        match testbed.whole() {
            Some(Ok(())) => return begin.elapsed(),
            Some(Err(missing)) => assert!(begin.elapsed() < Duration::from_secs(300), "{missing}"),
            None => panic!("the servers can tell it"),
        }
        std::thread::sleep(Duration::from_millis(500));
    }
}

fn survives_a_kill(mut testbed: Deployment, version: &str, node: &str) {
    let told = testbed.describe();
    for step in &told.steps {
        println!("{}: {:?}", step.name, step.took);
    }
    println!("{} {:?} ready after {:?}", told.request, told.version, told.ready_after);
    assert!(told.version.as_ref().is_some_and(|v| v.starts_with(version)), "{:?}", told.version);
    // A fault of node number 1 is one of a node that has records.
    let nodes = testbed.nodes();
    assert!(nodes[0].name.ends_with("-1") && nodes[0].role != Some(Role::Observer), "{nodes:?}");
    println!("whole after {:?}", until_whole(&mut testbed));
    testbed.act(node, NodeFault::Kill).unwrap();
    let begin = Instant::now();
    testbed.act(node, NodeFault::Restart).unwrap();
    println!("{node} serves again after {:?}", begin.elapsed());
    println!("whole {:?} after that", until_whole(&mut testbed));
    let nodes = testbed.nodes();
    assert!(nodes.iter().all(|node| node.running), "{nodes:?}");
}

#[test]
fn aerospike() {
    let Some(testbed) = up("KVDYNO_ASD", "aerospike:3") else { return };
    survives_a_kill(testbed, "8", "aerospike-2");
}

#[test]
fn riak() {
    let Some(testbed) = up("KVDYNO_RIAK", "riak:3") else { return };
    survives_a_kill(testbed, "3", "riak-2");
}

#[test]
fn riak_in_memory_promises_nothing() {
    let Some(mut testbed) = up("KVDYNO_RIAK", "riak?backend=memory") else { return };
    assert!(testbed.describe().url.ends_with("?backend=memory"));
}

#[test]
fn mongodb() {
    let Some(testbed) = up("KVDYNO_MONGOD", "mongodb:3") else { return };
    survives_a_kill(testbed, "", "mongodb-2");
}

//! Redis Cluster, sentinels and Valkey are started for real, lose a node, and go away whole.

use std::net::TcpStream;
use std::time::{Duration, Instant};

use kvdyno_core::workload::fault::NodeFault;
use kvdyno_testbed::{Deployment, Role, Testbed, install, registry};

fn up(words: &str) -> Deployment {
    Deployment::up(words).unwrap_or_else(|error| panic!("{words}: {error}"))
}

fn value<'a>(pairs: &'a [(String, String)], name: &str) -> Option<&'a str> {
    pairs.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
}

fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !holds() {
        assert!(begin.elapsed() < Duration::from_secs(90), "{what}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn with_role(testbed: &mut Deployment, role: Role) -> Vec<String> {
    let nodes = testbed.nodes().into_iter().filter(|node| node.running && node.role == Some(role));
    nodes.map(|node| node.name).collect()
}

fn goes_whole(mut testbed: Deployment) {
    let told = testbed.describe();
    let folder = testbed.site().root().to_owned();
    drop(testbed);
    assert!(!folder.exists(), "{}", told.kind);
    for node in &told.nodes {
        assert!(TcpStream::connect(&node.address).is_err(), "{}", node.name);
    }
}

#[test]
fn a_cluster_replaces_a_primary_and_takes_and_gives_nodes() {
    let mut testbed = up("redis-cluster:6?persistence=aof-everysec&node-timeout=1500ms");
    let told = testbed.describe();
    assert_eq!(value(&told.configuration, "cluster-node-timeout"), Some("1500"));
    assert_eq!(value(&told.configuration, "appendonly"), Some("yes"));
    assert_eq!(value(&told.changed, "cluster-enabled"), Some("yes"));
    assert!(told.steps.iter().any(|step| step.name == "form the cluster"));
    assert!(told.nodes.iter().all(|node| told.url.contains(&node.address)));
    let first = with_role(&mut testbed, Role::Primary);
    assert_eq!((first.len(), with_role(&mut testbed, Role::Replica).len()), (3, 3));
    testbed.act(&first[0], NodeFault::Kill).unwrap();
    eventually("a replica takes over", || with_role(&mut testbed, Role::Primary).len() == 3);
    testbed.act(&first[0], NodeFault::Restart).unwrap();
    eventually("it comes back as a replica", || {
        with_role(&mut testbed, Role::Replica).contains(&first[0])
    });
    testbed.add_node().unwrap_or_else(|error| panic!("{error}"));
    assert!(with_role(&mut testbed, Role::Primary).contains(&"redis-7".to_owned()));
    testbed.act("redis-7", NodeFault::Remove).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(testbed.nodes().len(), 6);
    assert_eq!(with_role(&mut testbed, Role::Primary).len(), 3);
    goes_whole(testbed);
}

#[test]
fn a_cluster_that_cannot_be_is_refused_with_advice() {
    let error = Deployment::up("redis-cluster:6?replicas=2").err().expect("9 nodes are needed");
    assert!(error.to_string().contains("redis-cluster:9"), "{error}");
    let mut testbed = up("redis-cluster:3?replicas=0");
    assert_eq!(with_role(&mut testbed, Role::Primary).len(), 3);
    goes_whole(testbed);
}

#[test]
fn sentinels_replace_a_primary() {
    let mut testbed = up("redis-sentinel:2?down-after=1s&memory=64MiB");
    let told = testbed.describe();
    assert_eq!(told.nodes.len(), 5);
    assert_eq!(value(&told.configuration, "maxmemory"), Some("67108864"));
    assert_eq!(value(&told.changed, "down-after-milliseconds"), Some("1000"));
    assert!(told.version.is_some() && told.url.ends_with("/mymaster"), "{}", told.url);
    assert_eq!(with_role(&mut testbed, Role::Primary), ["redis-1"]);
    assert_eq!(with_role(&mut testbed, Role::Replica), ["redis-2"]);
    assert_eq!(with_role(&mut testbed, Role::Observer).len(), 3);
    testbed.act("redis-1", NodeFault::Kill).unwrap();
    eventually("the replica takes over", || with_role(&mut testbed, Role::Primary) == ["redis-2"]);
    testbed.act("redis-1", NodeFault::Restart).unwrap();
    // On a busy machine the new primary may seem down for a second, and be replaced in its turn.
    eventually("one is the primary and the other its replica", || {
        let [primaries, replicas] =
            [Role::Primary, Role::Replica].map(|role| with_role(&mut testbed, role).len());
        (primaries, replicas) == (1, 1)
    });
    goes_whole(testbed);
}

#[test]
fn valkey_is_fetched_and_tells_its_settings() {
    let kind = registry::kind("valkey").expect("it is registered");
    install::install(kind.software, &|_| {}).unwrap_or_else(|error| panic!("{error}"));
    let mut testbed = up("valkey?persistence=aof-always");
    let told = testbed.describe();
    assert!(told.url.starts_with("valkey://"));
    assert!(told.version.is_some_and(|version| version.starts_with("9.")));
    assert_eq!(value(&told.configuration, "appendfsync"), Some("always"));
    testbed.act("valkey-1", NodeFault::Restart).unwrap();
    goes_whole(testbed);
}

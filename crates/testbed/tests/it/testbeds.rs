//! Each testbed of this file is started for real, serves, is disturbed, and goes away whole.

use std::collections::HashSet;
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use kvdyno_core::workload::fault::NodeFault;
use kvdyno_testbed::{Deployment, Description, NodeDescription, Role, Testbed};

fn up(words: &str) -> Deployment {
    Deployment::up(words).unwrap_or_else(|error| panic!("{words}: {error}"))
}

fn value<'a>(pairs: &'a [(String, String)], name: &str) -> Option<&'a str> {
    pairs.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
}

fn port(node: &NodeDescription) -> u16 {
    node.address.rsplit_once(':').unwrap().1.parse().unwrap()
}

fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !holds() {
        assert!(begin.elapsed() < Duration::from_secs(60), "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Everything that a testbed has on this machine is gone once it is.
fn goes_whole(mut testbed: Deployment) {
    let told = testbed.describe();
    let folder: PathBuf = testbed.site().root().to_owned();
    assert!(folder.exists());
    drop(testbed);
    assert!(!folder.exists(), "{}", told.kind);
    for node in &told.nodes {
        if let Some(pid) = node.pid {
            assert!(!Path::new(&format!("/proc/{pid}")).exists(), "{}", node.name);
        }
        assert!(TcpStream::connect(&node.address).is_err(), "{}", node.name);
    }
}

fn check_described(told: &Description, nodes: usize) {
    assert_eq!(told.nodes.len(), nodes);
    assert!(told.version.is_some(), "{told:?}");
    assert!(!told.steps.is_empty());
    let steps: Duration = told.steps.iter().map(|step| step.took).sum();
    assert!(told.ready_after >= steps);
    let places: HashSet<_> = told.nodes.iter().map(|node| &node.address).collect();
    assert_eq!(places.len(), nodes);
    for node in &told.nodes {
        assert!(node.running && node.pid.is_some(), "{node:?}");
        assert!(told.url.contains(&node.address), "{}", told.url);
    }
}

#[test]
fn redis_keeps_what_its_persistence_says() {
    let mut testbed = up("redis?persistence=aof-always&rewrites=held-off&memory=64MiB");
    let told = testbed.describe();
    check_described(&told, 1);
    assert_eq!(value(&told.configuration, "appendfsync"), Some("always"));
    assert_eq!(value(&told.configuration, "maxmemory"), Some("67108864"));
    assert_eq!(value(&told.configuration, "auto-aof-rewrite-percentage"), Some("0"));
    assert_eq!(value(&told.changed, "appendonly"), Some("yes"));
    let address = told.nodes[0].address.parse().unwrap();
    let ask = |words: &str| {
        let request = format!("{words}\r\n");
        kvdyno_testbed::conversation(address, request.as_bytes(), b"\r\n").unwrap()
    };
    assert_eq!(ask("SET k v"), "+OK\r\n");
    testbed.act("redis-1", NodeFault::Kill).unwrap();
    assert!(!testbed.nodes()[0].running);
    testbed.act("redis-1", NodeFault::Restart).unwrap();
    assert_eq!(testbed.nodes()[0].address, told.nodes[0].address);
    assert_eq!(ask("GET k"), "$1\r\nv\r\n");
    let error = testbed.act("redis-2", NodeFault::Kill).unwrap_err().to_string();
    assert_eq!(error, "there is no node redis-2; did you mean `redis-1`?");
    let error = testbed.act("redis-1", NodeFault::Remove).unwrap_err().to_string();
    assert_eq!(error, "testbed redis cannot give up a node while it is up");
    goes_whole(testbed);
}

#[test]
fn two_testbeds_of_many_servers_do_not_meet() {
    let (mut one, mut two) = (up("redis-sharded:4"), up("redis-sharded:4?persistence=rdb"));
    let (first, second) = (one.describe(), two.describe());
    check_described(&first, 4);
    check_described(&second, 4);
    let ports: Vec<u16> = first.nodes.iter().map(port).collect();
    assert!(ports.is_sorted() && ports[3] < ports[0] + 200);
    let places: HashSet<_> =
        first.nodes.iter().chain(&second.nodes).map(|node| &node.address).collect();
    assert_eq!(places.len(), 8);
    goes_whole(one);
    goes_whole(two);
}

#[test]
fn memcached_tells_its_settings() {
    let mut testbed = up("memcached:3?memory=32MiB&full=refuse");
    let told = testbed.describe();
    check_described(&told, 3);
    assert_eq!(value(&told.configuration, "maxbytes"), Some("33554432"));
    assert_eq!(value(&told.configuration, "evictions"), Some("off"));
    assert_eq!(told.changed.len(), 2);
    goes_whole(testbed);
}

#[test]
fn etcd_elects_another_leader() {
    let mut testbed = up("etcd:3");
    check_described(&testbed.describe(), 3);
    let leader = |testbed: &mut Deployment| {
        let nodes = testbed.nodes();
        let mut leaders = nodes.into_iter().filter(|node| node.role == Some(Role::Primary));
        leaders.next().map(|node| node.name)
    };
    let first = leader(&mut testbed).expect("a leader");
    testbed.act(&first, NodeFault::Kill).unwrap();
    eventually("another leads", || leader(&mut testbed).is_some_and(|name| name != first));
    testbed.act(&first, NodeFault::Restart).unwrap();
    eventually("all know the leader", || testbed.nodes().iter().all(|node| node.role.is_some()));
    goes_whole(testbed);
}

#[test]
fn nats_elects_another_leader_and_tells_when_all_replicas_are_there() {
    let mut testbed = up("nats:3?sync=always");
    let told = testbed.describe();
    check_described(&told, 3);
    assert_eq!(value(&told.configuration, "sync_always"), Some("true"));
    assert_eq!(value(&told.configuration, "num_replicas"), Some("3"));
    assert_eq!(value(&told.changed, "sync_interval"), Some("always"));
    let leader = |testbed: &mut Deployment| {
        let nodes = testbed.nodes();
        let mut leaders = nodes.into_iter().filter(|node| node.role == Some(Role::Primary));
        leaders.next().map(|node| node.name)
    };
    let first = leader(&mut testbed).expect("a leader");
    testbed.act(&first, NodeFault::Kill).unwrap();
    eventually("another leads", || leader(&mut testbed).is_some_and(|name| name != first));
    testbed.act(&first, NodeFault::Restart).unwrap();
    eventually("all have a role", || testbed.nodes().iter().all(|node| node.role.is_some()));
    goes_whole(testbed);
    let error = Deployment::up("nats:2?replicas=3").err().expect("refused").to_string();
    assert!(error.contains("2 nodes cannot keep 3 replicas"), "{error}");
}

#[test]
fn tarantool_has_a_primary_and_tells_when_its_replicas_have_all() {
    let mut testbed = up("tarantool:3?wal=fsync&memory=64MiB");
    let told = testbed.describe();
    check_described(&told, 3);
    assert_eq!(value(&told.configuration, "wal_mode"), Some("fsync"));
    assert_eq!(value(&told.configuration, "feedback_enabled"), Some("false"));
    assert_eq!(value(&told.changed, "memtx_memory"), Some("67108864"));
    let roles: Vec<_> = testbed.nodes().iter().map(|node| node.role).collect();
    assert_eq!(roles, [Some(Role::Primary), Some(Role::Replica), Some(Role::Replica)]);
    eventually("all have all", || testbed.whole() == Some(Ok(())));
    testbed.act("tarantool-1", NodeFault::Kill).unwrap();
    // Nothing takes over for it.
    let nodes = testbed.nodes();
    let role = |place: usize| nodes[place].role;
    assert_eq!([role(0), role(1), role(2)], [None, Some(Role::Replica), Some(Role::Replica)]);
    testbed.act("tarantool-1", NodeFault::Restart).unwrap();
    eventually("it has its role", || testbed.nodes()[0].role == Some(Role::Primary));
    goes_whole(testbed);
}

#[test]
fn mongodb_is_ferretdb_where_no_mongod_is_named() {
    let mut testbed = up("mongodb");
    let told = testbed.describe();
    check_described(&told, 1);
    assert_eq!(told.nodes[0].role, Some(Role::Primary));
    testbed.act("mongodb-1", NodeFault::Kill).unwrap();
    assert_eq!(testbed.nodes()[0].role, None);
    testbed.act("mongodb-1", NodeFault::Restart).unwrap();
    assert_eq!(testbed.nodes()[0].role, Some(Role::Primary));
    goes_whole(testbed);
    if std::env::var_os("KVDYNO_MONGOD").is_some() {
        return a_replica_set_elects_another_primary();
    }
    for words in ["mongodb:3", "mongodb?memory=256MiB"] {
        let error = Deployment::up(words).err().expect(words).to_string();
        assert!(error.contains("KVDYNO_MONGOD"), "{error}");
    }
}

/// Only where a real `mongod` is named.
fn a_replica_set_elects_another_primary() {
    let mut testbed = up("mongodb:3?election=2s");
    let primary = |testbed: &mut Deployment| {
        let mut nodes = testbed.nodes().into_iter();
        nodes.find(|node| node.role == Some(Role::Primary)).map(|node| node.name)
    };
    let first = primary(&mut testbed).expect("a primary");
    testbed.act(&first, NodeFault::Kill).unwrap();
    eventually("another primary", || primary(&mut testbed).is_some_and(|name| name != first));
    testbed.act(&first, NodeFault::Restart).unwrap();
    eventually("all have a role", || testbed.nodes().iter().all(|node| node.role.is_some()));
    goes_whole(testbed);
}

#[test]
fn etcd_loses_all_members_at_once_takes_another_and_gives_one_up() {
    let mut testbed = up("etcd:3");
    let names: Vec<String> = testbed.nodes().into_iter().map(|node| node.name).collect();
    let running =
        |testbed: &mut Deployment| testbed.nodes().iter().filter(|node| node.running).count();
    testbed.act_on(&names, &NodeFault::Kill.into()).unwrap();
    assert_eq!(running(&mut testbed), 0);
    // None of them serves before another does, too.
    testbed.act_on(&names, &NodeFault::Restart.into()).unwrap();
    assert_eq!(running(&mut testbed), 3);
    assert_eq!(testbed.add_node().unwrap(), "etcd-4");
    let members = |testbed: &mut Deployment| {
        let address = testbed.nodes()[3].address.parse().unwrap();
        let told = kvdyno_testbed::http::request(address, "POST", "/v3/cluster/member/list", "{}");
        told.unwrap().1.matches("clientURLs").count()
    };
    assert_eq!(members(&mut testbed), 4);
    // The leader leaves: the others elect another.
    eventually("all know the leader", || testbed.nodes().iter().all(|node| node.role.is_some()));
    testbed.act("etcd-1", NodeFault::Remove).unwrap();
    let left: Vec<String> = testbed.nodes().into_iter().map(|node| node.name).collect();
    assert_eq!(left, ["etcd-2", "etcd-3", "etcd-4"]);
    eventually("one leads", || testbed.nodes().iter().any(|node| node.role == Some(Role::Primary)));
    testbed.act("etcd-4", NodeFault::Restart).unwrap();
    // Several at once, one of which does not run: none is touched.
    testbed.act("etcd-2", NodeFault::Kill).unwrap();
    let both = ["etcd-4".to_owned(), "etcd-2".to_owned()];
    let error = testbed.act_on(&both, &NodeFault::Pause.into()).unwrap_err().to_string();
    assert_eq!(error, "etcd-2 does not run");
    testbed.act("etcd-2", NodeFault::Restart).unwrap();
    goes_whole(testbed);
}

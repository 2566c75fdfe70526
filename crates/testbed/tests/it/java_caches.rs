//! The Infinispan and the Ehcache server: started for real, told of, ended and started again.

use std::path::PathBuf;

use kvdyno_core::workload::fault::NodeFault;
use kvdyno_testbed::{Deployment, Description, Testbed, http};

fn up(words: &str) -> Deployment {
    Deployment::up(words).unwrap_or_else(|error| panic!("{words}: {error}"))
}

fn value<'a>(pairs: &'a [(String, String)], name: &str) -> Option<&'a str> {
    pairs.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
}

fn status(told: &Description, method: &str, path: &str) -> u16 {
    http::request(told.nodes[0].address.parse().unwrap(), method, path, "").expect("an answer").0
}

/// Kills and restarts the only node, which then serves with no record left.
fn forgets_all_and_goes_whole(mut testbed: Deployment, record: &str) {
    let told = testbed.describe();
    let node = &told.nodes[0];
    assert!((200..300).contains(&status(&told, "PUT", record)));
    assert_eq!(status(&told, "GET", record), 200);
    testbed.act(&node.name, NodeFault::Kill).unwrap();
    testbed.act(&node.name, NodeFault::Restart).unwrap();
    assert_eq!(status(&told, "GET", record), 404);
    let folder: PathBuf = testbed.site().root().to_owned();
    assert!(folder.exists());
    drop(testbed);
    assert!(!folder.exists());
    assert!(std::net::TcpStream::connect(&node.address).is_err());
}

#[test]
fn infinispan_serves_each_protocol_and_keeps_nothing() {
    let mut testbed = up("infinispan?endpoint=rest&records=5000&memory=256MiB&jit=quick");
    let told = testbed.describe();
    assert!(told.url.starts_with(&format!("rest+http://{}/rest/v2/", told.nodes[0].address)));
    assert_eq!(told.version.as_deref(), Some("15.2.6.Final"));
    let limit = "caches.bench.local-cache.memory.max-count";
    assert_eq!(value(&told.configuration, limit), Some("5000"), "{:?}", told.configuration);
    assert_eq!(value(&told.changed, "-Xmx"), Some("262144K"));
    forgets_all_and_goes_whole(testbed, "/rest/v2/caches/bench/k");
}

#[test]
fn ehcache_serves_rest_and_keeps_nothing() {
    let mut testbed = up("ehcache?records=7000&memory=128MiB&jit=quick");
    let told = testbed.describe();
    assert_eq!(value(&told.configuration, "maxElementsInMemory"), Some("7000"));
    assert_eq!(value(&told.configuration, "overflowToDisk"), Some("false"));
    assert_eq!(value(&told.changed, "maxElementsInMemory"), Some("7000"));
    forgets_all_and_goes_whole(testbed, "/ehcache/rest/bench/k");
}

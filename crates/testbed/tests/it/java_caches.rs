//! The Infinispan and the Ehcache server, and a Hazelcast cluster: started for real, told of, ended and started again.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use kvdyno_core::workload::fault::NodeFault;
use kvdyno_testbed::{Deployment, Description, Testbed, conversation, http};

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

#[test]
fn hazelcast_grows_gives_a_member_up_and_tells_when_all_backups_are_there() {
    let mut testbed = up("hazelcast:1?memory=128MiB&jit=quick&backups=2&silence=5s");
    let told = testbed.describe();
    assert_eq!(
        told.url,
        format!("memcached://{}?protocol=text&may-forget=false", told.nodes[0].address)
    );
    assert_eq!(told.version.as_deref(), Some("5.7.0"));
    assert_eq!(value(&told.configuration, "backup-count"), Some("2"));
    assert_eq!(value(&told.changed, "-Xmx"), Some("128M"));
    let ask = |at: &str, words: &str, end: &[u8]| {
        conversation(at.parse().unwrap(), words.as_bytes(), end).expect("an answer")
    };
    assert_eq!(ask(&told.nodes[0].address, "set k 0 0 4\r\nkept\r\n", b"\r\n"), "STORED\r\n");
    assert_eq!(testbed.add_node().unwrap(), "hazelcast-2");
    let begin = Instant::now();
    while testbed.whole() != Some(Ok(())) {
        assert!(begin.elapsed() < Duration::from_secs(60), "{:?}", testbed.whole());
        std::thread::sleep(Duration::from_millis(100));
    }
    testbed.act("hazelcast-1", NodeFault::Remove).unwrap();
    let left = testbed.describe();
    assert_eq!(
        left.nodes.iter().map(|node| node.name.as_str()).collect::<Vec<_>>(),
        ["hazelcast-2"]
    );
    // It had the one copy, and then the other member had it.
    let got = ask(&left.nodes[0].address, "get k\r\n", b"END\r\n");
    assert!(got.contains("\r\nkept\r\n"), "{got}");
    let error = testbed.act("hazelcast-2", NodeFault::Remove).unwrap_err().to_string();
    assert!(error.contains("the last member cannot leave"), "{error}");
}

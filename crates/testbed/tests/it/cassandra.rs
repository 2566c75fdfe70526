//! A Cassandra ring that grows, started for real. What single nodes, fixed rings, passwords and TLS
//! do is tested with the driver that uses them (crates/stores/tests/cassandra.rs).

use std::net::TcpStream;
use std::path::Path;

use kvdyno_core::workload::fault::NodeFault;
use kvdyno_testbed::{Deployment, Role, Testbed, TestbedRequest, install, process, registry};

fn value<'a>(pairs: &'a [(String, String)], name: &str) -> Option<&'a str> {
    pairs.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
}

#[test]
fn a_ring_takes_another_node_merges_gives_one_up_and_goes_whole() {
    let software = registry::kind("cassandra").unwrap().software;
    install::install(software, &|_| {}).unwrap_or_else(|error| panic!("{error}"));
    let words = "cassandra?ring=vnodes&sync=batch&replication=2&memory=300MiB&jit=quick";
    let mut testbed = Deployment::up(words).unwrap_or_else(|error| panic!("{error}"));
    let told = testbed.describe();
    assert!(told.url.ends_with("/kvdyno?replication=2"), "{}", told.url);
    assert_eq!(told.version.as_deref(), Some("5.0.9"));
    // As the server itself tells it.
    assert_eq!(value(&told.configuration, "commitlog_sync"), Some("batch"));
    assert_eq!(value(&told.configuration, "num_tokens"), Some("16"));
    assert_eq!(value(&told.changed, "commitlog_sync"), Some("batch"));
    assert_eq!(value(&told.changed, "num_tokens"), None, "that is the default");
    testbed.add_node().unwrap_or_else(|error| panic!("{error}"));
    let nodes = testbed.nodes();
    let names: Vec<&str> = nodes.iter().map(|node| node.name.as_str()).collect();
    assert_eq!(names, ["cassandra-1", "cassandra-2"]);
    assert!(nodes.iter().all(|node| node.running && node.role == Some(Role::Peer)));
    // What each unpacked lies where it goes away with it.
    for node in testbed.site().nodes() {
        let folder = node.server.folder().display().to_string();
        let libraries = process::run(Path::new("find"), [&folder, "-name", "*.so"]).unwrap();
        assert!(!libraries.trim().is_empty(), "{folder}");
    }
    // Files of data in the folder that has most of them; a folder is a table's.
    let most = |testbed: &Deployment| {
        let find = "find . -name '*-Data.db' -printf '%h\\n' | sort | uniq -c | sort -n | tail -1";
        let script =
            format!("cd {} && {find}", testbed.site().nodes()[0].server.folder().display());
        let counted = process::run(Path::new("sh"), ["-c", &script]).unwrap();
        counted.split_whitespace().next().map_or(0, |count| count.parse::<u32>().unwrap())
    };
    let used = testbed.act("cassandra-1", NodeFault::Compact);
    assert_eq!(used.unwrap_or_else(|error| panic!("{error}")), "cassandra's own command");
    assert_eq!(most(&testbed), 1, "each table is merged into one file");
    let log = std::fs::read_to_string(testbed.site().nodes()[0].server.log()).unwrap();
    assert!(log.contains("Compacted ("), "{log}");
    testbed.act("cassandra-2", NodeFault::Remove).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(testbed.nodes().len(), 1);
    let error = testbed.act("cassandra-1", NodeFault::Remove).unwrap_err().to_string();
    assert_eq!(error, "the last node cannot leave");
    let folder = testbed.site().root().to_owned();
    drop(testbed);
    assert!(!folder.exists());
    assert!(nodes.iter().all(|node| TcpStream::connect(&node.address).is_err()));
}

#[test]
fn what_cannot_be_is_refused_before_anything_starts() {
    for (words, hint) in [
        ("cassandra:13", "1 to 12"),
        ("cassandra?sync=periodical", "periodic"),
        ("cassandra?replication=0", "1 to 12"),
    ] {
        let error =
            TestbedRequest::parse(words).err().unwrap_or_else(|| panic!("{words}")).to_string();
        assert!(error.contains(hint), "{words}: {error}");
    }
}

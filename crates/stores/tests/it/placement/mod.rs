//! Placements of records as other clients place them: what kvdyno wrote to several real servers, the real client finds,
//! record for record. Of 1,000 records on three servers a client that places otherwise would miss some 670.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::harness::{Single, names, run, testbed};
use crate::python::python_with;
use crate::reached::{free_port, twemproxy};
use kvdyno_core::store::Store;
use kvdyno_stores::StoreUrl;
use kvdyno_stores::memcached::MemcachedStore;
use kvdyno_stores::redis::RedisStore;
use kvdyno_testbed::{Deployment, Testbed};

const RECORDS: usize = 1_000;
/// Libraries of Python, as the Python Package Index has them. pylibmc carries libmemcached 1.0.18.
const PACKAGES: [&str; 2] = ["pylibmc==1.6.3", "pymemcache==4.0.0"];
/// Jedis with the last version of `ShardedJedis`, and what it needs.
const JEDIS: &str = "<project xmlns='http://maven.apache.org/POM/4.0.0'><modelVersion>4.0.0</modelVersion>\
    <groupId>kvdyno</groupId><artifactId>placement</artifactId><version>1</version><packaging>pom</packaging>\
    <dependencies><dependency><groupId>redis.clients</groupId><artifactId>jedis</artifactId>\
    <version>3.10.0</version></dependency></dependencies></project>";

fn addresses(testbed: &mut Deployment) -> Vec<String> {
    testbed.nodes().iter().map(|node| node.address.clone()).collect()
}

/// Writes the records by one of our drivers, in batches.
async fn load<S: Store>(store: &S, prefix: &str) {
    let mut client = Single::new(store.connect(1).await.unwrap());
    for batch in names(prefix, RECORDS).chunks(100) {
        client.set_all(batch, b"v", None).await.unwrap();
    }
}

/// Runs a client, and returns how many records it found.
fn found(command: &mut Command) -> usize {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let (out, err) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    out.trim().parse().unwrap_or_else(|_| panic!("{command:?}: {out}{err}"))
}

/// Returns the folder with the jars of Jedis, which Maven fetches once.
fn jars() -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("jedis-3.10.0");
    if !folder.join("ready").exists() {
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("pom.xml"), JEDIS).unwrap();
        let goal = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies";
        let mut maven = Command::new("mvn");
        maven.args(["-q", "-B", goal, "-DoutputDirectory=lib", "-DincludeScope=runtime"]);
        let status = maven.current_dir(&folder).status().expect("apt-get install maven");
        assert!(status.success(), "{maven:?}");
        std::fs::write(folder.join("ready"), "").unwrap();
    }
    folder.join("lib")
}

/// Returns servers as clients are told of them: `HOST:PORT`, with a weight behind each.
fn weighted(servers: &[String], weights: [u32; 3]) -> Vec<String> {
    servers.iter().zip(weights).map(|(server, weight)| format!("{server}:{weight}")).collect()
}

#[test]
fn libmemcached_and_pymemcache_find_every_record_in_memcached() {
    let python = python_with(&PACKAGES);
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/placement/read.py");
    let mut testbed = testbed("memcached:3");
    let servers = addresses(&mut testbed);
    // A prefix for each: what lies on several servers, any placement would find.
    for (prefix, hash, client, named) in [
        ("even", "ketama", "pylibmc", servers.clone()),
        ("uneven", "ketama&weights=3,1,2", "pylibmc", weighted(&servers, [3, 1, 2])),
        ("best", "rendezvous", "pymemcache", servers.clone()),
    ] {
        let url = format!("{}?hash={hash}", testbed.url());
        let store = MemcachedStore::open(&mut StoreUrl::parse(&url).unwrap()).unwrap();
        run(load(&store, prefix));
        let mut command = Command::new(&python);
        command.args([script, client, prefix, &RECORDS.to_string()]).args(named);
        assert_eq!(found(&mut command), RECORDS, "{url}");
    }
}

#[test]
fn jedis_and_twemproxy_find_every_record_in_redis() {
    let mut testbed = testbed("redis-sharded:3");
    let servers = addresses(&mut testbed);
    let load_by = |hash: &str, prefix| {
        let url = format!("{}?hash={hash}", testbed.url());
        run(load(&RedisStore::open(&mut StoreUrl::parse(&url).unwrap()).unwrap(), prefix));
    };
    let jars = format!("{}/*", jars().display());
    let program = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/placement/Read.java");
    for (prefix, hash, weights) in
        [("even", "jedis", [1; 3]), ("uneven", "jedis&weights=2,1,3", [2, 1, 3])]
    {
        load_by(hash, prefix);
        let mut command = Command::new("java");
        command.args(["-cp", &jars, program, prefix, &RECORDS.to_string()]);
        assert_eq!(found(command.args(weighted(&servers, weights))), RECORDS, "{hash}");
    }
    for (prefix, hash, weights) in
        [("fair", "twemproxy", [1; 3]), ("unfair", "twemproxy&weights=2,1,3", [2, 1, 3])]
    {
        load_by(hash, prefix);
        let folder = tempfile::tempdir().unwrap();
        let port = free_port();
        let _proxy = twemproxy(folder.path(), port, &weighted(&servers, weights), true);
        let proxied =
            RedisStore::open(&mut StoreUrl::parse(&format!("redis://127.0.0.1:{port}")).unwrap());
        run(async {
            let mut client = Single::new(proxied.unwrap().connect(1).await.unwrap());
            let values = client.get_all(&names(prefix, RECORDS)).await.unwrap();
            assert_eq!(values.iter().flatten().count(), RECORDS, "{hash}");
        });
    }
}

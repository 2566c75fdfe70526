//! The Redis driver on a primary that real sentinels watch: fail-over, demotion, replicas, passwords.

use std::net::SocketAddr;
use std::process::Command;
use std::time::{Duration, Instant};

use crate::harness::{Single, in_flight, names, run};
use kvdyno_core::store::{Certainty, Consistency, ErrorClass, Promise, Store};
use kvdyno_core::workload::fault::NodeFault;
use kvdyno_stores::StoreUrl;
use kvdyno_stores::conformance::conformance;
use kvdyno_stores::redis::{RedisClient, RedisStore, RedisTransport};
use kvdyno_testbed::{
    Certificates, Deployment, Launch, NodeDescription, Role, Site, Testbed, TestbedRequest, process,
};

type Redis = Single<RedisClient, RedisTransport>;

fn store(url: &str) -> RedisStore {
    RedisStore::open(&mut StoreUrl::parse(url).unwrap()).unwrap()
}

async fn connect(store: &RedisStore) -> Redis {
    Single::new(store.connect(1).await.unwrap())
}

fn at(node: &NodeDescription) -> SocketAddr {
    node.address.parse().unwrap()
}

/// Returns what `redis-cli` prints.
fn cli(server: SocketAddr, words: &[&str]) -> String {
    let (ip, port) = (server.ip().to_string(), server.port().to_string());
    let output = Command::new("redis-cli").args(["-h", &ip, "-p", &port]).args(words).output();
    String::from_utf8_lossy(&output.expect("redis-cli").stdout).trim().to_owned()
}

fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !holds() {
        assert!(begin.elapsed() < Duration::from_secs(90), "{what}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn of_role(testbed: &mut Deployment, role: Role) -> Vec<NodeDescription> {
    testbed.nodes().into_iter().filter(|node| node.running && node.role == Some(role)).collect()
}

/// Returns the one primary, once there is one with `replicas` replicas and the sentinels agree on it.
fn settled_primary(testbed: &mut Deployment, replicas: usize) -> NodeDescription {
    let mut found = None;
    eventually("one primary that all agree on", || {
        let primaries = of_role(testbed, Role::Primary);
        let [primary] = primaries.as_slice() else { return false };
        let port = at(primary).port().to_string();
        let expected = format!("{}\n{port}", at(primary).ip());
        let sentinels = of_role(testbed, Role::Observer);
        let agree = sentinels.iter().all(|sentinel| {
            cli(at(sentinel), &["SENTINEL", "GET-MASTER-ADDR-BY-NAME", "mymaster"]) == expected
        });
        let linked = cli(at(primary), &["INFO", "replication"]);
        found = Some(primary.clone());
        agree && linked.matches("state=online").count() == replicas
    });
    found.unwrap()
}

#[test]
fn a_primary_with_two_replicas_and_three_sentinels() {
    let mut testbed = Deployment::up("redis-sentinel").unwrap_or_else(|error| panic!("{error}"));
    let url = testbed.url().to_owned();
    conformance(&store(&url)).unwrap_or_else(|failure| panic!("{failure}"));
    promises_are_told(&url);
    replicas_are_read(&url);
    a_dead_primary_is_replaced(&url, &mut testbed);
    a_primary_that_was_demoted_is_left(&url, &mut testbed);
    passwords_are_asked_for(&url, &mut testbed);
    a_dead_sentinel_is_no_matter(&url, &mut testbed);
}

#[test]
fn a_primary_and_its_sentinel_over_tls() {
    let settings = TestbedRequest::parse("redis-sentinel").unwrap().settings;
    let mut site = Site::new(settings, Box::new(|_| {}), Default::default()).unwrap();
    let (primary, sentinel) = (site.address(1, 6379).unwrap(), site.address(1, 26379).unwrap());
    let files = Certificates::make(site.root(), primary.ip()).unwrap();
    let tls = |address: SocketAddr| {
        format!(
            "bind {}\nport 0\ntls-port {}\ntls-cert-file {}\ntls-key-file {}\ntls-ca-cert-file {}\n\
             tls-auth-clients no\ntls-replication yes\nprotected-mode no\n",
            address.ip(),
            address.port(),
            files.certificate.display(),
            files.key.display(),
            files.authority.display()
        )
    };
    let watch = format!("sentinel monitor mymaster {} {} 1\n", primary.ip(), primary.port());
    let program = process::look_up("redis-server").expect("redis-server");
    for (name, address, more) in [("redis", primary, ""), ("sentinel", sentinel, watch.as_str())] {
        let config = site.write(name, "redis.conf", &(tls(address) + more)).unwrap();
        let as_sentinel = (address == sentinel).then_some("--sentinel");
        let launch = Launch::new(&program, address).arguments([config]).arguments(as_sentinel);
        site.start(name, None, launch).unwrap();
    }
    site.serve("redis-server").unwrap();
    run(async {
        let url = format!("rediss+sentinel://{sentinel}/mymaster?ca={}", files.authority.display());
        let mut redis = connect(&store(&url)).await;
        redis.set("k", b"v").await.unwrap();
        assert_eq!(redis.get("k").await, Ok(Some(b"v".to_vec())));
        let plain = format!("redis+sentinel://{sentinel}/mymaster?timeout=500ms");
        assert_eq!(store(&plain).connect(1).await.err().unwrap().class, ErrorClass::Refused);
    });
}

fn promises_are_told(url: &str) {
    run(async {
        let profile = store(url).profile().await.unwrap();
        assert_eq!(profile.consistency, Promise::declared(Consistency::Linearizable));
        for (name, value) in [("sentinels", "3"), ("connected_slaves", "2"), ("role", "master")] {
            let pair = (name.to_owned(), value.to_owned());
            assert!(profile.settings.contains(&pair), "{:?}", profile.settings);
        }
        let error = store(&url.replace("mymaster", "other")).profile().await.unwrap_err();
        assert!(error.message.contains("no primary called other"), "{error}");
    });
}

fn replicas_are_read(url: &str) {
    run(async {
        let lagging = store(&format!("{url}?read=replica"));
        let profile = lagging.profile().await.unwrap();
        assert_eq!(profile.consistency, Promise::checked(Consistency::Eventual));
        let mut redis = connect(&lagging).await;
        let keys = names("lag", 30);
        redis.set_all(&keys, b"v", None).await.unwrap();
        let begin = Instant::now();
        while redis.get_all(&keys).await.unwrap() != vec![Some(b"v".to_vec()); 30] {
            assert!(begin.elapsed() < Duration::from_secs(30), "replicas get what is written");
        }
        redis.set("lag0", b"new").await.unwrap();
        while redis.get("lag0").await.unwrap().unwrap() != b"new" {
            assert!(begin.elapsed() < Duration::from_secs(60), "replicas get what is written");
        }
    });
}

fn a_dead_primary_is_replaced(url: &str, testbed: &mut Deployment) {
    let old = settled_primary(testbed, 2);
    run(async {
        let keys = names("flight", 100);
        let mut connection = store(url).connect(100).await.unwrap();
        testbed.act(&old.name, NodeFault::Pause).unwrap();
        let harm = || testbed.act(&old.name, NodeFault::Kill).unwrap();
        for (n, answer) in in_flight(&mut connection, &keys, harm).await.iter().enumerate() {
            let error = answer.as_ref().unwrap_err();
            let certainty = if n % 2 == 0 { Certainty::Failed } else { Certainty::Indeterminate };
            assert_eq!(
                (error.class, error.certainty),
                (ErrorClass::Disconnected, certainty),
                "{n}"
            );
            assert!(error.connection_lost);
        }
        let mut redis = Single::new(connection);
        redis.set_until_it_succeeds("after", b"v").await;
        assert_eq!(redis.get("after").await, Ok(Some(b"v".to_vec())));
        let new = settled_primary(testbed, 1);
        assert_ne!(new.name, old.name);
        assert_eq!(cli(at(&new), &["GET", "after"]), "v");
        testbed.act(&old.name, NodeFault::Restart).unwrap();
        // It comes back as a replica, if only after the sentinels have told it so.
        // On a busy machine they may also have chosen again.
        settled_primary(testbed, 2);
        redis.set_until_it_succeeds("later", b"v").await;
    });
}

fn a_primary_that_was_demoted_is_left(url: &str, testbed: &mut Deployment) {
    let primary = settled_primary(testbed, 2);
    let replica = of_role(testbed, Role::Replica).remove(0);
    run(async {
        let store = store(url);
        let (mut single, mut batches) = (connect(&store).await, connect(&store).await);
        let (ip, port) = (at(&replica).ip().to_string(), at(&replica).port().to_string());
        assert_eq!(cli(at(&primary), &["REPLICAOF", &ip, &port]), "OK");
        let keys = names("demoted", 3);
        for answer in [single.set("k", b"v").await, batches.set_all(&keys, b"v", None).await] {
            let error = answer.unwrap_err();
            assert_eq!(
                (error.class, error.certainty),
                (ErrorClass::Unavailable, Certainty::Failed)
            );
            assert!(error.connection_lost && error.message.contains("READONLY"), "{error}");
        }
        // The sentinels still name it, and it is not taken for what they say.
        let error = single.set("k", b"v").await.unwrap_err();
        assert_eq!((error.class, error.certainty), (ErrorClass::Unavailable, Certainty::Failed));
        assert!(error.message.contains("is not the primary of mymaster"), "{error}");
        // The sentinels would put it right after half a minute.
        assert_eq!(cli(at(&primary), &["REPLICAOF", "NO", "ONE"]), "OK");
        single.set_until_it_succeeds("k", b"again").await;
        batches.set_until_it_succeeds("b", b"again").await;
    });
    settled_primary(testbed, 2);
}

fn passwords_are_asked_for(url: &str, testbed: &mut Deployment) {
    let sentinels = of_role(testbed, Role::Observer);
    for sentinel in &sentinels {
        cli(at(sentinel), &["SENTINEL", "SET", "mymaster", "auth-pass", "pw"]);
    }
    for node in testbed.nodes().iter().filter(|node| node.role != Some(Role::Observer)) {
        for option in ["masterauth", "requirepass"] {
            assert_eq!(cli(at(node), &["CONFIG", "SET", option, "pw"]), "OK");
        }
    }
    // One sentinel that wants a password of its own.
    let own = ["ACL", "SETUSER", "default", "resetpass", ">own"];
    assert_eq!(cli(at(&sentinels[0]), &own), "OK");
    let alone = format!("redis+sentinel://:pw@{}/mymaster", at(&sentinels[0]));
    run(async {
        let error = store(url).connect(1).await.err().expect("a password is needed");
        assert_eq!(error.class, ErrorClass::Rejected, "{error}");
        let mut redis = connect(&store(&url.replace("://", "://:pw@"))).await;
        redis.set_until_it_succeeds("secret", b"v").await;
        let error = store(&alone).connect(1).await.err().expect("the sentinel refuses");
        assert_eq!(error.class, ErrorClass::Rejected, "{error}");
        let mut redis = connect(&store(&format!("{alone}?sentinel-password=own"))).await;
        assert_eq!(redis.get("secret").await, Ok(Some(b"v".to_vec())));
    });
}

fn a_dead_sentinel_is_no_matter(url: &str, testbed: &mut Deployment) {
    let last = of_role(testbed, Role::Observer).pop().unwrap();
    testbed.act(&last.name, NodeFault::Pause).unwrap();
    run(async {
        let mut redis = connect(&store(&url.replace("://", "://:pw@"))).await;
        redis.set_until_it_succeeds("k", b"v").await;
    });
}

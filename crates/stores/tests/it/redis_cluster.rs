//! The Redis Cluster driver against real clusters: moved slots, dead nodes, fail-over.

use std::net::SocketAddr;
use std::process::Command;
use std::time::{Duration, Instant};

use crate::harness::{Single, assert_only_the_dead_fail, in_flight, names, run, spans, whole};
use crate::one_server::{RedisServer, RedisSettings};
use kvdyno_core::store::{Consistency, ErrorClass, Promise, Put, Store, Value};
use kvdyno_core::workload::fault::NodeFault;
use kvdyno_stores::StoreUrl;
use kvdyno_stores::conformance::conformance;
use kvdyno_stores::redis::{RedisClient, RedisStore, RedisTransport};
use kvdyno_testbed::{Deployment, Role, Testbed};

type Redis = Single<RedisClient, RedisTransport>;

fn store(url: &str) -> RedisStore {
    RedisStore::open(&mut StoreUrl::parse(url).unwrap()).unwrap()
}

async fn connect(store: &RedisStore) -> Redis {
    Single::new(store.connect(1).await.unwrap())
}

/// Returns what `redis-cli` prints.
fn cli(server: SocketAddr, words: &[&str]) -> String {
    let (ip, port) = (server.ip().to_string(), server.port().to_string());
    let output = Command::new("redis-cli").args(["-h", &ip, "-p", &port]).args(words).output();
    let output = output.expect("redis-cli");
    assert!(output.status.success(), "{words:?}: {output:?}");
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !holds() {
        assert!(begin.elapsed() < Duration::from_secs(90), "{what}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Name, address and id of a node.
struct Node {
    name: String,
    address: SocketAddr,
    id: String,
}

fn nodes(testbed: &mut Deployment, role: Role) -> Vec<Node> {
    let nodes = testbed.nodes().into_iter().filter(|node| node.running && node.role == Some(role));
    nodes
        .map(|node| {
            let address = node.address.parse().unwrap();
            let id = cli(address, &["CLUSTER", "MYID"]);
            Node { name: node.name, address, id }
        })
        .collect()
}

/// Returns the primary that has a key without being asked twice.
fn owner<'a>(primaries: &'a [Node], key: &str) -> &'a Node {
    let owns = |node: &&Node| !cli(node.address, &["EXISTS", key]).starts_with("MOVED");
    primaries.iter().find(owns).expect("some primary has the slot")
}

#[test]
fn a_cluster_of_six() {
    let mut testbed = Deployment::up("redis-cluster:6").unwrap_or_else(|error| panic!("{error}"));
    let url = testbed.url().to_owned();
    conformance(&store(&url)).unwrap_or_else(|failure| panic!("{failure}"));
    one_seed_is_enough_and_the_rest_is_asked(&url);
    batches_and_fields_go_to_their_slots(&url);
    replicas_are_read(&url);
    moved_slots_are_followed(&url, &mut testbed);
    a_dead_primary_is_replaced(&url, &mut testbed);
    a_password_is_asked_for_on_every_node(&url, &mut testbed);
}

fn one_seed_is_enough_and_the_rest_is_asked(url: &str) {
    run(async {
        let first = url.split(',').next().unwrap();
        let store = store(first);
        let profile = store.profile().await.unwrap();
        assert_eq!(profile.store, "redis");
        // Its replicas may take over, and may lack writes then.
        assert_eq!(profile.consistency, Promise::declared(Consistency::Linearizable));
        for (name, value) in [("primaries", "3"), ("replicas", "3"), ("redis_mode", "cluster")] {
            let pair = (name.to_owned(), value.to_owned());
            assert!(profile.settings.contains(&pair), "{:?}", profile.settings);
        }
        let mut redis = connect(&store).await;
        for key in names("seed", 300) {
            redis.set(&key, key.as_bytes()).await.unwrap();
        }
        drop(redis);
        let figures = store.figures().await;
        let requests = figures.iter().find(|figure| figure.name.starts_with("requests"));
        let requests = requests.expect("requests on each primary");
        let counts = requests.detail.split(", ").map(|part| part.rsplit_once(' ').unwrap().1);
        assert_eq!(counts.map(|count| count.parse::<u64>().unwrap()).sum::<u64>(), 300);
    });
}

fn batches_and_fields_go_to_their_slots(url: &str) {
    run(async {
        let mut redis = connect(&store(url)).await;
        let keys = names("batch", 200);
        redis.set_all(&keys, b"v", None).await.unwrap();
        let mut wanted = keys.clone();
        wanted.insert(3, "none".to_owned());
        let found = redis.get_all(&wanted).await.unwrap();
        assert_eq!(found.iter().filter(|value| value.is_none()).count(), 1);
        assert_eq!(found[3], None);
        redis.set_all(&keys[..20], b"v", Some(Duration::from_millis(150))).await.unwrap();
        let fields = spans(&[(0, 2), (1, 3)]);
        let put = |ttl| Put {
            value: Value::new(b"aabbb", &fields),
            record_fields: 2,
            ..whole(b"hash", b"", ttl)
        };
        redis.put(put(Some(Duration::from_millis(150)))).await.unwrap();
        assert_eq!(redis.get("hash").await.unwrap().unwrap().len(), 5);
        tokio::time::sleep(Duration::from_millis(400)).await;
        assert_eq!(redis.get("hash").await, Ok(None));
        let mut fresh = connect(&store(url)).await;
        assert_eq!(fresh.get_all(&keys[..20]).await.unwrap(), vec![None; 20]);
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
        for key in &keys {
            assert_eq!(redis.get(key).await, Ok(Some(b"v".to_vec())));
        }
        drop(redis);
        // Only the writes went to the primaries: one batch is a request to each of them.
        let figures = lagging.figures().await;
        let requests = figures.iter().find(|figure| figure.name.starts_with("requests")).unwrap();
        let counts = requests.detail.split(", ").map(|part| part.rsplit_once(' ').unwrap().1);
        assert_eq!(counts.map(|count| count.parse::<u64>().unwrap()).sum::<u64>(), 3);
    });
}

/// While a slot moves its old node sends us on for each key that it has no more (`ASK`), and after
/// that for good (`MOVED`).
fn moved_slots_are_followed(url: &str, testbed: &mut Deployment) {
    let primaries = nodes(testbed, Role::Primary);
    let from = owner(&primaries, "wanderer");
    let to = primaries.iter().find(|node| node.id != from.id).unwrap();
    let slot = cli(from.address, &["CLUSTER", "KEYSLOT", "wanderer"]);
    run(async {
        let mut redis = connect(&store(url)).await;
        redis.set("wanderer", b"old").await.unwrap();
        let set_slot = |on: &Node, words: [&str; 2]| {
            let told = cli(on.address, &["CLUSTER", "SETSLOT", &slot, words[0], words[1]]);
            assert_eq!(told, "OK");
        };
        set_slot(to, ["IMPORTING", &from.id]);
        set_slot(from, ["MIGRATING", &to.id]);
        // Still where it was.
        assert_eq!(redis.get("wanderer").await, Ok(Some(b"old".to_vec())));
        assert_eq!(redis.delete("wanderer").await, Ok(true));
        // From here on it is asked for at the new node.
        redis.set("wanderer", b"asked").await.unwrap();
        assert_eq!(redis.get("wanderer").await, Ok(Some(b"asked".to_vec())));
        let keys = ["other1", "wanderer", "other2"].map(str::to_owned);
        redis.set_all(&keys, b"batch", None).await.unwrap();
        assert_eq!(redis.get_all(&keys).await.unwrap(), vec![Some(b"batch".to_vec()); 3]);
        let fields = spans(&[(0, 1), (1, 1)]);
        let put = Put {
            value: Value::new(b"ab", &fields),
            record_fields: 2,
            ..whole(b"{wanderer}hash", b"", Some(Duration::from_secs(60)))
        };
        redis.put(put).await.unwrap();
        assert_eq!(redis.get("{wanderer}hash").await.unwrap().unwrap(), b"ab");
        for node in [to, from] {
            set_slot(node, ["NODE", &to.id]);
        }
        for key in ["wanderer", "other1"] {
            redis.set(key, b"moved").await.unwrap();
        }
        assert_eq!(redis.get_all(&keys[..2]).await.unwrap(), vec![Some(b"moved".to_vec()); 2]);
        assert_eq!(cli(to.address, &["GET", "wanderer"]), "moved");
        // A client that has just come knows the new node, once all nodes do.
        eventually("all nodes know of the slot", || {
            let told = primaries.iter().map(|node| cli(node.address, &["GET", "wanderer"]));
            told.filter(|told| told.starts_with("MOVED"))
                .all(|told| told.ends_with(&to.address.to_string()))
        });
    });
}

fn a_dead_primary_is_replaced(url: &str, testbed: &mut Deployment) {
    let primaries = nodes(testbed, Role::Primary);
    run(async {
        let store = store(url);
        let keys = names("flight", 100);
        let mut redis = connect(&store).await;
        redis.set_all(&keys, b"acknowledged", None).await.unwrap();
        let victim = owner(&primaries, &keys[0]);
        let on_victim: Vec<bool> =
            keys.iter().map(|key| owner(&primaries, key).id == victim.id).collect();
        // What its replica does not have yet would be lost; that is Redis, and not under test.
        let replicas = cli(victim.address, &["WAIT", "1", "30000"]);
        assert_eq!(replicas, "1");
        let mut connection = store.connect(100).await.unwrap();
        testbed.act(&victim.name, NodeFault::Pause).unwrap();
        let harm = || testbed.act(&victim.name, NodeFault::Kill).unwrap();
        let answers = in_flight(&mut connection, &keys, harm).await;
        assert_only_the_dead_fail(&answers, |n| on_victim[n]);
        let mut redis = Single::new(connection);
        let mine = keys.iter().zip(&on_victim).filter(|(_, on)| **on).map(|(key, _)| key);
        for key in mine {
            redis.set_until_it_succeeds(key, b"after").await;
            assert_eq!(redis.get(key).await, Ok(Some(b"after".to_vec())));
        }
        let others: Vec<String> =
            keys.iter().zip(&on_victim).filter(|(_, on)| !**on).map(|(k, _)| k.clone()).collect();
        let others = redis.get_all_once_it_serves(&others).await;
        assert!(others.iter().all(Option::is_some));
        testbed.act(&victim.name, NodeFault::Restart).unwrap();
        // It comes back as a replica of the one that took over.
        eventually("three replicas", || nodes(testbed, Role::Replica).len() == 3);
        redis.set_all(&keys, b"whole", None).await.unwrap();
        assert_eq!(redis.get_all(&keys).await.unwrap(), vec![Some(b"whole".to_vec()); 100]);
    });
}

fn a_password_is_asked_for_on_every_node(url: &str, testbed: &mut Deployment) {
    for node in testbed.nodes() {
        let address = node.address.parse().unwrap();
        for option in ["masterauth", "requirepass"] {
            assert_eq!(cli(address, &["CONFIG", "SET", option, "pw"]), "OK");
        }
    }
    run(async {
        let error = store(url).connect(1).await.err().expect("a password is needed");
        assert_eq!(error.class, ErrorClass::Rejected, "{error}");
        let with_password = url.replace("://", "://:pw@");
        let mut redis = connect(&store(&with_password)).await;
        let keys = names("secret", 50);
        redis.set_all(&keys, b"v", None).await.unwrap();
        assert_eq!(redis.get_all(&keys).await.unwrap(), vec![Some(b"v".to_vec()); 50]);
    });
}

#[test]
fn a_cluster_over_tls() {
    let option = |name: &str| (name.to_owned(), "yes".to_owned());
    let settings = RedisSettings {
        tls: true,
        password: Some("pw".to_owned()),
        options: vec![option("cluster-enabled"), option("tls-cluster")],
        ..RedisSettings::default()
    };
    let server = RedisServer::start(settings).unwrap();
    let ca = server.certificates().unwrap().authority.display().to_string();
    let words = ["--tls", "--cacert", &ca, "-a", "pw", "CLUSTER", "ADDSLOTSRANGE", "0", "16383"];
    let before = run(async {
        store(&server.url().replace("rediss", "rediss+cluster")).connect(1).await.err()
    });
    let before = before.expect("a cluster without slots is of no use");
    assert_eq!(before.class, ErrorClass::Unavailable, "{before}");
    assert_eq!(cli(server.address(), &words), "OK");
    run(async {
        let mut redis = connect(&store(&server.url().replace("rediss", "rediss+cluster"))).await;
        redis.set_until_it_succeeds("k", b"v").await;
        assert_eq!(redis.get("k").await, Ok(Some(b"v".to_vec())));
    });
}

#[test]
fn a_server_that_is_no_cluster_says_so() {
    let server = RedisServer::start(RedisSettings::default()).unwrap();
    run(async {
        let url = server.url().replace("redis://", "redis+cluster://");
        let error = store(&url).profile().await.unwrap_err();
        assert_eq!(error.class, ErrorClass::Rejected);
        assert!(error.message.contains("is it a cluster?"), "{error}");
    });
}

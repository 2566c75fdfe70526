//! The NATS driver against real NATS servers.

use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::Path;
use std::time::{Duration, Instant};

use crate::harness::{
    Single, a_killed_node_leaves_writes_indeterminate, keeps_answers_apart, names, run, testbed,
    until, whole,
};
use kvdyno_core::store::{
    Answer, Certainty, Consistency, Durability, ErrorClass, NoTransport, Promise, RequestError,
    Store,
};
use kvdyno_core::workload::fault::{NodeFault, Repair};
use kvdyno_stores::StoreUrl;
use kvdyno_stores::conformance::{ConformanceFinding, conformance};
use kvdyno_stores::nats::{NatsClient, NatsStore};
use kvdyno_testbed::{Certificates, Deployment, Launch, Role, Server, Testbed};

type Nats = Single<NatsClient, NoTransport>;

fn store(url: &str) -> NatsStore {
    NatsStore::open(&mut StoreUrl::parse(url).unwrap()).unwrap()
}

async fn connect(url: &str) -> Nats {
    Single::new(store(url).connect(1).await.unwrap_or_else(|error| panic!("{url}: {error}")))
}

/// The error of connecting.
async fn refusal(url: &str) -> RequestError {
    store(url).connect(1).await.err().expect(url)
}

fn outcome<T: std::fmt::Debug>(answer: Answer<T>) -> (ErrorClass, Certainty) {
    let error = answer.unwrap_err();
    (error.class, error.certainty)
}

/// The servers of a testbed's URL, without a bucket and options.
fn servers(url: &str) -> &str {
    url.split("/kvdyno").next().unwrap()
}

#[test]
fn one_server() {
    let mut server = testbed("nats");
    let url = server.describe().url;
    for read in ["leader", "direct"] {
        let report = conformance(&store(&format!("{url}&read={read}")))
            .unwrap_or_else(|failure| panic!("{read}: {failure}"));
        let not_claimed =
            report.findings.iter().filter(|(_, found)| *found == ConformanceFinding::NotClaimed);
        let not_claimed: Vec<_> = not_claimed.map(|(promise, _)| *promise).collect();
        assert_eq!(not_claimed, ["one field", "scan", "get batch", "put batch"], "{read}");
    }
    run(async {
        says_what_it_promises(&url).await;
        buckets_are_made_as_asked_and_taken_as_they_are(servers(&url)).await;
        what_is_not_taken_is_refused(&url).await;
        a_bucket_without_room_says_so(&url).await;
        keeps_answers_apart(&store(&url), 12).await;
        a_killed_node_leaves_writes_indeterminate(
            &store(&format!("{url}&timeout=30s")),
            &mut server,
            "nats-1",
            &[ErrorClass::Disconnected],
        )
        .await;
    });
}

async fn says_what_it_promises(url: &str) {
    let profile = store(url).profile().await.unwrap();
    assert_eq!(profile.durability, Promise::checked(Durability::ProcessKill));
    assert_eq!(profile.consistency, Promise::checked(Consistency::Linearizable));
    assert!(profile.version.is_some_and(|version| version.starts_with("2.")));
    let told = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    for setting in [told("sync_interval", "120s"), told("replicas", "1"), told("storage", "file")] {
        assert!(profile.settings.contains(&setting), "{setting:?}: {:?}", profile.settings);
    }
    assert!(profile.capabilities.ttl && !profile.capabilities.may_forget);
    // Nobody was asked when the server syncs.
    let unasked = store(&format!("{}/kvdyno", servers(url))).profile().await.unwrap();
    assert_eq!(unasked.durability, Promise::declared(Durability::ProcessKill));
}

async fn buckets_are_made_as_asked_and_taken_as_they_are(servers: &str) {
    let memory = store(&format!("{servers}/of-memory?storage=memory")).profile().await.unwrap();
    assert_eq!(memory.durability, Promise::checked(Durability::None));
    // It is there by now, and is found whatever the URL leaves out.
    let found = store(&format!("{servers}/of-memory")).profile().await.unwrap();
    assert_eq!(found.durability, Promise::checked(Durability::None));
    for (options, told) in [("storage=file", "is kept in memory"), ("replicas=3", "keeps 1 copies")]
    {
        let error = refusal(&format!("{servers}/of-memory?{options}")).await;
        assert_eq!((error.class, error.certainty), (ErrorClass::Rejected, Certainty::Failed));
        assert!(error.message.contains(told) && error.message.contains("of-memory"), "{error}");
    }
    // One server cannot keep three copies: what it says is told.
    let error = refusal(&format!("{servers}/of-three?replicas=3")).await;
    assert_eq!(error.certainty, Certainty::Failed);
    assert!(error.message.contains("replicas"), "{error}");
}

async fn what_is_not_taken_is_refused(url: &str) {
    let mut nats = connect(url).await;
    let error = nats.set("big", &vec![7; 3_000_000]).await.unwrap_err();
    assert_eq!((error.class, error.certainty), (ErrorClass::Rejected, Certainty::Failed));
    assert!(error.message.contains("max_payload") && !error.connection_lost, "{error}");
    assert_eq!(nats.get("big").await, Ok(None));
    for key in ["a b", "a*", "a>", ".a", "a.", "ä", ""] {
        for answer in [nats.set(key, b"v").await, nats.get(key).await.map(drop)] {
            assert_eq!(outcome(answer), (ErrorClass::Rejected, Certainty::Failed), "{key:?}");
        }
    }
    nats.set("a.b/c=d_e-F9", b"v").await.unwrap();
    assert_eq!(nats.get("a.b/c=d_e-F9").await, Ok(Some(b"v".to_vec())));
    // A token of an older record does not hide a newer one.
    nats.put(whole(b"again", b"", Some(Duration::from_secs(60)))).await.unwrap();
    assert_eq!(nats.get("again").await, Ok(Some(Vec::new())), "an empty value is a value");
}

/// Its limit is the stream's own, and made by another client: kvdyno makes none.
async fn a_bucket_without_room_says_so(url: &str) {
    let address = servers(url).trim_start_matches("nats://");
    let client = async_nats::connect(address).await.unwrap();
    let words = r#"{"name":"KV_small","subjects":["$KV.small.>"],"max_msgs_per_subject":1,
        "max_bytes":20000,"discard":"new","storage":"file","num_replicas":1,"allow_direct":true}"#;
    let made = client.request("$JS.API.STREAM.CREATE.KV_small", words.into()).await.unwrap();
    assert!(!String::from_utf8_lossy(&made.payload).contains("error"), "{made:?}");
    let small = format!("{}/small", servers(url));
    assert!(!store(&small).profile().await.unwrap().capabilities.ttl, "allow_msg_ttl is off");
    let mut nats = connect(&small).await;
    let mut full = None;
    for key in names("k", 40) {
        full = full.or(nats.set(&key, &[7; 1_000]).await.err());
    }
    let error = full.expect("the bucket is full");
    assert_eq!((error.class, error.certainty), (ErrorClass::Full, Certainty::Failed), "{error}");
    assert!(!error.connection_lost && error.message.contains("maximum bytes"), "{error}");
    assert_eq!(nats.get("k0").await, Ok(Some(vec![7; 1_000])));
    assert_eq!(nats.get("k39").await, Ok(None), "what was refused is not there");
}

fn leader(cluster: &mut Deployment) -> Option<String> {
    let nodes = cluster.nodes().into_iter();
    nodes.filter(|node| node.role == Some(Role::Primary)).map(|node| node.name).next()
}

#[test]
fn a_cluster_of_three() {
    let mut cluster = testbed("nats:3?sync=always");
    let url = cluster.describe().url;
    run(async {
        let store = store(&url);
        let profile = store.profile().await.unwrap();
        assert_eq!(profile.durability, Promise::checked(Durability::PowerLoss));
        assert_eq!(profile.consistency, Promise::declared(Consistency::ReadAfterWrite));
        let stale = self::store(&format!("{url}&read=direct"));
        assert_eq!(
            stale.profile().await.unwrap().consistency,
            Promise::checked(Consistency::Eventual)
        );
        assert_eq!(stale.stronger().len(), 1);
        assert!(store.stronger().is_empty());
        // A bucket that is made has as many copies as a cluster of this size should.
        let made = self::store(&format!("{}/made", servers(&url))).profile().await.unwrap();
        assert!(made.settings.contains(&("replicas".to_owned(), "3".to_owned())), "{made:?}");
        another_replica_leads(&mut cluster, &url).await;
        without_a_majority(&mut cluster, &url).await;
        let told = store.figures().await;
        let anew = told.iter().find(|figure| figure.is_restart()).expect("restarts");
        assert_eq!(anew.value, 3.0, "{anew:?}");
        assert!(store.figures().await.iter().all(|figure| !figure.is_restart()));
    });
}

/// The leader is killed while a client writes by another server: the client's own connection stays, and nothing that was
/// acknowledged is gone. Then the client's own server is killed, and goes silent.
async fn another_replica_leads(cluster: &mut Deployment, url: &str) {
    let first = leader(cluster).expect("a leader");
    let mut nats = connect(url).await;
    let keys = names("k", 30);
    for key in &keys {
        nats.set(key, b"one").await.unwrap();
    }
    cluster.act(&first, NodeFault::Kill).unwrap();
    nats.set_until_it_succeeds("k0", b"two").await;
    assert_ne!(leader(cluster), Some(first.clone()));
    let direct = connect(&format!("{url}&read=direct")).await;
    for mut reader in [nats, direct] {
        for key in &keys {
            let expected = if key == "k0" { b"two" } else { b"one" };
            let found = until("a read", async || reader.get(key).await, Result::is_ok).await;
            assert_eq!(found, Ok(Some(expected.to_vec())), "{key}");
        }
    }
    cluster.act(&first, NodeFault::Restart).unwrap();
    // Each connection begins with the first server that answers, from the one whose turn it is.
    let mut nats = connect(&format!("{url}&timeout=700ms")).await;
    nats.set("k1", b"two").await.unwrap();
    for node in ["nats-1", "nats-2", "nats-3"] {
        cluster.act(node, NodeFault::Pause).unwrap();
        nats.set_until_it_succeeds("k1", node.as_bytes()).await;
        cluster.act(node, Repair::Resume).unwrap();
        let found = until("a read", async || nats.get("k1").await, Result::is_ok).await;
        assert_eq!(found, Ok(Some(node.as_bytes().to_vec())));
    }
}

async fn without_a_majority(cluster: &mut Deployment, url: &str) {
    let mut nats = connect(&format!("{url}&timeout=700ms")).await;
    for node in ["nats-1", "nats-2"] {
        cluster.act(node, NodeFault::Kill).unwrap();
    }
    let begin = Instant::now();
    while begin.elapsed() < Duration::from_secs(4) {
        let error = nats.set("k2", b"lonely").await.expect_err("one of three stores nothing");
        assert!(error.connection_lost, "{error}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    // One of them is not ready before the other is there.
    let both = ["nats-1".to_owned(), "nats-2".to_owned()];
    cluster.act_on(&both, &NodeFault::Restart.into()).unwrap();
    cluster.act("nats-3", NodeFault::Restart).unwrap();
    nats.set_until_it_succeeds("k2", b"together").await;
    assert_eq!(nats.get("k2").await, Ok(Some(b"together".to_vec())));
}

/// A server that speaks TLS only, and asks for a password.
fn start_with_tls(files: &Certificates, folder: &Path) -> Server {
    let free = || TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap();
    let address: SocketAddr = free();
    let config = folder.join("nats.conf");
    let text = format!(
        "listen: \"{address}\"\njetstream {{ store_dir: {:?} }}\n\
         tls {{ cert_file: {:?}, key_file: {:?} }}\n\
         authorization {{ users: [ {{ user: root, password: s3cret }}, \
         {{ user: nobody, password: wonder, permissions: {{ publish: {{ deny: \"$KV.>\" }} }} }} ] }}\n",
        folder.join("data"),
        files.certificate,
        files.key
    );
    std::fs::write(&config, text).unwrap();
    let program = kvdyno_testbed::registry::kind("nats").unwrap().software[0].find().unwrap();
    let launch = Launch::new(program, address)
        .arguments(["-c".as_ref(), config.as_os_str()])
        .ready(|probe| probe.log.contains("Server is ready"));
    let mut server = Server::spawn("nats", launch, folder).unwrap();
    server.wait_until_ready().unwrap_or_else(|error| panic!("{error}"));
    server
}

#[test]
fn tls_and_passwords() {
    // It brings the server.
    drop(testbed("nats"));
    let folder = tempfile::tempdir().unwrap();
    let other = tempfile::tempdir().unwrap();
    let files = Certificates::make(folder.path(), Ipv4Addr::LOCALHOST.into()).unwrap();
    let foreign = Certificates::make(other.path(), Ipv4Addr::LOCALHOST.into()).unwrap();
    let server = start_with_tls(&files, folder.path());
    let (address, ca) = (server.address(), files.authority.display());
    run(async {
        let error =
            refusal(&format!("natss://root:s3cret@{address}?ca={}", foreign.authority.display()))
                .await;
        assert_eq!(error.class, ErrorClass::Refused);
        assert!(error.message.contains(&address.to_string()), "{error}");
        let told = error.message.to_string();
        let words: Vec<&str> = told.split('`').skip(1).step_by(2).collect();
        let pin = words.iter().find(|word| word.starts_with("pin=")).expect(&told);
        let plain = refusal(&format!("nats://root:s3cret@{address}?timeout=1s")).await;
        assert_eq!(plain.class, ErrorClass::Refused);
        assert!(plain.message.contains("natss://"), "{plain}");
        for option in [&format!("ca={ca}"), *pin, "tls=insecure"] {
            let url = format!("natss://root:s3cret@{address}?{option}");
            connect(&url).await.set("k", b"v").await.unwrap();
            let profile = store(&url).profile().await.unwrap();
            let told = profile.settings.iter().any(|(name, _)| name == "tls");
            assert_eq!(told, !option.starts_with("ca="), "{option}");
        }
        let url = |user: &str| format!("natss://{user}{address}?ca={ca}");
        for user in ["root:mistaken-password@", "a-mistaken-token@", ""] {
            let error = refusal(&url(user)).await;
            assert_eq!((error.class, error.certainty), (ErrorClass::Rejected, Certainty::Failed));
            assert!(!error.message.contains("mistaken"), "{error}");
        }
        // A server answers nothing to a publish that it does not permit, but tells it beside.
        let mut nobody = connect(&format!("{}&timeout=500ms", url("nobody:wonder@"))).await;
        assert_eq!(nobody.get("k").await, Ok(Some(b"v".to_vec())));
        assert_eq!(outcome(nobody.set("k", b"w").await).1, Certainty::Indeterminate);
        assert_eq!(nobody.get("k").await, Ok(Some(b"v".to_vec())));
    });
}

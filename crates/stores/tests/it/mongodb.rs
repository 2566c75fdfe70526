//! The MongoDB driver against a real FerretDB, against a replica set that follows a script, and
//! against a real MongoDB where `KVDYNO_MONGOD` names one.

use std::net::{Ipv4Addr, SocketAddr, TcpListener};

use crate::harness::{Single, in_flight_on_each, run, spans, until, whole};
use crate::scripted_mongod::ScriptedSet;
use kvdyno_core::store::{
    Certainty, Client, Consistency, Durability, ErrorClass, NoTransport, Promise, Put,
    RequestError, Rows, Store, Value,
};
use kvdyno_core::workload::fault::{NodeFault, Repair};
use kvdyno_stores::StoreUrl;
use kvdyno_stores::conformance::{ConformanceFinding, conformance};
use kvdyno_stores::mongodb::{MongoClient, MongoStore};
use kvdyno_testbed::{Certificates, Deployment, Launch, Role, Server, Testbed, install, registry};
use mongodb::bson::doc;

type Mongo = Single<MongoClient, NoTransport>;

fn up(words: &str) -> Deployment {
    let software = registry::kind("mongodb").unwrap().software;
    install::install(software, &|line| println!("{line}"))
        .unwrap_or_else(|error| panic!("{error}"));
    Deployment::up(words).unwrap_or_else(|error| panic!("{error}"))
}

fn store(url: &str) -> MongoStore {
    MongoStore::open(&mut StoreUrl::parse(url).unwrap()).unwrap()
}

async fn connect(url: &str) -> Mongo {
    Single::new(store(url).connect(1).await.unwrap())
}

fn outcome(error: &RequestError) -> (ErrorClass, Certainty) {
    (error.class, error.certainty)
}

#[test]
fn ferretdb() {
    if std::env::var_os("KVDYNO_MONGOD").is_some() {
        // Then the testbed is MongoDB's own: see below.
        return;
    }
    let mut server = up("mongodb");
    let url = server.url().to_owned();
    let report = conformance(&store(&url)).unwrap_or_else(|failure| panic!("{failure}"));
    let not_claimed =
        report.findings.iter().filter(|(_, found)| *found == ConformanceFinding::NotClaimed);
    assert_eq!(
        not_claimed.map(|(promise, _)| *promise).collect::<Vec<_>>(),
        ["pipeline", "time to live"]
    );
    run(async {
        let profile = store(&url).profile().await.unwrap();
        assert_eq!(profile.version.as_deref(), Some("v1.24.0"));
        assert_eq!(profile.durability, Promise::declared(Durability::PowerLoss));
        assert_eq!(profile.consistency, Promise::declared(Consistency::Linearizable));
        puts_are_upserts(&url).await;
        batches_are_one_request_each(&url).await;
        a_killed_server(&mut server, &url, "mongodb-1").await;
        a_silent_server_times_out(&mut server, &url).await;
    });
}

async fn puts_are_upserts(url: &str) {
    let mut mongo = connect(url).await;
    let insert = |value: &'static [u8]| Put { insert: true, ..whole(b"i", value, None) };
    mongo.put(insert(b"one")).await.unwrap();
    mongo.put(insert(b"two")).await.unwrap();
    assert_eq!(mongo.get("i").await, Ok(Some(b"two".to_vec())));
    mongo.put(whole(b"u", b"\0\xff", None)).await.unwrap();
    assert_eq!(mongo.get("u").await, Ok(Some(b"\0\xff".to_vec())));
    // One field of a record that is not there yet.
    let spans = spans(&[(1, 3)]);
    let value = Value::new(b"abc", &spans);
    let partial = Put { value, partial: true, record_fields: 3, ..whole(b"p", b"", None) };
    mongo.put(partial).await.unwrap();
    let read = mongo.read("p").await.unwrap().unwrap();
    assert_eq!((read.spans()[0].index, read.bytes()), (1, &b"abc"[..]));
    let error = mongo.put(whole(b"\xff", b"v", None)).await.unwrap_err();
    assert_eq!(outcome(&error), (ErrorClass::Rejected, Certainty::Failed));
}

async fn batches_are_one_request_each(url: &str) {
    let client = &mut connect(url).await.connection.clients[0];
    let before = [commands(url, "insert").await, commands(url, "update").await];
    let insert = |key, value| Put { insert: true, ..whole(key, value, None) };
    client.put_batch(&[insert(b"b1", b"1"), insert(b"b2", b"2")]).await.unwrap();
    assert_eq!(commands(url, "insert").await, before[0] + 1);
    assert_eq!(commands(url, "update").await, before[1]);
    // One is there already: all of them are written by a second request.
    client.put_batch(&[insert(b"b2", b"22"), insert(b"b3", b"3")]).await.unwrap();
    assert_eq!(commands(url, "update").await, before[1] + 1);
    client.put_batch(&[whole(b"b1", b"11", None), whole(b"b1", b"111", None)]).await.unwrap();
    assert_eq!(commands(url, "update").await, before[1] + 2);
    let finds = commands(url, "find").await;
    let mut rows = Rows::default();
    client.get_batch(&[b"b3", b"b0", b"b1", b"b2", b"b1"], &mut rows).await.unwrap();
    assert_eq!(commands(url, "find").await, finds + 1);
    let values: Vec<_> = rows.iter().map(|(_, value)| value.map(<[u8]>::to_vec)).collect();
    let expected = [&b"3"[..], b"", b"111", b"22", b"111"];
    let expected = expected.map(|value| (!value.is_empty()).then(|| value.to_vec()));
    assert_eq!(values, expected);
    rows.clear();
    client.scan(b"b", 2, &mut rows).await.unwrap();
    assert_eq!(rows.iter().map(|(key, _)| key).collect::<Vec<_>>(), [b"b1", b"b2"]);
}

/// Returns the number of commands of this name that FerretDB has carried out.
async fn commands(url: &str, name: &str) -> i64 {
    let client = mongodb::Client::with_uri_str(url).await.unwrap();
    let status = client.database("admin").run_command(doc! { "serverStatus": 1 }).await.unwrap();
    let commands = status.get_document("metrics").unwrap().get_document("commands").unwrap();
    commands.get_document(name).map_or(0, |counts| counts.get_i64("total").unwrap())
}

/// Sixteen requests, every second one a write, when the server is killed.
async fn a_killed_server(testbed: &mut Deployment, url: &str, node: &str) {
    let join = if url.contains('?') { '&' } else { '?' };
    let store = store(&format!("{url}{join}timeout=30s"));
    let mut connections = Vec::new();
    for _ in 0..16 {
        connections.push(store.connect(1).await.unwrap());
    }
    // FerretDB refuses all but one of several upserts of a new key at once.
    connections[0].clients[0].put(whole(b"k", b"v", None)).await.unwrap();
    let mut connected = Vec::new();
    for (connection, answer) in in_flight_on_each(connections, || ()).await {
        answer.unwrap();
        connected.push(connection);
    }
    testbed.act(node, NodeFault::Pause).unwrap();
    let ended = in_flight_on_each(connected, || testbed.act(node, NodeFault::Kill).unwrap()).await;
    let mut connections = Vec::new();
    for (n, (connection, answer)) in ended.into_iter().enumerate() {
        let error = answer.unwrap_err();
        let certainty = if n % 2 == 0 { Certainty::Failed } else { Certainty::Indeterminate };
        assert_eq!(outcome(&error), (ErrorClass::Disconnected, certainty), "request {n}: {error}");
        assert!(error.connection_lost, "{error}");
        connections.push(connection);
    }
    testbed.act(node, NodeFault::Restart).unwrap();
    let mut mongo = Single::new(connections.remove(0));
    until("it is found again", async || mongo.set("k", b"again").await, Result::is_ok)
        .await
        .unwrap();
    assert_eq!(mongo.get("k").await, Ok(Some(b"again".to_vec())));
}

async fn a_silent_server_times_out(testbed: &mut Deployment, url: &str) {
    let mut mongo = connect(&format!("{url}?timeout=500ms")).await;
    mongo.set("k", b"v").await.unwrap();
    testbed.act("mongodb-1", NodeFault::Pause).unwrap();
    let error = mongo.set("k", b"w").await.unwrap_err();
    assert_eq!(outcome(&error), (ErrorClass::Timeout, Certainty::Indeterminate));
    let error = mongo.get("k").await.unwrap_err();
    assert_eq!(error.certainty, Certainty::Failed);
    let refusal = store(&format!("{url}?timeout=500ms")).connect(1).await.err().unwrap();
    assert_eq!(outcome(&refusal), (ErrorClass::Refused, Certainty::Failed), "{refusal}");
    testbed.act("mongodb-1", Repair::Resume).unwrap();
    until("it is found again", async || mongo.set("new", b"v").await, Result::is_ok).await.unwrap();
    testbed.act("mongodb-1", NodeFault::Kill).unwrap();
    let down = async || mongo.set("k", b"w").await.unwrap_err();
    let error = until("it is known to be down", down, |error| error.certainty == Certainty::Failed);
    assert!([ErrorClass::Refused, ErrorClass::Unavailable].contains(&error.await.class));
}

#[test]
fn ferretdb_over_tls() {
    drop(up("mongodb"));
    if std::env::var_os("KVDYNO_MONGOD").is_some() {
        return;
    }
    let program = registry::kind("mongodb").unwrap().software[0].find().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let other = tempfile::tempdir().unwrap();
    let files = Certificates::make(folder.path(), Ipv4Addr::LOCALHOST.into()).unwrap();
    let foreign = Certificates::make(other.path(), Ipv4Addr::LOCALHOST.into()).unwrap();
    let free = || TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap();
    let (plain, address): (SocketAddr, SocketAddr) = (free(), free());
    let data = folder.path().join("data");
    std::fs::create_dir(&data).unwrap();
    let launch = Launch::new(program, address)
        .arguments(["--handler=sqlite", "--debug-addr=-"])
        .arguments([format!("--sqlite-url=file:{}/", data.display())])
        .arguments([format!("--state-dir={}", folder.path().display())])
        .arguments([format!("--listen-addr={plain}"), format!("--listen-tls={address}")])
        .arguments([format!("--listen-tls-cert-file={}", files.certificate.display())])
        .arguments([format!("--listen-tls-key-file={}", files.key.display())])
        .environment("FERRETDB_TELEMETRY", "disable");
    let mut server = Server::spawn("ferretdb", launch, folder.path()).unwrap();
    server.wait_until_ready().unwrap_or_else(|error| panic!("{error}"));
    run(async {
        let url = format!("mongodb://{address}/?tls=true");
        let trusting = format!("{url}&tlsCAFile={}", files.authority.display());
        let mut mongo = connect(&trusting).await;
        mongo.set("k", b"v").await.unwrap();
        assert_eq!(mongo.get("k").await, Ok(Some(b"v".to_vec())));
        for wrong in [
            format!("{url}&timeout=1s"),
            format!("{url}&timeout=1s&tlsCAFile={}", foreign.authority.display()),
            format!("mongodb://{address}/?timeout=1s"),
        ] {
            let error = store(&wrong).connect(1).await.err().expect(&wrong);
            assert_eq!(
                outcome(&error),
                (ErrorClass::Refused, Certainty::Failed),
                "{wrong}: {error}"
            );
        }
    });
}

#[test]
fn a_primary_that_steps_down_refuses_and_the_next_one_is_found() {
    let set = ScriptedSet::start();
    run(async {
        let mut mongo = connect(&set.url("w=majority&journal=true&wtimeoutMS=50")).await;
        mongo.set("k", b"v").await.unwrap();
        let sent = set.take_sent("update");
        assert_eq!(sent.iter().map(|sent| sent.member).collect::<Vec<_>>(), [0]);
        let concern = sent[0].command.get_document("writeConcern").unwrap();
        assert_eq!(concern.get_str("w").unwrap(), "majority");
        assert!(concern.get_bool("j").unwrap());
        assert!(sent[0].command.get("txnNumber").is_none(), "a retryable write: {sent:?}");
        set.elect(Some(1));
        let error = mongo.set("k", b"w").await.unwrap_err();
        assert_eq!(outcome(&error), (ErrorClass::Unavailable, Certainty::Failed));
        assert!(error.message.contains("NotWritablePrimary"), "{error}");
        assert_eq!(set.take_sent("update").len(), 1, "it was not sent again");
        until("the new primary", async || mongo.set("k", b"w").await, Result::is_ok).await.unwrap();
        assert_eq!(set.take_sent("update").last().unwrap().member, 1);
        // Interrupted: nobody knows how far it came.
        let code = doc! { "ok": 0, "code": 11602, "codeName": "InterruptedDueToReplStateChange", "errmsg": "" };
        set.answer_once("update", code);
        let error = mongo.set("k", b"x").await.unwrap_err();
        assert_eq!(outcome(&error), (ErrorClass::Unavailable, Certainty::Indeterminate));
    });
}

#[test]
fn without_a_primary_nothing_is_sent() {
    let set = ScriptedSet::start();
    run(async {
        let mut mongo = connect(&set.url("timeout=1s")).await;
        mongo.set("k", b"v").await.unwrap();
        set.elect(None);
        let refused = async || mongo.set("k", b"v").await.unwrap_err();
        let selected = |error: &RequestError| !error.message.contains("NotWritablePrimary");
        let error = until("it knows of no primary", refused, selected).await;
        assert_eq!(error.certainty, Certainty::Failed, "{error}");
        assert!([ErrorClass::Unavailable, ErrorClass::Timeout].contains(&error.class), "{error}");
        set.elect(Some(2));
        until("the new primary", async || mongo.set("k", b"w").await, Result::is_ok).await.unwrap();
    });
}

#[test]
fn reads_go_where_they_are_sent() {
    let set = ScriptedSet::start();
    run(async {
        for (options, members) in [
            ("readPreference=primary", &[b"0"][..]),
            ("readConcernLevel=linearizable", &[b"0"]),
            ("readPreference=secondary", &[b"1", b"2"]),
            ("readPreference=secondaryPreferred", &[b"1", b"2"]),
            ("readPreference=nearest", &[b"0", b"1", b"2"]),
        ] {
            let mut mongo = connect(&set.url(options)).await;
            set.take_sent("find");
            for _ in 0..4 {
                let answered = mongo.get("k").await.unwrap().unwrap();
                assert!(members.iter().any(|member| member[..] == answered), "{options}");
            }
            let found = set.take_sent("find");
            let concern = found[0].command.get_document("readConcern");
            let level = concern.ok().and_then(|concern| concern.get_str("level").ok());
            assert_eq!(level, options.strip_prefix("readConcernLevel="), "{options}");
            // Writes go to the primary in any case.
            mongo.set("k", b"v").await.unwrap();
            assert_eq!(set.take_sent("update")[0].member, 0, "{options}");
        }
    });
}

#[test]
fn a_write_concern_that_is_not_met_is_indeterminate() {
    let set = ScriptedSet::start();
    run(async {
        let mut mongo = connect(&set.url("w=3&wtimeoutMS=50")).await;
        let late = doc! { "code": 64, "codeName": "WriteConcernFailed", "errmsg": "timed out" };
        for name in ["update", "delete", "insert"] {
            set.answer_once(
                name,
                doc! { "ok": 1, "n": 1, "nModified": 1, "writeConcernError": &late },
            );
        }
        let insert = Put { insert: true, ..whole(b"k", b"v", None) };
        let errors = [
            mongo.set("k", b"v").await.unwrap_err(),
            mongo.delete("k").await.unwrap_err(),
            mongo.put(insert).await.unwrap_err(),
        ];
        for error in errors {
            assert_eq!(outcome(&error), (ErrorClass::Timeout, Certainty::Indeterminate), "{error}");
            assert!(!error.connection_lost);
        }
        // In a batch, too; and the concern is in the command.
        set.answer_once(
            "update",
            doc! { "ok": 1, "n": 2, "nModified": 2, "writeConcernError": &late },
        );
        set.take_sent("update");
        let puts = [whole(b"a", b"1", None), whole(b"b", b"2", None)];
        let error = mongo.connection.clients[0].put_batch(&puts).await.unwrap_err();
        assert_eq!(outcome(&error), (ErrorClass::Timeout, Certainty::Indeterminate), "{error}");
        let sent = set.take_sent("update");
        let concern = sent[0].command.get_document("writeConcern").unwrap();
        assert_eq!(concern.get_i64("w").unwrap(), 3);
        assert_eq!(concern.get_i64("wtimeout").unwrap(), 50);
    });
}

#[test]
fn what_a_replica_set_promises_is_read_back() {
    let set = ScriptedSet::start();
    run(async {
        let told = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let profile = store(&set.url("timeout=5s")).profile().await.unwrap();
        assert_eq!(profile.version.as_deref(), Some("8.0.4"));
        assert_eq!(profile.durability, Promise::checked(Durability::PowerLoss));
        assert_eq!(profile.consistency, Promise::declared(Consistency::ReadAfterWrite));
        for setting in [
            told("topology", "replica set of 3"),
            told("storage-engine", "wiredTiger"),
            told("w", "majority"),
        ] {
            assert!(profile.settings.contains(&setting), "{:?}", profile.settings);
        }
        let profile = store(&set.url("w=1&readPreference=secondary")).profile().await.unwrap();
        assert_eq!(profile.durability, Promise::checked(Durability::None));
        assert_eq!(profile.consistency, Promise::checked(Consistency::Eventual));
    });
}

/// Only where a real `mongod` is named.
#[test]
fn a_real_replica_set_fails_over() {
    if std::env::var_os("KVDYNO_MONGOD").is_none() {
        return;
    }
    let mut set = up("mongodb:3?election=2s");
    let url = format!("{}&w=majority", set.url());
    conformance(&store(&url)).unwrap_or_else(|failure| panic!("{failure}"));
    run(async {
        let profile = store(&url).profile().await.unwrap();
        assert_eq!(profile.durability, Promise::checked(Durability::PowerLoss));
        let primary = set.nodes().into_iter().find(|node| node.role == Some(Role::Primary));
        a_killed_server(&mut set, &url, &primary.unwrap().name).await;
        let mut secondary = connect(&format!("{url}&readPreference=secondary")).await;
        let read = async || secondary.get("k").await;
        until("replicated", read, |found| *found == Ok(Some(b"again".to_vec()))).await.unwrap();
    });
}

#[test]
fn a_server_that_was_started_anew_is_told() {
    let set = ScriptedSet::start();
    let status = |pid: i64, uptime: f64| {
        let told = doc! { "ok": 1, "host": "m1:27017", "pid": pid, "uptime": uptime };
        set.answer_once("serverStatus", told);
    };
    run(async {
        let store = store(&set.url("timeout=5s"));
        // What it is, and which life it lives.
        status(7, 100.0);
        status(7, 100.0);
        store.profile().await.unwrap();
        status(7, 100.0);
        assert_eq!(store.figures().await, []);
        status(9, 2.0);
        let figures = store.figures().await;
        assert!(figures.len() == 1 && figures[0].is_restart(), "{figures:?}");
        assert!(figures[0].detail.starts_with("m1:27017"), "{figures:?}");
        // One that does not tell is not asked to be believed.
        assert_eq!(store.figures().await, []);
    });
}

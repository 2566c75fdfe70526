//! The Cassandra driver against real clusters. One server at a time: each is a JVM on processors
//! that all tests share, so the tests of one server are one test, the one that kills it last.

use std::cell::{Cell, RefCell};
use std::collections::HashSet;
use std::future::Future;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::harness::{Single, drive, drive_all, run, spans, whole};
use crate::one_server::{MemcachedServer, MemcachedSettings};
use kvdyno_core::store::{
    Answer, Certainty, Client, Consistency, Durability, ErrorClass, NoTransport, Promise, Put,
    Reading, RequestError, Rows, Store, Value,
};
use kvdyno_core::workload::fault::{NodeFault, Repair};
use kvdyno_stores::cache::CacheStore;
use kvdyno_stores::cassandra::{CassandraClient, CassandraStore};
use kvdyno_stores::conformance::conformance;
use kvdyno_stores::{StoreUrl, open_boxed};
use kvdyno_testbed::{Deployment, Testbed, install, registry};
use scylla::client::session_builder::SessionBuilder;

type Cassandra = Single<CassandraClient, NoTransport>;

/// Longest wait for a step that is short on a machine at rest.
const PATIENCE: Duration = Duration::from_secs(180);

static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

fn up(words: &str) -> (MutexGuard<'static, ()>, Deployment) {
    let turn = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let software = registry::kind("cassandra").unwrap().software;
    install::install(software, &|_| {}).unwrap_or_else(|error| panic!("{error}"));
    (turn, Deployment::up(words).unwrap_or_else(|error| panic!("{words}: {error}")))
}

fn store(url: &str) -> CassandraStore {
    CassandraStore::open(&mut StoreUrl::parse(url).unwrap()).unwrap()
}

async fn connect(url: &str) -> Cassandra {
    let connection = store(url).connect(1).await;
    Single::new(connection.unwrap_or_else(|error| panic!("{url}: {error}")))
}

async fn refusal(url: &str) -> RequestError {
    store(url).connect(1).await.err().unwrap_or_else(|| panic!("{url} was opened"))
}

/// Returns the error of a request as (certainty, class).
fn judged<T: std::fmt::Debug>(answer: Answer<T>) -> (Certainty, ErrorClass) {
    let error = answer.unwrap_err();
    (error.certainty, error.class)
}

async fn batch(cassandra: &mut Cassandra, puts: &[Put<'_>]) -> Answer<()> {
    let connection = &mut cassandra.connection;
    drive(&mut connection.transport, connection.clients[0].put_batch(puts)).await
}

#[test]
fn one_node() {
    let (_turn, mut testbed) = up("cassandra?sync=group&password=yes&tls=yes&jit=quick");
    let secure = testbed.url().to_owned();
    let (plain, authority) = secure.split_once("?ca=").unwrap();
    let plain = plain.replace("cassandras:", "cassandra:");
    // Room for a JVM that compiles while it answers.
    let url = format!("{plain}?timeout=30s");
    conformance(&store(&url)).unwrap_or_else(|failure| panic!("{failure}"));
    memcached_in_front(&url);
    run(what_is_promised_is_read_back(&url));
    run(tls_and_passwords(&plain, authority));
    run(tables_of_others_are_left_alone(&url));
    run(the_last_of_two_versions_in_a_batch_wins(&url));
    run(the_clock_is_marked(&url));
    run(fields_and_values_are_told_apart(&url));
    for compression in ["lz4", "snappy"] {
        run(compressed(&format!("{url}&compression={compression}")));
    }
    run(refused_requests_have_changed_nothing(&plain));
    run(rights_are_respected(&plain));
    run(a_paused_server_times_out(&plain, &mut testbed));
    run(a_killed_server_keeps_what_it_acknowledged(&plain, &mut testbed));
}

/// Checks that a cache and the cluster behind it, as a whole, are a store like any other.
fn memcached_in_front(url: &str) {
    let cache = MemcachedServer::start(MemcachedSettings::default()).unwrap();
    for mode in ["aside", "through"] {
        let both = format!("cache({}, {url})?mode={mode}", cache.url());
        let both = CacheStore::open(&mut StoreUrl::parse(&both).unwrap(), open_boxed).unwrap();
        conformance(&both).unwrap_or_else(|failure| panic!("{mode}: {failure}"));
        assert_eq!(run(both.profile()).unwrap().store, "memcached before cassandra");
    }
}

async fn what_is_promised_is_read_back(url: &str) {
    let profile = store(url).profile().await.unwrap();
    assert_eq!(profile.durability, Promise::checked(Durability::PowerLoss));
    assert_eq!(profile.consistency, Promise::checked(Consistency::Linearizable));
    assert!(profile.version.is_some_and(|version| version.starts_with("5.")));
    assert!(profile.settings.contains(&("commitlog_sync".to_owned(), "group".to_owned())));
    assert_eq!(profile.timeout, Duration::from_secs(30));
}

async fn tls_and_passwords(plain: &str, authority: &str) {
    let secure = plain.replace("cassandra://", "cassandras://");
    let mut cassandra = connect(&format!("{secure}?timeout=30s&ca={authority}")).await;
    let value = vec![7; 300_000];
    cassandra.set("over-tls", &value).await.unwrap();
    assert_eq!(cassandra.get("over-tls").await, Ok(Some(value)));
    // Another authority than the server's: the one that Mozilla trusts.
    let error = refusal(&secure).await;
    assert_eq!(error.class, ErrorClass::Refused, "{error}");
    for user in ["", "cassandra:mistaken-password@", "nobody:x@"] {
        let error = refusal(&plain.replace("cassandra:cassandra@", user)).await;
        assert_eq!(error.class, ErrorClass::Rejected, "{user}: {error}");
        assert!(error.message.contains("in the URL"), "{user}: {error}");
    }
}

/// Runs statements as another program would.
async fn cql(url: &str, statements: &[&str]) {
    let host = url.split('@').nth(1).unwrap().split('/').next().unwrap();
    let builder = SessionBuilder::new().known_node(host).user("cassandra", "cassandra");
    let session = builder.build().await.unwrap();
    for statement in statements {
        session.query_unpaged(*statement, ()).await.unwrap();
    }
}

async fn tables_of_others_are_left_alone(url: &str) {
    let foreign = "CREATE TABLE kvdyno.foreign_table (key text PRIMARY KEY, value blob)";
    cql(url, &[foreign, "INSERT INTO kvdyno.foreign_table (key, value) VALUES ('k', 0x00)"]).await;
    for (options, hint) in [
        ("&table=foreign_table", "another's"),
        ("&replication=2", "keeps 1 copies"),
        ("&fields=11", "columns for 10 fields, not 11"),
        ("&datacenter=nowhere", "choose one of datacenter1"),
    ] {
        let error = refusal(&format!("{url}{options}")).await;
        assert_eq!((error.certainty, error.class), (Certainty::Failed, ErrorClass::Rejected));
        assert!(error.message.contains(hint), "{options}: {error}");
    }
    connect(&format!("{url}&datacenter=datacenter1&replication=1"))
        .await
        .set("k", b"v")
        .await
        .unwrap();
}

async fn the_last_of_two_versions_in_a_batch_wins(url: &str) {
    let mut cassandra = connect(url).await;
    // With equal timestamps Cassandra would keep the greater value.
    let puts = [whole(b"twice", b"zzz", None), whole(b"twice", b"aaa", None)];
    batch(&mut cassandra, &puts).await.unwrap();
    assert_eq!(cassandra.get("twice").await, Ok(Some(b"aaa".to_vec())));
    // And so does the last of many that overlap, for each reader the same.
    let mut connection = store(url).connect(16).await.unwrap();
    let values: Vec<String> = (0..16).map(|n| format!("{:02}", 16 - n)).collect();
    let puts = connection.clients.iter_mut().zip(&values);
    let puts = puts.map(|(client, v)| client.put(whole(b"raced", v.as_bytes(), None))).collect();
    for answer in drive_all(&mut connection.transport, puts).await {
        answer.unwrap();
    }
    let last = values[15].clone().into_bytes();
    assert_eq!(cassandra.get("raced").await, Ok(Some(last)), "the last that was sent");
    cassandra.delete("raced").await.unwrap();
    assert_eq!(cassandra.get("raced").await, Ok(None));
}

async fn the_clock_is_marked(url: &str) {
    let mut cassandra = connect(url).await;
    cassandra.delete("kvdyno").await.unwrap();
    let begin = Instant::now();
    while cassandra.get("kvdyno").await.unwrap().is_none() {
        assert!(begin.elapsed() < PATIENCE, "no mark for the next process");
        cassandra.set("other", b"v").await.unwrap();
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

async fn fields_and_values_are_told_apart(url: &str) {
    let three = spans(&[(0, 2), (1, 0), (2, 3)]);
    let put = |bytes, spans, fields| Put {
        value: Value::new(bytes, spans),
        record_fields: fields,
        ..whole(b"fields", b"", None)
    };
    let mut writer = connect(url).await;
    writer.put(put(b"aaccc", &three, 3)).await.unwrap();
    // Clients that have written nothing find out by themselves how a record is kept.
    let read = connect(url).await.read("fields").await.unwrap().unwrap();
    let found: Vec<_> = read.spans().iter().map(|s| (s.index, s.end - s.start)).collect();
    assert_eq!(found, [(0, 2), (1, 0), (2, 3)]);
    let mut reader = connect(url).await.connection;
    let mut rows = Rows::default();
    let keys: [&[u8]; 2] = [b"none", b"fields"];
    drive(&mut reader.transport, reader.clients[0].get_batch(&keys, &mut rows)).await.unwrap();
    let expected: [(&[u8], Option<&[u8]>); 2] = [(b"none", None), (b"fields", Some(b"aaccc"))];
    assert_eq!(rows.iter().collect::<Vec<_>>(), expected);
    batch(&mut writer, &[put(b"bbddd", &three, 3)]).await.unwrap();
    assert_eq!(writer.get("fields").await, Ok(Some(b"bbddd".to_vec())));
    let eleventh = spans(&[(10, 1)]);
    let error = writer.put(put(b"x", &eleventh, 11)).await.unwrap_err();
    assert_eq!((error.certainty, error.class), (Certainty::Failed, ErrorClass::Rejected));
    assert!(error.message.contains("`fields=11`"), "{error}");
}

async fn compressed(url: &str) {
    let mut cassandra = connect(url).await;
    cassandra.set("compressed", &[b'a'; 100_000]).await.unwrap();
    assert_eq!(cassandra.get("compressed").await, Ok(Some(vec![b'a'; 100_000])));
}

async fn refused_requests_have_changed_nothing(plain: &str) {
    use Certainty::{Failed, Indeterminate};
    let mut cassandra = connect(&format!("{plain}?timeout=30s")).await;
    // One copy cannot give two answers.
    let mut two = connect(&format!("{plain}?timeout=30s&consistency=two")).await;
    assert_eq!(judged(two.set("two", b"v").await), (Failed, ErrorClass::Unavailable));
    assert_eq!(judged(two.get("two").await), (Failed, ErrorClass::Unavailable));
    assert_eq!(judged(two.delete("two").await), (Failed, ErrorClass::Unavailable));
    // In a batch an earlier record may have been written before it was found out.
    let puts = [whole(b"two", b"v", None), whole(b"three", b"v", None)];
    assert_eq!(judged(batch(&mut two, &puts).await), (Indeterminate, ErrorClass::Unavailable));
    assert_eq!(cassandra.get("two").await, Ok(None));
    // Cassandra takes batches of up to 50 KiB.
    let big = vec![1; 40_000];
    let puts = [whole(b"big-1", &big, None), whole(b"big-2", &big, None)];
    assert_eq!(judged(batch(&mut cassandra, &puts).await), (Failed, ErrorClass::Rejected));
    assert_eq!(cassandra.get("big-1").await, Ok(None));
}

async fn rights_are_respected(plain: &str) {
    let make = [
        "CREATE ROLE alice WITH PASSWORD = 'wonder' AND LOGIN = true",
        "GRANT SELECT ON KEYSPACE kvdyno TO alice",
    ];
    cql(plain, &make).await;
    let url = format!("{}?timeout=30s", plain.replace("cassandra:cassandra@", "alice:wonder@"));
    let mut alice = connect(&url).await;
    assert!(alice.get("compressed").await.unwrap().is_some());
    let denied = judged(alice.set("compressed", b"v").await);
    assert_eq!(denied, (Certainty::Failed, ErrorClass::Rejected));
    assert_eq!(alice.get("compressed").await.unwrap().unwrap().len(), 100_000);
}

async fn a_paused_server_times_out(plain: &str, testbed: &mut Deployment) {
    let mut connection = store(&format!("{plain}?timeout=1s")).connect(20).await.unwrap();
    testbed.act("cassandra-1", NodeFault::Pause).unwrap();
    let mut readings: Vec<Reading> = (0..20).map(|_| Reading::default()).collect();
    let clients = connection.clients.iter_mut().zip(&mut readings).enumerate();
    let requests = clients.map(|(n, (client, into))| async move {
        match n % 2 {
            0 => client.get(b"paused", into).await.map(drop),
            _ => client.put(whole(b"paused", b"v", None)).await,
        }
    });
    let answers = drive_all(&mut connection.transport, requests.collect()).await;
    for (n, answer) in answers.into_iter().enumerate() {
        let sure = if n % 2 == 0 { Certainty::Failed } else { Certainty::Indeterminate };
        assert_eq!(judged(answer), (sure, ErrorClass::Timeout), "request {n}");
    }
    testbed.act("cassandra-1", Repair::Resume).unwrap();
    let mut cassandra = Single::new(connection);
    eventually_put(&mut cassandra, "after-the-pause").await;
}

async fn eventually_put(cassandra: &mut Cassandra, key: &str) {
    let begin = Instant::now();
    while let Err(error) = cassandra.set(key, b"v").await {
        assert!(begin.elapsed() < PATIENCE, "{error}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// Outcomes of writes of records that were each written once.
#[derive(Default)]
struct Written {
    acknowledged: RefCell<Vec<String>>,
    errors: RefCell<Vec<(String, RequestError)>>,
    stop: Cell<bool>,
}

impl Written {
    async fn keep_writing(&self, client: &mut impl Client, writer: usize) {
        for number in 0.. {
            if self.stop.get() {
                return;
            }
            let key = format!("w{writer:02}-{number:06}");
            match client.put(whole(key.as_bytes(), key.as_bytes(), None)).await {
                Ok(()) => self.acknowledged.borrow_mut().push(key),
                Err(error) => {
                    self.errors.borrow_mut().push((key, error));
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
            }
        }
    }

    async fn until(&self, what: &str, holds: impl Fn(&Written) -> bool) {
        let begin = Instant::now();
        while !holds(self) {
            assert!(begin.elapsed() < PATIENCE, "{what}");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    fn acknowledged(&self) -> usize {
        self.acknowledged.borrow().len()
    }
}

/// Writes with all clients at once while `disturb` does something.
async fn write_during(
    connection: &mut kvdyno_core::store::Connection<CassandraClient, NoTransport>,
    written: &Written,
    disturb: impl Future<Output = ()>,
) {
    let clients = connection.clients.iter_mut().enumerate();
    let writers = clients.map(|(n, client)| written.keep_writing(client, n)).collect();
    let all = drive_all(&mut connection.transport, writers);
    let disturb = async {
        disturb.await;
        written.stop.set(true);
    };
    tokio::join!(all, disturb);
}

/// Checks that every acknowledged write is there, and none that surely failed.
async fn account_for(cassandra: &mut Cassandra, written: &Written) {
    let acknowledged = written.acknowledged.borrow().clone();
    for key in &acknowledged {
        let found = cassandra.get(key).await.unwrap_or_else(|error| panic!("{key}: {error}"));
        assert_eq!(found.as_deref(), Some(key.as_bytes()), "{key} was acknowledged");
    }
    let errors = written.errors.borrow().clone();
    for (key, error) in &errors {
        if error.certainty == Certainty::Failed {
            assert_eq!(cassandra.get(key).await, Ok(None), "{key}: {error}");
        }
    }
}

async fn a_killed_server_keeps_what_it_acknowledged(plain: &str, testbed: &mut Deployment) {
    let mut connection = store(&format!("{plain}?timeout=5s")).connect(32).await.unwrap();
    let seen = store(&format!("{plain}?timeout=30s"));
    seen.profile().await.unwrap();
    assert_eq!(seen.figures().await, [], "it is what it was");
    let written = Written::default();
    write_during(&mut connection, &written, async {
        written.until("some writes", |w| w.acknowledged() > 300).await;
        testbed.act("cassandra-1", NodeFault::Kill).unwrap();
        let refused = |w: &Written| {
            w.errors.borrow().iter().any(|(_, error)| error.class == ErrorClass::Refused)
        };
        written.until("a refused attempt", refused).await;
    })
    .await;
    let mut classes = HashSet::new();
    for (key, error) in written.errors.borrow().iter() {
        let sure = error.certainty == Certainty::Failed;
        classes.insert(error.class);
        match error.class {
            ErrorClass::Disconnected | ErrorClass::Timeout => assert!(!sure, "{key}: {error}"),
            ErrorClass::Refused => assert!(sure && error.connection_lost, "{key}: {error}"),
            other => panic!("{key}: {other:?}: {error}"),
        }
    }
    assert!(classes.contains(&ErrorClass::Disconnected), "{classes:?}: none was in flight");
    let mut cassandra = Single::new(connection);
    let read = judged(cassandra.get("w00-000000").await);
    assert_eq!(read, (Certainty::Failed, ErrorClass::Refused));
    testbed.act("cassandra-1", NodeFault::Restart).unwrap();
    eventually_put(&mut cassandra, "after-the-kill").await;
    account_for(&mut cassandra, &written).await;
    let figures = seen.figures().await;
    assert!(figures.len() == 1 && figures[0].is_restart(), "{figures:?}");
    let host = plain.split('@').nth(1).and_then(|rest| rest.split('/').next()).unwrap();
    assert_eq!(figures[0].detail, host);
    assert_eq!(seen.figures().await, [], "told once");
}

#[test]
fn three_nodes() {
    let (_turn, mut testbed) = up("cassandra:3?sync=group&jit=quick");
    let url = testbed.url().to_owned();
    run(async {
        for (levels, expected) in [
            ("consistency=quorum", Consistency::Linearizable),
            ("consistency=one", Consistency::Eventual),
            ("read=one&write=all", Consistency::ReadAfterWrite),
        ] {
            let profile = store(&format!("{url}?timeout=30s&{levels}")).profile().await.unwrap();
            assert_eq!(profile.consistency, Promise::checked(expected), "{levels}");
            assert_eq!(profile.durability, Promise::checked(Durability::PowerLoss));
            for known in ["replication", "nodes"] {
                let pair = (known.to_owned(), "3".to_owned());
                assert!(profile.settings.contains(&pair), "{known}: {:?}", profile.settings);
            }
        }
        let quorum = format!("{url}?timeout=5s&consistency=quorum");
        let mut connection = store(&quorum).connect(16).await.unwrap();
        let written = Written::default();
        write_during(&mut connection, &written, async {
            written.until("some writes", |w| w.acknowledged() > 300).await;
            testbed.act("cassandra-2", NodeFault::Kill).unwrap();
            let before = written.acknowledged();
            written.until("writes without it", |w| w.acknowledged() > before + 300).await;
        })
        .await;
        let mut cassandra = Single::new(connection);
        account_for(&mut cassandra, &written).await;
        // A level that needs the node is refused and changes nothing, and works when it is back.
        let mut all = connect(&format!("{url}?timeout=5s&write=all&read=quorum")).await;
        let begin = Instant::now();
        let refused = loop {
            match all.set("needs-all", b"v").await {
                Err(error) if error.class == ErrorClass::Unavailable => break error,
                Err(error) if begin.elapsed() < PATIENCE => drop(error),
                other => panic!("{other:?}: the others have not noticed that it is gone"),
            }
        };
        assert_eq!(refused.certainty, Certainty::Failed);
        testbed.act("cassandra-2", NodeFault::Restart).unwrap();
        eventually_put(&mut all, "all-again").await;
        account_for(&mut cassandra, &written).await;
    });
}

//! The Memcached driver against a real Memcached.

use std::time::Duration;

use crate::harness::{Single, binary, drive, drive_all, keeps_answers_apart, run, whole};
use crate::one_server::{MemcachedServer, MemcachedSettings};
use kvdyno_core::store::{
    Answer, Certainty, Client, Consistency, Durability, ErrorClass, Promise, Reading, Rows, Store,
};
use kvdyno_stores::StoreUrl;
use kvdyno_stores::conformance::conformance;
use kvdyno_stores::memcached::{MemcachedClient, MemcachedStore, MemcachedTransport};

type Memcached = Single<MemcachedClient, MemcachedTransport>;

fn start(settings: MemcachedSettings) -> MemcachedServer {
    MemcachedServer::start(settings).unwrap_or_else(|error| panic!("{error}"))
}

fn store(url: &str) -> MemcachedStore {
    MemcachedStore::open(&mut StoreUrl::parse(url).unwrap()).unwrap()
}

async fn connect(url: &str) -> Memcached {
    Single::new(store(url).connect(1).await.unwrap())
}

#[test]
fn it_conforms() {
    let server = start(MemcachedSettings::default());
    conformance(&store(&server.url())).unwrap_or_else(|failure| panic!("{failure}"));
}

#[test]
fn values_of_any_bytes_and_length_come_back() {
    let server = start(MemcachedSettings::default());
    run(async {
        let mut cache = connect(&server.url()).await;
        assert_eq!(cache.get("none").await, Ok(None));
        // Just below the server's limit of 1 MiB for a record.
        for length in [0, 1, 100, 5_000, 16 * 1024, 70_000, 1_000_000] {
            let value = binary(length, 7);
            cache.set("k", &value).await.unwrap();
            assert_eq!(cache.get("k").await.unwrap(), Some(value), "{length} bytes");
        }
        cache.set("k", b"\r\nHD\r\n\0\xff").await.unwrap();
        assert_eq!(cache.get("k").await.unwrap().unwrap(), b"\r\nHD\r\n\0\xff");
        assert_eq!(cache.delete("k").await, Ok(true));
        assert_eq!(cache.delete("k").await, Ok(false));
        assert_eq!(cache.get("k").await, Ok(None));
        let longest = "k".repeat(250);
        cache.set(&longest, b"v").await.unwrap();
        assert_eq!(cache.get(&longest).await, Ok(Some(b"v".to_vec())));
        let error = cache.set("two words", b"v").await.unwrap_err();
        assert_eq!((error.class, error.certainty), (ErrorClass::Rejected, Certainty::Failed));
        // Refused before it was sent: the connection is as good as before.
        assert_eq!(cache.get(&longest).await, Ok(Some(b"v".to_vec())));
    });
}

#[test]
fn a_value_that_is_too_large_is_refused_and_the_connection_goes_on() {
    let server = start(MemcachedSettings::default());
    run(async {
        let mut cache = connect(&server.url()).await;
        let error = cache.set("k", &binary(2_000_000, 1)).await.unwrap_err();
        assert_eq!((error.class, error.certainty), (ErrorClass::Rejected, Certainty::Failed));
        assert!(error.message.contains("-I"), "{error}");
        cache.set("k", b"small").await.unwrap();
        assert_eq!(cache.get("k").await, Ok(Some(b"small".to_vec())));
    });
}

#[test]
fn a_time_to_live_is_kept_within_the_precision_told() {
    let server = start(MemcachedSettings::default());
    run(async {
        let mut cache = connect(&server.url()).await;
        let precision = store(&server.url()).profile().await.unwrap().ttl_precision;
        let ttl = Duration::from_secs(3);
        cache.put(whole(b"t", b"v", Some(ttl))).await.unwrap();
        cache.put(whole(b"u", b"v", Some(ttl))).await.unwrap();
        cache.put(whole(b"u", b"v", None)).await.unwrap();
        let month = Duration::from_secs(31 * 24 * 3600);
        cache.put(whole(b"long", b"v", Some(month))).await.unwrap();
        tokio::time::sleep(ttl - precision).await;
        assert!(cache.get("t").await.unwrap().is_some());
        tokio::time::sleep(precision * 2).await;
        assert!(cache.get("t").await.unwrap().is_none());
        assert!(cache.get("u").await.unwrap().is_some(), "a put without one takes it away");
        assert!(cache.get("long").await.unwrap().is_some(), "above 30 days is not in the past");
    });
}

#[test]
fn batches_are_one_request_each() {
    let server = start(MemcachedSettings::default());
    run(async {
        let mut cache = connect(&server.url()).await;
        let connection = &mut cache.connection;
        let puts = [whole(b"a", b"1", None), whole(b"b", b"", None), whole(b"c", b"3", None)];
        drive(&mut connection.transport, connection.clients[0].put_batch(&puts)).await.unwrap();
        let keys: [&[u8]; 5] = [b"a", b"none", b"b", b"c", b"a"];
        let mut rows = Rows::default();
        let get = connection.clients[0].get_batch(&keys, &mut rows);
        drive(&mut connection.transport, get).await.unwrap();
        let expected: [(&[u8], Option<&[u8]>); 5] = [
            (b"a", Some(b"1")),
            (b"none", None),
            (b"b", Some(b"")),
            (b"c", Some(b"3")),
            (b"a", Some(b"1")),
        ];
        assert_eq!(rows.iter().collect::<Vec<_>>(), expected);
        let large = binary(2_000_000, 1);
        let puts = [whole(b"a", b"new", None), whole(b"b", &large, None)];
        let put = connection.clients[0].put_batch(&puts);
        let error = drive(&mut connection.transport, put).await.unwrap_err();
        assert_eq!(error.certainty, Certainty::Indeterminate, "one of two was stored");
        assert_eq!(cache.get("a").await, Ok(Some(b"new".to_vec())));
    });
}

#[test]
fn a_pipeline_of_sixteen_keeps_big_and_small_answers_apart() {
    let server = start(MemcachedSettings::default());
    run(keeps_answers_apart(&store(&server.url()), 16));
}

#[test]
fn a_password_is_asked_for() {
    let credentials = Some(("user".to_owned(), "secret".to_owned()));
    let server = start(MemcachedSettings { credentials, ..MemcachedSettings::default() });
    let address = server.address();
    run(async {
        let mut cache = connect(&server.url()).await;
        cache.set("k", b"v").await.unwrap();
        assert_eq!(cache.get("k").await, Ok(Some(b"v".to_vec())));
        for user in ["", "user:wrong@", "other:secret@"] {
            let url = format!("memcached://{user}{address}");
            let error = store(&url).connect(1).await.err().expect(user);
            assert_eq!(error.class, ErrorClass::Rejected, "{error}");
            assert!(error.message.contains("in the URL"), "{error}");
        }
    });
}

#[test]
fn tls_needs_a_trusted_authority() {
    let server = start(MemcachedSettings { tls: true, ..MemcachedSettings::default() });
    let other = start(MemcachedSettings { tls: true, ..MemcachedSettings::default() });
    run(async {
        let mut cache = connect(&server.url()).await;
        let value = binary(500_000, 3);
        cache.set("k", &value).await.unwrap();
        assert_eq!(cache.get("k").await.unwrap(), Some(value));
        let address = server.address();
        let foreign = other.certificates().unwrap().authority.display();
        for url in [
            format!("memcacheds://{address}"),
            format!("memcacheds://{address}?ca={foreign}"),
            format!("memcached://{address}?timeout=1s"),
        ] {
            let error = store(&url).connect(1).await.err().expect(&url);
            assert_eq!(error.class, ErrorClass::Refused, "{error}");
        }
    });
}

/// 100 requests in flight on one connection, every second one a write.
async fn hundred_in_flight(
    server: &mut MemcachedServer,
    harm: impl FnOnce(&mut MemcachedServer),
) -> (Memcached, Vec<Answer<()>>) {
    let url = format!("{}?timeout=500ms", server.url());
    let mut connection = store(&url).connect(100).await.unwrap();
    server.pause().unwrap();
    let mut readings: Vec<Reading> = (0..100).map(|_| Reading::default()).collect();
    let clients = connection.clients.iter_mut().enumerate();
    let requests: Vec<_> = clients
        .zip(&mut readings)
        .map(|((n, client), into)| async move {
            match n % 2 {
                0 => client.get(b"k", into).await.map(drop),
                _ => client.put(whole(b"k", b"v", None)).await,
            }
        })
        .collect();
    let all = drive_all(&mut connection.transport, requests);
    let harm = async {
        tokio::time::sleep(Duration::from_millis(100)).await;
        harm(server);
    };
    let (answers, ()) = tokio::join!(all, harm);
    (Single::new(connection), answers)
}

fn assert_lost(answers: &[Answer<()>], class: ErrorClass) {
    for (n, answer) in answers.iter().enumerate() {
        let error = answer.as_ref().unwrap_err();
        let certainty = if n % 2 == 0 { Certainty::Failed } else { Certainty::Indeterminate };
        assert_eq!((error.class, error.certainty), (class, certainty), "request {n}: {error}");
        assert!(error.connection_lost);
    }
}

#[test]
fn a_killed_server_leaves_writes_indeterminate_and_reads_failed() {
    let mut server = start(MemcachedSettings::default());
    run(async {
        let (mut cache, answers) =
            hundred_in_flight(&mut server, |server| server.kill9().unwrap()).await;
        assert_lost(&answers, ErrorClass::Disconnected);
        let error = cache.set("k", b"v").await.unwrap_err();
        assert_eq!((error.class, error.certainty), (ErrorClass::Refused, Certainty::Failed));
        assert!(error.connection_lost);
        server.restart().unwrap();
        cache.set("k", b"again").await.unwrap();
        assert_eq!(cache.get("k").await, Ok(Some(b"again".to_vec())));
    });
}

#[test]
fn a_paused_server_times_out_and_is_found_again() {
    let mut server = start(MemcachedSettings::default());
    run(async {
        let (mut cache, answers) = hundred_in_flight(&mut server, |_| {}).await;
        assert_lost(&answers, ErrorClass::Timeout);
        let error = cache.get("k").await.unwrap_err();
        assert_eq!((error.class, error.certainty), (ErrorClass::Refused, Certainty::Failed));
        server.resume().unwrap();
        // A key of its own: the writes that timed out may be applied at any time from now on.
        cache.set("new", b"again").await.unwrap();
        assert_eq!(cache.get("new").await, Ok(Some(b"again".to_vec())));
    });
}

#[test]
fn a_full_server_without_eviction_refuses_and_may_forget_all_the_same() {
    let full = MemcachedSettings { memory: 2, evict: false, ..MemcachedSettings::default() };
    let server = start(full);
    run(async {
        let mut cache = connect(&server.url()).await;
        cache.set("old", b"small").await.unwrap();
        let value = binary(100_000, 1);
        let mut refused = None;
        for n in 0..200 {
            if let Err(error) = cache.set(&format!("k{n}"), &value).await {
                refused = Some(error);
                break;
            }
        }
        let error = refused.expect("the memory limit is reached");
        assert_eq!((error.class, error.certainty), (ErrorClass::Full, Certainty::Failed));
        // The put that is refused takes the old record away: this is why absence is never a loss.
        assert_eq!(cache.set("old", &value).await.unwrap_err().class, ErrorClass::Full);
        assert_eq!(cache.get("old").await, Ok(None));
        let profile = store(&server.url()).profile().await.unwrap();
        assert!(profile.capabilities.may_forget);
        assert!(profile.settings.contains(&("evictions".to_owned(), "off".to_owned())));
    });
}

#[test]
fn what_the_server_promises_is_read_back() {
    let server = start(MemcachedSettings { memory: 100, ..MemcachedSettings::default() });
    run(async {
        let profile = store(&server.url()).profile().await.unwrap();
        assert!(profile.version.is_some_and(|version| version.starts_with("1.")));
        assert_eq!(profile.durability, Promise::checked(Durability::None));
        assert_eq!(profile.consistency, Promise::checked(Consistency::Linearizable));
        assert!(profile.capabilities.may_forget);
        assert!(profile.settings.contains(&("maxbytes".to_owned(), "104857600".to_owned())));
        assert!(profile.settings.contains(&("evictions".to_owned(), "on".to_owned())));
    });
}

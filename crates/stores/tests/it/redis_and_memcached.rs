//! A table of cases that the drivers of Redis and of Memcached pass alike, each against real servers: one of them, or
//! several that kvdyno spreads the keys over. What is one store's own is tested in its own file.

use std::net::SocketAddr;
use std::ops::DerefMut;
use std::time::Duration;

use crate::harness::{
    Single, assert_only_the_dead_fail, binary, drive_all, in_flight, keeps_answers_apart, names,
    run, whole,
};
use crate::one_server::{MemcachedServer, MemcachedSettings, RedisServer, RedisSettings};
use kvdyno_core::store::{Answer, Certainty, Client, ErrorClass, Reading, RequestError, Store};
use kvdyno_core::workload::fault::NodeFault;
use kvdyno_stores::StoreUrl;
use kvdyno_stores::conformance::conformance;
use kvdyno_stores::memcached::MemcachedStore;
use kvdyno_stores::redis::RedisStore;
use kvdyno_testbed::{Certificates, Deployment, Server, Testbed, conversation};

/// A driver of the table, and how its servers are started and asked.
trait Driver {
    type Store: Store;
    type Server: DerefMut<Target = Server>;

    /// Schemes of its URLs, without and with TLS.
    const SCHEMES: [&str; 2];
    /// Part of a URL's scheme that stands for several servers.
    const SEVERAL: &str;
    /// Options by which it speaks each of the server's protocols.
    const PROTOCOLS: &[&str];
    /// User and password that a server with a password lets in, as in a URL.
    const USER: &str;
    /// Users and passwords that it does not let in.
    const STRANGERS: &[&str];
    /// A value that looks like an answer of the protocol.
    const LIKE_AN_ANSWER: &[u8];
    /// A time to live that is no whole number of the server's own unit, where that is fine enough.
    const TTL: Duration;
    /// The testbed of several servers, and its second node.
    const TESTBED: (&str, &str);

    /// Starts a server, with a password and with TLS if they are asked for.
    fn start(password: bool, tls: bool) -> Self::Server;
    fn url(server: &Self::Server) -> String;
    fn certificates(server: &Self::Server) -> &Certificates;
    fn open(url: &mut StoreUrl) -> Self::Store;
    /// Returns true if a server has a record.
    fn has(server: SocketAddr, key: &str) -> bool;
}

struct Redis;

impl Driver for Redis {
    type Store = RedisStore;
    type Server = RedisServer;

    const SCHEMES: [&str; 2] = ["redis", "rediss"];
    const SEVERAL: &str = "+sharded";
    const PROTOCOLS: &[&str] = &["?resp=2", "?resp=3"];
    const USER: &str = ":secret@";
    const STRANGERS: &[&str] = &["", ":mistaken-password@", "bob:secret@"];
    const LIKE_AN_ANSWER: &[u8] = b"\r\n$5\r\n\0\xff";
    const TTL: Duration = Duration::from_millis(1500);
    const TESTBED: (&str, &str) = ("redis-sharded:4", "redis-2");

    fn start(password: bool, tls: bool) -> RedisServer {
        let password = password.then(|| "secret".to_owned());
        let server = RedisServer::start(RedisSettings { password, tls, ..Default::default() });
        server.unwrap_or_else(|error| panic!("{error}"))
    }

    fn url(server: &RedisServer) -> String {
        server.url()
    }

    fn certificates(server: &RedisServer) -> &Certificates {
        server.certificates().unwrap()
    }

    fn open(url: &mut StoreUrl) -> RedisStore {
        RedisStore::open(url).unwrap()
    }

    fn has(server: SocketAddr, key: &str) -> bool {
        let answer = conversation(server, format!("EXISTS {key}\r\n").as_bytes(), b"\r\n");
        answer.is_some_and(|answer| answer.starts_with(":1"))
    }
}

struct Memcached;

impl Driver for Memcached {
    type Store = MemcachedStore;
    type Server = MemcachedServer;

    const SCHEMES: [&str; 2] = ["memcached", "memcacheds"];
    const SEVERAL: &str = "";
    const PROTOCOLS: &[&str] = &[""];
    const USER: &str = "user:secret@";
    const STRANGERS: &[&str] = &["", "user:mistaken-password@", "other:secret@"];
    const LIKE_AN_ANSWER: &[u8] = b"\r\nHD\r\n\0\xff";
    const TTL: Duration = Duration::from_secs(3);
    const TESTBED: (&str, &str) = ("memcached:3", "memcached-2");

    fn start(password: bool, tls: bool) -> MemcachedServer {
        let credentials = password.then(|| ("user".to_owned(), "secret".to_owned()));
        let settings = MemcachedSettings { credentials, tls, ..Default::default() };
        MemcachedServer::start(settings).unwrap_or_else(|error| panic!("{error}"))
    }

    fn url(server: &MemcachedServer) -> String {
        server.url()
    }

    fn certificates(server: &MemcachedServer) -> &Certificates {
        server.certificates().unwrap()
    }

    fn open(url: &mut StoreUrl) -> MemcachedStore {
        MemcachedStore::open(url).unwrap()
    }

    fn has(server: SocketAddr, key: &str) -> bool {
        let answer = conversation(server, format!("mg {key}\r\n").as_bytes(), b"\r\n");
        answer.is_some_and(|answer| answer.starts_with("HD"))
    }
}

/// The table: each case is a test of either driver.
macro_rules! cases {
    ($($case:ident),* $(,)?) => {
        mod redis {
            $(#[test] fn $case() { super::$case::<super::Redis>(); })*
        }
        mod memcached {
            $(#[test] fn $case() { super::$case::<super::Memcached>(); })*
        }
    };
}

cases! {
    it_conforms,
    values_of_any_bytes_and_length_come_back,
    a_time_to_live_is_kept_within_the_precision_told,
    batches_keep_the_order_that_was_asked_for,
    a_pipeline_of_sixteen_keeps_big_and_small_answers_apart,
    a_password_is_asked_for,
    tls_needs_a_trusted_authority,
    a_killed_server_leaves_writes_indeterminate_and_reads_failed,
    a_paused_server_times_out_and_is_found_again,
    a_killed_server_of_several_fails_its_own_part_and_no_other,
    tls_and_passwords_reach_every_server,
}

type Clients<D> =
    Single<<<D as Driver>::Store as Store>::Client, <<D as Driver>::Store as Store>::Transport>;

fn store<D: Driver>(url: &str) -> D::Store {
    D::open(&mut StoreUrl::parse(url).unwrap())
}

async fn connect<D: Driver>(url: &str) -> Clients<D> {
    Single::new(store::<D>(url).connect(1).await.unwrap())
}

fn kind(error: RequestError) -> (ErrorClass, Certainty) {
    (error.class, error.certainty)
}

fn it_conforms<D: Driver>() {
    let server = D::start(false, false);
    for protocol in D::PROTOCOLS {
        let store = store::<D>(&format!("{}{protocol}", D::url(&server)));
        conformance(&store).unwrap_or_else(|failure| panic!("{protocol}: {failure}"));
    }
}

fn values_of_any_bytes_and_length_come_back<D: Driver>() {
    let server = D::start(false, false);
    for protocol in D::PROTOCOLS {
        run(async {
            let mut client = connect::<D>(&format!("{}{protocol}", D::url(&server))).await;
            assert_eq!(client.get("none").await, Ok(None));
            // Just below Memcached's limit of 1 MiB for a record.
            for length in [0, 1, 100, 5_000, 16 * 1024, 70_000, 1_000_000] {
                let value = binary(length, 7);
                client.set("k", &value).await.unwrap();
                assert_eq!(client.get("k").await.unwrap(), Some(value), "{length} bytes");
            }
            client.set("k", D::LIKE_AN_ANSWER).await.unwrap();
            assert_eq!(client.get("k").await.unwrap().unwrap(), D::LIKE_AN_ANSWER);
            assert_eq!(client.delete("k").await, Ok(true));
            assert_eq!(client.delete("k").await, Ok(false));
            assert_eq!(client.get("k").await, Ok(None));
        });
    }
}

fn a_time_to_live_is_kept_within_the_precision_told<D: Driver>() {
    let server = D::start(false, false);
    run(async {
        let mut client = connect::<D>(&D::url(&server)).await;
        let precision = store::<D>(&D::url(&server)).profile().await.unwrap().ttl_precision;
        // Requests take their time, too.
        let precision = precision.max(Duration::from_millis(500));
        client.put(whole(b"t", b"v", Some(D::TTL))).await.unwrap();
        client.put(whole(b"u", b"v", Some(D::TTL))).await.unwrap();
        client.put(whole(b"u", b"v", None)).await.unwrap();
        let month = Duration::from_secs(31 * 24 * 3600);
        client.put(whole(b"long", b"v", Some(month))).await.unwrap();
        tokio::time::sleep(D::TTL - precision).await;
        assert!(client.get("t").await.unwrap().is_some());
        tokio::time::sleep(precision * 2).await;
        assert!(client.get("t").await.unwrap().is_none());
        assert!(client.get("u").await.unwrap().is_some(), "a put without one takes it away");
        assert!(client.get("long").await.unwrap().is_some(), "above 30 days is not in the past");
    });
}

fn batches_keep_the_order_that_was_asked_for<D: Driver>() {
    let server = D::start(false, false);
    run(async {
        let mut client = connect::<D>(&D::url(&server)).await;
        client.set_all(&names("k", 2), b"12", None).await.unwrap();
        client.set_all(&["empty".to_owned()], b"", None).await.unwrap();
        let wanted: Vec<String> = ["k0", "none", "empty", "k1", "k0"].map(str::to_owned).to_vec();
        let found = client.get_all(&wanted).await.unwrap();
        let (full, empty) = (Some(b"12".to_vec()), Some(Vec::new()));
        assert_eq!(found, [full.clone(), None, empty, full.clone(), full]);
    });
}

fn a_pipeline_of_sixteen_keeps_big_and_small_answers_apart<D: Driver>() {
    let server = D::start(false, false);
    run(keeps_answers_apart(&store::<D>(&D::url(&server)), 16));
}

fn a_password_is_asked_for<D: Driver>() {
    let server = D::start(true, false);
    let (scheme, address) = (D::SCHEMES[0], server.address());
    run(async {
        for protocol in D::PROTOCOLS {
            let at = |user: &str| format!("{scheme}://{user}{address}{protocol}");
            let mut client = connect::<D>(&at(D::USER)).await;
            client.set("k", b"v").await.unwrap();
            assert_eq!(client.get("k").await, Ok(Some(b"v".to_vec())));
            for user in D::STRANGERS {
                let error = store::<D>(&at(user)).connect(1).await.err().expect(user);
                assert_eq!(error.class, ErrorClass::Rejected, "{user}: {error}");
                assert!(error.message.contains("URL"), "{user}: {error}");
            }
        }
    });
}

fn tls_needs_a_trusted_authority<D: Driver>() {
    let (server, other) = (D::start(false, true), D::start(false, true));
    run(async {
        let mut client = connect::<D>(&D::url(&server)).await;
        for length in [0, 100, 1_000_000] {
            let value = binary(length, 3);
            client.set("k", &value).await.unwrap();
            assert_eq!(client.get("k").await.unwrap(), Some(value));
        }
        let ([plain, tls], address) = (D::SCHEMES, server.address());
        let foreign = D::certificates(&other).authority.display();
        for url in [
            format!("{tls}://{address}"),
            format!("{tls}://{address}?ca={foreign}"),
            format!("{plain}://{address}?timeout=1s"),
        ] {
            let error = store::<D>(&url).connect(1).await.err().expect(&url);
            assert_eq!(error.class, ErrorClass::Refused, "{error}");
        }
    });
}

/// Sends 100 requests on one connection of a paused server, every second one a write, and does `harm` while they
/// are in flight.
async fn hundred_in_flight<D: Driver>(
    server: &mut D::Server,
    harm: impl FnOnce(&mut D::Server),
) -> (Clients<D>, Vec<Answer<()>>) {
    let url = format!("{}?timeout=500ms", D::url(server));
    let mut connection = store::<D>(&url).connect(100).await.unwrap();
    // Nothing is answered from here on, and all requests leave.
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

fn a_killed_server_leaves_writes_indeterminate_and_reads_failed<D: Driver>() {
    let mut server = D::start(false, false);
    run(async {
        let kill = |server: &mut D::Server| server.kill9().unwrap();
        let (mut client, answers) = hundred_in_flight::<D>(&mut server, kill).await;
        assert_lost(&answers, ErrorClass::Disconnected);
        // While it is down each attempt is refused and nothing was sent.
        let error = client.set("k", b"v").await.unwrap_err();
        assert!(error.connection_lost);
        assert_eq!(kind(error), (ErrorClass::Refused, Certainty::Failed));
        server.restart().unwrap();
        client.set("k", b"again").await.unwrap();
        assert_eq!(client.get("k").await, Ok(Some(b"again".to_vec())));
    });
}

fn a_paused_server_times_out_and_is_found_again<D: Driver>() {
    let mut server = D::start(false, false);
    run(async {
        let (mut client, answers) = hundred_in_flight::<D>(&mut server, |_| {}).await;
        assert_lost(&answers, ErrorClass::Timeout);
        // The kernel still accepts connections for it; the handshake gets no answer.
        let error = client.get("k").await.unwrap_err();
        assert_eq!(kind(error), (ErrorClass::Refused, Certainty::Failed));
        server.resume().unwrap();
        // A key of its own: the writes that timed out may be applied at any time from now on.
        client.set("new", b"again").await.unwrap();
        assert_eq!(client.get("new").await, Ok(Some(b"again".to_vec())));
    });
}

fn a_killed_server_of_several_fails_its_own_part_and_no_other<D: Driver>() {
    let (words, node) = D::TESTBED;
    let mut testbed = Deployment::up(words).unwrap_or_else(|error| panic!("{error}"));
    let second = testbed.nodes()[1].address.parse().unwrap();
    run(async {
        let store = store::<D>(testbed.url());
        let keys = names("key", 100);
        let mut connection = store.connect(100).await.unwrap();
        let mut client = Single::new(store.connect(1).await.unwrap());
        client.set_all(&keys, b"v", None).await.unwrap();
        let on_second: Vec<bool> = keys.iter().map(|key| D::has(second, key)).collect();
        testbed.act(node, NodeFault::Pause).unwrap();
        let harm = || testbed.act(node, NodeFault::Kill).unwrap();
        let answers = in_flight(&mut connection, &keys, harm).await;
        assert_only_the_dead_fail(&answers, |n| on_second[n]);
        let of = |dead: bool| -> Vec<String> {
            let these = keys.iter().zip(&on_second).filter(|(_, on)| **on == dead);
            these.map(|(key, _)| key.clone()).collect()
        };
        let (dead, alive) = (of(true), of(false));
        let mut client = Single::new(connection);
        // A batch of which some servers have their part and one does not is not known as a whole.
        let error = client.set_all(&keys, b"w", None).await.unwrap_err();
        assert_eq!(kind(error), (ErrorClass::Refused, Certainty::Indeterminate));
        let error = client.set_all(&dead, b"w", None).await.unwrap_err();
        assert_eq!(kind(error), (ErrorClass::Refused, Certainty::Failed));
        let error = client.get_all(&keys).await.unwrap_err();
        assert_eq!(kind(error), (ErrorClass::Refused, Certainty::Failed));
        client.set_all(&alive, b"x", None).await.unwrap();
        assert_eq!(client.get(&alive[0]).await, Ok(Some(b"x".to_vec())));
        testbed.act(node, NodeFault::Restart).unwrap();
        client.set_until_it_succeeds(&dead[0], b"again").await;
        assert_eq!(client.get(&dead[0]).await, Ok(Some(b"again".to_vec())));
    });
}

fn tls_and_passwords_reach_every_server<D: Driver>() {
    let servers = [D::start(true, true), D::start(true, true)];
    let authorities = servers.each_ref().map(|server| &D::certificates(server).authority);
    let folder = tempfile::tempdir().unwrap();
    let both = folder.path().join("both.pem");
    let texts = authorities.map(|authority| std::fs::read_to_string(authority).unwrap());
    std::fs::write(&both, texts.concat()).unwrap();
    let [first, second] = servers.each_ref().map(|server| server.address());
    let url = |user: &str, ca: &std::path::Path| {
        let (tls, several) = (D::SCHEMES[1], D::SEVERAL);
        format!("{tls}{several}://{user}{first},{second}?ca={}", ca.display())
    };
    run(async {
        let store_of_both = store::<D>(&url(D::USER, &both));
        let mut client = Single::new(store_of_both.connect(1).await.unwrap());
        let keys = names("key", 60);
        client.set_all(&keys, b"v", None).await.unwrap();
        assert_eq!(client.get_all(&keys).await.unwrap(), vec![Some(b"v".to_vec()); 60]);
        drop(client);
        // Each server is asked over TLS and with the password for its number of keys, too.
        let figures = store_of_both.figures().await;
        let keys = figures.iter().find(|figure| figure.name == "chi-square of keys").unwrap();
        assert!(keys.value < 40.0, "{keys:?}");
        for user in D::STRANGERS {
            let error = store::<D>(&url(user, &both)).connect(1).await.err().expect(user);
            assert_eq!(error.class, ErrorClass::Rejected, "{user}: {error}");
        }
        let half = store::<D>(&url(D::USER, authorities[0]));
        assert!(half.profile().await.is_err(), "one server is not trusted");
    });
}

//! Tests what only the Redis driver does against a real Redis; `redis_and_memcached.rs` has the rest.

use std::time::Duration;

use crate::harness::{Single, binary, drive, drive_all, run, spans, whole};
use crate::one_server::{AppendOnly, RedisServer, RedisSettings};
use kvdyno_core::store::{
    Answer, Certainty, Client, Consistency, Durability, ErrorClass, Profile, Promise, Put, Reading,
    RequestError, Store, Value,
};
use kvdyno_stores::StoreUrl;
use kvdyno_stores::redis::{RedisClient, RedisStore, RedisTransport};

type Redis = Single<RedisClient, RedisTransport>;

fn start(settings: RedisSettings) -> RedisServer {
    RedisServer::start(settings).unwrap_or_else(|error| panic!("{error}"))
}

fn store(url: &str) -> RedisStore {
    RedisStore::open(&mut StoreUrl::parse(url).unwrap()).unwrap()
}

async fn connect(url: &str) -> Redis {
    Single::new(store(url).connect(1).await.unwrap())
}

async fn profile(settings: RedisSettings) -> Profile {
    let server = start(settings);
    store(&server.url()).profile().await.unwrap()
}

#[test]
fn fields_are_written_whole_and_apart() {
    let server = start(RedisSettings::default());
    for resp in ["2", "3"] {
        run(async {
            let url = format!("{}?resp={resp}", server.url());
            let mut redis = connect(&url).await;
            redis.delete("h").await.unwrap();
            let all = spans(&[(0, 2), (1, 0), (2, 3)]);
            let put = |bytes: &'static [u8], spans, partial, ttl| Put {
                value: Value::new(bytes, spans),
                partial,
                record_fields: 3,
                ..whole(b"h", b"", ttl)
            };
            let fields = |reading: &Reading| {
                let mut found: Vec<(u16, Vec<u8>)> = reading
                    .spans()
                    .iter()
                    .map(|s| (s.index, reading.bytes()[s.start as usize..s.end as usize].to_vec()))
                    .collect();
                found.sort();
                found
            };
            redis.put(put(b"aaccc", &all, false, None)).await.unwrap();
            let read = redis.read("h").await.unwrap().unwrap();
            let expected = [(0, b"aa".to_vec()), (1, vec![]), (2, b"ccc".to_vec())];
            assert_eq!(fields(&read), expected);
            let one = spans(&[(1, 4)]);
            redis.put(put(b"\r\nxy", &one, true, None)).await.unwrap();
            // A client that has written nothing finds out by itself that records are hashes.
            let read = connect(&url).await.read("h").await.unwrap().unwrap();
            assert_eq!(fields(&read)[1], (1, b"\r\nxy".to_vec()));
            assert_eq!(fields(&read)[2], (2, b"ccc".to_vec()));
            // A time to live ends the record; a whole write without one ends the time to live.
            redis.put(put(b"aaccc", &all, false, Some(Duration::from_millis(200)))).await.unwrap();
            redis.put(put(b"bbddd", &all, false, None)).await.unwrap();
            tokio::time::sleep(Duration::from_millis(400)).await;
            assert_eq!(redis.get("h").await.unwrap().unwrap().len(), 5);
            redis.put(put(b"aaccc", &all, false, Some(Duration::from_millis(200)))).await.unwrap();
            assert!(redis.read("h").await.unwrap().is_some());
            tokio::time::sleep(Duration::from_millis(400)).await;
            assert!(redis.read("h").await.unwrap().is_none());
        });
    }
}

#[test]
fn records_of_a_batch_have_times_to_live_of_their_own() {
    let server = start(RedisSettings::default());
    run(async {
        let mut redis = connect(&server.url()).await;
        let ttl = Some(Duration::from_millis(300));
        let puts = [whole(b"c", b"3", ttl), whole(b"d", b"4", None)];
        let connection = &mut redis.connection;
        drive(&mut connection.transport, connection.clients[0].put_batch(&puts)).await.unwrap();
        tokio::time::sleep(Duration::from_millis(500)).await;
        assert_eq!(redis.get("c").await, Ok(None));
        assert_eq!(redis.get("d").await, Ok(Some(b"4".to_vec())));
    });
}

#[test]
fn a_user_may_do_what_its_list_allows() {
    let settings = RedisSettings {
        password: Some("s3cret".to_owned()),
        users: vec!["alice on >wonder ~a* +@all -config".to_owned()],
        ..RedisSettings::default()
    };
    let server = start(settings);
    let address = server.address();
    run(async {
        for options in ["", "?resp=2", "?resp=3"] {
            let url = format!("redis://alice:wonder@{address}{options}");
            let mut alice = connect(&url).await;
            alice.set("a1", b"v").await.unwrap();
            let denied = alice.set("b1", b"v").await.unwrap_err();
            assert_eq!((denied.class, denied.certainty), (ErrorClass::Rejected, Certainty::Failed));
            assert!(!denied.connection_lost);
            let url = format!("redis://alice:mistaken-password@{address}{options}");
            let error = store(&url).connect(1).await.err().unwrap();
            assert_eq!(error.class, ErrorClass::Rejected, "{error}");
        }
        // CONFIG is forbidden to alice: nothing is claimed to have been checked.
        let url = format!("redis://alice:wonder@{address}");
        let profile = store(&url).profile().await.unwrap();
        assert_eq!(profile.durability, Promise::declared(Durability::None));
        assert!(!profile.capabilities.may_forget);
    });
}

#[test]
fn databases_are_apart() {
    let server = start(RedisSettings::default());
    run(async {
        let mut zero = connect(&server.url()).await;
        let mut five = connect(&format!("{}/5", server.url())).await;
        five.set("k", b"five").await.unwrap();
        assert_eq!(zero.get("k").await, Ok(None));
        assert_eq!(five.get("k").await, Ok(Some(b"five".to_vec())));
        let error = store(&format!("{}/999", server.url())).connect(1).await.err().unwrap();
        assert_eq!(error.class, ErrorClass::Rejected);
    });
}

#[test]
fn clients_of_a_connection_share_one_attempt_to_connect_again() {
    let mut server = start(RedisSettings::default());
    run(async {
        let mut connection = store(&server.url()).connect(4).await.unwrap();
        server.restart().unwrap();
        let url = server.url();
        let mut watcher = connect(&url).await;
        let mut readings: Vec<Reading> = (0..4).map(|_| Reading::default()).collect();
        for expected_ok in [false, true] {
            let clients = connection.clients.iter_mut().zip(&mut readings);
            let gets = clients.map(|(client, into)| client.get(b"k", into)).collect();
            let answers = drive_all(&mut connection.transport, gets).await;
            assert!(answers.iter().all(|answer| answer.is_ok() == expected_ok), "{answers:?}");
        }
        watcher.set("k", b"v").await.unwrap();
        let info = std::process::Command::new("redis-cli")
            .args(["-h", &server.address().ip().to_string()])
            .args(["-p", &server.port().to_string(), "info", "clients"])
            .output()
            .unwrap();
        // The watcher, redis-cli, and one for the four clients.
        let info = String::from_utf8(info.stdout).unwrap();
        assert!(info.contains("connected_clients:3"), "{info}");
    });
}

#[test]
fn a_write_of_which_no_byte_left_is_surely_failed() {
    let mut server = start(RedisSettings::default());
    run(async {
        let url = format!("{}?timeout=500ms", server.url());
        let mut connection = store(&url).connect(8).await.unwrap();
        server.pause().unwrap();
        // More than the socket's buffers take, so that the last ones stay here.
        let big = binary(8_000_000, 1);
        let clients = connection.clients.iter_mut();
        let puts = clients.map(|client| client.put(whole(b"k", &big, None))).collect();
        let answers = drive_all(&mut connection.transport, puts).await;
        let certainty = |answer: &Answer<()>| answer.as_ref().unwrap_err().certainty;
        assert_eq!(certainty(&answers[0]), Certainty::Indeterminate);
        assert_eq!(certainty(&answers[7]), Certainty::Failed);
    });
}

#[test]
fn a_full_server_refuses_and_has_not_applied() {
    let limit = |policy: &str| RedisSettings {
        max_memory: Some((3_000_000, policy.to_owned())),
        ..RedisSettings::default()
    };
    let server = start(limit("noeviction"));
    run(async {
        let mut redis = connect(&server.url()).await;
        let value = binary(100_000, 1);
        let mut refused: Option<(String, RequestError)> = None;
        for n in 0..100 {
            let key = format!("k{n}");
            if let Err(error) = redis.set(&key, &value).await {
                refused = Some((key, error));
                break;
            }
        }
        let (key, error) = refused.expect("the memory limit is reached");
        assert_eq!((error.class, error.certainty), (ErrorClass::Full, Certainty::Failed));
        assert_eq!(redis.get(&key).await, Ok(None));
        let fields = spans(&[(0, 50_000), (1, 50_000)]);
        let put = Put {
            value: Value::new(&value, &fields),
            record_fields: 2,
            ..whole(b"h", b"", Some(Duration::from_secs(9)))
        };
        let error = redis.put(put).await.unwrap_err();
        assert_eq!((error.class, error.certainty), (ErrorClass::Full, Certainty::Failed));
        assert!(!store(&server.url()).profile().await.unwrap().capabilities.may_forget);
        assert!(profile(limit("allkeys-lru")).await.capabilities.may_forget);
    });
}

#[test]
fn what_the_server_promises_is_read_back() {
    run(async {
        let cases = [
            (AppendOnly::Off, Durability::None),
            (AppendOnly::EverySecond, Durability::None),
            (AppendOnly::No, Durability::ProcessKill),
            (AppendOnly::Always, Durability::PowerLoss),
        ];
        for (append_only, level) in cases {
            let found = profile(RedisSettings { append_only, ..RedisSettings::default() }).await;
            assert_eq!(found.durability, Promise::checked(level), "{append_only:?}");
            assert_eq!(found.consistency, Promise::checked(Consistency::Linearizable));
            assert!(found.version.is_some_and(|version| version.contains('.')));
            assert!(found.settings.iter().any(|(name, _)| name == "appendonly"));
        }
    });
}

#[test]
fn a_key_with_other_data_is_refused_with_advice() {
    let server = start(RedisSettings::default());
    let port = server.port().to_string();
    let list = std::process::Command::new("redis-cli")
        .args(["-h", &server.address().ip().to_string(), "-p", &port, "rpush", "list", "x"])
        .output()
        .unwrap();
    assert!(list.status.success());
    run(async {
        let mut redis = connect(&server.url()).await;
        let error = redis.get("list").await.unwrap_err();
        assert_eq!((error.class, error.certainty), (ErrorClass::Rejected, Certainty::Failed));
        assert!(error.message.contains("wipe"), "{error}");
    });
}

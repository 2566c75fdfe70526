//! Redis over several servers that kvdyno shards the keys over, on real servers.

use std::net::SocketAddr;
use std::time::Duration;

use crate::harness::{Single, names, run};
use crate::one_server::{AppendOnly, RedisServer, RedisSettings};
use kvdyno_core::store::{Certainty, Durability, ErrorClass, Figure, Joined, Promise, Store};
use kvdyno_stores::StoreUrl;
use kvdyno_stores::conformance::conformance;
use kvdyno_stores::redis::{RedisClient, RedisStore, RedisTransport};
use kvdyno_testbed::{Deployment, Testbed, conversation};

type Redis = Single<RedisClient, RedisTransport>;

fn up(words: &str) -> Deployment {
    Deployment::up(words).unwrap_or_else(|error| panic!("{error}"))
}

fn store(url: &str) -> RedisStore {
    RedisStore::open(&mut StoreUrl::parse(url).unwrap()).unwrap()
}

async fn connect(store: &RedisStore) -> Redis {
    Single::new(store.connect(1).await.unwrap())
}

/// A server's answer to one command, without its line end.
fn ask(server: SocketAddr, command: &str) -> String {
    let answer = conversation(server, format!("{command}\r\n").as_bytes(), b"\r\n");
    answer.expect("an answer").trim_end().to_owned()
}

fn figure<'a>(figures: &'a [Figure], name: &str) -> &'a Figure {
    let found = figures.iter().find(|figure| figure.name == name);
    found.unwrap_or_else(|| panic!("no figure `{name}` in {figures:?}"))
}

#[test]
fn it_conforms_by_either_hash() {
    let testbed = up("redis-sharded:4");
    for hash in ["mix", "ketama"] {
        let store = store(&format!("{}?hash={hash}", testbed.url()));
        conformance(&store).unwrap_or_else(|failure| panic!("{hash}: {failure}"));
    }
}

#[test]
fn sixteen_servers_each_have_their_part_and_batches_are_split() {
    let mut testbed = up("redis-sharded:16");
    let servers: Vec<SocketAddr> =
        testbed.nodes().iter().map(|node| node.address.parse().unwrap()).collect();
    run(async {
        let store = store(testbed.url());
        let mut redis = connect(&store).await;
        let keys = names("key", 1600);
        redis.set_all(&keys, b"batch", None).await.unwrap();
        let wanted: Vec<String> = ["key7", "none", "key3", "key7"].map(str::to_owned).to_vec();
        let found = Some(b"batch".to_vec());
        let expected = [found.clone(), None, found.clone(), found];
        assert_eq!(redis.get_all(&wanted).await.unwrap(), expected);
        // What was written in a batch is read alone, and the other way round.
        assert_eq!(redis.get("key1599").await, Ok(Some(b"batch".to_vec())));
        redis.set("alone", b"1").await.unwrap();
        assert_eq!(redis.get_all(&["alone".to_owned()]).await.unwrap(), [Some(b"1".to_vec())]);
        // A time to live goes with each server's part.
        redis.set_all(&keys[..8], b"v", Some(Duration::from_millis(150))).await.unwrap();
        tokio::time::sleep(Duration::from_millis(400)).await;
        assert_eq!(redis.get_all(&keys[..8]).await.unwrap(), vec![None; 8]);
        drop(redis);
        let figures = store.figures().await;
        let keys = figure(&figures, "keys on the fullest server, over the mean");
        let counts: Vec<&str> = keys.detail.split(", ").collect();
        assert_eq!(counts.len(), 16);
        for (server, count) in servers.iter().zip(counts) {
            let size = ask(*server, "DBSIZE");
            assert_eq!(count, format!("{server} {}", size.trim_start_matches(':')));
        }
        assert!(keys.value < 1.5 && keys.warning.is_none(), "{keys:?}");
        assert!(figure(&figures, "chi-square of keys").detail.starts_with("15 degrees"));
        assert!(figure(&figures, "requests on the fullest server, over the mean").value >= 1.0);
        // Counts are of what happened since they were last asked for.
        let later = store.figures().await;
        assert!(later.iter().all(|figure| !figure.name.contains("requests")), "{later:?}");
    });
}

#[test]
fn an_uneven_spread_is_warned_of() {
    let testbed = up("redis-sharded:4");
    run(async {
        let store = store(&format!("{}?hash=ketama&weights=9,1,1,1", testbed.url()));
        let mut redis = connect(&store).await;
        for key in names("key", 400) {
            redis.set(&key, b"v").await.unwrap();
        }
        drop(redis);
        let figures = store.figures().await;
        for what in ["keys", "requests"] {
            let name = format!("{what} on the fullest server, over the mean");
            let warning = figure(&figures, &name).warning.as_deref().unwrap();
            assert!(
                warning.contains("unevenly") && warning.contains("another `hash`"),
                "{warning}"
            );
        }
    });
}

/// Asks for a record until it was refused, because records are being moved, and then given again.
async fn is_held_up(redis: &mut Redis, key: &str) {
    let mut refused = false;
    loop {
        match redis.get(key).await {
            Ok(found) => {
                assert_eq!(found, Some(b"v".to_vec()));
                if refused {
                    return;
                }
            }
            Err(error) => {
                let told = (error.class, error.certainty);
                assert_eq!(told, (ErrorClass::Unavailable, Certainty::Failed), "{error}");
                assert!(error.message.contains("being moved"), "{error}");
                refused = true;
            }
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

#[test]
fn a_server_that_joins_gets_its_records_while_nobody_is_served() {
    for (hash, moved) in [("mix", 400..500), ("ketama", 50..300)] {
        let mut testbed = up("redis-sharded:3");
        run(async {
            let store = store(&format!("{}?hash={hash}", testbed.url()));
            let mut redis = connect(&store).await;
            let keys = names("key", 600);
            redis.set_all(&keys, b"v", None).await.unwrap();
            testbed.add_node().unwrap();
            let nodes = testbed.nodes();
            let servers: Vec<SocketAddr> =
                nodes.iter().map(|n| n.address.parse().unwrap()).collect();
            let new = servers[3].to_string();
            let (told, ()) = tokio::join!(store.join(&new), is_held_up(&mut redis, "key1"));
            let told = told.unwrap();
            let Joined::Moved { moved: got, found, servers: serving } = told else {
                panic!("{hash}: {told:?}");
            };
            assert!(moved.contains(&got) && (found, serving) == (600, 4), "{hash}: {told:?}");
            let found = Some(b"v".to_vec());
            assert_eq!(redis.get_all(&keys).await.unwrap(), vec![found.clone(); 600], "{hash}");
            assert_eq!(redis.get("key599").await, Ok(found), "{hash}");
            let on: Vec<usize> =
                servers.iter().map(|at| ask(*at, "DBSIZE")[1..].parse().unwrap()).collect();
            assert_eq!(on.iter().sum::<usize>(), 600, "{hash}: {on:?}");
            assert!(hash != "ketama" || on[3] as u64 == got, "only what it gets: {on:?}, {told:?}");
            // Clients that come later know it; requests until now could not be even.
            assert!(store.figures().await.iter().all(|figure| !figure.name.contains("requests")));
            assert_eq!(connect(&store).await.get("key7").await, Ok(Some(b"v".to_vec())));
            let twice = store.join(&new).await.unwrap_err();
            assert!(twice.message.contains("already"), "{twice}");
        });
    }
}

#[test]
fn a_server_that_cannot_be_reached_does_not_join() {
    let testbed = up("redis-sharded:2");
    run(async {
        let store = store(&format!("{}?timeout=300ms", testbed.url()));
        let mut redis = connect(&store).await;
        let keys = names("key", 100);
        redis.set_all(&keys, b"v", None).await.unwrap();
        for nobody in ["127.0.0.1:1", "here"] {
            assert!(store.join(nobody).await.is_err(), "{nobody}");
        }
        assert_eq!(redis.get_all(&keys).await.unwrap(), vec![Some(b"v".to_vec()); 100]);
    });
}

#[test]
fn promises_are_those_of_the_weakest_server() {
    let start = |append_only| {
        RedisServer::start(RedisSettings { append_only, ..RedisSettings::default() }).unwrap()
    };
    let (safe, unsafe_one) = (start(AppendOnly::Always), start(AppendOnly::Off));
    run(async {
        let alone = store(&safe.url()).profile().await.unwrap();
        assert_eq!(alone.durability, Promise::checked(Durability::PowerLoss));
        let url = format!("redis+sharded://{},{}", safe.address(), unsafe_one.address());
        let both = store(&url).profile().await.unwrap();
        assert_eq!(both.durability, Promise::checked(Durability::None));
        for (name, value) in [("servers", "2"), ("appendonly", "yes | no")] {
            let pair = (name.to_owned(), value.to_owned());
            assert!(both.settings.contains(&pair), "{:?}", both.settings);
        }
    });
}

//! A cache in front of a store: as a whole it is a store like any other, and the store behind
//! decides what became of a request, whatever the cache does.

use crate::harness::{Single, run};
use kvdyno_core::store::{Certainty, Figure, Store};
use kvdyno_stores::cache::{CacheClient, CacheStore, CacheTransport};
use kvdyno_stores::conformance::{ConformanceFinding, conformance};
use kvdyno_stores::{StoreUrl, open_boxed};

type Cached = Single<CacheClient, CacheTransport>;

fn open(url: &str) -> CacheStore {
    CacheStore::open(&mut StoreUrl::parse(url).unwrap(), open_boxed).unwrap()
}

async fn connect(store: &CacheStore) -> Cached {
    Single::new(store.connect(1).await.unwrap())
}

/// Returns a figure of what the clients that are done have noticed.
fn figure(figures: &[Figure], name: &str) -> f64 {
    figures.iter().find(|figure| figure.name == name).unwrap_or_else(|| panic!("{name}")).value
}

#[test]
fn it_conforms_whatever_it_is_made_of() {
    for url in [
        "cache(map:, map:)",
        "cache(map:, map:)?mode=through",
        "cache(map:, cache(map:, map:))",
        // The cache fails always, the store answers alone.
        "cache(sim:?refuse=1, map:)",
        "cache(sim:?refuse=1, map:)?mode=through",
    ] {
        let report = conformance(&open(url)).unwrap_or_else(|failure| panic!("{url}: {failure}"));
        let claimed =
            |promise| !report.findings.contains(&(promise, ConformanceFinding::NotClaimed));
        assert!(claimed("scan") && claimed("get batch") && claimed("put batch"), "{url}");
        assert!(!claimed("one field") && !claimed("time to live"), "{url}");
    }
}

#[test]
fn a_write_takes_the_record_out_or_puts_it_in() {
    run(async {
        for (mode, hits) in [("aside", 1.0), ("through", 2.0)] {
            let store = open(&format!("cache(map:, map:)?mode={mode}"));
            let mut client = connect(&store).await;
            client.set("key", b"one").await.unwrap();
            for _ in 0..2 {
                assert_eq!(client.get("key").await, Ok(Some(b"one".to_vec())), "{mode}");
            }
            client.set("key", b"two").await.unwrap();
            assert_eq!(client.delete("key").await, Ok(true));
            assert_eq!(client.get("key").await, Ok(None), "{mode}");
            drop(client);
            let figures = store.figures().await;
            assert_eq!(figure(&figures, "hit ratio"), hits / 3.0, "{mode}");
            let misses = if mode == "aside" { "2" } else { "1" };
            let of_store = "get of the store after a miss, 99th percentile";
            let of_store = figures.iter().find(|figure| figure.name == of_store).unwrap();
            assert_eq!(of_store.detail, format!("of {misses} gets"));
            assert!(figure(&figures, "get of the cache, median") > 0.0);
            assert!(store.figures().await.is_empty(), "told twice");
        }
    });
}

#[test]
fn a_failing_cache_is_counted_and_its_message_told() {
    run(async {
        let store = open("cache(sim:?refuse=1, map:)");
        let mut client = connect(&store).await;
        client.set("key", b"one").await.unwrap();
        assert_eq!(client.get("key").await, Ok(Some(b"one".to_vec())));
        drop(client);
        let figures = store.figures().await;
        let failed =
            figures.iter().find(|figure| figure.name == "requests to the cache that failed");
        let failed = failed.expect("three requests were refused");
        // To take out, to get, to fill.
        assert_eq!(failed.value, 3.0);
        assert!(failed.detail.contains("refused on purpose") && failed.warning.is_some());
        assert_eq!(figure(&figures, "hit ratio"), 0.0);
    });
}

#[test]
fn a_write_that_the_store_may_have_applied_takes_the_record_out_of_the_cache() {
    run(async {
        let store = open("cache(map:, sim:?timeout=2&timeout-after=1us&late=1us)?mode=through");
        let mut client = connect(&store).await;
        let (mut unsure, mut applied) = (0, 0);
        let mut before = None;
        for number in 0..200_u32 {
            let value = number.to_le_bytes().to_vec();
            match client.set("key", &value).await {
                Ok(()) => before = Some(value),
                Err(error) => {
                    assert_eq!(error.certainty, Certainty::Indeterminate);
                    unsure += 1;
                    // Reads time out too, and are then sure to have failed.
                    let found = loop {
                        match client.get("key").await {
                            Ok(found) => break found,
                            Err(error) => assert_eq!(error.certainty, Certainty::Failed),
                        }
                    };
                    applied += u32::from(found.as_ref() == Some(&value));
                    assert!(found == before || found == Some(value), "{found:?}");
                    before = found;
                }
            }
        }
        // Applied at once, applied 1 µs later, never: a third each.
        assert!(unsure > 20 && applied > unsure / 3, "{applied} of {unsure}");
    });
}

#[test]
fn a_write_that_the_store_refuses_leaves_the_cache_alone() {
    run(async {
        let store = open("cache(map:, sim:?refuse=3)?mode=through");
        let mut client = connect(&store).await;
        let mut holds = None;
        let (mut refused, mut hits) = (0, 0.0);
        for number in 0..300_u32 {
            let value = number.to_le_bytes().to_vec();
            match client.set("key", &value).await {
                Ok(()) => holds = Some(value),
                Err(error) => {
                    assert_eq!(error.certainty, Certainty::Failed);
                    refused += 1;
                }
            }
            if holds.is_some() {
                // The store may refuse a get, but it is not asked.
                assert_eq!(client.get("key").await, Ok(holds.clone()));
                hits += 1.0;
            }
        }
        assert!(refused > 30, "{refused}");
        drop(client);
        let figures = store.figures().await;
        assert_eq!(figure(&figures, "hit ratio"), 1.0, "{hits} gets");
    });
}

#[cfg(all(feature = "server-tests", feature = "redis", feature = "memcached"))]
mod servers {
    use std::time::{Duration, Instant};

    use crate::one_server::{MemcachedServer, MemcachedSettings, RedisServer, RedisSettings};
    use kvdyno_core::store::{Consistency, Promise};
    use kvdyno_stores::redis::RedisStore;

    use super::*;

    fn servers() -> (MemcachedServer, RedisServer) {
        let cache = MemcachedServer::start(MemcachedSettings::default());
        let store = RedisServer::start(RedisSettings::default());
        (cache.unwrap_or_else(|e| panic!("{e}")), store.unwrap_or_else(|e| panic!("{e}")))
    }

    /// Sets a record in the store behind the cache's back.
    async fn set_behind(redis: &RedisServer, key: &str, value: &[u8]) {
        let store = RedisStore::open(&mut StoreUrl::parse(&redis.url()).unwrap()).unwrap();
        Single::new(store.connect(1).await.unwrap()).set(key, value).await.unwrap();
    }

    #[test]
    fn memcached_before_redis() {
        let (memcached, redis) = servers();
        for mode in ["aside", "through"] {
            let store = open(&format!("cache({}, {})?mode={mode}", memcached.url(), redis.url()));
            let report = conformance(&store).unwrap_or_else(|e| panic!("{mode}: {e}"));
            let not_claimed: Vec<_> = report
                .findings
                .iter()
                .filter(|(_, finding)| *finding == ConformanceFinding::NotClaimed)
                .map(|(promise, _)| *promise)
                .collect();
            assert_eq!(not_claimed, ["one field", "scan", "time to live"], "{mode}");
        }
        run(async {
            let url = |ttl: &str| format!("cache({}, {})?ttl={ttl}", memcached.url(), redis.url());
            let store = open(&url("60s"));
            let profile = store.profile().await.unwrap();
            assert_eq!(profile.store, "memcached before redis");
            // 60 s to live, 1.5 s of Memcached's precision, twice 2 s of timeouts.
            let staleness = Consistency::BoundedStaleness(Duration::from_millis(65_500));
            assert_eq!(profile.consistency, Promise::declared(staleness));
            // What changes behind its back is seen when the time to live is over, not before.
            let (mut long, mut short) = (connect(&store).await, connect(&open(&url("1s"))).await);
            for (key, client) in [("long", &mut long), ("short", &mut short)] {
                set_behind(&redis, key, b"old").await;
                assert_eq!(client.get(key).await, Ok(Some(b"old".to_vec())));
                set_behind(&redis, key, b"new").await;
            }
            let begun = Instant::now();
            while short.get("short").await != Ok(Some(b"new".to_vec())) {
                assert!(begun.elapsed() < Duration::from_secs(30), "it never came right");
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            let still = long.get("long").await;
            let early = begun.elapsed() < Duration::from_secs(50);
            assert!(!early || still == Ok(Some(b"old".to_vec())), "{still:?}");
        });
    }

    #[test]
    fn a_cache_that_dies_costs_time_and_a_store_that_dies_decides() {
        let (memcached, redis) = servers();
        run(async {
            let url = format!("cache({}, {})", memcached.url(), redis.url());
            let store = open(&url);
            let mut client = connect(&store).await;
            client.set("key", b"one").await.unwrap();
            drop(memcached);
            for value in [b"two", b"six"] {
                client.set("key", value).await.unwrap();
                assert_eq!(client.get("key").await, Ok(Some(value.to_vec())));
            }
            drop(redis);
            assert!(client.get("key").await.is_err());
            // The connection is gone already: it was not sent.
            let error = client.set("key", b"two").await.unwrap_err();
            assert_eq!(error.certainty, Certainty::Failed, "{error}");
            drop(client);
            let figures = store.figures().await;
            assert!(figure(&figures, "requests to the cache that failed") >= 6.0);
        });
    }
}

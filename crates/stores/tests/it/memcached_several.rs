//! Memcached over several real servers.

use std::net::SocketAddr;

use crate::harness::{Single, names, run};
use kvdyno_core::store::Store;
use kvdyno_stores::StoreUrl;
use kvdyno_stores::conformance::conformance;
use kvdyno_stores::memcached::MemcachedStore;
use kvdyno_testbed::{Deployment, Testbed, conversation};

fn up(words: &str) -> Deployment {
    Deployment::up(words).unwrap_or_else(|error| panic!("{error}"))
}

fn store(url: &str) -> MemcachedStore {
    MemcachedStore::open(&mut StoreUrl::parse(url).unwrap()).unwrap()
}

fn has(server: SocketAddr, key: &str) -> bool {
    let answer = conversation(server, format!("mg {key}\r\n").as_bytes(), b"\r\n");
    answer.is_some_and(|answer| answer.starts_with("HD"))
}

#[test]
fn three_servers_conform_and_tell_how_even_they_are() {
    let mut testbed = up("memcached:3");
    let servers: Vec<SocketAddr> =
        testbed.nodes().iter().map(|node| node.address.parse().unwrap()).collect();
    let store = store(testbed.url());
    conformance(&store).unwrap_or_else(|failure| panic!("{failure}"));
    run(async {
        store.figures().await;
        let mut cache = Single::new(store.connect(1).await.unwrap());
        let keys = names("key", 300);
        cache.set_all(&keys, b"v", None).await.unwrap();
        let mut wanted = keys.clone();
        wanted.insert(1, "none".to_owned());
        let found = cache.get_all(&wanted).await.unwrap();
        assert_eq!(found.iter().filter(|value| value.is_none()).count(), 1);
        assert_eq!(found[1], None);
        for server in &servers {
            let here = keys.iter().filter(|key| has(*server, key)).count();
            assert!((30..=200).contains(&here), "{here} of 300 on {server}");
        }
        drop(cache);
        let figures = store.figures().await;
        let names: Vec<&str> = figures.iter().map(|figure| figure.name.as_str()).collect();
        let expected = [
            "keys on the fullest server, over the mean",
            "chi-square of keys",
            "chance of keys as uneven",
            "requests on the fullest server, over the mean",
            "chi-square of requests",
            "chance of requests as uneven",
        ];
        assert_eq!(names, expected);
        // Two batches, each one request to each of three servers.
        assert_eq!(figures[3].value, 1.0, "{:?}", figures[3]);
        let profile = store.profile().await.unwrap();
        let hash = ("hash".to_owned(), "ketama: libmemcached's continuum".to_owned());
        assert!(profile.settings.contains(&hash), "{:?}", profile.settings);
    });
}

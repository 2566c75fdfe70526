//! Memcached over several real servers.

use std::net::SocketAddr;

use crate::harness::{Single, assert_only_the_dead_fail, in_flight, names, run};
use crate::one_server::{MemcachedServer, MemcachedSettings};
use kvdyno_core::store::{Certainty, ErrorClass, Store};
use kvdyno_core::workload::fault::NodeFault;
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

#[test]
fn a_killed_server_fails_its_own_part_and_no_other() {
    let mut testbed = up("memcached:3");
    let second = testbed.nodes()[1].address.parse().unwrap();
    run(async {
        let store = store(testbed.url());
        let keys = names("key", 100);
        let mut connection = store.connect(100).await.unwrap();
        let mut cache = Single::new(store.connect(1).await.unwrap());
        cache.set_all(&keys, b"v", None).await.unwrap();
        let on_second: Vec<bool> = keys.iter().map(|key| has(second, key)).collect();
        testbed.act("memcached-2", NodeFault::Pause).unwrap();
        let harm = || testbed.act("memcached-2", NodeFault::Kill).unwrap();
        let answers = in_flight(&mut connection, &keys, harm).await;
        assert_only_the_dead_fail(&answers, |n| on_second[n]);
        let mut cache = Single::new(connection);
        let error = cache.set_all(&keys, b"w", None).await.unwrap_err();
        assert_eq!((error.class, error.certainty), (ErrorClass::Refused, Certainty::Indeterminate));
        let error = cache.get_all(&keys).await.unwrap_err();
        assert_eq!((error.class, error.certainty), (ErrorClass::Refused, Certainty::Failed));
        testbed.act("memcached-2", NodeFault::Restart).unwrap();
        let mine = &keys[on_second.iter().position(|on| *on).unwrap()];
        cache.set_until_it_succeeds(mine, b"again").await;
        assert_eq!(cache.get(mine).await, Ok(Some(b"again".to_vec())));
    });
}

#[test]
fn tls_and_passwords_reach_every_server() {
    let settings = MemcachedSettings {
        credentials: Some(("user".to_owned(), "secret".to_owned())),
        tls: true,
        ..MemcachedSettings::default()
    };
    let servers: Vec<MemcachedServer> =
        (0..2).map(|_| MemcachedServer::start(settings.clone()).unwrap()).collect();
    let folder = tempfile::tempdir().unwrap();
    let both = folder.path().join("both.pem");
    let authority = |server: &MemcachedServer| {
        std::fs::read_to_string(&server.certificates().unwrap().authority).unwrap()
    };
    std::fs::write(&both, authority(&servers[0]) + &authority(&servers[1])).unwrap();
    let (first, second) = (servers[0].address(), servers[1].address());
    let url = |user: &str| format!("memcacheds://{user}{first},{second}?ca={}", both.display());
    run(async {
        let store_of_both = store(&url("user:secret@"));
        let mut cache = Single::new(store_of_both.connect(1).await.unwrap());
        let keys = names("key", 60);
        cache.set_all(&keys, b"v", None).await.unwrap();
        assert_eq!(cache.get_all(&keys).await.unwrap(), vec![Some(b"v".to_vec()); 60]);
        drop(cache);
        assert_eq!(store_of_both.figures().await.len(), 6);
        let error = store(&url("user:wrong@")).connect(1).await.err().unwrap();
        assert_eq!(error.class, ErrorClass::Rejected, "{error}");
    });
}

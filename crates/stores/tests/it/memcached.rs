//! Tests what only the Memcached driver does against a real Memcached; `redis_and_memcached.rs` has the rest.

use crate::harness::{Single, binary, drive, run, whole};
use crate::one_server::{MemcachedServer, MemcachedSettings};
use kvdyno_core::store::{Certainty, Client, Consistency, Durability, ErrorClass, Promise, Store};
use kvdyno_stores::StoreUrl;
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
fn keys_are_as_long_as_the_protocol_lets_them_be_and_have_no_blanks() {
    let server = start(MemcachedSettings::default());
    run(async {
        let mut cache = connect(&server.url()).await;
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
fn a_batch_of_which_a_value_is_too_large_is_not_known_as_a_whole() {
    let server = start(MemcachedSettings::default());
    run(async {
        let mut cache = connect(&server.url()).await;
        let large = binary(2_000_000, 1);
        let puts = [whole(b"a", b"new", None), whole(b"b", &large, None)];
        let connection = &mut cache.connection;
        let put = connection.clients[0].put_batch(&puts);
        let error = drive(&mut connection.transport, put).await.unwrap_err();
        assert_eq!(error.certainty, Certainty::Indeterminate, "one of two was stored");
        assert_eq!(cache.get("a").await, Ok(Some(b"new".to_vec())));
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

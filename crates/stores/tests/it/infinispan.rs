//! The three endpoints of a real Infinispan, each by the driver of its protocol. One server and one
//! test: it takes seconds to start, and ends with the thread that started it.

use std::net::Ipv4Addr;
use std::time::Duration;

use crate::harness::{Single, in_flight_on_each, run, testbed, whole};
use kvdyno_core::store::{
    Answer, Certainty, Client, Connection, Consistency, Durability, ErrorClass, Profile, Promise,
    Store, Transport,
};
use kvdyno_core::workload::fault::NodeFault;
#[cfg(feature = "mongodb")]
use kvdyno_stores::cache::CacheStore;
use kvdyno_stores::conformance::{ConformanceFinding, conformance};
use kvdyno_stores::memcached::MemcachedStore;
use kvdyno_stores::redis::RedisStore;
use kvdyno_stores::rest::RestStore;
use kvdyno_stores::{StoreUrl, open_boxed};
use kvdyno_testbed::{Certificates, Deployment, Testbed};

fn rest(url: &str) -> RestStore {
    RestStore::open(&mut StoreUrl::parse(url).unwrap()).unwrap()
}

fn redis(url: &str) -> RedisStore {
    RedisStore::open(&mut StoreUrl::parse(url).unwrap()).unwrap()
}

fn memcached(url: &str) -> MemcachedStore {
    MemcachedStore::open(&mut StoreUrl::parse(url).unwrap()).unwrap()
}

/// URLs of the three endpoints, and of REST's over TLS with the option that names its authority.
struct Urls {
    rest: String,
    resp: String,
    memcached: String,
    secure: String,
    authority: String,
}

fn urls(testbed: &mut Deployment) -> Urls {
    let told = testbed.describe();
    // The server tells its bindings in an order of its own.
    let port = |binding: &str| {
        let all = &told.configuration;
        let named = |(name, value): &&(String, String)| {
            name.contains(".socket-binding.") && name.ends_with(".name") && value == binding
        };
        let name = all.iter().find(named).map(|(name, _)| name.replace(".name", ".port"));
        let found = all.iter().find(|(known, _)| name.as_ref() == Some(known));
        found.unwrap_or_else(|| panic!("no binding {binding} in {all:?}")).1.clone()
    };
    let (ip, _) = told.nodes[0].address.rsplit_once(':').expect("an address and a port");
    let (secure, authority) = told.url.split_once("&ca=").expect("it speaks TLS");
    let (host, path) = secure.split_once("/rest/v2/").expect("a path");
    Urls {
        rest: format!("rest+http://{ip}:{}/rest/v2/{path}", port("default")),
        secure: format!("{host}/rest/v2/{path}"),
        authority: authority.to_owned(),
        resp: format!("redis://{ip}:{}", port("resp")),
        memcached: format!("memcached://{ip}:{}", port("memc")),
    }
}

#[test]
fn every_endpoint_of_infinispan_is_driven() {
    let mut testbed = testbed("infinispan?endpoint=rest&tls=yes&jit=quick&memory=256MiB");
    let urls = urls(&mut testbed);
    over_rest(&urls.rest);
    over_tls(&urls);
    over_resp(&urls.resp);
    over_memcached_text(&urls.memcached);
    #[cfg(feature = "mongodb")]
    before_ferretdb(&urls.resp);
    a_killed_server_leaves_writes_indeterminate_and_reads_failed(&mut testbed, &urls);
}

fn conforms<S: Store>(store: &S, kept: &[&'static str]) {
    let report = conformance(store).unwrap_or_else(|failure| panic!("{failure}"));
    for promise in kept {
        assert!(
            report.findings.contains(&(promise, ConformanceFinding::Kept)),
            "{promise}: {report}"
        );
    }
}

fn profile<S: Store>(store: &S) -> Profile {
    let profile = run(store.profile()).unwrap();
    assert_eq!(profile.version.as_deref(), Some("15.2.6.Final"));
    assert_eq!(profile.durability.level, Durability::None);
    assert_eq!(profile.consistency.level, Consistency::Linearizable);
    profile
}

fn over_rest(url: &str) {
    conforms(&rest(url), &["time to live", "second delete"]);
    let profile = profile(&rest(url));
    assert_eq!(profile.store, "infinispan");
    assert_eq!(profile.durability, Promise::checked(Durability::None));
    assert_eq!(profile.consistency, Promise::checked(Consistency::Linearizable));
    assert!(!profile.capabilities.may_forget, "its cache has no limit");
    let elsewhere = url.replace("/bench/", "/none/");
    let error = run(rest(&elsewhere).profile()).unwrap_err();
    assert!(error.message.contains("no readable cache `none`"), "{error}");
}

/// HTTPS, with the authority that one must trust, without it and with another.
fn over_tls(urls: &Urls) {
    let foreign = tempfile::tempdir().unwrap();
    let foreign = Certificates::make(foreign.path(), Ipv4Addr::LOCALHOST.into()).unwrap();
    let Urls { secure, authority, .. } = urls;
    let trusting = rest(&format!("{secure}&ca={authority}"));
    conforms(&trusting, &["time to live", "second delete"]);
    assert_eq!(profile(&trusting).store, "infinispan");
    for url in [secure.clone(), format!("{secure}&ca={}", foreign.authority.display())] {
        let error = run(rest(&url).profile()).unwrap_err();
        assert_eq!(error.class, ErrorClass::Refused, "{url}: {error}");
    }
    let other = secure.replace("rest+https", "rest+http");
    assert!(run(rest(&other).profile()).is_err(), "it speaks TLS alone");
}

fn over_resp(url: &str) {
    for version in ["?resp=3", "?resp=2"] {
        let store = redis(&format!("{url}{version}"));
        conforms(&store, &["several fields", "get batch", "put batch", "pipeline", "time to live"]);
    }
    let profile = profile(&redis(url));
    assert!(!profile.durability.checked && !profile.consistency.checked);
    assert_eq!(profile.store, "infinispan");
    // It has one database.
    let error = run(redis(&format!("{url}/1")).connect(1)).err().expect("a refusal");
    assert_eq!(error.class, ErrorClass::Rejected, "{error}");
}

fn over_memcached_text(url: &str) {
    let store = memcached(&format!("{url}?protocol=text"));
    conforms(&store, &["get batch", "put batch", "pipeline", "time to live"]);
    let profile = profile(&store);
    assert!(!profile.durability.checked && !profile.consistency.checked);
    run(async {
        let mut meta = Single::new(memcached(url).connect(1).await.unwrap());
        let error = meta.get("k").await.unwrap_err();
        assert!(error.message.contains("protocol=text"), "{error}");
    });
}

/// Checks that a cache and the store behind it, as a whole, are a store like any other.
#[cfg(feature = "mongodb")]
fn before_ferretdb(cache: &str) {
    let store = testbed("mongodb");
    for mode in ["aside", "through"] {
        let both = format!("cache({cache}, {}?timeout=1m)?mode={mode}", store.url());
        let both = CacheStore::open(&mut StoreUrl::parse(&both).unwrap(), open_boxed).unwrap();
        conforms(&both, &["scan", "get batch", "put batch"]);
        assert_eq!(run(both.profile()).unwrap().store, "infinispan before mongodb");
    }
}

fn assert_lost<C: Client, T: Transport>(answers: &[(Connection<C, T>, Answer<()>)]) {
    for (n, (_, answer)) in answers.iter().enumerate() {
        let error = answer.as_ref().unwrap_err();
        let certainty = if n % 2 == 0 { Certainty::Failed } else { Certainty::Indeterminate };
        let found = (error.class, error.certainty, error.connection_lost);
        assert_eq!(found, (ErrorClass::Disconnected, certainty, true), "request {n}: {error}");
    }
}

/// Every second one of the requests is a write; all are in flight when the server is killed.
fn a_killed_server_leaves_writes_indeterminate_and_reads_failed(
    testbed: &mut Deployment,
    urls: &Urls,
) {
    run(async {
        let (resp, text) =
            (redis(&urls.resp), memcached(&format!("{}?protocol=text", urls.memcached)));
        let rest = rest(&urls.rest);
        let (mut a, mut b, mut c) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..4 {
            a.push(rest.connect(1).await.unwrap());
            b.push(resp.connect(1).await.unwrap());
            c.push(text.connect(1).await.unwrap());
        }
        testbed.act("infinispan", NodeFault::Pause).unwrap();
        let kill = || testbed.act("infinispan", NodeFault::Kill).unwrap();
        let (a, b, c) = tokio::join!(
            in_flight_on_each(a, kill),
            in_flight_on_each(b, || ()),
            in_flight_on_each(c, || ())
        );
        assert_lost(&a);
        assert_lost(&b);
        assert_lost(&c);
        testbed.act("infinispan", NodeFault::Restart).unwrap();
        goes_on(a).await;
        goes_on(b).await;
        goes_on(c).await;
    });
}

async fn goes_on<C: Client, T: Transport>(answers: Vec<(Connection<C, T>, Answer<()>)>) {
    let (connection, _) = answers.into_iter().next().expect("a connection");
    let mut client = Single::new(connection);
    let ttl = Some(Duration::from_secs(100));
    client.put(whole(b"k", b"again", ttl)).await.unwrap();
    assert_eq!(client.get("k").await, Ok(Some(b"again".to_vec())));
}

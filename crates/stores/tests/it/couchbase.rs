//! The Couchbase driver against the vendor's test server. One server and one test: it ends with the
//! thread that started it. Needs root, as its testbed does.

use crate::harness::{a_killed_node_leaves_writes_indeterminate, run, testbed};
use kvdyno_core::store::{Consistency, Durability, ErrorClass, Promise, Store};
use kvdyno_stores::StoreUrl;
use kvdyno_stores::conformance::{ConformanceFinding, conformance};
use kvdyno_stores::couchbase::CouchbaseStore;
use kvdyno_testbed::Testbed;

fn store(url: &str) -> CouchbaseStore {
    CouchbaseStore::open(&mut StoreUrl::parse(url).unwrap()).unwrap()
}

#[test]
fn a_bucket_spread_over_servers_is_driven() {
    let mut testbed = testbed("couchbase?servers=3&vbuckets=64&jit=quick&memory=256MiB");
    let url = testbed.describe().url;
    it_conforms(&url);
    what_the_cluster_tells_is_read_back(&url);
    // Its address goes with its namespace, so nobody is left to end the connections; the servers come
    // back at other ports, and the map is read anew.
    let classes = &[ErrorClass::Disconnected, ErrorClass::Timeout];
    run(a_killed_node_leaves_writes_indeterminate(
        &store(&url),
        &mut testbed,
        "couchbase",
        classes,
    ));
}

fn it_conforms(url: &str) {
    let report = conformance(&store(url)).unwrap_or_else(|failure| panic!("{failure}"));
    for promise in ["time to live", "pipeline", "second delete"] {
        assert!(report.findings.contains(&(promise, ConformanceFinding::Kept)), "{report}");
    }
}

fn what_the_cluster_tells_is_read_back(url: &str) {
    let profile = run(store(url).profile()).unwrap();
    let told =
        |name: &str, value: &str| profile.settings.contains(&(name.to_owned(), value.to_owned()));
    assert!(told("servers", "3") && told("vBuckets", "64"), "{:?}", profile.settings);
    assert!(profile.version.is_some_and(|version| version.contains("1.5.27")));
    assert_eq!(profile.durability, Promise::declared(Durability::None));
    assert_eq!(profile.consistency, Promise::declared(Consistency::Linearizable));
    let error = run(store(&url.replace("/default", "/none")).profile()).unwrap_err();
    assert_eq!(error.class, ErrorClass::Rejected, "{error}");
    let wrong = url.replace("://", "://default:mistaken-password@");
    let error = run(store(&wrong).connect(1)).err().expect("a refusal");
    assert!(error.message.contains("password"), "{error}");
}

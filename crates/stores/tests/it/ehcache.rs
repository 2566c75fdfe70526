//! The REST driver against a real Ehcache server. One server and one test: it takes seconds to start,
//! and ends with the thread that started it.

use crate::harness::{Single, a_killed_node_leaves_writes_indeterminate, run, testbed};
use kvdyno_core::store::{Certainty, Consistency, Durability, ErrorClass, Promise, Store};
use kvdyno_stores::StoreUrl;
use kvdyno_stores::conformance::{ConformanceFinding, conformance};
use kvdyno_stores::rest::RestStore;

fn store(url: &str) -> RestStore {
    RestStore::open(&mut StoreUrl::parse(url).unwrap()).unwrap()
}

#[test]
fn an_ehcache_server_is_driven_over_rest() {
    let mut testbed = testbed("ehcache?jit=quick&memory=256MiB&records=100000");
    let url = testbed.url().to_owned();
    it_conforms(&url);
    what_the_server_tells_is_read_back(&url);
    let classes = &[ErrorClass::Disconnected];
    run(a_killed_node_leaves_writes_indeterminate(&store(&url), &mut testbed, "ehcache", classes));
}

fn it_conforms(url: &str) {
    let report = conformance(&store(url)).unwrap_or_else(|failure| panic!("{failure}"));
    assert!(report.findings.contains(&("time to live", ConformanceFinding::Kept)), "{report}");
}

fn what_the_server_tells_is_read_back(url: &str) {
    run(async {
        let profile = store(url).profile().await.unwrap();
        assert_eq!(profile.store, "ehcache");
        assert_eq!(profile.durability, Promise::checked(Durability::None));
        assert_eq!(profile.consistency, Promise::declared(Consistency::Linearizable));
        assert!(profile.capabilities.may_forget);
        let told = |name: &str, value: &str| {
            profile.settings.contains(&(name.to_owned(), value.to_owned()))
        };
        assert!(told("maxElementsInMemory", "100000"), "{:?}", profile.settings);
        let elsewhere = url.replace("/bench/", "/no-such-cache/");
        let mut other = Single::new(store(&elsewhere).connect(1).await.unwrap());
        let error = other.set("k", b"v").await.unwrap_err();
        assert_eq!((error.class, error.certainty), (ErrorClass::Rejected, Certainty::Failed));
        assert!(error.message.contains("check the path"), "{error}");
    });
}

//! The Couchbase driver against the vendor's test server. One server and one test: it ends with the
//! thread that started it. Needs root, as its testbed does.
#![cfg(all(feature = "server-tests", feature = "couchbase"))]

mod harness;

use harness::{Single, in_flight_on_each, run, testbed, whole};
use kvdyno_core::store::{Certainty, Consistency, Durability, ErrorClass, Promise, Store};
use kvdyno_stores::StoreUrl;
use kvdyno_stores::conformance::{Finding, conformance};
use kvdyno_stores::couchbase::CouchbaseStore;
use kvdyno_testbed::{Action, Deployment, Testbed};

fn store(url: &str) -> CouchbaseStore {
    CouchbaseStore::open(&mut StoreUrl::parse(url).unwrap()).unwrap()
}

#[test]
fn a_bucket_spread_over_servers_is_driven() {
    let mut testbed = testbed("couchbase?servers=3&vbuckets=64&jit=quick&memory=256MiB");
    let url = testbed.describe().url;
    it_conforms(&url);
    what_the_cluster_tells_is_read_back(&url);
    a_killed_cluster_leaves_writes_indeterminate_and_reads_failed(&mut testbed, &url);
}

fn it_conforms(url: &str) {
    let report = conformance(&store(url)).unwrap_or_else(|failure| panic!("{failure}"));
    for promise in ["time to live", "pipeline", "second delete"] {
        assert!(report.findings.contains(&(promise, Finding::Kept)), "{report}");
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
    let fault = run(store(&url.replace("/default", "/none")).profile()).unwrap_err();
    assert_eq!(fault.class, ErrorClass::Rejected, "{fault}");
    let wrong = url.replace("://", "://default:wrong@");
    let fault = run(store(&wrong).connect(1)).err().expect("a refusal");
    assert!(fault.message.contains("password"), "{fault}");
}

/// The servers come back at other ports: the map is read anew.
fn a_killed_cluster_leaves_writes_indeterminate_and_reads_failed(
    testbed: &mut Deployment,
    url: &str,
) {
    run(async {
        let mut connections = Vec::new();
        for _ in 0..10 {
            connections.push(store(url).connect(1).await.unwrap());
        }
        testbed.act("couchbase", Action::Pause).unwrap();
        // Its address goes with its namespace, so nobody is left to end the connections.
        let kill = || testbed.act("couchbase", Action::Kill).unwrap();
        let answers = in_flight_on_each(connections, kill).await;
        for (n, (_, answer)) in answers.iter().enumerate() {
            let fault = answer.as_ref().unwrap_err();
            let certainty = if n % 2 == 0 { Certainty::Failed } else { Certainty::Indeterminate };
            assert!(
                matches!(fault.class, ErrorClass::Disconnected | ErrorClass::Timeout),
                "{fault}"
            );
            assert_eq!((fault.certainty, fault.connection_lost), (certainty, true), "{fault}");
        }
        let (connection, _) = answers.into_iter().next().unwrap();
        let mut client = Single::new(connection);
        let fault = client.put(whole(b"k", b"v", None)).await.unwrap_err();
        assert_eq!((fault.class, fault.certainty), (ErrorClass::Refused, Certainty::Failed));
        testbed.act("couchbase", Action::Restart).unwrap();
        client.set("k", b"again").await.unwrap();
        assert_eq!(client.get("k").await, Ok(Some(b"again".to_vec())));
    });
}

//! Memcached's protocol as a real Hazelcast cluster serves it: two members, which keep backups of each other's records. One
//! cluster and one test: it takes seconds to start.

use crate::harness::{
    Single, a_killed_node_leaves_writes_indeterminate, names, run, testbed, until, whole,
};
use kvdyno_core::store::{Consistency, Durability, ErrorClass, Promise, Store};
use kvdyno_core::workload::fault::NodeFault;
use kvdyno_stores::StoreUrl;
use kvdyno_stores::conformance::{ConformanceFinding, conformance};
use kvdyno_stores::memcached::MemcachedStore;
use kvdyno_testbed::{Deployment, Testbed};

fn store(url: &str) -> MemcachedStore {
    MemcachedStore::open(&mut StoreUrl::parse(url).unwrap()).unwrap()
}

#[test]
fn memcached_protocol_of_hazelcast() {
    let mut cluster = testbed("hazelcast:2?jit=quick&memory=128MiB");
    let told = cluster.describe();
    let store = store(&told.url);
    conforms_and_says_what_it_is(&store);
    let first = told.nodes[0].address.clone();
    run(async {
        what_the_url_does_not_say_is_found_out(&first).await;
        a_killed_member_takes_no_record_along(&mut cluster, &first).await;
        let disconnected = [ErrorClass::Disconnected];
        let one = self::store(&format!("memcached://{}?protocol=text", told.nodes[1].address));
        a_killed_node_leaves_writes_indeterminate(&one, &mut cluster, "hazelcast-2", &disconnected)
            .await;
    });
}

fn conforms_and_says_what_it_is(store: &MemcachedStore) {
    let report = conformance(store).unwrap_or_else(|failure| panic!("{failure}"));
    for promise in ["get batch", "put batch", "pipeline", "time to live", "second delete"] {
        let kept = report.findings.contains(&(promise, ConformanceFinding::Kept));
        assert!(kept, "{promise}: {report}");
    }
    let profile = run(store.profile()).unwrap();
    assert_eq!((profile.store.as_str(), profile.version), ("hazelcast", None));
    assert_eq!(profile.durability, Promise::declared(Durability::None));
    assert_eq!(profile.consistency, Promise::declared(Consistency::ReadAfterWrite));
    let capabilities = profile.capabilities;
    assert!(!capabilities.may_forget, "the testbed's URL says that nothing limits the map");
    assert!(capabilities.may_apply_again);
}

/// Its members close the connection at a meta command.
async fn what_the_url_does_not_say_is_found_out(member: &str) {
    let store = store(&format!("memcached://{member}"));
    let profile = store.profile().await.unwrap();
    assert!(profile.capabilities.may_forget, "nobody has said otherwise");
    let told = profile.settings.iter().find(|(name, _)| name == "protocol");
    assert_eq!(told.expect("it is disclosed").1, "text: closes at meta commands");
    let mut client = Single::new(store.connect(1).await.unwrap());
    client.put(whole(b"plain", b"1", None)).await.unwrap();
    assert_eq!(client.get("plain").await, Ok(Some(b"1".to_vec())));
}

/// Half of the records lie first on the member that is killed: the other has their backups, and answers for all.
async fn a_killed_member_takes_no_record_along(cluster: &mut Deployment, survivor: &str) {
    let store = store(&format!("memcached://{survivor}?protocol=text&timeout=10s"));
    let mut client = Single::new(store.connect(1).await.unwrap());
    let keys = names("kept", 100);
    for key in &keys {
        client.put(whole(key.as_bytes(), b"there", None)).await.unwrap();
    }
    cluster.act("hazelcast-2", NodeFault::Kill).unwrap();
    for key in &keys {
        assert_eq!(client.get(key).await, Ok(Some(b"there".to_vec())), "{key}");
    }
    cluster.act("hazelcast-2", NodeFault::Restart).unwrap();
    let is_whole = async || cluster.whole() == Some(Ok(()));
    until("both members have all backups", is_whole, |whole| *whole).await;
}

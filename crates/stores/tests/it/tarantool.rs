//! The Tarantool driver against real servers: one, and a primary that a replica follows.

use crate::harness::{
    Single, a_killed_node_leaves_writes_indeterminate, keeps_answers_apart, names, run, testbed,
    until, whole,
};
use kvdyno_core::store::{
    Certainty, Consistency, Copies, Durability, ErrorClass, Promise, RequestError, Store,
};
use kvdyno_core::workload::fault::NodeFault;
use kvdyno_stores::StoreUrl;
use kvdyno_stores::conformance::{ConformanceFinding, conformance};
use kvdyno_stores::tarantool::TarantoolStore;
use kvdyno_testbed::{Deployment, Testbed};

fn store(url: &str) -> TarantoolStore {
    TarantoolStore::open(&mut StoreUrl::parse(url).unwrap()).unwrap()
}

/// The error of connecting.
async fn refusal(url: &str) -> RequestError {
    store(url).connect(1).await.err().expect(url)
}

fn servers(url: &str) -> &str {
    url.strip_suffix("/kvdyno").expect("the space of a testbed")
}

#[test]
fn one_server() {
    let mut server = testbed("tarantool?memory=64MiB");
    let url = server.describe().url;
    let at = servers(&url).strip_prefix("tarantool://").unwrap();
    for engine in ["memtx", "vinyl"] {
        let report = conformance(&store(&format!("tarantool://{at}/of_{engine}?engine={engine}")))
            .unwrap_or_else(|failure| panic!("{engine}: {failure}"));
        let not_claimed =
            report.findings.iter().filter(|(_, found)| *found == ConformanceFinding::NotClaimed);
        let not_claimed: Vec<_> = not_claimed.map(|(promise, _)| *promise).collect();
        assert_eq!(not_claimed, NOT_CLAIMED, "{engine}");
    }
    run(async {
        says_what_it_promises(&url, Durability::ProcessKill, "write").await;
        keeps_answers_apart(&store(&url), 1).await;
        who_may_not_is_told_so(at).await;
        values_without_room_are_refused(&url).await;
        let classes = [ErrorClass::Disconnected];
        let killed = store(&url);
        killed.profile().await.unwrap();
        a_killed_node_leaves_writes_indeterminate(&killed, &mut server, "tarantool-1", &classes)
            .await;
        let figures = killed.figures().await;
        assert!(figures.iter().any(|figure| figure.is_restart()), "{figures:?}");
    });
}

const NOT_CLAIMED: [&str; 3] = ["one field", "pipeline", "time to live"];

async fn says_what_it_promises(url: &str, survives: Durability, wal_mode: &str) {
    let profile = store(url).profile().await.unwrap();
    assert_eq!(profile.store, "tarantool");
    assert!(profile.version.is_some_and(|version| version.starts_with("2.")));
    assert_eq!(profile.durability, Promise::checked(survives));
    assert_eq!(profile.consistency, Promise::checked(Consistency::ReadAfterWrite));
    let told = ("wal_mode".to_owned(), wal_mode.to_owned());
    assert!(profile.settings.contains(&told), "{:?}", profile.settings);
}

/// A user with a password, one that is wrong, and one without rights to run what batches are.
async fn who_may_not_is_told_so(at: &str) {
    let mut admin = store(&format!("tarantool://{at}/made"));
    admin.profile().await.unwrap();
    let wrong = refusal(&format!("tarantool://replicator:no@{at}/made")).await;
    assert_eq!(
        (wrong.class, wrong.certainty),
        (ErrorClass::Rejected, Certainty::Failed),
        "{wrong}"
    );
    let nobody = refusal(&format!("tarantool://nobody:p@{at}/made")).await;
    assert_eq!(nobody.class, ErrorClass::Rejected, "{nobody}");
    // Its password is right, and it has the right to follow only.
    let follower = refusal(&format!("tarantool://replicator:replicator@{at}/made")).await;
    assert_eq!(follower.class, ErrorClass::Rejected, "{follower}");
    assert!(follower.message.contains("user.grant"), "{follower}");
    admin = store(&format!("tarantool://guest@{at}/made"));
    assert!(admin.connect(1).await.is_ok(), "a user without a password");
}

async fn values_without_room_are_refused(url: &str) {
    let mut client = Single::new(store(url).connect(1).await.unwrap());
    let error = client.set("large", &vec![7; 2 << 20]).await.unwrap_err();
    assert_eq!(
        (error.class, error.certainty),
        (ErrorClass::Rejected, Certainty::Failed),
        "{error}"
    );
    let value = vec![7; 500_000];
    let mut full = None;
    for n in 0..200 {
        full = client.set(&format!("filling-{n}"), &value).await.err();
        if full.is_some() {
            break;
        }
    }
    let error = full.expect("64 MiB do not hold 100 MB");
    assert_eq!((error.class, error.certainty), (ErrorClass::Full, Certainty::Failed), "{error}");
    // A batch is all or nothing.
    let batch = names("filled", 3);
    let error = client.set_all(&batch, &value, None).await.unwrap_err();
    assert_eq!((error.class, error.certainty), (ErrorClass::Full, Certainty::Failed), "{error}");
    assert_eq!(client.get_all(&batch).await.unwrap(), [None, None, None]);
    for n in 0..200 {
        client.delete(&format!("filling-{n}")).await.unwrap();
    }
}

#[test]
fn a_primary_and_its_replica() {
    let mut cluster = testbed("tarantool:2?wal=fsync");
    let url = cluster.describe().url;
    run(async {
        says_what_it_promises(&url, Durability::PowerLoss, "fsync").await;
        // Whatever the order, the one that takes writes is found.
        let (first, second) = servers(&url)["tarantool://".len()..].split_once(',').unwrap();
        let store = store(&format!("tarantool://{second},{first}/kvdyno"));
        let mut client = Single::new(store.connect(1).await.unwrap());
        let keys = names("copied", 100);
        client.set_all(&keys, b"there", None).await.unwrap();
        the_copies_are_read_each_by_itself(&store, first, &mut cluster).await;
        let alone = refusal(&format!("tarantool://{second}/kvdyno")).await;
        assert_eq!(alone.class, ErrorClass::Unavailable, "{alone}");
        assert!(alone.message.contains("takes no writes"), "{alone}");
        // Nothing takes over for the primary, and it comes back with all.
        cluster.act("tarantool-1", NodeFault::Kill).unwrap();
        let down = client.set("k", b"v").await.unwrap_err();
        assert!(down.connection_lost, "{down}");
        let down = client.set("k", b"v").await.unwrap_err();
        assert_eq!(down.certainty, Certainty::Failed, "{down}");
        cluster.act("tarantool-1", NodeFault::Restart).unwrap();
        let again = async || client.get_all(&keys).await;
        let found = until("it serves again", again, Result::is_ok).await.unwrap();
        assert!(found.iter().all(|value| value.as_deref() == Some(b"there")), "{found:?}");
    });
}

async fn the_copies_are_read_each_by_itself(
    store: &TarantoolStore,
    primary: &str,
    cluster: &mut Deployment,
) {
    until("the replica has all", async || cluster.whole() == Some(Ok(())), |whole| *whole).await;
    let Copies::Each(copies) = store.copies().await.unwrap() else { panic!("two copies") };
    assert_eq!(copies.len(), 2);
    assert_eq!(copies[0].name, primary, "the primary is the first");
    for copy in &copies {
        let profile = copy.store.profile().await.unwrap();
        assert_eq!(profile.store, "tarantool", "{}", copy.name);
    }
}

#[test]
fn a_log_that_is_not_written_promises_nothing() {
    let mut server = testbed("tarantool?wal=none");
    let url = server.describe().url;
    run(async {
        says_what_it_promises(&url, Durability::None, "none").await;
        let store = store(&url);
        let mut client = Single::new(store.connect(1).await.unwrap());
        client.put(whole(b"k", b"v", None)).await.unwrap();
        server.act("tarantool-1", NodeFault::Kill).unwrap();
        server.act("tarantool-1", NodeFault::Restart).unwrap();
        let again = async || client.get("k").await;
        assert_eq!(until("it serves again", again, Result::is_ok).await, Ok(None));
    });
    drop(server);
    let error = Deployment::up("tarantool:2?wal=none").err().expect("refused").to_string();
    assert!(error.contains("replicas follow the log"), "{error}");
}

//! The Aerospike driver: without a server, and against a real one where `KVDYNO_ASD` names `asd`.

use std::net::TcpListener;

use crate::harness::run;
use kvdyno_core::store::{Certainty, ErrorClass, Store};
use kvdyno_stores::StoreUrl;
use kvdyno_stores::aerospike::AerospikeStore;

fn store(url: &str) -> AerospikeStore {
    AerospikeStore::open(&mut StoreUrl::parse(url).unwrap()).unwrap()
}

#[test]
fn a_cluster_that_is_not_there_is_refused_by_name() {
    let nowhere = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let store = store(&format!("aerospike://{nowhere}/test?timeout=500ms"));
    run(async {
        let error = store.connect(1).await.err().unwrap();
        let expected = (ErrorClass::Refused, Certainty::Failed, true);
        assert_eq!((error.class, error.certainty, error.connection_lost), expected);
        assert!(error.message.contains(&nowhere.to_string()), "{error}");
        assert!(!error.message.contains('\n'), "{error}");
        assert_eq!(store.profile().await.unwrap_err().class, ErrorClass::Refused);
    });
}

#[cfg(feature = "server-tests")]
mod real {
    use std::time::{Duration, Instant};

    use crate::harness::{Single, drive_all, whole};
    use kvdyno_core::store::{Answer, Client, Consistency, Durability, NoTransport, Reading};
    use kvdyno_core::workload::fault::NodeFault;
    use kvdyno_stores::conformance::conformance;
    use kvdyno_testbed::{Deployment, Testbed};

    use super::*;

    /// A testbed of a real server; none where no variable names its program.
    fn up(words: &str) -> Option<Deployment> {
        if std::env::var_os("KVDYNO_ASD").is_none() {
            println!("KVDYNO_ASD does not name asd: not run against a real server");
            return None;
        }
        Some(Deployment::up(words).unwrap_or_else(|error| panic!("{error}")))
    }

    #[test]
    fn it_conforms() {
        let Some(mut testbed) = up("aerospike") else { return };
        let url = testbed.describe().url;
        conformance(&store(&url)).unwrap_or_else(|failure| panic!("{failure}"));
        let options = "?commit=master&replica=any&send-key&connections=8";
        conformance(&store(&format!("{url}{options}")))
            .unwrap_or_else(|failure| panic!("{failure}"));
        let profile = run(store(&url).profile()).unwrap();
        assert_eq!(profile.durability.level, Durability::None);
        assert_eq!(profile.consistency.level, Consistency::Linearizable);
        assert!(profile.durability.checked && profile.version.is_some());
        started_anew(&mut testbed, &store(&url));
    }

    fn started_anew(testbed: &mut Deployment, seen: &AerospikeStore) {
        run(seen.profile()).unwrap();
        assert_eq!(run(seen.figures()), []);
        testbed.act("aerospike-1", NodeFault::Kill).unwrap();
        testbed.act("aerospike-1", NodeFault::Restart).unwrap();
        let figures = run(seen.figures());
        assert!(figures.len() == 1 && figures[0].is_restart(), "{figures:?}");
        assert!(figures[0].detail.contains(", up for "), "{figures:?}");
    }

    /// There are as many clients as the published runs have, all at once on one worker.
    #[test]
    fn no_client_waits_for_the_connection_of_another() {
        let Some(mut testbed) = up("aerospike") else { return };
        let store = store(&testbed.describe().url);
        run(async {
            let mut clients = Vec::new();
            for _ in 0..360 {
                clients.append(&mut store.connect(1).await.unwrap().clients);
            }
            // Longer than a request may take.
            let end = Instant::now() + Duration::from_secs(3);
            let gets = clients.iter_mut().map(async |client| {
                while Instant::now() < end {
                    client.get(b"k", &mut Reading::default()).await?;
                }
                Answer::Ok(())
            });
            let answers = drive_all(&mut NoTransport, gets.collect()).await;
            assert!(answers.iter().all(Result::is_ok), "{answers:?}");
        });
    }

    #[test]
    fn without_its_supervisor_a_namespace_takes_no_time_to_live() {
        let Some(mut testbed) = up("aerospike?expiry=0&storage=file") else {
            return;
        };
        let store = store(&testbed.describe().url);
        let profile = run(store.profile()).unwrap();
        assert!(!profile.capabilities.ttl);
        // Community Edition answers before a write is on the device.
        assert_eq!(profile.durability.level, Durability::None);
        run(async {
            let mut client = Single::new(store.connect(1).await.unwrap());
            let put = whole(b"k", b"v", Some(Duration::from_secs(9)));
            let error = client.put(put).await.unwrap_err();
            assert_eq!(
                (error.class, error.certainty),
                (ErrorClass::Unsupported, Certainty::Failed)
            );
            assert!(error.message.contains("nsup-period"), "{error}");
            assert_eq!(client.get("k").await, Ok(None));
        });
    }

    #[test]
    fn a_write_to_a_paused_server_is_indeterminate_and_the_next_to_a_dead_one_failed() {
        let Some(mut testbed) = up("aerospike") else { return };
        let store = store(&format!("{}?timeout=500ms", testbed.describe().url));
        run(async {
            let mut client = Single::new(store.connect(1).await.unwrap());
            client.set("k", b"1").await.unwrap();
            testbed.act("aerospike-1", NodeFault::Pause).unwrap();
            let error = client.set("k", b"2").await.unwrap_err();
            let expected = (ErrorClass::Timeout, Certainty::Indeterminate);
            assert_eq!((error.class, error.certainty), expected, "{error}");
            assert_eq!(client.get("k").await.unwrap_err().certainty, Certainty::Failed);
            testbed.act("aerospike-1", NodeFault::Kill).unwrap();
            let begin = Instant::now();
            let error = loop {
                // Until the driver has noticed that its connections are closed.
                let error = client.set("k", b"3").await.unwrap_err();
                if error.certainty == Certainty::Failed {
                    break error;
                }
                assert!(begin.elapsed() < Duration::from_secs(60), "{error}");
            };
            assert!(error.connection_lost || error.class == ErrorClass::Timeout, "{error}");
        });
    }
}

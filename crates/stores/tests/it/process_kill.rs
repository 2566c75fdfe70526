//! Tests the least that durability `process` and `power` promise: acknowledged writes outlive a process that dies with no
//! chance to close its files.

use std::pin::pin;
use std::process::Command;
use std::task::{Context, Poll, Waker};

use kvdyno_core::store::{Client, Put, Reading, Store, Value};
use kvdyno_stores::fjall::FjallStore;
use kvdyno_stores::lmdb::LmdbStore;
use kvdyno_stores::redb::RedbStore;
use kvdyno_stores::{StoreError, StoreUrl};

/// Variable of the environment in which the child process finds the URL to write to.
const URL: &str = "KVDYNO_TEST_URL";
const RECORDS: u32 = 200;

fn now<F: Future>(request: F) -> F::Output {
    match pin!(request).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(answer) => answer,
        Poll::Pending => panic!("a store in this process made its caller wait"),
    }
}

fn client<S: Store>(
    url: &str,
    open: impl Fn(&mut StoreUrl) -> Result<S, StoreError>,
) -> (S, S::Client) {
    let store = open(&mut StoreUrl::parse(url).unwrap()).unwrap();
    let client = now(store.connect(1)).unwrap().clients.remove(0);
    (store, client)
}

fn write_and_die<S: Store>(url: &str, open: impl Fn(&mut StoreUrl) -> Result<S, StoreError>) {
    let (_store, mut client) = client(url, open);
    for number in 0..RECORDS {
        let key = format!("key{number:05}");
        let put = Put {
            key: key.as_bytes(),
            value: Value::new(key.as_bytes(), &[]),
            insert: true,
            partial: false,
            record_fields: 1,
            ttl: None,
        };
        now(client.put(put)).unwrap();
    }
    std::process::abort();
}

/// Returns the number of records that are there, whole.
fn count<S: Store>(url: &str, open: impl Fn(&mut StoreUrl) -> Result<S, StoreError>) -> u32 {
    let (_store, mut client) = client(url, open);
    let mut reading = Reading::default();
    let mut there = |number: u32| {
        let key = format!("key{number:05}");
        reading.clear();
        now(client.get(key.as_bytes(), &mut reading)).unwrap() && reading.bytes() == key.as_bytes()
    };
    (0..RECORDS).filter(|number| there(*number)).count() as u32
}

#[test]
#[ignore = "the child process of the test below, not a test"]
fn child() {
    let Ok(url) = std::env::var(URL) else { return };
    match url.split(':').next() {
        Some("lmdb") => write_and_die(&url, LmdbStore::open),
        Some("fjall") => write_and_die(&url, FjallStore::open),
        _ => write_and_die(&url, RedbStore::open),
    }
}

/// Returns the number of records that are left of [`RECORDS`] acknowledged ones.
fn left(scheme: &str, durability: &str) -> u32 {
    let folder = tempfile::tempdir_in("/var/tmp").unwrap();
    let url = format!("{scheme}:{}?durability={durability}", folder.path().display());
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--ignored", "--exact", "process_kill::child"])
        .env(URL, &url)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    if said.contains("on a file system in memory") {
        // No disk here, so nothing can be promised to outlive a loss of power.
        return RECORDS;
    }
    assert!(!output.status.success() && !said.contains("panicked"), "{said}");
    match scheme {
        "lmdb" => count(&url, LmdbStore::open),
        "fjall" => count(&url, FjallStore::open),
        _ => count(&url, RedbStore::open),
    }
}

#[test]
fn acknowledged_writes_outlive_the_process() {
    for (scheme, durability) in [
        ("lmdb", "process"),
        ("lmdb", "power"),
        ("fjall", "process"),
        ("fjall", "power"),
        ("redb", "power"),
    ] {
        assert_eq!(left(scheme, durability), RECORDS, "{scheme} at {durability}");
    }
}

/// The other half: the levels differ in what is kept, not only in name.
#[test]
fn with_none_they_need_not() {
    for scheme in ["fjall", "redb"] {
        assert!(left(scheme, "none") < RECORDS, "{scheme}");
    }
}

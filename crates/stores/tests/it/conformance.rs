//! Sound stores pass the conformance suite, and a store that breaks a promise fails with that
//! promise's name.

use std::path::Path;
use std::thread::ThreadId;
use std::time::Duration;

use kvdyno_core::store::{
    Answer, Client, Connection, NoTransport, Profile, Put, Reading, Rows, Store, Threading,
    ThreadingOf,
};
use kvdyno_stores::StoreUrl;
#[cfg(feature = "embedded")]
use kvdyno_stores::conformance::ConformanceReport;
use kvdyno_stores::conformance::{ConformanceFinding, conformance, reopening};
use kvdyno_stores::map::{MapClient, MapStore};
use kvdyno_stores::sim::SimStore;

fn url(text: &str) -> StoreUrl {
    StoreUrl::parse(text).unwrap()
}

fn map() -> MapStore {
    MapStore::open(&mut url("map:")).unwrap()
}

#[cfg(feature = "embedded")]
fn finding<'r>(report: &'r ConformanceReport, promise: &str) -> &'r ConformanceFinding {
    let found = report.findings.iter().find(|(name, _)| *name == promise);
    &found.unwrap_or_else(|| panic!("`{promise}` was not checked")).1
}

#[test]
fn map_keeps_every_promise() {
    let report = conformance(&map()).unwrap();
    assert_eq!(report.findings.len(), 22, "{report}");
    for (promise, found) in &report.findings {
        let expected = if *promise == "pipeline" {
            ConformanceFinding::NotClaimed
        } else {
            ConformanceFinding::Kept
        };
        assert_eq!(*found, expected, "{promise}");
    }
}

#[test]
fn sim_without_imperfections_keeps_every_promise() {
    let store = SimStore::open(&mut url("sim:?service=1us")).unwrap();
    conformance(&store).unwrap();
    assert!(store.log().entries().is_empty());
}

/// Returns the promise that a store breaks.
fn broken<S: Store>(store: &S) -> &'static str {
    match conformance(store) {
        Ok(report) => panic!("it conforms:\n{report}"),
        Err(failure) => {
            assert!(failure.to_string().contains(failure.promise), "{failure}");
            failure.promise
        }
    }
}

#[test]
fn sims_break_the_promise_that_their_imperfection_is_about() {
    let cases = [
        ("lie=1", "put then get"),
        ("lose=1&lose-after=0ns", "put then get"),
        ("corrupt=1", "put then get"),
        ("absent=1", "put then get"),
        ("phantom=1", "put then get"),
        ("stale=1&stale-age=1h", "overwrite"),
        ("resurrect=1&resurrect-after=0ns", "get after delete"),
        ("refuse=1", "get of an absent record"),
        ("timeout=1&timeout-after=1us", "get of an absent record"),
    ];
    for (options, promise) in cases {
        let store = SimStore::open(&mut url(&format!("sim:?{options}"))).unwrap();
        assert_eq!(broken(&store), promise, "{options}");
        assert!(!store.log().entries().is_empty(), "{options}");
    }
}

#[cfg(feature = "embedded")]
mod engines {
    use kvdyno_stores::StoreError;
    use kvdyno_stores::fjall::FjallStore;
    use kvdyno_stores::lmdb::LmdbStore;
    use kvdyno_stores::redb::RedbStore;

    use super::*;

    /// A folder on a disk, or a weaker durability where there is none.
    fn reopens<S: Store>(scheme: &str, open: impl Fn(&mut StoreUrl) -> Result<S, StoreError>) {
        let folder = tempfile::tempdir_in("/var/tmp").unwrap();
        let mut place = format!("{scheme}:{}", folder.path().display());
        match open(&mut url(&place)) {
            Err(error) if error.to_string().contains("on a file system in memory") => {
                place.push_str("?durability=none");
            }
            opened => drop(opened.unwrap()),
        }
        reopening(|| open(&mut url(&place)).unwrap()).unwrap();
    }

    #[test]
    fn lmdb_keeps_every_promise() {
        let store = LmdbStore::open(&mut url("lmdb:?durability=process")).unwrap();
        let report = conformance(&store).unwrap();
        assert_eq!(*finding(&report, "second delete"), ConformanceFinding::Kept);
        assert_eq!(*finding(&report, "scan"), ConformanceFinding::Kept);
        let map = LmdbStore::open(&mut url("lmdb:?durability=none&writemap")).unwrap();
        conformance(&map).unwrap();
    }

    #[test]
    fn fjall_keeps_every_promise() {
        let store = FjallStore::open(&mut url("fjall:?durability=process")).unwrap();
        let report = conformance(&store).unwrap();
        assert!(matches!(finding(&report, "second delete"), ConformanceFinding::KeptWithNote(_)));
        assert_eq!(*finding(&report, "scan"), ConformanceFinding::Kept);
    }

    #[test]
    fn redb_keeps_every_promise() {
        let store = RedbStore::open(&mut url("redb:?durability=none")).unwrap();
        let report = conformance(&store).unwrap();
        assert_eq!(*finding(&report, "second delete"), ConformanceFinding::Kept);
        assert_eq!(*finding(&report, "scan"), ConformanceFinding::Kept);
    }

    #[test]
    fn engines_still_hold_what_they_held_when_they_are_opened_again() {
        reopens("lmdb", LmdbStore::open);
        reopens("fjall", FjallStore::open);
        reopens("redb", RedbStore::open);
    }
}

/// The system's library must be there.
#[cfg(all(feature = "embedded", feature = "server-tests"))]
#[test]
fn rocksdb_keeps_every_promise() {
    use kvdyno_stores::rocksdb::RocksStore;

    let store = RocksStore::open(&mut url("rocksdb:?durability=process")).unwrap();
    let report = conformance(&store).unwrap();
    assert!(matches!(finding(&report, "second delete"), ConformanceFinding::KeptWithNote(_)));
    assert_eq!(*finding(&report, "get batch"), ConformanceFinding::Kept);
    let folder = tempfile::tempdir().unwrap();
    let place = format!("rocksdb:{}?durability=process", folder.path().display());
    reopening(|| RocksStore::open(&mut url(&place)).unwrap()).unwrap();
}

#[test]
fn a_store_that_forgets_when_it_is_closed_fails_reopening() {
    let failure = reopening(map).unwrap_err();
    assert_eq!(failure.promise, "reopening");
    assert!(failure.detail.contains("is gone"), "{failure}");
}

/// Flaw of a [`Broken`] store.
#[derive(Clone, Copy, PartialEq)]
enum Flaw {
    CutsLongValues,
    StopsAtZeroByte,
    DeletesNothing,
    SaysDeletedNothing,
    DeletesAll,
    DeletesOnce,
    ForgetsLongKeys,
    HidesFromOthers,
    DropsFields,
    ScansPastTheStart,
    ScansWithoutEnd,
    GetsBatchesInKeyOrder,
    SkipsAbsentRows,
    DropsTheLastOfABatch,
    AnswersWhatItDoesNotClaim,
    NeverExpires,
    ExpiresAtOnce,
    ServesOneThread,
    NoClients,
    NoName,
}

/// A map with a flaw.
struct Broken {
    map: MapStore,
    flaw: Flaw,
    made_by: ThreadId,
}

struct BrokenClient {
    map: MapClient,
    mine: MapClient,
    flaw: Flaw,
    deleted: u64,
    /// Used by another thread than the one that made the store.
    foreign: bool,
}

impl Store for Broken {
    type Client = BrokenClient;
    type Transport = NoTransport;

    const THREADING: ThreadingOf<Self> = ThreadingOf::All(Threading::InProcess);

    async fn profile(&self) -> Answer<Profile> {
        let mut profile = self.map.profile().await?;
        match self.flaw {
            Flaw::NoName => profile.store.clear(),
            Flaw::AnswersWhatItDoesNotClaim => profile.capabilities.scan = false,
            _ => {}
        }
        Ok(profile)
    }

    async fn connect(&self, slots: usize) -> Answer<Connection<BrokenClient, NoTransport>> {
        let map = self.map.connect(slots).await?.clients.remove(0);
        let mine = MapStore::default().connect(slots).await?.clients.remove(0);
        let foreign = std::thread::current().id() != self.made_by;
        let client = BrokenClient { map, mine, flaw: self.flaw, deleted: 0, foreign };
        let mut connection = Connection::direct(client);
        if self.flaw == Flaw::NoClients {
            connection.clients.clear();
        }
        Ok(connection)
    }
    fn folder(&self) -> Option<&Path> {
        None
    }

    kvdyno_core::kept_once_in_this_process!();
    kvdyno_core::notices_nothing!();
}

impl BrokenClient {
    fn client(&mut self) -> &mut MapClient {
        if self.flaw == Flaw::HidesFromOthers { &mut self.mine } else { &mut self.map }
    }
}

impl Client for BrokenClient {
    async fn get(&mut self, key: &[u8], into: &mut Reading) -> Answer<bool> {
        self.client().get(key, into).await
    }

    async fn put(&mut self, mut put: Put<'_>) -> Answer<()> {
        let whole = put.value.whole();
        let cut = match self.flaw {
            Flaw::CutsLongValues => whole.len().min(65_535),
            Flaw::StopsAtZeroByte if whole.len() > 256 && whole[0] == 0 => 0,
            _ => whole.len(),
        };
        match self.flaw {
            Flaw::DropsFields if put.partial => put.partial = false,
            Flaw::ForgetsLongKeys if put.key.len() > 128 => return Ok(()),
            Flaw::ServesOneThread if self.foreign => return Ok(()),
            Flaw::NeverExpires => put.ttl = None,
            Flaw::ExpiresAtOnce => put.ttl = put.ttl.map(|_| Duration::from_millis(100)),
            _ => {}
        }
        if cut < whole.len() {
            put.value = kvdyno_core::store::Value::new(&whole[..cut], &[]);
        }
        self.client().put(put).await
    }

    async fn delete(&mut self, key: &[u8]) -> Answer<bool> {
        self.deleted += 1;
        match self.flaw {
            Flaw::DeletesNothing => Ok(true),
            Flaw::SaysDeletedNothing => self.client().delete(key).await.map(|_| false),
            Flaw::DeletesAll => {
                let mut rows = Rows::default();
                self.map.scan(b"", usize::MAX, &mut rows).await?;
                for (key, _) in rows.iter() {
                    self.map.delete(key).await?;
                }
                Ok(true)
            }
            // Finds a record again that it has deleted already, but none that never was.
            Flaw::DeletesOnce => {
                let found = self.client().delete(key).await?;
                Ok(found || self.deleted == 4)
            }
            _ => self.client().delete(key).await,
        }
    }

    async fn scan(&mut self, from: &[u8], count: usize, into: &mut Rows) -> Answer<()> {
        match self.flaw {
            Flaw::ScansPastTheStart => {
                let after = [from, &[0]].concat();
                self.map.scan(&after, count, into).await
            }
            Flaw::ScansWithoutEnd => self.map.scan(from, count + 1, into).await,
            _ => self.map.scan(from, count, into).await,
        }
    }

    async fn get_batch(&mut self, keys: &[&[u8]], into: &mut Rows) -> Answer<()> {
        match self.flaw {
            Flaw::GetsBatchesInKeyOrder => {
                let mut sorted = keys.to_vec();
                sorted.sort();
                self.map.get_batch(&sorted, into).await
            }
            Flaw::SkipsAbsentRows => {
                let mut all = Rows::default();
                self.map.get_batch(keys, &mut all).await?;
                for (key, value) in all.iter().filter(|(_, value)| value.is_some()) {
                    into.push(key, value);
                }
                Ok(())
            }
            _ => self.map.get_batch(keys, into).await,
        }
    }

    async fn put_batch(&mut self, puts: &[Put<'_>]) -> Answer<()> {
        let last = usize::from(self.flaw == Flaw::DropsTheLastOfABatch);
        self.map.put_batch(&puts[..puts.len() - last]).await
    }
}

#[test]
fn each_flaw_breaks_its_promise() {
    let cases = [
        (Flaw::NoName, "profile"),
        (Flaw::NoClients, "connect"),
        (Flaw::CutsLongValues, "value sizes"),
        (Flaw::StopsAtZeroByte, "all byte values"),
        (Flaw::SaysDeletedNothing, "delete"),
        (Flaw::DeletesNothing, "get after delete"),
        (Flaw::DeletesAll, "get after delete"),
        (Flaw::DeletesOnce, "second delete"),
        (Flaw::ForgetsLongKeys, "key lengths"),
        (Flaw::HidesFromOthers, "read by another client"),
        (Flaw::DropsFields, "one field"),
        (Flaw::ScansPastTheStart, "scan"),
        (Flaw::ScansWithoutEnd, "scan"),
        (Flaw::AnswersWhatItDoesNotClaim, "scan"),
        (Flaw::GetsBatchesInKeyOrder, "get batch"),
        (Flaw::SkipsAbsentRows, "get batch"),
        (Flaw::DropsTheLastOfABatch, "put batch"),
        (Flaw::NeverExpires, "time to live"),
        (Flaw::ExpiresAtOnce, "time to live"),
        (Flaw::ServesOneThread, "concurrent clients"),
    ];
    // At once, for the time to live takes seconds.
    std::thread::scope(|scope| {
        for (flaw, promise) in cases {
            scope.spawn(move || {
                let made_by = std::thread::current().id();
                assert_eq!(broken(&Broken { map: map(), flaw, made_by }), promise);
            });
        }
    });
}

//! Tests that each wrapper hands each question on to the store that has the records.

use std::path::Path;
use std::sync::Mutex;
use std::time::{Duration, SystemTime};

use kvdyno_core::store::{
    Answer, BoxedStore, Connection, Copies, Figure, FigureUnit, Joined, NoTransport, NodeCopy,
    Profile, Store, Threading, ThreadingOf, Work,
};

use super::{CacheStore, Mode, Settings};
use crate::map::{MapClient, MapStore};

/// A store that answers every question as no other one does, and keeps the names of servers said to have joined.
#[derive(Default)]
struct DistinctStore {
    map: MapStore,
    joined: Mutex<Vec<String>>,
}

impl Store for DistinctStore {
    type Client = MapClient;
    type Transport = NoTransport;

    const THREADING: ThreadingOf<Self> = ThreadingOf::All(Threading::InProcess);

    async fn profile(&self) -> Answer<Profile> {
        Ok(Profile { store: "telling".to_owned(), ..self.map.profile().await? })
    }

    async fn connect(&self, slots: usize) -> Answer<Connection<MapClient, NoTransport>> {
        self.map.connect(slots).await
    }

    fn folder(&self) -> Option<&Path> {
        Some(Path::new("/told"))
    }

    async fn figures(&self) -> Vec<Figure> {
        let (name, detail) = ("told".to_owned(), String::new());
        vec![Figure { name, value: 1.0, unit: FigureUnit::Count, detail, warning: None }]
    }

    fn stronger(&self) -> Vec<(BoxedStore, String)> {
        vec![(BoxedStore::new(MapStore::default()), "as told".to_owned())]
    }

    fn behind(&self) -> Option<BoxedStore> {
        None
    }

    async fn copies(&self) -> Answer<Copies<BoxedStore>> {
        let copy = |name| NodeCopy::of_node(name, BoxedStore::new(MapStore::default()));
        Ok(Copies::Each(vec![copy("one"), copy("two")]))
    }

    async fn join(&self, server: &str) -> Answer<Joined> {
        self.joined.lock().unwrap().push(server.to_owned());
        Ok(Joined::Moved { moved: 1, found: 3, servers: 2 })
    }

    async fn held_by(&self, server: &str, keys: &[Vec<u8>]) -> Answer<u64> {
        let joined = self.joined.lock().unwrap().iter().any(|known| known == server);
        Ok(if joined { keys.len() as u64 } else { 0 })
    }

    fn work_since(&self, moment: SystemTime) -> Vec<Work> {
        vec![Work { what: "told".to_owned(), from: moment, to: moment }]
    }
}

fn before(store: BoxedStore) -> BoxedStore {
    let settings =
        Settings { mode: Mode::Through, ttl: Some(Duration::from_secs(60)), staleness: None };
    let cache = BoxedStore::new(MapStore::default());
    BoxedStore::new(CacheStore { cache, store, settings, noticed: Default::default() })
}

/// Checks that the wrapper hands on every question but requests.
async fn hands_on(wrapper: &BoxedStore, is_cache: bool) {
    assert_eq!(wrapper.folder(), Some(Path::new("/told")));
    assert_eq!(wrapper.work_since(SystemTime::UNIX_EPOCH).len(), 1);
    let figures = wrapper.figures().await;
    assert!(figures.iter().any(|figure| figure.name.ends_with("told")), "{figures:?}");
    assert_eq!(wrapper.stronger().into_iter().map(|(_, how)| how).collect::<Vec<_>>(), ["as told"]);
    assert!(matches!(wrapper.copies().await, Ok(Copies::Each(copies)) if copies.len() == 2));
    let keys = [b"a".to_vec(), b"b".to_vec()];
    assert_eq!(wrapper.held_by("new:1", &keys).await, Ok(0));
    let joined = wrapper.join("new:1").await;
    assert_eq!(joined, Ok(Joined::Moved { moved: 1, found: 3, servers: 2 }));
    assert_eq!(wrapper.held_by("new:1", &keys).await, Ok(2), "the one that joined is known");
    let behind = wrapper.behind();
    assert_eq!(behind.is_some(), is_cache);
    if let Some(behind) = behind {
        assert_eq!(behind.profile().await.unwrap().store, "telling", "the innermost one");
    }
}

#[test]
fn every_wrapper_asks_the_store_that_has_the_records() {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let distinct = || BoxedStore::new(DistinctStore::default());
    runtime.block_on(async {
        hands_on(&distinct(), false).await;
        hands_on(&before(distinct()), true).await;
        hands_on(&before(before(distinct())), true).await;
    });
}

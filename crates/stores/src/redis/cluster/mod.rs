//! Drives a Redis Cluster: every client knows which node serves which slot, follows `MOVED` and `ASK`, and has
//! the map of slots read again after errors. docs/stores/redis-cluster.md.

mod redirect;
mod slots;
mod view;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_util::future::select_ok;
use kvdyno_core::measure::{Nanos, now};
use kvdyno_core::store::{Answer, ErrorClass, RequestError};

use super::wire::{Access, ReadFrom, Wire, ask};
use crate::error::StoreError;
use crate::url::StoreUrl;
use crate::wire::Endpoint;
use slots::{Map, Range, read_slots};
pub(super) use view::{Refused, View};

/// Returns the cluster that a URL names; asks no node yet.
pub(super) fn open(url: &mut StoreUrl) -> Result<Cluster, StoreError> {
    let (access, reach) = Access::take(url)?;
    let read = ReadFrom::take(url)?;
    url.finish()?;
    let seeds = reach.endpoints(url, 6379)?;
    let access = access.with_database(url)?;
    if access.database != 0 {
        return Err(url.wrong("a database number", "a cluster has one database: leave it out"));
    }
    let access = Access { readonly: read == ReadFrom::Replica, ..access };
    Ok(Cluster {
        access: Arc::new(access),
        map: Mutex::new(Arc::new(Map::unknown(seeds))),
        version: AtomicU64::new(0),
        stale: AtomicBool::new(true),
        asking: AtomicBool::new(false),
        not_before: AtomicU64::new(0),
        copy: None,
    })
}

/// Shortest time between two looks at the map, in ns: while a fail-over lasts every request fails.
const PAUSE: Nanos = 100_000_000;
/// Nodes that are asked at once; the first answer counts, so that dead ones cost no time.
const ASKED_AT_ONCE: usize = 6;

/// Knowledge of the cluster that all clients of a store share.
pub(super) struct Cluster {
    access: Arc<Access>,
    map: Mutex<Arc<Map>>,
    /// Number that rises with each change of `map`.
    version: AtomicU64,
    /// True if something has shown that the map may be old.
    stale: AtomicBool,
    /// True while a client asks for the map.
    asking: AtomicBool,
    /// Time on kvdyno's clock before which the map is not asked for again, in ns.
    not_before: AtomicU64,
    /// Number of the copy of each slot that reads are of, and of no other, whatever it has; 0 is the primary's.
    copy: Option<usize>,
}

impl Cluster {
    pub(super) fn access(&self) -> &Arc<Access> {
        &self.access
    }

    pub(super) fn reads_replicas(&self) -> bool {
        self.access.readonly
    }

    /// Returns the same cluster, of which only the copy of this number is read, as the map is now.
    pub(super) fn of_copy(&self, number: usize) -> Cluster {
        self.read_from(number > 0, Some(number))
    }

    /// Returns the same cluster, of which the primaries are read.
    pub(super) fn of_primaries(&self) -> Cluster {
        self.read_from(false, None)
    }

    fn read_from(&self, readonly: bool, copy: Option<usize>) -> Cluster {
        Cluster {
            access: Arc::new(Access { readonly, ..Access::clone(&self.access) }),
            map: Mutex::new(self.map()),
            version: AtomicU64::new(0),
            stale: AtomicBool::new(false),
            asking: AtomicBool::new(false),
            not_before: AtomicU64::new(0),
            copy,
        }
    }

    /// Asks for the map again and returns it.
    pub(super) async fn refreshed(&self) -> Answer<Arc<Map>> {
        self.refresh().await?;
        Ok(self.map())
    }

    /// Returns the map as it is known.
    pub(super) fn map(&self) -> Arc<Map> {
        self.locked().clone()
    }

    /// Returns the map, asked for if it is not known or may be old.
    pub(super) async fn current(&self) -> Answer<Arc<Map>> {
        if self.stale.load(Ordering::Acquire) {
            let refreshed = self.refresh().await;
            if self.map().is_empty() {
                refreshed?;
            }
        }
        Ok(self.map())
    }

    /// Marks the map as perhaps old: something went wrong that an old map may be the cause of.
    fn doubt(&self) {
        self.stale.store(true, Ordering::Release);
    }

    /// Looks at the map again if there is a doubt, no other client does, and the last time is not just over. A failure of
    /// this look shows in the request that follows.
    async fn look_again(&self) {
        let due = now() >= self.not_before.load(Ordering::Acquire);
        if !due || self.asking.swap(true, Ordering::AcqRel) {
            return;
        }
        let asking = Asking(self);
        // The doubt stays if nobody answers.
        let _ = self.refresh().await;
        drop(asking);
    }

    async fn refresh(&self) -> Answer<()> {
        self.stale.store(false, Ordering::Release);
        let known = self.map();
        let turn = self.version.load(Ordering::Acquire) as usize + now() as usize / PAUSE as usize;
        let nodes = known.nodes.iter().cycle().skip(turn % known.nodes.len());
        let nodes: Vec<Endpoint> =
            nodes.take(known.nodes.len().min(ASKED_AT_ONCE)).cloned().collect();
        let answer = select_ok(nodes.iter().map(|node| Box::pin(self.ask(node)))).await;
        self.not_before.store(now() + PAUSE, Ordering::Release);
        match answer {
            Ok((ranges, _)) => {
                self.replace(|map| map.with(&ranges));
                Ok(())
            }
            Err(error) => {
                self.doubt();
                Err(error)
            }
        }
    }

    /// Asks a node for the slots.
    async fn ask(&self, node: &Endpoint) -> Answer<Vec<Range>> {
        let wire = Wire::server(&self.access, node.clone());
        let asked = node.bounded(async {
            let mut dialogue = wire.dialogue().await?;
            ask(&mut dialogue, &[b"CLUSTER", b"SLOTS"]).await
        });
        let failed =
            |class, message: String| RequestError::failed(class, message).losing_connection();
        let (_, bytes) = asked.await?.map_err(|error| {
            failed(error.class, format!("{}: {}; is it a cluster?", node.name(), error.message))
        })?;
        match read_slots(&bytes, node.host()) {
            Some(ranges) if !ranges.is_empty() => Ok(ranges),
            Some(_) => {
                let message =
                    format!("{} names no node with slots (is the cluster set up?)", node.name());
                Err(failed(ErrorClass::Unavailable, message))
            }
            None => {
                let message =
                    format!("kvdyno does not understand {}'s answer to CLUSTER SLOTS", node.name());
                Err(failed(ErrorClass::Protocol, message))
            }
        }
    }

    /// Returns the number of the node at an address that a redirection named.
    fn number_of(&self, host: &str, port: u16) -> usize {
        let mut number = 0;
        self.replace(|map| {
            let mut map = map.clone();
            number = map.number_of(host, port);
            map
        });
        number
    }

    fn replace(&self, change: impl FnOnce(&Map) -> Map) {
        let mut map = self.locked();
        let changed = change(&map);
        if !changed.agrees(&map) {
            *map = Arc::new(changed);
            self.version.fetch_add(1, Ordering::AcqRel);
        }
    }

    fn locked(&self) -> MutexGuard<'_, Arc<Map>> {
        self.map.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Guard that ends the asking even if the client that asks is given up meanwhile.
struct Asking<'a>(&'a Cluster);

impl Drop for Asking<'_> {
    fn drop(&mut self) {
        self.0.asking.store(false, Ordering::Release);
    }
}

impl Map {
    /// Returns the nodes that take writes.
    pub(super) fn primaries(&self) -> impl Iterator<Item = &Endpoint> {
        self.primary_numbers().into_iter().map(|number| &self.nodes[number])
    }

    /// Returns the nodes that take writes, with their member numbers.
    pub(super) fn numbered_primaries(&self) -> impl Iterator<Item = (usize, Endpoint)> {
        self.primary_numbers().into_iter().map(|number| (number, self.nodes[number].clone()))
    }

    /// Returns the settings to disclose: the numbers of primaries and of replicas.
    pub(super) fn settings(&self) -> [(String, String); 2] {
        let count = |numbers: Vec<usize>| numbers.len().to_string();
        [
            ("primaries".to_owned(), count(self.primary_numbers())),
            ("replicas".to_owned(), count(self.replica_numbers())),
        ]
    }
}

//! Two stores small enough to be seen through: a correct map, and one that can be made to wait.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;
use std::time::SystemTime;

use kvdyno_core::load::Interrupt;
use kvdyno_core::measure::{Nanos, now};
use kvdyno_core::store::{
    Answer, Capabilities, Client, Connection, Consistency, Durability, ErrorClass, Figure,
    FigureUnit, NoTransport, Profile, Promise, Put, Reading, RequestError, Rows, Store, Threading,
    ThreadingOf, Work,
};

/// Behaviour of the store beside storing.
#[derive(Debug, Default)]
pub struct Behaviour {
    /// Begin of a stall, ns on kvdyno's clock: all requests that begin in [stall_from, stall_until)
    /// wait until its end.
    pub stall_from: AtomicU64,
    pub stall_until: AtomicU64,
    /// One in this many requests fails; 0 for none.
    pub fail_one_in: u64,
    /// True if the store says of itself that it may forget records.
    pub may_forget: bool,
    /// Time from which on the server is gone, so that every request is refused.
    pub gone_from: AtomicU64,
    /// True if puts are acknowledged and not stored.
    pub forgets: AtomicBool,
    /// True if records that are there are not found.
    pub hides: AtomicBool,
    /// Number of requests after which the user stops the run; all requests that come then wait for 300
    /// ms.
    pub stopped_at: Mutex<Option<(u64, Arc<Interrupt>)>>,
}

/// A sharded map.
pub struct MapStore {
    pub threading: Threading,
    pub behaviour: Behaviour,
    shards: Vec<Mutex<HashMap<Vec<u8>, Vec<u8>>>>,
    pub requests: AtomicU64,
    pub failed: AtomicU64,
    told: AtomicU64,
}

impl MapStore {
    pub fn new(threading: Threading, behaviour: Behaviour) -> Self {
        let shards = (0..64).map(|_| Mutex::default()).collect();
        let [requests, failed, told] = [const { AtomicU64::new(0) }; 3];
        MapStore { threading, behaviour, shards, requests, failed, told }
    }

    fn shard(&self, key: &[u8]) -> &Mutex<HashMap<Vec<u8>, Vec<u8>>> {
        let sum = key.iter().fold(0usize, |sum, &b| sum.wrapping_mul(31).wrapping_add(b.into()));
        &self.shards[sum % self.shards.len()]
    }

    /// Removes about half of the records.
    pub fn forget(&self) {
        self.shards.iter().step_by(2).for_each(|shard| shard.lock().unwrap().clear());
    }

    async fn wait(&self, until: Nanos) {
        while let Some(left) = until.checked_sub(now()).filter(|&left| left > 0) {
            match self.threading {
                Threading::InProcess => std::thread::sleep(Duration::from_nanos(left)),
                Threading::Networked => tokio::time::sleep(Duration::from_nanos(left)).await,
            }
        }
    }

    async fn serve(&self) -> Answer<()> {
        let begun = now();
        let number = self.requests.fetch_add(1, Ordering::Relaxed);
        let gone = self.behaviour.gone_from.load(Ordering::Relaxed);
        if gone > 0 && begun >= gone {
            let error = RequestError::failed(ErrorClass::Refused, "nobody there");
            return Err(error.losing_connection());
        }
        if let Some((at, interrupt)) = &*self.behaviour.stopped_at.lock().unwrap()
            && number == *at
        {
            interrupt.raise();
            self.behaviour.stall_from.store(begun, Ordering::Relaxed);
            self.behaviour.stall_until.store(begun + 300_000_000, Ordering::Relaxed);
        }
        let from = self.behaviour.stall_from.load(Ordering::Relaxed);
        let until = self.behaviour.stall_until.load(Ordering::Relaxed);
        if (from..until).contains(&begun) {
            self.wait(until).await;
        }
        if self.behaviour.fail_one_in > 0 && number.is_multiple_of(self.behaviour.fail_one_in) {
            self.failed.fetch_add(1, Ordering::Relaxed);
            return Err(RequestError::failed(ErrorClass::Overloaded, "not now"));
        }
        Ok(())
    }
}

/// Handle of the store, so that the test keeps one of its own.
pub struct Shared(pub Arc<MapStore>);

impl Store for Shared {
    type Client = MapClient;
    type Transport = NoTransport;

    const THREADING: ThreadingOf<Self> = ThreadingOf::Each(|store| store.0.threading);

    async fn profile(&self) -> Answer<Profile> {
        Ok(Profile {
            store: "map".to_owned(),
            version: None,
            capabilities: Capabilities {
                pipeline: true,
                batch_get: true,
                may_forget: self.0.behaviour.may_forget,
                ..Capabilities::default()
            },
            durability: Promise::checked(Durability::None),
            consistency: Promise::checked(Consistency::Linearizable),
            ttl_precision: Duration::ZERO,
            timeout: Duration::from_secs(1),
            settings: Vec::new(),
        })
    }

    async fn connect(&self, slots: usize) -> Answer<Connection<MapClient, NoTransport>> {
        let clients = (0..slots).map(|_| MapClient(Arc::clone(&self.0))).collect();
        Ok(Connection { clients, transport: NoTransport })
    }

    /// Returns the number of requests since the last call.
    async fn figures(&self) -> Vec<Figure> {
        let requests = self.0.requests.load(Ordering::Relaxed);
        let value = (requests - self.0.told.swap(requests, Ordering::Relaxed)) as f64;
        let (name, detail) = ("requests".to_owned(), String::new());
        vec![Figure { name, value, unit: FigureUnit::Count, detail, warning: None }]
    }
    fn folder(&self) -> Option<&Path> {
        None
    }

    fn work_since(&self, _: SystemTime) -> Vec<Work> {
        Vec::new()
    }

    kvdyno_core::kept_once_in_this_process!();
}

/// A client of [`MapStore`].
pub struct MapClient(Arc<MapStore>);

impl Client for MapClient {
    async fn get(&mut self, key: &[u8], into: &mut Reading) -> Answer<bool> {
        self.0.serve().await?;
        let shard = self.0.shard(key).lock().unwrap();
        let hidden = self.0.behaviour.hides.load(Ordering::Relaxed);
        let value = shard.get(key).filter(|_| !hidden);
        value.inspect(|value| into.set_whole(value));
        Ok(value.is_some())
    }

    async fn put(&mut self, put: Put<'_>) -> Answer<()> {
        self.0.serve().await?;
        if self.0.behaviour.forgets.load(Ordering::Relaxed) {
            return Ok(());
        }
        let mut shard = self.0.shard(put.key).lock().unwrap();
        shard.insert(put.key.to_vec(), put.value.whole().to_vec());
        Ok(())
    }

    async fn get_batch(&mut self, keys: &[&[u8]], into: &mut Rows) -> Answer<()> {
        self.0.serve().await?;
        for &key in keys {
            into.push(key, self.0.shard(key).lock().unwrap().get(key).map(Vec::as_slice));
        }
        Ok(())
    }

    async fn delete(&mut self, key: &[u8]) -> Answer<bool> {
        self.0.serve().await?;
        Ok(self.0.shard(key).lock().unwrap().remove(key).is_some())
    }
}

//! The conformance suite drives clients whose answers come later, through a transport that
//! several of them share.

use std::cell::RefCell;
use std::future::poll_fn;
use std::path::Path;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;

use kvdyno_core::store::{
    Answer, Client, Connection, Profile, Put, Reading, Store, Threading, ThreadingOf, Transport,
};
use kvdyno_stores::conformance::{ConformanceFinding, conformance};
use kvdyno_stores::map::{MapClient, MapStore};
use tokio::time::Sleep;

#[derive(Clone, Copy, PartialEq)]
enum Slot {
    Idle,
    Asked,
    Answered,
}

/// A map behind a wire that takes 20 µs.
struct Distant {
    map: MapStore,
    /// The answer to one slot is made for the key that another asked for.
    mixes_slots: bool,
}

struct DistantClient {
    map: MapClient,
    slot: usize,
    wire: Rc<RefCell<Wire>>,
    mixes_slots: bool,
}

struct Wire {
    slots: Vec<Slot>,
    keys: Vec<Vec<u8>>,
}

struct DistantTransport {
    wire: Rc<RefCell<Wire>>,
    under_way: Option<Pin<Box<Sleep>>>,
}

impl Store for Distant {
    type Client = DistantClient;
    type Transport = DistantTransport;

    const THREADING: ThreadingOf<Self> = ThreadingOf::All(Threading::Networked);

    async fn profile(&self) -> Answer<Profile> {
        let mut profile = self.map.profile().await?;
        profile.capabilities = Default::default();
        profile.capabilities.pipeline = true;
        Ok(profile)
    }

    async fn connect(&self, slots: usize) -> Answer<Connection<DistantClient, DistantTransport>> {
        let wire = Wire { slots: vec![Slot::Idle; slots], keys: vec![Vec::new(); slots] };
        let wire = Rc::new(RefCell::new(wire));
        let mut clients = Vec::new();
        for slot in 0..slots {
            let map = self.map.connect(1).await?.clients.remove(0);
            let mixes_slots = self.mixes_slots;
            clients.push(DistantClient { map, slot, wire: Rc::clone(&wire), mixes_slots });
        }
        Ok(Connection { clients, transport: DistantTransport { wire, under_way: None } })
    }
    fn folder(&self) -> Option<&Path> {
        None
    }

    kvdyno_core::kept_once_in_this_process!();
    kvdyno_core::notices_nothing!();
}

impl Transport for DistantTransport {
    fn poll(&mut self, context: &mut Context<'_>) -> bool {
        let mut wire = self.wire.borrow_mut();
        if !wire.slots.contains(&Slot::Asked) {
            return false;
        }
        let sleep = || Box::pin(tokio::time::sleep(Duration::from_micros(20)));
        let under_way = self.under_way.get_or_insert_with(sleep);
        if under_way.as_mut().poll(context).is_pending() {
            return false;
        }
        self.under_way = None;
        for slot in wire.slots.iter_mut().filter(|slot| **slot == Slot::Asked) {
            *slot = Slot::Answered;
        }
        true
    }
}

impl DistantClient {
    /// Queues the request and waits for its answer; gives the key that the answer is for.
    async fn travel(&mut self, key: &[u8]) -> Vec<u8> {
        {
            let mut wire = self.wire.borrow_mut();
            wire.slots[self.slot] = Slot::Asked;
            wire.keys[self.slot] = key.to_vec();
        }
        poll_fn(|_| match self.wire.borrow().slots[self.slot] {
            Slot::Answered => Poll::Ready(()),
            _ => Poll::Pending,
        })
        .await;
        let mut wire = self.wire.borrow_mut();
        wire.slots[self.slot] = Slot::Idle;
        let shift = usize::from(self.mixes_slots);
        let other = (self.slot + shift) % wire.keys.len();
        wire.keys[other].clone()
    }
}

impl Client for DistantClient {
    async fn get(&mut self, key: &[u8], into: &mut Reading) -> Answer<bool> {
        let key = self.travel(key).await;
        self.map.get(&key, into).await
    }

    async fn put(&mut self, put: Put<'_>) -> Answer<()> {
        self.travel(put.key).await;
        self.map.put(put).await
    }

    async fn delete(&mut self, key: &[u8]) -> Answer<bool> {
        self.travel(key).await;
        self.map.delete(key).await
    }
}

#[test]
fn a_networked_store_conforms() {
    let store = Distant { map: MapStore::default(), mixes_slots: false };
    let report = conformance(&store).unwrap();
    let not_claimed: Vec<_> = report
        .findings
        .iter()
        .filter(|(_, f)| *f == ConformanceFinding::NotClaimed)
        .map(|f| f.0)
        .collect();
    assert_eq!(not_claimed, ["one field", "scan", "get batch", "put batch", "time to live"]);
}

#[test]
fn a_connection_that_mixes_its_slots_fails() {
    let store = Distant { map: MapStore::default(), mixes_slots: true };
    assert_eq!(conformance(&store).unwrap_err().promise, "pipeline");
}

//! Tarantool over its binary protocol, with kvdyno's own codec: a space of keys and values on one server, or on a primary and
//! the replicas that follow it. Which requests go on the wire: docs/stores/tarantool.md.

mod client;
pub mod codec;
mod errors;
mod profile;
mod words;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::task::Context;
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use kvdyno_core::load::Need;
use kvdyno_core::store::{
    Answer, BoxedStore, Connection, Copies, Figure, Joined, NodeCopy, Profile, RequestError, Store,
    Threading, ThreadingOf, Transport,
};

use crate::entry::{Entry, boxed, threading_of};
use crate::error::StoreError;
use crate::incarnations::{Incarnations, ServerIncarnations};
use crate::url::StoreUrl;
use crate::wire::{
    self, Dialogue, Endpoint, MalformedAnswer, Protocol, ReachOptions, Stream, WireTransport,
    reach_one,
};

pub use client::TarantoolClient;
use codec::Reply;

/// The store's line in `kvdyno stores`.
pub const ENTRY: Entry = Entry {
    schemes: &["tarantool"],
    name: "tarantool",
    summary: "a space of Tarantool, on one server or on a primary with replicas: requests go to the one that takes writes",
    options: &[
        ("timeout", "longest time for a request and for an attempt to connect, 2s"),
        ("engine", "memtx or vinyl: engine of the space, if it is not there yet; memtx"),
    ],
    operations: "SELECT, REPLACE, DELETE; a batch is one EVAL, of puts a transaction; docs/stores/tarantool.md",
    durability: "read back from wal_mode: none, write (the process's end), fsync (loss of power)",
    consistency: "read after write",
    example: "tarantool://127.0.0.1:3301/kvdyno",
    lacks: &[Need::Ttl, Need::Pipeline],
    threading: threading_of::<TarantoolStore>(),
    request: words::of,
    check: |url| TarantoolStore::open(url).map(drop),
    open: |url| Ok(boxed(TarantoolStore::open(url)?)),
};

/// The space and what is known of it, which all connections of a store share.
#[derive(Default)]
struct Place {
    space: String,
    /// Engine of a space that is made.
    engine: &'static str,
    user: Option<(String, String)>,
    /// Number that the server gave to the space.
    space_id: AtomicU32,
    /// The space is of the engine that does not tell whether a delete found anything.
    is_vinyl: AtomicBool,
    /// Number of the server that took writes last.
    last: AtomicUsize,
    /// Server that is to take writes; else any does.
    writable: bool,
}

/// A space of Tarantool.
pub struct TarantoolStore {
    wire: Wire,
    incarnations: Incarnations,
}

impl TarantoolStore {
    /// Returns the space that a URL names: `tarantool://[user:password@]host[:port][,host…][/space]`.
    ///
    /// # Errors
    /// [`StoreError::Url`] if the URL names no server or has a wrong or unknown option.
    pub fn open(url: &mut StoreUrl) -> Result<TarantoolStore, StoreError> {
        let reach = ReachOptions::take_plain(url)?;
        let engine = url.take_choice("engine", &[("memtx", "memtx"), ("vinyl", "vinyl")])?;
        url.finish()?;
        let servers = reach.endpoints(url, 3301)?;
        let space = match url.path().trim_matches('/') {
            "" => "kvdyno",
            space => space,
        };
        let user = match (url.user(), url.password()) {
            (None, None) => None,
            (user, password) => {
                Some((user.unwrap_or("guest").to_owned(), password.unwrap_or_default().to_owned()))
            }
        };
        let engine = engine.unwrap_or("memtx");
        let place =
            Place { space: space.to_owned(), engine, user, writable: true, ..Place::default() };
        Ok(TarantoolStore::of(servers.into(), place))
    }

    fn of(servers: Arc<[Endpoint]>, place: Place) -> TarantoolStore {
        let wire = Wire { servers, place: Arc::new(place) };
        TarantoolStore { wire, incarnations: Incarnations::default() }
    }

    async fn read_incarnations(&self) -> ServerIncarnations {
        let asked = self.wire.servers.iter().map(|server| async {
            (server.name(), profile::incarnation(server, &self.wire.place).await)
        });
        join_all(asked).await
    }
}

impl Store for TarantoolStore {
    type Client = TarantoolClient;
    type Transport = TarantoolTransport;

    const THREADING: ThreadingOf<Self> = ThreadingOf::All(Threading::Networked);

    async fn profile(&self) -> Answer<Profile> {
        let (mut dialogue, server) = self.wire.reach().await?;
        let found = server.bounded(profile::ask(&mut dialogue, &self.wire)).await?;
        self.incarnations.meet(Instant::now(), self.read_incarnations().await);
        Ok(found)
    }

    async fn connect(&self, slots: usize) -> Answer<Connection<TarantoolClient, Self::Transport>> {
        let members = vec![(self.wire.clone(), true)];
        let (links, transport) = wire::open(members, slots, &Arc::default()).await?;
        let client = |link| TarantoolClient::new(link, self.wire.place.clone());
        let clients = links.into_iter().map(client).collect();
        Ok(Connection { clients, transport: TarantoolTransport(transport) })
    }

    async fn figures(&self) -> Vec<Figure> {
        let incarnations = self.read_incarnations().await;
        self.incarnations.look(Instant::now(), incarnations).into_iter().collect()
    }

    fn stronger(&self) -> Vec<(BoxedStore, String)> {
        Vec::new()
    }

    async fn copies(&self) -> Answer<Copies<BoxedStore>> {
        let servers = &self.wire.servers;
        if servers.len() == 1 {
            return Ok(Copies::One);
        }
        // The one that takes writes is the first copy.
        self.wire.reach().await?;
        let Place { space, user, last, .. } = &*self.wire.place;
        let first = last.load(Ordering::Relaxed);
        let copies = (0..servers.len()).map(|place| {
            let server = &servers[(first + place) % servers.len()];
            let place = Place { space: space.clone(), user: user.clone(), ..Place::default() };
            let copy = TarantoolStore::of(Arc::from([server.clone()]), place);
            NodeCopy::of_node(server.name(), BoxedStore::new(copy))
        });
        Ok(Copies::Each(copies.collect()))
    }

    async fn join(&self, _server: &str) -> Answer<Joined> {
        Ok(Joined::PassedOver("the server that takes writes has all records".to_owned()))
    }

    async fn held_by(&self, _: &str, _: &[Vec<u8>]) -> Answer<u64> {
        Err(RequestError::unsupported("a way to ask which server has a record"))
    }

    crate::on_servers::kept_on_servers!();
}

/// Moves the bytes of a connection to Tarantool.
pub struct TarantoolTransport(WireTransport<Wire>);

impl Transport for TarantoolTransport {
    #[inline]
    fn poll(&mut self, context: &mut Context<'_>) -> bool {
        self.0.poll(context)
    }
}

/// The binary protocol as the shared connection sees it. A server answers requests in an order of its own, so that each
/// connection has one request under way; it leads to the server that takes writes.
#[derive(Clone)]
struct Wire {
    /// Servers of the URL; never empty.
    servers: Arc<[Endpoint]>,
    place: Arc<Place>,
}

impl Wire {
    /// Returns a connection to the server that takes writes: the last one that did, or the first after it. Each has the time
    /// that a request may take.
    async fn reach(&self) -> Answer<(Dialogue, &Endpoint)> {
        let last = self.place.last.load(Ordering::Relaxed);
        let greet = async |server: &Endpoint| profile::greet(server, &self.place).await;
        let (dialogue, number) = reach_one(&self.servers, last, greet).await?;
        self.place.last.store(number, Ordering::Relaxed);
        Ok((dialogue, &self.servers[number]))
    }
}

impl Protocol for Wire {
    type Reply = Reply;
    type Progress = ();

    #[inline]
    fn scan(
        (): &mut (),
        _parts: u32,
        input: &[u8],
    ) -> Result<Option<(Reply, usize)>, MalformedAnswer> {
        codec::scan(input)
    }

    fn peer(&self) -> String {
        let names: Vec<String> = self.servers.iter().map(Endpoint::name).collect();
        names.join(" or ")
    }

    fn timeout(&self) -> Duration {
        self.servers[0].timeout()
    }

    fn open(&self) -> impl Future<Output = Answer<Stream>> + 'static {
        let wire = self.clone();
        async move { wire.reach().await?.0.into_stream() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_names_servers_and_a_space() {
        let open = |text: &str| TarantoolStore::open(&mut StoreUrl::parse(text).unwrap());
        let plain = open("tarantool://h1,u2:9/").unwrap().wire;
        assert_eq!(plain.peer(), "h1:3301 or u2:9");
        assert_eq!((plain.place.space.as_str(), plain.place.engine), ("kvdyno", "memtx"));
        let full = open("tarantool://u:p@h/s_1?engine=vinyl&timeout=1s").unwrap().wire.place;
        assert_eq!((full.space.as_str(), full.engine), ("s_1", "vinyl"));
        assert_eq!(full.user, Some(("u".to_owned(), "p".to_owned())));
        for (text, hint) in [
            ("tarantool:/b", "no server"),
            ("tarantool://h?engine=rocks", "`vinyl`"),
            ("tarantool://h?timeot=1s", "did you mean `timeout`?"),
        ] {
            let message = open(text).err().expect(text).to_string();
            assert!(message.contains(hint) && !message.contains('\n'), "{text}: {message}");
        }
    }
}

//! Riak KV over protocol buffers, with kvdyno's own codec. Which messages go on the wire:
//! docs/stores/riak.md.

mod client;
pub mod codec;
mod errors;
pub mod messages;
mod options;
mod profile;
mod siblings;
mod words;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Context;
use std::time::Duration;

use kvdyno_core::load::Need;
use kvdyno_core::store::{
    Answer, Connection, Figure, Joined, Profile, Store, Threading, ThreadingOf, Transport,
};

use crate::entry::{Entry, boxed, threading_of};
use crate::error::StoreError;
use crate::url::StoreUrl;
use crate::wire::{
    self, Dialogue, Effect, Endpoint, MalformedAnswer, Protocol, Sent, Stream, WireTransport,
    reach_one, unexpected,
};

pub use client::RiakClient;
use codec::code;
use options::{RiakOptions, Vclock};

/// The store's line in `kvdyno stores`.
pub const ENTRY: Entry = Entry {
    schemes: &["riak"],
    name: "riak",
    summary: "a Riak KV cluster, over protocol buffers; each connection leads to one of its nodes",
    options: options::OPTIONS,
    operations: "RpbGetReq, RpbPutReq (after an RpbGetReq of the head where siblings are kept), \
                 RpbDelReq; siblings are resolved by kvdyno's stamp; docs/stores/riak.md",
    durability: "declared: by `backend` and `dw`, for Riak does not tell",
    consistency: "eventual",
    example: "riak://127.0.0.1:8087/kvdyno",
    lacks: &[Need::Scan, Need::BatchGet, Need::BatchPut, Need::Ttl, Need::Pipeline],
    threading: threading_of::<RiakStore>(),
    request: words::of,
    check: |url| RiakStore::open(url).map(drop),
    open: |url| Ok(boxed(RiakStore::open(url)?)),
};

/// A Riak cluster.
pub struct RiakStore {
    options: RiakOptions,
    wire: Wire,
    sent: Arc<Sent>,
}

impl RiakStore {
    /// Returns the cluster that a URL names: `riak://host[:port][,host…][/[type/]bucket]`.
    ///
    /// # Errors
    /// [`StoreError::Url`] if the URL names no server or has a wrong or unknown option.
    pub fn open(url: &mut StoreUrl) -> Result<RiakStore, StoreError> {
        let options = RiakOptions::take(url)?;
        let nodes = Arc::from(options.endpoints.as_slice());
        let wire = Wire { nodes, turn: Arc::default() };
        Ok(RiakStore { options, wire, sent: Arc::default() })
    }

    /// Returns what puts do about vector clocks, once the bucket is as the URL wants it.
    async fn prepare(&self) -> Answer<Vclock> {
        if let (Some(vclock), None) = (self.options.vclock, self.options.n) {
            return Ok(vclock);
        }
        let talk = async |mut dialogue: Dialogue| {
            let props = profile::bucket(&mut dialogue, &self.options).await?;
            Ok(profile::vclock(&self.options, &props))
        };
        self.wire.talk(talk).await
    }
}

impl Store for RiakStore {
    type Client = RiakClient;
    type Transport = RiakTransport;

    const THREADING: ThreadingOf<Self> = ThreadingOf::All(Threading::Networked);

    async fn profile(&self) -> Answer<Profile> {
        let talk = async |mut dialogue: Dialogue| {
            let version = profile::version(&mut dialogue).await?;
            let props = profile::bucket(&mut dialogue, &self.options).await?;
            Ok(profile::of(&self.options, &props, version, self.wire.timeout()))
        };
        self.wire.talk(talk).await
    }

    async fn connect(&self, slots: usize) -> Answer<Connection<RiakClient, RiakTransport>> {
        let vclock = self.prepare().await?;
        let members = vec![(self.wire.clone(), true)];
        let (links, transport) = wire::open(members, slots, &self.sent).await?;
        let clients = links.into_iter().map(|link| RiakClient::new(link, &self.options, vclock));
        Ok(Connection { clients: clients.collect(), transport: RiakTransport(transport) })
    }

    /// Neither the protocol nor its statistics tell that a node was started anew.
    async fn figures(&self) -> Vec<Figure> {
        Vec::new()
    }

    async fn join(&self, _server: &str) -> Answer<Joined> {
        Ok(Joined::ByServers)
    }

    crate::on_servers::kept_on_servers!();
    crate::on_servers::copies_not_shown!();
}

/// Moves the bytes of a connection to Riak.
pub struct RiakTransport(WireTransport<Wire>);

impl Transport for RiakTransport {
    #[inline]
    fn poll(&mut self, context: &mut Context<'_>) -> bool {
        self.0.poll(context)
    }
}

/// Adapts Riak's frames to the shared connection. Any node takes any request, so a connection leads to the node whose turn
/// it is, and after it is lost to the next.
#[derive(Clone)]
struct Wire {
    /// Nodes of the cluster; never empty.
    nodes: Arc<[Endpoint]>,
    turn: Arc<AtomicUsize>,
}

impl Wire {
    /// Returns a connection that a node of Riak has answered on: to the node whose turn it is, else to the first after it
    /// that can be reached. Each has the time that a request may take.
    async fn reach(&self) -> Answer<(Dialogue, &Endpoint)> {
        let first = self.turn.fetch_add(1, Ordering::Relaxed);
        let (dialogue, number) = reach_one(&self.nodes, first, greet).await?;
        Ok((dialogue, &self.nodes[number]))
    }

    /// Connects, and asks with `questions` within the time that a request may take.
    async fn talk<T>(&self, questions: impl AsyncFnOnce(Dialogue) -> Answer<T>) -> Answer<T> {
        let (dialogue, node) = self.reach().await?;
        node.bounded(questions(dialogue)).await
    }
}

/// Connects, and makes sure that it is Riak that answers.
async fn greet(node: &Endpoint) -> Answer<Dialogue> {
    let mut dialogue = Dialogue::open(node).await?;
    let mut ping = Vec::new();
    codec::push_empty(&mut ping, code::PING);
    match dialogue.ask::<Wire>(&ping).await? {
        (code::PONG, _) => Ok(dialogue),
        (code::ERROR, answer) => {
            Err(errors::request_error(Effect::Read, codec::message(&answer)).losing_connection())
        }
        _ => Err(unexpected(Effect::Read)),
    }
}

impl Protocol for Wire {
    type Reply = u8;
    type Progress = ();

    /// Every request that kvdyno sends has one frame for an answer.
    #[inline]
    fn scan(
        (): &mut (),
        _parts: u32,
        input: &[u8],
    ) -> Result<Option<(u8, usize)>, MalformedAnswer> {
        codec::scan(input)
    }

    fn peer(&self) -> String {
        let names: Vec<String> = self.nodes.iter().map(Endpoint::name).collect();
        names.join(" or ")
    }

    fn timeout(&self) -> Duration {
        self.nodes[0].timeout()
    }

    fn open(&self) -> impl Future<Output = Answer<Stream>> + 'static {
        let wire = self.clone();
        async move { wire.reach().await?.0.into_stream() }
    }
}

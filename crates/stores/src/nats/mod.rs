//! NATS key-value buckets (JetStream) over the official client, `async-nats`. The client carries the requests of the
//! JetStream API as the vendor documents them (ADR-8 of key-value stores, ADR-31 of direct gets, ADR-43 of times to
//! live), so that each answer is judged here by its own code. Which requests go on the wire for each operation:
//! docs/stores/nats.md.

mod bucket;
mod client;
mod errors;
mod line;
mod options;
mod profile;
mod servers;
mod words;

use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use kvdyno_core::load::Need;
use kvdyno_core::store::{
    Answer, BoxedStore, Connection, Copies, Figure, Joined, NoTransport, Profile, RequestError,
    Store, Threading, ThreadingOf,
};

use crate::attempts;
use crate::entry::{Entry, boxed, threading_of};
use crate::error::StoreError;
use crate::incarnations::Incarnations;
use crate::url::StoreUrl;

pub use client::NatsClient;
use line::Line;
pub use options::{NatsOptions, NatsRead};

/// Description for `kvdyno stores`.
pub const ENTRY: Entry = Entry {
    schemes: &["nats", "natss"],
    name: "nats",
    summary: "a key-value bucket of NATS JetStream; name all servers; natss is the same over TLS",
    options: options::OPTIONS,
    operations: "a publish to $KV.BUCKET.KEY whose acknowledgement is awaited, and STREAM.MSG.GET or DIRECT.GET; \
                 docs/stores/nats.md",
    durability: "from the bucket's storage, read back, and the servers' sync_interval, read back where `monitor` names \
                 their monitoring port: always survives power loss, else process kill; memory and \
                 persist_mode async nothing",
    consistency: "of a bucket with one replica linearizable; of several read-after-write as long as no leader is cut off \
                  from the others; with read=direct eventual",
    example: "nats://127.0.0.1:4222/kvdyno",
    lacks: &[Need::Scan, Need::BatchGet, Need::BatchPut],
    threading: threading_of::<NatsStore>(),
    request: words::of,
    check: |url| NatsStore::open(url).map(drop),
    open: |url| Ok(boxed(NatsStore::open(url)?)),
};

/// A key-value bucket.
pub struct NatsStore {
    options: Arc<NatsOptions>,
    incarnations: Incarnations,
    /// Connections opened: they begin with different servers.
    opened: AtomicUsize,
}

impl NatsStore {
    /// Takes the bucket that a URL names: `nats://[user:password@]host[:port][,host…][/bucket]`, or `natss://` over TLS.
    /// Connects to nothing yet.
    ///
    /// # Errors
    /// [`StoreError::Url`] if the URL names no server or has a wrong or unknown option.
    pub fn open(url: &mut StoreUrl) -> Result<NatsStore, StoreError> {
        Ok(NatsStore::new(NatsOptions::take(url)?))
    }

    fn new(options: NatsOptions) -> NatsStore {
        NatsStore {
            options: Arc::new(options),
            incarnations: Incarnations::default(),
            opened: AtomicUsize::new(0),
        }
    }

    /// Opens a line to the first server that answers, from the one whose turn it is.
    async fn line(&self) -> Answer<Line> {
        let first = self.opened.fetch_add(1, Ordering::Relaxed);
        let line = Line::new(Arc::clone(&self.options), first);
        attempts::any(self.options.servers.len(), async || line.link().await).await?;
        Ok(line)
    }
}

impl Store for NatsStore {
    type Client = NatsClient;
    type Transport = NoTransport;

    const THREADING: ThreadingOf<Self> = ThreadingOf::All(Threading::Networked);

    async fn profile(&self) -> Answer<Profile> {
        let line = Rc::new(self.line().await?);
        let found = bucket::ensure(&line).await?;
        let version = line.link().await?.link.client.server_info().version;
        let syncs = servers::syncs(&self.options).await;
        self.incarnations.meet(Instant::now(), servers::told(&self.options).await);
        Ok(profile::of(&found, version, &syncs, &self.options))
    }

    async fn connect(&self, slots: usize) -> Answer<Connection<NatsClient, NoTransport>> {
        let line = Rc::new(self.line().await?);
        bucket::ensure(&line).await?;
        let clients = (0..slots).map(|_| NatsClient::new(Rc::clone(&line))).collect();
        Ok(Connection { clients, transport: NoTransport })
    }

    /// Tells which servers that the URL names were started anew.
    async fn figures(&self) -> Vec<Figure> {
        let told = servers::told(&self.options).await;
        self.incarnations.look(Instant::now(), told).into_iter().collect()
    }

    fn stronger(&self) -> Vec<(BoxedStore, String)> {
        match self.options.read {
            NatsRead::Leader => Vec::new(),
            NatsRead::Direct => {
                let options =
                    NatsOptions { read: NatsRead::Leader, ..self.options.as_ref().clone() };
                vec![(BoxedStore::new(NatsStore::new(options)), "the leader".to_owned())]
            }
        }
    }

    /// A direct get is answered by whichever replica takes it first.
    async fn copies(&self) -> Answer<Copies<BoxedStore>> {
        let found = bucket::ensure(&Rc::new(self.line().await?)).await?;
        Ok(match found.replicas {
            1 => Copies::One,
            _ => Copies::NotShown("NATS has no way to read a certain replica".to_owned()),
        })
    }

    async fn join(&self, _server: &str) -> Answer<Joined> {
        let why = "a bucket stays on the servers that it was placed on";
        Ok(Joined::PassedOver(why.to_owned()))
    }

    async fn held_by(&self, _: &str, _: &[Vec<u8>]) -> Answer<u64> {
        Err(RequestError::unsupported("a way to ask which server has a record"))
    }

    crate::on_servers::kept_on_servers!();
}

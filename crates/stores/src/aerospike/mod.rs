//! Aerospike, through its official driver. What goes on the wire for each operation, and what each
//! level promises: docs/stores/aerospike.md.

mod client;
mod errors;
mod incarnations;
mod link;
mod namespace;
mod options;
mod profile;
mod record;
mod words;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Instant;

use kvdyno_core::load::Need;
use kvdyno_core::store::{
    Answer, Connection, Figure, Joined, NoTransport, Profile, Store, Threading, ThreadingOf,
};

use crate::entry::{Entry, boxed, threading_of};
use crate::error::StoreError;
use crate::incarnations::Incarnations;
use crate::url::StoreUrl;

pub use client::AerospikeClient;
use link::Link;
use options::AerospikeOptions;

/// The store's line in `kvdyno stores`.
pub const ENTRY: Entry = Entry {
    schemes: &["aerospike"],
    name: "aerospike",
    summary: "an Aerospike cluster, found by any of its nodes",
    options: options::OPTIONS,
    operations: "get of all bins, put (replace; update for single fields), delete, batches of these; \
                 each sent once; docs/stores/aerospike.md",
    durability: "read back: commit-to-device survives power loss, all else nothing for sure",
    consistency: "read back: one node alone is linearizable, and so is strong consistency with \
                  consistency=linearize; all else is eventual",
    example: "aerospike://127.0.0.1:3000/test",
    lacks: &[Need::Scan, Need::Pipeline],
    threading: threading_of::<AerospikeStore>(),
    request: words::of,
    check: |url| AerospikeStore::open(url).map(drop),
    open: |url| Ok(boxed(AerospikeStore::open(url)?)),
};

/// A cluster.
pub struct AerospikeStore {
    options: Arc<AerospikeOptions>,
    /// The driver's client of each runtime: a worker thread has one, whatever its number of
    /// connections.
    links: Mutex<HashMap<tokio::runtime::Id, Weak<Link>>>,
    incarnations: Incarnations,
}

impl AerospikeStore {
    /// Returns the cluster that a URL names: `aerospike://[user:password@]host[:port][,host…]/namespace[/set]`. Connects to
    /// nothing yet.
    ///
    /// # Errors
    /// [`StoreError::Url`] if the URL names no server or namespace or has a wrong or unknown option.
    pub fn open(url: &mut StoreUrl) -> Result<AerospikeStore, StoreError> {
        let options = Arc::new(AerospikeOptions::take(url)?);
        Ok(AerospikeStore {
            options,
            links: Mutex::default(),
            incarnations: Incarnations::default(),
        })
    }

    /// Returns a client of the driver on the calling runtime that has room for one more of ours.
    async fn link(&self) -> Answer<Arc<Link>> {
        let runtime = tokio::runtime::Handle::current().id();
        let known = self.links().get(&runtime).and_then(Weak::upgrade);
        if let Some(link) = known.filter(|link| link.has_room()) {
            return Ok(link);
        }
        let link = Link::open(&self.options).await?;
        let mut links = self.links();
        links.retain(|_, link| link.strong_count() > 0);
        links.insert(runtime, Arc::downgrade(&link));
        Ok(link)
    }

    fn links(&self) -> MutexGuard<'_, HashMap<tokio::runtime::Id, Weak<Link>>> {
        self.links.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Store for AerospikeStore {
    type Client = AerospikeClient;
    type Transport = NoTransport;

    const THREADING: ThreadingOf<Self> = ThreadingOf::All(Threading::Networked);

    async fn profile(&self) -> Answer<Profile> {
        let link = self.link().await?;
        self.incarnations.meet(
            Instant::now(),
            incarnations::read_incarnations(&link.client, &self.options).await,
        );
        Ok(profile::of(&self.options, &link.nodes))
    }

    async fn connect(&self, slots: usize) -> Answer<Connection<AerospikeClient, NoTransport>> {
        let link = self.link().await?;
        let clients = (0..slots).map(|_| AerospikeClient::new(Arc::clone(&link))).collect();
        Ok(Connection { clients, transport: NoTransport })
    }

    /// Reports restarts, of those nodes that the cluster has now.
    async fn figures(&self) -> Vec<Figure> {
        let asked = async {
            let link = self.link().await.ok()?;
            Some(incarnations::read_incarnations(&link.client, &self.options).await)
        };
        let incarnations = tokio::time::timeout(self.options.timeout, asked).await.ok().flatten();
        self.incarnations
            .look(Instant::now(), incarnations.unwrap_or_default())
            .into_iter()
            .collect()
    }

    async fn join(&self, _server: &str) -> Answer<Joined> {
        Ok(Joined::ByServers)
    }

    crate::on_servers::kept_on_servers!();
    crate::on_servers::copies_not_shown!();
}

//! Cassandra and ScyllaDB, through ScyllaDB's official driver for both. Which statements go on the
//! wire for each operation, and what each level promises: docs/stores/cassandra.md.

mod client;
mod clock;
mod copies;
mod errors;
mod greeting;
mod link;
mod one_copy;
mod options;
mod profile;
mod replication;
mod schema;
mod statements;
mod words;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Instant;

use kvdyno_core::load::Need;
use kvdyno_core::store::{
    Answer, BoxedStore, Connection, Copies, Figure, Joined, NoTransport, Profile, Store, Threading,
    ThreadingOf,
};

use crate::entry::{Entry, boxed, threading_of};
use crate::error::StoreError;
use crate::incarnations::Incarnations;
use crate::url::StoreUrl;

pub use client::CassandraClient;
use link::{Link, Shared};
pub use options::CassandraOptions;

/// The store's line in `kvdyno stores`.
pub const ENTRY: Entry = Entry {
    schemes: &["cassandra", "cassandras"],
    name: "cassandra",
    summary: "a Cassandra or ScyllaDB cluster, found by any of its nodes; cassandras is the same \
              over TLS",
    options: options::OPTIONS,
    operations: "SELECT, INSERT and DELETE by key, prepared, with timestamps of kvdyno's own \
                 clock; batches: SELECT … IN, unlogged BATCH; docs/stores/cassandra.md",
    durability: "read back: commitlog_sync batch or group survives power loss, periodic nothing \
                 for sure",
    consistency: "from levels and copies, read back: reads and writes of a majority are \
                  linearizable, those that share a replica read-after-write, others eventual",
    example: "cassandra://127.0.0.1:9042/kvdyno?consistency=quorum",
    lacks: &[Need::Scan],
    threading: threading_of::<CassandraStore>(),
    request: words::of,
    check: |url| CassandraStore::open(url).map(drop),
    open: |url| Ok(boxed(CassandraStore::open(url)?)),
};

/// A cluster.
pub struct CassandraStore {
    options: CassandraOptions,
    shared: Arc<Shared>,
    /// The session of each runtime: a worker thread has one, whatever its number of connections.
    links: Mutex<HashMap<tokio::runtime::Id, Weak<Link>>>,
    incarnations: Incarnations,
}

impl CassandraStore {
    /// Returns the cluster that a URL names: `cassandra://[user:password@]host[:port][,host…][/keyspace]`, or
    /// `cassandras://` over TLS. Connects to nothing yet.
    ///
    /// # Errors
    /// [`StoreError::Url`] if the URL names no server or has a wrong or unknown option.
    pub fn open(url: &mut StoreUrl) -> Result<CassandraStore, StoreError> {
        let options = CassandraOptions::take(url)?;
        Ok(CassandraStore::new(options, Arc::default()))
    }

    fn new(options: CassandraOptions, shared: Arc<Shared>) -> CassandraStore {
        CassandraStore {
            options,
            shared,
            links: Mutex::default(),
            incarnations: Incarnations::default(),
        }
    }

    /// Returns the session of the calling runtime.
    async fn link(&self) -> Answer<Arc<Link>> {
        let runtime = tokio::runtime::Handle::current().id();
        let known = self.links().get(&runtime).and_then(Weak::upgrade);
        if let Some(link) = known {
            return Ok(link);
        }
        let link = Link::open(&self.options, &self.shared).await?;
        let mut links = self.links();
        links.retain(|_, link| link.strong_count() > 0);
        links.insert(runtime, Arc::downgrade(&link));
        Ok(link)
    }

    fn links(&self) -> std::sync::MutexGuard<'_, HashMap<tokio::runtime::Id, Weak<Link>>> {
        self.links.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Store for CassandraStore {
    type Client = CassandraClient;
    type Transport = NoTransport;

    const THREADING: ThreadingOf<Self> = ThreadingOf::All(Threading::Networked);

    async fn profile(&self) -> Answer<Profile> {
        let link = self.link().await?;
        let mut found = profile::ask_all(&link, &self.options).await?;
        found.settings.extend(self.options.tls_disclosed.clone());
        self.incarnations.meet(Instant::now(), profile::incarnations(&link.session).await);
        Ok(found)
    }

    async fn connect(&self, slots: usize) -> Answer<Connection<CassandraClient, NoTransport>> {
        let link = self.link().await?;
        let clients = (0..slots).map(|_| CassandraClient::new(Arc::clone(&link))).collect();
        Ok(Connection { clients, transport: NoTransport })
    }

    /// Reports restarts of nodes.
    async fn figures(&self) -> Vec<Figure> {
        let asked = async {
            let session = link::connect(&self.options).await.ok()?;
            Some(profile::incarnations(&session).await)
        };
        let told = tokio::time::timeout(self.options.timeout, asked).await.ok().flatten();
        self.incarnations.look(Instant::now(), told.unwrap_or_default()).into_iter().collect()
    }

    fn stronger(&self) -> Vec<(BoxedStore, String)> {
        copies::stronger(self)
    }

    async fn copies(&self) -> Answer<Copies<BoxedStore>> {
        copies::of(self).await
    }

    async fn join(&self, _server: &str) -> Answer<Joined> {
        Ok(Joined::ByServers)
    }

    /// Counts a record if the ring says so: a node is in the ring once it has streamed what is its own.
    async fn held_by(&self, server: &str, keys: &[Vec<u8>]) -> Answer<u64> {
        copies::held_by(self, server, keys).await
    }

    crate::on_servers::kept_on_servers!();
}

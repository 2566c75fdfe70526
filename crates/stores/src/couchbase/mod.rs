//! Couchbase, once Membase: Memcached's binary protocol, with records placed by vBuckets over the servers
//! of a cluster, with kvdyno's own codec. Which bytes go on the wire: docs/stores/couchbase.md.

mod client;
mod cluster;
pub mod codec;
mod errors;
mod map;

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Context;
use std::time::{Duration, Instant};

use kvdyno_core::load::Need;
use kvdyno_core::store::{
    Answer, Capabilities, Connection, Consistency, Durability, Figure, Joined, Profile, Promise,
    Store, Threading, ThreadingOf, Transport,
};

use crate::entry::{Entry, boxed, threading_of};
use crate::error::StoreError;
use crate::incarnations::Incarnations;
use crate::url::StoreUrl;
use crate::wire::{self, Endpoint, MalformedAnswer, Protocol, ReachOptions, Stream, WireTransport};

pub use client::CouchbaseClient;
use client::Routes;
use codec::Reply;

/// The store's line in `kvdyno stores`.
pub const ENTRY: Entry = Entry {
    schemes: &["couchbase"],
    name: "couchbase",
    summary: "a bucket of a Couchbase or Membase cluster, over Memcached's binary protocol with vBuckets",
    options: &[("timeout", "longest time for a request and for an attempt to connect, 2s")],
    operations: "Get, Set, Delete, each to the server of its key's vBucket; docs/stores/couchbase.md",
    durability: "none: a write is acknowledged from memory",
    consistency: "linearizable, while no server fails over",
    example: "couchbase://127.0.0.1:8091/default",
    lacks: &[Need::Scan, Need::BatchGet, Need::BatchPut],
    threading: threading_of::<CouchbaseStore>(),
    request: |request| request.plain(),
    check: |url| CouchbaseStore::open(url).map(drop),
    open: |url| Ok(boxed(CouchbaseStore::open(url)?)),
};

/// A time to live is rounded up to whole seconds, one is added, and the server counts ticks of a second.
/// The other half second is room for a tick that comes late.
const TTL_PRECISION: Duration = Duration::from_millis(2500);

/// Address and bucket of a cluster.
struct Cluster {
    /// Servers that are asked for the map, at their port for HTTP.
    seeds: Vec<Endpoint>,
    bucket: String,
    user: String,
    password: String,
}

impl Cluster {
    /// Returns a server of the map, reached as the first seed is.
    fn endpoint(&self, name: &str) -> Endpoint {
        let (host, port) = name.rsplit_once(':').unwrap_or((name, ""));
        let host = host.trim_start_matches('[').trim_end_matches(']');
        self.seeds[0].beside(host, port.parse().unwrap_or(11210))
    }
}

/// A bucket of a cluster.
pub struct CouchbaseStore {
    cluster: Arc<Cluster>,
    incarnations: Incarnations,
}

impl CouchbaseStore {
    /// Returns the bucket that a URL names: `couchbase://[user:password@]host[:port][,host…]/bucket`. The port
    /// is that of HTTP, 8091.
    ///
    /// # Errors
    /// [`StoreError::Url`] if the URL names no server or bucket, or has a wrong or unknown option.
    pub fn open(url: &mut StoreUrl) -> Result<CouchbaseStore, StoreError> {
        let reach = ReachOptions::take_plain(url)?;
        url.finish()?;
        let seeds = reach.endpoints(url, 8091)?;
        let bucket = url.path().trim_matches('/').to_owned();
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.%".contains(&byte);
        if bucket.is_empty() || !bucket.bytes().all(plain) {
            return Err(url.wrong(
                "no name of a bucket in the path",
                "write it like `couchbase://host:8091/default`",
            ));
        }
        let user = url.user().unwrap_or(&bucket).to_owned();
        let password = url.password().unwrap_or("").to_owned();
        let cluster = Arc::new(Cluster { seeds, bucket, user, password });
        Ok(CouchbaseStore { cluster, incarnations: Incarnations::default() })
    }

    fn member(&self, name: &str) -> Wire {
        Wire { endpoint: self.cluster.endpoint(name), cluster: self.cluster.clone() }
    }
}

impl Store for CouchbaseStore {
    type Client = CouchbaseClient;
    type Transport = CouchbaseTransport;

    const THREADING: ThreadingOf<Self> = ThreadingOf::All(Threading::Networked);

    async fn profile(&self) -> Answer<Profile> {
        let (map, told) = cluster::describe(&self.cluster).await?;
        self.incarnations.meet(Instant::now(), cluster::incarnations_in(&told));
        let version = match map.servers.first() {
            Some(first) => cluster::version(&self.member(first)).await,
            None => None,
        };
        let kind = told["bucketType"].as_str().unwrap_or("not told").to_owned();
        let settings = [
            ("servers", map.servers.len().to_string()),
            ("vBuckets", map.vbuckets().to_string()),
            ("replicas", map.replicas.to_string()),
            ("bucket type", kind),
        ];
        Ok(Profile {
            store: "couchbase".to_owned(),
            version,
            capabilities: Capabilities {
                scan: false,
                batch_get: false,
                batch_put: false,
                ttl: true,
                fields: false,
                pipeline: true,
                fabricates: false,
                may_apply_again: false,
                // An ephemeral bucket may evict, and a failover loses what was not replicated.
                may_forget: told["bucketType"] == "ephemeral",
            },
            durability: Promise::declared(Durability::None),
            // One server at a time holds a vBucket and answers for it.
            consistency: Promise::declared(Consistency::Linearizable),
            ttl_precision: TTL_PRECISION,
            timeout: self.cluster.seeds[0].timeout(),
            settings: settings.map(|(name, value)| (name.to_owned(), value)).to_vec(),
        })
    }

    async fn connect(&self, slots: usize) -> Answer<Connection<CouchbaseClient, Self::Transport>> {
        let (map, _) = cluster::describe(&self.cluster).await?;
        let members = map.servers.iter().map(|name| (self.member(name), true)).collect();
        let (links, transport) = wire::open(members, slots, &Arc::default()).await?;
        let routes = Rc::new(RefCell::new(Routes::new(map)));
        let client = |link| CouchbaseClient::new(link, routes.clone(), self.cluster.clone());
        let clients = links.into_iter().map(client).collect();
        Ok(Connection { clients, transport: CouchbaseTransport(transport) })
    }

    /// Reports restarts of servers, by what the cluster says of them.
    async fn figures(&self) -> Vec<Figure> {
        let Ok((_, told)) = cluster::describe(&self.cluster).await else { return Vec::new() };
        self.incarnations
            .look(Instant::now(), cluster::incarnations_in(&told))
            .into_iter()
            .collect()
    }

    async fn join(&self, _server: &str) -> Answer<Joined> {
        Ok(Joined::ByServers)
    }

    crate::on_servers::kept_on_servers!();
    crate::on_servers::copies_not_shown!();
}

/// Moves the bytes of the connections to a cluster.
pub struct CouchbaseTransport(WireTransport<Wire>);

impl Transport for CouchbaseTransport {
    #[inline]
    fn poll(&mut self, context: &mut Context<'_>) -> bool {
        self.0.poll(context)
    }
}

/// The binary protocol as the shared connection sees it: one server.
#[derive(Clone)]
struct Wire {
    endpoint: Endpoint,
    cluster: Arc<Cluster>,
}

impl Protocol for Wire {
    type Reply = Reply;
    type Progress = ();

    #[inline]
    fn scan(
        _progress: &mut (),
        _parts: u32,
        input: &[u8],
    ) -> Result<Option<(Reply, usize)>, MalformedAnswer> {
        codec::scan(input)
    }

    fn peer(&self) -> String {
        self.endpoint.name()
    }

    fn timeout(&self) -> Duration {
        self.endpoint.timeout()
    }

    fn open(&self) -> impl Future<Output = Answer<Stream>> + 'static {
        let wire = self.clone();
        async move { wire.endpoint.bounded(async { cluster::greet(&wire).await?.into_stream() }).await }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_names_servers_and_a_bucket() {
        let open = |text: &str| CouchbaseStore::open(&mut StoreUrl::parse(text).unwrap());
        let plain = open("couchbase://h1,h2:9000/beer").unwrap().cluster;
        let seeds: Vec<String> = plain.seeds.iter().map(Endpoint::name).collect();
        assert_eq!(seeds, ["h1:8091", "h2:9000"]);
        // Of old the bucket's name was the user's.
        assert_eq!((plain.bucket.as_str(), plain.user.as_str()), ("beer", "beer"));
        assert_eq!(plain.endpoint("a:12").name(), "a:12");
        for (text, hint) in [
            ("couchbase://h", "couchbase://host:8091/default"),
            ("couchbase://h/a%20b", "couchbase://host:8091/default"),
            ("couchbase:/b", "no server"),
            ("couchbase://h/b?timeot=1s", "did you mean `timeout`?"),
        ] {
            let message = open(text).err().expect(text).to_string();
            assert!(message.contains(hint) && !message.contains('\n'), "{text}: {message}");
        }
    }
}

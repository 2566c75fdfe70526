//! Drives a Redis store of any shape: where its servers are, how to connect to them, what they promise.

mod copies;

use std::sync::Arc;
use std::task::Context;
use std::time::Instant;

use futures_util::future::join_all;
use kvdyno_core::store::{
    Answer, BoxedStore, Connection, Copies, Figure, Joined, Profile, Store, Threading, ThreadingOf,
    Transport,
};

use super::client::RedisClient;
use super::cluster::{self, Cluster, View};
use super::codec::Token;
use super::learned::Learned;
use super::router::{Route, Router};
use super::sharded::{self, Shards};
use super::wire::{Access, ReadFrom, Sentinels, To, Wire, ask, sentinels};
use super::{profile, resharding};
use crate::error::StoreError;
use crate::incarnations::{Incarnations, ServerIncarnations};
use crate::placement::evenness;
use crate::url::StoreUrl;
use crate::wire::{self, Endpoint, Protocol, Sent, WireTransport};

/// Place of the servers, and of the records on them.
pub(super) enum Topology {
    /// One server, which the URL names.
    Single(Endpoint),
    /// The servers that the URL names, and those that have joined since.
    Sharded(Arc<Shards>),
    /// A primary and its replicas, as sentinels say.
    Watched { sentinels: Arc<Sentinels>, read: ReadFrom },
    /// The nodes of a cluster, as they say.
    Cluster(Arc<Cluster>),
}

/// A Redis store.
pub struct RedisStore {
    pub(super) access: Arc<Access>,
    pub(super) topology: Topology,
    pub(super) learned: Arc<Learned>,
    pub(super) sent: Arc<Sent>,
    pub(super) incarnations: Arc<Incarnations>,
}

impl RedisStore {
    /// Returns the store that a URL names: `redis://[user:password@]host[:port][/database]`, with `+sharded`,
    /// `+cluster` or `+sentinel` after the scheme several servers, with `rediss` for TLS; with `+unix`
    /// `redis+unix://[user:password@]/path[?db=N]`.
    ///
    /// # Errors
    /// [`StoreError::Url`] if the URL has a wrong number of servers, or a wrong or unknown option.
    pub fn open(url: &mut StoreUrl) -> Result<RedisStore, StoreError> {
        let (access, topology) = match url.scheme().split_once('+').map(|(_, kind)| kind) {
            Some("sharded") => {
                let (access, shards) = sharded::open(url)?;
                (Arc::new(access), Topology::Sharded(Arc::new(shards)))
            }
            Some("cluster") => {
                let cluster = Arc::new(cluster::open(url)?);
                (cluster.access().clone(), Topology::Cluster(cluster))
            }
            Some("sentinel") => {
                let (access, sentinels, read) = sentinels::open(url)?;
                let sentinels = Arc::new(sentinels);
                (Arc::new(access), Topology::Watched { sentinels, read })
            }
            _ => {
                let (access, reach) = Access::take(url)?;
                url.finish()?;
                let server = reach.endpoint(url, 6379)?;
                (Arc::new(access.with_database(url)?), Topology::Single(server))
            }
        };
        let (learned, sent, incarnations) = (Arc::default(), Arc::default(), Arc::default());
        Ok(RedisStore { access, topology, learned, sent, incarnations })
    }

    /// Returns a way to connect to each server whose promises count.
    async fn servers(&self) -> Answer<Vec<Wire>> {
        let to = |to: To| Wire { access: self.access.clone(), to };
        Ok(match &self.topology {
            Topology::Single(server) => vec![to(To::Server(server.clone()))],
            Topology::Sharded(shards) => {
                let layout = shards.layout();
                layout.servers.iter().map(|server| to(To::Server(server.clone()))).collect()
            }
            Topology::Watched { sentinels, read } => {
                let replica =
                    (*read == ReadFrom::Replica).then(|| to(To::Replica(sentinels.clone())));
                std::iter::once(to(To::Primary(sentinels.clone()))).chain(replica).collect()
            }
            Topology::Cluster(cluster) => {
                let map = cluster.current().await?;
                map.primaries().map(|node| to(To::Server(node.clone()))).collect()
            }
        })
    }

    /// Returns the members of a connection, and whether to connect to each at once.
    async fn members(&self) -> Answer<Vec<(Wire, bool)>> {
        Ok(self.servers().await?.into_iter().map(|wire| (wire, true)).collect())
    }

    fn reads_replicas(&self) -> bool {
        match &self.topology {
            Topology::Single(_) | Topology::Sharded(_) => false,
            Topology::Watched { read, .. } => *read == ReadFrom::Replica,
            Topology::Cluster(cluster) => cluster.reads_replicas(),
        }
    }
}

impl Store for RedisStore {
    type Client = RedisClient;
    type Transport = RedisTransport;

    const THREADING: ThreadingOf<Self> = ThreadingOf::All(Threading::Networked);

    async fn profile(&self) -> Answer<Profile> {
        let servers = self.servers().await?;
        let asked = join_all(servers.iter().map(profile::ask)).await;
        let facts = asked.into_iter().collect::<Answer<Vec<_>>>()?;
        let mut found = profile::of(&facts, servers[0].timeout(), self.reads_replicas());
        found.settings.extend(servers[0].endpoint().disclosed());
        match &self.topology {
            Topology::Single(_) => {}
            Topology::Sharded(shards) => {
                let layout = shards.layout();
                if let Some(hash) = layout.placement.describe() {
                    found.settings.push(("servers".to_owned(), layout.servers.len().to_string()));
                    found.settings.push(("hash".to_owned(), hash.to_owned()));
                }
            }
            Topology::Watched { sentinels, .. } => {
                found.settings.extend(sentinels.settings().await?)
            }
            Topology::Cluster(cluster) => found.settings.extend(cluster.map().settings()),
        }
        self.incarnations.meet(Instant::now(), self.read_incarnations().await);
        Ok(found)
    }

    async fn connect(&self, slots: usize) -> Answer<Connection<RedisClient, RedisTransport>> {
        let (members, route) = match &self.topology {
            Topology::Single(_) => (self.members().await?, Route::Single),
            Topology::Sharded(shards) => {
                let view = shards.view(&self.access);
                (self.members().await?, Route::Sharded(Box::new(view)))
            }
            Topology::Watched { read, .. } => (self.members().await?, Route::Watched(*read)),
            Topology::Cluster(cluster) => {
                let view = View::new(cluster, cluster.current().await?);
                (view.members(), Route::Cluster(Box::new(view)))
            }
        };
        let (links, transport) = wire::open(members, slots, &self.sent).await?;
        let clients = links
            .into_iter()
            .map(|link| RedisClient::new(Router::new(link, route.clone()), self.learned.clone()));
        Ok(Connection { clients: clients.collect(), transport: RedisTransport(transport) })
    }

    async fn figures(&self) -> Vec<Figure> {
        let incarnations = self.read_incarnations().await;
        let mut all: Vec<Figure> =
            self.incarnations.look(Instant::now(), incarnations).into_iter().collect();
        all.extend(self.evenness().await);
        all
    }

    fn stronger(&self) -> Vec<(BoxedStore, String)> {
        copies::stronger(self)
    }

    async fn copies(&self) -> Answer<Copies<BoxedStore>> {
        copies::of(self).await
    }

    async fn join(&self, server: &str) -> Answer<Joined> {
        match &self.topology {
            Topology::Single(_) => {
                Ok(Joined::PassedOver("the URL names one server, and all records are there".into()))
            }
            Topology::Sharded(shards) => resharding::join(&self.access, shards, server).await,
            Topology::Watched { .. } | Topology::Cluster(_) => Ok(Joined::ByServers),
        }
    }

    async fn held_by(&self, server: &str, keys: &[Vec<u8>]) -> Answer<u64> {
        let known = match &self.topology {
            Topology::Single(server) => Some(server.clone()),
            Topology::Sharded(shards) => shards.layout().servers.first().cloned(),
            Topology::Watched { sentinels, .. } => Some(sentinels.first().clone()),
            Topology::Cluster(cluster) => cluster.current().await?.primaries().next().cloned(),
        };
        copies::held_by(&self.access, known, server, keys).await
    }

    crate::on_servers::kept_on_servers!();
}

impl RedisStore {
    /// Asks each server which of its incarnations it is; of a cluster each primary.
    async fn read_incarnations(&self) -> ServerIncarnations {
        let servers: Vec<Endpoint> = match &self.topology {
            Topology::Single(server) => vec![server.clone()],
            Topology::Sharded(shards) => shards.layout().servers.clone(),
            Topology::Cluster(cluster) => {
                cluster.map().numbered_primaries().map(|(_, server)| server).collect()
            }
            // By their own addresses: whoever takes over is no new incarnation of the one before.
            Topology::Watched { sentinels, .. } => {
                let replicas = sentinels.replicas().await.unwrap_or_default();
                sentinels.primary().await.into_iter().chain(replicas).collect()
            }
        };
        let told = servers.iter().map(|server| async {
            let wire = Wire::server(&self.access, server.clone());
            (server.name(), profile::incarnation(&wire).await)
        });
        join_all(told).await
    }

    /// Returns the figures that tell how evenly records and requests are spread over several servers.
    async fn evenness(&self) -> Vec<Figure> {
        let sent = self.sent.take();
        let (servers, advice): (Vec<(usize, Endpoint)>, _) = match &self.topology {
            Topology::Sharded(shards) => {
                let servers = shards.layout().servers.iter().cloned().enumerate().collect();
                (servers, "the fullest server limits them all: try another `hash`")
            }
            Topology::Cluster(cluster) => {
                let servers = cluster.map().numbered_primaries().collect();
                (servers, "the fullest node limits them all: see `redis-cli --cluster rebalance`")
            }
            Topology::Single(_) | Topology::Watched { .. } => return Vec::new(),
        };
        if servers.len() < 2 {
            return Vec::new();
        }
        let sizes = join_all(servers.iter().map(|(_, server)| self.records_on(server))).await;
        let sizes: Option<Vec<u64>> = sizes.into_iter().collect();
        let named = |counts: Vec<u64>| -> Vec<(String, u64)> {
            servers.iter().map(|(_, server)| server.name()).zip(counts).collect()
        };
        let requests = |(member, _): &(usize, Endpoint)| sent.to(*member);
        let requests = named(servers.iter().map(requests).collect());
        let mut all = sizes.map_or(Vec::new(), |s| evenness::figures("keys", &named(s), advice));
        let grown = matches!(&self.topology, Topology::Sharded(shards) if shards.has_grown());
        if !grown {
            all.extend(sent.figures(&requests, advice));
        }
        all
    }

    /// Asks a server how many records lie on it, foreign ones included.
    async fn records_on(&self, server: &Endpoint) -> Option<u64> {
        let wire = Wire::server(&self.access, server.clone());
        let asked = server.bounded(async {
            let mut dialogue = wire.dialogue().await?;
            ask(&mut dialogue, &[b"DBSIZE"]).await?
        });
        match asked.await {
            Ok((Token::Integer(count), _)) => u64::try_from(count).ok(),
            _ => None,
        }
    }
}

/// Moves the bytes of the connections to Redis.
pub struct RedisTransport(WireTransport<Wire>);

impl Transport for RedisTransport {
    #[inline]
    fn poll(&mut self, context: &mut Context<'_>) -> bool {
        self.0.poll(context)
    }
}

#[cfg(test)]
mod tests;

//! Reads each copy that Redis keeps of a record, on a primary and its replicas, by itself. A replica answers reads that it
//! is asked directly; one of a cluster after `READONLY`, for the slots that it has.

use std::sync::Arc;

use kvdyno_core::store::{Answer, BoxedStore, Copies, ErrorClass, NodeCopy, RequestError};

use super::{RedisStore, Topology};
use crate::redis::cluster::Cluster;
use crate::redis::codec::Token;
use crate::redis::wire::{Access, ReadFrom, Sentinels, Wire, ask};
use crate::wire::{Effect, Endpoint, unexpected};

/// Returns a store for each node, as its topology is now.
pub(super) async fn of(store: &RedisStore) -> Answer<Copies<BoxedStore>> {
    match &store.topology {
        // Each record is on one of the servers that the URL names; whether that has replicas nobody
        // has said.
        Topology::Single(_) | Topology::Sharded(_) => Ok(Copies::One),
        Topology::Watched { sentinels, .. } => watched(store, sentinels).await,
        Topology::Cluster(cluster) => of_cluster(store, cluster).await,
    }
}

async fn watched(store: &RedisStore, sentinels: &Sentinels) -> Answer<Copies<BoxedStore>> {
    let asking = async {
        let mut nodes = vec![sentinels.primary().await?];
        nodes.extend(sentinels.replicas().await?);
        Ok(nodes)
    };
    let nodes = sentinels.first().bounded(asking).await?;
    Ok(several(nodes.into_iter().map(|node| {
        let name = node.name();
        let copy = placed(store, node, store.access.clone());
        NodeCopy::of_node(name, BoxedStore::new(copy))
    })))
}

/// Returns the primary of each slot, its first replica, its second, as far as some slot has one.
async fn of_cluster(store: &RedisStore, cluster: &Arc<Cluster>) -> Answer<Copies<BoxedStore>> {
    let map = cluster.refreshed().await?;
    Ok(several((0..map.most_copies()).map(|number| {
        let name = match number {
            0 => "the primaries".to_owned(),
            1 => "the first replicas".to_owned(),
            number => format!("replicas number {number}"),
        };
        let (cluster, map) = (Arc::new(cluster.of_copy(number)), map.clone());
        let copy = RedisStore {
            access: cluster.access().clone(),
            topology: Topology::Cluster(cluster),
            learned: store.learned.clone(),
            sent: Arc::default(),
            incarnations: Arc::default(),
        };
        let place = move |key: &[u8]| Some(map.holder(key, number)?.name());
        NodeCopy { name, store: BoxedStore::new(copy), place: Some(Box::new(place)) }
    })))
}

fn several(copies: impl Iterator<Item = NodeCopy<BoxedStore>>) -> Copies<BoxedStore> {
    let copies: Vec<_> = copies.collect();
    if copies.len() < 2 { Copies::One } else { Copies::Each(copies) }
}

fn placed(store: &RedisStore, node: Endpoint, access: Arc<Access>) -> RedisStore {
    RedisStore {
        access,
        topology: Topology::Single(node),
        learned: store.learned.clone(),
        sent: Arc::default(),
        incarnations: Arc::default(),
    }
}

/// Returns the store that reads the primary, where reads of a replica may be old: those of its primary are not.
pub(super) fn stronger(store: &RedisStore) -> Vec<(BoxedStore, String)> {
    let topology = match &store.topology {
        Topology::Watched { sentinels, read: ReadFrom::Replica } => {
            Topology::Watched { sentinels: sentinels.clone(), read: ReadFrom::Primary }
        }
        Topology::Cluster(cluster) if cluster.reads_replicas() => {
            Topology::Cluster(Arc::new(cluster.of_primaries()))
        }
        _ => return Vec::new(),
    };
    let access = match &topology {
        Topology::Cluster(cluster) => cluster.access().clone(),
        _ => store.access.clone(),
    };
    let learned = store.learned.clone();
    let primary = RedisStore {
        access,
        topology,
        learned,
        sent: Arc::default(),
        incarnations: Arc::default(),
    };
    vec![(BoxedStore::new(primary), "of the primary".to_owned())]
}

/// Returns how many of the records at `keys` a server has, which is reached as `known` is. A node of a cluster that has not
/// got a record's slot says so.
pub(super) async fn held_by(
    access: &Arc<Access>,
    known: Option<Endpoint>,
    server: &str,
    keys: &[Vec<u8>],
) -> Answer<u64> {
    let place = server.rsplit_once(':').and_then(|(host, port)| Some((host, port.parse().ok()?)));
    let (Some(known), Some((host, port))) = (known, place) else {
        let message = format!("{server} is no host:port of a server that can be asked");
        return Err(RequestError::failed(ErrorClass::Rejected, message));
    };
    let endpoint = known.beside(host.trim_matches(['[', ']']), port);
    let mut dialogue = endpoint.bounded(Wire::server(access, endpoint.clone()).dialogue()).await?;
    let mut held = 0;
    for key in keys {
        match endpoint.bounded(ask(&mut dialogue, &[b"EXISTS", key])).await? {
            Ok((Token::Integer(count), _)) => held += u64::from(count > 0),
            Err(error) if error.message.starts_with("MOVED") => {}
            Err(error) => return Err(error),
            Ok(_) => return Err(unexpected(Effect::Read)),
        }
    }
    Ok(held)
}

//! The copies that Redis keeps of each record: a primary and its replicas, each read by itself. A replica
//! answers reads that it is asked directly; one of a cluster after `READONLY`, for the slots that it has.

use std::sync::Arc;

use kvdyno_core::store::{Answer, Copies, NodeCopy};

use super::RedisStore;
use super::cluster::Cluster;
use super::sentinel::Sentinels;
use super::store::{ReadFrom, Topology};
use super::wire::Access;
use crate::wire::Endpoint;

/// What each node has, as its topology is now.
pub(super) async fn of(store: &RedisStore) -> Answer<Copies<RedisStore>> {
    match &store.topology {
        // Each record is on one of the servers that the URL names; whether that has replicas nobody
        // has said.
        Topology::Single(_) | Topology::Sharded(_) => Ok(Copies::One),
        Topology::Watched { sentinels, .. } => watched(store, sentinels).await,
        Topology::Cluster(cluster) => of_cluster(store, cluster).await,
    }
}

async fn watched(store: &RedisStore, sentinels: &Sentinels) -> Answer<Copies<RedisStore>> {
    let asking = async {
        let mut nodes = vec![sentinels.primary().await?];
        nodes.extend(sentinels.replicas().await?);
        Ok(nodes)
    };
    let nodes = sentinels.first().bounded(asking).await?;
    Ok(several(nodes.into_iter().map(|node| {
        let name = node.name();
        NodeCopy::of_node(name, placed(store, node, store.access.clone()))
    })))
}

/// The primary of each slot, its first replica, its second, as far as some slot has one.
async fn of_cluster(store: &RedisStore, cluster: &Arc<Cluster>) -> Answer<Copies<RedisStore>> {
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
            lives: Arc::default(),
        };
        let place = move |key: &[u8]| Some(map.holder(key, number)?.name());
        NodeCopy { name, store: copy, place: Some(Box::new(place)) }
    })))
}

fn several(copies: impl Iterator<Item = NodeCopy<RedisStore>>) -> Copies<RedisStore> {
    let copies: Vec<_> = copies.collect();
    if copies.len() < 2 { Copies::One } else { Copies::Each(copies) }
}

fn placed(store: &RedisStore, node: Endpoint, access: Arc<Access>) -> RedisStore {
    RedisStore {
        access,
        topology: Topology::Single(node),
        learned: store.learned.clone(),
        sent: Arc::default(),
        lives: Arc::default(),
    }
}

/// Reads of a replica may be old: those of its primary are not.
pub(super) fn stronger(store: &RedisStore) -> Vec<(RedisStore, String)> {
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
    let primary =
        RedisStore { access, topology, learned, sent: Arc::default(), lives: Arc::default() };
    vec![(primary, "of the primary".to_owned())]
}

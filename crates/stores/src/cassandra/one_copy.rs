//! Routes requests of a session that reads one copy of each record.

use scylla::cluster::{ClusterState, NodeRef};
use scylla::policies::load_balancing::{FallbackPlan, LoadBalancingPolicy, RoutingInfo};
use scylla::routing::Shard;

/// Sends each request to the node that has one certain copy of its record, and to no other.
#[derive(Debug)]
pub(super) struct OneCopy(pub usize);

impl LoadBalancingPolicy for OneCopy {
    fn pick<'a>(
        &'a self,
        request: &'a RoutingInfo<'_>,
        cluster: &'a ClusterState,
    ) -> Option<(NodeRef<'a>, Option<Shard>)> {
        let (Some(token), Some(table)) = (request.token, request.table) else {
            // What is about no record, such as the schema, any node may answer.
            return Some((cluster.get_nodes_info().first()?, None));
        };
        let strategy = &cluster.get_keyspace(table.ks_name())?.strategy;
        let replicas = cluster.replica_locator().replicas_for_token(token, strategy, None, table);
        let (node, shard) = replicas.into_iter().nth(self.0)?;
        Some((node, Some(shard)))
    }

    fn fallback<'a>(
        &'a self,
        request: &'a RoutingInfo<'_>,
        cluster: &'a ClusterState,
    ) -> FallbackPlan<'a> {
        match request.token {
            Some(_) => Box::new(std::iter::empty()),
            None => Box::new(cluster.get_nodes_info().iter().map(|node| (node, None))),
        }
    }

    fn name(&self) -> String {
        "OneCopy".to_owned()
    }
}

//! Reads each copy that a cluster keeps of a record by itself: at level `one`, asked of the very node that has the copy. A
//! coordinator that has a copy takes its own, unless its settings let it choose: with a dynamic snitch, or with one that
//! orders no nodes (`SimpleSnitch`), it may ask another.

use std::collections::HashMap;
use std::sync::Arc;

use kvdyno_core::store::{Answer, BoxedStore, Copies, ErrorClass, NodeCopy, RequestError};
use scylla::statement::Consistency;

use super::CassandraStore;
use super::link::Link;
use super::options::CassandraOptions;
use super::profile::settings_of_nodes;

/// Returns a store for each copy, which reads that one only; `NotShown` where the nodes may ask others.
pub(super) async fn of(store: &CassandraStore) -> Answer<Copies<BoxedStore>> {
    let link = store.link().await?;
    let Some(replication) = &link.schema.replication else {
        return Ok(Copies::NotShown("how the keyspace keeps copies is not known".to_owned()));
    };
    let count = replication.total() as usize;
    if count < 2 {
        return Ok(Copies::One);
    }
    if let Some(why) = settings_of_nodes(&link).await.iter().find_map(asks_others) {
        return Ok(Copies::NotShown(why));
    }
    let each = (0..count).map(|number| {
        let options = CassandraOptions {
            read: Consistency::One,
            copy: Some(number),
            ..store.options.clone()
        };
        let place = {
            let (link, options) = (Arc::clone(&link), options.clone());
            move |key: &[u8]| place(&link, &options, key, number)
        };
        NodeCopy {
            name: format!("copy {}", number + 1),
            store: BoxedStore::new(CassandraStore::new(options, Arc::clone(&store.shared))),
            place: Some(Box::new(place)),
        }
    });
    Ok(Copies::Each(each.collect()))
}

/// Returns the node that has a copy of the record at `key`.
fn place(link: &Link, options: &CassandraOptions, key: &[u8], number: usize) -> Option<String> {
    let cluster = link.session.get_cluster_state();
    let (keyspace, table) = (&options.keyspace, &options.table);
    let token = cluster.compute_token(keyspace, table, &(key,)).ok()?;
    let nodes = cluster.get_token_endpoints(keyspace, table, token);
    nodes.get(number).map(|(node, _)| node.address.to_string())
}

/// Returns how many of the records at `keys` have a copy on a node, as the ring is now.
pub(super) async fn held_by(store: &CassandraStore, server: &str, keys: &[Vec<u8>]) -> Answer<u64> {
    let link = store.link().await?;
    // What is left of an earlier look may be without the node.
    let refreshed = link.session.refresh_metadata().await;
    refreshed.map_err(|error| {
        let message = format!("kvdyno could not read the ring of nodes: {error}");
        RequestError::failed(ErrorClass::Unavailable, message)
    })?;
    let cluster = link.session.get_cluster_state();
    let (keyspace, table) = (&store.options.keyspace, &store.options.table);
    let has = |key: &&Vec<u8>| {
        let token = cluster.compute_token(keyspace, table, &(key.as_slice(),)).ok();
        let nodes = token.map(|token| cluster.get_token_endpoints(keyspace, table, token));
        nodes.is_some_and(|nodes| nodes.iter().any(|(node, _)| node.address.to_string() == server))
    };
    Ok(keys.iter().filter(has).count() as u64)
}

/// Returns why a node that is asked at level `one` may answer with another's copy; `None` if it does not.
fn asks_others(settings: &Option<HashMap<String, String>>) -> Option<String> {
    let Some(settings) = settings else {
        return Some("not every node tells whether it answers with its own copy".to_owned());
    };
    let value = |name: &str| settings.get(name).map_or("", String::as_str);
    if value("dynamic_snitch") != "false" {
        return Some("with `dynamic_snitch` a node may answer with another's copy".to_owned());
    }
    match value("endpoint_snitch") {
        snitch if snitch.is_empty() || snitch.contains("SimpleSnitch") => {
            let named = if snitch.is_empty() { "its snitch" } else { snitch };
            Some(format!("with {named} a node may answer with another's copy"))
        }
        _ => None,
    }
}

/// Returns every level that reads more copies than this store's.
pub(super) fn stronger(store: &CassandraStore) -> Vec<(BoxedStore, String)> {
    let levels: &[(Consistency, &str)] = match store.options.read {
        Consistency::All => &[],
        Consistency::Quorum | Consistency::LocalQuorum => &[(Consistency::All, "at level all")],
        _ => &[(Consistency::All, "at level all"), (Consistency::Quorum, "at level quorum")],
    };
    let at = |&(read, how): &(Consistency, &str)| {
        let options = CassandraOptions { read, ..store.options.clone() };
        let store = CassandraStore::new(options, Arc::clone(&store.shared));
        (BoxedStore::new(store), how.to_owned())
    };
    levels.iter().map(at).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_answers_with_its_own_copy_only_if_nothing_lets_it_choose() {
        let settings = |dynamic: &str, snitch: &str| {
            let pairs = [("dynamic_snitch", dynamic), ("endpoint_snitch", snitch)];
            Some(pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).into())
        };
        assert_eq!(asks_others(&settings("false", "GossipingPropertyFileSnitch")), None);
        for (dynamic, snitch, why) in [
            ("true", "GossipingPropertyFileSnitch", "dynamic_snitch"),
            ("false", "org.apache.cassandra.locator.SimpleSnitch", "SimpleSnitch"),
            ("false", "", "its snitch"),
        ] {
            let told = asks_others(&settings(dynamic, snitch)).unwrap();
            assert!(told.contains(why), "{told}");
        }
        assert!(asks_others(&None).unwrap().contains("not every node"));
    }
}

//! Builds the profile of a cluster, read back from its system tables.

use std::collections::HashMap;

use kvdyno_core::store::{Answer, Capabilities, Consistency, Durability, Profile, Promise};
use scylla::client::session::Session;
use scylla::deserialize::row::DeserializeRow;
use scylla::policies::load_balancing::{NodeIdentifier, SingleTargetLoadBalancingPolicy};
use scylla::statement::Statement;
use std::sync::Arc;
use std::time::Duration;

use super::link::Link;
use super::options::{CassandraOptions, word};
use super::schema::rows;
use crate::incarnations::{Incarnation, ServerIncarnations};

/// Cassandra counts whole seconds, so a record lives up to 1 s less or more than asked; the clocks
/// of the servers may differ besides.
const TTL_PRECISION: Duration = Duration::from_millis(1500);

/// Settings of the servers that are disclosed.
const DISCLOSED: [&str; 12] = [
    "commitlog_sync",
    "commitlog_sync_period",
    "commitlog_sync_group_window",
    "commitlog_disk_access_mode",
    "num_tokens",
    "memtable_heap_space",
    "concurrent_reads",
    "concurrent_writes",
    "read_request_timeout",
    "write_request_timeout",
    "hinted_handoff_enabled",
    "dynamic_snitch",
];

pub(super) async fn ask_all(link: &Link, options: &CassandraOptions) -> Answer<Profile> {
    let version: Vec<(Option<String>,)> =
        rows(&link.session, "SELECT release_version FROM system.local".into(), ()).await?;
    let nodes = settings_of_nodes(link).await;
    let (durability, every) = durability(link, &nodes);
    let mut settings = declared(link, options, nodes.len());
    if let Some(first) = nodes.iter().flatten().next() {
        for name in DISCLOSED {
            if let Some(value) = first.get(name) {
                settings.push((name.to_owned(), value.clone()));
            }
        }
    }
    Ok(Profile {
        store: "cassandra".to_owned(),
        version: version.into_iter().next().and_then(|(version,)| version),
        capabilities: Capabilities {
            batch_get: true,
            batch_put: true,
            ttl: true,
            fields: link.schema.fields > 0,
            pipeline: true,
            may_apply_again: options.retry,
            ..Capabilities::default()
        },
        durability: Promise { level: durability, checked: every, set_up: false },
        consistency: consistency(link, options),
        ttl_precision: TTL_PRECISION,
        timeout: options.timeout,
        settings,
    })
}

/// Returns what was asked of the cluster, and how its keyspace keeps records.
fn declared(link: &Link, options: &CassandraOptions, nodes: usize) -> Vec<(String, String)> {
    let schema = &link.schema;
    let copies = schema.replication.as_ref().map_or_else(|| "?".to_owned(), |r| r.shown());
    let mut out = vec![
        ("nodes".to_owned(), nodes.to_string()),
        ("keyspace".to_owned(), options.keyspace.clone()),
        ("table".to_owned(), options.table.clone()),
        ("replication".to_owned(), copies),
        ("read consistency".to_owned(), word(options.read).to_owned()),
        ("write consistency".to_owned(), word(options.write).to_owned()),
        ("connections to each node from each worker".to_owned(), options.connections.to_string()),
    ];
    let mut add = |name: &str, value: Option<String>| {
        out.extend(value.map(|value| (name.to_owned(), value)));
    };
    add("datacenter", options.datacenter.clone());
    add("compression on the wire", options.compression.map(|kind| kind.to_string()));
    add("compression of the table", schema.compression.clone());
    add("read_repair", schema.read_repair.clone());
    add("durable_writes", (!schema.durable_writes).then(|| "false".to_owned()));
    out
}

/// Reads the settings of each node, where it tells them: a table of each node's own, of Cassandra from 4.0 on.
pub(super) async fn settings_of_nodes(link: &Link) -> Vec<Option<HashMap<String, String>>> {
    let told = of_each_node::<(String, Option<String>)>(
        &link.session,
        "SELECT name, value FROM system_views.settings",
    );
    let pairs = |rows: Vec<(String, Option<String>)>| {
        rows.into_iter().filter_map(|(name, value)| Some((name, value?))).collect()
    };
    told.await.into_iter().map(|(_, rows)| rows.ok().map(pairs)).collect()
}

/// Returns the incarnation of each node: a node gives each a number of its own, that of the second in which it begins if
/// that is not taken, and keeps it.
pub(super) async fn incarnations(session: &Session) -> ServerIncarnations {
    let asked = "SELECT gossip_generation FROM system.local";
    let told = of_each_node::<(Option<i32>,)>(session, asked).await;
    let incarnation = |rows: Answer<Vec<(Option<i32>,)>>| {
        let (generation,) = rows.ok()?.into_iter().next()?;
        Some(Incarnation { id: generation?.to_string(), up: None })
    };
    told.into_iter().map(|(node, rows)| (node, incarnation(rows))).collect()
}

/// Reads the tables that each node has of its own, by its address.
async fn of_each_node<R>(session: &Session, question: &str) -> Vec<(String, Answer<Vec<R>>)>
where
    R: for<'f, 'm> DeserializeRow<'f, 'm>,
{
    let cluster = session.get_cluster_state();
    let mut all = Vec::new();
    for node in cluster.get_nodes_info() {
        let mut statement = Statement::new(question);
        let target = NodeIdentifier::Node(Arc::clone(node));
        let policy = SingleTargetLoadBalancingPolicy::new(target, None);
        statement.set_load_balancing_policy(Some(policy));
        all.push((node.address.to_string(), rows(session, statement, ()).await));
    }
    all
}

/// Returns the weakest durability of all nodes, and whether every node has told.
///
/// With `batch` and `group` a replica has the write on disk before it answers. With `periodic` it has
/// it in memory: even a killed process loses what was written since the last mark in its log, up to
/// `commitlog_sync_marker_period` (100 ms), for its log is read back only up to there.
fn durability(link: &Link, nodes: &[Option<HashMap<String, String>>]) -> (Durability, bool) {
    if !link.schema.durable_writes {
        return (Durability::None, true);
    }
    let sync = |node: &Option<HashMap<String, String>>| {
        node.as_ref().and_then(|node| node.get("commitlog_sync").cloned())
    };
    let each: Vec<Option<String>> = nodes.iter().map(sync).collect();
    let synced = |sync: &Option<String>| matches!(sync.as_deref(), Some("batch" | "group"));
    let level = match each.iter().all(synced) && !each.is_empty() {
        true => Durability::PowerLoss,
        false => Durability::None,
    };
    (level, each.iter().all(Option::is_some))
}

fn consistency(link: &Link, options: &CassandraOptions) -> Promise<Consistency> {
    let Some(replication) = &link.schema.replication else {
        return Promise::declared(Consistency::Eventual);
    };
    let repairs = link.schema.read_repair.as_deref().is_some_and(|r| r == "BLOCKING");
    let datacenter = options.datacenter.as_deref();
    Promise::checked(replication.promise(options.read, options.write, datacenter, repairs))
}

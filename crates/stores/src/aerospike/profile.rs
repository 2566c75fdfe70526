//! Builds the profile of a cluster from what its nodes say of the namespace.

use std::time::Duration;

use aerospike::ReadModeSc;
use kvdyno_core::store::{Capabilities, Consistency, Durability, Profile, Promise};

use super::namespace::Namespace;
use super::options::{AerospikeOptions, Reads};

/// A time to live is rounded up to whole seconds and ends with a second of the server's clock, so a
/// record lives up to 2 s longer than asked, and never less.
const TTL_PRECISION: Duration = Duration::from_secs(2);

/// Settings and figures of the nodes that are worth disclosing.
const SETTINGS: [&str; 11] = [
    "replication-factor",
    "effective_replication_factor",
    "strong-consistency",
    "storage-engine",
    "storage-engine.data-size",
    "storage-engine.filesize",
    "storage-engine.commit-to-device",
    "default-ttl",
    "nsup-period",
    "write-commit-level-override",
    "read-consistency-level-override",
];

/// Returns what the cluster promises. `nodes` is not empty.
pub(super) fn of(options: &AerospikeOptions, nodes: &[Namespace]) -> Profile {
    let all_known = nodes.iter().all(Namespace::is_known);
    let weakest = nodes.iter().map(Namespace::durability).min().unwrap_or(Durability::None);
    let mut builds: Vec<&str> = nodes.iter().filter_map(|node| node.build.as_deref()).collect();
    builds.sort_unstable();
    builds.dedup();
    let mut settings = options.settings();
    settings.push(("nodes".to_owned(), nodes.len().to_string()));
    for name in SETTINGS {
        let mut values: Vec<&str> = nodes.iter().filter_map(|node| node.get(name)).collect();
        values.sort_unstable();
        values.dedup();
        if !values.is_empty() {
            settings.push((name.to_owned(), values.join(" | ")));
        }
    }
    Profile {
        store: "aerospike".to_owned(),
        version: (!builds.is_empty()).then(|| builds.join(" and ")),
        capabilities: Capabilities {
            batch_get: true,
            batch_put: true,
            ttl: nodes.iter().all(Namespace::keeps_ttl),
            fields: true,
            may_apply_again: options.retry,
            ..Capabilities::default()
        },
        durability: if all_known { Promise::checked(weakest) } else { Promise::declared(weakest) },
        consistency: consistency(options, nodes, all_known),
        ttl_precision: TTL_PRECISION,
        timeout: options.timeout,
        settings,
    }
}

/// One node alone has one copy of each record, under a lock. Several nodes of a namespace without strong
/// consistency may each take themselves for a record's master while they do not see each other.
/// With it, reads are linearizable if they ask for that; else a master that is none any more may
/// answer with what it still has.
fn consistency(
    options: &AerospikeOptions,
    nodes: &[Namespace],
    told: bool,
) -> Promise<Consistency> {
    let strong = nodes.iter().all(Namespace::is_strong);
    let linearize = options.reads == Some(Reads::Strong(ReadModeSc::Linearize));
    let alone = nodes.len() == 1 && nodes[0].get("ns_cluster_size").is_none_or(|size| size == "1");
    let level = match (strong && linearize) || alone {
        true => Consistency::Linearizable,
        false => Consistency::Eventual,
    };
    if told { Promise::checked(level) } else { Promise::declared(level) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::url::StoreUrl;

    fn profile(url: &str, nodes: &[&str]) -> Profile {
        let options = AerospikeOptions::take(&mut StoreUrl::parse(url).unwrap()).unwrap();
        let nodes: Vec<Namespace> = nodes.iter().map(|text| Namespace::parse(text)).collect();
        of(&options, &nodes)
    }

    const FILE: &str = "ns_cluster_size=1;storage-engine=device;nsup-period=10;\
                        storage-engine.commit-to-device=true";
    const MEMORY: &str = "storage-engine=memory;nsup-period=0;strong-consistency=false";
    const STRONG: &str = "storage-engine=device;strong-consistency=true;nsup-period=10";

    #[test]
    fn the_weakest_node_counts() {
        let one = profile("aerospike://h/ns", &[FILE]);
        assert_eq!(one.durability, Promise::checked(Durability::PowerLoss));
        assert_eq!(one.consistency, Promise::checked(Consistency::Linearizable));
        assert!(one.capabilities.ttl && one.capabilities.fields && !one.capabilities.pipeline);
        let mixed = profile("aerospike://h/ns", &[FILE, MEMORY]);
        assert_eq!(mixed.durability, Promise::checked(Durability::None));
        assert_eq!(mixed.consistency, Promise::checked(Consistency::Eventual));
        assert!(!mixed.capabilities.ttl);
        let both = ("storage-engine".to_owned(), "device | memory".to_owned());
        assert!(mixed.settings.contains(&both), "{:?}", mixed.settings);
        let silent = profile("aerospike://h/ns", &[FILE, ""]);
        assert_eq!(silent.durability, Promise::declared(Durability::None));
    }

    #[test]
    fn strong_consistency_is_linearizable_only_if_reads_ask_for_it() {
        let level = |url: &str| profile(url, &[STRONG, STRONG]).consistency.level;
        assert_eq!(level("aerospike://h/ns"), Consistency::Eventual);
        assert_eq!(level("aerospike://h/ns?consistency=session"), Consistency::Eventual);
        let linearize = "aerospike://h/ns?consistency=linearize";
        assert_eq!(level(linearize), Consistency::Linearizable);
    }
}

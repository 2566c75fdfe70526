//! A Redis Cluster: primaries that share 16,384 slots, each with its replicas.

use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use crate::error::TestbedError;
use crate::kind::{Changes, TestbedKind};
use crate::process;
use crate::proof::Proof;
use crate::redis::{
    FULL, IO_THREADS, MEMORY, PERSISTENCE, REDIS, REWRITES, ask, configuration, exchange,
    is_linked_replica, launch, options, rewrite, role, version, work,
};
use crate::role::Role;
use crate::server::{Launch, Server};
use crate::settings::{Setting, TestbedSettings, Values};
use crate::site::{Served, Site};

/// Longest time until the nodes agree, on a machine that is fully loaded.
const PATIENCE: Duration = Duration::from_secs(120);

/// A cluster.
pub static KIND: TestbedKind = TestbedKind {
    name: "redis-cluster",
    summary: "a Redis Cluster of primaries with their replicas",
    nodes: 6,
    allowed: 3..=30,
    settings: &[
        PERSISTENCE,
        REWRITES,
        MEMORY,
        FULL,
        IO_THREADS,
        Setting {
            name: "replicas",
            meaning: "replicas of each primary; there must be three primaries at least",
            values: Values::Count(0, 5),
            default: "1",
        },
        Setting {
            name: "node-timeout",
            meaning: "time after which a node that says nothing is replaced (cluster-node-timeout)",
            values: Values::Duration,
            default: "1s",
        },
    ],
    software: &[&REDIS],
    deploy,
    proof: Proof { announced: Some(announced), exchange: exchange::of_slots },
    changes: Changes {
        whole: Some(whole),
        roles: Some(roles),
        add: Some(add),
        remove: Some(remove),
        rewrite: Some(rewrite),
        read_work: Some(work),
        ..Changes::NONE
    },
};

fn deploy(site: &mut Site) -> Result<Served, TestbedError> {
    let replicas = site.settings().count("replicas").unwrap_or(1);
    let nodes = site.settings().nodes();
    if u64::from(nodes) < 3 * (replicas + 1) {
        return Err(TestbedError::Node(format!(
            "a cluster has three primaries or more, each with {replicas} replicas: ask for \
             redis-cluster:{} or more, or for fewer `replicas`",
            3 * (replicas + 1)
        )));
    }
    let changed = cluster_options(site.settings());
    let mut hosts = Vec::new();
    for number in 1..=nodes {
        hosts.push(start(site, number, &changed)?.to_string());
    }
    site.serve("redis-server")?;
    site.step("form the cluster", |_| {
        let replicas = replicas.to_string();
        let mut words = vec!["--cluster", "create"];
        words.extend(hosts.iter().map(String::as_str));
        words.extend(["--cluster-replicas", &replicas, "--cluster-yes"]);
        cli(&words)
    })?;
    wait_for_all(site, usize::from(nodes))?;
    let address = site.nodes()[0].server.address();
    let url = format!("redis+cluster://{}", hosts.join(","));
    Ok(Served { url, version: version(address)?, configuration: configuration(address)?, changed })
}

/// Starts node `number` and returns its address.
fn start(
    site: &mut Site,
    number: u16,
    changed: &[(String, String)],
) -> Result<SocketAddr, TestbedError> {
    let program = site.software(&REDIS)?;
    let (address, bus) = (site.address(number, 6379)?, site.address(number, 16379)?);
    let name = format!("redis-{number}");
    let launch = node(&program, address, bus, &site.folder(&name)?, changed);
    site.start(&name, None, launch)?;
    Ok(address)
}

fn node(
    program: &Path,
    address: SocketAddr,
    bus: SocketAddr,
    folder: &Path,
    changed: &[(String, String)],
) -> Launch {
    launch(program, address, folder, changed)
        .arguments(["--cluster-port", &bus.port().to_string()])
        // Else nodes take the address that a connection happens to come from.
        .arguments(["--cluster-announce-ip", &address.ip().to_string()])
        .arguments(["--bind-source-addr", &address.ip().to_string()])
        // Redis takes 127.0.0.1 alone for this machine; `bind` keeps all others out as it is.
        .arguments(["--protected-mode", "no"])
        .arguments(["--cluster-config-file", "nodes.conf"])
}

/// Returns a request's settings as they are in `redis.conf`, beside addresses.
fn cluster_options(settings: &TestbedSettings) -> Vec<(String, String)> {
    let mut out = options(settings);
    out.push(("cluster-enabled".to_owned(), "yes".to_owned()));
    if let Some(timeout) = settings.duration("node-timeout") {
        let millis = timeout.as_millis().max(1).to_string();
        out.push(("cluster-node-timeout".to_owned(), millis));
    }
    out
}

fn cli(words: &[&str]) -> Result<String, TestbedError> {
    let program = process::look_up("redis-cli").ok_or_else(|| REDIS.missing("redis-cluster"))?;
    process::run(&program, words)
}

/// Returns true if the node sees `known` nodes and all slots served, and if it is a replica it follows its primary.
fn sees_all(server: &Server, known: usize) -> bool {
    let address = server.address();
    let Ok(told) = ask(address, &["CLUSTER", "INFO"]) else { return false };
    let field = |name: &str| told.lines().find_map(|line| line.trim().strip_prefix(name));
    let whole = field("cluster_state:") == Some("ok")
        && field("cluster_slots_ok:") == Some("16384")
        && field("cluster_known_nodes:") == Some(known.to_string().as_str());
    whole
        && match role(server) {
            Some(Role::Primary) => true,
            Some(_) => is_linked_replica(address),
            None => false,
        }
}

/// Returns the nodes that serve slots, each with its slots, as the node sees them. After a fail-over nodes may all see every
/// slot served and yet not by the same primaries; `redis-cli` then refuses to change the cluster.
fn owners(server: &Server) -> Option<Vec<String>> {
    let told = ask(server.address(), &["CLUSTER", "NODES"]).ok()?;
    let mut owners: Vec<String> = told.lines().filter_map(owner).collect();
    owners.sort_unstable();
    Some(owners)
}

/// Returns the identity and the slots of a line of `CLUSTER NODES`; none where the node serves no slots. Slots are its words
/// from the ninth on; those in brackets are on the move.
fn owner(line: &str) -> Option<String> {
    let mut words = line.split_whitespace();
    let id = words.next()?;
    let slots: Vec<&str> = words.skip(7).filter(|word| !word.starts_with('[')).collect();
    (!slots.is_empty()).then(|| format!("{id} {}", slots.join(" ")))
}

fn roles(site: &Site) -> Vec<Option<Role>> {
    site.nodes().iter().map(|node| role(&node.server)).collect()
}

/// Returns the addresses to which each node that is up sends clients.
fn announced(site: &Site) -> Result<Vec<Vec<SocketAddr>>, String> {
    let up = site.nodes().iter().filter(|node| !node.server.is_paused());
    let told: Vec<_> =
        up.filter_map(|node| exchange::of_cluster(node.server.address()).ok()).collect();
    if told.is_empty() { Err("no node tells of its cluster".to_owned()) } else { Ok(told) }
}

/// Checks that primaries serve slots, and replicas have what their primary has.
fn whole(site: &Site, up: &[usize]) -> Result<(), String> {
    let server = |place: &usize| &site.nodes()[*place].server;
    let role_of = |place: &usize| role(server(place));
    let primaries: Vec<usize> =
        up.iter().copied().filter(|place| role_of(place) == Some(Role::Primary)).collect();
    let serving = primaries.first().and_then(|first| owners(server(first))).unwrap_or_default();
    if primaries.len() != serving.len() {
        let (are, serve) = (primaries.len(), serving.len());
        return Err(format!("{are} nodes are primaries, and {serve} serve slots"));
    }
    let addresses: Vec<SocketAddr> = primaries.iter().map(|p| server(p).address()).collect();
    let replicas = up.iter().filter(|place| !primaries.contains(place));
    replicas.into_iter().try_for_each(|&place| exchange::replica_is_whole(site, place, &addresses))
}

/// Adds one primary, with its share of the slots.
fn add(site: &mut Site) -> Result<(), TestbedError> {
    let changed = cluster_options(site.settings());
    let taken = |number: u16| {
        let name = format!("redis-{number}");
        site.nodes().iter().any(|node| node.server.name() == name)
    };
    let number = (1..).find(|number| !taken(*number)).unwrap_or(1);
    wait_for_all(site, site.nodes().len())?;
    let address = start(site, number, &changed)?;
    site.serve("redis-server")?;
    let (new, old) = (address.to_string(), site.nodes()[0].server.address().to_string());
    let known = site.nodes().len();
    cli(&["--cluster", "add-node", &new, &old])?;
    wait_for_all(site, known)?;
    cli(&["--cluster", "rebalance", &old, "--cluster-use-empty-masters"])?;
    wait_for_all(site, known)
}

/// Moves a primary's slots to the others, then takes the node out.
fn remove(site: &mut Site, index: usize) -> Result<(), TestbedError> {
    wait_for_all(site, site.nodes().len())?;
    let leaving = site.nodes()[index].server.address();
    let others = || site.nodes().iter().enumerate().filter(|(at, _)| *at != index);
    let id = ask(leaving, &["CLUSTER", "MYID"])?.trim().to_owned();
    let Some((_, other)) = others().next() else {
        return Err(TestbedError::Node("the last node cannot leave".to_owned()));
    };
    let other = other.server.address();
    if role(&site.nodes()[index].server) == Some(Role::Primary) {
        let weight = format!("{id}=0");
        cli(&["--cluster", "rebalance", &other.to_string(), "--cluster-weight", &weight])?;
    }
    cli(&["--cluster", "del-node", &other.to_string(), &id])?;
    site.end_node(index);
    let known = site.nodes().len();
    wait_for_all(site, known)
}

/// Waits until every node sees `known` nodes, and all see the same ones serve the slots.
fn wait_for_all(site: &mut Site, known: usize) -> Result<(), TestbedError> {
    site.until("every node sees the whole cluster", PATIENCE, |site| {
        let mut views = site.nodes().iter().map(|node| owners(&node.server));
        let first = views.next().flatten();
        first.is_some()
            && views.all(|view| view == first)
            && site.nodes().iter().all(|node| sees_all(&node.server, known))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_those_that_serve_slots_are_owners() {
        let line = |flags: &str, slots: &str| {
            format!("07c37df 127.0.0.1:6379@16379,host {flags} - 0 1426 4 connected{slots}")
        };
        assert_eq!(owner(&line("master", " 0-5460 7")).as_deref(), Some("07c37df 0-5460 7"));
        assert_eq!(owner(&line("master", " 0-9 [9->-292f8b]")).as_deref(), Some("07c37df 0-9"));
        assert_eq!(owner(&line("master", "")), None);
        assert_eq!(owner(&line("slave", "")), None);
    }
}

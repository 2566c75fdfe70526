//! Runs `sim` as server processes: a small replicated store that speaks Redis' protocol, made to prove what kvdyno reports.
//! Kills, pauses and partitions act on real processes; its wrongs on purpose, and which node led when, are in its log of the
//! truth. It is a proof bench and a worked example, never a product. docs/TRUTH.md.

mod commands;
mod group;
mod log;
mod node;
mod state;
mod truth;

use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use crate::error::TestbedError;
use crate::kind::{Changes, TestbedKind};
use crate::proof::Proof;
use crate::redis::exchange::put_and_get;
use crate::role::Role;
use crate::server::{Launch, conversation};
use crate::settings::{Setting, Values};
use crate::site::{Served, Site};

pub use node::serve;

/// Name that `redis+sentinel://` has for the primary.
const NAME: &str = "sim";

/// Shortest silence of a primary that may count: a shorter one may only be a slow machine's.
const SHORTEST: Duration = Duration::from_millis(200);

/// A primary with its replicas, each of which could take over.
pub static KIND: TestbedKind = TestbedKind {
    name: "sim",
    summary: "a small replicated store that lies when it is told to, and logs the truth: to prove \
              what kvdyno finds",
    nodes: 3,
    allowed: 1..=5,
    settings: &[
        Setting {
            name: "ack",
            meaning: "a write is acknowledged before or after the replicas have it",
            values: Values::Choice(&["before", "after"]),
            default: "before",
        },
        Setting {
            name: "takeover",
            meaning: "how long after its primary's last word a replica takes over; at least 200ms",
            values: Values::Duration,
            default: "1s",
        },
        Setting {
            name: "log",
            meaning: "where writes are kept beside memory: a log on disk survives the process",
            values: Values::Choice(&["none", "disk"]),
            default: "none",
        },
        Setting {
            name: "lag",
            meaning: "how long after a write the primary passes it on to its replicas",
            values: Values::Duration,
            default: "0s",
        },
        Setting {
            name: "sync",
            meaning: "with `log=disk`: at each write of so many the log is synced before that is answered; \
                      0: never",
            values: Values::Count(0, 1_000_000),
            default: "0",
        },
        Setting {
            name: "sync-lag",
            meaning: "a lie: writes are answered first, and the log is synced so long after",
            values: Values::Duration,
            default: "0s",
        },
        Setting {
            name: "truth",
            meaning: "keep the truth in this folder, which no cut of power takes, and note each write there",
            values: Values::Text,
            default: "",
        },
        Setting {
            name: "starts",
            meaning: "with `truth`: a node starts so often, and then never again; 0: always",
            values: Values::Count(0, 1_000),
            default: "0",
        },
    ],
    software: &[],
    deploy,
    proof: Proof { announced: Some(announced), exchange },
    changes: Changes { roles: Some(roles), whole: Some(whole), ..Changes::NONE },
};

fn deploy(site: &mut Site) -> Result<Served, TestbedError> {
    let mut nodes = Vec::new();
    for number in 1..=site.settings().nodes() {
        nodes.push(site.address(number, 6379)?);
    }
    for (number, address) in nodes.iter().enumerate() {
        let name = format!("sim-{}", number + 1);
        let settings = settings(site, &name, number, &nodes)?;
        let text = serde_json::to_string_pretty(&settings).expect("plain data");
        let file = site.write(&name, "sim.json", &text)?;
        // The nodes' program is this one.
        let launch = Launch::new("/proc/self/exe", *address)
            .arguments(["testbed", "sim-node"])
            .arguments([file])
            .ready(|probe| probe.ask(b"PING\r\n").is_some_and(|pong| pong.starts_with(b"+PONG")));
        site.start(&name, None, launch)?;
    }
    site.serve("sim")?;
    site.until("a primary has all others as replicas", Duration::from_secs(30), |_| {
        let replicas = format!("connected_slaves:{}", nodes.len() - 1);
        nodes.iter().any(|node| info(*node).is_some_and(|told| told.contains(&replicas)))
            && nodes.iter().any(|node| role(*node) == Some(Role::Primary))
    })?;
    let hosts: Vec<String> = nodes.iter().map(ToString::to_string).collect();
    let names = ["ack", "takeover", "log", "lag", "sync", "sync-lag", "truth", "starts"];
    let told = names.map(|name| (name.to_owned(), site.settings().text(name).to_owned()));
    let differs = |(name, value): &&(String, String)| {
        KIND.settings.iter().any(|setting| setting.name == name && setting.default != value)
    };
    Ok(Served {
        url: format!("redis+sentinel://{}/{NAME}", hosts.join(",")),
        version: Some(env!("CARGO_PKG_VERSION").to_owned()),
        changed: told.iter().filter(differs).cloned().collect(),
        configuration: told.into(),
    })
}

fn settings(
    site: &Site,
    name: &str,
    number: usize,
    nodes: &[SocketAddr],
) -> Result<node::Settings, TestbedError> {
    let settings = site.settings();
    Ok(node::Settings {
        number,
        nodes: nodes.to_vec(),
        ack_after: settings.text("ack") == "after",
        takeover: settings.duration("takeover").unwrap_or_default().max(SHORTEST),
        lag: settings.duration("lag").unwrap_or_default(),
        disk: settings.text("log") == "disk",
        sync: settings.count("sync").unwrap_or_default(),
        sync_lag: settings.duration("sync-lag").unwrap_or_default(),
        truth: Some(settings.text("truth"))
            .filter(|folder| !folder.is_empty())
            .map(|folder| Path::new(folder).join(name)),
        starts: settings.count("starts").unwrap_or_default(),
        folder: site.folder(name)?,
    })
}

fn info(node: SocketAddr) -> Option<String> {
    conversation(node, b"INFO\r\n", b"\r\n\r\n")
}

fn role(node: SocketAddr) -> Option<Role> {
    let told = info(node)?;
    match told.lines().find_map(|line| line.strip_prefix("role:"))? {
        "master" => Some(Role::Primary),
        _ => Some(Role::Replica),
    }
}

/// Returns the addresses to which each node that is up sends clients: the primary.
fn announced(site: &Site) -> Result<Vec<Vec<SocketAddr>>, String> {
    // Each knows all others by the list that it was given, which a client asks for.
    Ok(vec![site.nodes().iter().map(|node| node.server.address()).collect()])
}

/// Puts and gets at the primary; a replica says that it is one.
fn exchange(site: &Site, place: usize, key: &str) -> Result<(), String> {
    let address = site.nodes()[place].server.address();
    match role(address) {
        Some(Role::Primary) => put_and_get(address, key),
        Some(_) => Ok(()),
        None => Err("it does not answer".to_owned()),
    }
}

/// Checks that one primary has all others that are up as its replicas.
fn whole(site: &Site, up: &[usize]) -> Result<(), String> {
    let address = |place: &usize| site.nodes()[*place].server.address();
    let primaries: Vec<SocketAddr> =
        up.iter().map(address).filter(|node| role(*node) == Some(Role::Primary)).collect();
    let [primary] = primaries.as_slice() else {
        return Err(format!("{} nodes are primaries", primaries.len()));
    };
    let wanted = format!("connected_slaves:{}\r", up.len() - 1);
    match info(*primary).is_some_and(|told| told.contains(&wanted)) {
        true => Ok(()),
        false => Err("a replica does not follow the primary".to_owned()),
    }
}

fn roles(site: &Site) -> Vec<Option<Role>> {
    site.nodes().iter().map(|node| role(node.server.address())).collect()
}

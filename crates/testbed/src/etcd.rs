//! An etcd cluster.

use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};

use crate::error::TestbedError;
use crate::http;
use crate::install::Software;
use crate::kind::{Changes, TestbedKind};
use crate::proof::Proof;
use crate::role::Role;
use crate::server::{Launch, Server};
use crate::settings::{Setting, Values};
use crate::site::{Served, Site};

/// The server.
pub static ETCD: Software = Software::of_debian("etcd", &["etcd-server"]);

/// One etcd or a cluster.
pub static KIND: TestbedKind = TestbedKind {
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
    proof: Proof { announced: Some(announced), exchange },
    changes: Changes {
        roles: Some(roles),
        add: Some(add),
        remove: Some(remove),
        whole: Some(whole),
        ..Changes::NONE
    },
};

fn deploy(site: &mut Site) -> Result<Served, TestbedError> {
    let program = site.software(&ETCD)?;
    let changed = options(site);
    let mut members = Vec::new();
    for number in 1..=site.settings().nodes() {
        let (client, peer) = (site.address(number, 2379)?, site.address(number, 2380)?);
        members.push((format!("etcd-{number}"), client, peer));
    }
    let cluster: Vec<String> =
        members.iter().map(|(name, _, peer)| format!("{name}=http://{peer}")).collect();
    let cluster = cluster.join(",");
    for (name, client, peer) in &members {
        let folder = site.folder(name)?;
        let launch = launch(&program, name, (*client, *peer), (&cluster, "new"), &folder, &changed);
        site.start(name, None, launch)?;
    }
    site.serve("etcd")?;
    let address = site.nodes()[0].server.address();
    let hosts: Vec<String> = members.iter().map(|(_, client, _)| client.to_string()).collect();
    let answer = http::request(address, "GET", "/version", "").map(|(_, body)| body);
    let answer: Value = serde_json::from_str(&answer.unwrap_or_default()).unwrap_or_default();
    Ok(Served {
        url: format!("etcd://{}", hosts.join(",")),
        version: answer["etcdserver"].as_str().map(str::to_owned),
        // etcd does not tell its configuration: what it was given is all there is.
        configuration: changed.clone(),
        changed,
    })
}

fn options(site: &Site) -> Vec<(String, String)> {
    let settings = site.settings();
    let mut out = Vec::new();
    let mut set = |name: &str, value: String| out.push((name.to_owned(), value));
    let election = settings.duration("election").unwrap_or(Duration::from_secs(1));
    if election != Duration::from_secs(1) {
        set("--election-timeout", election.as_millis().to_string());
        // etcd wants the one to be ten times the other, as they are by default.
        set("--heartbeat-interval", (election.as_millis() / 10).max(1).to_string());
    }
    if let Some(bytes) = settings.bytes("quota") {
        set("--quota-backend-bytes", bytes.to_string());
    }
    if let Some(time) = settings.duration("keep-history") {
        set("--auto-compaction-retention", format!("{}s", time.as_secs().max(1)));
    }
    out
}

fn launch(
    program: &Path,
    name: &str,
    (client, peer): (SocketAddr, SocketAddr),
    (cluster, state): (&str, &str),
    folder: &Path,
    options: &[(String, String)],
) -> Launch {
    let (client_url, peer_url) = (format!("http://{client}"), format!("http://{peer}"));
    Launch::new(program, client)
        .arguments(["--name", name, "--data-dir"])
        .arguments([folder.join("data")])
        .arguments(["--listen-client-urls", &client_url, "--advertise-client-urls", &client_url])
        .arguments(["--listen-peer-urls", &peer_url, "--initial-advertise-peer-urls", &peer_url])
        .arguments(["--initial-cluster", cluster, "--initial-cluster-state", state])
        .arguments(options.iter().flat_map(|(name, value)| [name, value]))
        // Healthy is a member that can write, and so has a leader.
        .ready(|probe| probe.http_status("/health") == Some(200))
}

/// Returns the addresses to which each member sends clients.
fn announced(site: &Site) -> Result<Vec<Vec<SocketAddr>>, String> {
    let answer = member_list(site)?;
    let urls = answer["members"].as_array().into_iter().flatten();
    let urls = urls.filter_map(|member| member["clientURLs"][0].as_str());
    let addresses = urls.filter_map(|url| url.strip_prefix("http://")?.parse().ok());
    Ok(vec![addresses.collect()])
}

/// Returns the members as the first one tells them that answers.
fn member_list(site: &Site) -> Result<Value, String> {
    let nodes = site.nodes().iter().filter(|node| !node.server.is_paused());
    let mut answer = nodes
        .filter_map(|node| post(node.server.address(), "/v3/cluster/member/list", &json!({})).ok());
    answer.next().ok_or("no member tells of the others".to_owned())
}

fn post(address: SocketAddr, path: &str, words: &Value) -> Result<Value, String> {
    match http::request(address, "POST", path, &words.to_string()) {
        Some((200, answer)) => Ok(serde_json::from_str(&answer).unwrap_or_default()),
        Some((status, answer)) => {
            Err(format!("{path} is answered with {status}: {}", answer.trim()))
        }
        None => Err(format!("{path} is not answered")),
    }
}

/// Carries out a put, a get and a delete at one member. A database without room is its state, not its start.
fn exchange(site: &Site, place: usize, _: &str) -> Result<(), String> {
    // In the base 64 that its gateway wants: `kvdyno-ready` and `ready`.
    const KEY: &str = "a3ZkeW5vLXJlYWR5";
    const VALUE: &str = "cmVhZHk=";
    let ask = |what: &str, words: Value| {
        post(site.nodes()[place].server.address(), &format!("/v3/kv/{what}"), &words)
    };
    match ask("put", json!({ "key": KEY, "value": VALUE })) {
        Err(said) if said.contains("database space exceeded") => return Ok(()),
        put => put?,
    };
    let got = ask("range", json!({ "key": KEY }))?;
    ask("deleterange", json!({ "key": KEY }))?;
    match got["kvs"][0]["value"].as_str() == Some(VALUE) {
        true => Ok(()),
        false => Err(format!("a get is answered with {got}")),
    }
}

/// Checks that no member is a learner, and each that is up has applied what the leader had.
fn whole(site: &Site, up: &[usize]) -> Result<(), String> {
    let answer = member_list(site)?;
    if let Some(learner) =
        answer["members"].as_array().into_iter().flatten().find(|m| m["isLearner"] == true)
    {
        return Err(format!("{} is a learner", learner["name"]));
    }
    let status = |place: usize| {
        let server = &site.nodes()[place].server;
        post(server.address(), "/v3/maintenance/status", &json!({}))
            .map_err(|said| format!("{}: {said}", server.name()))
    };
    let number = |answer: &Value, field: &str| {
        answer[field].as_str().and_then(|text| text.parse::<u64>().ok()).unwrap_or(0)
    };
    let mut before = Vec::new();
    for place in up {
        before.push(number(&status(*place)?, "raftIndex"));
    }
    let most = before.into_iter().max().unwrap_or(0);
    for place in up {
        let has = number(&status(*place)?, "raftAppliedIndex");
        if has < most {
            let name = site.nodes()[*place].server.name();
            return Err(format!("{name} is {} entries behind", most - has));
        }
    }
    Ok(())
}

/// Returns the role of each member, as each living one says: the leader is the primary.
fn roles(site: &Site) -> Vec<Option<Role>> {
    let role = |server: &Server| {
        let address = Some(server).filter(|server| !server.is_paused())?.address();
        let (_, answer) =
            http::request(address, "POST", "/v3/maintenance/status", &json!({}).to_string())?;
        let answer: Value = serde_json::from_str(&answer).ok()?;
        let (member, leader) =
            (answer["header"]["member_id"].as_str()?, answer["leader"].as_str()?);
        Some(if member == leader { Role::Primary } else { Role::Replica })
    };
    site.nodes().iter().map(|node| role(&node.server)).collect()
}

/// Longest time for a change of members, on a machine that is fully loaded.
const PATIENCE: Duration = Duration::from_secs(60);

/// A member as the cluster knows it: id, name, address for its peers.
struct Member {
    id: String,
    name: String,
    peer: String,
}

/// Has one more member join by the member API; the others go on as they are.
fn add(site: &mut Site) -> Result<(), TestbedError> {
    let number = |name: &str| name.rsplit_once('-').and_then(|(_, n)| n.parse::<u16>().ok());
    let last = site.nodes().iter().filter_map(|node| number(node.server.name())).max();
    let number = last.unwrap_or(0) + 1;
    let name = format!("etcd-{number}");
    let (client, peer) = (site.address(number, 2379)?, site.address(number, 2380)?);
    let answer = change(site, "add", &json!({ "peerURLs": [format!("http://{peer}")] }))?;
    // The new one is in the answer already, and has no name before it runs.
    let cluster = members(&answer).into_iter().map(|member| {
        let name = if member.name.is_empty() { name.clone() } else { member.name };
        format!("{name}={}", member.peer)
    });
    let cluster = cluster.collect::<Vec<_>>().join(",");
    let (program, options) = (site.software(&ETCD)?, options(site));
    let folder = site.folder(&name)?;
    let state = (cluster.as_str(), "existing");
    let launch = launch(&program, &name, (client, peer), state, &folder, &options);
    site.start(&name, None, launch)?;
    site.serve("etcd")
}

/// Has a member leave by the member API, and end.
fn remove(site: &mut Site, index: usize) -> Result<(), TestbedError> {
    let name = site.nodes()[index].server.name().to_owned();
    let answer = change(site, "list", &json!({}))?;
    let leaving = members(&answer).into_iter().find(|member| member.name == name);
    let Some(leaving) = leaving else {
        return Err(TestbedError::Node(format!("the cluster knows no member {name}")));
    };
    if site.nodes().len() == 1 {
        return Err(TestbedError::Node("the last member cannot leave".to_owned()));
    }
    change(site, "remove", &json!({ "ID": leaving.id }))?;
    site.end_node(index);
    Ok(())
}

/// Asks any member that answers to change the membership, again while the cluster is between leaders.
fn change(site: &Site, what: &str, words: &Value) -> Result<Value, TestbedError> {
    let path = format!("/v3/cluster/member/{what}");
    let begin = std::time::Instant::now();
    loop {
        let mut said = "no member answers".to_owned();
        for node in site.nodes().iter().filter(|node| !node.server.is_paused()) {
            match http::request(node.server.address(), "POST", &path, &words.to_string()) {
                Some((200, answer)) => return Ok(serde_json::from_str(&answer).unwrap_or_default()),
                // It was done after all, and only the answer was lost.
                Some((_, answer)) if what == "add" && answer.contains("already exists") => {
                    return change(site, "list", &json!({}));
                }
                Some((_, answer)) if what == "remove" && answer.contains("not found") => {
                    return Ok(Value::Null);
                }
                Some((_, answer)) => said = answer,
                None => {}
            }
        }
        if begin.elapsed() > PATIENCE {
            let problem = format!("it does not {what} a member: {}", said.trim());
            return Err(TestbedError::Refused { node: "etcd".to_owned(), problem });
        }
        std::thread::sleep(Duration::from_millis(200));
    }
}

fn members(answer: &Value) -> Vec<Member> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let member = |member: &Value| Member {
        id: text(&member["ID"]),
        name: text(&member["name"]),
        peer: text(&member["peerURLs"][0]),
    };
    answer["members"].as_array().into_iter().flatten().map(member).collect()
}

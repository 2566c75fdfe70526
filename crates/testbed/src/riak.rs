//! A Riak KV cluster, of a release that the user has. Each node runs in a copy of the release, as in
//! the vendor's own development clusters, with the libraries linked; one port mapper (epmd) of the
//! testbed's own serves them all, so that nothing stays behind.

mod exchange;
mod layout;

use std::fs;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::Value;

use self::layout::{configuration, lay_out, settings};
use crate::error::TestbedError;
use crate::http;
use crate::install::{Software, SoftwareSource};
use crate::kind::{Changes, TestbedKind};
use crate::proof::Proof;
use crate::role::Role;
use crate::server::{Launch, Server};
use crate::settings::{Setting, TestbedSettings, Values};
use crate::site::{Served, Site};

/// The server: `bin/riak` of a release, with the rest of the release around it.
pub static RIAK: Software = Software {
    name: "riak",
    version: "",
    source: SoftwareSource::Named {
        variable: "KVDYNO_RIAK",
        advice: "build or get a release of Riak KV 3 (`make rel`) and find `bin/riak` in it",
    },
};

/// One Riak or a cluster.
pub static KIND: TestbedKind = TestbedKind {
    name: "riak",
    summary: "a Riak KV cluster; each record has three replicas, on one node if there are no more",
    nodes: 1,
    allowed: 1..=9,
    settings: &[
        Setting {
            name: "backend",
            meaning: "what keeps records on each node (storage_backend)",
            values: Values::Choice(&["bitcask", "leveldb", "memory"]),
            default: "bitcask",
        },
        Setting {
            name: "sync",
            meaning: "every write is on the disk before it is answered (bitcask.sync.strategy, \
                      leveldb.sync_on_write)",
            values: Values::Choice(&["off", "on"]),
            default: "off",
        },
        Setting {
            name: "io",
            meaning: "how Bitcask writes its files (bitcask.io_mode)",
            values: Values::Choice(&["erlang", "nif"]),
            default: "erlang",
        },
        Setting {
            name: "ring",
            meaning: "partitions of the key space (ring_size)",
            // With fewer, two copies of a record may lie on one of three nodes.
            values: Values::Choice(&["16", "32", "64", "128", "256"]),
            default: "16",
        },
        Setting {
            name: "handoff",
            meaning: "time without a request after which a node hands over what it kept for another \
                      (vnode_inactivity_timeout; 60s unless set)",
            values: Values::Duration,
            default: "",
        },
    ],
    software: &[&RIAK],
    deploy,
    proof: Proof { announced: None, exchange: put_and_get },
    changes: Changes { whole: Some(whole), ..Changes::NONE },
};

/// Time for a step of a cluster of Erlang machines on a loaded computer.
const PATIENCE: Duration = Duration::from_secs(300);

/// A ping and its answer over protocol buffers: a frame of a length and a code.
const PING: &[u8] = &[0, 0, 0, 1, 1];
const PONG: &[u8] = &[0, 0, 0, 1, 2];

/// Erlang's port mapper among the nodes.
const MAPPER: &str = "epmd";

/// One node: its addresses and its names.
struct Member {
    /// The name of its folder and process.
    name: String,
    folder: PathBuf,
    ip: Ipv4Addr,
    protobuf: SocketAddr,
    http: SocketAddr,
    handoff: SocketAddr,
    manager: SocketAddr,
}

impl Member {
    /// Returns its name among Erlang's machines.
    fn erlang_name(&self) -> String {
        format!("{}@{}", self.name, self.ip)
    }
}

/// Runs the tool for clusters on a node. What it prints is no proof: it ends well when it prints an
/// error, and where it asks by `erl_call` its words go to the node's console.
fn admin(server: &Server, words: &[&str], mapper: u16) -> Result<String, TestbedError> {
    let mut command = Command::new(server.folder().join("bin/riak"));
    command.arg("admin").args(words);
    command.env("ERL_EPMD_PORT", mapper.to_string()).env("USE_NODETOOL", "true");
    server.run_beside(command)
}

fn is_mapper(server: &Server) -> bool {
    server.name().starts_with(MAPPER)
}

/// Returns the process of a member.
fn server<'a>(site: &'a Site, member: &Member) -> Option<&'a Server> {
    site.nodes().iter().map(|node| &node.server).find(|server| server.name() == member.name)
}

fn deploy(site: &mut Site) -> Result<Served, TestbedError> {
    let program = site.software(&RIAK)?;
    let release = release(&program)?;
    let settings = settings(site.settings())?;
    let members: Vec<Member> = (1..=site.settings().nodes())
        .map(|number| member(site, number))
        .collect::<Result<_, _>>()?;
    let mapper = start_mappers(site, &release, &members)?;
    site.step("lay out the nodes", |_| {
        members.iter().try_for_each(|member| {
            let made = lay_out(&release, member, &settings);
            made.map_err(TestbedError::system("lay out", &member.name))
        })
    })?;
    for member in &members {
        let launch = Launch::new(member.folder.join("bin/riak"), member.protobuf)
            .arguments(["foreground"])
            .environment("ERL_EPMD_PORT", mapper.to_string())
            .ready(|probe| probe.ask(PING).is_some_and(|answer| answer == PONG))
            .patience(PATIENCE);
        site.start(&member.name, Some(Role::Peer), launch)?;
    }
    site.serve("riak")?;
    site.until("serve records", PATIENCE, |_| {
        let serves = |member: &Member| exchange::put_and_get(member.protobuf, "start").is_ok();
        members.iter().all(serves)
    })?;
    if members.len() > 1 {
        join(site, &members, mapper)?;
    }
    let hosts: Vec<String> = members.iter().map(|member| member.protobuf.to_string()).collect();
    Ok(Served {
        url: format!("riak://{}/kvdyno{}", hosts.join(","), declared(site.settings())),
        version: exchange::version(members[0].protobuf),
        configuration: configuration(&members[0], &settings),
        changed: settings,
    })
}

/// Returns the query of the URL that tells what Riak does not tell its clients: what keeps the records.
fn declared(settings: &TestbedSettings) -> String {
    match (settings.text("backend"), settings.text("sync")) {
        ("bitcask", "off") => String::new(),
        (backend, "on") => format!("?backend={backend}-sync"),
        (backend, _) => format!("?backend={backend}"),
    }
}

/// Returns the folder of the release, above `bin`.
fn release(program: &Path) -> Result<PathBuf, TestbedError> {
    let absolute = fs::canonicalize(program).map_err(TestbedError::system("find", "riak"))?;
    let folder = absolute
        .parent()
        .and_then(Path::parent)
        .filter(|folder| ["lib", "releases", "etc"].iter().all(|part| folder.join(part).is_dir()));
    folder.map(Path::to_owned).ok_or_else(|| TestbedError::Refused {
        node: "riak".to_owned(),
        problem: format!(
            "{} is not in a release: name `bin/riak` of a folder with `lib`, `releases` and `etc`",
            program.display()
        ),
    })
}

fn member(site: &mut Site, number: u16) -> Result<Member, TestbedError> {
    let name = format!("riak-{number}");
    Ok(Member {
        folder: site.folder(&name)?,
        ip: site.ip(number),
        protobuf: site.address(number, 8087)?,
        http: site.address(number, 8098)?,
        handoff: site.address(number, 8099)?,
        manager: manager(site, number)?,
        name,
    })
}

/// Returns a place for the manager of replication, which takes an address only if an interface lists it.
fn manager(site: &mut Site, number: u16) -> Result<SocketAddr, TestbedError> {
    match site.network() {
        Some(_) => site.address(number, 9080),
        None => free_port("the cluster manager"),
    }
}

/// Returns an address on 127.0.0.1 whose port is free.
fn free_port(whose: &str) -> Result<SocketAddr, TestbedError> {
    let free = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).and_then(|free| free.local_addr());
    free.map_err(TestbedError::system("find a port for", whose))
}

/// Starts Erlang's port mapper, on a port that nobody has, for the nodes' addresses alone; where each node
/// has a network of its own, one in each. (It takes 127.0.0.1 as well, so the usual port could be another
/// testbed's.) Without it the first node would start one that outlives the testbed.
fn start_mappers(site: &mut Site, release: &Path, members: &[Member]) -> Result<u16, TestbedError> {
    let runtime = fs::read_dir(release).map_err(TestbedError::system("read", "the release"))?;
    let mut runtime = runtime.flatten().map(|entry| entry.path().join("bin/epmd"));
    let program = runtime.find(|path| path.exists()).ok_or_else(|| TestbedError::Refused {
        node: "riak".to_owned(),
        problem: format!("no erts-VERSION/bin/epmd in {}", release.display()),
    })?;
    let port = free_port(MAPPER)?.port();
    let apart = site.settings().text("network") == "own";
    for (place, served) in members.chunks(if apart { 1 } else { members.len() }).enumerate() {
        let addresses: Vec<String> = served.iter().map(|member| member.ip.to_string()).collect();
        let address = SocketAddr::new(IpAddr::V4(served[0].ip), port);
        let launch = Launch::new(&program, address).arguments([
            "-port",
            &port.to_string(),
            "-address",
            &addresses.join(","),
        ]);
        let name = if apart { format!("{MAPPER}-{}", place + 1) } else { MAPPER.to_owned() };
        site.start(&name, Some(Role::Observer), launch)?;
    }
    site.serve(MAPPER)?;
    Ok(port)
}

/// Makes one cluster of all nodes, and waits until each has its part of the key space. A node that was
/// just started may refuse, so what counts is what the nodes say of the ring afterwards.
fn join(site: &mut Site, members: &[Member], mapper: u16) -> Result<(), TestbedError> {
    let (first, count) = (&members[0], members.len());
    let know_all = || members.iter().all(|member| ring_members(member.http).len() == count);
    site.step("join the nodes", |site| {
        let begin = Instant::now();
        let mut said = String::new();
        loop {
            let known = ring_members(first.http);
            for member in members.iter().filter(|m| !known.contains(&m.erlang_name())) {
                let Some(server) = server(site, member) else { continue };
                let join = ["cluster", "join", &first.erlang_name()];
                said = words(admin(server, &join, mapper));
            }
            if let Some(server) = server(site, first) {
                admin(server, &["cluster", "plan"], mapper).ok();
                said += &words(admin(server, &["cluster", "commit"], mapper));
            }
            let tried = Instant::now();
            while !know_all() && tried.elapsed() < TRY_FOR {
                site.pause(LOOK)?;
            }
            if know_all() {
                return Ok(());
            }
            // One that has ended tells why.
            site.nodes_mut().iter_mut().try_for_each(|node| node.server.serves().map(drop))?;
            if begin.elapsed() > PATIENCE {
                let problem = format!("the nodes do not join: {}", said.trim());
                return Err(TestbedError::Refused { node: "riak".to_owned(), problem });
            }
        }
    })?;
    site.until("move the partitions", PATIENCE, |site| {
        let places: Vec<usize> = (0..site.nodes().len()).collect();
        whole(site, &places).is_ok()
    })
}

/// Time for one try to join.
const TRY_FOR: Duration = Duration::from_secs(15);
/// Pause between two looks at the ring.
const LOOK: Duration = Duration::from_millis(200);

/// Returns what a tool said, well or not, in one line.
fn words(said: Result<String, TestbedError>) -> String {
    let text = said.unwrap_or_else(|error| error.to_string());
    text.split_whitespace().collect::<Vec<_>>().join(" ") + " "
}

/// Returns a node's statistics, which it has once it keeps records.
fn statistics(http: SocketAddr) -> Option<Value> {
    let (status, body) = http::request(http, "GET", "/stats", "")?;
    if status == 200 { serde_json::from_str(&body).ok() } else { None }
}

/// Returns the nodes of the cluster, as one of them knows it.
fn ring_members(http: SocketAddr) -> Vec<String> {
    names(&statistics(http).unwrap_or_default()["ring_members"])
}

fn names(list: &Value) -> Vec<String> {
    let names = list.as_array().into_iter().flatten();
    names.filter_map(|name| name.as_str().map(str::to_owned)).collect()
}

fn put_and_get(site: &Site, place: usize, key: &str) -> Result<(), String> {
    exchange::put_and_get(site.nodes()[place].server.address(), key)
}

/// Checks that all nodes that are up are connected, and none hands partitions or writes over.
fn whole(site: &Site, up: &[usize]) -> Result<(), String> {
    let nodes = up.iter().map(|place| &site.nodes()[*place].server);
    let nodes: Vec<&Server> = nodes.filter(|server| !is_mapper(server)).collect();
    for server in &nodes {
        let name = server.name();
        let http = layout::http_of(server.folder()).ok_or("its address for HTTP is not known")?;
        let told = statistics(http).ok_or_else(|| format!("{name} has no statistics"))?;
        let connected = names(&told["connected_nodes"]);
        if let Some(other) = nodes.iter().find(|other| {
            let begin = format!("{}@", other.name());
            other.name() != name && !connected.iter().any(|known| known.starts_with(&begin))
        }) {
            return Err(format!("{name} is not connected to {}", other.name()));
        }
    }
    let mapper = site.nodes().iter().find(|node| is_mapper(&node.server));
    let (Some(mapper), Some(first)) = (mapper, nodes.first()) else {
        return Err("no node is up".to_owned());
    };
    let told = admin(first, &["transfers"], mapper.server.port());
    handed_over(&told.map_err(|error| error.to_string())?)
}

/// Reads what `transfers` prints: nodes that are down or have partitions for others, and transfers under way.
fn handed_over(told: &str) -> Result<(), String> {
    let waits = told.lines().find(|line| line.contains("waiting to handoff"));
    match waits {
        Some(line) => Err(line.trim().to_owned()),
        None if told.contains("No transfers active") => Ok(()),
        None => Err(format!("transfers are active: {}", told.lines().last().unwrap_or("").trim())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::TestbedRequest;

    #[test]
    fn a_program_outside_of_a_release_is_refused() {
        let elsewhere = tempfile::NamedTempFile::new().unwrap();
        let error = release(elsewhere.path()).unwrap_err().to_string();
        assert!(error.contains("is not in a release"), "{error}");
    }

    #[test]
    fn what_keeps_records_is_declared_in_the_url() {
        let of = |words: &str| declared(&TestbedRequest::parse(words).unwrap().settings);
        assert_eq!(of("riak:3"), "");
        assert_eq!(of("riak?backend=memory"), "?backend=memory");
        assert_eq!(of("riak?backend=leveldb"), "?backend=leveldb");
        assert_eq!(of("riak?sync=on"), "?backend=bitcask-sync");
        assert!(TestbedRequest::parse("riak?ring=8").is_err(), "two copies would share a node");
    }

    #[test]
    fn transfers_are_over_only_where_that_is_said() {
        let idle = "\nNo transfers active\n";
        assert_eq!(handed_over(idle), Ok(()));
        let waits = format!("'riak-2@127.40.1.2' waiting to handoff 5 partitions\n{idle}");
        let expected = "'riak-2@127.40.1.2' waiting to handoff 5 partitions";
        assert_eq!(handed_over(&waits), Err(expected.to_owned()));
        // Its words have gone to the node's console.
        assert!(handed_over("ok\n").is_err() && handed_over("").is_err());
    }
}

//! A Riak KV cluster, of a release that the user has. Each node runs in a copy of the release, as in
//! the vendor's own development clusters, with the libraries linked; one port mapper (epmd) of the
//! testbed's own serves them all, so that nothing stays behind.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use serde_json::Value;

use crate::error::TestbedError;
use crate::http;
use crate::install::{Software, Source};
use crate::kind::{Changes, Kind, Role, Setting, Values};
use crate::process;
use crate::request::Request;
use crate::server::Launch;
use crate::site::{Served, Site};

/// The server: `bin/riak` of a release, with the rest of the release around it.
pub static RIAK: Software = Software {
    name: "riak",
    version: "",
    source: Source::Named {
        variable: "KVDYNO_RIAK",
        advice: "build or get a release of Riak KV 3 (`make rel`) and find `bin/riak` in it",
    },
};

/// One Riak or a cluster.
pub static KIND: Kind = Kind {
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
            name: "ring",
            meaning: "partitions of the key space (ring_size)",
            values: Values::Choice(&["8", "16", "32", "64", "128", "256"]),
            default: "8",
        },
    ],
    software: &[&RIAK],
    deploy,
    changes: Changes::NONE,
};

/// Time for a step of a cluster of Erlang machines on a loaded computer.
const PATIENCE: Duration = Duration::from_secs(300);

/// A ping and its answer over protocol buffers: a frame of a length and a code.
const PING: &[u8] = &[0, 0, 0, 1, 1];
const PONG: &[u8] = &[0, 0, 0, 1, 2];

/// One node: where it is and what it is called.
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
    /// Its name among Erlang's machines.
    fn erlang_name(&self) -> String {
        format!("{}@{}", self.name, self.ip)
    }

    /// Runs the tool for clusters on this node.
    fn admin(&self, words: &[&str], mapper: u16) -> Result<String, TestbedError> {
        let own = self.folder.join("bin/riak-admin");
        let mut command = match own.exists() {
            true => Command::new(own),
            false => {
                let mut command = Command::new(self.folder.join("bin/riak"));
                command.arg("admin");
                command
            }
        };
        command.args(words).current_dir(&self.folder).env("ERL_EPMD_PORT", mapper.to_string());
        process::run_command(&mut command)
    }
}

fn deploy(site: &mut Site) -> Result<Served, TestbedError> {
    let program = site.software(&RIAK)?;
    let release = release(&program)?;
    let settings = settings(site.request())?;
    let members: Vec<Member> = (1..=site.request().nodes())
        .map(|number| member(site, number))
        .collect::<Result<_, _>>()?;
    let mapper = start_mapper(site, &release, &members)?;
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
    site.serve("riak and their epmd")?;
    site.until("serve records", PATIENCE, |_| members.iter().all(|member| serves(member.http)))?;
    if members.len() > 1 {
        join(site, &members, mapper)?;
    }
    let hosts: Vec<String> = members.iter().map(|member| member.protobuf.to_string()).collect();
    Ok(Served {
        url: format!("riak://{}/kvdyno", hosts.join(",")),
        version: statistics(members[0].http)
            .and_then(|stats| stats["riak_kv_version"].as_str().map(str::to_owned)),
        configuration: configuration(&members[0], &settings),
        changed: settings,
    })
}

/// The folder of the release, above `bin`.
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
        manager: site.address(number, 9080)?,
        name,
    })
}

/// Starts Erlang's port mapper, on a port that nobody has, for the nodes' addresses alone. (It takes
/// 127.0.0.1 as well, so the usual port could be another testbed's.) Without it the first node would
/// start one that outlives the testbed.
fn start_mapper(site: &mut Site, release: &Path, members: &[Member]) -> Result<u16, TestbedError> {
    let runtime = fs::read_dir(release).map_err(TestbedError::system("read", "the release"))?;
    let mut runtime = runtime.flatten().map(|entry| entry.path().join("bin/epmd"));
    let program = runtime.find(|path| path.exists()).ok_or_else(|| TestbedError::Refused {
        node: "riak".to_owned(),
        problem: format!("no erts-VERSION/bin/epmd in {}", release.display()),
    })?;
    let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).and_then(|free| free.local_addr());
    let port = port.map_err(TestbedError::system("find a port for", "epmd"))?.port();
    let addresses: Vec<String> = members.iter().map(|member| member.ip.to_string()).collect();
    let address = SocketAddr::new(IpAddr::V4(members[0].ip), port);
    let launch = Launch::new(program, address).arguments([
        "-port",
        &port.to_string(),
        "-address",
        &addresses.join(","),
    ]);
    site.start("epmd", Some(Role::Observer), launch)?;
    site.serve("epmd")?;
    Ok(port)
}

/// A node's own copy of the release: small things copied, libraries and runtime linked.
fn lay_out(release: &Path, member: &Member, settings: &[(String, String)]) -> io::Result<()> {
    for entry in fs::read_dir(release)? {
        let entry = entry?;
        let (name, from) = (entry.file_name(), entry.path());
        let to = member.folder.join(&name);
        if is_own(&name) || to.symlink_metadata().is_ok() {
            continue;
        }
        match name == "lib" || name.to_string_lossy().starts_with("erts-") {
            true => symlink(from, to)?,
            false => copy(&from, &to)?,
        }
    }
    let etc = member.folder.join("etc");
    fs::create_dir_all(&etc)?;
    let lines = configuration(member, settings);
    let lines = lines.iter().map(|(name, value)| format!("{name} = {value}\n"));
    fs::write(etc.join("riak.conf"), lines.collect::<String>())?;
    fs::write(etc.join("advanced.config"), advanced(member))
}

/// What each node makes for itself, and must not get from the release.
fn is_own(name: &OsString) -> bool {
    name == "data" || name == "log"
}

fn copy(from: &Path, to: &Path) -> io::Result<()> {
    if !from.is_dir() {
        return fs::copy(from, to).map(drop);
    }
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        copy(&entry.path(), &to.join(entry.file_name()))?;
    }
    Ok(())
}

/// What a request's settings mean in `riak.conf`, as (name, value).
fn settings(request: &Request) -> Result<Vec<(String, String)>, TestbedError> {
    let (backend, sync) = (request.text("backend"), request.text("sync") == "on");
    let mut out = vec![("ring_size", request.text("ring"))];
    if backend != "bitcask" {
        out.push(("storage_backend", backend));
    }
    match (backend, sync) {
        (_, false) => {}
        ("bitcask", true) => out.push(("bitcask.sync.strategy", "o_sync")),
        ("leveldb", true) => out.push(("leveldb.sync_on_write", "on")),
        _ => {
            return Err(TestbedError::Word {
                word: request.to_string(),
                problem: format!("backend `{backend}` has nothing to write to a disk"),
                advice: "leave `sync` out".to_owned(),
            });
        }
    }
    Ok(out.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect())
}

/// `riak.conf` of a node, as (name, value) (vendor's documentation, "Configuration reference").
fn configuration(member: &Member, settings: &[(String, String)]) -> Vec<(String, String)> {
    let folder = member.folder.display();
    let own = [
        ("nodename", member.erlang_name()),
        ("distributed_cookie", "kvdyno".to_owned()),
        ("listener.protobuf.internal", member.protobuf.to_string()),
        ("listener.http.internal", member.http.to_string()),
        ("handoff.ip", member.handoff.ip().to_string()),
        ("handoff.port", member.handoff.port().to_string()),
        ("platform_data_dir", format!("{folder}/data")),
        ("platform_log_dir", format!("{folder}/log")),
    ];
    let own = own.into_iter().map(|(name, value)| (name.to_owned(), value));
    own.chain(settings.iter().cloned()).collect()
}

/// `advanced.config` of a node: what `riak.conf` has no names for. Erlang's distribution and the
/// manager of replication between clusters would take addresses that other nodes want.
fn advanced(member: &Member) -> String {
    let [a, b, c, d] = member.ip.octets();
    let (manager, folder) = (member.manager, member.folder.display());
    format!(
        "[{{kernel, [{{inet_dist_use_interface, {{{a},{b},{c},{d}}}}}]}},\n \
         {{riak_core, [{{cluster_mgr, {{\"{}\", {}}}}}]}},\n \
         {{riak_repl, [{{data_root, \"{folder}/data/riak_repl\"}}]}}].\n",
        manager.ip(),
        manager.port(),
    )
}

/// Makes one cluster of all nodes, and waits until each has its part of the key space.
fn join(site: &mut Site, members: &[Member], mapper: u16) -> Result<(), TestbedError> {
    let first = &members[0];
    site.step("join the nodes", |_| {
        for member in &members[1..] {
            member.admin(&["cluster", "join", &first.erlang_name()], mapper)?;
        }
        first.admin(&["cluster", "plan"], mapper)?;
        first.admin(&["cluster", "commit"], mapper)
    })?;
    let count = members.len();
    site.until("every node knows all", PATIENCE, |_| {
        members.iter().all(|member| ring_members(member.http) == Some(count))
    })?;
    site.until("move the partitions", PATIENCE, |_| {
        let told = first.admin(&["transfers"], mapper).unwrap_or_default();
        told.contains("No transfers active")
    })
}

/// A node's statistics, which it has once it keeps records.
fn statistics(http: SocketAddr) -> Option<Value> {
    let (status, body) = http::request(http, "GET", "/stats", "")?;
    if status == 200 { serde_json::from_str(&body).ok() } else { None }
}

/// How many nodes the cluster has, as one of them knows it.
fn ring_members(http: SocketAddr) -> Option<usize> {
    statistics(http)?["ring_members"].as_array().map(Vec::len)
}

/// Whether a node answers a get; of a record that is not there with 404.
fn serves(http: SocketAddr) -> bool {
    let asked = http::request(http, "GET", "/buckets/kvdyno/keys/is-not-there", "");
    asked.is_some_and(|(status, _)| status == 404)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(folder: &Path) -> Member {
        let at = |port| SocketAddr::from(([127, 40, 1, 2], port));
        Member {
            name: "riak-2".to_owned(),
            folder: folder.to_owned(),
            ip: Ipv4Addr::new(127, 40, 1, 2),
            protobuf: at(8087),
            http: at(8098),
            handoff: at(8099),
            manager: at(9080),
        }
    }

    fn of(words: &str) -> Result<Vec<(String, String)>, TestbedError> {
        settings(&Request::parse(words).unwrap())
    }

    #[test]
    fn a_node_gets_a_copy_of_the_release_with_its_own_configuration() {
        let release = tempfile::tempdir().unwrap();
        let write = |path: &str| {
            let path = release.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "x").unwrap();
        };
        for path in [
            "bin/riak",
            "etc/riak.conf",
            "lib/kv.beam",
            "erts-12/bin/epmd",
            "releases/3/a",
            "data/d",
        ] {
            write(path);
        }
        assert!(super::release(&release.path().join("bin/riak")).is_ok());
        let elsewhere = tempfile::NamedTempFile::new().unwrap();
        let error = super::release(elsewhere.path()).unwrap_err().to_string();
        assert!(error.contains("is not in a release"), "{error}");
        let folder = tempfile::tempdir().unwrap();
        let member = node(folder.path());
        // Twice: a kept folder is used again.
        for _ in 0..2 {
            lay_out(release.path(), &member, &of("riak:3").unwrap()).unwrap();
        }
        let at = |path: &str| folder.path().join(path);
        assert!(at("lib").is_symlink() && at("erts-12").is_symlink());
        assert!(
            at("bin/riak").is_file() && !at("bin").is_symlink() && at("releases/3/a").is_file()
        );
        assert!(!at("data").exists());
        let written = fs::read_to_string(at("etc/riak.conf")).unwrap();
        let folder = folder.path().display();
        let expected = format!(
            "nodename = riak-2@127.40.1.2\n\
             distributed_cookie = kvdyno\n\
             listener.protobuf.internal = 127.40.1.2:8087\n\
             listener.http.internal = 127.40.1.2:8098\n\
             handoff.ip = 127.40.1.2\n\
             handoff.port = 8099\n\
             platform_data_dir = {folder}/data\n\
             platform_log_dir = {folder}/log\n\
             ring_size = 8\n"
        );
        assert_eq!(written, expected);
        let expected = format!(
            "[{{kernel, [{{inet_dist_use_interface, {{127,40,1,2}}}}]}},\n \
             {{riak_core, [{{cluster_mgr, {{\"127.40.1.2\", 9080}}}}]}},\n \
             {{riak_repl, [{{data_root, \"{folder}/data/riak_repl\"}}]}}].\n"
        );
        assert_eq!(fs::read_to_string(at("etc/advanced.config")).unwrap(), expected);
    }

    #[test]
    fn settings_become_those_of_riak_conf() {
        let pairs = |words: &str| -> Vec<String> {
            let found = of(words).unwrap().into_iter();
            found.map(|(name, value)| format!("{name}={value}")).collect()
        };
        assert_eq!(pairs("riak"), ["ring_size=8"]);
        assert_eq!(pairs("riak?sync=on&ring=64"), ["ring_size=64", "bitcask.sync.strategy=o_sync"]);
        let expected = ["ring_size=8", "storage_backend=leveldb", "leveldb.sync_on_write=on"];
        assert_eq!(pairs("riak?backend=leveldb&sync=on"), expected);
        let error = of("riak?backend=memory&sync=on").unwrap_err().to_string();
        assert!(error.contains("leave `sync` out"), "{error}");
    }
}

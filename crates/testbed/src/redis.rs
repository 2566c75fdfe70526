//! Redis servers: one, or several that know nothing of each other.

pub(crate) mod exchange;
mod journal;

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

pub(crate) use journal::work;

use crate::error::TestbedError;
use crate::install::Software;
use crate::kind::{Changes, TestbedKind};
use crate::process;
use crate::proof::Proof;
use crate::role::Role;
use crate::server::{Launch, Server, first_answer};
use crate::settings::{Setting, TestbedSettings, Values};
use crate::site::{Served, Site};

/// The server. Its package brings `redis-cli`, too.
pub static REDIS: Software = Software::of_debian("redis-server", &["redis-server", "redis-tools"]);

/// Setting of persistence: whether data are written to disk, and when.
pub const PERSISTENCE: Setting = Setting {
    name: "persistence",
    meaning: "append-only file synced every second or before each answer, snapshots as Redis's \
              own default makes them, or nothing on disk",
    values: Values::Choice(&["none", "aof-everysec", "aof-always", "rdb"]),
    default: "none",
};

/// Setting of rewrites of the append-only file.
pub const REWRITES: Setting = Setting {
    name: "rewrites",
    meaning: "whether the append-only file is rewritten when it has doubled, or never by itself",
    values: Values::Choice(&["auto", "held-off"]),
    default: "auto",
};

/// Setting of the memory that a server may take for data.
pub const MEMORY: Setting = Setting {
    name: "memory",
    meaning: "most memory for data of each server (maxmemory)",
    values: Values::Bytes,
    default: "",
};

/// Setting of what a server does without memory.
pub const FULL: Setting = Setting {
    name: "full",
    meaning: "what happens when memory is full (maxmemory-policy)",
    values: Values::Choice(&["noeviction", "allkeys-lru", "allkeys-lfu", "allkeys-random"]),
    default: "noeviction",
};

/// Setting of a server's threads beside its main one.
pub const IO_THREADS: Setting = Setting {
    name: "io-threads",
    meaning: "threads that read and write connections",
    values: Values::Count(1, 128),
    default: "1",
};

/// Settings of a server of the Redis family.
pub static SETTINGS: &[Setting] = &[PERSISTENCE, REWRITES, MEMORY, FULL, IO_THREADS];

/// Proof of servers of the Redis family that know nothing of each other.
pub const ALONE: Proof = Proof { announced: None, exchange: exchange::alone };

/// One Redis.
pub static KIND: TestbedKind = TestbedKind {
    name: "redis",
    summary: "one Redis server",
    nodes: 1,
    allowed: 1..=1,
    settings: SETTINGS,
    software: &[&REDIS],
    deploy,
    proof: ALONE,
    changes: Changes { rewrite: Some(rewrite), ..Changes::NONE },
};

/// Several Redis servers, among which the client divides the keys.
pub static SHARDED: TestbedKind = TestbedKind {
    name: "redis-sharded",
    summary: "Redis servers on sequential ports that know nothing of each other; the client divides \
              the keys among them",
    nodes: 4,
    allowed: 1..=32,
    settings: SETTINGS,
    software: &[&REDIS],
    deploy,
    proof: ALONE,
    changes: Changes { rewrite: Some(rewrite), add: Some(add), ..Changes::NONE },
};

fn deploy(site: &mut Site) -> Result<Served, TestbedError> {
    let changed = options(site.settings());
    let mut hosts = Vec::new();
    for number in 1..=site.settings().nodes() {
        hosts.push(start(site, number, &changed)?.to_string());
    }
    site.serve("redis-server")?;
    let scheme = if site.settings().kind() == KIND.name { "redis" } else { "redis+sharded" };
    let url = format!("{scheme}://{}", hosts.join(","));
    let address = site.nodes()[0].server.address();
    Ok(Served { url, version: version(address)?, configuration: configuration(address)?, changed })
}

/// Starts server `number` and returns its address.
fn start(
    site: &mut Site,
    number: u16,
    changed: &[(String, String)],
) -> Result<SocketAddr, TestbedError> {
    let program = site.software(&REDIS)?;
    let address = site.side_by_side(number, 6379)?;
    let name = format!("redis-{number}");
    let launch = launch(&program, address, &site.folder(&name)?, changed);
    site.start(&name, Some(Role::Peer), launch)?;
    Ok(address)
}

/// Adds one server, which the others hear nothing of: what it gets is for the client to decide.
fn add(site: &mut Site) -> Result<(), TestbedError> {
    let changed = options(site.settings());
    let number = site.nodes().len() as u16 + 1;
    start(site, number, &changed)?;
    site.serve("redis-server")
}

/// Returns a request's settings as they are in `redis.conf`, as (name, value); only those that differ from the server's
/// default.
#[must_use]
pub fn options(settings: &TestbedSettings) -> Vec<(String, String)> {
    let mut out = Vec::new();
    let mut set = |name: &str, value: &str| out.push((name.to_owned(), value.to_owned()));
    let persistence = settings.text("persistence");
    if persistence != "rdb" {
        set("save", "");
    }
    if let Some(sync) = persistence.strip_prefix("aof-") {
        set("appendonly", "yes");
        if sync == "always" {
            set("appendfsync", sync);
        }
        if settings.text("rewrites") == "held-off" {
            set("auto-aof-rewrite-percentage", "0");
        }
    }
    if let Some(bytes) = settings.bytes("memory") {
        set("maxmemory", &bytes.to_string());
    }
    if settings.text("full") != "noeviction" {
        set("maxmemory-policy", settings.text("full"));
    }
    if settings.text("io-threads") != "1" {
        set("io-threads", settings.text("io-threads"));
    }
    out
}

/// Prepares a server of the Redis family at `address` with its data in `folder`.
#[must_use]
pub fn launch(
    program: &Path,
    address: SocketAddr,
    folder: &Path,
    options: &[(String, String)],
) -> Launch {
    let mut arguments: Vec<OsString> = Vec::new();
    let mut set =
        |name: &str, value: OsString| arguments.extend([format!("--{name}").into(), value]);
    set("bind", address.ip().to_string().into());
    set("port", address.port().to_string().into());
    set("dir", folder.into());
    if !address.ip().is_loopback() {
        // Only who is in the testbed's own network can come.
        set("protected-mode", "no".into());
    }
    for (name, value) in options {
        set(name, value.into());
    }
    in_utc(Launch::new(program, address))
        .arguments(arguments)
        // Not while it is loading: then it answers with an error.
        .ready(|probe| probe.ask(b"PING\r\n").is_some_and(|answer| answer.starts_with(b"+PONG")))
        .patience(Duration::from_secs(60))
}

/// Sets the times in its log to UTC, as [`work`] reads them.
pub(crate) fn in_utc(launch: Launch) -> Launch {
    launch.environment("TZ", "UTC")
}

/// Returns what `redis-cli` prints for a command.
///
/// # Errors
/// [`TestbedError::Refused`] with its words if it fails.
pub fn ask(address: SocketAddr, words: &[&str]) -> Result<String, TestbedError> {
    let program = process::look_up("redis-cli").ok_or_else(|| REDIS.missing("redis"))?;
    let (ip, port) = (address.ip().to_string(), address.port().to_string());
    process::run(&program, ["-h", &ip, "-p", &port].iter().chain(words))
}

/// Has nodes rewrite their append-only files, all from the same moment on, and waits until that is over.
///
/// # Errors
/// See [`ask`]; [`TestbedError::Refused`] if one ends badly or takes over ten minutes.
pub fn rewrite(site: &Site, nodes: &[usize]) -> Result<(), TestbedError> {
    const PATIENCE: Duration = Duration::from_secs(600);
    let addresses = || nodes.iter().map(|index| site.nodes()[*index].server.address());
    let begin = std::time::Instant::now();
    addresses().try_for_each(|address| ask(address, &["BGREWRITEAOF"]).map(drop))?;
    addresses().try_for_each(|address| {
        let patient = || begin.elapsed() < PATIENCE;
        rewritten(address, patient)
    })
}

/// Waits until a server has rewritten its append-only file.
fn rewritten(address: SocketAddr, patient: impl Fn() -> bool) -> Result<(), TestbedError> {
    let under_way = |told: &str| {
        ["aof_rewrite_in_progress:1", "aof_rewrite_scheduled:1"].iter().any(|w| told.contains(w))
    };
    let mut told = ask(address, &["INFO", "persistence"])?;
    while under_way(&told) && patient() {
        std::thread::sleep(Duration::from_millis(20));
        told = ask(address, &["INFO", "persistence"])?;
    }
    if !under_way(&told) && told.contains("aof_last_bgrewrite_status:ok") {
        return Ok(());
    }
    Err(TestbedError::Node(format!("{address} did not rewrite its append-only file")))
}

/// Returns the version that the server names.
///
/// # Errors
/// See [`ask`].
pub fn version(address: SocketAddr) -> Result<Option<String>, TestbedError> {
    let told = ask(address, &["INFO", "server"])?;
    let named = |field: &str| {
        let version = told.lines().find_map(|line| line.strip_prefix(field));
        version.map(|version| version.trim().to_owned())
    };
    // Valkey names a version of Redis too, which it is compatible with.
    Ok(named("valkey_version:").or_else(|| named("redis_version:")))
}

/// Returns the role of a server by its own account; `None` if it does not tell at once, as one that is paused.
#[must_use]
pub fn role(server: &Server) -> Option<Role> {
    if server.is_paused() {
        return None;
    }
    let answer = first_answer(server.address(), b"ROLE\r\n", Duration::from_secs(2))?;
    // An array whose first element is the word.
    match String::from_utf8_lossy(&answer).split("\r\n").nth(2)? {
        "master" => Some(Role::Primary),
        "slave" => Some(Role::Replica),
        _ => None,
    }
}

/// Returns true for a replica that has all that its primary has, and gets the rest as it comes.
#[must_use]
pub fn is_linked_replica(address: SocketAddr) -> bool {
    ask(address, &["INFO", "replication"]).is_ok_and(|told| told.contains("master_link_status:up"))
}

/// Returns the whole configuration as the server has it.
///
/// # Errors
/// See [`ask`].
pub fn configuration(address: SocketAddr) -> Result<Vec<(String, String)>, TestbedError> {
    let told = ask(address, &["CONFIG", "GET", "*"])?;
    let lines: Vec<&str> = told.lines().collect();
    let pairs = lines.chunks_exact(2).map(|pair| (pair[0].to_owned(), pair[1].to_owned()));
    let mut pairs: Vec<(String, String)> = pairs.collect();
    pairs.sort();
    Ok(pairs)
}

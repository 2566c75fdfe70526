//! Memcached servers: one, or several among which the client divides the keys.

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::Path;

use crate::error::TestbedError;
use crate::install::Software;
use crate::kind::{Changes, TestbedKind};
use crate::proof::Proof;
use crate::role::Role;
use crate::server::{Launch, conversation};
use crate::settings::{Setting, TestbedSettings, Values};
use crate::site::{Served, Site};

/// The server.
pub static MEMCACHED: Software = Software::of_debian("memcached", &["memcached"]);

/// One Memcached or several.
pub static KIND: TestbedKind = TestbedKind {
    name: "memcached",
    summary: "Memcached servers; with several, the client divides the keys among them",
    nodes: 1,
    allowed: 1..=32,
    settings: &[
        Setting {
            name: "memory",
            meaning: "memory for records of each server, a whole number of MiB (-m)",
            values: Values::Bytes,
            default: "64MiB",
        },
        Setting {
            name: "full",
            meaning: "what happens when memory is full: old records go, or new ones are refused (-M)",
            values: Values::Choice(&["evict", "refuse"]),
            default: "evict",
        },
        Setting {
            name: "threads",
            meaning: "worker threads of each server (-t)",
            values: Values::Count(1, 128),
            default: "4",
        },
    ],
    software: &[&MEMCACHED],
    deploy,
    proof: Proof { announced: None, exchange },
    changes: Changes::NONE,
};

fn deploy(site: &mut Site) -> Result<Served, TestbedError> {
    let program = site.software(&MEMCACHED)?;
    let changed = options(site.settings());
    let mut hosts = Vec::new();
    for number in 1..=site.settings().nodes() {
        let address = site.side_by_side(number, 11211)?;
        let launch = launch(&program, address, &changed);
        site.start(&format!("memcached-{number}"), Some(Role::Peer), launch)?;
        hosts.push(address.to_string());
    }
    site.serve("memcached")?;
    let address = site.nodes()[0].server.address();
    let version = conversation(address, b"version\r\n", b"\r\n").unwrap_or_default();
    Ok(Served {
        url: format!("memcached://{}", hosts.join(",")),
        version: version.trim().strip_prefix("VERSION ").map(str::to_owned),
        configuration: configuration(address),
        changed,
    })
}

/// Returns a request's settings as they are on the command line, as (option, value); only those that differ from the
/// server's default.
fn options(settings: &TestbedSettings) -> Vec<(String, String)> {
    let mut out = Vec::new();
    let mut set = |name: &str, value: &str| out.push((name.to_owned(), value.to_owned()));
    if let Some(bytes) = settings.bytes("memory").filter(|bytes| *bytes != 64 << 20) {
        set("-m", &bytes.div_ceil(1 << 20).to_string());
    }
    if settings.text("full") == "refuse" {
        set("-M", "");
    }
    if settings.text("threads") != "4" {
        set("-t", settings.text("threads"));
    }
    out
}

/// Prepares a server at `address`.
fn launch(program: &Path, address: SocketAddr, options: &[(String, String)]) -> Launch {
    let mut arguments: Vec<OsString> = Vec::new();
    // Memcached refuses to run as root unless it is told to. The effective user is what counts.
    if rustix::process::geteuid().is_root() {
        arguments.extend(["-u".into(), "root".into()]);
    }
    let (ip, port) = (address.ip().to_string(), address.port().to_string());
    arguments.extend(["-l".into(), ip.into(), "-p".into(), port.into(), "-U".into(), "0".into()]);
    for (name, value) in options {
        arguments.push(name.into());
        if !value.is_empty() {
            arguments.push(value.into());
        }
    }
    // One that asks for a password answers with an error and is up.
    Launch::new(program, address)
        .arguments(arguments)
        .ready(|probe| probe.ask(b"version\r\n").is_some())
}

/// Carries out a put, a get and a delete of one key by Memcached's text protocol. A server without room has answered as well
/// as it can.
pub(crate) fn exchange(site: &Site, place: usize, key: &str) -> Result<(), String> {
    let address = site.nodes()[place].server.address();
    let ask = |request: String, end: &[u8]| {
        conversation(address, request.as_bytes(), end).ok_or("it does not answer".to_owned())
    };
    let put = ask(format!("set {key} 0 60 5\r\nready\r\n"), b"\r\n")?;
    if put.starts_with("SERVER_ERROR out of memory") {
        return Ok(());
    }
    let got = ask(format!("get {key}\r\n"), b"END\r\n")?;
    ask(format!("delete {key}\r\n"), b"\r\n")?;
    match got.contains("\r\nready\r\n") {
        true => Ok(()),
        false => {
            Err(format!("a put is answered with `{}` and a get with `{}`", put.trim(), got.trim()))
        }
    }
}

/// Reads `stats settings`: the whole configuration as the server has it.
fn configuration(address: SocketAddr) -> Vec<(String, String)> {
    let told = conversation(address, b"stats settings\r\n", b"END\r\n").unwrap_or_default();
    let lines = told.lines().filter_map(|line| line.strip_prefix("STAT "));
    let pairs = lines.filter_map(|line| line.split_once(' '));
    pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}

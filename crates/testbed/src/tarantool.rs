//! Tarantool servers: one, or a primary that replicas follow. Nothing takes over for a primary that is gone: Tarantool 2.6 has
//! no elections.

mod iproto;

use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use crate::error::TestbedError;
use crate::install::Software;
use crate::kind::{Changes, TestbedKind};
use crate::proof::Proof;
use crate::role::Role;
use crate::server::Launch;
use crate::settings::{Setting, TestbedSettings, Values};
use crate::site::{Served, Site};

/// The server.
pub static TARANTOOL: Software = Software::of_debian("tarantool", &["tarantool"]);

/// One Tarantool or several.
pub static KIND: TestbedKind = TestbedKind {
    name: "tarantool",
    summary: "Tarantool servers: one, or a primary that replicas follow asynchronously; nothing takes over for the primary",
    nodes: 1,
    allowed: 1..=9,
    settings: &[
        Setting {
            name: "wal",
            meaning: "what of a write is on its way to the disk before it is acknowledged (wal_mode): nothing is ever, the \
                      system has it, or it is synced",
            values: Values::Choice(&["write", "fsync", "none"]),
            default: "write",
        },
        Setting {
            name: "recovery",
            meaning: "what a server does with a log whose end makes no sense: it does not start, or it leaves that end out \
                      (force_recovery)",
            values: Values::Choice(&["strict", "force"]),
            default: "strict",
        },
        Setting {
            name: "engine",
            meaning: "engine of the space: all in memory, or a tree on the disk",
            values: Values::Choice(&["memtx", "vinyl"]),
            default: "memtx",
        },
        Setting {
            name: "memory",
            meaning: "memory for the records of memtx on each server (memtx_memory)",
            values: Values::Bytes,
            default: "",
        },
    ],
    software: &[&TARANTOOL],
    deploy,
    proof: Proof { announced: None, exchange },
    changes: Changes { roles: Some(roles), whole: Some(whole), ..Changes::NONE },
};

/// Time for replicas to join, on a machine that is fully loaded.
const PATIENCE: Duration = Duration::from_secs(90);

/// Script of a server, after the line with its settings. Each finds by itself who begins: a server that takes writes.
const SCRIPT: &str = "\
box.once('kvdyno', function()
    box.schema.user.create('replicator', {password = 'replicator'})
    box.schema.user.grant('replicator', 'replication')
    box.schema.user.grant('guest', 'read,write,execute,create,alter,drop', 'universe')
    local space = box.schema.space.create('kvdyno', {engine = ENGINE})
    space:create_index('primary', {parts = {1, 'string'}})
end)
";

fn deploy(site: &mut Site) -> Result<Served, TestbedError> {
    let program = site.software(&TARANTOOL)?;
    let settings = site.settings();
    let nodes = settings.nodes();
    if nodes > 1 && settings.text("wal") == "none" {
        let advice = "write wal=write or wal=fsync, or one node";
        return Err(settings.wrong("replicas follow the log".to_owned(), advice.to_owned()));
    }
    let mut servers = Vec::new();
    for number in 1..=nodes {
        servers.push(site.address(number, 3301)?);
    }
    for (number, server) in (1..).zip(&servers) {
        let name = format!("tarantool-{number}");
        let folder = site.folder(&name)?;
        let text = script(number, &servers, &folder, site.settings());
        let file = site.write(&name, "server.lua", &text)?;
        let launch =
            Launch::new(&program, *server).arguments([file]).ready(serves).patience(PATIENCE);
        site.start(&name, None, launch)?;
    }
    site.serve("tarantool")?;
    let hosts: Vec<String> = servers.iter().map(ToString::to_string).collect();
    const SETTINGS: &str = "local out = {} for name, value in pairs(box.cfg) do out[name] = tostring(value) end \
         return require('json').encode(out)";
    let told = iproto::eval(servers[0], SETTINGS).unwrap_or_default();
    let told: serde_json::Map<String, serde_json::Value> =
        serde_json::from_str(&told).unwrap_or_default();
    let shown = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
    Ok(Served {
        url: format!("tarantool://{}/kvdyno", hosts.join(",")),
        version: iproto::eval(servers[0], "return box.info.version").ok(),
        configuration: told.iter().map(|(name, value)| (name.clone(), shown(value))).collect(),
        changed: changed(site.settings()),
    })
}

/// A server is ready once it has joined, and the space is there.
fn serves(probe: &crate::server::Probe<'_>) -> bool {
    const ASKED: &str = "return box.info.status .. (box.space.kvdyno and '' or ' without a space')";
    iproto::eval(probe.address, ASKED).as_deref() == Ok("running")
}

fn changed(settings: &TestbedSettings) -> Vec<(String, String)> {
    let mut out = Vec::new();
    let mut set = |name: &str, value: String| out.push((name.to_owned(), value));
    if settings.text("wal") != "write" {
        set("wal_mode", settings.text("wal").to_owned());
    }
    if settings.text("recovery") == "force" {
        set("force_recovery", "true".to_owned());
    }
    if settings.text("engine") != "memtx" {
        set("engine", settings.text("engine").to_owned());
    }
    if let Some(bytes) = settings.bytes("memory") {
        set("memtx_memory", bytes.to_string());
    }
    // It sends what it is to its vendor every hour.
    set("feedback_enabled", "false".to_owned());
    out
}

fn script(
    number: u16,
    servers: &[SocketAddr],
    folder: &Path,
    settings: &TestbedSettings,
) -> String {
    let place = folder.display();
    let mut config = format!(
        "listen = '{}', memtx_dir = '{place}', wal_dir = '{place}', vinyl_dir = '{place}', \
         wal_mode = '{}', feedback_enabled = false, force_recovery = {}, read_only = {}",
        servers[usize::from(number) - 1],
        settings.text("wal"),
        settings.text("recovery") == "force",
        number > 1,
    );
    if let Some(bytes) = settings.bytes("memory") {
        config += &format!(", memtx_memory = {bytes}");
    }
    if servers.len() > 1 {
        let all = servers.iter().map(|server| format!("'replicator:replicator@{server}'"));
        config += &format!(", replication = {{{}}}", all.collect::<Vec<_>>().join(", "));
    }
    let engine = format!("'{}'", settings.text("engine"));
    // A replica has what the primary did once.
    let script = if number > 1 { String::new() } else { SCRIPT.replace("ENGINE", &engine) };
    format!("box.cfg{{{config}}}\n{script}")
}

/// Puts, gets and deletes one key; a replica takes no writes, and answers a get.
fn exchange(site: &Site, place: usize, key: &str) -> Result<(), String> {
    let lua = format!(
        "local s, k = box.space.kvdyno, '{key}' \
         if box.info.ro then s:get(k) return box.info.status == 'running' and 'ready' or box.info.status end \
         s:replace{{k, 'ready'}} local got = s:get(k)[2] s:delete(k) return got"
    );
    match iproto::eval(site.nodes()[place].server.address(), &lua)?.as_str() {
        "ready" => Ok(()),
        // Memory without room is its state, not its start.
        other => Err(format!("a get is answered with `{other}`")),
    }
}

/// Asks each server, unless it is paused.
fn ask(site: &Site, place: usize, lua: &str) -> Result<String, String> {
    let server = &site.nodes()[place].server;
    if server.is_paused() {
        return Err("it is paused".to_owned());
    }
    iproto::eval(server.address(), lua)
}

fn roles(site: &Site) -> Vec<Option<Role>> {
    let alone = site.nodes().len() == 1;
    let role = |place: usize| {
        Some(match ask(site, place, "return tostring(box.info.ro)").ok()?.as_str() {
            _ if alone => Role::Peer,
            "false" => Role::Primary,
            _ => Role::Replica,
        })
    };
    (0..site.nodes().len()).map(role).collect()
}

/// Asks whether each server that is up has every change of the log that any had before.
fn whole(site: &Site, up: &[usize]) -> Result<(), String> {
    let changes = |place: &usize| {
        let told = ask(site, *place, "return tostring(box.info.signature)");
        let name = site.nodes()[*place].server.name();
        let told = told.map_err(|said| format!("{name}: {said}"))?;
        // Lua marks a number of 64 bits.
        let number = told.trim_end_matches(['U', 'L']).parse::<u64>();
        number.map_err(|_| format!("{name} tells no number of changes, but {told}"))
    };
    let before = up.iter().map(changes).collect::<Result<Vec<u64>, _>>()?;
    let most = before.into_iter().max().unwrap_or(0);
    for place in up {
        let has = changes(place)?;
        if has < most {
            let name = site.nodes()[*place].server.name();
            return Err(format!("{name} is {} changes behind", most - has));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::TestbedRequest;

    #[test]
    fn the_first_server_takes_writes_and_the_others_follow_it() {
        let settings =
            TestbedRequest::parse("tarantool:2?wal=fsync&engine=vinyl&memory=64MiB&recovery=force");
        let settings = settings.unwrap().settings;
        let servers = [1, 2].map(|n| SocketAddr::from(([127, 1, 2, n], 3301)));
        let text = |number| script(number, &servers, Path::new("/t"), &settings);
        let (first, second) = (text(1), text(2));
        for (part, there) in [
            ("listen = '127.1.2.1:3301'", true),
            ("wal_mode = 'fsync'", true),
            ("read_only = false", true),
            ("memtx_memory = 67108864", true),
            ("'replicator:replicator@127.1.2.2:3301'}", true),
            ("engine = 'vinyl'", true),
            ("feedback_enabled = false", true),
            ("force_recovery = true", true),
        ] {
            assert_eq!(first.contains(part), there, "{part}: {first}");
        }
        assert!(second.contains("read_only = true") && !second.contains("box.once"), "{second}");
        let alone = TestbedRequest::parse("tarantool").unwrap().settings;
        assert!(!script(1, &servers[..1], Path::new("/t"), &alone).contains("replication = "));
        assert_eq!(changed(&alone).len(), 1);
    }
}

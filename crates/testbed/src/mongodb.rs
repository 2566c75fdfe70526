//! MongoDB: a replica set of real `mongod` where `KVDYNO_MONGOD` names that program, else one
//! FerretDB over SQLite, which speaks MongoDB's protocol and comes from a public registry.

mod wire;

use std::fs;
use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use serde_json::json;

use crate::error::TestbedError;
use crate::install::{Software, SoftwareSource};
use crate::kind::{Changes, TestbedKind};
use crate::proof::Proof;
use crate::role::Role;
use crate::server::Launch;
use crate::settings::{Setting, Values};
use crate::site::{Node, Served, Site};

/// Variable that names a `mongod`.
const MONGOD_VARIABLE: &str = "KVDYNO_MONGOD";

/// The server of MongoDB, Inc.
pub static MONGOD: Software = Software {
    name: "mongod",
    version: "",
    source: SoftwareSource::Named {
        variable: MONGOD_VARIABLE,
        advice: "get MongoDB Community Server from https://www.mongodb.com/try/download/community",
    },
};

/// The server that anybody can build.
pub static FERRETDB: Software = Software {
    name: "ferretdb",
    version: "v1.24.0",
    source: SoftwareSource::Go {
        module: "github.com/FerretDB/FerretDB",
        package: "./cmd/ferretdb",
        sum: "h1:7WJmezL48Bj9bYWnhT/bEJgX5gjT5s7LFdHTqkN25rA=",
        prepare: Some(write_version),
    },
};

/// Writes a file with the version, which the build reads: releases are made with that file.
fn write_version(source: &Path) -> io::Result<()> {
    fs::write(source.join("build/version/version.txt"), FERRETDB.version)
}

/// One FerretDB, or a replica set of MongoDB.
pub static KIND: TestbedKind = TestbedKind {
    name: "mongodb",
    summary: "a MongoDB replica set where KVDYNO_MONGOD names a mongod, else one FerretDB over \
              SQLite",
    nodes: 1,
    allowed: 1..=7,
    settings: &[
        Setting {
            name: "election",
            meaning: "mongod: time without a primary after which another is elected \
                      (electionTimeoutMillis)",
            values: Values::Duration,
            default: "10s",
        },
        Setting {
            name: "memory",
            meaning: "mongod: cache of its engine (--wiredTigerCacheSizeGB)",
            values: Values::Bytes,
            default: "",
        },
    ],
    software: &[&FERRETDB],
    deploy,
    proof: Proof { announced: Some(announced), exchange },
    changes: Changes { roles: Some(roles), whole: Some(whole), ..Changes::NONE },
};

fn deploy(site: &mut Site) -> Result<Served, TestbedError> {
    if std::env::var_os(MONGOD_VARIABLE).is_some() {
        return deploy_replica_set(site);
    }
    let for_mongod = |what: &str| {
        let advice = format!("for MongoDB itself set {MONGOD_VARIABLE} to the path of a mongod");
        Err(TestbedError::Node(format!("FerretDB {what}; {advice}")))
    };
    if site.settings().nodes() > 1 {
        return for_mongod("has no replica sets");
    }
    if let Some((name, _)) = site.settings().changed().first()
        && ["election", "memory"].contains(&name.as_str())
    {
        return for_mongod(&format!("has no setting `{name}`"));
    }
    deploy_ferretdb(site)
}

fn deploy_ferretdb(site: &mut Site) -> Result<Served, TestbedError> {
    let program = site.software(&FERRETDB)?;
    let name = "mongodb-1";
    let (data, state) = (site.folder(&format!("{name}/data"))?, site.folder(name)?);
    let address = site.address(1, 27017)?;
    // SQLite has one writer at a time; one that waited 10 s, which is what FerretDB asks for by itself, was
    // told that the database is locked, while the disk of a busy machine was slow.
    let patience = "_pragma=busy_timeout(60000)";
    let url = format!("--sqlite-url=file:{}/?{patience}", data.display());
    let launch = Launch::new(program, address)
        .arguments(["--handler=sqlite", &url, "--debug-addr=-"])
        .arguments([format!("--listen-addr={address}")])
        .arguments([format!("--state-dir={}", state.display())])
        .environment("FERRETDB_TELEMETRY", "disable")
        .ready(|probe| wire::ask(probe.address, "ping").is_some());
    site.start(name, Some(Role::Primary), launch)?;
    site.serve("ferretdb")?;
    let build = wire::ask(address, "buildInfo").unwrap_or_default();
    let given = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    // FerretDB does not tell its configuration: what it was given is all there is.
    let changed = vec![
        given("--handler", "sqlite"),
        given("--sqlite-url", patience),
        given("--debug-addr", "-"),
        given("FERRETDB_TELEMETRY", "disable"),
    ];
    Ok(Served {
        url: format!("mongodb://{address}/kvdyno"),
        version: wire::text(&build, "ferretdbVersion").map(|version| format!("FerretDB {version}")),
        configuration: changed.clone(),
        changed,
    })
}

/// Name of the replica set.
const SET: &str = "kvdyno";

fn deploy_replica_set(site: &mut Site) -> Result<Served, TestbedError> {
    let program = site.software(&MONGOD)?;
    let memory = site.settings().bytes("memory").map(|bytes| {
        // As it takes it: gigabytes, with fractions.
        let cache = format!("{:.3}", bytes as f64 / f64::from(1 << 30));
        ("--wiredTigerCacheSizeGB".to_owned(), cache)
    });
    let mut changed = vec![("--replSet".to_owned(), SET.to_owned())];
    changed.extend(memory);
    let mut members = Vec::new();
    for number in 1..=site.settings().nodes() {
        let name = format!("mongodb-{number}");
        let address = site.address(number, 27017)?;
        let data = site.folder(&format!("{name}/data"))?;
        let launch = Launch::new(&program, address)
            .arguments(["--dbpath".as_ref(), data.as_os_str()])
            .arguments(["--bind_ip", &address.ip().to_string()])
            .arguments(["--port", &address.port().to_string(), "--nounixsocket"])
            .arguments(changed.iter().flat_map(|(name, value)| [name, value]))
            .ready(|probe| wire::ask(probe.address, "ping").is_some())
            .patience(Duration::from_secs(120));
        site.start(&name, None, launch)?;
        members.push(address);
    }
    site.serve("mongod")?;
    let election = site.settings().duration("election").unwrap_or(Duration::from_secs(10));
    if election != Duration::from_secs(10) {
        changed.push(("electionTimeoutMillis".to_owned(), election.as_millis().to_string()));
    }
    site.step("initiate the replica set", |_| initiate(&members, election))?;
    site.until("a primary is elected, all others follow", Duration::from_secs(120), |site| {
        let roles = roles(site);
        roles.contains(&Some(Role::Primary)) && roles.iter().all(Option::is_some)
    })?;
    let build = wire::ask(members[0], "buildInfo").unwrap_or_default();
    let hosts: Vec<String> = members.iter().map(ToString::to_string).collect();
    Ok(Served {
        url: format!("mongodb://{}/kvdyno?replicaSet={SET}", hosts.join(",")),
        version: wire::text(&build, "version"),
        configuration: changed.clone(),
        changed,
    })
}

/// Makes the servers a replica set. A set that was kept in its folder is one already.
fn initiate(members: &[SocketAddr], election: Duration) -> Result<(), TestbedError> {
    let hosts = members.iter().enumerate();
    let hosts: Vec<_> =
        hosts.map(|(number, host)| json!({ "_id": number, "host": host.to_string() })).collect();
    let election = u64::try_from(election.as_millis()).unwrap_or(u64::MAX);
    let config = json!({
        "_id": SET,
        "members": hosts,
        "settings": { "electionTimeoutMillis": election },
    });
    let answer = wire::command(members[0], &json!({ "replSetInitiate": config }));
    let answer = answer.unwrap_or_default();
    let message = wire::text(&answer, "errmsg");
    match message {
        None if !answer.is_empty() => Ok(()),
        Some(message) if message.contains("already initialized") => Ok(()),
        other => Err(TestbedError::Refused {
            node: "mongodb-1".to_owned(),
            problem: other.unwrap_or_else(|| "no answer to replSetInitiate".to_owned()),
        }),
    }
}

/// Returns the role of each member, as each living one says.
fn roles(site: &Site) -> Vec<Option<Role>> {
    let role = |address: SocketAddr| {
        let hello = wire::ask(address, "hello")?;
        match (wire::is_true(&hello, "isWritablePrimary"), wire::is_true(&hello, "secondary")) {
            (true, _) => Some(Role::Primary),
            (false, true) => Some(Role::Replica),
            (false, false) => None,
        }
    };
    site.nodes().iter().map(|node| role(node.server.address())).collect()
}

/// Returns the addresses to which each member sends clients; FerretDB, which is alone, sends them nowhere.
fn announced(site: &Site) -> Result<Vec<Vec<SocketAddr>>, String> {
    let hosts = |node: &Node| {
        let hello = wire::ask(node.server.address(), "hello")?;
        let hosts: Vec<SocketAddr> =
            wire::texts(&hello, "hosts").iter().filter_map(|host| host.parse().ok()).collect();
        (!hosts.is_empty()).then_some(hosts)
    };
    Ok(site.nodes().iter().filter(|node| !node.server.is_paused()).filter_map(hosts).collect())
}

/// Database and collection of [`exchange`].
const READY: (&str, &str) = ("kvdyno_ready", "ready");

/// Carries out a put, a get and a delete at the primary; a get at a secondary.
fn exchange(site: &Site, place: usize, key: &str) -> Result<(), String> {
    let (database, collection) = READY;
    let ask = |words: serde_json::Value| {
        let address = site.nodes()[place].server.address();
        let answer = wire::command_on(database, address, &words).ok_or("it does not answer")?;
        match wire::text(&answer, "errmsg") {
            Some(said) => Err(said),
            None => Ok(answer),
        }
    };
    let find = json!({
        "find": collection,
        "filter": { "_id": key },
        "$readPreference": { "mode": "secondaryPreferred" },
    });
    if roles(site)[place] == Some(Role::Replica) {
        return ask(find).map(drop);
    }
    ask(json!({ "insert": collection, "documents": [{ "_id": key, "v": "ready" }] }))?;
    let found = ask(find)?;
    ask(json!({ "delete": collection, "deletes": [{ "q": { "_id": key }, "limit": 1 }] }))?;
    match wire::text(&found, "v").as_deref() {
        Some("ready") => Ok(()),
        _ => Err("a get does not find what was put".to_owned()),
    }
}

/// Checks that each member that is up is primary or secondary, and has written what the primary had.
fn whole(site: &Site, up: &[usize]) -> Result<(), String> {
    if site.nodes().len() == 1 {
        return Ok(());
    }
    let roles = roles(site);
    let hello = |place: usize| wire::ask(site.nodes()[place].server.address(), "hello");
    let primary = up.iter().find(|place| roles[**place] == Some(Role::Primary));
    let written = |place: usize| wire::date(&hello(place)?, "lastWriteDate");
    let Some(sent) = primary.and_then(|primary| written(*primary)) else {
        return Err("there is no primary".to_owned());
    };
    for &place in up {
        let name = site.nodes()[place].server.name();
        match (roles[place], written(place)) {
            (Some(_), Some(has)) if has >= sent => {}
            (Some(_), Some(has)) => {
                return Err(format!("{name} is {} ms behind the primary", sent - has));
            }
            _ => return Err(format!("{name} is neither primary nor secondary")),
        }
    }
    Ok(())
}

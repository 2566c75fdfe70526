//! A Redis primary with its replicas, and three sentinels that put a replica in its place when it
//! is gone.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use crate::error::TestbedError;
use crate::kind::{Changes, TestbedKind};
use crate::proof::Proof;
use crate::redis::{
    FULL, IO_THREADS, MEMORY, PERSISTENCE, REDIS, REWRITES, ask, configuration,
    exchange::{self, RedisReply, talk},
    in_utc, is_linked_replica, options, role, version, work,
};
use crate::role::Role;
use crate::server::Launch;
use crate::settings::{Setting, Values};
use crate::site::{Served, Site};

/// Number of sentinels: two of them agree when the third is gone, too.
const SENTINELS: u16 = 3;
/// Name that the sentinels give to the primary.
const NAME: &str = "mymaster";
/// Longest time until all know each other, on a machine that is fully loaded.
const PATIENCE: Duration = Duration::from_secs(120);

/// A primary with replicas and sentinels.
pub static KIND: TestbedKind = TestbedKind {
    name: "redis-sentinel",
    summary: "a Redis primary with replicas (as many servers as are asked for), and three sentinels",
    nodes: 3,
    allowed: 2..=8,
    settings: &[
        PERSISTENCE,
        REWRITES,
        MEMORY,
        FULL,
        IO_THREADS,
        Setting {
            name: "down-after",
            meaning: "time after which a primary that says nothing is replaced \
                      (down-after-milliseconds)",
            values: Values::Duration,
            default: "1s",
        },
        Setting {
            name: "failover-timeout",
            meaning: "time after which a fail-over that did not succeed is tried again, by half",
            values: Values::Duration,
            default: "10s",
        },
    ],
    software: &[&REDIS],
    deploy,
    proof: Proof { announced: Some(announced), exchange: exchange::by_role },
    changes: Changes {
        roles: Some(roles),
        read_work: Some(work),
        whole: Some(whole),
        ..Changes::NONE
    },
};

fn deploy(site: &mut Site) -> Result<Served, TestbedError> {
    let changed = options(site.settings());
    let mut data = Vec::new();
    for number in 1..=site.settings().nodes() {
        let address = site.address(number, 6379)?;
        data.push(address);
        let mut lines = vec![
            // A connection to another server does not come from the address that it is reached by.
            format!("replica-announce-ip {}", address.ip()),
            format!("replica-announce-port {}", address.port()),
        ];
        if number > 1 {
            lines.push(format!("replicaof {} {}", data[0].ip(), data[0].port()));
        }
        lines.extend(changed.iter().map(|(name, value)| format!("{name} \"{value}\"")));
        start(site, &format!("redis-{number}"), address, None, &lines)?;
    }
    site.serve("redis-server")?;
    site.until("every replica has its primary's data", PATIENCE, |_| {
        data[1..].iter().all(|replica| is_linked_replica(*replica))
    })?;
    let watching = watching(site, data[0]);
    let mut hosts = Vec::new();
    for number in 1..=SENTINELS {
        let address = site.address(site.settings().nodes() + number, 26379)?;
        let mut lines = watching.clone();
        lines.push(format!("sentinel announce-ip {}", address.ip()));
        let role = Some(Role::Observer);
        start(site, &format!("sentinel-{number}"), address, role, &lines)?;
        hosts.push(address.to_string());
    }
    site.serve("redis-server")?;
    let replicas = data.len() - 1;
    site.until("every sentinel knows all others", PATIENCE, |site| {
        let sentinels = site.nodes().iter().skip(data.len());
        sentinels.map(|node| node.server.address()).all(|address| knows_all(address, replicas))
    })?;
    let mut all_changed = changed;
    all_changed.extend(watching.iter().filter_map(|line| {
        let words: Vec<&str> = line.split(' ').collect();
        (words.len() == 4).then(|| (words[1].to_owned(), words[3].to_owned()))
    }));
    Ok(Served {
        url: format!("redis+sentinel://{}/{NAME}", hosts.join(",")),
        version: version(data[0])?,
        configuration: configuration(data[0])?,
        changed: all_changed,
    })
}

/// Starts a server with a configuration file, into which it writes later whose replica it is: so it knows that again after a
/// restart.
fn start(
    site: &mut Site,
    name: &str,
    address: SocketAddr,
    role: Option<Role>,
    lines: &[String],
) -> Result<(), TestbedError> {
    let program: PathBuf = site.software(&REDIS)?;
    // Redis takes 127.0.0.1 alone for this machine; `bind` keeps all others out as it is.
    let mut text = format!(
        "bind {ip}\nport {port}\ndir \"{folder}\"\nbind-source-addr {ip}\nprotected-mode no\n",
        ip = address.ip(),
        port = address.port(),
        folder = site.folder(name)?.display()
    );
    for line in lines {
        text.push_str(line);
        text.push('\n');
    }
    let config = site.write(name, "redis.conf", &text)?;
    let sentinel = (role == Some(Role::Observer)).then_some("--sentinel");
    let launch = in_utc(Launch::new(program, address))
        .arguments([config])
        .arguments(sentinel)
        .ready(|probe| probe.ask(b"PING\r\n").is_some_and(|answer| answer.starts_with(b"+PONG")));
    site.start(name, role, launch)
}

/// Returns the sentinels' part of the configuration.
fn watching(site: &Site, primary: SocketAddr) -> Vec<String> {
    let quorum = SENTINELS / 2 + 1;
    let mut lines =
        vec![format!("sentinel monitor {NAME} {} {} {quorum}", primary.ip(), primary.port())];
    let settings =
        [("down-after", "down-after-milliseconds"), ("failover-timeout", "failover-timeout")];
    for (setting, option) in settings {
        if let Some(time) = site.settings().duration(setting) {
            lines.push(format!("sentinel {option} {NAME} {}", time.as_millis().max(1)));
        }
    }
    lines
}

/// Returns true if the sentinel sees the primary up, with all its replicas, and both other sentinels.
fn knows_all(sentinel: SocketAddr, replicas: usize) -> bool {
    let Ok(told) = ask(sentinel, &["SENTINEL", "MASTER", NAME]) else { return false };
    let lines: Vec<&str> = told.lines().collect();
    let is = |name: &str, value: &str| lines.windows(2).any(|pair| pair == [name, value]);
    is("flags", "master")
        && is("num-slaves", &replicas.to_string())
        && is("num-other-sentinels", &(SENTINELS - 1).to_string())
}

/// Returns the addresses to which each sentinel sends clients: the primary's, and those of replicas that it knows.
fn announced(site: &Site) -> Result<Vec<Vec<SocketAddr>>, String> {
    let nodes = site.nodes().iter().filter(|node| node.role == Some(Role::Observer));
    let told: Vec<Vec<SocketAddr>> =
        nodes.filter_map(|node| sends_to(node.server.address())).collect();
    if told.is_empty() { Err("no sentinel tells of a primary".to_owned()) } else { Ok(told) }
}

fn sends_to(sentinel: SocketAddr) -> Option<Vec<SocketAddr>> {
    let commands =
        [vec!["SENTINEL", "GET-MASTER-ADDR-BY-NAME", NAME], vec!["SENTINEL", "REPLICAS", NAME]];
    let told = talk(sentinel, &commands).ok()?;
    let [primary, RedisReply::List(replicas)] = told.as_slice() else { return None };
    let address = |ip: &str, port: &str| format!("{ip}:{port}").parse::<SocketAddr>().ok();
    let texts = |reply: &RedisReply| -> Vec<String> {
        let RedisReply::List(all) = reply else { return Vec::new() };
        all.iter()
            .map(|one| if let RedisReply::Text(t) = one { t.clone() } else { String::new() })
            .collect()
    };
    let primary = texts(primary);
    let mut all = vec![address(primary.first()?, primary.get(1)?)?];
    for replica in replicas {
        let words = texts(replica);
        let of =
            |name: &str| words.chunks_exact(2).find(|pair| pair[0] == name).map(|p| p[1].clone());
        all.extend(address(&of("ip")?, &of("port")?));
    }
    Some(all)
}

/// Checks that there is one primary, which the sentinels know, and all others follow it and have what it has.
fn whole(site: &Site, up: &[usize]) -> Result<(), String> {
    let of_data = || up.iter().filter(|place| site.nodes()[**place].role != Some(Role::Observer));
    let server = |place: &usize| &site.nodes()[*place].server;
    let primaries: Vec<usize> =
        of_data().copied().filter(|place| role(server(place)) == Some(Role::Primary)).collect();
    let [primary] = primaries.as_slice() else {
        return Err(format!("{} servers are primaries", primaries.len()));
    };
    let primary = server(primary).address();
    if announced(site)?.iter().any(|told| told.first() != Some(&primary)) {
        return Err("a sentinel sends clients to another primary".to_owned());
    }
    let replicas = of_data().filter(|place| server(place).address() != primary);
    replicas.into_iter().try_for_each(|&p| exchange::replica_is_whole(site, p, &[primary]))
}

fn roles(site: &Site) -> Vec<Option<Role>> {
    let nodes = site.nodes().iter();
    nodes.map(|node| node.role.or_else(|| role(&node.server))).collect()
}

//! A Hazelcast cluster, which keeps a map in the memory of its members and serves it over Memcached's protocol, each member
//! on behalf of all.

use std::net::SocketAddr;
use std::time::Duration;

use serde_json::Value;

use crate::error::TestbedError;
use crate::http;
use crate::install::{JAVA, Software, SoftwareSource};
use crate::java::{JIT, Java};
use crate::kind::{Changes, TestbedKind};
use crate::memcached::exchange;
use crate::proof::Proof;
use crate::role::Role;
use crate::settings::{Setting, TestbedSettings, Values};
use crate::site::{Served, Site};

/// The member, which is one jar.
pub static HAZELCAST: Software = Software {
    name: "hazelcast",
    version: "5.7.0",
    source: SoftwareSource::Maven {
        artifacts: &["com.hazelcast:hazelcast:5.7.0"],
        sums: include_str!("install/sums/hazelcast.sha256"),
        prepare: None,
    },
};

/// One member or a cluster.
pub static KIND: TestbedKind = TestbedKind {
    name: "hazelcast",
    summary: "a Hazelcast cluster with a map in memory, over Memcached's protocol; members keep backups of each other's \
              records",
    nodes: 3,
    allowed: 1..=12,
    settings: &[
        Setting {
            name: "backups",
            meaning: "copies of each record beside its first, which a write waits for (backup-count)",
            values: Values::Count(0, 6),
            default: "1",
        },
        Setting {
            name: "records",
            meaning: "most records of each member; above it the least recently used go (eviction, PER_NODE)",
            values: Values::Count(1, 1_000_000_000),
            default: "",
        },
        Setting {
            name: "silence",
            meaning: "time after which the others give up a member that does not answer \
                      (hazelcast.max.no.heartbeat.seconds)",
            values: Values::Duration,
            default: "",
        },
        Setting {
            name: "memory",
            meaning: "most heap of each member (-Xmx)",
            values: Values::Bytes,
            default: "256MiB",
        },
        JIT,
    ],
    software: &[&HAZELCAST, &JAVA],
    deploy,
    proof: Proof { announced: None, exchange },
    changes: Changes { add: Some(add), remove: Some(remove), whole: Some(whole), ..Changes::NONE },
};

/// Time for a member to start, or to give its records away, with everything else running on two processors.
const PATIENCE: Duration = Duration::from_secs(300);

/// Packages that Hazelcast reaches into, as its own start script opens them.
const OPENS: [&str; 5] = [
    "java.base/java.lang",
    "java.base/java.nio",
    "java.base/sun.nio.ch",
    "java.management/sun.management",
    "jdk.management/com.sun.management.internal",
];

/// Address of the cluster's members, and of its health.
const HEALTH: &str = "/hazelcast/health";

fn deploy(site: &mut Site) -> Result<Served, TestbedError> {
    let mut addresses = Vec::new();
    for number in 1..=site.settings().nodes() {
        addresses.push(site.address(number, 5701)?);
    }
    for (number, address) in (1..).zip(&addresses) {
        start_member(site, number, *address, &addresses)?;
    }
    site.serve("hazelcast")?;
    wait_for_cluster(site)?;
    let told = ask(addresses[0], "/hazelcast/rest/cluster");
    let version = told["members"][0]["memberVersion"].as_str().map(str::to_owned);
    let changed = changed(site.settings());
    let hosts: Vec<String> = addresses.iter().map(ToString::to_string).collect();
    // Nobody can ask a member for its configuration over these protocols: a limit decides whether records go.
    let forgets = !site.settings().text("records").is_empty();
    Ok(Served {
        url: format!("memcached://{}?protocol=text&may-forget={forgets}", hosts.join(",")),
        version,
        configuration: changed.clone(),
        changed,
    })
}

/// Returns the settings that differ from Hazelcast's own, as its documentation names them.
fn changed(settings: &TestbedSettings) -> Vec<(String, String)> {
    let mut out = vec![("-Xmx", heap(settings)), ("memcache-protocol.enabled", "true".to_owned())];
    out.push(("rest-api.enabled", "true".to_owned()));
    if settings.text("backups") != "1" {
        out.push(("backup-count", settings.text("backups").to_owned()));
    }
    if !settings.text("records").is_empty() {
        out.push(("eviction.size", settings.text("records").to_owned()));
        out.push(("eviction.eviction-policy", "LRU".to_owned()));
    }
    if let Some(time) = settings.duration("silence") {
        out.push((SILENCE, seconds(time)));
    }
    out.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

const SILENCE: &str = "hazelcast.max.no.heartbeat.seconds";

fn seconds(time: Duration) -> String {
    time.as_secs().max(1).to_string()
}

fn heap(settings: &TestbedSettings) -> String {
    let bytes = settings.bytes("memory").unwrap_or(256 << 20);
    format!("{}M", bytes.div_ceil(1 << 20).max(64))
}

fn start_member(
    site: &mut Site,
    number: u16,
    address: SocketAddr,
    members: &[SocketAddr],
) -> Result<(), TestbedError> {
    let library = site.software(&HAZELCAST)?.join("lib");
    let name = name(number);
    let yaml = configuration(address, members, site.settings());
    let file = site.write(&name, "hazelcast.yaml", &yaml)?;
    let folder = site.folder(&name)?;
    let settings = site.settings();
    let java = Java::class(&library, "com.hazelcast.core.server.HazelcastMemberStarter")
        .heap("64M", &heap(settings))
        .jit(settings.text("jit"))
        .option("--add-modules")
        .option("java.se")
        .exports(&["java.base/jdk.internal.ref"])
        .opens(&OPENS)
        .property("hazelcast.config", &file.display().to_string())
        // It would look for a device with this address, and loopback has them all without naming them.
        .property("hazelcast.local.localAddress", &address.ip().to_string())
        .property("hazelcast.socket.bind.any", "false")
        .property("hazelcast.phone.home.enabled", "false");
    let java = match settings.duration("silence") {
        Some(time) => java.property(SILENCE, &seconds(time)),
        None => java,
    };
    let launch = java
        .launch(address, &folder)?
        .ready(|probe| probe.http_status("/hazelcast/health/ready") == Some(200))
        .patience(PATIENCE);
    site.start(&name, Some(Role::Peer), launch)
}

fn name(number: u16) -> String {
    format!("hazelcast-{number}")
}

fn configuration(
    address: SocketAddr,
    members: &[SocketAddr],
    settings: &TestbedSettings,
) -> String {
    let members: Vec<String> = members.iter().map(|member| format!("\"{member}\"")).collect();
    let limit = match settings.text("records") {
        "" => String::new(),
        most => format!(
            "      eviction: {{ max-size-policy: PER_NODE, size: {most}, eviction-policy: LRU }}\n"
        ),
    };
    format!(
        "hazelcast:\n  \
           cluster-name: kvdyno\n  \
           network:\n    \
             public-address: \"{address}\"\n    \
             port: {{ port: {port}, auto-increment: false }}\n    \
             memcache-protocol: {{ enabled: true }}\n    \
             rest-api:\n      \
               enabled: true\n      \
               endpoint-groups:\n        \
                 HEALTH_CHECK: {{ enabled: true }}\n        \
                 CLUSTER_READ: {{ enabled: true }}\n        \
                 CLUSTER_WRITE: {{ enabled: true }}\n    \
             join:\n      \
               auto-detection: {{ enabled: false }}\n      \
               multicast: {{ enabled: false }}\n      \
               tcp-ip: {{ enabled: true, member-list: [{members}] }}\n  \
           map:\n    \
             hz_memcache_default:\n      \
               backup-count: {backups}\n{limit}",
        port = address.port(),
        members = members.join(", "),
        backups = settings.text("backups"),
    )
}

/// Waits until every member that is up knows all the others, and no partition is on its way to another.
fn wait_for_cluster(site: &mut Site) -> Result<(), TestbedError> {
    site.until("every member knows every other", PATIENCE, |site| {
        let all: Vec<usize> = (0..site.nodes().len()).collect();
        whole(site, &all).is_ok()
    })
}

/// Has one more member join; partitions move to it.
fn add(site: &mut Site) -> Result<(), TestbedError> {
    let numbers = site.nodes().iter().filter_map(|node| {
        node.server.name().rsplit_once('-').and_then(|(_, number)| number.parse::<u16>().ok())
    });
    let number = numbers.max().unwrap_or(0) + 1;
    let address = site.address(number, 5701)?;
    let mut members: Vec<SocketAddr> =
        site.nodes().iter().map(|node| node.server.address()).collect();
    members.push(address);
    start_member(site, number, address, &members)?;
    site.serve("hazelcast")?;
    wait_for_cluster(site)
}

/// Has a member give its records to the others, and leave.
fn remove(site: &mut Site, index: usize) -> Result<(), TestbedError> {
    if site.nodes().len() == 1 {
        return Err(TestbedError::Node("the last member cannot leave".to_owned()));
    }
    // It answers before it has begun; the others know when it has gone.
    let server = &site.nodes()[index].server;
    let (node, address) = (server.name().to_owned(), server.address());
    let path = "/hazelcast/rest/management/cluster/memberShutdown";
    let told = http::request(address, "POST", path, "kvdyno&").map(|(status, _)| status);
    if told.is_some_and(|status| status != 200) {
        let problem = format!("it does not leave, and answers {}", told.unwrap_or_default());
        return Err(TestbedError::Refused { node, problem });
    }
    let others: Vec<usize> = (0..site.nodes().len()).filter(|place| *place != index).collect();
    site.step("the others have its records", |site| {
        let begin = std::time::Instant::now();
        while let Err(said) = whole(site, &others) {
            if begin.elapsed() > PATIENCE {
                return Err(TestbedError::Refused { node: node.clone(), problem: said });
            }
            site.pause(Duration::from_millis(200))?;
        }
        Ok(())
    })?;
    site.end_node(index);
    Ok(())
}

/// Asks each member that is up whether the cluster has these members, all partitions have their backups, and none moves.
fn whole(site: &Site, up: &[usize]) -> Result<(), String> {
    for place in up {
        let server = &site.nodes()[*place].server;
        let health = ask(server.address(), HEALTH);
        lacking(&health, up.len()).map_err(|said| format!("{}: {said}", server.name()))?;
    }
    Ok(())
}

fn lacking(health: &Value, up: usize) -> Result<(), String> {
    let number = |field: &str| health[field].as_u64();
    match (number("clusterSize"), number("migrationQueueSize")) {
        (None, _) => Err("it does not tell its health".to_owned()),
        (Some(known), _) if known != up as u64 => Err(format!("it knows {known} of {up} members")),
        (_, Some(moving)) if moving > 0 => Err(format!("{moving} partitions are to be moved")),
        _ if health["clusterSafe"] != true => Err("partitions lack backups".to_owned()),
        _ => Ok(()),
    }
}

fn ask(member: SocketAddr, path: &str) -> Value {
    let body = http::request(member, "GET", path, "").map(|(_, body)| body);
    serde_json::from_str(&body.unwrap_or_default()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_cluster_is_whole_once_all_members_are_in_and_nothing_moves() {
        let health = |size: u64, moving: u64, safe: bool| json!({"clusterSize": size, "migrationQueueSize": moving, "clusterSafe": safe});
        assert_eq!(lacking(&health(3, 0, true), 3), Ok(()));
        for (health, said) in [
            (health(2, 0, true), "2 of 3"),
            (health(3, 5, true), "5 partitions"),
            (health(3, 0, false), "backups"),
            (Value::Null, "does not tell"),
        ] {
            assert!(lacking(&health, 3).unwrap_err().contains(said), "{health}");
        }
    }

    #[test]
    fn a_member_knows_the_others_its_backups_and_its_limit() {
        let settings = |words: &str| crate::request::TestbedRequest::parse(words).unwrap().settings;
        let at = |n: u8| SocketAddr::from(([127, 1, 2, n], 5701));
        let plain = configuration(at(1), &[at(1), at(2)], &settings("hazelcast"));
        assert!(plain.contains("[\"127.1.2.1:5701\", \"127.1.2.2:5701\"]"), "{plain}");
        assert!(plain.contains("backup-count: 1") && !plain.contains("eviction"), "{plain}");
        let asked = settings("hazelcast?backups=2&records=70&silence=5s");
        assert!(configuration(at(1), &[at(1)], &asked).contains("size: 70, eviction-policy: LRU"));
        let changed = changed(&asked);
        for (name, value) in [("backup-count", "2"), ("eviction.size", "70"), (SILENCE, "5")] {
            assert!(changed.contains(&(name.to_owned(), value.to_owned())), "{changed:?}");
        }
    }
}

//! A Cassandra cluster, each node on an address of its own.

mod cql;
mod journal;
mod nodetool;
mod proof;

use std::collections::HashMap;
use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use kvdyno_core::workload::fault::Ability;

use self::cql::Question;
use crate::certificates::Certificates;
use crate::error::TestbedError;
use crate::install::{JAVA, Software, SoftwareSource};
use crate::java::{JIT, Java};
use crate::kind::{Changes, TestbedKind};
use crate::proof::Proof;
use crate::role::Role;
use crate::server::Launch;
use crate::settings::{Setting, TestbedSettings, Values};
use crate::site::{Served, Site};

/// The server.
pub static CASSANDRA: Software = Software {
    name: "cassandra",
    version: "5.0.9",
    source: SoftwareSource::Maven {
        artifacts: &["org.apache.cassandra:cassandra-all:5.0.9"],
        sums: include_str!("install/sums/cassandra.sha256"),
        prepare: None,
    },
};

/// A node or a cluster of them.
pub static KIND: TestbedKind = TestbedKind {
    name: "cassandra",
    summary: "a Cassandra cluster; its keyspace keeps 3 copies of each record, or one on each node",
    nodes: 1,
    allowed: 1..=12,
    settings: &[
        Setting {
            name: "sync",
            meaning: "when the commit log is on disk (commitlog_sync): every 10 s, or before each \
                      answer",
            values: Values::Choice(&["periodic", "batch", "group"]),
            default: "periodic",
        },
        Setting {
            name: "replication",
            meaning: "copies of each record in the keyspace that kvdyno makes",
            values: Values::Count(1, 12),
            default: "",
        },
        Setting {
            name: "consistency",
            meaning: "level of the client's reads and writes, in the store's URL",
            values: Values::Choice(&["one", "two", "quorum", "local_quorum", "all"]),
            default: "local_quorum",
        },
        Setting {
            name: "ring",
            meaning: "`even`: one token for each node at even distances, all start at once; \
                      `vnodes`: 16 tokens, nodes join one after the other, and more can be added",
            values: Values::Choice(&["even", "vnodes"]),
            default: "even",
        },
        Setting {
            name: "memory",
            meaning: "most heap of each node (-Xmx)",
            values: Values::Bytes,
            default: "256MiB",
        },
        Setting {
            name: "password",
            meaning: "`yes`: users must log in (PasswordAuthenticator) and have rights",
            values: Values::Choice(&["no", "yes"]),
            default: "no",
        },
        Setting {
            name: "tls",
            meaning: "`yes`: clients may speak TLS, and the URL says so",
            values: Values::Choice(&["no", "yes"]),
            default: "no",
        },
        JIT,
    ],
    software: &[&CASSANDRA, &JAVA],
    deploy,
    proof: Proof { announced: Some(proof::announced), exchange: proof::exchange },
    changes: Changes {
        whole: Some(proof::whole),
        add: Some(add),
        remove: Some(remove),
        compact: Some(nodetool::compact),
        read_work: Some(journal::work),
        cannot: Some(obstacle),
        ..Changes::NONE
    },
};

/// Time for a node to start, or to join, with everything else running on two processors.
const PATIENCE: Duration = Duration::from_secs(300);

/// Packages that Cassandra reaches into, as its own start script opens them.
const OPENS: [&str; 14] = [
    "java.base/java.lang",
    "java.base/java.lang.module",
    "java.base/java.io",
    "java.base/java.nio",
    "java.base/java.util",
    "java.base/sun.nio.ch",
    "java.base/jdk.internal.loader",
    "java.base/jdk.internal.math",
    "java.base/jdk.internal.module",
    "java.base/jdk.internal.ref",
    "java.base/jdk.internal.reflect",
    "java.base/jdk.internal.misc",
    "java.base/jdk.internal.util.jar",
    "jdk.management/com.sun.management.internal",
];

const EXPORTS: [&str; 3] = [
    "java.rmi/sun.rmi.registry",
    "java.rmi/sun.rmi.server",
    "java.management.rmi/com.sun.jmx.remote.internal.rmi",
];

const LOG: &str = r#"<configuration>
  <appender name="STDOUT" class="ch.qos.logback.core.ConsoleAppender">
    <encoder><pattern>%-5level %date{yyyy-MM-dd'T'HH:mm:ss.SSS, UTC} [%thread] %logger{20} %msg%n</pattern></encoder>
  </appender>
  <root level="INFO"><appender-ref ref="STDOUT"/></root>
</configuration>
"#;

/// Datacenter and rack of each node. With the snitch that reads this a node that is asked for what it has answers by itself,
/// as in production; `SimpleSnitch`, Cassandra's default, would ask another one as gladly.
const PLACE: &str = "dc=datacenter1\nrack=rack1\n";

/// The superuser that Cassandra makes by itself, and its password.
const SUPERUSER: (&str, &str) = ("cassandra", "cassandra");

fn deploy(site: &mut Site) -> Result<Served, TestbedError> {
    let settings = site.settings();
    let (count, joins) = (settings.nodes(), settings.text("ring") == "vnodes");
    for number in 1..=count {
        start_node(site, number)?;
        if joins {
            // Two nodes that join at once would take each other's ranges.
            site.serve("cassandra")?;
        }
    }
    if !joins {
        site.serve("cassandra")?;
    }
    wait_for_ring(site)?;
    let asks = login(site);
    let configuration = configuration(site.nodes()[0].server.address(), asks);
    let version = configuration.iter().find(|(name, _)| name == "release_version");
    Ok(Served {
        url: url(site)?,
        version: version.map(|(_, version)| version.clone()),
        configuration,
        changed: changed(site),
    })
}

fn obstacle(settings: &TestbedSettings, ability: Ability) -> Option<&'static str> {
    let is_full = ability == Ability::Grow && settings.text("ring") != "vnodes";
    is_full.then_some(
        "a ring of even distances has no place for another node; start the testbed with `?ring=vnodes`",
    )
}

/// Has one more node join, and take its share of the data.
fn add(site: &mut Site) -> Result<(), TestbedError> {
    if let Some(why) = obstacle(site.settings(), Ability::Grow) {
        return Err(TestbedError::Node(why.to_owned()));
    }
    let number = site.nodes().iter().filter_map(|node| number(node.server.name())).max();
    start_node(site, number.unwrap_or(0) + 1)?;
    site.serve("cassandra")?;
    wait_for_ring(site)
}

/// Has a node give its data to the others and leave the ring.
fn remove(site: &mut Site, index: usize) -> Result<(), TestbedError> {
    if site.nodes().len() == 1 {
        return Err(TestbedError::Node("the last node cannot leave".to_owned()));
    }
    // Without `--force` it stays where less than three nodes would be left: so many copies its own
    // keyspaces ask for.
    nodetool::run(site, index, &["decommission", "--force"])?;
    site.end_node(index);
    wait_for_ring(site)
}

fn number(name: &str) -> Option<u16> {
    name.rsplit_once('-')?.1.parse().ok()
}

fn start_node(site: &mut Site, number: u16) -> Result<(), TestbedError> {
    let library = site.software(&CASSANDRA)?.join("lib");
    let name = format!("cassandra-{number}");
    // The driver looks for all nodes at the port of the first.
    let usual = site.nodes().first().map_or(9042, |first| first.server.address().port());
    let address = site.address(number, usual)?;
    let folder = site.folder(&name)?;
    let settings = settings(site, number);
    let tls = tls(site, address, &folder)?;
    let yaml = site.write(&name, "cassandra.yaml", &yaml(site, address, &settings, &tls))?;
    let place = site.write(&name, "cassandra-rackdc.properties", PLACE)?;
    let log = site.write(&name, "logback.xml", LOG)?;
    let settings = site.settings();
    let jmx = nodetool::choose_port(site, &name, number)?;
    let heap = settings.bytes("memory").unwrap_or(256 << 20).div_ceil(1 << 20).max(64);
    let home = folder.display().to_string();
    let java = Java::class(&library, "org.apache.cassandra.service.CassandraDaemon")
        .heap("64M", &format!("{heap}M"))
        .jit(settings.text("jit"))
        .option("-Xss256k")
        .option(format!("-javaagent:{}", agent(&library)?.display()))
        .property("java.security.manager", "allow")
        .property("cassandra.config", &format!("file://{}", yaml.display()))
        .property("cassandra-rackdc.properties", &format!("file://{}", place.display()))
        .property("logback.configurationFile", &log.display().to_string())
        .property("cassandra.storagedir", &home)
        .property("cassandra.logdir", &home)
        .property("cassandra-foreground", "yes")
        .property("cassandra.jmx.local.port", &jmx.to_string())
        .property("cassandra.superuser_setup_delay_ms", "0")
        // A node that was not told of a change of the schema, because it was not yet known to be up, asks
        // for it after this time: a minute, if nothing is said.
        .property("cassandra.migration_delay_ms", "1000")
        .property("cassandra.schema_pull_interval_ms", "5000")
        .opens(&OPENS)
        .exports(&EXPORTS);
    // A node that joins must have heard of the ring and its schema; others need not wait for that.
    let java = match settings.text("ring") {
        "vnodes" => java.property("cassandra.ring_delay_ms", "5000"),
        _ => java
            .property("cassandra.ring_delay_ms", "100")
            .property("cassandra.skip_wait_for_gossip_to_settle", "0"),
    };
    let launch: Launch = java.launch(address, &folder)?.ready(cql::listens).patience(PATIENCE);
    site.start(&name, Some(Role::Peer), launch)
}

/// Returns the agent that measures objects, whatever its version.
fn agent(library: &Path) -> Result<PathBuf, TestbedError> {
    let jars = fs::read_dir(library)
        .map_err(TestbedError::system("read", library.display().to_string()))?;
    let named = |path: &PathBuf| {
        path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("jamm-"))
    };
    let found = jars.filter_map(|jar| Some(jar.ok()?.path())).find(named);
    found.ok_or_else(|| CASSANDRA.missing("cassandra"))
}

/// Returns the settings in `cassandra.yaml` beside addresses and what every node must be told.
fn settings(site: &Site, number: u16) -> Vec<(&'static str, String)> {
    let settings = site.settings();
    let joins = settings.text("ring") == "vnodes";
    let mut out = vec![
        ("commitlog_segment_size", "8MiB".to_owned()),
        ("auto_snapshot", "false".to_owned()),
        ("dynamic_snitch", "false".to_owned()),
    ];
    match settings.text("sync") {
        "batch" => out.push(("commitlog_sync", "batch".to_owned())),
        "group" => {
            out.push(("commitlog_sync", "group".to_owned()));
            out.push(("commitlog_sync_group_window", "10ms".to_owned()));
        }
        _ => {
            out.push(("commitlog_sync", "periodic".to_owned()));
            out.push(("commitlog_sync_period", "10s".to_owned()));
        }
    }
    if joins {
        out.push(("num_tokens", "16".to_owned()));
    } else {
        // Tokens are all numbers of 64 bits, and the first node has the least.
        let width = (1i128 << 64) / i128::from(settings.nodes());
        let token = i128::from(i64::MIN) + width * i128::from(number - 1);
        out.push(("num_tokens", "1".to_owned()));
        out.push(("initial_token", token.to_string()));
        out.push(("auto_bootstrap", "false".to_owned()));
    }
    if settings.text("password") == "yes" {
        out.push(("authenticator", "PasswordAuthenticator".to_owned()));
        out.push(("authorizer", "CassandraAuthorizer".to_owned()));
    }
    out
}

/// Returns a node's `cassandra.yaml`.
fn yaml(
    site: &Site,
    address: SocketAddr,
    settings: &[(&'static str, String)],
    tls: &str,
) -> String {
    let asked = site.settings();
    // A node that is named as a seed does not join: it is there from the start.
    let seeds = if asked.text("ring") == "vnodes" { 1 } else { asked.nodes() };
    let seeds: Vec<String> = (1..=seeds).map(|number| site.ip(number).to_string()).collect();
    let mut out = format!(
        "cluster_name: kvdyno\n\
         partitioner: org.apache.cassandra.dht.Murmur3Partitioner\n\
         endpoint_snitch: GossipingPropertyFileSnitch\n\
         listen_address: {ip}\n\
         rpc_address: {ip}\n\
         native_transport_port: {port}\n\
         seed_provider:\n  \
           - class_name: org.apache.cassandra.locator.SimpleSeedProvider\n    \
             parameters: [{{seeds: \"{seeds}\"}}]\n{tls}",
        ip = address.ip(),
        port = address.port(),
        seeds = seeds.join(","),
    );
    for (name, value) in settings {
        out.push_str(&format!("{name}: {value}\n"));
    }
    out
}

/// Returns the part of `cassandra.yaml` about TLS; empty without it.
fn tls(site: &Site, address: SocketAddr, folder: &Path) -> Result<String, TestbedError> {
    if site.settings().text("tls") != "yes" {
        return Ok(String::new());
    }
    let files = Certificates::make(folder, address.ip())?;
    let keys = files.in_one_file()?;
    Ok(format!(
        "client_encryption_options:\n  \
           enabled: true\n  \
           optional: true\n  \
           ssl_context_factory:\n    \
             class_name: org.apache.cassandra.security.PEMBasedSslContextFactory\n  \
           keystore: {}\n",
        keys.display()
    ))
}

fn login(site: &Site) -> Option<(&'static str, &'static str)> {
    (site.settings().text("password") == "yes").then_some(SUPERUSER)
}

/// Waits until every node knows every other, with all that a driver asks, and lets the superuser in.
///
/// A node writes down what it hears of another column by column. A driver that reads a row before its end leaves
/// that node out, and would make its keyspace with too few copies.
fn wait_for_ring(site: &mut Site) -> Result<(), TestbedError> {
    let login = login(site);
    site.until("every node knows every other", PATIENCE, |site| {
        let others = site.nodes().len() - 1;
        site.nodes().iter().all(|node| {
            let asked =
                "SELECT JSON rpc_address, host_id, data_center, rack, tokens FROM system.peers";
            let question = Question { address: node.server.address(), login, asked };
            question.ask().is_some_and(|peers| {
                let known = peers.iter().flatten().filter(|peer| is_known(peer.as_deref()));
                peers.len() == others && known.count() == others
            })
        })
    })
}

/// Returns true if nothing is missing of what a node knows of another: an object of JSON.
fn is_known(peer: Option<&str>) -> bool {
    let told = peer.and_then(|peer| serde_json::from_str::<serde_json::Value>(peer).ok());
    let Some(serde_json::Value::Object(columns)) = told else { return false };
    columns.values().all(|value| match value {
        serde_json::Value::Array(tokens) => !tokens.is_empty(),
        value => value.is_string(),
    })
}

/// Returns all settings as a node tells them, and its version.
fn configuration(
    address: SocketAddr,
    login: Option<(&'static str, &'static str)>,
) -> Vec<(String, String)> {
    let ask = |asked| Question { address, login, asked }.ask().unwrap_or_default();
    let version = ask("SELECT release_version FROM system.local");
    let version = version.into_iter().flatten().next().flatten();
    let mut out: Vec<(String, String)> =
        version.map(|version| ("release_version".to_owned(), version)).into_iter().collect();
    let told: HashMap<String, String> = ask("SELECT name, value FROM system_views.settings")
        .into_iter()
        .filter_map(|row| match <[Option<String>; 2]>::try_from(row).ok()? {
            [Some(name), value] => Some((name, value.unwrap_or_default())),
            [None, _] => None,
        })
        .collect();
    out.extend(told);
    out.sort();
    out
}

/// Returns the settings that differ from Cassandra's defaults.
fn changed(site: &Site) -> Vec<(String, String)> {
    let usual = |(name, value): &(&str, String)| {
        matches!((*name, value.as_str()), ("commitlog_sync", "periodic"))
            || matches!((*name, value.as_str()), ("commitlog_sync_period", "10s"))
            || matches!((*name, value.as_str()), ("num_tokens", "16"))
            || *name == "initial_token"
    };
    let settings = settings(site, 1).into_iter().filter(|setting| !usual(setting));
    let mut out: Vec<(String, String)> =
        settings.map(|(name, value)| (name.to_owned(), value)).collect();
    if site.settings().text("tls") == "yes" {
        out.push(("client_encryption_options.enabled".to_owned(), "true".to_owned()));
    }
    out.push(("endpoint_snitch".to_owned(), "GossipingPropertyFileSnitch".to_owned()));
    out.push(("-Xmx".to_owned(), site.settings().text("memory").to_owned()));
    out
}

fn url(site: &Site) -> Result<String, TestbedError> {
    let hosts: Vec<String> =
        site.nodes().iter().map(|node| node.server.address().to_string()).collect();
    let user = login(site).map(|(user, password)| format!("{user}:{password}@"));
    let (hosts, user) = (hosts.join(","), user.unwrap_or_default());
    let mut options = Vec::new();
    if let Some(copies) = site.settings().count("replication") {
        options.push(format!("replication={copies}"));
    }
    match site.settings().text("consistency") {
        "local_quorum" => {}
        level => options.push(format!("consistency={level}")),
    }
    let scheme = if site.settings().text("tls") == "yes" {
        options.push(format!("ca={}", authorities(site)?.display()));
        "cassandras"
    } else {
        "cassandra"
    };
    let query = if options.is_empty() { String::new() } else { format!("?{}", options.join("&")) };
    Ok(format!("{scheme}://{user}{hosts}/kvdyno{query}"))
}

/// Writes one file of what a client must trust: each node's certificate has an authority of its own.
fn authorities(site: &Site) -> Result<PathBuf, TestbedError> {
    let mut all = String::new();
    for node in site.nodes() {
        let file = site.folder(node.server.name())?.join("authority.pem");
        let one = fs::read_to_string(&file)
            .map_err(TestbedError::system("read", file.display().to_string()))?;
        all.push_str(&one);
    }
    let file = site.root().join("authorities.pem");
    fs::write(&file, all).map_err(TestbedError::system("write", file.display().to_string()))?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_is_known_once_all_that_drivers_ask_of_it_is_there() {
        let whole =
            r#"{"rpc_address": "127.0.0.2", "host_id": "6d19", "rack": "rack1", "tokens": ["-3"]}"#;
        assert!(is_known(Some(whole)));
        for (there, missing) in
            [("\"127.0.0.2\"", "null"), ("\"6d19\"", "null"), ("[\"-3\"]", "null"), ("\"-3\"", "")]
        {
            assert!(!is_known(Some(&whole.replace(there, missing))), "{there} is missing");
        }
        assert!(!is_known(None));
        assert!(!is_known(Some("127.0.0.2")));
    }
}

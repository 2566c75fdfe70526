//! An Aerospike cluster, Community or Enterprise Edition 8.1, of a program that the user has.

mod exchange;

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::time::Duration;

use rustix::process::{Resource, getrlimit};

use crate::error::TestbedError;
use crate::install::{Software, SoftwareSource};
use crate::kind::{Changes, TestbedKind};
use crate::proof::Proof;
use crate::role::Role;
use crate::server::Launch;
use crate::settings::{Setting, TestbedSettings, Values};
use crate::site::{Served, Site};

/// The server.
pub static ASD: Software = Software {
    name: "asd",
    version: "",
    source: SoftwareSource::Named {
        variable: "KVDYNO_ASD",
        advice: "get Aerospike Community Edition 8.1 from its vendor and find `asd` in it",
    },
};

/// One Aerospike or a cluster.
pub static KIND: TestbedKind = TestbedKind {
    name: "aerospike",
    summary: "an Aerospike cluster of one namespace, `test`, with mesh heartbeats",
    nodes: 1,
    allowed: 1..=8,
    settings: &[
        Setting {
            name: "storage",
            meaning: "where records are kept: in memory, or in a file (storage-engine device)",
            values: Values::Choice(&["memory", "file"]),
            default: "memory",
        },
        Setting {
            name: "memory",
            meaning: "size of the memory or the file for the records of each node, 512MiB or more",
            values: Values::Bytes,
            default: "1GiB",
        },
        Setting {
            name: "replication",
            meaning: "copies of each record, if there are as many nodes (replication-factor)",
            values: Values::Count(1, 8),
            default: "2",
        },
        Setting {
            name: "expiry",
            meaning: "seconds between two looks for records to remove (nsup-period); with 0 no \
                      record can have a time to live",
            values: Values::Count(0, 86_400),
            default: "10",
        },
    ],
    software: &[&ASD],
    deploy,
    proof: Proof { announced: Some(announced), exchange: exchange::put_and_get },
    changes: Changes { whole: Some(whole), ..Changes::NONE },
};

/// Name of the namespace, as in the vendor's own sample configuration.
const NAMESPACE: &str = "test";

/// Open connections that a node allows unless the system allows less.
const MOST_CONNECTIONS: u64 = 15_000;

/// Addresses of one node.
#[derive(Clone, Copy)]
struct Places {
    service: SocketAddr,
    heartbeat: SocketAddr,
    fabric: SocketAddr,
}

fn deploy(site: &mut Site) -> Result<Served, TestbedError> {
    let program = site.software(&ASD)?;
    let storage = storage(site.settings())?;
    let count = site.settings().nodes();
    let mut nodes = Vec::new();
    for number in 1..=count {
        nodes.push(Places {
            service: site.address(number, 3000)?,
            heartbeat: site.address(number, 3002)?,
            fabric: site.address(number, 3001)?,
        });
    }
    let seeds: Vec<SocketAddr> = nodes.iter().map(|node| node.heartbeat).collect();
    for (index, node) in nodes.iter().enumerate() {
        let name = format!("aerospike-{}", index + 1);
        let folder = site.folder(&name)?;
        for part in ["work/smd", "lua"] {
            let made = std::fs::create_dir_all(folder.join(part));
            made.map_err(TestbedError::system("make a folder for", &name))?;
        }
        let text = configuration(index + 1, *node, &seeds, &folder, &storage, connections());
        let file = site.write(&name, "aerospike.conf", &text)?;
        let launch = Launch::new(&program, node.service)
            .arguments(["--foreground", "--config-file"])
            .arguments([file])
            .environment("AEROSPIKE_TELEMETRY", "FALSE")
            .ready(|probe| info(probe.address, "status").as_deref() == Some("ok"))
            .patience(Duration::from_secs(120));
        site.start(&name, Some(Role::Peer), launch)?;
    }
    site.serve("aerospike")?;
    let services: Vec<SocketAddr> = nodes.iter().map(|node| node.service).collect();
    // Answered with the cluster's key once all nodes are in it and no data moves.
    let stable = format!("cluster-stable:size={count};ignore-migrations=false");
    site.until("form the cluster", Duration::from_secs(120), |_| {
        services
            .iter()
            .all(|service| info(*service, &stable).is_some_and(|response| is_key(&response)))
    })?;
    let hosts: Vec<String> = services.iter().map(SocketAddr::to_string).collect();
    Ok(Served {
        url: format!("aerospike://{}/{NAMESPACE}", hosts.join(",")),
        version: info(services[0], "build"),
        configuration: read_configuration(services[0]),
        changed: changed(site.settings()),
    })
}

/// Storage of records: the inside of the namespace in the configuration file.
struct Storage {
    replication: u64,
    expiry: u64,
    bytes: u64,
    in_file: bool,
}

fn storage(settings: &TestbedSettings) -> Result<Storage, TestbedError> {
    const LEAST: u64 = 512 << 20;
    let bytes = settings.bytes("memory").unwrap_or(1 << 30);
    if bytes < LEAST {
        return Err(TestbedError::Word {
            word: settings.to_string(),
            problem: format!("`memory={}` is too little", settings.text("memory")),
            advice: "Aerospike takes 512MiB or more".to_owned(),
        });
    }
    Ok(Storage {
        replication: settings.count("replication").unwrap_or(2),
        expiry: settings.count("expiry").unwrap_or(0),
        bytes,
        in_file: settings.text("storage") == "file",
    })
}

/// Returns as many connections as the system lets the server open files, which it checks when it starts.
fn connections() -> u64 {
    getrlimit(Resource::Nofile).current.map_or(MOST_CONNECTIONS, |most| most.min(MOST_CONNECTIONS))
}

/// Returns the configuration file of node `number`, from 1 (vendor's documentation, "Configuration reference"). Nodes on one
/// machine must be told apart by `node-id`.
fn configuration(
    number: usize,
    node: Places,
    seeds: &[SocketAddr],
    folder: &Path,
    storage: &Storage,
    connections: u64,
) -> String {
    let place = |place: SocketAddr| format!("address {}\n\t\tport {}", place.ip(), place.port());
    let seeds: Vec<String> = seeds
        .iter()
        .map(|seed| format!("\t\tmesh-seed-address-port {} {}\n", seed.ip(), seed.port()))
        .collect();
    let folder = folder.display();
    let Storage { replication, expiry, bytes, in_file } = storage;
    let engine = match in_file {
        true => format!("device {{\n\t\tfile {folder}/records.dat\n\t\tfilesize {bytes}\n\t}}"),
        false => format!("memory {{\n\t\tdata-size {bytes}\n\t}}"),
    };
    format!(
        "service {{\n\
         \tcluster-name kvdyno\n\
         \tnode-id a{number:x}\n\
         \tproto-fd-max {connections}\n\
         \twork-directory {folder}/work\n\
         }}\n\
         mod-lua {{\n\
         \tuser-path {folder}/lua\n\
         }}\n\
         logging {{\n\
         \tconsole {{\n\
         \t\tcontext any info\n\
         \t}}\n\
         }}\n\
         network {{\n\
         \tservice {{\n\t\t{service}\n\t\taccess-address {access}\n\t\tdisable-localhost true\n\t}}\n\
         \theartbeat {{\n\t\tmode mesh\n\t\t{heartbeat}\n{seeds}\t\tinterval 150\n\t\ttimeout 10\n\t}}\n\
         \tfabric {{\n\t\t{fabric}\n\t}}\n\
         }}\n\
         namespace {NAMESPACE} {{\n\
         \treplication-factor {replication}\n\
         \tnsup-period {expiry}\n\
         \tstorage-engine {engine}\n\
         }}\n",
        service = place(node.service),
        // Else clients are sent to an address of this machine's other interfaces.
        access = node.service.ip(),
        heartbeat = place(node.heartbeat),
        fabric = place(node.fabric),
        seeds = seeds.concat(),
    )
}

/// Returns the settings that differ from the server's defaults: a namespace needs a storage engine with a size, and
/// mesh heartbeats their seeds.
fn changed(settings: &TestbedSettings) -> Vec<(String, String)> {
    let mut out = vec![("heartbeat.mode".to_owned(), "mesh".to_owned())];
    let mut set = |name: &str, value: &str| out.push((name.to_owned(), value.to_owned()));
    let (engine, size) = match settings.text("storage") {
        "file" => ("device", "filesize"),
        _ => ("memory", "data-size"),
    };
    set("storage-engine", engine);
    set(&format!("storage-engine.{size}"), settings.text("memory"));
    if settings.text("replication") != "2" {
        set("replication-factor", settings.text("replication"));
    }
    if settings.text("expiry") != "0" {
        set("nsup-period", settings.text("expiry"));
    }
    let most = connections();
    if most != MOST_CONNECTIONS {
        set("proto-fd-max", &most.to_string());
    }
    out
}

/// Returns the addresses to which each node that is up sends clients: its own and its peers'.
fn announced(site: &Site) -> Result<Vec<Vec<SocketAddr>>, String> {
    let up = site.nodes().iter().filter(|node| !node.server.is_paused());
    let addresses_of_each = up.filter_map(|node| {
        let of = |command| info(node.server.address(), command);
        Some(addresses(&of("service-clear-std")?, &of("peers-clear-std")?))
    });
    let addresses_of_each: Vec<_> = addresses_of_each.collect();
    if addresses_of_each.is_empty() {
        Err("no node tells of its peers".to_owned())
    } else {
        Ok(addresses_of_each)
    }
}

/// Reads the addresses in a node's own list, `a:1,b:1`, and in that of its peers,
/// `generation,port,[[node,,[a:1,b]],…]`, where the port may be left out.
fn addresses(own: &str, peers: &str) -> Vec<SocketAddr> {
    let usual = peers.split(',').nth(1).unwrap_or_default();
    let words = peers.split(['[', ']', ',']);
    let all = own.split(',').map(str::to_owned).chain(words.map(|word| match word.contains(':') {
        true => word.to_owned(),
        false => format!("{word}:{usual}"),
    }));
    all.filter_map(|word| word.parse().ok()).collect()
}

/// Checks that all nodes that are up are one cluster, and no data move.
fn whole(site: &Site, up: &[usize]) -> Result<(), String> {
    let stable = format!("cluster-stable:size={};ignore-migrations=false", up.len());
    for &place in up {
        let server = &site.nodes()[place].server;
        let (name, address) = (server.name(), server.address());
        let response = info(address, &stable).ok_or_else(|| format!("{name} does not answer"))?;
        if is_key(&response) {
            continue;
        }
        let response = info(address, &format!("namespace/{NAMESPACE}")).unwrap_or_default();
        return Err(match migrations(&response) {
            0 => format!("{name} is not in a cluster of {} that stands still", up.len()),
            left => format!("{name} has {left} partitions left to migrate"),
        });
    }
    Ok(())
}

/// Returns the number of partitions that a node has to send or to get yet, in the statistics of its namespace.
fn migrations(response: &str) -> u64 {
    let left = |field: &str| {
        let value =
            response.split(';').find_map(|pair| pair.strip_prefix(field)?.strip_prefix('='));
        value.and_then(|value| value.parse::<u64>().ok()).unwrap_or(0)
    };
    left("migrate_tx_partitions_remaining") + left("migrate_rx_partitions_remaining")
}

/// Returns true if this is a cluster's key, and not an error.
fn is_key(response: &str) -> bool {
    !response.is_empty() && !response.to_ascii_uppercase().starts_with("ERROR")
}

/// Returns the whole configuration as a node tells it.
fn read_configuration(service: SocketAddr) -> Vec<(String, String)> {
    let contexts = ["context=service", "context=network", "context=namespace;namespace=test"];
    let mut all = Vec::new();
    for context in contexts {
        let response = info(service, &format!("get-config:{context}")).unwrap_or_default();
        let pairs = response.split(';').filter_map(|pair| pair.split_once('='));
        all.extend(pairs.map(|(name, value)| (name.to_owned(), value.to_owned())));
    }
    all
}

/// Asks a node: the info protocol is a head of eight bytes (version 2, type 1, length in 48 bits), and
/// lines of command, tab, and answer.
fn info(service: SocketAddr, command: &str) -> Option<String> {
    let patience = Duration::from_secs(2);
    let mut stream = TcpStream::connect_timeout(&service, patience).ok()?;
    stream.set_read_timeout(Some(patience)).ok()?;
    stream.write_all(&request(command)).ok()?;
    let mut head = [0; 8];
    stream.read_exact(&mut head).ok()?;
    let length = u64::from_be_bytes(head) & 0xffff_ffff_ffff;
    // Some hundred settings are some ten thousand bytes.
    let mut answer = vec![0; usize::try_from(length).ok().filter(|length| *length < 1 << 24)?];
    stream.read_exact(&mut answer).ok()?;
    let answer = String::from_utf8(answer).ok()?;
    let (_, response) = answer.trim_end().split_once('\t')?;
    Some(response.to_owned())
}

/// Returns the bytes that ask for a command's answer.
fn request(command: &str) -> Vec<u8> {
    let head = 2 << 56 | 1 << 48 | (command.len() as u64 + 1);
    [&u64::to_be_bytes(head)[..], command.as_bytes(), b"\n"].concat()
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;
    use crate::request::TestbedRequest;

    fn places(number: u8) -> Places {
        let at = |port| SocketAddr::from(([127, 40, 1, number], port));
        Places { service: at(3000), heartbeat: at(3002), fabric: at(3001) }
    }

    #[test]
    fn the_configuration_is_as_the_vendor_documents_it() {
        let seeds = [places(1).heartbeat, places(2).heartbeat];
        let storage = Storage { replication: 2, expiry: 10, bytes: 1 << 30, in_file: false };
        let folder = Path::new("/tmp/bed/aerospike-2");
        let text = configuration(2, places(2), &seeds, folder, &storage, 15_000);
        let expected = "\
service {
\tcluster-name kvdyno
\tnode-id a2
\tproto-fd-max 15000
\twork-directory /tmp/bed/aerospike-2/work
}
mod-lua {
\tuser-path /tmp/bed/aerospike-2/lua
}
logging {
\tconsole {
\t\tcontext any info
\t}
}
network {
\tservice {
\t\taddress 127.40.1.2
\t\tport 3000
\t\taccess-address 127.40.1.2
\t\tdisable-localhost true
\t}
\theartbeat {
\t\tmode mesh
\t\taddress 127.40.1.2
\t\tport 3002
\t\tmesh-seed-address-port 127.40.1.1 3002
\t\tmesh-seed-address-port 127.40.1.2 3002
\t\tinterval 150
\t\ttimeout 10
\t}
\tfabric {
\t\taddress 127.40.1.2
\t\tport 3001
\t}
}
namespace test {
\treplication-factor 2
\tnsup-period 10
\tstorage-engine memory {
\t\tdata-size 1073741824
\t}
}
";
        assert_eq!(text, expected);
        let storage = Storage { in_file: true, expiry: 0, ..storage };
        let text = configuration(1, places(1), &seeds[..1], folder, &storage, 1024);
        let engine = "\tstorage-engine device {\n\t\tfile /tmp/bed/aerospike-2/records.dat\n\
                      \t\tfilesize 1073741824\n\t}\n";
        assert!(text.contains(engine) && text.contains("\tnsup-period 0\n"), "{text}");
    }

    #[test]
    fn where_clients_are_sent_is_read_from_what_nodes_tell() {
        let at = |host: u8, port: u16| SocketAddr::from(([127, 40, 1, host], port));
        let peers = "2,3000,[[A2,,[127.40.1.2]],[A3,,[127.40.1.3:3100]]]";
        let expected = [at(1, 3000), at(2, 3000), at(3, 3100)];
        assert_eq!(addresses("127.40.1.1:3000", peers), expected);
        assert_eq!(addresses("127.40.1.1:3000", "0,3000,[]"), [at(1, 3000)]);
        let response = "ns_cluster_size=2;migrate_rx_partitions_remaining=7;\
                    migrate_tx_partitions_remaining=12;x=1";
        assert_eq!(migrations(response), 19);
        assert!(is_key("8E3D") && !is_key("ERROR::unstable-cluster") && !is_key(""));
    }

    #[test]
    fn settings_are_checked_and_those_that_differ_are_told() {
        let parsed = |words: &str| TestbedRequest::parse(words).unwrap().settings;
        let error = storage(&parsed("aerospike?memory=100MiB")).err().unwrap().to_string();
        assert!(error.contains("512MiB or more"), "{error}");
        let file = parsed("aerospike:3?storage=file&replication=3&expiry=0");
        let found = storage(&file).unwrap();
        assert!(found.in_file && found.expiry == 0 && found.replication == 3);
        let changed = changed(&file);
        let has = |name: &str, value: &str| {
            changed.iter().any(|(known, found)| known == name && found == value)
        };
        assert!(has("storage-engine", "device") && has("replication-factor", "3"), "{changed:?}");
        assert!(!changed.iter().any(|(name, _)| name == "nsup-period"));
    }

    #[test]
    fn a_node_is_asked_by_the_info_protocol() {
        assert_eq!(request("build"), b"\x02\x01\0\0\0\0\0\x06build\n");
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let node = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut asked = [0; 14];
            stream.read_exact(&mut asked).unwrap();
            stream.write_all(b"\x02\x01\0\0\0\0\0\x0ebuild\t8.1.2.0\n").unwrap();
            asked
        });
        assert_eq!(info(address, "build").as_deref(), Some("8.1.2.0"));
        assert_eq!(node.join().unwrap(), *b"\x02\x01\0\0\0\0\0\x06build\n");
        assert_eq!(info(address, "build"), None, "nobody there");
    }
}

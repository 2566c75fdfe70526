//! The vendor's own test server for Couchbase: Memcached's binary protocol and vBuckets, in one process that
//! plays several servers. It opens its port for HTTP on all interfaces, so it lives in a network
//! namespace of its own, at the other end of a pair of virtual Ethernet devices. That takes root.

mod exchange;

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use serde_json::Value;

use crate::error::TestbedError;
use crate::http;
use crate::install::{JAVA, Software, SoftwareSource};
use crate::java::{JIT, Java};
use crate::kind::{Changes, TestbedKind};
use crate::network::IP;
use crate::proof::Proof;
use crate::role::Role;
use crate::settings::{Setting, Values};
use crate::site::{Served, Site};
use crate::{privilege, process};

/// The test server.
pub static MOCK: Software = Software {
    name: "couchbase-mock",
    version: "1.5.27",
    source: SoftwareSource::Maven {
        artifacts: &["com.couchbase.mock:CouchbaseMock:1.5.27"],
        sums: include_str!("install/sums/couchbase-mock.sha256"),
        prepare: None,
    },
};

/// The cluster that the test server plays.
pub static KIND: TestbedKind = TestbedKind {
    name: "couchbase",
    summary: "the test server of Couchbase's vendor, in memory, in one process that plays several \
              servers; needs root, for a network namespace",
    nodes: 1,
    allowed: 1..=1,
    settings: &[
        Setting {
            name: "servers",
            meaning: "how many servers the process plays (--nodes)",
            values: Values::Count(1, 16),
            default: "2",
        },
        Setting {
            name: "vbuckets",
            meaning: "into how many parts the records are divided (--vbuckets)",
            values: Values::Count(1, 32_768),
            default: "1024",
        },
        Setting {
            name: "memory",
            meaning: "most heap of the JVM (-Xmx)",
            values: Values::Bytes,
            default: "512MiB",
        },
        JIT,
    ],
    software: &[&MOCK, &JAVA, &IP],
    deploy,
    proof: Proof { announced: None, exchange: exchange::on_each_server },
    changes: Changes::NONE,
};

const NODE: &str = "couchbase";
const BUCKET: &str = "/pools/default/buckets/default";

/// Gives the rest of its words a network namespace with one device, linked to one here. Words: name of
/// the link, address here, address there. Devices go when the namespace's last process does.
const INTO_NAMESPACE: &str = r#"
link=$1 here=$2 there=$3; shift 3
exec 9</proc/self/ns/net
ip link del "$link" 2>/dev/null || :
ip link add "$link" type veth peer name "${link}i"
ip addr add "$here" peer "$there" dev "$link"
ip link set "$link" up
unshare -n sh -ec '
  link=$1 here=$2 there=$3; shift 3
  nsenter --net=/proc/self/fd/9 ip link set "${link}i" netns $$
  exec 9<&-
  ip link set lo up
  ip addr add "$there" peer "$here" dev "${link}i"
  ip link set "${link}i" up
  exec "$@"' sh "$link" "$here" "$there" "$@"
"#;

fn deploy(site: &mut Site) -> Result<Served, TestbedError> {
    privilege::linked_network_namespace(
        "testbed couchbase, whose server listens on all interfaces,",
    )?;
    let jar = site.software(&MOCK)?.join("lib/CouchbaseMock-1.5.27.jar");
    let shell = process::look_up("sh").ok_or_else(|| IP.missing(NODE))?;
    site.software(&IP)?;
    // 198.18.0.0/15 is for measurements between devices (RFC 2544); the block is ours alone.
    let [_, a, b, _] = site.ip(1).octets();
    let (here, there) = (Ipv4Addr::new(198, 19, a, b), Ipv4Addr::new(198, 18, a, b));
    let address = SocketAddr::from((there, 8091));
    let heap = format!("{}K", site.settings().bytes("memory").unwrap_or_default() / 1024);
    let (servers, vbuckets) =
        (site.settings().text("servers").to_owned(), site.settings().text("vbuckets").to_owned());
    let folder = site.folder(NODE)?;
    let host = there.to_string();
    let launch = Java::jar(jar)
        .heap("32M", &heap)
        .jit(site.settings().text("jit"))
        .launch(address, &folder)?
        .arguments(["--port", "8091", "--host", &host, "--nodes", &servers])
        .arguments(["--vbuckets", &vbuckets, "--replicas", "0", "--buckets", "default::couchbase"])
        .through(
            shell,
            ["-ec", INTO_NAMESPACE, "sh", &format!("kvd{a}.{b}"), &here.to_string(), &host],
        )
        .ready(|probe| probe.http_status(BUCKET) == Some(200))
        .patience(Duration::from_secs(300));
    site.start(NODE, Some(Role::Peer), launch)?;
    site.serve(NODE)?;
    let changed = [
        ("-Xmx", heap),
        ("--nodes", servers),
        ("--vbuckets", vbuckets),
        ("--replicas", "0".to_owned()),
    ];
    let changed: Vec<_> = changed.map(|(name, value)| (name.to_owned(), value)).to_vec();
    let told = http::request(address, "GET", BUCKET, "").map(|(_, body)| body);
    let told: Value = serde_json::from_str(&told.unwrap_or_default()).unwrap_or_default();
    let mut configuration = changed.clone();
    for name in ["bucketType", "nodeLocator", "replicaNumber"] {
        configuration.push((name.to_owned(), told[name].to_string().trim_matches('"').to_owned()));
    }
    Ok(Served {
        url: format!("couchbase://{address}/default"),
        // It claims to be a Couchbase 9.9.9; this is what it is.
        version: Some("CouchbaseMock 1.5.27".to_owned()),
        configuration,
        changed,
    })
}

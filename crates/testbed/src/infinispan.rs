//! An Infinispan server with one local cache for each of its endpoints: RESP, Memcached, REST.

use std::net::SocketAddr;
use std::time::Duration;

use serde_json::Value;

use crate::certificates::Certificates;
use crate::error::TestbedError;
use crate::http;
use crate::install::{JAVA, Software, SoftwareSource};
use crate::java::{JIT, Java};
use crate::kind::{Changes, TestbedKind};
use crate::proof::Proof;
use crate::redis::exchange::put_and_get;
use crate::role::Role;
use crate::settings::{Setting, Values};
use crate::site::{Served, Site};

/// The server.
pub static INFINISPAN: Software = Software {
    name: "infinispan-server",
    version: "15.2.6.Final",
    source: SoftwareSource::Maven {
        artifacts: &[
            "org.infinispan:infinispan-server-runtime:15.2.6.Final",
            "org.infinispan:infinispan-server-runtime:15.2.6.Final:jar:loader",
        ],
        sums: include_str!("install/sums/infinispan-server.sha256"),
        prepare: None,
    },
};

/// One Infinispan server.
pub static KIND: TestbedKind = TestbedKind {
    name: "infinispan",
    summary: "an Infinispan server with local caches in memory, over RESP, Memcached's protocol or REST",
    nodes: 1,
    allowed: 1..=1,
    settings: &[
        Setting {
            name: "endpoint",
            meaning: "which of its protocols the store URL names; all are served, each with a \
                      cache of its own",
            values: Values::Choice(&["resp", "memcached", "rest"]),
            default: "resp",
        },
        Setting {
            name: "records",
            meaning: "most records of each cache; above it some go (memory max-count)",
            values: Values::Count(1, 1_000_000_000),
            default: "",
        },
        Setting {
            name: "memory",
            meaning: "most heap of the JVM (-Xmx)",
            values: Values::Bytes,
            default: "512MiB",
        },
        Setting {
            name: "tls",
            meaning: "`yes`: REST is served over TLS as well, and the URL of endpoint=rest says so",
            values: Values::Choice(&["no", "yes"]),
            default: "no",
        },
        JIT,
    ],
    software: &[&INFINISPAN, &JAVA],
    deploy,
    proof: Proof { announced: None, exchange },
    changes: Changes::NONE,
};

const NODE: &str = "infinispan";

const LOGGING: &str = r#"<?xml version="1.0" encoding="UTF-8"?>
<Configuration status="WARN">
  <Appenders>
    <Console name="console"><PatternLayout pattern="%d{HH:mm:ss,SSS} %-5p [%c] %m%throwable%n"/></Console>
  </Appenders>
  <Loggers><Root level="INFO"><AppenderRef ref="console"/></Root></Loggers>
</Configuration>
"#;

/// Addresses of the endpoints. REST's serves Hot Rod as well.
struct Endpoints {
    rest: SocketAddr,
    resp: SocketAddr,
    memcached: SocketAddr,
}

/// Endpoint of REST over TLS. The other protocols speak it only where users have passwords.
struct Secure {
    at: SocketAddr,
    files: Certificates,
    /// Key and certificates, as the server wants them.
    keys: String,
}

fn deploy(site: &mut Site) -> Result<Served, TestbedError> {
    let library = site.software(&INFINISPAN)?.join("lib");
    let at = Endpoints {
        rest: site.address(1, 11222)?,
        resp: site.address(1, 11223)?,
        memcached: site.address(1, 11224)?,
    };
    let heap = site.settings().bytes("memory").unwrap_or_default();
    // In KiB, the JVM's smallest unit of a heap that is a whole number of pages.
    let heap = format!("{}K", heap / 1024);
    let records = site.settings().text("records").to_owned();
    site.write(NODE, "server/conf/log4j2.xml", LOGGING)?;
    let secure = secure(site)?;
    let xml = configuration(&at, secure.as_ref(), &records);
    site.write(NODE, "server/conf/infinispan.xml", &xml)?;
    let folder = site.folder(NODE)?;
    let launch = Java::class(&library, "org.infinispan.server.Bootstrap")
        .heap("64M", &heap)
        .jit(site.settings().text("jit"))
        .property("infinispan.server.home.path", &folder.display().to_string())
        .launch(at.rest, &folder)?
        .arguments(["-c", "infinispan.xml"])
        .ready(|probe| {
            probe.log.contains("ISPN080001")
                && probe.http_status("/rest/v2/container/health/status") == Some(200)
        })
        .patience(Duration::from_secs(300));
    site.start(NODE, Some(Role::Peer), launch)?;
    site.serve(NODE)?;
    let mut changed = vec![("-Xmx".to_owned(), heap)];
    changed.push(("encoding.media-type".to_owned(), "application/octet-stream".to_owned()));
    if !records.is_empty() {
        changed.push(("memory.max-count".to_owned(), records));
        changed.push(("memory.when-full".to_owned(), "REMOVE".to_owned()));
    }
    let version = ask(at.rest, "/rest/v2/container")["version"].as_str().map(str::to_owned);
    if secure.is_some() {
        changed.push(("security-realm.server-identities.ssl".to_owned(), "yes".to_owned()));
    }
    Ok(Served {
        url: url(&at, secure.as_ref(), site.settings().text("endpoint")),
        version,
        configuration: read_configuration(at.rest),
        changed,
    })
}

/// Makes the endpoint and the files of TLS, if it is asked for.
fn secure(site: &mut Site) -> Result<Option<Secure>, TestbedError> {
    if site.settings().text("tls") != "yes" {
        return Ok(None);
    }
    let at = site.address(1, 11225)?;
    let files = Certificates::make(&site.folder(NODE)?, at.ip())?;
    let keys = files.in_one_file()?.display().to_string();
    Ok(Some(Secure { at, files, keys }))
}

fn url(at: &Endpoints, secure: Option<&Secure>, endpoint: &str) -> String {
    const PATH: &str = "/rest/v2/caches/bench/{key}?ttl=timeToLiveSeconds";
    match (endpoint, secure) {
        ("memcached", _) => format!("memcached://{}?protocol=text", at.memcached),
        ("rest", None) => format!("rest+http://{}{PATH}", at.rest),
        ("rest", Some(Secure { at, files, .. })) => {
            format!("rest+https://{at}{PATH}&ca={}", files.authority.display())
        }
        _ => format!("redis://{}", at.resp),
    }
}

fn configuration(at: &Endpoints, secure: Option<&Secure>, records: &str) -> String {
    let limit = match records {
        "" => String::new(),
        records => format!(r#"<memory max-count="{records}" when-full="REMOVE"/>"#),
    };
    let cache = |name: &str| {
        format!(
            "    <local-cache name=\"{name}\">\
             <encoding media-type=\"application/octet-stream\"/>{limit}</local-cache>\n"
        )
    };
    let caches = ["bench", "resp", "memc"].map(cache).concat();
    let [rest, resp, memcached] = [at.rest, at.resp, at.memcached].map(|address| address.port());
    let (binding, realm, endpoint) = secure.map(over_tls).unwrap_or_default();
    let ip = at.rest.ip();
    format!(
        r#"<infinispan xmlns="urn:infinispan:config:15.2">
  <cache-container name="default">
{caches}  </cache-container>
  <server xmlns="urn:infinispan:server:15.2">
    <interfaces>
      <interface name="public"><inet-address value="{ip}"/></interface>
    </interfaces>
    <socket-bindings default-interface="public" port-offset="0">
      <socket-binding name="default" port="{rest}"/>
      <socket-binding name="resp" port="{resp}"/>
      <socket-binding name="memc" port="{memcached}"/>
{binding}    </socket-bindings>
{realm}    <endpoints>
      <endpoint socket-binding="default">
        <hotrod-connector/>
        <rest-connector/>
        <resp-connector cache="resp" socket-binding="resp"/>
        <memcached-connector cache="memc" socket-binding="memc"/>
      </endpoint>
{endpoint}    </endpoints>
  </server>
</infinispan>
"#
    )
}

/// Returns binding, realm and endpoint of TLS. The realm has a certificate and no users: nobody has to log in.
/// The server wants a password of the keys, which these do not have.
fn over_tls(secure: &Secure) -> (String, String, String) {
    let Secure { at, keys, .. } = secure;
    let port = at.port();
    let binding = format!("      <socket-binding name=\"secure\" port=\"{port}\"/>\n");
    let realm = format!(
        r#"    <security><security-realms><security-realm name="secure">
      <server-identities><ssl><keystore path="{keys}" password="none"/></ssl></server-identities>
    </security-realm></security-realms></security>
"#
    );
    let endpoint = r#"      <endpoint socket-binding="secure" security-realm="secure">
        <rest-connector name="secure"/>
      </endpoint>
"#;
    (binding, realm, endpoint.to_owned())
}

/// Puts and gets over REST, and over the protocol that clients speak unless they are told otherwise.
fn exchange(site: &Site, place: usize, key: &str) -> Result<(), String> {
    let rest = site.nodes()[place].server.address();
    http::put_and_get(rest, &format!("/rest/v2/caches/bench/{key}"))?;
    let file = site.root().join(NODE).join("server/conf/infinispan.xml");
    let text = std::fs::read_to_string(file).map_err(|error| error.to_string())?;
    let port = text.split("name=\"resp\" port=\"").nth(1).and_then(|rest| rest.split('"').next());
    let port = port.and_then(|port| port.parse().ok()).ok_or("its RESP port is not known")?;
    put_and_get(SocketAddr::new(rest.ip(), port), key)
}

fn ask(server: SocketAddr, path: &str) -> Value {
    let body = http::request(server, "GET", path, "").map(|(_, body)| body);
    serde_json::from_str(&body.unwrap_or_default()).unwrap_or_default()
}

/// Returns the configuration of the container and of each cache, as the server tells it.
fn read_configuration(server: SocketAddr) -> Vec<(String, String)> {
    let mut out = Vec::new();
    flatten("", &ask(server, "/rest/v2/container/config"), &mut out);
    for cache in ["bench", "resp", "memc"] {
        flatten(
            "caches",
            &ask(server, &format!("/rest/v2/caches/{cache}?action=config")),
            &mut out,
        );
    }
    out
}

/// Adds each value of a document under the names that lead to it, with dots between them.
fn flatten(above: &str, value: &Value, out: &mut Vec<(String, String)>) {
    let join = |name: &str| match above {
        "" => name.to_owned(),
        above => format!("{above}.{name}"),
    };
    match value {
        Value::Object(fields) => {
            fields.iter().for_each(|(name, value)| flatten(&join(name), value, out));
        }
        Value::Array(items) => items
            .iter()
            .enumerate()
            .for_each(|(at, value)| flatten(&join(&at.to_string()), value, out)),
        Value::String(text) => out.push((above.to_owned(), text.clone())),
        Value::Null => {}
        other => out.push((above.to_owned(), other.to_string())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_becomes_names_and_values() {
        let document = serde_json::json!({"a": {"b": "x", "c": [1, {"d": true}]}, "e": null});
        let mut out = Vec::new();
        flatten("", &document, &mut out);
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        assert_eq!(out, [pair("a.b", "x"), pair("a.c.0", "1"), pair("a.c.1.d", "true")]);
    }
}

//! An Infinispan server with one local cache for each of its endpoints: RESP, Memcached, REST.

use std::net::SocketAddr;
use std::time::Duration;

use serde_json::Value;

use crate::certificates::Certificates;
use crate::error::TestbedError;
use crate::http;
use crate::install::{Software, Source};
use crate::java::{JAVA, JIT, Java};
use crate::kind::{Changes, Kind, Role, Setting, Values};
use crate::site::{Served, Site};

/// The server.
pub static INFINISPAN: Software = Software {
    name: "infinispan-server",
    version: "15.2.6.Final",
    source: Source::Maven {
        artifacts: &[
            "org.infinispan:infinispan-server-runtime:15.2.6.Final",
            "org.infinispan:infinispan-server-runtime:15.2.6.Final:jar:loader",
        ],
        sums: include_str!("install/sums/infinispan-server.sha256"),
        prepare: None,
    },
};

/// One Infinispan server.
pub static KIND: Kind = Kind {
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
            meaning: "`yes`: clients may speak TLS, and the URL says so",
            values: Values::Choice(&["no", "yes"]),
            default: "no",
        },
        JIT,
    ],
    software: &[&INFINISPAN, &JAVA],
    deploy,
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

/// Where each endpoint listens. REST's serves Hot Rod as well.
struct Endpoints {
    rest: SocketAddr,
    resp: SocketAddr,
    memcached: SocketAddr,
}

/// The same endpoints once more, over TLS.
struct Secure {
    at: Endpoints,
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
    let heap = site.request().bytes("memory").unwrap_or_default();
    // In KiB, the JVM's smallest unit of a heap that is a whole number of pages.
    let heap = format!("{}K", heap / 1024);
    let records = site.request().text("records").to_owned();
    site.write(NODE, "server/conf/log4j2.xml", LOGGING)?;
    let secure = secure(site)?;
    let xml = configuration(&at, secure.as_ref(), &records);
    site.write(NODE, "server/conf/infinispan.xml", &xml)?;
    let home = site.folder(NODE)?.display().to_string();
    let launch = Java::class(&library, "org.infinispan.server.Bootstrap")
        .heap("64M", &heap)
        .jit(site.request().text("jit"))
        .property("infinispan.server.home.path", &home)
        // Native libraries are unpacked there, and go away with the testbed.
        .property("java.io.tmpdir", &home)
        .launch(at.rest)?
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
        url: url(&at, secure.as_ref(), site.request().text("endpoint")),
        version,
        configuration: told(at.rest),
        changed,
    })
}

/// What serves TLS, if that is asked for.
fn secure(site: &mut Site) -> Result<Option<Secure>, TestbedError> {
    if site.request().text("tls") != "yes" {
        return Ok(None);
    }
    let at = Endpoints {
        rest: site.address(1, 11322)?,
        resp: site.address(1, 11323)?,
        memcached: site.address(1, 11324)?,
    };
    let files = Certificates::make(&site.folder(NODE)?, at.rest.ip())?;
    let keys = files.in_one_file()?.display().to_string();
    Ok(Some(Secure { at, files, keys }))
}

fn url(at: &Endpoints, secure: Option<&Secure>, endpoint: &str) -> String {
    let (at, s, authority) = match secure {
        Some(secure) => (&secure.at, "s", format!("ca={}", secure.files.authority.display())),
        None => (at, "", String::new()),
    };
    let (first, next) = match secure {
        Some(_) => ("?", "&"),
        None => ("", ""),
    };
    match endpoint {
        "memcached" => format!("memcached{s}://{}?protocol=text{next}{authority}", at.memcached),
        "rest" => {
            let rest = at.rest;
            format!(
                "rest+http{s}://{rest}/rest/v2/caches/bench/{{key}}?ttl=timeToLiveSeconds{next}\
                 {authority}"
            )
        }
        _ => format!("redis{s}://{}{first}{authority}", at.resp),
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
    let (bench, resp, memc) = (cache("bench"), cache("resp"), cache("memc"));
    let bindings = bindings("", at) + &secure.map_or(String::new(), |s| bindings("secure-", &s.at));
    let endpoints = endpoint("", "")
        + &secure.map_or(String::new(), |_| endpoint("secure-", r#" security-realm="secure""#));
    let realm = secure.map_or(String::new(), |secure| realm(&secure.keys));
    let ip = at.rest.ip();
    format!(
        r#"<infinispan xmlns="urn:infinispan:config:15.2">
  <cache-container name="default">
{bench}{resp}{memc}  </cache-container>
  <server xmlns="urn:infinispan:server:15.2">
    <interfaces>
      <interface name="public"><inet-address value="{ip}"/></interface>
    </interfaces>
    <socket-bindings default-interface="public" port-offset="0">
{bindings}    </socket-bindings>
{realm}    <endpoints>
{endpoints}    </endpoints>
  </server>
</infinispan>
"#
    )
}

fn bindings(prefix: &str, at: &Endpoints) -> String {
    let binding = |(name, at): (&str, SocketAddr)| {
        format!("      <socket-binding name=\"{prefix}{name}\" port=\"{}\"/>\n", at.port())
    };
    [("default", at.rest), ("resp", at.resp), ("memc", at.memcached)].map(binding).concat()
}

/// All protocols at the bindings of this prefix.
fn endpoint(prefix: &str, security: &str) -> String {
    format!(
        r#"      <endpoint socket-binding="{prefix}default"{security}>
        <hotrod-connector name="{prefix}hotrod"/>
        <rest-connector name="{prefix}rest"/>
        <resp-connector name="{prefix}resp" cache="resp" socket-binding="{prefix}resp"/>
        <memcached-connector name="{prefix}memc" cache="memc" socket-binding="{prefix}memc"/>
      </endpoint>
"#
    )
}

/// A realm of a certificate alone: nobody has to log in.
fn realm(keys: &str) -> String {
    format!(
        r#"    <security><security-realms><security-realm name="secure">
      <server-identities><ssl><keystore path="{keys}"/></ssl></server-identities>
    </security-realm></security-realms></security>
"#
    )
}

fn ask(server: SocketAddr, path: &str) -> Value {
    let body = http::request(server, "GET", path, "").map(|(_, body)| body);
    serde_json::from_str(&body.unwrap_or_default()).unwrap_or_default()
}

/// The configuration of the container and of each cache, as the server tells it.
fn told(server: SocketAddr) -> Vec<(String, String)> {
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

/// Each value of a document under the names that lead to it, with dots between them.
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

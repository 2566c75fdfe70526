//! The Ehcache server: a cache of Ehcache behind REST, a web application that Jetty runs. Its release
//! of 2010 was made for Java 5, so what a newer Java cannot load is taken out of it.

use std::fs;
use std::io;
use std::path::Path;
use std::time::Duration;

use crate::error::TestbedError;
use crate::http;
use crate::install::{JAVA, Software, SoftwareSource};
use crate::java::{JIT, Java};
use crate::kind::{Changes, TestbedKind};
use crate::process;
use crate::proof::Proof;
use crate::role::Role;
use crate::settings::{Setting, Values};
use crate::site::{Served, Site};

/// The web application, unpacked in the folder `war`, and Jetty.
pub static EHCACHE: Software = Software {
    name: "ehcache-server",
    version: "1.0.0",
    source: SoftwareSource::Maven {
        artifacts: &[
            "net.sf.ehcache:ehcache-server:1.0.0:war",
            "org.eclipse.jetty:jetty-runner:9.4.58.v20250814",
            "org.slf4j:slf4j-nop:1.5.8",
            "javax.xml.bind:jaxb-api:2.1",
        ],
        sums: include_str!("install/sums/ehcache-server.sha256"),
        prepare: Some(prepare),
    },
};

/// Unpacks the web application.
static UNZIP: Software = Software::of_debian("unzip", &["unzip"]);

/// One Ehcache server.
pub static KIND: TestbedKind = TestbedKind {
    name: "ehcache",
    summary: "the Ehcache server, over REST: a cache in memory, behind Jetty",
    nodes: 1,
    allowed: 1..=1,
    settings: &[
        Setting {
            name: "records",
            meaning: "most records; above it the least recently used go (maxElementsInMemory)",
            values: Values::Count(1, 1_000_000_000),
            default: "1000000",
        },
        Setting {
            name: "memory",
            meaning: "most heap of the JVM (-Xmx)",
            values: Values::Bytes,
            default: "512MiB",
        },
        JIT,
    ],
    software: &[&EHCACHE, &UNZIP, &JAVA],
    deploy,
    proof: Proof { announced: None, exchange },
    changes: Changes::NONE,
};

/// Parts of the names of jars that only the SOAP half and Terracotta need, or that newer servers refuse.
const USELESS: [&str; 11] = [
    "jaxws-",
    "xws-security",
    "saaj-",
    "mail-",
    "wstx",
    "streambuffer",
    "stax-ex",
    "mimepull",
    "resolver",
    "ehcache-terracotta",
    // Its place is taken by version 2.1.
    "jaxb-api-2.0",
];

/// Description of the application without its SOAP half.
const WEB_XML: &str = r#"<?xml version="1.0" encoding="UTF-8"?>
<web-app xmlns="http://java.sun.com/xml/ns/javaee" version="2.5" metadata-complete="true">
  <servlet>
    <servlet-name>rest</servlet-name>
    <servlet-class>com.sun.jersey.spi.container.servlet.ServletContainer</servlet-class>
    <init-param>
      <param-name>com.sun.jersey.config.property.resourceConfigClass</param-name>
      <param-value>com.sun.jersey.api.core.PackagesResourceConfig</param-value>
    </init-param>
    <init-param>
      <param-name>com.sun.jersey.config.property.packages</param-name>
      <param-value>net.sf.ehcache.server.rest.resources</param-value>
    </init-param>
    <load-on-startup>1</load-on-startup>
  </servlet>
  <servlet-mapping>
    <servlet-name>rest</servlet-name>
    <url-pattern>/rest/*</url-pattern>
  </servlet-mapping>
  <listener>
    <listener-class>net.sf.ehcache.server.ServerContext</listener-class>
  </listener>
</web-app>
"#;

/// Unpacks the application and makes it fit for today's Java.
fn prepare(folder: &Path) -> io::Result<()> {
    let (library, war) = (folder.join("lib"), folder.join("war"));
    let unzip = process::look_up("unzip").ok_or(io::ErrorKind::NotFound)?;
    let packed = library.join("ehcache-server-1.0.0.war").display().to_string();
    process::run(&unzip, ["-q", &packed, "-d", &war.display().to_string()])
        .map_err(|error| io::Error::other(error.to_string()))?;
    let inside = war.join("WEB-INF");
    let remove = |folder: &Path, useless: &dyn Fn(&str) -> bool| -> io::Result<()> {
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            if useless(&entry.file_name().to_string_lossy()) {
                fs::remove_file(entry.path())?;
            }
        }
        Ok(())
    };
    remove(&inside, &|name| name == "jetty-web.xml" || name.starts_with("sun-"))?;
    remove(&inside.join("lib"), &|name| USELESS.iter().any(|start| name.starts_with(start)))?;
    for jar in ["slf4j-nop-1.5.8.jar", "jaxb-api-2.1.jar"] {
        fs::copy(library.join(jar), inside.join("lib").join(jar))?;
    }
    // Each testbed brings a configuration of its own; the one in here would hide it, and multicasts.
    fs::remove_file(inside.join("classes/ehcache.xml"))?;
    fs::write(inside.join("web.xml"), WEB_XML)?;
    // Jetty's runner holds all that the other jars do.
    remove(&library, &|name| !name.starts_with("jetty-runner-"))
}

fn deploy(site: &mut Site) -> Result<Served, TestbedError> {
    const NODE: &str = "ehcache";
    let software = site.software(&EHCACHE)?;
    let address = site.address(1, 8080)?;
    let (records, heap) =
        (site.settings().text("records").to_owned(), site.settings().bytes("memory"));
    // In KiB, the JVM's smallest unit of a heap that is a whole number of pages.
    let heap = format!("{}K", heap.unwrap_or_default() / 1024);
    let folder = site.folder(NODE)?;
    let cache = format!(r#"maxElementsInMemory="{records}" eternal="true" overflowToDisk="false""#);
    let config = format!(
        "<ehcache updateCheck=\"false\">\n  <defaultCache {cache}/>\n  \
         <cache name=\"bench\" {cache}/>\n</ehcache>\n"
    );
    let classes = site.write(NODE, "classes/ehcache.xml", &config)?;
    let host = address.ip().to_string();
    let launch = Java::jar(software.join("lib/jetty-runner-9.4.58.v20250814.jar"))
        .heap("32M", &heap)
        .jit(site.settings().text("jit"))
        .opens(&["java.base/java.lang"])
        .launch(address, &folder)?
        .arguments(["--host", &host, "--port", &address.port().to_string(), "--classes"])
        .arguments([classes.parent().unwrap_or(&folder)])
        .arguments(["--path", "/ehcache"])
        .arguments([software.join("war")])
        .ready(|probe| probe.http_status("/ehcache/rest/bench") == Some(200))
        .patience(Duration::from_secs(300));
    site.start(NODE, Some(Role::Peer), launch)?;
    site.serve(NODE)?;
    let (_, told) = http::request(address, "GET", "/ehcache/rest/bench", "").unwrap_or_default();
    Ok(Served {
        url: format!(
            "rest+http://{address}/ehcache/rest/bench/{{key}}?ttl=ehcacheTimeToLiveSeconds"
        ),
        // The server tells no version: these are the pinned application and the Ehcache in it.
        version: Some("1.0.0, Ehcache 2.3.1".to_owned()),
        configuration: elements(&told),
        changed: [
            ("-Xmx", heap.as_str()),
            ("maxElementsInMemory", records.as_str()),
            ("eternal", "true"),
            ("overflowToDisk", "false"),
            ("updateCheck", "false"),
        ]
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .to_vec(),
    })
}

fn exchange(site: &Site, place: usize, key: &str) -> Result<(), String> {
    let address = site.nodes()[place].server.address();
    http::put_and_get(address, &format!("/ehcache/rest/bench/{key}"))
}

/// Returns the settings in the server's description of a cache: elements of XML that hold text only.
fn elements(description: &str) -> Vec<(String, String)> {
    let inside = description.split("<cacheConfiguration>").nth(1).unwrap_or_default();
    let inside = inside.split("</cacheConfiguration>").next().unwrap_or_default();
    let pairs = inside.split('<').filter_map(|piece| piece.split_once('>'));
    let pairs = pairs.filter(|(name, _)| !name.starts_with('/'));
    pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_settings_of_a_cache_are_found_in_its_description() {
        let told = "<?xml version=\"1.0\"?><cache><cacheConfiguration><eternal>true</eternal>\
                    <maxElementsInMemory>7</maxElementsInMemory></cacheConfiguration>\
                    <description>[ x = 1 ]</description></cache>";
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        assert_eq!(elements(told), [pair("eternal", "true"), pair("maxElementsInMemory", "7")]);
        assert!(elements("").is_empty());
    }
}

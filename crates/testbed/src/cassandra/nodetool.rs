//! Cassandra's own tool, which its jars hold, over JMX. Each node listens for it on loopback, as
//! Cassandra's start script has it.

use std::net::{Ipv4Addr, TcpListener};

use super::{CASSANDRA, EXPORTS, OPENS};
use crate::error::TestbedError;
use crate::java::Java;
use crate::site::Site;

/// File in a node's folder that holds the number of its port.
const PORT: &str = "jmx.port";
/// Ports for JMX begin here, below those that the system gives to connections by itself.
const FIRST: u16 = 10_000;
const COUNT: u16 = 20_000;

/// Chooses a port for a node, kept in its folder. All nodes share the loopback address here, and so do those of
/// other testbeds: each testbed begins at another number.
///
/// # Errors
/// [`TestbedError::System`] if the number cannot be kept.
pub fn choose_port(site: &Site, node: &str, number: u16) -> Result<u16, TestbedError> {
    let [_, a, b, _] = site.ip(1).octets();
    let begin = u16::from_be_bytes([a, b]).wrapping_mul(13).wrapping_add(number) % COUNT;
    let ports = (0..COUNT).map(|step| FIRST + (begin + step) % COUNT);
    let is_free = |port: &u16| TcpListener::bind((Ipv4Addr::LOCALHOST, *port)).is_ok();
    let port = ports.into_iter().find(is_free).unwrap_or(FIRST);
    site.write(node, PORT, &port.to_string())?;
    Ok(port)
}

/// Runs the tool on a node, by its number from 0; returns what it printed.
///
/// # Errors
/// [`TestbedError::Refused`] with the last of its words if it fails.
pub fn run(site: &Site, index: usize, words: &[&str]) -> Result<String, TestbedError> {
    let library = site.software(&CASSANDRA)?.join("lib");
    let server = &site.nodes()[index].server;
    let port = std::fs::read_to_string(server.folder().join(PORT))
        .map_err(TestbedError::system("find the JMX port of", server.name()))?;
    let mut tool = Java::class(&library, "org.apache.cassandra.tools.NodeTool")
        .heap("32M", "128M")
        .jit("quick")
        // It keeps a history of what it was told.
        .property("user.home", &server.folder().display().to_string())
        .property(
            "logback.configurationFile",
            &server.folder().join("logback.xml").display().to_string(),
        )
        .opens(&OPENS)
        .exports(&EXPORTS)
        .command()?;
    tool.args(["-h", "127.0.0.1", "-p", port.trim()]).args(words);
    server.run_beside(tool)
}

/// Has nodes write what they have in memory to disk and merge all their tables, one after the other:
/// each takes a JVM to be told.
///
/// # Errors
/// See [`run`].
pub fn compact(site: &Site, nodes: &[usize]) -> Result<(), TestbedError> {
    nodes.iter().try_for_each(|&index| {
        run(site, index, &["flush"])?;
        run(site, index, &["compact"]).map(drop)
    })
}

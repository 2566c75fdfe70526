//! A network of a testbed's own: each node in a network namespace of its own, the clients in another,
//! all on one bridge in a third. There is no way out of it, so faults of the network reach nobody else.
//! No namespace has a name: each lasts as long as the keeper holds it open or a process is in it, and
//! takes its devices and rules with it when the keeper ends, however it ends.
//!
//! The keeper asks its servers over the bridge's own address, to which no rule applies: so it still knows the role of each
//! when a node is cut off.

mod delay;
mod trouble;

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::os::fd::{AsFd, AsRawFd};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use kvdyno_core::workload::fault::Trouble;
use rustix::thread::{LinkNameSpaceType, UnshareFlags, move_into_link_name_space, unshare_unsafe};
use serde::{Deserialize, Serialize};

use crate::error::TestbedError;
use crate::install::Software;
use crate::{privilege, process};

/// Tool that makes devices and addresses.
pub(crate) static IP: Software = Software::of_debian("ip", &["iproute2"]);

/// Tool that drops packets.
static NFT: Software = Software::of_debian("nft", &["nftables"]);

/// Tool that limits bandwidth. It comes with `ip`.
static TC: Software = Software::of_debian("tc", &["iproute2"]);

/// Software that a network of a testbed's own needs. `kvdyno testbed install network` installs it.
pub static NETWORK_SOFTWARE: [&Software; 3] = [&IP, &NFT, &TC];
/// Name of this software for `kvdyno testbed install`.
pub const NETWORK: &str = "network";

/// Name of the bridge.
const BRIDGE: &str = "kvdyno";
/// Name of each node's device, in its own namespace.
const DEVICE: &str = "eth0";
/// Numbers of the clients' address and of the bridge's own.
const CLIENTS: u16 = 254;
const HUB: u16 = 253;

/// A network namespace that is held open.
pub type Namespace = Arc<File>;

/// Place of the clients in a testbed's own network.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OwnNetwork {
    /// The namespace of the clients, as setns(2) and nsenter(1) take it. It is there as long as the
    /// testbed is.
    pub clients: PathBuf,
    /// The clients' address.
    pub address: Ipv4Addr,
}

/// The network of a testbed.
#[derive(Debug)]
pub struct Network {
    /// Namespace that this thread was in before.
    outside: Namespace,
    hub: Namespace,
    clients: Namespace,
    nodes: BTreeMap<u16, Namespace>,
    troubles: Vec<(u16, Trouble)>,
    delays: BTreeMap<u16, delay::DelayLine>,
    given: Vec<SocketAddr>,
}

impl Network {
    /// Makes the bridge and the clients' side. The calling thread, and what it starts from now on, is at
    /// the bridge until this is dropped.
    ///
    /// # Errors
    /// [`TestbedError::Node`] without root, [`TestbedError::NotInstalled`] if a tool is missing.
    pub fn make() -> Result<Network, TestbedError> {
        Network::possible()?;
        let system = |error| TestbedError::System {
            what: "a network namespace".to_owned(),
            action: "make",
            error,
        };
        let outside = here().map_err(system)?;
        let (hub, clients) = (namespace().map_err(system)?, namespace().map_err(system)?);
        enter(&hub).map_err(system)?;
        let network = Network {
            outside,
            hub,
            clients,
            nodes: BTreeMap::new(),
            troubles: Vec::new(),
            delays: BTreeMap::new(),
            given: Vec::new(),
        };
        let address = ip(HUB);
        network.at_hub(&format!(
            "ip link set lo up; ip link add {BRIDGE} type bridge; ip addr add {address}/24 dev {BRIDGE}; \
             ip link set {BRIDGE} addrgenmode none up; \
             echo 0 2>&- >/proc/sys/net/bridge/bridge-nf-call-iptables || :"
        ))?;
        network.attach(CLIENTS, &network.clients)?;
        Ok(network)
    }

    /// Checks that a network can be made here, without making anything.
    ///
    /// # Errors
    /// See [`Network::make`].
    pub fn possible() -> Result<(), TestbedError> {
        privilege::network_namespace("a network of the testbed's own (`network=own`)")?;
        let missing = NETWORK_SOFTWARE.iter().find(|software| software.find().is_none());
        missing.map_or(Ok(()), |software| Err(software.missing(NETWORK)))
    }

    /// Returns address number `node`, from 1.
    #[must_use]
    pub fn ip(&self, node: u16) -> Ipv4Addr {
        ip(node)
    }

    /// Returns the first port from `usual` on of address number `node` that was not given before.
    pub fn socket(&mut self, node: u16, usual: u16) -> SocketAddr {
        let ports = (usual..=u16::MAX).map(|port| SocketAddr::from((ip(node), port)));
        let free = ports.into_iter().find(|address| !self.given.contains(address));
        let address = free.unwrap_or_else(|| SocketAddr::from((ip(node), usual)));
        self.given.push(address);
        address
    }

    /// Returns the namespace of the node at this address, which is put on the bridge when it is first asked for.
    ///
    /// # Errors
    /// [`TestbedError`] if the system refuses.
    pub fn of(&mut self, address: IpAddr) -> Result<Namespace, TestbedError> {
        let number = number(address)?;
        if let Some(known) = self.nodes.get(&number) {
            return Ok(Arc::clone(known));
        }
        let made = namespace().map_err(TestbedError::system("make", "a network namespace"))?;
        self.attach(number, &made)?;
        self.nodes.insert(number, Arc::clone(&made));
        Ok(made)
    }

    /// Returns the place of the clients' side.
    #[must_use]
    pub fn clients(&self) -> OwnNetwork {
        let (pid, file) = (process::own_visible_pid(), self.clients.as_raw_fd());
        OwnNetwork { clients: format!("/proc/{pid}/fd/{file}").into(), address: ip(CLIENTS) }
    }

    /// Links a namespace with the bridge.
    fn attach(&self, number: u16, namespace: &Namespace) -> Result<(), TestbedError> {
        let (port, address) = (port(number), ip(number));
        let there = format!("/proc/{}/fd/{}", process::own_visible_pid(), namespace.as_raw_fd());
        self.at_hub(&format!(
            "ip link add {port} type veth peer name {DEVICE} netns {there}; \
             ip link set {port} master {BRIDGE} addrgenmode none up"
        ))?;
        // Packets may come back another way than they would go, see `delay`.
        in_namespace(
            namespace,
            &format!(
                "ip link set lo up; ip link set {DEVICE} addrgenmode none; \
                 ip addr add {address}/24 dev {DEVICE}; ip link set {DEVICE} up; \
                 for file in all {DEVICE}; do echo 0 >/proc/sys/net/ipv4/conf/$file/rp_filter; done"
            ),
        )
    }

    fn at_hub(&self, script: &str) -> Result<(), TestbedError> {
        in_namespace(&self.hub, script)
    }

    fn node(&self, number: u16) -> Result<&Namespace, TestbedError> {
        let missing = || TestbedError::Node(format!("{} is no node's address", ip(number)));
        self.nodes.get(&number).ok_or_else(missing)
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        // What is left goes with its namespaces; a thread that cannot go back is at its end anyway.
        let _ = enter(&self.outside);
    }
}

/// Guard that keeps the calling thread, and what it starts from now on, among a testbed's clients until it is dropped.
#[derive(Debug)]
pub struct AmongClients {
    before: Namespace,
}

impl AmongClients {
    /// Enters the clients' side of a testbed's network.
    ///
    /// # Errors
    /// The system's error.
    pub fn enter(network: &OwnNetwork) -> io::Result<AmongClients> {
        let before = here()?;
        enter(&File::open(&network.clients)?)?;
        Ok(AmongClients { before })
    }
}

impl Drop for AmongClients {
    fn drop(&mut self) {
        // What it came from is still there: it is held open.
        let _ = enter(&self.before);
    }
}

/// Returns an address of 198.18.0.0/15, which is for measurements between devices (RFC 2544). Every testbed has all of it to
/// itself.
fn ip(number: u16) -> Ipv4Addr {
    Ipv4Addr::new(198, 18, 0, number as u8)
}

fn number(address: IpAddr) -> Result<u16, TestbedError> {
    match address {
        IpAddr::V4(address) if address == ip(u16::from(address.octets()[3])) => {
            Ok(u16::from(address.octets()[3]))
        }
        _ => Err(TestbedError::Node(format!("{address} is not of the testbed's own network"))),
    }
}

/// Returns the name of the bridge's end of a node's link.
fn port(number: u16) -> String {
    format!("n{number}")
}

/// Returns the network namespace of the calling thread.
fn here() -> io::Result<Namespace> {
    File::open("/proc/thread-self/ns/net").map(Arc::new)
}

/// Returns a new namespace, made by a thread that ends at once.
fn namespace() -> io::Result<Namespace> {
    let made = std::thread::spawn(|| {
        // SAFETY: descriptors stay shared; only the network is the calling thread's own.
        unsafe { unshare_unsafe(UnshareFlags::NEWNET) }?;
        here()
    });
    made.join().unwrap_or_else(|_| Err(io::Error::other("a thread ended early")))
}

fn enter(namespace: &File) -> io::Result<()> {
    Ok(move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network))?)
}

/// Has a command run in a namespace.
pub(crate) fn run_within(command: &mut Command, namespace: &Namespace) {
    use std::os::unix::process::CommandExt;
    let namespace = Arc::clone(namespace);
    // SAFETY: between fork and exec this makes one system call and builds an error from a number.
    unsafe { command.pre_exec(move || enter(&namespace)) };
}

/// Runs a line of shell in a namespace; the first word that fails ends it.
fn in_namespace(namespace: &Namespace, script: &str) -> Result<(), TestbedError> {
    run(namespace, Path::new("sh"), ["-ec", script])
}

fn run<A: AsRef<OsStr>>(
    namespace: &Namespace,
    program: &Path,
    arguments: impl IntoIterator<Item = A>,
) -> Result<(), TestbedError> {
    let mut command = Command::new(program);
    command.args(arguments);
    // The tools are in the system's own folders, which a user's search path may lack.
    let path = std::env::var("PATH").unwrap_or_default();
    command.env("PATH", format!("{path}:/usr/local/sbin:/usr/sbin:/sbin"));
    run_within(&mut command, namespace);
    process::run_command(&mut command).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_and_numbers_belong_together() {
        for node in [1, 9, 252] {
            assert_eq!(number(IpAddr::V4(ip(node))).unwrap(), node);
        }
        assert!(number("127.0.0.1".parse().unwrap()).is_err());
        assert!(number("198.18.1.1".parse().unwrap()).is_err());
    }
}

//! Processes of this machine that listen at an address. Such a process is a server of the run even if kvdyno has not
//! started it, and so none of the other programs that disturb a measurement.

use std::collections::BTreeSet;
use std::fs::{read_dir, read_link, read_to_string};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};

/// State of a socket that listens, in /proc/net/tcp.
const LISTENS: &str = "0A";
/// Programs that pass connections on: the server is another process, which may be on this machine or not.
const PROXIES: [&str; 10] = [
    "docker-proxy",
    "envoy",
    "haproxy",
    "kubectl",
    "nginx",
    "nutcracker",
    "rootlesskit",
    "slirp4netns",
    "socat",
    "ssh",
];

/// Returns number and name of every process that serves one of `addresses` on this machine. `None` if one of these is
/// an address of this machine and the process that serves there is not known.
#[must_use]
pub fn servers_at(addresses: &[SocketAddr]) -> Option<Vec<(u32, String)>> {
    let mut found: Vec<(u32, String)> = Vec::new();
    for address in addresses.iter().filter(|address| is_of_this_machine(address.ip())) {
        let listeners = listeners_at(*address);
        if listeners.is_empty() {
            return None;
        }
        for pid in listeners {
            let name = read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
            let name = name.trim().to_owned();
            if PROXIES.contains(&name.as_str()) {
                return None;
            }
            if found.iter().all(|(known, _)| *known != pid) {
                found.push((pid, name));
            }
        }
    }
    Some(found)
}

/// Returns true if `ip` is an address of this machine: only to such a one it can bind a socket.
fn is_of_this_machine(ip: IpAddr) -> bool {
    ip.is_loopback() || UdpSocket::bind((ip, 0)).is_ok()
}

fn listeners_at(address: SocketAddr) -> Vec<u32> {
    let tables = ["/proc/net/tcp", "/proc/net/tcp6"];
    let sockets: BTreeSet<String> = tables
        .iter()
        .flat_map(|table| sockets_at(&read_to_string(table).unwrap_or_default(), address))
        .map(|inode| format!("socket:[{inode}]"))
        .collect();
    if sockets.is_empty() {
        return Vec::new();
    }
    let processes = read_dir("/proc").into_iter().flatten().flatten();
    let numbers = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    numbers.filter(|pid| holds(*pid, &sockets)).collect()
}

/// Returns true if the process has one of these sockets open. Processes of other users are not looked into.
fn holds(pid: u32, sockets: &BTreeSet<String>) -> bool {
    let files = read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
    files
        .filter_map(|file| read_link(file.path()).ok())
        .any(|link| link.to_str().is_some_and(|link| sockets.contains(link)))
}

/// Returns the inodes of the sockets that listen at `address`, or at its port on all addresses.
fn sockets_at(table: &str, address: SocketAddr) -> Vec<u64> {
    let listens = |line: &str| {
        let mut fields = line.split_ascii_whitespace().skip(1);
        let (local, _, state) = (fields.next()?, fields.next()?, fields.next()?);
        let inode = fields.nth(5)?.parse().ok()?;
        let local = socket_address(local)?;
        let here = local.ip().is_unspecified() || local.ip().to_canonical() == address.ip();
        (state == LISTENS && here && local.port() == address.port()).then_some(inode)
    };
    table.lines().filter_map(listens).collect()
}

/// Parses an address such as `0100007F:1F90`: words of 32 bits in the machine's order of bytes, and the port.
fn socket_address(text: &str) -> Option<SocketAddr> {
    let (ip, port) = text.split_once(':')?;
    let port = u16::from_str_radix(port, 16).ok()?;
    let mut bytes = Vec::with_capacity(16);
    for at in (0..ip.len()).step_by(8) {
        let word = u32::from_str_radix(ip.get(at..at + 8)?, 16).ok()?;
        bytes.extend_from_slice(&word.to_ne_bytes());
    }
    let ip = match bytes.len() {
        4 => IpAddr::from(Ipv4Addr::from(<[u8; 4]>::try_from(bytes).ok()?)),
        16 => IpAddr::from(Ipv6Addr::from(<[u8; 16]>::try_from(bytes).ok()?)),
        _ => return None,
    };
    Some(SocketAddr::new(ip, port))
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn a_table_of_the_kernel_is_read() {
        let table = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n\
             \u{20}  0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 77 1 x\n\
             \u{20}  1: 0100007F:1F90 0100007F:9999 01 00000000:00000000 00:00000000 00000000     0        0 78 1 x\n\
             \u{20}  2: 00000000:1F91 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 79 1 x\n";
        let at = |address: &str| sockets_at(table, address.parse().unwrap());
        assert_eq!(at("127.0.0.1:8080"), [77]);
        assert_eq!(at("127.0.0.2:8080"), [0_u64; 0]);
        assert_eq!(at("10.0.0.9:8081"), [79]);
        let six = "0: 00000000000000000000000001000000:1F90 0:0 0A 0:0 0:0 0 0 0 80 1";
        assert_eq!(sockets_at(six, "[::1]:8080".parse().unwrap()), [80]);
    }

    #[test]
    fn who_listens_is_found_and_who_listens_elsewhere_is_not_asked_for() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let here = listener.local_addr().unwrap();
        let elsewhere: SocketAddr = "192.0.2.7:6379".parse().unwrap();
        let found = servers_at(&[here, elsewhere]).unwrap();
        assert_eq!(found.iter().map(|(pid, _)| *pid).collect::<Vec<_>>(), [std::process::id()]);
        assert_eq!(servers_at(&[elsewhere]), Some(Vec::new()));
        drop(listener);
        assert_eq!(servers_at(&[here]), None, "somebody may serve there, and nobody knows who");
    }
}

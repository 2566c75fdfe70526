//! Which servers this process sends to: what each peer of its own sockets has taken, by the kernel's
//! count. So a node that clients never reach can be told, whatever store and driver it is.

use std::collections::{BTreeMap, HashMap};
use std::mem::size_of;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};

/// A connection by its descriptor and both ends' addresses: descriptors are used again.
type Connection = (libc::c_int, SocketAddr, SocketAddr);

/// Bytes that peers have taken since this was made, as far as connections were looked at: what was sent
/// between a look and the end of its connection is not in it.
#[derive(Debug, Default)]
pub struct Traffic {
    known: HashMap<Connection, u64>,
    taken: BTreeMap<SocketAddr, u64>,
}

impl Traffic {
    /// Begins to count: what open connections have carried until now does not.
    #[must_use]
    pub fn begin() -> Traffic {
        let known = connections().into_iter().collect();
        Traffic { known, taken: BTreeMap::new() }
    }

    /// Looks at all connections again, and gives what each peer has taken by now.
    pub fn look(&mut self) -> &BTreeMap<SocketAddr, u64> {
        let mut now = HashMap::new();
        for (connection, bytes) in connections() {
            let before = self.known.get(&connection).copied().unwrap_or(0);
            // A count that fell is another connection between the same two ports.
            let more = if bytes < before { bytes } else { bytes - before };
            *self.taken.entry(connection.2).or_default() += more;
            now.insert(connection, bytes);
        }
        self.known = now;
        &self.taken
    }
}

/// Every TCP connection of this process, and what its peer has acknowledged.
fn connections() -> Vec<(Connection, u64)> {
    let entries = std::fs::read_dir("/proc/self/fd").into_iter().flatten().flatten();
    let numbers = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    numbers
        .filter_map(|number: libc::c_int| {
            let (own, peer) =
                (address(number, libc::getsockname)?, address(number, libc::getpeername)?);
            Some(((number, own, peer), acknowledged(number)?))
        })
        .collect()
}

type Ask =
    unsafe extern "C" fn(libc::c_int, *mut libc::sockaddr, *mut libc::socklen_t) -> libc::c_int;

/// One end of a socket; `None` of what is no socket, or none of TCP's kind of addresses.
fn address(number: libc::c_int, ask: Ask) -> Option<SocketAddr> {
    // SAFETY: a struct of numbers, for which zero is a value.
    let mut storage: libc::sockaddr_storage = unsafe { std::mem::zeroed() };
    let mut length = size_of::<libc::sockaddr_storage>() as libc::socklen_t;
    // SAFETY: the call writes at most `length` bytes into the struct, which lives here. A descriptor that
    // was closed meanwhile is an error.
    let failed = unsafe { ask(number, (&raw mut storage).cast(), &raw mut length) } != 0;
    if failed {
        return None;
    }
    match i32::from(storage.ss_family) {
        libc::AF_INET => {
            // SAFETY: the family tells that this is what was written.
            let v4: libc::sockaddr_in = unsafe { *(&raw const storage).cast() };
            let ip = Ipv4Addr::from(u32::from_be(v4.sin_addr.s_addr));
            Some(SocketAddr::from((ip, u16::from_be(v4.sin_port))))
        }
        libc::AF_INET6 => {
            // SAFETY: the family tells that this is what was written.
            let v6: libc::sockaddr_in6 = unsafe { *(&raw const storage).cast() };
            let ip = Ipv6Addr::from(v6.sin6_addr.s6_addr).to_canonical();
            Some(SocketAddr::new(ip, u16::from_be(v6.sin6_port)))
        }
        _ => None,
    }
}

/// `tcpi_bytes_acked` of a connection (`struct tcp_info`, linux/tcp.h).
fn acknowledged(number: libc::c_int) -> Option<u64> {
    const AT: usize = 120;
    let mut info = [0u8; 256];
    let mut length = info.len() as libc::socklen_t;
    // SAFETY: the call writes at most `length` bytes into the array, which lives here.
    let failed = unsafe {
        libc::getsockopt(
            number,
            libc::IPPROTO_TCP,
            libc::TCP_INFO,
            info.as_mut_ptr().cast(),
            &raw mut length,
        )
    } != 0;
    if failed || (length as usize) < AT + 8 {
        return None;
    }
    Some(u64::from_ne_bytes(info[AT..AT + 8].try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};

    use super::*;

    #[test]
    fn what_a_peer_has_taken_is_counted_from_the_begin_on() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (mut out, mut at) =
            (TcpStream::connect(address).unwrap(), listener.accept().unwrap().0);
        let mut send = |bytes: usize| {
            out.write_all(&vec![7; bytes]).unwrap();
            at.read_exact(&mut vec![0; bytes]).unwrap();
        };
        send(1000);
        let mut traffic = Traffic::begin();
        assert_eq!(traffic.look().get(&address), Some(&0));
        send(300);
        let mut taken = 0;
        for _ in 0..100 {
            taken = traffic.look()[&address];
            if taken == 300 {
                break;
            }
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        assert_eq!(taken, 300);
        drop((out, at));
        assert_eq!(traffic.look()[&address], 300, "what was taken stays");
    }
}

//! Counts what this process sends to servers: what each peer of its own sockets has taken, by the kernel's count. So a node
//! that clients never reach can be told, whatever store and driver it is.

use std::collections::{BTreeMap, HashMap};
use std::net::SocketAddr;
use std::os::fd::{BorrowedFd, RawFd};

use rustix::net::{SocketAddrAny, getpeername, getsockname};

/// A connection by its descriptor and both ends' addresses: descriptors are used again.
type Connection = (RawFd, SocketAddr, SocketAddr);

/// Bytes that peers have taken since this was made, as far as connections were looked at: what was sent
/// between a look and the end of its connection is not in it.
#[derive(Debug, Default)]
pub struct Traffic {
    known: HashMap<Connection, u64>,
    taken: BTreeMap<SocketAddr, u64>,
}

impl Traffic {
    /// Begins to count: the bytes that open connections have carried until now do not.
    #[must_use]
    pub fn begin() -> Traffic {
        let known = connections().into_iter().collect();
        Traffic { known, taken: BTreeMap::new() }
    }

    /// Looks at all connections again, and returns what each peer has taken by now.
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

/// Returns every TCP connection of this process, and what its peer has acknowledged.
fn connections() -> Vec<(Connection, u64)> {
    let entries = std::fs::read_dir("/proc/self/fd").into_iter().flatten().flatten();
    let numbers = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    numbers
        .filter_map(|number: RawFd| {
            // SAFETY: the number is of a descriptor of this process. Of one that was closed meanwhile each
            // call below is an error, or tells of another connection, which its addresses show.
            let socket = unsafe { BorrowedFd::borrow_raw(number) };
            let own = address(getsockname(socket).ok()?)?;
            let peer = address(getpeername(socket).ok()??)?;
            Some(((number, own, peer), acknowledged(number)?))
        })
        .collect()
}

/// Returns one end of a socket; `None` if it has no address of TCP's kind.
fn address(told: SocketAddrAny) -> Option<SocketAddr> {
    let address = SocketAddr::try_from(told).ok()?;
    Some(SocketAddr::new(address.ip().to_canonical(), address.port()))
}

/// Returns `tcpi_bytes_acked` of a connection (`struct tcp_info`, linux/tcp.h).
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

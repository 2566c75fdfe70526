//! Loopback addresses for one testbed: a block 127.A.B.1 to 127.A.B.254 that no other testbed on
//! this machine has. Each node can have an address of its own and the usual port of its system, and
//! keeps both when it is restarted; two testbeds never fight for a port.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};

use kvdyno_core::ground::random::Random;
use kvdyno_core::lock::Lock;

use crate::folder;

/// Number of blocks that are drawn before giving up: each may belong to a living testbed.
const DRAWS: usize = 1000;
/// Number of ports tried from the usual one on, where something listens on all addresses.
const PORTS_TRIED: u16 = 200;

/// A block of loopback addresses, given back on drop.
#[derive(Debug)]
pub struct Addresses {
    block: (u8, u8),
    given: Vec<SocketAddr>,
    _lease: Lock,
}

impl Addresses {
    /// Takes a block.
    ///
    /// # Errors
    /// The system's error, or that no block is free.
    pub fn take() -> io::Result<Addresses> {
        let leases = folder::root()?.path().join("addresses");
        std::fs::create_dir_all(&leases)?;
        let mut draw = draws();
        for _ in 0..DRAWS {
            let number = draw.next_u64();
            // 127.0 to 127.31 are left to people, who like 127.0.0.1 and 127.0.1.1.
            let block = (32 + (number >> 8) as u8 % 224, number as u8);
            let lease = leases.join(format!("127.{}.{}", block.0, block.1));
            if let Some(lease) = Lock::attempt(&lease)? {
                return Ok(Addresses { block, given: Vec::new(), _lease: lease });
            }
        }
        Err(io::Error::other("too many testbeds are up (`kvdyno testbed list`)"))
    }

    /// Returns address number `node` of the block, from 1 to 254.
    ///
    /// # Panics
    /// If there is no such address in a block; no kind of testbed allows so many nodes.
    #[must_use]
    pub fn ip(&self, node: u16) -> Ipv4Addr {
        assert!((1..=254).contains(&node), "node {node} of a block of 254 addresses");
        Ipv4Addr::new(127, self.block.0, self.block.1, node as u8)
    }

    /// Returns address number `node` with the first port from `usual` on that is free there and was not given before.
    ///
    /// # Errors
    /// The system's error, or that no such port is free.
    pub fn socket(&mut self, node: u16, usual: u16) -> io::Result<SocketAddr> {
        for port in usual..usual.saturating_add(PORTS_TRIED) {
            let address = SocketAddr::from((self.ip(node), port));
            if self.given.contains(&address) {
                continue;
            }
            match TcpListener::bind(address) {
                Ok(_free) => {
                    self.given.push(address);
                    return Ok(address);
                }
                Err(error) if error.kind() == io::ErrorKind::AddrInUse => {}
                Err(error) => return Err(error),
            }
        }
        Err(io::Error::other(format!("no port from {usual} on is free")))
    }
}

/// Returns numbers that differ between processes and calls; nothing rests on their quality, for a lock decides which testbed
/// has a block.
fn draws() -> Random {
    use std::hash::{BuildHasher, RandomState};
    Random::new(RandomState::new().hash_one(std::process::id()), 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_apart_and_ports_are_given_once() {
        let (mut one, two) = (Addresses::take().unwrap(), Addresses::take().unwrap());
        assert_ne!(one.ip(1), two.ip(1));
        let first = one.socket(1, 21_000).unwrap();
        let second = one.socket(1, 21_000).unwrap();
        assert_eq!((first.port(), second.port()), (21_000, 21_001));
        assert_eq!(one.socket(2, 21_000).unwrap().port(), 21_000);
        let taken = TcpListener::bind((one.ip(3), 21_000)).unwrap();
        assert_eq!(one.socket(3, 21_000).unwrap().port(), 21_001);
        drop(taken);
    }
}

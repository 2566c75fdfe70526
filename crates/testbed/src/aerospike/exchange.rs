//! A put, a get and a delete at one Aerospike node, over its message protocol: a head of eight bytes
//! (version 2, type 3, length in 48 bits), 22 bytes of what is to be done, fields, operations. A node
//! passes on what another has.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use super::NAMESPACE;
use crate::site::Site;

const PATIENCE: Duration = Duration::from_secs(2);
/// Longest answer that is read.
const LONGEST: u64 = 1 << 16;
/// Bytes of a message before its fields.
const HEAD: usize = 22;

/// Operation on a record.
#[derive(Clone, Copy)]
enum Operation {
    Put,
    Get,
    Delete,
}

/// Carries out a put, a get and a delete at the node of this number.
///
/// # Errors
/// A description in words.
pub(super) fn put_and_get(site: &Site, place: usize, key: &str) -> Result<(), String> {
    let address = site.nodes()[place].server.address();
    let failed = |error: std::io::Error| format!("{address}: {error}");
    let mut stream = TcpStream::connect_timeout(&address, PATIENCE).map_err(failed)?;
    stream.set_read_timeout(Some(PATIENCE)).map_err(failed)?;
    let mut ask = |operation| {
        stream.write_all(&message(operation, &digest(key))).map_err(failed)?;
        let mut head = [0; 8];
        stream.read_exact(&mut head).map_err(failed)?;
        let length = u64::from_be_bytes(head) & 0xffff_ffff_ffff;
        let length = Some(length).filter(|l| (HEAD as u64..LONGEST).contains(l));
        let mut body = vec![0; length.ok_or("an answer of another length")? as usize];
        stream.read_exact(&mut body).map_err(failed)?;
        Ok::<_, String>((body[5], body))
    };
    let (put, _) = ask(Operation::Put)?;
    let (got, body) = ask(Operation::Get)?;
    ask(Operation::Delete)?;
    match put == 0 && got == 0 && body.ends_with(b"ready") {
        true => Ok(()),
        false => Err(format!("a put is answered with code {put}, a get with {got}")),
    }
}

/// Returns a digest of a key: servers take any of 20 bytes where no key is sent.
fn digest(key: &str) -> [u8; 20] {
    let mut out = [0u8; 20];
    for (at, byte) in key.bytes().rev().enumerate() {
        out[at % 20] = byte.wrapping_add(out[at % 20].rotate_left(3));
    }
    out
}

fn message(operation: Operation, digest: &[u8; 20]) -> Vec<u8> {
    const READ_ALL: u8 = 1 | 2;
    const WRITE: u8 = 1;
    const WRITE_AND_DELETE: u8 = 1 | 2;
    let (reads, writes, operations) = match operation {
        Operation::Put => (0, WRITE, 1u16),
        Operation::Get => (READ_ALL, 0, 0),
        Operation::Delete => (0, WRITE_AND_DELETE, 0),
    };
    let mut body = vec![HEAD as u8, reads, writes, 0, 0, 0];
    // Generation, time to live (the namespace's own), time-out in ms.
    for number in [0u32, 0, PATIENCE.as_millis() as u32] {
        body.extend(number.to_be_bytes());
    }
    body.extend(2u16.to_be_bytes());
    body.extend(operations.to_be_bytes());
    for (kind, data) in [(0u8, NAMESPACE.as_bytes()), (4, &digest[..])] {
        body.extend((data.len() as u32 + 1).to_be_bytes());
        body.push(kind);
        body.extend(data);
    }
    if operations > 0 {
        // To write (2) a string (3) into the bin `v`.
        let (bin, value) = (b"v", b"ready");
        body.extend((4 + bin.len() as u32 + value.len() as u32).to_be_bytes());
        body.extend([2, 3, 0, bin.len() as u8]);
        body.extend(bin);
        body.extend(value);
    }
    let head = 2u64 << 56 | 3 << 48 | body.len() as u64;
    [&head.to_be_bytes()[..], &body].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_as_the_protocol_has_it() {
        let put = message(Operation::Put, &[7; 20]);
        assert_eq!(put[..8], [2, 3, 0, 0, 0, 0, 0, (put.len() - 8) as u8]);
        assert_eq!(put[8..14], [22, 0, 1, 0, 0, 0]);
        assert_eq!(put[26..30], [0, 2, 0, 1]);
        assert_eq!(&put[30..39], b"\0\0\0\x05\0test");
        assert!(put.ends_with(b"\0\0\0\x0a\x02\x03\0\x01vready"));
        assert_eq!(message(Operation::Delete, &[7; 20])[8..14], [22, 0, 3, 0, 0, 0]);
        assert_ne!(digest("kvdyno-ready-1"), digest("kvdyno-ready-2"));
    }
}

//! A put, a get and a delete at one Riak node over protocol buffers, and which release it is: frames of
//! a length, a code and a message of fields.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(2);
/// Longest answer that is read.
const LONGEST: usize = 1 << 20;

const ERROR: u8 = 0;
const GET_SERVER_INFO: u8 = 7;
const GET: u8 = 9;
const PUT: u8 = 11;
const DELETE: u8 = 13;

/// Not the bucket of any load.
const BUCKET: &[u8] = b"kvdyno-ready";

/// A put, a get and a delete.
///
/// # Errors
/// In words.
pub(super) fn put_and_get(address: SocketAddr, key: &str) -> Result<(), String> {
    let record = [field(1, BUCKET), field(2, key.as_bytes())].concat();
    let put = [record.clone(), field(4, &field(1, b"ready"))].concat();
    ask(address, PUT, &put)?;
    let got = ask(address, GET, &record)?;
    ask(address, DELETE, &record)?;
    match got.windows(5).any(|window| window == b"ready") {
        true => Ok(()),
        false => Err("a get does not find what was put".to_owned()),
    }
}

/// The release that a node is of, as it says.
pub(super) fn version(address: SocketAddr) -> Option<String> {
    let told = ask(address, GET_SERVER_INFO, b"").ok()?;
    // Two texts: the node's name, and its version.
    let node = usize::from(*told.get(1)?);
    let rest = told.get(2 + node..)?;
    let (head, text) = rest.split_at_checked(2)?;
    Some(String::from_utf8_lossy(text.get(..usize::from(head[1]))?).into_owned())
}

/// One request, which has the code before its answer's.
fn ask(address: SocketAddr, code: u8, message: &[u8]) -> Result<Vec<u8>, String> {
    let failed = |error: std::io::Error| format!("{address}: {error}");
    let mut stream = TcpStream::connect_timeout(&address, PATIENCE).map_err(failed)?;
    stream.set_read_timeout(Some(PATIENCE)).map_err(failed)?;
    let length = (message.len() as u32 + 1).to_be_bytes();
    stream.write_all(&[&length[..], &[code], message].concat()).map_err(failed)?;
    let mut length = [0; 4];
    stream.read_exact(&mut length).map_err(failed)?;
    let length = u32::from_be_bytes(length) as usize;
    let length = Some(length).filter(|length| (1..LONGEST).contains(length));
    let mut answer = vec![0; length.ok_or("an answer of another length")?];
    stream.read_exact(&mut answer).map_err(failed)?;
    match answer.split_first() {
        Some((got, message)) if *got == code + 1 => Ok(message.to_vec()),
        Some((&ERROR, message)) => Err(String::from_utf8_lossy(message).trim().to_owned()),
        _ => Err("an answer of another kind".to_owned()),
    }
}

/// A field of bytes.
fn field(number: u8, bytes: &[u8]) -> Vec<u8> {
    [&[number << 3 | 2, bytes.len() as u8], bytes].concat()
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    /// A node that answers each connection with the next of these.
    fn answering(answers: &'static [&'static [u8]]) -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        std::thread::spawn(move || {
            for answer in answers {
                let (mut stream, _) = listener.accept().unwrap();
                let mut length = [0; 4];
                stream.read_exact(&mut length).unwrap();
                let mut request = vec![0; u32::from_be_bytes(length) as usize];
                stream.read_exact(&mut request).unwrap();
                stream.write_all(&(answer.len() as u32).to_be_bytes()).unwrap();
                stream.write_all(answer).unwrap();
            }
        });
        address
    }

    #[test]
    fn only_what_can_be_got_again_was_put() {
        let serves = answering(&[b"\x0c", b"\x0a\x0a\x07\x0a\x05ready", b"\x0e"]);
        assert_eq!(put_and_get(serves, "k"), Ok(()));
        let forgets = answering(&[b"\x0c", b"\x0a", b"\x0e"]);
        assert!(put_and_get(forgets, "k").unwrap_err().contains("does not find"));
        // A node whose KV service is not there yet, although it answers a ping.
        let starting = answering(&[b"\x00\x0a\x18Unknown message code: 11\x10\x00"]);
        assert!(put_and_get(starting, "k").unwrap_err().contains("Unknown message code"));
    }

    #[test]
    fn a_node_tells_its_release() {
        let node = answering(&[b"\x08\x0a\x03r@1\x12\x053.2.3"]);
        assert_eq!(version(node).as_deref(), Some("3.2.3"));
    }
}

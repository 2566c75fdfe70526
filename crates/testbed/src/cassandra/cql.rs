//! Speaks as much of Cassandra's native protocol (version 4) as it takes to ask a node's system tables for columns of text:
//! log in, ask, read the rows.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use crate::server::Probe;

const REQUEST: u8 = 0x04;
const ERROR: u8 = 0x00;
const STARTUP: u8 = 0x01;
const AUTHENTICATE: u8 = 0x03;
const OPTIONS: u8 = 0x05;
const SUPPORTED: u8 = 0x06;
const QUERY: u8 = 0x07;
const RESULT: u8 = 0x08;
const AUTH_RESPONSE: u8 = 0x0f;

/// Kind of a result without rows: a write was done.
const VOID: [u8; 4] = [0, 0, 0, 1];

/// Bytes before a frame's body: version, flags, stream (2), opcode, length (4).
const HEADER: usize = 9;

/// Longest answer that is read.
const LONGEST: usize = 16 << 20;

/// Rows of text; `None` where a column is null.
pub type CqlRows = Vec<Vec<Option<String>>>;

/// Returns true if the node takes requests of clients.
pub fn listens(probe: &Probe<'_>) -> bool {
    let answer = probe.ask(&frame(OPTIONS, &[])).unwrap_or_default();
    answer.get(4) == Some(&SUPPORTED)
}

/// A question to a node.
pub struct Question<'a> {
    /// Address of the node.
    pub address: SocketAddr,
    /// User and password.
    pub login: Option<(&'a str, &'a str)>,
    /// A `SELECT` of columns of text, or a write.
    pub asked: &'a str,
}

impl Question<'_> {
    /// Returns the answer; `None` if there is none, or another one.
    pub fn ask(&self) -> Option<CqlRows> {
        let patience = Duration::from_secs(5);
        let mut stream = TcpStream::connect_timeout(&self.address, patience).ok()?;
        stream.set_read_timeout(Some(patience)).ok()?;
        let mut startup = 1u16.to_be_bytes().to_vec();
        short_string(&mut startup, "CQL_VERSION");
        short_string(&mut startup, "3.0.0");
        let (mut opcode, _) = exchange(&mut stream, STARTUP, &startup)?;
        if opcode == AUTHENTICATE {
            let (user, password) = self.login?;
            let token = format!("\0{user}\0{password}");
            let mut body = (token.len() as u32).to_be_bytes().to_vec();
            body.extend_from_slice(token.as_bytes());
            (opcode, _) = exchange(&mut stream, AUTH_RESPONSE, &body)?;
        }
        if opcode == ERROR {
            return None;
        }
        let mut query = (self.asked.len() as u32).to_be_bytes().to_vec();
        query.extend_from_slice(self.asked.as_bytes());
        // Consistency ONE; no flags: no values, no pages.
        query.extend_from_slice(&[0, 1, 0]);
        match exchange(&mut stream, QUERY, &query)? {
            (RESULT, body) if body.starts_with(&VOID) => Some(CqlRows::new()),
            (RESULT, body) => rows(&body),
            _ => None,
        }
    }
}

fn frame(opcode: u8, body: &[u8]) -> Vec<u8> {
    let mut out = vec![REQUEST, 0, 0, 0, opcode];
    out.extend_from_slice(&(body.len() as u32).to_be_bytes());
    out.extend_from_slice(body);
    out
}

fn short_string(out: &mut Vec<u8>, text: &str) {
    out.extend_from_slice(&(text.len() as u16).to_be_bytes());
    out.extend_from_slice(text.as_bytes());
}

fn exchange(stream: &mut TcpStream, opcode: u8, body: &[u8]) -> Option<(u8, Vec<u8>)> {
    stream.write_all(&frame(opcode, body)).ok()?;
    let mut header = [0; HEADER];
    stream.read_exact(&mut header).ok()?;
    let length = u32::from_be_bytes(header[5..].try_into().ok()?) as usize;
    let mut answer = vec![0; Some(length).filter(|length| *length <= LONGEST)?];
    stream.read_exact(&mut answer).ok()?;
    Some((header[4], answer))
}

/// Rest of an answer that is still to be read.
struct Cursor<'a>(&'a [u8]);

impl<'a> Cursor<'a> {
    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(taken)
    }

    fn short(&mut self) -> Option<u16> {
        Some(u16::from_be_bytes(self.take(2)?.try_into().ok()?))
    }

    fn int(&mut self) -> Option<i32> {
        Some(i32::from_be_bytes(self.take(4)?.try_into().ok()?))
    }

    fn skip_string(&mut self) -> Option<()> {
        let length = self.short()?;
        self.take(length.into()).map(drop)
    }
}

/// Reads the rows of a RESULT of kind Rows, all of whose columns are of plain types.
fn rows(body: &[u8]) -> Option<CqlRows> {
    const ROWS: i32 = 2;
    const ONE_TABLE: i32 = 1;
    // Types after this one are made of others.
    const LAST_PLAIN_TYPE: u16 = 0x15;
    let mut cursor = Cursor(body);
    let (kind, flags, columns) = (cursor.int()?, cursor.int()?, cursor.int()?);
    if kind != ROWS || flags & !ONE_TABLE != 0 {
        return None;
    }
    if flags & ONE_TABLE != 0 {
        cursor.skip_string()?;
        cursor.skip_string()?;
    }
    for _ in 0..columns {
        if flags & ONE_TABLE == 0 {
            cursor.skip_string()?;
            cursor.skip_string()?;
        }
        cursor.skip_string()?;
        let plain = (1..=LAST_PLAIN_TYPE).contains(&cursor.short()?);
        plain.then_some(())?;
    }
    let count = cursor.int()?;
    let mut out = Vec::new();
    for _ in 0..count {
        let mut row = Vec::new();
        for _ in 0..columns {
            let length = cursor.int()?;
            row.push(match usize::try_from(length) {
                Ok(length) => Some(String::from_utf8_lossy(cursor.take(length)?).into_owned()),
                Err(_) => None,
            });
        }
        out.push(row);
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_read_and_what_is_none_is_refused() {
        let mut body = Vec::new();
        for number in [2i32, 1, 2] {
            body.extend_from_slice(&number.to_be_bytes());
        }
        for text in ["system", "local"] {
            short_string(&mut body, text);
        }
        for name in ["name", "value"] {
            short_string(&mut body, name);
            body.extend_from_slice(&[0, 0x0d]);
        }
        body.extend_from_slice(&1i32.to_be_bytes());
        body.extend_from_slice(&[0, 0, 0, 1, b'a', 0xff, 0xff, 0xff, 0xff]);
        assert_eq!(rows(&body), Some(vec![vec![Some("a".to_owned()), None]]));
        for length in 0..body.len() {
            assert_eq!(rows(&body[..length]), None, "cut after {length} bytes");
        }
        body[3] = 1;
        assert_eq!(rows(&body), None, "a result without rows");
    }
}

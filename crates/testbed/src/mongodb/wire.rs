//! One command to a server that speaks MongoDB's protocol, and a look at its answer, for the recipe.
//! Not a client for load. Formats: MongoDB manual, "MongoDB Wire Protocol"; bsonspec.org.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use serde_json::{Map, Value, json};

/// Longest time for each step of a request.
const PATIENCE: Duration = Duration::from_secs(5);
/// Longest answer that is read: 48 MB is what MongoDB allows.
const LARGEST: usize = 48_000_000;
/// Bytes before the document of an OP_MSG: header of 16, flags of 4, kind of section.
const BEFORE_DOCUMENT: usize = 21;
const OP_MSG: i32 = 2013;

/// Returns the answer to `{name: 1}` on the database `admin`: a BSON document. `None` if there is none.
pub(super) fn ask(address: SocketAddr, name: &str) -> Option<Vec<u8>> {
    command(address, &json!({ name: 1 }))
}

/// Returns the answer to a command on the database `admin`.
pub(super) fn command(address: SocketAddr, command: &Value) -> Option<Vec<u8>> {
    command_on("admin", address, command)
}

/// Returns the answer to a command on a database.
pub(super) fn command_on(database: &str, address: SocketAddr, command: &Value) -> Option<Vec<u8>> {
    let mut fields = command.as_object()?.clone();
    fields.insert("$db".to_owned(), json!(database));
    let mut stream = TcpStream::connect_timeout(&address, PATIENCE).ok()?;
    stream.set_read_timeout(Some(PATIENCE)).ok()?;
    stream.set_write_timeout(Some(PATIENCE)).ok()?;
    stream.write_all(&message(&document(&fields))).ok()?;
    let mut header = [0; 16];
    stream.read_exact(&mut header).ok()?;
    let length = i32::from_le_bytes([header[0], header[1], header[2], header[3]]);
    let rest = usize::try_from(length).ok()?.checked_sub(header.len())?;
    if rest > LARGEST {
        return None;
    }
    let mut body = vec![0; rest];
    stream.read_exact(&mut body).ok()?;
    body.get(BEFORE_DOCUMENT - header.len()..).map(<[u8]>::to_vec)
}

/// Returns a string of a document, wherever it lies in it.
pub(super) fn text(document: &[u8], name: &str) -> Option<String> {
    let at = find(document, &element(2, name))?;
    let length = document.get(at..at + 4)?;
    let length = usize::try_from(i32::from_le_bytes(length.try_into().ok()?)).ok()?;
    // The length counts the zero byte at the end.
    let bytes = document.get(at + 4..at + 4 + length.checked_sub(1)?)?;
    Some(String::from_utf8_lossy(bytes).into_owned())
}

/// Returns the strings of an array of a document that holds nothing else.
pub(super) fn texts(document: &[u8], name: &str) -> Vec<String> {
    let Some(at) = find(document, &element(4, name)) else { return Vec::new() };
    let length = document.get(at..at + 4).and_then(|bytes| bytes.try_into().ok());
    let length = usize::try_from(length.map_or(0, i32::from_le_bytes)).unwrap_or(0);
    let inside = document.get(at..at + length).unwrap_or_default();
    (0..).map_while(|number: usize| text(inside, &number.to_string())).collect()
}

/// Returns a time of a document, ms since 1970.
pub(super) fn date(document: &[u8], name: &str) -> Option<i64> {
    let at = find(document, &element(9, name))?;
    Some(i64::from_le_bytes(document.get(at..at + 8)?.try_into().ok()?))
}

/// Returns true if a flag of a document is there and set.
pub(super) fn is_true(document: &[u8], name: &str) -> bool {
    find(document, &element(8, name)).is_some_and(|at| document.get(at) == Some(&1))
}

/// Returns the position right after `pattern`.
fn find(document: &[u8], pattern: &[u8]) -> Option<usize> {
    let at = document.windows(pattern.len()).position(|window| window == pattern)?;
    Some(at + pattern.len())
}

fn element(kind: u8, name: &str) -> Vec<u8> {
    [&[kind], name.as_bytes(), &[0]].concat()
}

fn message(document: &[u8]) -> Vec<u8> {
    let length = (BEFORE_DOCUMENT + document.len()) as i32;
    let header = [length, 1, 0, OP_MSG, 0].map(i32::to_le_bytes).concat();
    [&header, &[0][..], document].concat()
}

/// Returns a document in BSON. Commands need texts, whole numbers, arrays and documents.
fn document(fields: &Map<String, Value>) -> Vec<u8> {
    elements(fields.iter().map(|(name, value)| (name.as_str(), value)))
}

fn elements<'v>(fields: impl Iterator<Item = (&'v str, &'v Value)>) -> Vec<u8> {
    let mut out = vec![0; 4];
    for (name, value) in fields {
        match value {
            Value::String(text) => {
                out.extend(element(2, name));
                out.extend((text.len() as i32 + 1).to_le_bytes());
                out.extend(text.as_bytes());
                out.push(0);
            }
            Value::Object(inner) => {
                out.extend(element(3, name));
                out.extend(document(inner));
            }
            Value::Array(items) => {
                let numbers: Vec<String> = (0..items.len()).map(|n| n.to_string()).collect();
                out.extend(element(4, name));
                out.extend(elements(numbers.iter().map(String::as_str).zip(items)));
            }
            other => {
                out.extend(element(18, name));
                out.extend(other.as_i64().unwrap_or_default().to_le_bytes());
            }
        }
    }
    out.push(0);
    let length = out.len() as i32;
    out[..4].copy_from_slice(&length.to_le_bytes());
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_is_written_and_looked_at() {
        let fields = json!({ "n": 1, "t": "ab", "a": [{ "x": "y" }] });
        let bytes = document(fields.as_object().unwrap());
        let expected = b"\x33\0\0\0\x12n\0\x01\0\0\0\0\0\0\0\x02t\0\x03\0\0\0ab\0\x04a\0\x16\0\0\0\x030\0\x0e\0\0\0\x02x\0\x02\0\0\0y\0\0\0\0";
        assert_eq!(bytes, expected);
        assert_eq!(text(&bytes, "t").as_deref(), Some("ab"));
        assert_eq!(text(&bytes, "x").as_deref(), Some("y"));
        assert_eq!(text(&bytes, "n"), None);
        let hosts = json!({ "hosts": ["a:1", "b:2"], "me": "a:1" });
        let hosts = document(hosts.as_object().unwrap());
        assert_eq!(texts(&hosts, "hosts"), ["a:1", "b:2"]);
        assert!(texts(&hosts, "passives").is_empty());
        assert_eq!(date(b"\x09at\0\x07\0\0\0\0\0\0\0", "at"), Some(7));
        assert_eq!(date(b"\x09at\0\x07", "at"), None);
        assert!(is_true(b"\x08secondary\0\x01\0", "secondary"));
        assert!(!is_true(b"\x08secondary\0\0\0", "secondary"));
        assert_eq!(message(b"doc").len(), BEFORE_DOCUMENT + 3);
    }
}

//! Memcached's binary protocol as Couchbase speaks it: 24 bytes of header, extras, key, value
//! (docs of memcached, "BinaryProtocolRevamped"); the place of the status in a request holds the
//! number of the key's vBucket.

use crate::wire::{LARGEST_ANSWER, MalformedAnswer};

/// Bytes of a header.
const HEADER: usize = 24;
const REQUEST: u8 = 0x80;
const ANSWER: u8 = 0x81;

/// Command of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Opcode {
    /// Reads a record.
    Get = 0x00,
    /// Writes a record.
    Set = 0x01,
    /// Deletes a record.
    Delete = 0x04,
    /// Names the server's version.
    Version = 0x0b,
    /// Names the user and proves it by a password.
    Authenticate = 0x21,
    /// Chooses a bucket.
    SelectBucket = 0x89,
}

/// An answer that was read; positions count from its first byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reply {
    /// 0 for success.
    pub status: u16,
    /// First byte of the value.
    pub start: usize,
    /// One past the last byte of the value.
    pub end: usize,
}

impl Reply {
    /// Returns the value; `answer` is all of the answer.
    #[must_use]
    pub fn value(self, answer: &[u8]) -> &[u8] {
        &answer[self.start..self.end]
    }
}

/// Looks for the end of the answer at the start of `input`; gives the answer and its length, or `None`
/// while bytes are missing.
///
/// # Errors
/// [`MalformedAnswer`] if this is no answer, or one too large.
#[inline]
pub fn scan(input: &[u8]) -> Result<Option<(Reply, usize)>, MalformedAnswer> {
    if input.first().is_some_and(|magic| *magic != ANSWER) {
        return Err(MalformedAnswer("not an answer of the binary protocol"));
    }
    let Some(header) = input.first_chunk::<HEADER>() else { return Ok(None) };
    let key = usize::from(u16::from_be_bytes([header[2], header[3]]));
    let extras = usize::from(header[4]);
    let body = u32::from_be_bytes([header[8], header[9], header[10], header[11]]) as usize;
    if body > LARGEST_ANSWER {
        return Err(MalformedAnswer("an answer that is too large"));
    }
    if extras + key > body {
        return Err(MalformedAnswer("an answer shorter than its parts"));
    }
    let end = HEADER + body;
    if input.len() < end {
        return Ok(None);
    }
    let status = u16::from_be_bytes([header[6], header[7]]);
    Ok(Some((Reply { status, start: HEADER + extras + key, end }, end)))
}

/// Appends a request.
pub fn push(
    out: &mut Vec<u8>,
    command: Opcode,
    vbucket: u16,
    extras: &[u8],
    key: &[u8],
    value: &[u8],
) {
    let body = extras.len() + key.len() + value.len();
    out.extend_from_slice(&[REQUEST, command as u8]);
    out.extend_from_slice(&(key.len() as u16).to_be_bytes());
    out.extend_from_slice(&[extras.len() as u8, 0]);
    out.extend_from_slice(&vbucket.to_be_bytes());
    out.extend_from_slice(&(body as u32).to_be_bytes());
    // A mark of the request, which answers in order do without, and no version to compare with.
    out.extend_from_slice(&[0; 12]);
    out.extend_from_slice(extras);
    out.extend_from_slice(key);
    out.extend_from_slice(value);
}

/// Returns the extras of [`Opcode::Set`]: no flags, and when the record expires (0: never).
#[must_use]
pub fn set_extras(expiry: u32) -> [u8; 8] {
    let mut extras = [0; 8];
    extras[4..].copy_from_slice(&expiry.to_be_bytes());
    extras
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A get of a record as a server answered it, with its flags before the value.
    const GOT: &[u8] = b"\x81\x00\x00\x00\x04\x00\x00\x00\x00\x00\x00\x09\x00\x00\x00\x07\
                         \x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00\x00hello";

    #[test]
    fn an_answer_is_found_wherever_the_reads_cut_it() {
        for cut in 0..GOT.len() {
            assert_eq!(scan(&GOT[..cut]).unwrap(), None);
        }
        let (reply, length) = scan(GOT).unwrap().unwrap();
        assert_eq!((reply.status, reply.value(GOT), length), (0, &b"hello"[..], GOT.len()));
        let followed = [GOT, GOT].concat();
        assert_eq!(scan(&followed).unwrap().unwrap().1, GOT.len());
    }

    #[test]
    fn what_is_no_answer_is_refused() {
        assert!(scan(b"ERROR\r\n").is_err());
        let mut short = GOT.to_vec();
        short[11] = 3;
        assert!(scan(&short).is_err());
        let mut large = GOT.to_vec();
        large[8] = 0xff;
        assert!(scan(&large).is_err());
    }

    #[test]
    fn requests_are_as_documented() {
        let mut out = Vec::new();
        push(&mut out, Opcode::Set, 28, &set_extras(2), b"key1", b"hello");
        assert_eq!(
            out,
            b"\x80\x01\x00\x04\x08\x00\x00\x1c\x00\x00\x00\x11\0\0\0\0\0\0\0\0\0\0\0\0\
              \0\0\0\0\0\0\0\x02key1hello"
        );
    }
}

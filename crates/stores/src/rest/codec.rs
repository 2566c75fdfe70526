//! Reads answers of HTTP/1.1 (RFC 9112): where one ends and where its body lies. It reads only that of the header which
//! decides this.
//!
//! Reading is a pure function over bytes: [`scan`] finds the end of an answer, whatever the number of
//! reads in which it came. An answer whose body ends with the connection has no end that could be
//! told from a broken connection, and is refused.

use crate::wire::{LARGEST_ANSWER, MalformedAnswer, parse_decimal};

/// Longest header, in bytes; the same for what follows a body in chunks.
const LONGEST_HEAD: usize = 64 * 1024;

/// Longest line that announces a chunk, in bytes.
const LONGEST_CHUNK_LINE: usize = 4 * 1024;

/// Begin of every answer.
const START: &[u8] = b"HTTP/1.";

/// An answer that was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reply {
    /// Status code, 200 to 999: interim answers (1xx) are skipped.
    pub status: u16,
    /// Place of its body.
    pub body: Body,
    /// True if the server closes the connection after it.
    pub closes: bool,
    /// True if its body stands for another one: it is compressed, or the like.
    pub encoded: bool,
}

/// Place of a body; positions count from the answer's first byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Body {
    /// All of it lies here.
    Whole {
        /// First byte.
        start: usize,
        /// One past the last byte.
        end: usize,
    },
    /// The body is in chunks, the first of which is announced here; [`Chunks`] walks them.
    Chunked {
        /// First byte of the line that announces it.
        start: usize,
    },
}

/// State of the search for the end of an answer.
#[derive(Clone, Copy, Debug, Default)]
pub struct Progress {
    /// First byte of the header that is being read: interim answers lie before it.
    head: usize,
    /// Bytes of the input searched for the header's end.
    searched: usize,
    /// The header, once it is whole.
    found: Option<Reply>,
    /// First byte of the line that announces the next chunk.
    chunk: usize,
}

/// Header fields that tell the length of a body.
#[derive(Clone, Copy)]
struct Framing {
    length: Option<u64>,
    chunked: bool,
    closes: bool,
    encoded: bool,
}

/// Looks for the end of the answer at the start of `input`, from where `progress` left off; gives
/// the answer and its length, or `None` while bytes are missing.
///
/// # Errors
/// [`MalformedAnswer`] if this is no answer, one without a length, or one too large.
#[inline]
pub fn scan(
    progress: &mut Progress,
    input: &[u8],
) -> Result<Option<(Reply, usize)>, MalformedAnswer> {
    let reply = match progress.found {
        Some(reply) => reply,
        None => match head(progress, input)? {
            Some(reply) => reply,
            None => return Ok(None),
        },
    };
    match reply.body {
        Body::Whole { end, .. } if input.len() >= end => Ok(Some((reply, end))),
        Body::Whole { .. } => Ok(None),
        Body::Chunked { .. } => Ok(chunks_end(progress, input)?.map(|end| (reply, end))),
    }
}

/// Reads the header of the answer, after any interim ones.
fn head(progress: &mut Progress, input: &[u8]) -> Result<Option<Reply>, MalformedAnswer> {
    loop {
        let begun = &input[progress.head..];
        if !START.starts_with(&begun[..begun.len().min(START.len())]) {
            return Err(MalformedAnswer("not an answer of HTTP/1.1"));
        }
        // The end may lie across what was searched before.
        let from = progress.searched.max(progress.head + 3) - 3;
        let limit = input.len().min(progress.head + LONGEST_HEAD);
        let Some(end) = blank_line(&input[..limit], from) else {
            if input.len() > limit {
                return Err(MalformedAnswer("a header that is too long"));
            }
            progress.searched = input.len();
            return Ok(None);
        };
        let status = status(&input[progress.head..end])?;
        if status >= 200 {
            let reply = reply(status, &input[progress.head..end], end)?;
            progress.found = Some(reply);
            progress.chunk = end;
            return Ok(Some(reply));
        }
        if status == 101 {
            return Err(MalformedAnswer("a change to another protocol, which nobody asked for"));
        }
        (progress.head, progress.searched) = (end, end);
    }
}

/// Returns one past the first empty line's end at or after `from`.
fn blank_line(input: &[u8], from: usize) -> Option<usize> {
    let mut at = from;
    while let Some(found) = input.get(at..)?.iter().position(|byte| *byte == b'\n') {
        let end = at + found + 1;
        if input[from..end].ends_with(b"\r\n\r\n") {
            return Some(end);
        }
        at = end;
    }
    None
}

/// Reads the status code off `HTTP/1.1 200 OK`.
fn status(head: &[u8]) -> Result<u16, MalformedAnswer> {
    let digits = match head {
        [b'H', b'T', b'T', b'P', b'/', b'1', b'.', b'0' | b'1', b' ', digits @ ..] => digits,
        _ => return Err(MalformedAnswer("a version of HTTP other than 1.0 and 1.1")),
    };
    match digits {
        [a @ b'1'..=b'9', b @ b'0'..=b'9', c @ b'0'..=b'9', b' ' | b'\r', ..] => {
            Ok([a, b, c].iter().fold(0, |code, digit| code * 10 + u16::from(*digit - b'0')))
        }
        _ => Err(MalformedAnswer("a status that is no number of three digits")),
    }
}

/// Reads `head`, a whole header, of the answer's bytes up to `end`.
fn reply(status: u16, head: &[u8], end: usize) -> Result<Reply, MalformedAnswer> {
    let Framing { length, chunked, closes, encoded } = framing(head)?;
    let whole = |length| Body::Whole { start: end, end: end + length };
    let body = match (length, chunked) {
        // These have no body, whatever the header says (RFC 9112, 6.3).
        _ if status == 204 || status == 304 => whole(0),
        (Some(_), true) => return Err(MalformedAnswer("a body with a length and in chunks")),
        (None, true) => Body::Chunked { start: end },
        (Some(length), false) if length > LARGEST_ANSWER as u64 => {
            return Err(MalformedAnswer("a body that is too large"));
        }
        (Some(length), false) => whole(length as usize),
        // The reason of a refusal may be lost; the connection ends with it in any case.
        (None, false) if closes && status >= 300 => whole(0),
        (None, false) => {
            return Err(MalformedAnswer(
                "a body without a length: the server must keep connections open",
            ));
        }
    };
    Ok(Reply { status, body, closes, encoded })
}

/// Returns each line of a header as (name, value without blanks around it).
fn lines(head: &[u8]) -> impl Iterator<Item = (&[u8], &[u8])> {
    let lines = head.split(|byte| *byte == b'\n').skip(1);
    lines.filter_map(|line| {
        let colon = line.iter().position(|byte| *byte == b':')?;
        Some((&line[..colon], line[colon + 1..].trim_ascii()))
    })
}

fn framing(head: &[u8]) -> Result<Framing, MalformedAnswer> {
    let old = head.starts_with(b"HTTP/1.0");
    let mut framing = Framing { length: None, chunked: false, closes: old, encoded: false };
    for (name, value) in lines(head) {
        // The lengths of the names tell most others apart without a look at them.
        match name.len() {
            14 if name.eq_ignore_ascii_case(b"content-length") => {
                let length =
                    parse_decimal(value).ok_or(MalformedAnswer("a length that is not a number"))?;
                if framing.length.is_some_and(|earlier| earlier != length) {
                    return Err(MalformedAnswer("two lengths"));
                }
                framing.length = Some(length);
            }
            17 if name.eq_ignore_ascii_case(b"transfer-encoding") => {
                if !value.eq_ignore_ascii_case(b"chunked") {
                    return Err(MalformedAnswer("a transfer coding other than chunks"));
                }
                framing.chunked = true;
            }
            16 if name.eq_ignore_ascii_case(b"content-encoding") => {
                framing.encoded |= !value.is_empty() && !value.eq_ignore_ascii_case(b"identity");
            }
            10 if name.eq_ignore_ascii_case(b"connection") => {
                let has = |word: &[u8]| {
                    let mut words = value.split(|byte| *byte == b',');
                    words.any(|found| found.trim_ascii().eq_ignore_ascii_case(word))
                };
                if has(b"close") {
                    framing.closes = true;
                } else if old && has(b"keep-alive") {
                    framing.closes = false;
                }
            }
            _ => {}
        }
    }
    Ok(framing)
}

/// A chunk, or what stands in its place.
enum Chunk {
    /// Bytes of the body, and where the next line begins.
    Data { start: usize, end: usize, next: usize },
    /// The last one; the lines that follow begin here.
    Last { next: usize },
}

/// Reads the chunk that is announced at `at`; `None` while bytes are missing.
fn chunk(input: &[u8], at: usize) -> Result<Option<Chunk>, MalformedAnswer> {
    let searched = &input[at..input.len().min(at + LONGEST_CHUNK_LINE)];
    let Some(line) = searched.iter().position(|byte| *byte == b'\n') else {
        return match input.len() > at + LONGEST_CHUNK_LINE {
            true => Err(MalformedAnswer("a line before a chunk that is too long")),
            false => Ok(None),
        };
    };
    let size = chunk_size(&searched[..line])?;
    let start = at + line + 1;
    if size == 0 {
        return Ok(Some(Chunk::Last { next: start }));
    }
    let end = start + size;
    match input.get(end..end + 2) {
        None => Ok(None),
        Some(b"\r\n") => Ok(Some(Chunk::Data { start, end, next: end + 2 })),
        Some(_) => Err(MalformedAnswer("a chunk longer than its length")),
    }
}

/// Reads the size of a chunk: hexadecimal digits, perhaps extensions after `;`, and a carriage return.
fn chunk_size(line: &[u8]) -> Result<usize, MalformedAnswer> {
    let line = line.strip_suffix(b"\r").ok_or(MalformedAnswer("a stray end of a line"))?;
    let digits = line.split(|byte| *byte == b';').next().unwrap_or(line).trim_ascii();
    let mut size = 0usize;
    for byte in digits {
        let digit = char::from(*byte).to_digit(16);
        let digit = digit.ok_or(MalformedAnswer("a length of a chunk that is not a number"))?;
        size = size * 16 + digit as usize;
        if size > LARGEST_ANSWER {
            return Err(MalformedAnswer("a body that is too large"));
        }
    }
    if digits.is_empty() { Err(MalformedAnswer("a chunk without a length")) } else { Ok(size) }
}

/// Returns one past the last byte of an answer in chunks, from where `progress` left off.
fn chunks_end(progress: &mut Progress, input: &[u8]) -> Result<Option<usize>, MalformedAnswer> {
    loop {
        match chunk(input, progress.chunk)? {
            None => return Ok(None),
            Some(Chunk::Data { next, .. }) => progress.chunk = next,
            Some(Chunk::Last { next }) => {
                if input[next..].starts_with(b"\r\n") {
                    return Ok(Some(next + 2));
                }
                // More header lines, which end as a header does.
                let limit = input.len().min(next + LONGEST_HEAD);
                let end = blank_line(&input[..limit], next);
                return match end {
                    None if input.len() > limit => {
                        Err(MalformedAnswer("a trailer that is too long"))
                    }
                    end => Ok(end),
                };
            }
        }
    }
}

/// Iterator over the pieces of a body in chunks.
#[derive(Clone, Copy, Debug)]
pub struct Chunks<'a> {
    answer: &'a [u8],
    at: usize,
}

impl<'a> Chunks<'a> {
    /// Goes through `answer`, which is whole, as [`scan`] found it, with its first chunk announced at `start`.
    #[must_use]
    pub fn new(answer: &'a [u8], start: usize) -> Self {
        Chunks { answer, at: start }
    }
}

impl<'a> Iterator for Chunks<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        match chunk(self.answer, self.at).ok().flatten()? {
            Chunk::Last { .. } => None,
            Chunk::Data { start, end, next } => {
                self.at = next;
                Some(&self.answer[start..end])
            }
        }
    }
}

/// Returns the reason after the status code, such as `Not Found`; `answer` begins with the header.
pub(super) fn reason(answer: &[u8]) -> String {
    let line = answer.split(|byte| *byte == b'\r').next().unwrap_or_default();
    let reason = line.splitn(3, |byte| *byte == b' ').nth(2).unwrap_or_default();
    String::from_utf8_lossy(reason).into_owned()
}

/// Returns the value of a header line of a whole answer without interim ones; for set-up, not for the load.
pub(super) fn header(answer: &[u8], name: &str) -> Option<String> {
    let head = &answer[..blank_line(answer, 0)?];
    let mut lines = lines(head);
    let found = lines.find(|(known, _)| known.eq_ignore_ascii_case(name.as_bytes()));
    found.map(|(_, value)| String::from_utf8_lossy(value).into_owned())
}

/// Returns a copy of the body of a whole answer; for set-up and errors, not for the load.
pub(crate) fn body(answer: &[u8], reply: &Reply) -> Vec<u8> {
    match reply.body {
        Body::Whole { start, end } => answer[start..end].to_vec(),
        Body::Chunked { start } => Chunks::new(answer, start).flatten().copied().collect(),
    }
}

#[cfg(test)]
mod tests;

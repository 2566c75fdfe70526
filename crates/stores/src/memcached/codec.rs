//! Memcached's meta commands (doc/protocol.txt of memcached 1.6, "Meta Commands") and the few
//! text commands that a client needs for set-up; of the text commands the replies to `get`, `set` and
//! `delete` as well, for servers that know no others (`dialect.rs`).
//!
//! Reading is a pure function over bytes: [`token`] finds one reply, [`scan`] the end of an answer
//! of several, whatever the number of reads in which it came.

use crate::wire::{LARGEST_ANSWER, MalformedAnswer, parse_decimal, push_decimal};

/// Longest line of a reply, without a value.
const LONGEST_LINE: usize = 8 * 1024;

/// Longest key that Memcached takes, in bytes.
pub const LONGEST_KEY: usize = 250;

/// Longest time to live that is relative, in seconds, 30 days: longer ones are taken for points in time (protocol.txt,
/// "Expiration times").
const LONGEST_RELATIVE_TTL: u64 = 60 * 60 * 24 * 30;

/// Place of bytes, from the first byte of the input that was searched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// First byte.
    pub start: usize,
    /// One past the last byte.
    pub end: usize,
}

impl Span {
    /// Returns the bytes themselves; `input` is what was searched.
    #[must_use]
    pub fn of(self, input: &[u8]) -> &[u8] {
        &input[self.start..self.end]
    }
}

/// One reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Token {
    /// `VA length flags…` and the value; or `VALUE key flags length`, the value and `END`.
    Value(Span),
    /// `HD`, `STORED`, `DELETED`: done.
    Done,
    /// `EN`, or `END` alone: no such record; `END` also ends statistics.
    Miss,
    /// `NF`, `NOT_FOUND`: not found.
    NotFound,
    /// `NS`, `NOT_STORED`: not stored.
    NotStored,
    /// `EX`: stored by another client in between.
    Exists,
    /// `MN`: all before is done.
    Noop,
    /// `ERROR`, `CLIENT_ERROR …` or `SERVER_ERROR …`, the whole line.
    Error(Span),
    /// Any other line, such as `VERSION …` or `STAT …`.
    Line(Span),
}

/// Reads the reply at the start of `input`: the reply and its length, or `None` while bytes are
/// missing.
///
/// # Errors
/// [`MalformedAnswer`] if this is no reply, or one too large.
#[inline]
pub fn token(input: &[u8]) -> Result<Option<(Token, usize)>, MalformedAnswer> {
    let Some(end) = line_end(input)? else { return Ok(None) };
    let after = end + 2;
    let line = Span { start: 0, end };
    let found = match &input[..end] {
        [b'V', b'A', b' ', rest @ ..] => {
            let digits = rest.split(|byte| *byte == b' ').next().unwrap_or(rest);
            return value(digits, after, b"\r\n", input);
        }
        [b'V', b'A', b'L', b'U', b'E', b' ', rest @ ..] => {
            // Key, flags, length, and a number of the version where that was asked for.
            let digits = rest.split(|byte| *byte == b' ').nth(2).unwrap_or(b"");
            return value(digits, after, b"\r\nEND\r\n", input);
        }
        b"HD" | [b'H', b'D', b' ', ..] | b"STORED" | b"DELETED" => Token::Done,
        b"EN" | b"END" => Token::Miss,
        b"NF" | [b'N', b'F', b' ', ..] | b"NOT_FOUND" => Token::NotFound,
        b"NS" | [b'N', b'S', b' ', ..] | b"NOT_STORED" => Token::NotStored,
        b"EX" | [b'E', b'X', b' ', ..] => Token::Exists,
        b"MN" => Token::Noop,
        text if is_error(text) => Token::Error(line),
        [b'A'..=b'Z', ..] => Token::Line(line),
        _ => return Err(MalformedAnswer("not a reply of Memcached")),
    };
    Ok(Some((found, after)))
}

fn is_error(line: &[u8]) -> bool {
    [&b"ERROR"[..], b"CLIENT_ERROR", b"SERVER_ERROR"].iter().any(|start| line.starts_with(start))
}

/// Reads a value of `digits` bytes from `after` on, and `end_mark`, which ends its reply.
fn value(
    digits: &[u8],
    after: usize,
    end_mark: &[u8],
    input: &[u8],
) -> Result<Option<(Token, usize)>, MalformedAnswer> {
    let length = parse_decimal(digits).ok_or(MalformedAnswer("a length that is not a number"))?;
    if length > LARGEST_ANSWER as u64 {
        return Err(MalformedAnswer("a value that is too large"));
    }
    let end = after + length as usize;
    match input.get(end..end + end_mark.len()) {
        None => Ok(None),
        Some(mark) if mark == end_mark => {
            Ok(Some((Token::Value(Span { start: after, end }), end + end_mark.len())))
        }
        Some(_) => Err(MalformedAnswer("a value longer than its length")),
    }
}

/// Returns the position of the CR of the first line's end.
#[inline]
fn line_end(input: &[u8]) -> Result<Option<usize>, MalformedAnswer> {
    let searched = &input[..input.len().min(LONGEST_LINE)];
    match searched.iter().position(|byte| *byte == b'\r') {
        Some(at) => match input.get(at + 1) {
            Some(b'\n') => Ok(Some(at)),
            Some(_) => Err(MalformedAnswer("a line with a stray carriage return")),
            None => Ok(None),
        },
        None if input.len() > LONGEST_LINE => Err(MalformedAnswer("a line that is too long")),
        None => Ok(None),
    }
}

/// State of the search for the end of an answer.
#[derive(Clone, Copy, Debug, Default)]
pub struct Progress {
    /// Bytes looked at.
    at: usize,
    /// Replies found.
    found: u32,
    first: Option<Token>,
}

/// Looks for the end of an answer of `parts` replies, from where `progress` left off. `input`
/// begins at the answer's first byte every time. Gives the first reply and the answer's length.
///
/// # Errors
/// Those of [`token`].
#[inline]
pub fn scan(
    progress: &mut Progress,
    parts: u32,
    input: &[u8],
) -> Result<Option<(Token, usize)>, MalformedAnswer> {
    loop {
        let Some((found, length)) = token(&input[progress.at..])? else { return Ok(None) };
        // The first reply begins at the answer's first byte, so its span needs no shift.
        let first = *progress.first.get_or_insert(found);
        progress.at += length;
        progress.found += 1;
        if progress.found >= parts {
            return Ok(Some((first, progress.at)));
        }
    }
}

/// Iterator over the replies of a whole answer, each with its value or line.
#[derive(Clone, Copy, Debug)]
pub struct Tokens<'a> {
    rest: &'a [u8],
}

impl<'a> Tokens<'a> {
    /// Goes through `answer`, which is whole, as [`scan`] found it.
    #[must_use]
    pub fn new(answer: &'a [u8]) -> Self {
        Tokens { rest: answer }
    }
}

impl<'a> Iterator for Tokens<'a> {
    type Item = (Token, &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        let (found, length) = token(self.rest).ok().flatten()?;
        let bytes = match found {
            Token::Value(span) | Token::Error(span) | Token::Line(span) => span.of(self.rest),
            _ => &[],
        };
        self.rest = &self.rest[length..];
        Some((found, bytes))
    }
}

/// Returns true if Memcached takes the key as it is: 1 to 250 bytes, no blanks, no control characters.
#[must_use]
pub fn is_key(key: &[u8]) -> bool {
    let plain = |byte: &u8| *byte > b' ' && *byte != 0x7f;
    (1..=LONGEST_KEY).contains(&key.len()) && key.iter().all(plain)
}

/// Appends `mg key v`, which asks for the value of a record.
pub fn push_get(out: &mut Vec<u8>, key: &[u8]) {
    out.extend_from_slice(b"mg ");
    out.extend_from_slice(key);
    out.extend_from_slice(b" v\r\n");
}

/// Appends `ms key length [Tttl]` and the value. `expiry` as [`expiry`] gives it.
pub fn push_set(out: &mut Vec<u8>, key: &[u8], value: &[u8], expiry: Option<u64>) {
    out.extend_from_slice(b"ms ");
    out.extend_from_slice(key);
    out.push(b' ');
    push_decimal(out, value.len() as u64);
    if let Some(expiry) = expiry {
        out.extend_from_slice(b" T");
        push_decimal(out, expiry);
    }
    out.extend_from_slice(b"\r\n");
    out.extend_from_slice(value);
    out.extend_from_slice(b"\r\n");
}

/// Appends `md key`, which deletes a record.
pub fn push_delete(out: &mut Vec<u8>, key: &[u8]) {
    out.extend_from_slice(b"md ");
    out.extend_from_slice(key);
    out.extend_from_slice(b"\r\n");
}

/// Returns a time to live as Memcached wants it: whole seconds, rounded up and never 0, which would mean for
/// ever; above 30 days as a point in Unix time. `now` is the Unix time in seconds.
#[must_use]
pub fn expiry(ttl: std::time::Duration, now: u64) -> u64 {
    let seconds = (ttl.as_secs() + u64::from(ttl.subsec_nanos() > 0)).max(1);
    if seconds > LONGEST_RELATIVE_TTL { now.saturating_add(seconds) } else { seconds }
}

#[cfg(test)]
mod tests;

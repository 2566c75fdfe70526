//! RESP2 and RESP3, the Redis serialization protocol (redis.io, "Redis serialization protocol
//! specification"), as far as a client needs that subscribes to nothing.
//!
//! Reading is a pure function over bytes: [`token`] finds one token, [`scan`] the end of a whole
//! answer, whatever the number of reads in which it came. Nesting is counted, not followed, so
//! no answer can exhaust the stack.

use crate::wire::{LARGEST_ANSWER, MalformedAnswer, parse_decimal, parse_short_line, push_decimal};

/// Longest line: a simple string, an error or a number.
const LONGEST_LINE: usize = 64 * 1024;

/// Most tokens in one answer.
const MOST_TOKENS: usize = 1 << 24;

/// Place of bytes, from the first byte of the input that was searched. No answer is too large for 32 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// First byte.
    start: u32,
    /// One past the last byte.
    end: u32,
}

impl Span {
    #[inline]
    fn new(start: usize, end: usize) -> Span {
        Span { start: start as u32, end: end as u32 }
    }

    /// Returns the bytes themselves; `input` is what was searched.
    #[inline]
    #[must_use]
    pub fn of(self, input: &[u8]) -> &[u8] {
        &input[self.start as usize..self.end as usize]
    }

    fn shifted(self, by: usize) -> Span {
        Span::new(self.start as usize + by, self.end as usize + by)
    }
}

/// One token of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Token {
    /// `+…`: a status such as `OK`.
    Status(Span),
    /// `-…` or `!…`: an error.
    Error(Span),
    /// `:…`
    Integer(i64),
    /// `$…` or `=…`: bytes.
    Bulk(Span),
    /// `_`, `$-1` or `*-1`: nothing there.
    Nil,
    /// `,…`, `(…` or `#…`: a double, a big number or a boolean, as text.
    Text(Span),
    /// `*…` or `~…`: this many elements follow.
    Array(usize),
    /// `%…`: this many pairs follow.
    Map(usize),
}

impl Token {
    /// Returns the number of tokens that belong to this one and follow it, themselves perhaps with followers.
    #[must_use]
    pub fn children(self) -> usize {
        match self {
            Token::Array(count) => count,
            Token::Map(pairs) => pairs * 2,
            _ => 0,
        }
    }

    fn shifted(self, by: usize) -> Token {
        match self {
            Token::Status(span) => Token::Status(span.shifted(by)),
            Token::Error(span) => Token::Error(span.shifted(by)),
            Token::Bulk(span) => Token::Bulk(span.shifted(by)),
            Token::Text(span) => Token::Text(span.shifted(by)),
            other => other,
        }
    }
}

/// Reads the token at the start of `input`: the token and its length, or `None` while bytes are
/// missing.
///
/// # Errors
/// [`MalformedAnswer`] if this is no token, one that was not asked for (a push), or one too large.
pub fn token(input: &[u8]) -> Result<Option<(Token, usize)>, MalformedAnswer> {
    if let Some(found) = plain(&mut Heading::default(), input) {
        return Ok(Some(found));
    }
    let Some(&kind) = input.first() else { return Ok(None) };
    let Some(end) = line_end(input)? else { return Ok(None) };
    let Some(line) = input.get(1..end) else { return Err(MalformedAnswer("an empty line")) };
    let span = Span::new(1, end);
    // The line's own end is two bytes: CR LF.
    let after = end + 2;
    let found = match kind {
        b'$' | b'=' | b'!' => return bulk(kind, line, after, input),
        b'+' => Token::Status(span),
        b'-' => Token::Error(span),
        b':' => Token::Integer(integer(line)?),
        b'_' if line.is_empty() => Token::Nil,
        b'*' if line == b"-1" => Token::Nil,
        b'*' | b'~' => Token::Array(count(line)?),
        b'%' => Token::Map(count(line)?),
        b',' | b'(' | b'#' => Token::Text(span),
        b'>' => return Err(MalformedAnswer("a push message, though nothing is subscribed")),
        _ => return Err(MalformedAnswer("not a RESP token")),
    };
    Ok(Some((found, after)))
}

fn bulk(
    kind: u8,
    line: &[u8],
    after: usize,
    input: &[u8],
) -> Result<Option<(Token, usize)>, MalformedAnswer> {
    if kind == b'$' && line == b"-1" {
        return Ok(Some((Token::Nil, after)));
    }
    let length = parse_decimal(line).ok_or(MalformedAnswer("a length that is not a number"))?;
    if length > LARGEST_ANSWER as u64 {
        return Err(MalformedAnswer("a value that is too large"));
    }
    let Some((found, end)) = value(after, length as usize, input)? else { return Ok(None) };
    let found = match (kind, found) {
        (b'!', Token::Bulk(span)) => Token::Error(span),
        // A verbatim string begins with its format, such as `txt:`.
        (b'=', Token::Bulk(Span { start, end })) if length >= 4 => {
            Token::Bulk(Span { start: start + 4, end })
        }
        (b'=', _) => return Err(MalformedAnswer("a verbatim string without its format")),
        (_, found) => found,
    };
    Ok(Some((found, end)))
}

/// Reads the `length` bytes from `start` on, with a line end after them.
#[inline]
fn value(
    start: usize,
    length: usize,
    input: &[u8],
) -> Result<Option<(Token, usize)>, MalformedAnswer> {
    let end = start + length;
    match input.get(end..end + 2) {
        None => Ok(None),
        Some(b"\r\n") => Ok(Some((Token::Bulk(Span::new(start, end)), end + 2))),
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

fn integer(line: &[u8]) -> Result<i64, MalformedAnswer> {
    let (negative, digits) = match line.split_first() {
        Some((b'-', rest)) => (true, rest),
        Some((b'+', rest)) => (false, rest),
        _ => (false, line),
    };
    let number =
        parse_decimal(digits).ok_or(MalformedAnswer("an integer that is not a number"))? as i64;
    Ok(if negative { -number } else { number })
}

fn count(line: &[u8]) -> Result<usize, MalformedAnswer> {
    match parse_decimal(line) {
        Some(number) if number <= MOST_TOKENS as u64 => Ok(number as usize),
        Some(_) => Err(MalformedAnswer("an answer of too many elements")),
        None => Err(MalformedAnswer("a count that is not a number")),
    }
}

/// State of the search for the end of an answer.
#[derive(Clone, Copy, Debug, Default)]
pub struct Progress {
    /// Bytes looked at.
    at: usize,
    /// Tokens still to come; 0 before the first.
    missing: usize,
    first: Option<Token>,
    heading: Heading,
}

impl Progress {
    /// Begins the search for another answer.
    #[inline(always)]
    pub(super) fn go_on(&mut self) {
        (self.at, self.missing, self.first) = (0, 0, None);
    }
}

/// The line that the last value began with, such as `$100\r\n`. Most values of a load are as long as the one before,
/// which is seen at a glance; and where the next answer begins need not wait for the length to be computed.
#[derive(Clone, Copy, Debug)]
struct Heading {
    /// Its bytes, the first one the lowest, and those of them that count. No line fits if none counts.
    bytes: u64,
    mask: u64,
    /// Bytes of the value, and of the line.
    length: u32,
    line: u32,
}

impl Default for Heading {
    fn default() -> Self {
        Heading { bytes: u64::MAX, mask: 0, length: 0, line: 0 }
    }
}

impl Heading {
    /// Returns true if a value that begins with `begins` begins with this line.
    #[inline(always)]
    fn fits(&self, begins: u64) -> bool {
        begins & self.mask == self.bytes
    }

    /// Learns the line that `input` begins with; `None` only says that it is not here whole, or not as simple as most are.
    #[inline(never)]
    fn learn(&mut self, begins: u64, input: &[u8]) -> Option<()> {
        let (length, line) = parse_short_line(input.strip_prefix(b"$")?)?;
        let length =
            u32::try_from(length).ok().filter(|&length| length <= LARGEST_ANSWER as u32)?;
        let line = 1 + line as u32;
        *self = Heading { length, line, ..Heading::default() };
        // A line that is too long for this is read again each time.
        if line <= 8 {
            self.mask = u64::MAX >> (64 - 8 * line);
            self.bytes = begins & self.mask;
        }
        Some(())
    }
}

/// Looks for the end of an answer of `parts` replies, from where `progress` left off. `input`
/// begins at the answer's first byte every time. Gives the first token and the answer's length.
///
/// # Errors
/// Those of [`token`].
#[inline(always)]
pub fn scan(
    progress: &mut Progress,
    parts: u32,
    input: &[u8],
) -> Result<Option<(Token, usize)>, MalformedAnswer> {
    match plain(&mut progress.heading, input) {
        Some(whole) if parts == 1 && progress.missing == 0 => Ok(Some(whole)),
        _ => scan_on(progress, parts, input),
    }
}

/// Returns the token at the start of `input`, if it is here whole and one of the two of which nearly all answers consist:
/// `+OK`, or a value. It is put together where it is used, so that it stays in registers. A processor cannot foresee which
/// of the two comes in a mix of reads and writes, so nothing branches on it but for a line that has to be learnt.
#[inline(always)]
fn plain(heading: &mut Heading, input: &[u8]) -> Option<(Token, usize)> {
    const OK: u64 = u64::from_le_bytes(*b"+OK\r\n\0\0\0");
    let begins = input.first_chunk().map(|bytes| u64::from_le_bytes(*bytes))?;
    let is_ok = (begins ^ OK) << 24 == 0;
    if !(is_ok | heading.fits(begins)) {
        heading.learn(begins, input)?;
    }
    let chosen = |of_ok: u32, of_value: u32| {
        of_value ^ ((of_value ^ of_ok) & u32::from(is_ok).wrapping_neg())
    };
    let start = chosen(1, heading.line);
    let end = (start + chosen(2, heading.length)) as usize;
    let span = Span::new(start as usize, end);
    let token = if is_ok { Token::Status(span) } else { Token::Bulk(span) };
    (input.get(end..end + 2)? == b"\r\n").then_some((token, end + 2))
}

fn scan_on(
    progress: &mut Progress,
    parts: u32,
    input: &[u8],
) -> Result<Option<(Token, usize)>, MalformedAnswer> {
    if progress.missing == 0 {
        progress.missing = parts.max(1) as usize;
    }
    loop {
        let Some((found, length)) = token(&input[progress.at..])? else { return Ok(None) };
        let first = *progress.first.get_or_insert(found.shifted(progress.at));
        progress.at += length;
        progress.missing += found.children();
        progress.missing -= 1;
        if progress.missing == 0 {
            return Ok(Some((first, progress.at)));
        }
        if progress.missing > MOST_TOKENS {
            return Err(MalformedAnswer("an answer of too many elements"));
        }
    }
}

/// Iterator over the tokens of a whole answer, with the bytes that they stand for.
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

    /// Skips what belongs to a token that was given.
    pub fn skip_children(&mut self, parent: Token) {
        let mut missing = parent.children();
        while missing > 0 {
            let Some((found, _)) = self.next() else { return };
            missing = missing - 1 + found.children();
        }
    }
}

impl<'a> Iterator for Tokens<'a> {
    type Item = (Token, &'a [u8]);

    /// Returns the next token, and the bytes of its text or value (none for numbers and counts).
    fn next(&mut self) -> Option<Self::Item> {
        let (found, length) = token(self.rest).ok().flatten()?;
        let bytes = match found {
            Token::Status(span) | Token::Error(span) | Token::Bulk(span) | Token::Text(span) => {
                span.of(self.rest)
            }
            _ => &[],
        };
        self.rest = &self.rest[length..];
        Some((found, bytes))
    }
}

/// Opens a command of `count` words, its name included.
pub fn push_command(out: &mut Vec<u8>, count: usize) {
    out.push(b'*');
    push_decimal(out, count as u64);
    out.extend_from_slice(b"\r\n");
}

/// Lines that announce words of up to as many bytes less one: of keys and of most values.
const HEADINGS: [[u8; LONGEST_HEADING]; 1000] = headings();

/// Bytes of `$999\r\n` and room for more, so that one store of a known size writes any of them.
const LONGEST_HEADING: usize = 8;

const fn headings() -> [[u8; LONGEST_HEADING]; 1000] {
    let mut all = [[0; LONGEST_HEADING]; 1000];
    let mut length = 0;
    while length < all.len() {
        let (digits, mut rest) = (decimal_digits(length), length);
        let mut at = digits;
        while at > 0 {
            all[length][at] = b'0' + (rest % 10) as u8;
            (at, rest) = (at - 1, rest / 10);
        }
        all[length][0] = b'$';
        (all[length][digits + 1], all[length][digits + 2]) = (b'\r', b'\n');
        length += 1;
    }
    all
}

#[inline(always)]
const fn decimal_digits(below_1000: usize) -> usize {
    1 + (below_1000 >= 10) as usize + (below_1000 >= 100) as usize
}

/// Adds a word to a command.
#[inline]
pub fn push_word(out: &mut Vec<u8>, word: &[u8]) {
    match HEADINGS.get(word.len()) {
        Some(heading) => {
            // All of its bytes, and those behind its end taken back: a copy of another size each time is a call.
            let end = out.len() + decimal_digits(word.len()) + b"$\r\n".len();
            out.extend_from_slice(heading);
            out.truncate(end);
        }
        None => {
            out.push(b'$');
            push_decimal(out, word.len() as u64);
            out.extend_from_slice(b"\r\n");
        }
    }
    // Keys have this size where nothing else is asked for.
    match <&[u8; 16]>::try_from(word) {
        Ok(word) => out.extend_from_slice(word),
        Err(_) => out.extend_from_slice(word),
    }
    out.extend_from_slice(b"\r\n");
}

/// Adds a number as a word to a command.
pub fn push_number(out: &mut Vec<u8>, number: u64) {
    // 20 digits at most, so that the length has one or two.
    let digits = number.checked_ilog10().unwrap_or(0) + 1;
    out.push(b'$');
    push_decimal(out, u64::from(digits));
    out.extend_from_slice(b"\r\n");
    push_decimal(out, number);
    out.extend_from_slice(b"\r\n");
}

/// Returns a whole command of the given words.
#[must_use]
pub fn command(words: &[&[u8]]) -> Vec<u8> {
    let mut out = Vec::new();
    push_command(&mut out, words.len());
    words.iter().for_each(|word| push_word(&mut out, word));
    out
}

#[cfg(test)]
mod tests;

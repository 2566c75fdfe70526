//! Tarantool's binary protocol (IPROTO): packets of MessagePack, of which this writes what the driver sends and reads what
//! comes back. Requests: docs/stores/tarantool.md.

use crate::wire::MalformedAnswer;

/// Kinds of requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PacketKind {
    /// Reads tuples of an index.
    Select = 1,
    /// Writes a tuple, in place of another with its key.
    Replace = 3,
    /// Removes a tuple.
    Delete = 5,
    /// Logs in.
    Auth = 7,
    /// Runs an expression in Lua.
    Eval = 8,
}

/// Fields of a packet.
pub(super) mod field {
    /// Kind of a request, or outcome of an answer.
    pub const CODE: u8 = 0x00;
    /// Number by which an answer finds its request.
    pub const SYNC: u8 = 0x01;
    pub const SPACE: u8 = 0x10;
    pub const LIMIT: u8 = 0x12;
    pub const ITERATOR: u8 = 0x14;
    pub const KEY: u8 = 0x20;
    pub const TUPLE: u8 = 0x21;
    pub const USER: u8 = 0x23;
    pub const EXPRESSION: u8 = 0x27;
    /// Tuples, or values of an expression, of an answer.
    pub const DATA: u8 = 0x30;
    /// Text of an error.
    pub const ERROR: u8 = 0x31;
}

/// Length of the greeting with which a server begins.
const GREETING: usize = 128;

/// First bytes of it.
const GREETS: &[u8] = b"Tarantool ";

/// A whole answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reply {
    /// Number of the error; 0 where there is none.
    pub error: u32,
    /// Place of the data, or of the error's text, in the answer.
    pub at: usize,
}

/// Looks for a whole greeting or answer at the start of `input`.
///
/// # Errors
/// [`MalformedAnswer`] if these bytes are none.
pub fn scan(input: &[u8]) -> Result<Option<(Reply, usize)>, MalformedAnswer> {
    let begins = input.len().min(GREETS.len());
    if begins == 0 || input[..begins] == GREETS[..begins] {
        let reply = Reply { error: 0, at: 0 };
        return Ok((input.len() >= GREETING).then_some((reply, GREETING)));
    }
    if input[0] != 0xce {
        return Err(MalformedAnswer("it does not begin with a packet's length"));
    }
    let Some(length) = input.get(1..5) else { return Ok(None) };
    let end = 5 + u32::from_be_bytes(length.try_into().expect("4 bytes")) as usize;
    let Some(packet) = input.get(..end) else { return Ok(None) };
    let mut reader = Reader { bytes: packet, at: 5 };
    let read = read_packet(&mut reader).ok_or(MalformedAnswer("a packet makes no sense"))?;
    Ok(Some((read, end)))
}

fn read_packet(reader: &mut Reader<'_>) -> Option<Reply> {
    let mut code = None;
    for _ in 0..reader.map()? {
        match reader.number()? as u8 {
            field::CODE => code = Some(reader.number()?),
            _ => reader.skip()?,
        }
    }
    // An error that has no number is one all the same.
    let (error, wanted) = match code? {
        code if code & 0x8000 == 0 => (0, field::DATA),
        code => (u32::try_from(code & 0x7fff).ok()?.max(1), field::ERROR),
    };
    let mut at = reader.at;
    // The answer to a log-in has no body, or an empty one.
    if reader.at < reader.bytes.len() {
        for _ in 0..reader.map()? {
            let field = reader.number()? as u8;
            if field == wanted {
                at = reader.at;
            }
            reader.skip()?;
        }
    }
    Some(Reply { error, at })
}

/// The salt in a greeting, with which a log-in is hidden: 20 bytes of it count.
pub fn salt(greeting: &[u8]) -> Option<&[u8]> {
    greeting.get(64..108)
}

/// Appends a packet whose header names `request`; `body` appends a map.
pub fn push(out: &mut Vec<u8>, request: PacketKind, body: impl FnOnce(&mut Vec<u8>)) {
    let begin = out.len();
    out.extend_from_slice(&[0xce, 0, 0, 0, 0]);
    // One request at a time is under way, so all have the same number.
    out.extend_from_slice(&[0x82, field::CODE, request as u8, field::SYNC, 0]);
    body(out);
    let length = u32::try_from(out.len() - begin - 5).unwrap_or(u32::MAX);
    out[begin + 1..begin + 5].copy_from_slice(&length.to_be_bytes());
}

/// Appends a request that reads up to `limit` tuples, from `key` on or at `key` alone.
pub fn push_select(out: &mut Vec<u8>, space: u32, key: &[u8], from: bool, limit: u32) {
    push(out, PacketKind::Select, |out| {
        out.extend_from_slice(&[0x84, field::SPACE]);
        push_number(out, space);
        out.push(field::LIMIT);
        push_number(out, limit);
        // Greater or equal, or equal.
        out.extend_from_slice(&[field::ITERATOR, if from { 5 } else { 0 }, field::KEY, 0x91]);
        push_text(out, key);
    });
}

/// Appends a request that writes a record.
pub fn push_replace(out: &mut Vec<u8>, space: u32, key: &[u8], value: &[u8]) {
    push(out, PacketKind::Replace, |out| {
        out.extend_from_slice(&[0x82, field::SPACE]);
        push_number(out, space);
        out.extend_from_slice(&[field::TUPLE, 0x92]);
        push_text(out, key);
        push_text(out, value);
    });
}

/// Appends a request that removes a record.
pub fn push_delete(out: &mut Vec<u8>, space: u32, key: &[u8]) {
    push(out, PacketKind::Delete, |out| {
        out.extend_from_slice(&[0x82, field::SPACE]);
        push_number(out, space);
        out.extend_from_slice(&[field::KEY, 0x91]);
        push_text(out, key);
    });
}

/// Appends a request that runs an expression; `arguments` appends as many values as `count` says.
pub fn push_eval(
    out: &mut Vec<u8>,
    expression: &str,
    count: usize,
    arguments: impl FnOnce(&mut Vec<u8>),
) {
    push(out, PacketKind::Eval, |out| {
        out.extend_from_slice(&[0x82, field::EXPRESSION]);
        push_text(out, expression.as_bytes());
        out.push(field::TUPLE);
        push_array(out, count);
        arguments(out);
    });
}

/// Appends a number.
pub fn push_number(out: &mut Vec<u8>, value: u32) {
    out.push(0xce);
    out.extend_from_slice(&value.to_be_bytes());
}

/// Appends the head of an array.
pub fn push_array(out: &mut Vec<u8>, count: usize) {
    out.push(0xdd);
    out.extend_from_slice(&(count as u32).to_be_bytes());
}

/// Appends bytes, as a string: Tarantool takes any.
pub fn push_text(out: &mut Vec<u8>, bytes: &[u8]) {
    match bytes.len() {
        length @ 0..32 => out.push(0xa0 | length as u8),
        length @ 32..256 => out.extend_from_slice(&[0xd9, length as u8]),
        length => {
            out.push(0xdb);
            out.extend_from_slice(&(length as u32).to_be_bytes());
        }
    }
    out.extend_from_slice(bytes);
}

/// Reads values of MessagePack, one after the other. `None` from any of its functions: the bytes are something else.
#[derive(Clone, Debug)]
pub struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    /// Begins with the data of an answer, or with the text of an error.
    pub fn of(answer: &'a [u8], reply: Reply) -> Reader<'a> {
        Reader { bytes: answer, at: reply.at }
    }

    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let end = self.at.checked_add(length)?;
        let taken = self.bytes.get(self.at..end)?;
        self.at = end;
        Some(taken)
    }

    fn big_endian(&mut self, length: usize) -> Option<u64> {
        Some(self.take(length)?.iter().fold(0, |number, byte| number << 8 | u64::from(*byte)))
    }

    fn head(&mut self) -> Option<u8> {
        self.take(1).map(|head| head[0])
    }

    /// Reads a number that is not negative.
    pub fn number(&mut self) -> Option<u64> {
        match self.head()? {
            small @ 0..=0x7f => Some(small.into()),
            head @ 0xcc..=0xcf => self.big_endian(1 << (head - 0xcc)),
            _ => None,
        }
    }

    /// Reads the head of a value that has others inside: how many, or how many pairs.
    fn count(&mut self, short: u8, long: u8) -> Option<u64> {
        match self.head()? {
            head if head & 0xf0 == short => Some(u64::from(head & 0xf)),
            head if head & 0xfe == long => self.big_endian(2 << (head - long)),
            _ => None,
        }
    }

    fn map(&mut self) -> Option<u64> {
        self.count(0x80, 0xde)
    }

    /// Reads the head of an array: its length.
    pub fn array(&mut self) -> Option<u64> {
        self.count(0x90, 0xdc)
    }

    /// Reads a string or bytes.
    pub fn text(&mut self) -> Option<&'a [u8]> {
        let length = match self.head()? {
            head @ 0xa0..=0xbf => u64::from(head & 0x1f),
            head @ 0xc4..=0xc6 => self.big_endian(1 << (head - 0xc4))?,
            head @ 0xd9..=0xdb => self.big_endian(1 << (head - 0xd9))?,
            _ => return None,
        };
        self.take(usize::try_from(length).ok()?)
    }

    /// Reads a nil, if the next value is one.
    pub fn nil(&mut self) -> bool {
        let nil = self.bytes.get(self.at) == Some(&0xc0);
        self.at += usize::from(nil);
        nil
    }

    /// Passes over one value, whatever it is.
    pub fn skip(&mut self) -> Option<()> {
        let mut open: u64 = 1;
        while open > 0 {
            open -= 1;
            let (length, inside) = match *self.bytes.get(self.at)? {
                0x80..=0x8f | 0xde | 0xdf => (0, 2 * self.map()?),
                0x90..=0x9f | 0xdc | 0xdd => (0, self.array()?),
                0xa0..=0xbf | 0xc4..=0xc6 | 0xd9..=0xdb => (0, self.text().map(|_| 0)?),
                0xc7..=0xc9 => {
                    let head = self.head()?;
                    (self.big_endian(1 << (head - 0xc7))? + 1, 0)
                }
                0xca => (5, 0),
                0xcb => (9, 0),
                head @ 0xcc..=0xd3 => (1 + (1 << (head & 3)), 0),
                head @ 0xd4..=0xd8 => (2 + (1 << (head - 0xd4)), 0),
                _ => (1, 0),
            };
            self.take(usize::try_from(length).ok()?)?;
            open = open.checked_add(inside)?;
        }
        Some(())
    }

    /// Reads a record: its key and its value. What follows in its tuple is passed over.
    pub fn record(&mut self) -> Option<(&'a [u8], &'a [u8])> {
        let fields = self.array()?.checked_sub(2)?;
        let record = (self.text()?, self.text()?);
        (0..fields).try_for_each(|_| self.skip())?;
        Some(record)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(code: u32, body: &[u8]) -> Vec<u8> {
        let mut out = vec![0xce, 0, 0, 0, 0, 0x83, field::CODE];
        push_number(&mut out, code);
        out.extend_from_slice(&[field::SYNC, 0xcf, 0, 0, 0, 0, 0, 0, 0, 0, 5, 0xce, 0, 0, 0, 80]);
        out.extend_from_slice(body);
        let length = out.len() as u32 - 5;
        out[1..5].copy_from_slice(&length.to_be_bytes());
        out
    }

    #[test]
    fn an_answer_is_whole_or_awaited_and_its_data_are_read() {
        let mut body = vec![0x81, field::DATA];
        push_array(&mut body, 1);
        body.extend_from_slice(&[
            0x93, 0xa1, b'k', 0xc4, 2, 7, 8, 0x81, 1, 0xcb, 0, 0, 0, 0, 0, 0, 0, 0,
        ]);
        let whole = answer(0, &body);
        for length in 0..whole.len() {
            assert_eq!(scan(&whole[..length]), Ok(None), "{length} bytes");
        }
        let (reply, length) = scan(&whole).unwrap().expect("a whole one");
        assert_eq!((reply.error, length), (0, whole.len()));
        let mut reader = Reader::of(&whole, reply);
        assert_eq!(reader.array(), Some(1));
        assert_eq!(reader.record(), Some((&b"k"[..], &[7u8, 8][..])));
        assert_eq!(reader.skip(), None, "nothing follows");
    }

    #[test]
    fn an_error_has_its_number_and_its_text() {
        let mut body = vec![0x82, field::ERROR];
        push_text(&mut body, b"no");
        body.extend_from_slice(&[0x52, 0x90]);
        let whole = answer(0x8000 | 36, &body);
        let (reply, _) = scan(&whole).unwrap().expect("a whole one");
        assert_eq!(reply.error, 36);
        assert_eq!(Reader::of(&whole, reply).text(), Some(&b"no"[..]));
        // The answer to a log-in.
        assert_eq!(scan(&answer(0, &[0x80])).unwrap().expect("a whole one").0.error, 0);
    }

    #[test]
    fn a_greeting_is_told_from_answers_and_from_other_protocols() {
        let mut greeting = b"Tarantool 2.6.0 (Binary)".to_vec();
        greeting.resize(128, b' ');
        assert_eq!(scan(&greeting[..127]), Ok(None));
        assert_eq!(scan(&greeting), Ok(Some((Reply { error: 0, at: 0 }, 128))));
        for other in [&b"HTTP/1.1 400"[..], b"Tarantula", b"\x15\x03", b"\xce\0\0\0\x02\x81\x00"] {
            assert!(scan(other).is_err(), "{other:?}");
        }
    }

    #[test]
    fn a_request_counts_its_bytes() {
        let mut out = vec![9];
        push_replace(&mut out, 512, b"key", &[1; 300]);
        assert_eq!(out[1], 0xce);
        assert_eq!(u32::from_be_bytes(out[2..6].try_into().unwrap()) as usize, out.len() - 6);
        let mut reader = Reader { bytes: &out, at: 6 };
        assert_eq!((reader.skip(), reader.skip()), (Some(()), Some(())), "header and body");
        assert_eq!(reader.at, out.len());
    }

    #[test]
    fn lengths_that_cannot_be_end_the_search() {
        for bytes in [
            &[0xdd, 255, 255, 255, 255][..],
            &[0xdb, 255, 255, 255, 255],
            &[0xc9, 255, 255, 255, 255],
        ] {
            assert_eq!(Reader { bytes, at: 0 }.skip(), None, "{bytes:?}");
        }
    }
}

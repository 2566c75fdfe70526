//! Reads and writes Riak's frames, and the answer to a get. A frame is four bytes of length (big endian, of all that
//! follows), one byte that tells which message it is, and the message.
//!
//! Requests are encoded by `prost` from messages that a client keeps and fills again. The answer to
//! a get is not decoded into a message of its own, which would copy every value: [`Object`] walks
//! over its fields where they lie, with `prost`'s reader of tags and numbers.

use prost::Message;
use prost::encoding::{DecodeContext, WireType, decode_key, decode_varint, skip_field};

use crate::wire::{LARGEST_ANSWER, MalformedAnswer};

/// Codes of messages in frames (riak_pb_messages.csv).
pub mod code {
    /// `RpbErrorResp`
    pub const ERROR: u8 = 0;
    /// `RpbPingReq`, empty
    pub const PING: u8 = 1;
    /// `RpbPingResp`, empty
    pub const PONG: u8 = 2;
    /// `RpbGetServerInfoReq`, empty
    pub const GET_SERVER_INFO: u8 = 7;
    /// `RpbGetServerInfoResp`
    pub const SERVER_INFO: u8 = 8;
    /// `RpbGetReq`
    pub const GET: u8 = 9;
    /// `RpbGetResp`
    pub const GOT: u8 = 10;
    /// `RpbPutReq`
    pub const PUT: u8 = 11;
    /// `RpbPutResp`
    pub const DONE_PUT: u8 = 12;
    /// `RpbDelReq`
    pub const DELETE: u8 = 13;
    /// `RpbDelResp`, empty
    pub const DONE_DELETE: u8 = 14;
    /// `RpbGetBucketReq`
    pub const GET_BUCKET: u8 = 19;
    /// `RpbGetBucketResp`
    pub const BUCKET: u8 = 20;
    /// `RpbSetBucketReq`
    pub const SET_BUCKET: u8 = 21;
    /// `RpbSetBucketResp`, empty
    pub const DONE_SET_BUCKET: u8 = 22;
}

/// Bytes of length and code before the message.
const HEAD: usize = 5;

/// Looks for the end of the frame at the start of `input`: its code and its length, or `None` while
/// bytes are missing.
///
/// # Errors
/// [`MalformedAnswer`] if the frame has no code, or is too large.
#[inline]
pub fn scan(input: &[u8]) -> Result<Option<(u8, usize)>, MalformedAnswer> {
    let Some(&[a, b, c, d]) = input.first_chunk() else { return Ok(None) };
    let length = u32::from_be_bytes([a, b, c, d]) as usize;
    if length == 0 {
        return Err(MalformedAnswer("a frame without a message code"));
    }
    if length > LARGEST_ANSWER {
        return Err(MalformedAnswer("a frame that is too large"));
    }
    let Some(code) = input.get(4) else { return Ok(None) };
    let end = 4 + length;
    Ok((input.len() >= end).then_some((*code, end)))
}

/// Returns the message in a whole frame.
#[must_use]
pub fn message(frame: &[u8]) -> &[u8] {
    frame.get(HEAD..).unwrap_or_default()
}

/// Appends a frame.
pub fn push(out: &mut Vec<u8>, code: u8, message: &impl Message) {
    let length = message.encoded_len() as u32 + 1;
    out.extend_from_slice(&length.to_be_bytes());
    out.push(code);
    // Fails only where there is no room left, and a vector makes room.
    let _ = message.encode(out);
}

/// Appends a frame of a message without fields.
pub fn push_empty(out: &mut Vec<u8>, code: u8) {
    out.extend_from_slice(&[0, 0, 0, 1, code]);
}

/// One field of a message.
enum Piece<'a> {
    Number(u64),
    Bytes(&'a [u8]),
    /// A field of a kind that no field read here has.
    Other,
}

/// Takes the first field of a message off its bytes, with its number.
fn next_field<'a>(rest: &mut &'a [u8]) -> Result<Option<(u32, Piece<'a>)>, MalformedAnswer> {
    const CUT: MalformedAnswer = MalformedAnswer("a message that is cut or has no such fields");
    if rest.is_empty() {
        return Ok(None);
    }
    let (number, kind) = decode_key(rest).map_err(|_| CUT)?;
    let piece = match kind {
        WireType::Varint => Piece::Number(decode_varint(rest).map_err(|_| CUT)?),
        WireType::LengthDelimited => {
            let length = decode_varint(rest).map_err(|_| CUT)?;
            let length = usize::try_from(length).map_err(|_| CUT)?;
            let (bytes, after) = rest.split_at_checked(length).ok_or(CUT)?;
            *rest = after;
            Piece::Bytes(bytes)
        }
        other => {
            skip_field(other, number, rest, DecodeContext::default()).map_err(|_| CUT)?;
            Piece::Other
        }
    };
    Ok(Some((number, piece)))
}

/// `RpbGetResp`: all values that a record has at once, and what they were written upon.
#[derive(Clone, Copy, Debug)]
pub struct Object<'a> {
    message: &'a [u8],
    vclock: Option<&'a [u8]>,
}

impl<'a> Object<'a> {
    /// Reads a message over, values included.
    ///
    /// # Errors
    /// [`MalformedAnswer`] if it is no `RpbGetResp`.
    pub fn read(message: &'a [u8]) -> Result<Object<'a>, MalformedAnswer> {
        let (mut rest, mut vclock) = (message, None);
        while let Some((number, piece)) = next_field(&mut rest)? {
            match (number, piece) {
                (1, Piece::Bytes(content)) => drop(RiakContent::read(content)?),
                (2, Piece::Bytes(bytes)) => vclock = Some(bytes),
                (1 | 2, _) => return Err(MalformedAnswer("a field of another kind")),
                _ => {}
            }
        }
        Ok(Object { message, vclock })
    }

    /// Returns the vector clock, opaque; there may be one of a tombstone.
    #[must_use]
    pub fn vclock(&self) -> Option<&'a [u8]> {
        self.vclock
    }

    /// Returns the values: none if there is no such record, several if they are siblings.
    #[must_use]
    pub fn contents(&self) -> Contents<'a> {
        Contents { rest: self.message }
    }
}

/// Iterator over the values of an [`Object`].
#[derive(Clone, Debug)]
pub struct Contents<'a> {
    rest: &'a [u8],
}

impl<'a> Iterator for Contents<'a> {
    type Item = RiakContent<'a>;

    fn next(&mut self) -> Option<RiakContent<'a>> {
        // The message was read over when the object was made.
        while let Ok(Some((number, piece))) = next_field(&mut self.rest) {
            if let (1, Piece::Bytes(content)) = (number, piece) {
                return RiakContent::read(content).ok();
            }
        }
        None
    }
}

/// `RpbContent`: one value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RiakContent<'a> {
    /// The value; empty in a tombstone, and where only the head was asked for.
    pub value: &'a [u8],
    /// Time of writing by the clock of a node: seconds since 1970 and microseconds.
    pub modified: (u64, u64),
    /// True for a tombstone.
    pub deleted: bool,
}

impl<'a> RiakContent<'a> {
    fn read(message: &'a [u8]) -> Result<RiakContent<'a>, MalformedAnswer> {
        let (mut rest, mut content) = (message, RiakContent::default());
        while let Some((number, piece)) = next_field(&mut rest)? {
            match (number, piece) {
                (1, Piece::Bytes(value)) => content.value = value,
                (7, Piece::Number(seconds)) => content.modified.0 = seconds,
                (8, Piece::Number(micros)) => content.modified.1 = micros,
                (11, Piece::Number(flag)) => content.deleted = flag != 0,
                (1 | 7 | 8 | 11, _) => return Err(MalformedAnswer("a field of another kind")),
                _ => {}
            }
        }
        Ok(content)
    }
}

#[cfg(test)]
mod tests;

//! Writes the commands of operations on one record, and reads their answers.

use std::time::Duration;

use kvdyno_core::store::{Answer, Put, Reading, RequestError};

use super::codec::{Token, Tokens, push_command, push_number, push_word};
use super::errors;
use crate::wire::{Effect, parse_decimal, push_decimal, unexpected};

/// Length in bytes of the begin of a command whose name has three letters.
const OPENING: usize = 13;
const GET: &[u8; OPENING] = b"*2\r\n$3\r\nGET\r\n";
const SET: &[u8; OPENING] = b"*3\r\n$3\r\nSET\r\n";
const SET_AND_EXPIRE: &[u8; OPENING] = b"*5\r\n$3\r\nSET\r\n";
pub(super) const MULTI: &[u8] = b"*1\r\n$5\r\nMULTI\r\n";
pub(super) const EXEC: &[u8] = b"*1\r\n$4\r\nEXEC\r\n";

/// Appends `GET key`, or `HGETALL key` of a record that is kept as a hash.
pub(super) fn push_get(out: &mut Vec<u8>, key: &[u8], hash: bool) {
    match hash {
        true => push_hgetall(out, key),
        false => push_keyed(out, GET, key),
    }
}

#[inline(never)]
fn push_hgetall(out: &mut Vec<u8>, key: &[u8]) {
    out.extend_from_slice(b"*2\r\n$7\r\nHGETALL\r\n");
    push_word(out, key);
}

/// Appends `DEL key`.
pub(super) fn push_del(out: &mut Vec<u8>, key: &[u8]) {
    push_keyed(out, b"*2\r\n$3\r\nDEL\r\n", key);
}

/// Appends `SET key value`, with `PX milliseconds` for a time to live.
pub(super) fn push_set(out: &mut Vec<u8>, put: &Put<'_>) {
    push_keyed(out, if put.ttl.is_some() { SET_AND_EXPIRE } else { SET }, put.key);
    push_word(out, put.value.whole());
    if let Some(ttl) = put.ttl {
        out.extend_from_slice(b"$2\r\nPX\r\n");
        push_number(out, milliseconds(ttl));
    }
}

/// Appends a command up to its key, which is its first word but for its name. Keys have 16 bytes where nothing else is asked
/// for. Then all of it has a known size, and each piece is stored where it stays: a copy of pieces just stored waits until
/// they have left the processor.
#[inline(always)]
fn push_keyed(out: &mut Vec<u8>, opening: &[u8; OPENING], key: &[u8]) {
    let Ok(key) = <&[u8; 16]>::try_from(key) else {
        out.extend_from_slice(opening);
        return push_word(out, key);
    };
    const HEADING: &[u8; 5] = b"$16\r\n";
    const KEY: usize = OPENING + HEADING.len();
    const END: usize = KEY + 16;
    out.extend_from_slice(&[0; END + 2]);
    let Some(whole) = out.last_chunk_mut::<{ END + 2 }>() else { return };
    whole[..OPENING].copy_from_slice(opening);
    whole[OPENING..KEY].copy_from_slice(HEADING);
    whole[KEY..END].copy_from_slice(key);
    whole[END..].copy_from_slice(b"\r\n");
}

/// Form in which a record is written. It has four bytes, as many as are copied with it: the processor would wait for a copy
/// of more bytes than were stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub(super) enum Writing {
    /// A string.
    String,
    /// A hash, whose time to live, if it has one, stays as it is.
    Hash,
    /// A hash that is given a time to live, or loses it, in one transaction.
    HashAndExpiry,
}

impl Writing {
    /// Returns the form of a put. `expiring_hashes`: some hashes have a time to live, which HSET leaves as it is, so that a
    /// whole write without one has to end it.
    pub(super) fn of(put: &Put<'_>, expiring_hashes: bool) -> Writing {
        let ends_expiry = !put.partial && expiring_hashes;
        match put.record_fields > 1 {
            false => Writing::String,
            true if put.ttl.is_some() || ends_expiry => Writing::HashAndExpiry,
            true => Writing::Hash,
        }
    }

    /// Returns the number of replies that make up the answer.
    pub(super) fn parts(self) -> u32 {
        if self == Writing::HashAndExpiry { 4 } else { 1 }
    }

    pub(super) fn push(self, out: &mut Vec<u8>, put: &Put<'_>) {
        match self {
            Writing::String => push_set(out, put),
            Writing::Hash => push_hset(out, put),
            Writing::HashAndExpiry => push_hset_and_expiry(out, put),
        }
    }

    #[inline(always)]
    pub(super) fn read(self, first: Token, answer: &[u8]) -> Answer<()> {
        match (self, first) {
            (Writing::String, Token::Status(_)) => Ok(()),
            _ => self.read_rarer(first, answer),
        }
    }

    /// Reads an answer that is not that of a `SET` that was carried out.
    #[inline(never)]
    fn read_rarer(self, first: Token, answer: &[u8]) -> Answer<()> {
        match (self, first) {
            (Writing::HashAndExpiry, _) => read_transaction(answer),
            (_, Token::Error(text)) => Err(errors::request_error(text.of(answer))),
            (Writing::String, first) => set_answer(first),
            (Writing::Hash, first) => read_number(first, answer).map(drop),
        }
    }
}

fn push_hset_and_expiry(out: &mut Vec<u8>, put: &Put<'_>) {
    out.extend_from_slice(MULTI);
    push_hset(out, put);
    match put.ttl {
        Some(ttl) => {
            out.extend_from_slice(b"*3\r\n$7\r\nPEXPIRE\r\n");
            push_word(out, put.key);
            push_number(out, milliseconds(ttl));
        }
        None => {
            out.extend_from_slice(b"*2\r\n$7\r\nPERSIST\r\n");
            push_word(out, put.key);
        }
    }
    out.extend_from_slice(EXEC);
}

/// Appends `HSET key f0 value f1 value …` with the fields that the put holds.
fn push_hset(out: &mut Vec<u8>, put: &Put<'_>) {
    push_command(out, 2 + 2 * put.value.field_count());
    out.extend_from_slice(b"$4\r\nHSET\r\n");
    push_word(out, put.key);
    for (index, bytes) in put.value.fields() {
        // The letter and the digits of the number, of which there are at most five.
        let digits = index.checked_ilog10().unwrap_or(0) + 1;
        out.extend_from_slice(b"$");
        push_decimal(out, u64::from(digits) + 1);
        out.extend_from_slice(b"\r\nf");
        push_decimal(out, u64::from(index));
        out.extend_from_slice(b"\r\n");
        push_word(out, bytes);
    }
}

/// Returns a time to live in whole milliseconds, as Redis counts, and never 0, which it refuses.
fn milliseconds(ttl: Duration) -> u64 {
    u64::try_from(ttl.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX).max(1)
}

/// Returns true if there is a record; what it holds goes into `into`.
#[inline(always)]
pub(super) fn read_record(first: Token, answer: &[u8], into: &mut Reading) -> Answer<bool> {
    match first {
        Token::Bulk(value) => into.set_whole(value.of(answer)),
        rarer => return read_rarer(rarer, answer, into),
    }
    Ok(true)
}

/// Reads an answer that is not one value.
#[inline(never)]
fn read_rarer(first: Token, answer: &[u8], into: &mut Reading) -> Answer<bool> {
    match first {
        // RESP3 answers a map for a hash, RESP2 an array of names and values.
        Token::Nil | Token::Map(0) | Token::Array(0) => return Ok(false),
        Token::Map(_) | Token::Array(_) => read_fields(answer, into)?,
        Token::Error(text) => return Err(errors::request_error(text.of(answer))),
        _ => return Err(unexpected(Effect::Read)),
    }
    Ok(true)
}

/// Reads the answer of `SET` and `MSET` that were not refused.
pub(super) fn set_answer(first: Token) -> Answer<()> {
    match first {
        Token::Status(_) => Ok(()),
        _ => Err(unexpected(Effect::Write)),
    }
}

/// Reads names and values by turns, after the count.
fn read_fields(answer: &[u8], into: &mut Reading) -> Answer<()> {
    let mut texts = Tokens::new(answer).skip(1);
    while let Some((_, name)) = texts.next() {
        let index = name.strip_prefix(b"f").and_then(parse_decimal);
        let index = index.and_then(|index| u16::try_from(index).ok());
        let (Some(index), Some((Token::Bulk(_), value))) = (index, texts.next()) else {
            let name = String::from_utf8_lossy(name);
            return Err(errors::request_error(
                format!("WRONGTYPE the hash has a field `{name}`, which kvdyno did not write")
                    .as_bytes(),
            ));
        };
        into.push_field(index, value);
    }
    Ok(())
}

pub(super) fn read_number(first: Token, answer: &[u8]) -> Answer<i64> {
    match first {
        Token::Integer(number) => Ok(number),
        Token::Error(text) => Err(errors::request_error(text.of(answer))),
        _ => Err(unexpected(Effect::Write)),
    }
}

/// Reads the replies to MULTI, to each command that was queued, and to EXEC.
///
/// An error while commands are queued makes EXEC refuse all of them. If MULTI itself is refused
/// the commands run by themselves, and one that fails within EXEC does not undo the others: both
/// are indeterminate for the write as a whole.
pub(super) fn read_transaction(answer: &[u8]) -> Answer<()> {
    let mut tokens = Tokens::new(answer);
    let mut first_error: Option<RequestError> = None;
    let mut applied = false;
    let mut done = false;
    let mut position = 0;
    while let Some((token, text)) = tokens.next() {
        match token {
            Token::Error(_) if first_error.is_none() => {
                first_error = Some(errors::request_error(text))
            }
            Token::Error(_) => {}
            // OK of MULTI, QUEUED of the commands.
            Token::Status(_) if position == 0 || text == b"QUEUED" => {}
            Token::Array(_) => done = true,
            other => {
                applied = true;
                tokens.skip_children(other);
            }
        }
        position += 1;
    }
    match first_error {
        None if done => Ok(()),
        None => Err(unexpected(Effect::Write)),
        Some(error) if applied || done => {
            Err(RequestError::indeterminate(error.class, error.message.clone()))
        }
        Some(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use kvdyno_core::store::{Certainty, ErrorClass, FieldSpan, Value};

    use super::*;

    fn put<'a>(value: Value<'a>, fields: u16, ttl: Option<Duration>) -> Put<'a> {
        Put { key: b"key1", value, insert: false, partial: false, record_fields: fields, ttl }
    }

    #[test]
    fn a_put_of_one_value_is_a_set() {
        let mut out = Vec::new();
        push_set(&mut out, &put(Value::new(b"a\r\nb", &[]), 1, None));
        assert_eq!(out, b"*3\r\n$3\r\nSET\r\n$4\r\nkey1\r\n$4\r\na\r\nb\r\n");
        out.clear();
        push_set(&mut out, &put(Value::new(b"v", &[]), 1, Some(Duration::from_micros(1_499_100))));
        assert_eq!(out, b"*5\r\n$3\r\nSET\r\n$4\r\nkey1\r\n$1\r\nv\r\n$2\r\nPX\r\n$4\r\n1500\r\n");
    }

    #[test]
    fn a_put_of_fields_is_an_hset() {
        let spans =
            [FieldSpan { index: 0, start: 0, end: 2 }, FieldSpan { index: 12, start: 2, end: 5 }];
        let mut out = Vec::new();
        push_hset(&mut out, &put(Value::new(b"aabbb", &spans), 13, None));
        assert_eq!(
            out,
            b"*6\r\n$4\r\nHSET\r\n$4\r\nkey1\r\n$2\r\nf0\r\n$2\r\naa\r\n$3\r\nf12\r\n$3\r\nbbb\r\n"
        );
    }

    #[test]
    fn a_time_to_live_is_never_zero() {
        assert_eq!(milliseconds(Duration::ZERO), 1);
        assert_eq!(milliseconds(Duration::from_millis(7)), 7);
    }

    #[test]
    fn a_transaction_is_applied_whole_or_refused_whole_or_unknown() {
        let outcome = |answer: &[u8]| {
            read_transaction(answer).map_err(|error| (error.certainty, error.class))
        };
        assert_eq!(outcome(b"+OK\r\n+QUEUED\r\n+QUEUED\r\n*2\r\n:1\r\n:1\r\n"), Ok(()));
        assert_eq!(outcome(b"+OK\r\n+QUEUED\r\n*1\r\n+OK\r\n"), Ok(()));
        let refused = b"+OK\r\n-OOM command not allowed\r\n+QUEUED\r\n-EXECABORT Transaction\r\n";
        assert_eq!(outcome(refused), Err((Certainty::Failed, ErrorClass::Full)));
        let alone = b"-NOPERM no MULTI\r\n:2\r\n:1\r\n-ERR EXEC without MULTI\r\n";
        assert_eq!(outcome(alone), Err((Certainty::Indeterminate, ErrorClass::Rejected)));
        let partly = b"+OK\r\n+QUEUED\r\n+QUEUED\r\n*2\r\n-WRONGTYPE other\r\n:1\r\n";
        assert_eq!(outcome(partly), Err((Certainty::Indeterminate, ErrorClass::Rejected)));
        let aborted = b"+OK\r\n+QUEUED\r\n+QUEUED\r\n_\r\n";
        assert_eq!(outcome(aborted), Err((Certainty::Indeterminate, ErrorClass::Protocol)));
    }

    #[test]
    fn foreign_fields_are_refused() {
        let mut into = Reading::default();
        assert!(read_fields(b"%1\r\n$2\r\nf3\r\n$1\r\nx\r\n", &mut into).is_ok());
        assert_eq!(into.spans(), &[FieldSpan { index: 3, start: 0, end: 1 }]);
        let error = read_fields(b"%1\r\n$4\r\nname\r\n$1\r\nx\r\n", &mut into).unwrap_err();
        assert_eq!(error.class, ErrorClass::Rejected);
        assert!(read_fields(b"%1\r\n$6\r\nf65536\r\n$1\r\nx\r\n", &mut into).is_err());
    }
}

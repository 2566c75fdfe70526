//! The operations of one Redis client: which commands each sends and what their answers mean.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use kvdyno_core::store::{Answer, Client, Fault, Put, Reading, Rows};

use super::codec::{Token, Tokens, push_command, push_number, push_word};
use super::errors;
use super::router::{Router, push_set, set_answer};
use super::store::Learned;
use crate::wire::{Effect, parse_decimal, push_decimal, unexpected};

/// One request slot of a connection to Redis, or of connections to several of its servers.
pub struct RedisClient {
    router: Router,
    learned: Arc<Learned>,
}

/// What a read found.
enum Found {
    Record,
    Nothing,
    /// The key holds a hash where a string was asked for, or the other way round.
    OtherType,
}

impl RedisClient {
    pub(super) fn new(router: Router, learned: Arc<Learned>) -> Self {
        RedisClient { router, learned }
    }

    /// Reads a record that is kept as a hash, or as a string.
    fn read_as<'a>(
        &'a mut self,
        hash: bool,
        key: &'a [u8],
        into: &'a mut Reading,
    ) -> impl Future<Output = Answer<Found>> {
        let encode = move |out: &mut Vec<u8>| {
            let command: &[u8] = if hash { HGETALL } else { GET };
            out.extend_from_slice(command);
            push_word(out, key);
        };
        let read = move |first: Token, answer: &[u8]| match first {
            Token::Bulk(value) if !hash => {
                into.set_whole(value.of(answer));
                Ok(Found::Record)
            }
            Token::Nil if !hash => Ok(Found::Nothing),
            // RESP3 answers a map, RESP2 an array of names and values.
            Token::Map(0) | Token::Array(0) if hash => Ok(Found::Nothing),
            Token::Map(_) | Token::Array(_) if hash => {
                read_fields(answer, into)?;
                Ok(Found::Record)
            }
            other => no_record(other, answer),
        };
        self.router.send(key, (Effect::Read, 1), encode, read)
    }

    /// As [`Client::get`], of a record that is not kept as thought.
    #[cold]
    async fn get_otherwise(&mut self, key: &[u8], into: &mut Reading, hash: bool) -> Answer<bool> {
        learn(&self.learned.hashes, hash);
        match self.read_as(hash, key, into).await? {
            Found::Record => Ok(true),
            Found::Nothing => Ok(false),
            Found::OtherType => {
                Err(errors::fault(b"WRONGTYPE neither a string nor a hash lies under this key"))
            }
        }
    }

    async fn put_fields(&mut self, put: Put<'_>) -> Answer<()> {
        learn(&self.learned.hashes, true);
        if put.ttl.is_some() {
            learn(&self.learned.expiring_hashes, true);
        }
        // HSET leaves an earlier time to live as it is, so a whole write without one ends it.
        let persist = put.ttl.is_none()
            && !put.partial
            && self.learned.expiring_hashes.load(Ordering::Acquire);
        if put.ttl.is_none() && !persist {
            let encode = |out: &mut Vec<u8>| push_hset(out, &put);
            let sent = self.router.send(put.key, (Effect::Write, 1), encode, read_number);
            return sent.await.map(drop);
        }
        let encode = |out: &mut Vec<u8>| {
            out.extend_from_slice(MULTI);
            push_hset(out, &put);
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
        };
        let read = |_: Token, answer: &[u8]| read_transaction(answer);
        self.router.send(put.key, (Effect::Write, 4), encode, read).await
    }
}

impl Client for RedisClient {
    async fn get(&mut self, key: &[u8], into: &mut Reading) -> Answer<bool> {
        let hash = self.learned.hashes.load(Ordering::Acquire);
        match self.read_as(hash, key, into).await? {
            Found::Record => Ok(true),
            Found::Nothing => Ok(false),
            // The first read of a run that has written nothing does not know yet how records are kept.
            // Rare: kept out of the future of each operation.
            Found::OtherType => Box::pin(self.get_otherwise(key, into, !hash)).await,
        }
    }

    async fn put(&mut self, put: Put<'_>) -> Answer<()> {
        if put.record_fields > 1 {
            return self.put_fields(put).await;
        }
        learn(&self.learned.hashes, false);
        let encode = |out: &mut Vec<u8>| push_set(out, &put);
        let read = |first: Token, answer: &[u8]| match first {
            Token::Error(text) => Err(errors::fault(text.of(answer))),
            first => set_answer(first),
        };
        self.router.send(put.key, (Effect::Write, 1), encode, read).await
    }

    async fn delete(&mut self, key: &[u8]) -> Answer<bool> {
        let encode = |out: &mut Vec<u8>| {
            out.extend_from_slice(b"*2\r\n$3\r\nDEL\r\n");
            push_word(out, key);
        };
        Ok(self.router.send(key, (Effect::Write, 1), encode, read_number).await? > 0)
    }

    async fn get_batch(&mut self, keys: &[&[u8]], into: &mut Rows) -> Answer<()> {
        if self.learned.hashes.load(Ordering::Acquire) {
            return Err(Fault::unsupported("get-batch of records with several fields"));
        }
        if keys.is_empty() {
            return Ok(());
        }
        self.router.get_batch(keys, into).await
    }

    async fn put_batch(&mut self, puts: &[Put<'_>]) -> Answer<()> {
        if puts.iter().any(|put| put.record_fields > 1) {
            return Err(Fault::unsupported("put-batch of records with several fields"));
        }
        if puts.is_empty() {
            return Ok(());
        }
        learn(&self.learned.hashes, false);
        self.router.put_batch(puts).await
    }
}

/// Sets a flag that all workers read with each operation: written only if that changes it.
fn learn(flag: &AtomicBool, value: bool) {
    if flag.load(Ordering::Acquire) != value {
        flag.store(value, Ordering::Release);
    }
}

const GET: &[u8] = b"*2\r\n$3\r\nGET\r\n";
const HGETALL: &[u8] = b"*2\r\n$7\r\nHGETALL\r\n";
pub(super) const MULTI: &[u8] = b"*1\r\n$5\r\nMULTI\r\n";
pub(super) const EXEC: &[u8] = b"*1\r\n$4\r\nEXEC\r\n";

/// `HSET key f0 value f1 value …` with the fields that the put holds.
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

/// Redis counts times to live in whole milliseconds and refuses 0.
pub(super) fn milliseconds(ttl: Duration) -> u64 {
    u64::try_from(ttl.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX).max(1)
}

fn no_record(first: Token, answer: &[u8]) -> Answer<Found> {
    match first {
        Token::Error(text) if errors::is_wrong_type(text.of(answer)) => Ok(Found::OtherType),
        Token::Error(text) => Err(errors::fault(text.of(answer))),
        _ => Err(unexpected(Effect::Read)),
    }
}

/// Names and values by turns, after the count.
fn read_fields(answer: &[u8], into: &mut Reading) -> Answer<()> {
    let mut texts = Tokens::new(answer).skip(1);
    while let Some((_, name)) = texts.next() {
        let index = name.strip_prefix(b"f").and_then(parse_decimal);
        let index = index.and_then(|index| u16::try_from(index).ok());
        let (Some(index), Some((Token::Bulk(_), value))) = (index, texts.next()) else {
            let name = String::from_utf8_lossy(name);
            return Err(errors::fault(
                format!("WRONGTYPE the hash has a field `{name}`, which kvdyno did not write")
                    .as_bytes(),
            ));
        };
        into.push_field(index, value);
    }
    Ok(())
}

fn read_number(first: Token, answer: &[u8]) -> Answer<i64> {
    match first {
        Token::Integer(number) => Ok(number),
        Token::Error(text) => Err(errors::fault(text.of(answer))),
        _ => Err(unexpected(Effect::Write)),
    }
}

/// The replies to MULTI, to each command that was queued, and to EXEC.
///
/// An error while commands are queued makes EXEC refuse all of them. If MULTI itself is refused
/// the commands run by themselves, and one that fails within EXEC does not undo the others: both
/// are indeterminate for the write as a whole.
pub(super) fn read_transaction(answer: &[u8]) -> Answer<()> {
    let mut tokens = Tokens::new(answer);
    let mut first_error: Option<Fault> = None;
    let mut applied = false;
    let mut done = false;
    let mut position = 0;
    while let Some((token, text)) = tokens.next() {
        match token {
            Token::Error(_) if first_error.is_none() => first_error = Some(errors::fault(text)),
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
        Some(fault) if applied || done => Err(Fault::indeterminate(fault.class, fault.message)),
        Some(fault) => Err(fault),
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
            read_transaction(answer).map_err(|fault| (fault.certainty, fault.class))
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
        let fault = read_fields(b"%1\r\n$4\r\nname\r\n$1\r\nx\r\n", &mut into).unwrap_err();
        assert_eq!(fault.class, ErrorClass::Rejected);
        assert!(read_fields(b"%1\r\n$6\r\nf65536\r\n$1\r\nx\r\n", &mut into).is_err());
    }
}

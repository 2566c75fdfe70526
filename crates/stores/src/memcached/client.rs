//! The operations of one Memcached client: which commands each sends and what their replies mean.

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use kvdyno_core::store::{Answer, Client, ErrorClass, Put, Reading, RequestError, Rows};

use super::codec::{self, Token, Tokens};
use super::{Dialect, Wire, errors};
use crate::placement::{Placement, Split};
use crate::wire::{Effect, Link, outcome_of_all, unexpected};

/// One request slot of the connections to all servers.
pub struct MemcachedClient {
    link: Link<Wire>,
    placement: Arc<Placement>,
    dialect: Dialect,
}

impl MemcachedClient {
    pub(super) fn new(link: Link<Wire>, placement: Arc<Placement>, dialect: Dialect) -> Self {
        MemcachedClient { link, placement, dialect }
    }
}

impl Client for MemcachedClient {
    async fn get(&mut self, key: &[u8], into: &mut Reading) -> Answer<bool> {
        check_key(key)?;
        let dialect = self.dialect;
        let encode = |out: &mut Vec<u8>| dialect.push_get(out, key);
        let read = |reply: Token, answer: &[u8]| match reply {
            Token::Value(value) => {
                into.set_whole(value.of(answer));
                Ok(true)
            }
            Token::Miss => Ok(false),
            other => Err(refused(Effect::Read, other, answer)),
        };
        self.link.request(self.placement.of(key), Effect::Read, 1, encode, read).await
    }

    async fn put(&mut self, put: Put<'_>) -> Answer<()> {
        check_key(put.key)?;
        let dialect = self.dialect;
        let encode = |out: &mut Vec<u8>| push_put(out, dialect, &put);
        let read = |reply: Token, answer: &[u8]| match reply {
            Token::Done => Ok(()),
            other => Err(refused(Effect::Write, other, answer)),
        };
        self.link.request(self.placement.of(put.key), Effect::Write, 1, encode, read).await
    }

    async fn delete(&mut self, key: &[u8]) -> Answer<bool> {
        check_key(key)?;
        let dialect = self.dialect;
        let encode = |out: &mut Vec<u8>| dialect.push_delete(out, key);
        let read = |reply: Token, answer: &[u8]| match reply {
            Token::Done => Ok(true),
            Token::NotFound => Ok(false),
            other => Err(refused(Effect::Write, other, answer)),
        };
        self.link.request(self.placement.of(key), Effect::Write, 1, encode, read).await
    }

    async fn get_batch(&mut self, keys: &[&[u8]], into: &mut Rows) -> Answer<()> {
        keys.iter().try_for_each(|key| check_key(key))?;
        if keys.is_empty() {
            return Ok(());
        }
        let split = Split::new(keys.iter().map(|key| self.placement.of(key)));
        let dialect = self.dialect;
        self.submit(&split, Effect::Read, |record, out| dialect.push_get(out, keys[record]));
        let read = |answers: Answers<'_>| read_rows(keys, &split, answers, into);
        self.link.gather(split.servers(), read).await
    }

    async fn put_batch(&mut self, puts: &[Put<'_>]) -> Answer<()> {
        puts.iter().try_for_each(|put| check_key(put.key))?;
        if puts.is_empty() {
            return Ok(());
        }
        let split = Split::new(puts.iter().map(|put| self.placement.of(put.key)));
        let dialect = self.dialect;
        self.submit(&split, Effect::Write, |record, out| push_put(out, dialect, &puts[record]));
        let read = |answers: Answers<'_>| {
            outcome_of_all(answers.into_iter().map(|answer| read_puts(answer?.1)))
        };
        self.link.gather(split.servers(), read).await
    }
}

impl MemcachedClient {
    /// Puts out one command for each record, to each server in one write.
    fn submit(&mut self, split: &Split, effect: Effect, encode: impl Fn(usize, &mut Vec<u8>)) {
        for (position, &server) in split.servers().iter().enumerate() {
            let records = || split.records(position);
            self.link.submit(server, effect, records().count() as u32, |out| {
                records().for_each(|record| encode(record, out));
            });
        }
    }
}

/// For each server that was asked its replies.
type Answers<'a> = Vec<Answer<(Token, &'a [u8])>>;

fn push_put(out: &mut Vec<u8>, dialect: Dialect, put: &Put<'_>) {
    let expiry = put.ttl.map(|ttl| {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
        codec::expiry(ttl, now.as_secs())
    });
    dialect.push_set(out, put.key, put.value.whole(), expiry);
}

fn check_key(key: &[u8]) -> Answer<()> {
    if codec::is_key(key) {
        return Ok(());
    }
    const MESSAGE: &str =
        "Memcached takes keys of 1 to 250 bytes without blanks or control characters";
    Err(RequestError::failed(ErrorClass::Rejected, MESSAGE))
}

/// A reply that is not the one hoped for. An error reply's line is all of `answer` or its start.
fn refused(effect: Effect, reply: Token, answer: &[u8]) -> RequestError {
    match reply {
        Token::Error(line) => errors::request_error(effect, line.of(answer)),
        Token::NotStored => RequestError::failed(ErrorClass::Rejected, "not stored"),
        _ => unexpected(effect),
    }
}

/// One row for each key, out of each server's replies.
fn read_rows(keys: &[&[u8]], split: &Split, answers: Answers<'_>, into: &mut Rows) -> Answer<()> {
    let mut replies = Vec::with_capacity(answers.len());
    for answer in answers {
        replies.push(Tokens::new(answer?.1));
    }
    for (key, position) in keys.iter().zip(split.positions()) {
        match replies[position].next() {
            Some((Token::Value(_), value)) => into.push(key, Some(value)),
            Some((Token::Miss, _)) => into.push(key, None),
            Some((other, line)) => return Err(refused(Effect::Read, other, line)),
            None => return Err(unexpected(Effect::Read)),
        }
    }
    Ok(())
}

/// One reply for each put that went to a server.
fn read_puts(answer: &[u8]) -> Answer<()> {
    outcome_of_all(Tokens::new(answer).map(|(reply, line)| match reply {
        Token::Done => Ok(()),
        other => Err(refused(Effect::Write, other, line)),
    }))
}

#[cfg(test)]
mod tests {
    use kvdyno_core::store::Certainty;

    use super::*;

    #[test]
    fn a_batch_is_stored_refused_or_unknown() {
        let outcome =
            |answer: &[u8]| read_puts(answer).map_err(|error| (error.certainty, error.class));
        assert_eq!(outcome(b"HD\r\nHD\r\n"), Ok(()));
        let full = "SERVER_ERROR out of memory storing object\r\n";
        let all = format!("{full}{full}");
        assert_eq!(outcome(all.as_bytes()), Err((Certainty::Failed, ErrorClass::Full)));
        let some = format!("HD\r\n{full}");
        assert_eq!(outcome(some.as_bytes()), Err((Certainty::Indeterminate, ErrorClass::Full)));
    }

    #[test]
    fn keys_that_the_protocol_cannot_carry_are_refused() {
        for key in [&b""[..], b"a b", b"a\r\nb", &[b'k'; 251], b"\x7f"] {
            assert_eq!(check_key(key).unwrap_err().class, ErrorClass::Rejected);
        }
        assert!(check_key(&[b'k'; 250]).is_ok());
    }
}

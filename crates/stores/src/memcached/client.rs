//! The operations of one Memcached client: which commands each sends and what their replies mean.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use kvdyno_core::store::{Answer, Client, ErrorClass, Fault, Put, Reading, Rows};

use super::codec::{self, Token, Tokens};
use super::{Dialect, Wire, errors};
use crate::wire::{Effect, Link, unexpected};

/// One request slot of a connection to Memcached.
pub struct MemcachedClient {
    link: Link<Wire>,
    dialect: Dialect,
}

impl MemcachedClient {
    pub(super) fn new(link: Link<Wire>, dialect: Dialect) -> Self {
        MemcachedClient { link, dialect }
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
        self.link.request(Effect::Read, 1, encode, read).await
    }

    async fn put(&mut self, put: Put<'_>) -> Answer<()> {
        check_key(put.key)?;
        let dialect = self.dialect;
        let encode = |out: &mut Vec<u8>| push_put(out, dialect, &put);
        let read = |reply: Token, answer: &[u8]| match reply {
            Token::Done => Ok(()),
            other => Err(refused(Effect::Write, other, answer)),
        };
        self.link.request(Effect::Write, 1, encode, read).await
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
        self.link.request(Effect::Write, 1, encode, read).await
    }

    async fn get_batch(&mut self, keys: &[&[u8]], into: &mut Rows) -> Answer<()> {
        keys.iter().try_for_each(|key| check_key(key))?;
        if keys.is_empty() {
            return Ok(());
        }
        let dialect = self.dialect;
        let encode = |out: &mut Vec<u8>| keys.iter().for_each(|key| dialect.push_get(out, key));
        let read = |_: Token, answer: &[u8]| {
            for (key, (reply, value)) in keys.iter().zip(Tokens::new(answer)) {
                match reply {
                    Token::Value(_) => into.push(key, Some(value)),
                    Token::Miss => into.push(key, None),
                    other => return Err(refused(Effect::Read, other, value)),
                }
            }
            Ok(())
        };
        self.link.request(Effect::Read, keys.len() as u32, encode, read).await
    }

    async fn put_batch(&mut self, puts: &[Put<'_>]) -> Answer<()> {
        puts.iter().try_for_each(|put| check_key(put.key))?;
        if puts.is_empty() {
            return Ok(());
        }
        let dialect = self.dialect;
        let encode = |out: &mut Vec<u8>| puts.iter().for_each(|put| push_put(out, dialect, put));
        let read = |_: Token, answer: &[u8]| read_batch(answer);
        self.link.request(Effect::Write, puts.len() as u32, encode, read).await
    }
}

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
    Err(Fault::failed(ErrorClass::Rejected, MESSAGE))
}

/// A reply that is not the one hoped for. An error reply's line is all of `answer` or its start.
fn refused(effect: Effect, reply: Token, answer: &[u8]) -> Fault {
    match reply {
        Token::Error(line) => errors::fault(effect, line.of(answer)),
        Token::NotStored => Fault::failed(ErrorClass::Rejected, "not stored"),
        _ => unexpected(effect),
    }
}

/// One reply for each put: none failed, all failed, or it is not known for the batch as a whole.
fn read_batch(answer: &[u8]) -> Answer<()> {
    let mut stored = 0;
    let mut first: Option<Fault> = None;
    for (reply, line) in Tokens::new(answer) {
        match reply {
            Token::Done => stored += 1,
            other => {
                let fault = refused(Effect::Write, other, line);
                first.get_or_insert(fault);
            }
        }
    }
    match first {
        None => Ok(()),
        Some(fault) if stored == 0 => Err(fault),
        Some(fault) => {
            let lost = fault.connection_lost;
            let fault = Fault::indeterminate(fault.class, fault.message);
            Err(if lost { fault.losing_connection() } else { fault })
        }
    }
}

#[cfg(test)]
mod tests {
    use kvdyno_core::store::Certainty;

    use super::*;

    #[test]
    fn a_batch_is_stored_refused_or_unknown() {
        let outcome =
            |answer: &[u8]| read_batch(answer).map_err(|fault| (fault.certainty, fault.class));
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

//! The operations of one client of a NATS bucket: which requests each sends, and what their answers mean.

use std::rc::Rc;
use std::time::Duration;

use async_nats::{HeaderMap, Message, Request, StatusCode};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use bytes::Bytes;
use kvdyno_core::store::{Answer, Client, Put, Reading};
use serde_json::{Value, json};

use super::NatsRead;
use super::errors;
use super::line::{Line, NatsLink};
use crate::attempts::Attempted;
use crate::wire::Effect;

/// Says what became of a record, where its last message is not its value.
const OPERATION: &str = "KV-Operation";
/// Says why a server left a marker in the place of a record.
const MARKER: &str = "Nats-Marker-Reason";
/// Refusal of a key, before anything is sent.
const NO_KEY: &str =
    "NATS takes keys of letters, digits, `-`, `/`, `_`, `=` and `.` (not at an end)";
/// Time to live of a message, in whole seconds.
const TTL: &str = "Nats-TTL";

/// A client of a bucket. Clients of one connection share a connection to a server.
pub struct NatsClient {
    line: Rc<Line>,
    link: Option<Attempted<NatsLink>>,
    /// Begin of the subjects of records.
    subjects: String,
    /// Subject that reads are asked of.
    reads: String,
}

impl NatsClient {
    pub(super) fn new(line: Rc<Line>) -> Self {
        let options = line.options();
        let stream = options.stream();
        let reads = match options.read {
            NatsRead::Leader => format!("$JS.API.STREAM.MSG.GET.{stream}"),
            NatsRead::Direct => format!("$JS.API.DIRECT.GET.{stream}."),
        };
        let subjects = format!("$KV.{}.", options.bucket);
        NatsClient { line, link: None, subjects, reads }
    }

    /// Sends one request and waits for its answer, no longer than the time allowed.
    pub(super) async fn ask(
        &mut self,
        effect: Effect,
        subject: String,
        request: Request,
    ) -> Answer<Message> {
        let timeout = self.line.options().timeout;
        if !self.link.as_ref().is_some_and(|link| self.line.holds(link)) {
            self.link = None;
        }
        let link = match &mut self.link {
            Some(link) => link,
            none => none.insert(self.line.link().await?),
        };
        let client = link.link.client.clone();
        let exchange = async {
            tokio::select! {
                biased;
                answer = client.send_request(subject, request.timeout(None)) => {
                    answer.map_err(|error| errors::of_request(&error, effect))
                }
                () = link.link.is_lost() => Err(errors::lost(effect)),
            }
        };
        let ended = tokio::time::timeout(timeout, exchange).await;
        let answer = ended.unwrap_or_else(|_| Err(effect.timed_out(timeout)));
        if answer.as_ref().is_err_and(|error| error.connection_lost) {
            self.line.lose(link);
            self.link = None;
        }
        answer
    }

    /// Sends one request of the JetStream API and reads its answer.
    pub(super) async fn call(
        &mut self,
        effect: Effect,
        subject: String,
        words: &Value,
    ) -> Answer<Value> {
        let words = Bytes::from(words.to_string());
        let answer = self.ask(effect, subject, Request::new().payload(words)).await?;
        errors::told(&answer.payload, effect)
    }

    /// Publishes a message and waits until the stream has acknowledged that it is stored.
    async fn store(
        &mut self,
        key: &[u8],
        value: &[u8],
        header: Option<(&str, String)>,
    ) -> Answer<()> {
        let subject = self.subject(key)?;
        let mut request = Request::new().payload(Bytes::copy_from_slice(value));
        if let Some((name, value)) = header {
            let mut headers = HeaderMap::new();
            headers.insert(name, value.as_str());
            request = request.headers(headers);
        }
        let answer = self.ask(Effect::Write, subject, request).await?;
        let acknowledged = errors::told(&answer.payload, Effect::Write)?;
        // Whoever else listens to the subject may answer as well: only the stream's own answer counts.
        let stored = acknowledged["stream"] == self.line.options().stream()
            && acknowledged["seq"].as_u64().is_some_and(|number| number > 0);
        if stored { Ok(()) } else { Err(Effect::Write.wrong_answer()) }
    }

    /// Gives the subject of a record; refuses a key that NATS does not take.
    fn subject(&self, key: &[u8]) -> Answer<String> {
        let taken = |byte: &u8| byte.is_ascii_alphanumeric() || b"-/_=.".contains(byte);
        let key = Some(key).filter(|key| key.iter().all(taken) && !key.is_empty());
        let key = key.filter(|key| !key.starts_with(b".") && !key.ends_with(b"."));
        let key = key.and_then(|key| std::str::from_utf8(key).ok());
        key.map(|key| format!("{}{key}", self.subjects)).ok_or_else(|| errors::rejected(NO_KEY))
    }

    /// Reads from the leader, which answers in JSON.
    async fn read_leader(&mut self, subject: String, into: &mut Reading) -> Answer<bool> {
        let words = json!({ "last_by_subj": subject });
        let found = match self.call(Effect::Read, self.reads.clone(), &words).await {
            Ok(found) => found,
            Err(error) if errors::is_absent(&error) => return Ok(false),
            Err(error) => return Err(error),
        };
        let decoded = |field: &str| match found["message"][field].as_str() {
            None => Some(Vec::new()),
            Some(text) => BASE64_STANDARD.decode(text).ok(),
        };
        let message = found["message"]["subject"] == subject;
        let (Some(headers), Some(value), true) = (decoded("hdrs"), decoded("data"), message) else {
            return Err(Effect::Read.wrong_answer());
        };
        if is_removed(&headers) {
            return Ok(false);
        }
        into.set_whole(&value);
        Ok(true)
    }

    /// Reads from whichever replica answers: the message itself, without a wrapping.
    async fn read_direct(&mut self, subject: String, into: &mut Reading) -> Answer<bool> {
        let question = format!("{}{subject}", self.reads);
        let found = self.ask(Effect::Read, question, Request::new()).await?;
        match found.status {
            None => {}
            Some(StatusCode::NOT_FOUND) => return Ok(false),
            Some(status) => return Err(errors::of_status(status, found.description.as_deref())),
        }
        let removed = found.headers.is_some_and(|headers| {
            headers.get(MARKER).is_some()
                || headers.get(OPERATION).is_some_and(|operation| operation.as_str() != "PUT")
        });
        if removed {
            return Ok(false);
        }
        into.set_whole(&found.payload);
        Ok(true)
    }
}

/// Returns true if the headers of a message say that it stands for no record.
fn is_removed(headers: &[u8]) -> bool {
    let text = String::from_utf8_lossy(headers);
    let mut pairs = text.lines().filter_map(|line| line.split_once(':'));
    pairs.any(|(name, value)| {
        name.eq_ignore_ascii_case(MARKER)
            || (name.eq_ignore_ascii_case(OPERATION) && value.trim() != "PUT")
    })
}

/// Counts the whole seconds that a time to live takes at least.
fn whole_seconds(ttl: Duration) -> u64 {
    (ttl.as_millis().div_ceil(1_000) as u64).max(1)
}

impl Client for NatsClient {
    async fn get(&mut self, key: &[u8], into: &mut Reading) -> Answer<bool> {
        let subject = self.subject(key)?;
        match self.line.options().read {
            NatsRead::Leader => self.read_leader(subject, into).await,
            NatsRead::Direct => self.read_direct(subject, into).await,
        }
    }

    async fn put(&mut self, put: Put<'_>) -> Answer<()> {
        let ttl = put.ttl.map(|ttl| (TTL, whole_seconds(ttl).to_string()));
        self.store(put.key, put.value.whole(), ttl).await
    }

    async fn delete(&mut self, key: &[u8]) -> Answer<bool> {
        self.store(key, b"", Some((OPERATION, "DEL".to_owned()))).await?;
        // NATS does not tell whether there was a record, and its users do not look first.
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_that_stands_for_no_record_is_known_by_its_headers() {
        assert!(is_removed(b"NATS/1.0\r\nKV-Operation: DEL\r\n\r\n"));
        assert!(is_removed(b"NATS/1.0\r\nkv-operation: PURGE\r\n\r\n"));
        assert!(is_removed(b"NATS/1.0\r\nNats-Marker-Reason: MaxAge\r\nNats-TTL: 1s\r\n\r\n"));
        assert!(!is_removed(b"NATS/1.0\r\nNats-TTL: 5\r\n\r\n"));
        assert!(!is_removed(b"NATS/1.0\r\nKV-Operation: PUT\r\n\r\n"));
        assert!(!is_removed(b""));
    }

    #[test]
    fn a_time_to_live_is_rounded_up() {
        assert_eq!(whole_seconds(Duration::from_millis(1)), 1);
        assert_eq!(whole_seconds(Duration::from_millis(1_001)), 2);
        assert_eq!(whole_seconds(Duration::from_secs(60)), 60);
    }
}

//! A Redis primary with replicas that sentinels watch: each connection asks them who the primary is, as
//! redis.io's "Guidelines for Redis clients with support for Redis Sentinel" say. So a fail-over is
//! followed as soon as a connection is lost or a primary says that it is one no more.
//! docs/stores/redis-sentinel.md.

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures_util::future::select_ok;
use kvdyno_core::store::{Answer, ErrorClass, RequestError};

use super::{Access, ReadFrom, ask, handshake};
use crate::error::StoreError;
use crate::redis::codec::{Token, Tokens};
use crate::url::StoreUrl;
use crate::wire::{Dialogue, Endpoint};

/// Takes the sentinels that a URL names, how their servers are asked, and where reads go.
pub(in crate::redis) fn open(
    url: &mut StoreUrl,
) -> Result<(Access, Sentinels, ReadFrom), StoreError> {
    let (access, reach) = Access::take(url)?;
    let read = ReadFrom::take(url)?;
    let password = url.take("sentinel-password");
    url.finish()?;
    let sentinels = reach.endpoints(url, 26379)?;
    let (name, database) = match url.path().trim_matches('/').split_once('/') {
        None => (url.path().trim_matches('/'), None),
        Some((name, database)) => (name, Some(database)),
    };
    if name.is_empty() {
        return Err(url.wrong("no name of a primary", "write it like `…:26379/mymaster`"));
    }
    let database = database.map_or(Ok(access.database), str::parse).map_err(|_| {
        url.wrong("a database that is no number", "write it like `…:26379/mymaster/0`")
    })?;
    let own = Access { password, resp: access.resp, ..Access::default() };
    let name = name.to_owned();
    let sentinels = Sentinels { servers: sentinels, access: own, name, turn: AtomicUsize::new(0) };
    Ok((Access { database, ..access }, sentinels, read))
}

/// The sentinels of one primary.
pub(in crate::redis) struct Sentinels {
    servers: Vec<Endpoint>,
    /// Settings by which the sentinels themselves are asked.
    access: Access,
    name: String,
    /// Counter by which the replicas take turns.
    turn: AtomicUsize,
}

type Asking<'a, T> = Pin<Box<dyn Future<Output = Answer<T>> + 'a>>;

impl Sentinels {
    /// Returns the name that the sentinels give to the primary.
    pub(in crate::redis) fn name(&self) -> &str {
        &self.name
    }

    /// Returns one of the sentinels: the data servers are reached in the same way as it.
    pub(in crate::redis) fn first(&self) -> &Endpoint {
        &self.servers[0]
    }

    /// Connects to the primary, and makes sure that it takes itself for one.
    pub(in crate::redis) async fn open_primary(&self, access: &Access) -> Answer<Dialogue> {
        let primary = self.primary().await?;
        let mut dialogue = handshake::open(access, &primary).await?;
        if role(&mut dialogue).await?.as_deref() == Some("master") {
            return Ok(dialogue);
        }
        let message = format!("{} is not the primary of {} (yet)", primary.name(), self.name);
        Err(RequestError::failed(ErrorClass::Unavailable, message).losing_connection())
    }

    /// Connects to one of the replicas that are in order, each in turn.
    pub(in crate::redis) async fn open_replica(&self, access: &Access) -> Answer<Dialogue> {
        let replicas = self.ask_all(|sentinel| Box::pin(self.replicas_by(sentinel, false))).await?;
        if replicas.is_empty() {
            let message = format!("the sentinels know no replica of {} that is up", self.name);
            return Err(RequestError::failed(ErrorClass::Unavailable, message).losing_connection());
        }
        let turn = self.turn.fetch_add(1, Ordering::Relaxed);
        handshake::open(access, &replicas[turn % replicas.len()]).await
    }

    /// Returns the settings to disclose: the number of sentinels, the primary's name, and its address at the start.
    pub(in crate::redis) async fn settings(&self) -> Answer<Vec<(String, String)>> {
        let primary = self.primary().await?;
        let settings = [
            ("sentinels", self.servers.len().to_string()),
            ("primary of", self.name.clone()),
            ("primary at the start", primary.name()),
        ];
        Ok(settings.map(|(name, value)| (name.to_owned(), value)).to_vec())
    }

    /// Returns every replica that the sentinels know, whatever state it is in.
    pub(in crate::redis) async fn replicas(&self) -> Answer<Vec<Endpoint>> {
        self.ask_all(|sentinel| Box::pin(self.replicas_by(sentinel, true))).await
    }

    pub(in crate::redis) async fn primary(&self) -> Answer<Endpoint> {
        self.ask_all(|sentinel| Box::pin(self.primary_by(sentinel))).await
    }

    /// Asks all sentinels at once and takes the first answer: one that is down costs no time.
    async fn ask_all<'a, T>(&'a self, asking: impl Fn(&'a Endpoint) -> Asking<'a, T>) -> Answer<T> {
        let all = self.servers.iter().map(asking);
        select_ok(all).await.map(|(answer, _)| answer).map_err(|mut error| {
            error.message =
                format!("no sentinel names the primary of {}: {error}", self.name).into();
            // Whatever a sentinel refused: this store is not to be had through it.
            error.losing_connection()
        })
    }

    async fn primary_by(&self, sentinel: &Endpoint) -> Answer<Endpoint> {
        let mut dialogue = handshake::open(&self.access, sentinel).await?;
        let words: [&[u8]; 3] = [b"SENTINEL", b"GET-MASTER-ADDR-BY-NAME", self.name.as_bytes()];
        let (first, bytes) = ask(&mut dialogue, &words).await??;
        let mut texts = Tokens::new(&bytes).skip(1).map(|(_, text)| String::from_utf8_lossy(text));
        match (first, texts.next(), texts.next().and_then(|port| port.parse().ok())) {
            (Token::Array(2), Some(host), Some(port)) => {
                Ok(self.first().beside(host.into_owned(), port))
            }
            _ => {
                let message = format!("{} knows no primary called {}", sentinel.name(), self.name);
                Err(RequestError::failed(ErrorClass::Unavailable, message))
            }
        }
    }

    async fn replicas_by(&self, sentinel: &Endpoint, all: bool) -> Answer<Vec<Endpoint>> {
        let mut dialogue = handshake::open(&self.access, sentinel).await?;
        // Sentinels before 5.0 know REPLICAS by its older name only; all know the older one.
        let words: [&[u8]; 3] = [b"SENTINEL", b"SLAVES", self.name.as_bytes()];
        let (_, bytes) = ask(&mut dialogue, &words).await??;
        let wanted = replicas_of(&bytes).into_iter().filter(|replica| all || replica.in_order);
        Ok(wanted.map(|replica| self.first().beside(replica.host, replica.port)).collect())
    }
}

/// Returns the role that a server says it has: `master`, `slave`, `sentinel`.
async fn role(dialogue: &mut Dialogue) -> Answer<Option<String>> {
    let (_, bytes) = ask(dialogue, &[b"ROLE"]).await??;
    let role = Tokens::new(&bytes).nth(1);
    Ok(role.map(|(_, text)| String::from_utf8_lossy(text).into_owned()))
}

/// Replica as a sentinel sees it.
#[derive(Debug, PartialEq, Eq)]
struct Replica {
    host: String,
    port: u16,
    /// True if it is up and linked to its primary.
    in_order: bool,
}

/// Reads the answer of `SENTINEL SLAVES`, a list of maps (RESP3) or of lists of names and values
/// (RESP2).
fn replicas_of(answer: &[u8]) -> Vec<Replica> {
    let mut found = Vec::new();
    let mut tokens = Tokens::new(answer).skip(1).peekable();
    while let Some((head, _)) = tokens.next() {
        let pairs = head.children() / 2;
        let (mut host, mut port, mut down) = (None, None, false);
        for _ in 0..pairs {
            let (Some((_, name)), Some((_, value))) = (tokens.next(), tokens.next()) else { break };
            let value = String::from_utf8_lossy(value);
            match name {
                b"ip" => host = Some(value.into_owned()),
                b"port" => port = value.parse().ok(),
                b"flags" => down |= value.contains("down") || value.contains("disconnected"),
                b"master-link-status" => down |= value != "ok",
                _ => {}
            }
        }
        if let (Some(host), Some(port)) = (host, port) {
            found.push(Replica { host, port, in_order: !down });
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replicas_that_are_down_are_told_apart() {
        let replica = |port: &str, flags: &str, link: &str| {
            let pairs = [("ip", "10.0.0.1"), ("port", port), ("flags", flags)];
            let pairs = pairs.into_iter().chain([("master-link-status", link)]);
            let words = pairs.flat_map(|(name, value)| [name, value]);
            words.map(|word| format!("${}\r\n{word}\r\n", word.len())).collect::<String>()
        };
        let (up, down) = (replica("1", "slave", "ok"), replica("2", "s_down,slave", "ok"));
        let cut = replica("3", "slave", "err");
        for head in ["*8", "%4"] {
            let answer = format!("*3\r\n{head}\r\n{up}{head}\r\n{down}{head}\r\n{cut}");
            let found = replicas_of(answer.as_bytes());
            let found: Vec<(u16, bool)> = found.iter().map(|r| (r.port, r.in_order)).collect();
            assert_eq!(found, [(1, true), (2, false), (3, false)], "{head}");
        }
        assert!(replicas_of(b"*0\r\n").is_empty());
    }
}

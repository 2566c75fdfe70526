//! Redis and what speaks its protocol (Valkey, Dragonfly, Infinispan's RESP endpoint): one server,
//! over RESP2 or RESP3, with kvdyno's own codec. Which commands go on the wire for each operation:
//! docs/stores/redis.md.

mod client;
pub mod codec;
mod errors;
mod handshake;
mod profile;
mod words;

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::task::Context;

use kvdyno_core::store::{Answer, Connection, Fault, Profile, Store, Threading, Transport};

use crate::entry::Entry;
use crate::error::StoreError;
use crate::url::StoreUrl;
use crate::wire::{
    self, Dialogue, Endpoint, Malformed, Protocol, ReachOptions, Stream, WireTransport,
};

pub use client::RedisClient;
use codec::{Progress, Token};

/// What `kvdyno stores` says of it.
pub const ENTRY: Entry = Entry {
    schemes: &["redis", "rediss"],
    name: "redis",
    summary: "one Redis server, or one that speaks its protocol; rediss is the same over TLS",
    options: &[
        ("timeout", "longest time for a request and for an attempt to connect, 2s"),
        ("resp", "2 or 3: version of the protocol; the newest that the server knows"),
        ("ca", "rediss: PEM file of the authorities to trust; those that Mozilla trusts"),
        ("cert", "rediss: PEM file of a client certificate; none"),
        ("key", "rediss: PEM file of its private key; none"),
    ],
    operations: "GET, SET (PX for a time to live), DEL, MGET, MSET; several fields: HGETALL, HSET, \
                 with a time to live MULTI HSET PEXPIRE EXEC; docs/stores/redis.md",
    durability: "read back: appendonly yes with appendfsync always survives power loss, with no \
                 process kill, everything else nothing for sure",
    consistency: "linearizable for a primary without replicas, read back",
    example: "redis://127.0.0.1:6379",
    batch_put: true,
    request: words::of,
    open: |url| Ok(Box::new(RedisStore::open(url)?)),
};

/// Which version of the protocol to speak.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Resp {
    /// RESP3 where the server has it, else RESP2.
    #[default]
    Newest,
    /// RESP2.
    Two,
    /// RESP3, or nothing.
    Three,
}

/// How to reach a Redis server.
#[derive(Clone)]
pub struct RedisOptions {
    /// Where it is.
    pub endpoint: Endpoint,
    /// User of an access control list; `default` if only a password is given.
    pub user: Option<String>,
    /// Password.
    pub password: Option<String>,
    /// Number of the database.
    pub database: u32,
    /// Version of the protocol.
    pub resp: Resp,
}

impl RedisOptions {
    /// No user, no password, database 0, the newest protocol.
    #[must_use]
    pub fn new(endpoint: Endpoint) -> Self {
        RedisOptions { endpoint, user: None, password: None, database: 0, resp: Resp::Newest }
    }
}

/// A Redis server.
pub struct RedisStore {
    options: Arc<RedisOptions>,
    learned: Arc<Learned>,
}

/// What the clients of a store have learned of its records, for the requests to come.
#[derive(Default)]
struct Learned {
    /// Records are hashes of fields: reads ask for all fields, not for a string.
    hashes: AtomicBool,
    /// Hashes with a time to live were written: a whole write without one must take it away.
    expiring_hashes: AtomicBool,
}

impl RedisStore {
    /// The server that a URL names: `redis://[user:password@]host[:port][/database]`, or
    /// `rediss://` over TLS. Options: `timeout`, `resp` (2 or 3), over TLS `ca`, `cert`, `key`.
    ///
    /// # Errors
    /// [`StoreError::Url`] if the URL names no single server or has a wrong or unknown option.
    pub fn open(url: &mut StoreUrl) -> Result<RedisStore, StoreError> {
        let reach = ReachOptions::take(url, "rediss")?;
        let resp = url.take_choice("resp", &[("2", Resp::Two), ("3", Resp::Three)])?;
        url.finish()?;
        let endpoint = reach.endpoint(url, 6379)?;
        let database = match url.path().trim_matches('/') {
            "" => 0,
            number => number.parse().map_err(|_| {
                url.wrong("a path that is no database number", "write it like `redis://host/0`")
            })?,
        };
        Ok(RedisStore::new(RedisOptions {
            endpoint,
            user: url.user().map(str::to_owned),
            password: url.password().map(str::to_owned),
            database,
            resp: resp.unwrap_or_default(),
        }))
    }

    /// Connects to nothing yet.
    #[must_use]
    pub fn new(options: RedisOptions) -> Self {
        RedisStore { options: Arc::new(options), learned: Arc::new(Learned::default()) }
    }
}

impl Store for RedisStore {
    type Client = RedisClient;
    type Transport = RedisTransport;

    fn threading(&self) -> Threading {
        Threading::Networked
    }

    async fn profile(&self) -> Answer<Profile> {
        let endpoint = &self.options.endpoint;
        endpoint
            .bounded(async {
                let mut dialogue = handshake::open(&self.options).await?;
                profile::ask_all(&mut dialogue, endpoint.timeout()).await
            })
            .await
    }

    async fn connect(&self, slots: usize) -> Answer<Connection<RedisClient, Self::Transport>> {
        let protocol = Wire { options: self.options.clone() };
        let (links, transport) = wire::open(protocol, &self.options.endpoint, slots).await?;
        let clients =
            links.into_iter().map(|link| RedisClient::new(link, self.learned.clone())).collect();
        Ok(Connection { clients, transport: RedisTransport(transport) })
    }
}

/// Moves the bytes of a connection to Redis.
pub struct RedisTransport(WireTransport<Wire>);

impl Transport for RedisTransport {
    #[inline]
    fn poll(&mut self, context: &mut Context<'_>) -> bool {
        self.0.poll(context)
    }
}

/// RESP as the shared connection sees it.
struct Wire {
    options: Arc<RedisOptions>,
}

impl Protocol for Wire {
    type Reply = Token;
    type Progress = Progress;

    #[inline]
    fn scan(
        progress: &mut Progress,
        parts: u32,
        input: &[u8],
    ) -> Result<Option<(Token, usize)>, Malformed> {
        codec::scan(progress, parts, input)
    }

    fn open(&self) -> impl Future<Output = Answer<Stream>> + 'static {
        let options = self.options.clone();
        async move {
            options.endpoint.bounded(async { handshake::open(&options).await?.into_stream() }).await
        }
    }
}

/// Sends one command of a set-up dialogue. `Ok(Err(…))` is an error answer.
async fn ask(dialogue: &mut Dialogue, words: &[&[u8]]) -> Answer<Result<(Token, Vec<u8>), Fault>> {
    let (first, bytes) = dialogue.ask::<Wire>(&codec::command(words)).await?;
    Ok(match first {
        Token::Error(text) => Err(errors::fault(text.of(&bytes))),
        _ => Ok((first, bytes)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open(text: &str) -> Result<RedisOptions, StoreError> {
        let store = RedisStore::open(&mut StoreUrl::parse(text)?)?;
        Ok(RedisOptions::clone(&store.options))
    }

    #[test]
    fn a_url_says_where_the_server_is_and_who_asks() {
        let plain = open("redis://h").unwrap();
        assert_eq!(plain.endpoint.name(), "h:6379");
        assert_eq!((plain.user, plain.password, plain.database), (None, None, 0));
        assert_eq!(plain.endpoint.timeout(), std::time::Duration::from_secs(2));
        let full = open("redis://u:p%40ss@[::1]:7000/3?timeout=150ms&resp=2").unwrap();
        assert_eq!(full.endpoint.name(), "[::1]:7000");
        assert_eq!((full.user.as_deref(), full.password.as_deref()), (Some("u"), Some("p@ss")));
        assert_eq!((full.database, full.resp), (3, Resp::Two));
        assert_eq!(full.endpoint.timeout(), std::time::Duration::from_millis(150));
    }

    #[test]
    fn a_wrong_url_is_refused_in_one_line() {
        for (text, hint) in [
            ("redis://h1,h2", "exactly one server"),
            ("redis:", "exactly one server"),
            ("redis://h/zero", "database number"),
            ("redis://h?resp=4", "`2`"),
            ("redis://h?timeout=0", "timeout of 0"),
            ("redis://h?timout=1s", "did you mean `timeout`?"),
            ("redis://h?ca=/x", "write `rediss://…`"),
            ("rediss://h?ca=/no/such/file", "/no/such/file"),
            ("rediss://h?cert=/no/such/file", "key=FILE"),
        ] {
            let message = open(text).err().expect(text).to_string();
            assert!(message.contains(hint) && !message.contains('\n'), "{text}: {message}");
        }
    }
}

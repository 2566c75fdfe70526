//! Memcached and what speaks its protocol (Infinispan's Memcached endpoint): one server, over meta
//! commands or text commands, with kvdyno's own codec. Which bytes go
//! on the wire for each operation: docs/stores/memcached.md.

mod client;
pub mod codec;
mod dialect;
mod errors;
mod handshake;
mod profile;
mod words;

use std::sync::Arc;
use std::task::Context;

use kvdyno_core::store::{Answer, Connection, Profile, Store, Threading, Transport};

use crate::entry::Entry;
use crate::error::StoreError;
use crate::url::StoreUrl;
use crate::wire::{self, Endpoint, Malformed, Protocol, ReachOptions, Stream, WireTransport};

pub use client::MemcachedClient;
use codec::{Progress, Token};
pub use dialect::Dialect;

/// What `kvdyno stores` says of it.
pub const ENTRY: Entry = Entry {
    schemes: &["memcached", "memcacheds"],
    name: "memcached",
    summary: "one Memcached server, or one that speaks its protocol; memcacheds is the same over TLS",
    options: &[
        ("timeout", "longest time for a request and for an attempt to connect, 2s"),
        ("protocol", "meta, or text for servers before 1.6 and for Infinispan; meta"),
        ("ca", "memcacheds: PEM file of the authorities to trust; those that Mozilla trusts"),
        ("cert", "memcacheds: PEM file of a client certificate; none"),
        ("key", "memcacheds: PEM file of its private key; none"),
    ],
    operations: "mg, ms (T for a time to live), md; a batch is several of them in one write; \
                 docs/stores/memcached.md",
    durability: "none",
    consistency: "linearizable; records may vanish at any time, a miss and not a loss",
    example: "memcached://127.0.0.1:11211",
    batch_put: true,
    request: words::of,
    open: |url| Ok(Box::new(MemcachedStore::open(url)?)),
};

/// How to reach a Memcached server.
#[derive(Clone)]
pub struct MemcachedOptions {
    /// Where it is.
    pub endpoint: Endpoint,
    /// User and password, for a server with an authentication file (`-Y`).
    pub credentials: Option<(String, String)>,
    /// Which commands it knows.
    pub dialect: Dialect,
}

/// A Memcached server.
pub struct MemcachedStore {
    options: Arc<MemcachedOptions>,
}

impl MemcachedStore {
    /// The server that a URL names: `memcached://[user:password@]host[:port]`, or `memcacheds://`
    /// over TLS. Options: `timeout`, `protocol`, over TLS `ca`, `cert`, `key`.
    ///
    /// # Errors
    /// [`StoreError::Url`] if the URL names no single server or has a wrong or unknown option.
    pub fn open(url: &mut StoreUrl) -> Result<MemcachedStore, StoreError> {
        let reach = ReachOptions::take(url, "memcacheds")?;
        let protocols = [("meta", Dialect::Meta), ("text", Dialect::Text)];
        let dialect = url.take_choice("protocol", &protocols)?.unwrap_or_default();
        url.finish()?;
        let endpoint = reach.endpoint(url, 11211)?;
        if !url.path().trim_matches('/').is_empty() {
            return Err(url.wrong("a path", "Memcached has one name space: leave the path out"));
        }
        let credentials = match (url.user(), url.password()) {
            (Some(user), Some(password)) => Some((user.to_owned(), password.to_owned())),
            (None, None) => None,
            _ => {
                return Err(url.wrong(
                    "a user without a password, or the other way round",
                    "write both: `memcached://user:password@host`",
                ));
            }
        };
        Ok(MemcachedStore::new(MemcachedOptions { endpoint, credentials, dialect }))
    }

    /// Connects to nothing yet.
    #[must_use]
    pub fn new(options: MemcachedOptions) -> Self {
        MemcachedStore { options: Arc::new(options) }
    }
}

impl Store for MemcachedStore {
    type Client = MemcachedClient;
    type Transport = MemcachedTransport;

    fn threading(&self) -> Threading {
        Threading::Networked
    }

    async fn profile(&self) -> Answer<Profile> {
        let endpoint = &self.options.endpoint;
        endpoint
            .bounded(async {
                let mut dialogue = handshake::open(&self.options).await?;
                profile::ask(&mut dialogue, endpoint.timeout()).await
            })
            .await
    }

    async fn connect(&self, slots: usize) -> Answer<Connection<MemcachedClient, Self::Transport>> {
        let protocol = Wire { options: self.options.clone() };
        let (links, transport) = wire::open(protocol, &self.options.endpoint, slots).await?;
        let dialect = self.options.dialect;
        let clients = links.into_iter().map(|link| MemcachedClient::new(link, dialect)).collect();
        Ok(Connection { clients, transport: MemcachedTransport(transport) })
    }
}

/// Moves the bytes of a connection to Memcached.
pub struct MemcachedTransport(WireTransport<Wire>);

impl Transport for MemcachedTransport {
    #[inline]
    fn poll(&mut self, context: &mut Context<'_>) -> bool {
        self.0.poll(context)
    }
}

/// The protocol as the shared connection sees it.
struct Wire {
    options: Arc<MemcachedOptions>,
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

#[cfg(test)]
mod tests {
    use super::*;

    fn open(text: &str) -> Result<MemcachedOptions, StoreError> {
        let store = MemcachedStore::open(&mut StoreUrl::parse(text)?)?;
        Ok(MemcachedOptions::clone(&store.options))
    }

    #[test]
    fn a_url_says_where_the_server_is_and_who_asks() {
        let plain = open("memcached://h").unwrap();
        assert_eq!((plain.endpoint.name().as_str(), plain.credentials), ("h:11211", None));
        let full = open("memcached://u:p@h:1/?timeout=1s").unwrap();
        assert_eq!(full.credentials, Some(("u".to_owned(), "p".to_owned())));
        assert_eq!(plain.dialect, Dialect::Meta);
        assert_eq!(open("memcached://h?protocol=text").unwrap().dialect, Dialect::Text);
    }

    #[test]
    fn a_wrong_url_is_refused_in_one_line() {
        for (text, hint) in [
            ("memcached://h1,h2", "exactly one server"),
            ("memcached://h/0", "leave the path out"),
            ("memcached://u@h", "write both"),
            ("memcached://h?timeot=1s", "did you mean `timeout`?"),
            ("memcached://h?protocol=binary", "`text`"),
        ] {
            let message = open(text).err().expect(text).to_string();
            assert!(message.contains(hint) && !message.contains('\n'), "{text}: {message}");
        }
    }
}

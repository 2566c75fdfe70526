//! Memcached and what speaks its protocol, over meta commands or text commands with kvdyno's own codec:
//! one server, or several over which the client spreads the keys. Which bytes go on the wire:
//! docs/stores/memcached.md.

mod client;
pub mod codec;
mod dialect;
mod errors;
mod handshake;
mod profile;
mod words;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Context;
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use kvdyno_core::load::Need;
use kvdyno_core::store::{
    Answer, Connection, Figure, Joined, Profile, Store, Threading, ThreadingOf, Transport,
};

use crate::entry::{Entry, threading_of};
use crate::error::StoreError;
use crate::incarnations::{Incarnations, ServerIncarnations};
use crate::placement::{Hash, Placement, WEIGHTS_OPTION, evenness, hash_option};
use crate::url::StoreUrl;
use crate::wire::{
    self, Dialogue, Endpoint, MalformedAnswer, Protocol, ReachOptions, Sent, Stream, WireTransport,
    is_of_socket,
};

pub use client::MemcachedClient;
use codec::{Progress, Token};
pub use dialect::Dialect;

/// The store's line in `kvdyno stores`.
pub const ENTRY: Entry = Entry {
    schemes: &["memcached", "memcacheds", "memcached+unix"],
    name: "memcached",
    summary: "one server that speaks Memcached's protocol, or several with the keys spread over them; \
              memcacheds is the same over TLS, memcached+unix:///path over a socket of this machine",
    options: &[
        ("timeout", "longest time for a request and for an attempt to connect, 2s"),
        (
            "protocol",
            "meta, or text for servers before 1.6, Infinispan and Hazelcast; meta, and text where the \
             connection is closed at a meta command",
        ),
        ("hash", hash_option!("ketama")),
        ("weights", WEIGHTS_OPTION),
        (
            "may-forget",
            "false: what serves has no limit at which records go, as you know it, so that a record that is \
             missing is a loss; true",
        ),
        ("tls", "memcacheds: insecure takes any certificate, and the result says so; verify"),
        ("pin", "memcacheds: SHA-256 fingerprint of the one certificate to take; none"),
        (
            "ca",
            "memcacheds: PEM file of the authorities to trust, or of the server's own certificate; \
             those that Mozilla trusts",
        ),
        ("cert", "memcacheds: PEM file of a client certificate; none"),
        ("key", "memcacheds: PEM file of its private key; none"),
    ],
    operations: "mg, ms (T for a time to live), md, each to the server of its key; a batch is several of \
                 them in one write to each server; docs/stores/memcached.md",
    durability: "none",
    consistency: "linearizable, Hazelcast read after write; records may vanish at any time, a miss and not a loss, unless it is \
                  not Memcached itself and the URL says may-forget=false",
    example: "memcached://127.0.0.1:11211",
    lacks: &[Need::Scan],
    threading: threading_of::<MemcachedStore>(),
    request: words::of,
    check: |url| MemcachedStore::open(url).map(drop),
    open: |url| Ok(Arc::new(MemcachedStore::open(url)?)),
};

/// One or several Memcached servers.
pub struct MemcachedStore {
    servers: Vec<Wire>,
    placement: Arc<Placement>,
    sent: Arc<Sent>,
    incarnations: Incarnations,
    /// Records may vanish at any time, as the URL says.
    may_forget: bool,
}

impl MemcachedStore {
    /// Returns the servers that a URL names: `memcached://[user:password@]host[:port][,host…]`, `memcacheds://` over TLS,
    /// `memcached+unix:///path`. Options: `timeout`, `protocol`, `may-forget`; with several servers `hash` and `weights`; over TLS `ca`,
    /// `cert`, `key`, `tls`, `pin`.
    ///
    /// # Errors
    /// [`StoreError::Url`] if the URL names no server or has a wrong or unknown option.
    pub fn open(url: &mut StoreUrl) -> Result<MemcachedStore, StoreError> {
        let reach = ReachOptions::take(url, "memcacheds")?;
        let protocols = [("meta", Dialect::Meta), ("text", Dialect::Text)];
        let asked = url.take_choice("protocol", &protocols)?;
        let placement = Placement::take_options(url, Hash::Ketama)?;
        let may_forget = url.take_flag("may-forget")?.unwrap_or(true);
        url.finish()?;
        let endpoints = match is_of_socket(url) {
            true => vec![reach.endpoint(url, 11211)?],
            false => reach.endpoints(url, 11211)?,
        };
        if !is_of_socket(url) && !url.path().trim_matches('/').is_empty() {
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
        let placement = Arc::new(placement.on(url, &endpoints)?);
        let credentials = Arc::new(credentials);
        let spoken = Arc::new(Spoken { asked, ..Spoken::default() });
        let wire =
            |endpoint| Wire { endpoint, credentials: credentials.clone(), spoken: spoken.clone() };
        let servers = endpoints.into_iter().map(wire).collect();
        Ok(MemcachedStore {
            servers,
            placement,
            sent: Arc::default(),
            incarnations: Incarnations::default(),
            may_forget,
        })
    }

    /// Asks each server which of its incarnations it is.
    async fn read_incarnations(&self) -> ServerIncarnations {
        let asked = self
            .servers
            .iter()
            .map(|server| async { (Protocol::peer(server), profile::incarnation(server).await) });
        join_all(asked).await
    }
}

impl Store for MemcachedStore {
    type Client = MemcachedClient;
    type Transport = MemcachedTransport;

    const THREADING: ThreadingOf<Self> = ThreadingOf::All(Threading::Networked);

    async fn profile(&self) -> Answer<Profile> {
        let asked = join_all(self.servers.iter().map(profile::ask)).await;
        let reports = asked.into_iter().collect::<Answer<Vec<_>>>()?;
        let mut found = profile::of(&reports, self.servers[0].timeout(), self.may_forget);
        let spoken = &self.servers[0].spoken;
        spoken.is_hazelcast.store(found.store == profile::HAZELCAST, Ordering::Relaxed);
        found.settings.extend(spoken.disclosed());
        found.settings.extend(self.servers[0].endpoint.disclosed());
        if let Some(hash) = self.placement.describe() {
            found.settings.push(("servers".to_owned(), self.servers.len().to_string()));
            found.settings.push(("hash".to_owned(), hash.to_owned()));
        }
        self.incarnations.meet(Instant::now(), self.read_incarnations().await);
        Ok(found)
    }

    async fn connect(&self, slots: usize) -> Answer<Connection<MemcachedClient, Self::Transport>> {
        let members = self.servers.iter().map(|server| (server.clone(), true)).collect();
        let (links, transport) = wire::open(members, slots, &self.sent).await?;
        let dialect = self.servers[0].spoken.dialect();
        let client = |link| MemcachedClient::new(link, self.placement.clone(), dialect);
        let clients = links.into_iter().map(client);
        Ok(Connection { clients: clients.collect(), transport: MemcachedTransport(transport) })
    }

    async fn figures(&self) -> Vec<Figure> {
        let sent = self.sent.take();
        let incarnations = self.read_incarnations().await;
        let mut all: Vec<Figure> =
            self.incarnations.look(Instant::now(), incarnations).into_iter().collect();
        if self.servers.len() < 2 {
            return all;
        }
        let records = join_all(self.servers.iter().map(profile::records_on)).await;
        let records: Option<Vec<u64>> = records.into_iter().collect();
        let named = |counts: Vec<u64>| -> Vec<(String, u64)> {
            self.servers.iter().map(Protocol::peer).zip(counts).collect()
        };
        let requests = (0..self.servers.len()).map(|member| sent.to(member));
        let advice = "the fullest server limits them all: try another `hash`, or `weights`";
        all.extend(records.map_or(Vec::new(), |r| evenness::figures("keys", &named(r), advice)));
        all.extend(sent.figures(&named(requests.collect()), advice));
        all
    }

    async fn join(&self, _server: &str) -> Answer<Joined> {
        const WHY: &str =
            "clients spread records over the servers that the URL names, and no others";
        // Each member of its cluster serves the records of all.
        if self.servers[0].spoken.is_hazelcast.load(Ordering::Relaxed) {
            return Ok(Joined::ByServers);
        }
        Ok(Joined::PassedOver(WHY.to_owned()))
    }

    crate::on_servers::kept_on_servers!();
    crate::on_servers::copies_not_shown!();
}

/// Moves the bytes of the connections to Memcached.
pub struct MemcachedTransport(WireTransport<Wire>);

impl Transport for MemcachedTransport {
    #[inline]
    fn poll(&mut self, context: &mut Context<'_>) -> bool {
        self.0.poll(context)
    }
}

/// The protocol as the shared connection sees it: one server.
#[derive(Clone)]
struct Wire {
    endpoint: Endpoint,
    /// User and password, for a server with an authentication file (`-Y`).
    credentials: Arc<Option<(String, String)>>,
    /// Commands that the servers know, as far as was found out.
    spoken: Arc<Spoken>,
}

/// Words in which the servers are spoken to. A proxy such as twemproxy closes the connection at a command that it does not
/// know: it is asked once, on a connection of its own, and left out after that.
#[derive(Debug, Default)]
struct Spoken {
    /// Commands that the URL asks for; `None` if it does not say.
    asked: Option<Dialect>,
    closes_at_meta: AtomicBool,
    closes_at_version: AtomicBool,
    /// The servers are members of a cluster of Hazelcast, as the last profile found.
    is_hazelcast: AtomicBool,
}

impl Spoken {
    fn dialect(&self) -> Dialect {
        match self.asked {
            Some(dialect) => dialect,
            None if self.closes_at_meta.load(Ordering::Relaxed) => Dialect::Text,
            None => Dialect::Meta,
        }
    }

    fn closes_at_version(&self) -> bool {
        self.closes_at_version.load(Ordering::Relaxed)
    }

    /// Returns what the result says of the commands; `None` where they are as asked.
    fn disclosed(&self) -> Option<(String, String)> {
        let meta = self.asked.is_none() && self.dialect() == Dialect::Text;
        meta.then(|| ("protocol".to_owned(), "text: closes at meta commands".to_owned()))
    }
}

impl Wire {
    /// Connects, asks with `questions`, all within the time that a request may take.
    async fn talk<T>(&self, questions: impl AsyncFnOnce(Dialogue) -> Answer<T>) -> Answer<T> {
        self.endpoint.bounded(async { questions(handshake::open(self).await?).await }).await
    }
}

impl Protocol for Wire {
    type Reply = Token;
    type Progress = Progress;

    #[inline]
    fn scan(
        progress: &mut Progress,
        parts: u32,
        input: &[u8],
    ) -> Result<Option<(Token, usize)>, MalformedAnswer> {
        codec::scan(progress, parts, input)
    }

    fn peer(&self) -> String {
        self.endpoint.name()
    }

    fn timeout(&self) -> Duration {
        self.endpoint.timeout()
    }

    fn open(&self) -> impl Future<Output = Answer<Stream>> + 'static {
        let wire = self.clone();
        async move { wire.talk(async |dialogue| dialogue.into_stream()).await }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open(text: &str) -> Result<MemcachedStore, StoreError> {
        MemcachedStore::open(&mut StoreUrl::parse(text)?)
    }

    #[test]
    fn a_url_says_where_the_servers_are_and_who_asks() {
        let names = |store: &MemcachedStore| -> Vec<String> {
            store.servers.iter().map(Protocol::peer).collect()
        };
        let plain = open("memcached://h").unwrap();
        assert_eq!(names(&plain), ["h:11211"]);
        assert_eq!(*plain.servers[0].credentials, None);
        let full = open("memcached://u:p@h:1/?timeout=1s").unwrap();
        assert_eq!(*full.servers[0].credentials, Some(("u".to_owned(), "p".to_owned())));
        assert_eq!(plain.servers[0].spoken.dialect(), Dialect::Meta);
        let text = open("memcached://h?protocol=text").unwrap();
        assert_eq!(text.servers[0].spoken.dialect(), Dialect::Text);
        let socket = open("memcached+unix:///run/m.sock?timeout=1s").unwrap();
        assert_eq!(names(&socket), ["/run/m.sock"]);
        let several = open("memcached://h1,h2:1,h3?weights=1,2,3").unwrap();
        assert_eq!(names(&several), ["h1:11211", "h2:1", "h3:11211"]);
        assert!(matches!(*several.placement, Placement::Ring(_, Hash::Ketama)));
        let mixed = open("memcached://h1,h2?hash=mix").unwrap();
        assert!(matches!(*mixed.placement, Placement::Mix(2)));
    }

    #[test]
    fn a_wrong_url_is_refused_in_one_line() {
        for (text, hint) in [
            ("memcached:", "no server"),
            ("memcached://h1,h1:11211", "h1:11211 twice"),
            ("memcached://h1,h2?weights=1", "1 weights for 2 servers"),
            ("memcached://h/0", "leave the path out"),
            ("memcached+unix://h/run/m.sock", "write it like `memcached+unix:///run/server.sock`"),
            ("memcached+unix:///run/m.sock?pin=00", "SHA-256 fingerprint"),
            ("memcached://u@h", "write both"),
            ("memcached://h?protocol=binary", "`text`"),
            ("memcached://h?timeot=1s", "did you mean `timeout`?"),
        ] {
            let message = open(text).err().expect(text).to_string();
            assert!(message.contains(hint) && !message.contains('\n'), "{text}: {message}");
        }
    }
}

//! Any store that is reached over REST: a record is a resource, written with PUT or POST, read with
//! GET, deleted with DELETE, over HTTP/1.1 connections that stay open, with kvdyno's own codec.
//! The bytes on the wire for each operation: docs/stores/rest.md.

mod client;
pub mod codec;
mod errors;
mod profile;
mod template;
mod words;

use std::sync::Arc;
use std::task::Context;
use std::time::Duration;

use kvdyno_core::load::Need;
use kvdyno_core::store::{
    Answer, Connection, Consistency, Durability, Figure, Joined, Profile, Store, Threading,
    ThreadingOf, Transport,
};

use crate::entry::{Entry, boxed, threading_of};
use crate::error::StoreError;
use crate::url::StoreUrl;
use crate::wire::{self, Endpoint, MalformedAnswer, Protocol, ReachOptions, Stream, WireTransport};

pub use client::RestClient;
use codec::{Progress, Reply};
use template::{KEY, Parts, Template};

/// The store's line in `kvdyno stores`.
pub const ENTRY: Entry = Entry {
    schemes: &["rest+http", "rest+https"],
    name: "rest",
    summary: "any store over REST, such as Infinispan, Ehcache or Riak: a record is a resource whose \
              path holds `{key}`; rest+https is the same over TLS",
    options: &[
        ("timeout", "longest time for a request and for an attempt to connect, 2s"),
        ("put", "PUT or POST: method of writes; PUT"),
        ("type", "media type of values; application/octet-stream"),
        ("query", "what stands after the path's `?`; nothing"),
        ("header.NAME", "a header line for every request; none"),
        (
            "ttl",
            "name of the header that takes a time to live in seconds; none, so no time to live",
        ),
        ("durability", "none, process or power: what you know that a write survives; none"),
        ("consistency", "eventual, read-after-write or linearizable: as you know it; eventual"),
        ("may-forget", "true or false: records may vanish under memory pressure; true"),
        ("tls", "rest+https: insecure takes any certificate, and the result says so; verify"),
        ("pin", "rest+https: SHA-256 fingerprint of the one certificate to take; none"),
        (
            "ca",
            "rest+https: PEM file of the authorities to trust, or of the server's own certificate; \
             those that Mozilla trusts",
        ),
        ("cert", "rest+https: PEM file of a client certificate; none"),
        ("key", "rest+https: PEM file of its private key; none"),
    ],
    operations: "GET, PUT (or POST), DELETE of one resource each; docs/stores/rest.md",
    durability: "declared by the URL; read back from Infinispan and Ehcache",
    consistency: "declared by the URL; read back from a local cache of Infinispan",
    example: "rest+http://127.0.0.1:11222/rest/v2/caches/bench/{key}?ttl=timeToLiveSeconds",
    lacks: &[Need::Scan, Need::BatchGet, Need::BatchPut, Need::Pipeline],
    threading: threading_of::<RestStore>(),
    request: words::of,
    check: |url| RestStore::open(url).map(drop),
    open: |url| Ok(boxed(RestStore::open(url)?)),
};

/// Address of a REST store, and what is declared of it.
struct RestOptions {
    endpoint: Endpoint,
    /// Path of a record with [`KEY`] in it.
    path: String,
    template: Arc<Template>,
    durability: Durability,
    consistency: Consistency,
    may_forget: bool,
}

impl RestOptions {
    /// Returns the path before its last segment, where the key is that: the place of all records.
    fn place(&self) -> &str {
        let place = self.path.split(KEY).next().unwrap_or_default();
        place.strip_suffix('/').unwrap_or(place)
    }
}

/// A store behind REST.
pub struct RestStore {
    options: Arc<RestOptions>,
}

impl RestStore {
    /// Returns the store that a URL names: `rest+http://[user:password@]host[:port]/path/{key}`, or
    /// `rest+https://` over TLS. Options: see [`ENTRY`].
    ///
    /// # Errors
    /// [`StoreError::Url`] if the URL names no single server, its path has no `{key}`, or an option
    /// is wrong or unknown.
    pub fn open(url: &mut StoreUrl) -> Result<RestStore, StoreError> {
        check_place(url)?;
        let reach = ReachOptions::take(url, "rest+https")?;
        let put = url.take_choice("put", &[("PUT", "PUT"), ("POST", "POST")])?;
        let media_type = url.take("type").unwrap_or("application/octet-stream".to_owned());
        let query = url.take("query").unwrap_or_default();
        let headers = url.take_prefixed("header.");
        let ttl = url.take("ttl");
        let durability = url.take_choice(
            "durability",
            &[
                ("none", Durability::None),
                ("process", Durability::ProcessKill),
                ("power", Durability::PowerLoss),
            ],
        )?;
        let consistency = url.take_choice(
            "consistency",
            &[
                ("eventual", Consistency::Eventual),
                ("read-after-write", Consistency::ReadAfterWrite),
                ("linearizable", Consistency::Linearizable),
            ],
        )?;
        let may_forget = url.take_flag("may-forget")?.unwrap_or(true);
        url.finish()?;
        let usual_port = if url.scheme() == "rest+https" { 443 } else { 80 };
        let endpoint = reach.endpoint(url, usual_port)?;
        check(url, &query, &media_type, ttl.as_deref(), &headers)?;
        let credentials = match (url.user(), url.password()) {
            (None, None) => None,
            (user, password) => Some((user.unwrap_or(""), password.unwrap_or(""))),
        };
        let template = Template::new(&Parts {
            authority: &endpoint.name(),
            path: url.path(),
            query: &query,
            put: put.unwrap_or("PUT"),
            media_type: &media_type,
            credentials,
            headers: &headers,
            ttl: ttl.as_deref(),
        });
        let options = RestOptions {
            endpoint,
            path: url.path().to_owned(),
            template: Arc::new(template),
            durability: durability.unwrap_or(Durability::None),
            consistency: consistency.unwrap_or(Consistency::Eventual),
            may_forget,
        };
        Ok(RestStore { options: Arc::new(options) })
    }
}

/// Refuses a URL unless its path holds `{key}` once: the key stands in the path, and no option places it.
fn check_place(url: &StoreUrl) -> Result<(), StoreError> {
    if url.path().starts_with('/') && url.path().matches(KEY).count() == 1 {
        return Ok(());
    }
    let advice = match url.redacted().contains(KEY) && !url.path().contains(KEY) {
        true => {
            "the key of a record goes into the path, as in `rest+http://h/path/{key}`, not behind the `?`: \
             what stands there are options of kvdyno"
        }
        false => "write `{key}` once where the key of a record goes: `rest+http://h/path/{key}`",
    };
    Err(url.wrong("a path without one `{key}`", advice))
}

/// Refuses settings that would not make one request of HTTP.
fn check(
    url: &StoreUrl,
    query: &str,
    media_type: &str,
    ttl: Option<&str>,
    headers: &[(String, String)],
) -> Result<(), StoreError> {
    if !query.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'#') {
        let advice = "encode the percent signs in it once more: `%2520` for a blank";
        return Err(url.wrong("a query that is not percent-encoded", advice));
    }
    let names = headers.iter().map(|(name, _)| name.as_str()).chain(ttl);
    for name in names {
        if !is_token(name) {
            return Err(url.wrong(format!("{name:?} for a header's name"), "use letters and `-`"));
        }
        if ["content-length", "transfer-encoding", "connection", "expect", "content-type"]
            .contains(&name.to_ascii_lowercase().as_str())
        {
            let advice = "leave it out: kvdyno writes it (the media type with the option `type`)";
            return Err(url.wrong(format!("the header `{name}`"), advice));
        }
    }
    let values = headers.iter().map(|(_, value)| value.as_str());
    if values.chain([media_type]).any(|value| value.chars().any(char::is_control)) {
        return Err(url.wrong("a header's value with an end of a line in it", "give one line"));
    }
    Ok(())
}

/// Returns true if this is a token (RFC 9110, 5.6.2).
fn is_token(name: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    !name.is_empty() && name.bytes().all(plain)
}

impl Store for RestStore {
    type Client = RestClient;
    type Transport = RestTransport;

    const THREADING: ThreadingOf<Self> = ThreadingOf::All(Threading::Networked);

    async fn profile(&self) -> Answer<Profile> {
        let mut found = self.options.endpoint.bounded(profile::ask_all(&self.options)).await?;
        found.settings.extend(self.options.endpoint.disclosed());
        Ok(found)
    }

    async fn connect(&self, slots: usize) -> Answer<Connection<RestClient, Self::Transport>> {
        let endpoint = &self.options.endpoint;
        let member = (Wire { endpoint: endpoint.clone() }, true);
        let (links, transport) = wire::open(vec![member], slots, &Arc::default()).await?;
        let client = |link| RestClient::new(link, self.options.template.clone());
        let clients = links.into_iter().map(client).collect();
        Ok(Connection { clients, transport: RestTransport(transport) })
    }

    /// HTTP does not tell that a server was started anew.
    async fn figures(&self) -> Vec<Figure> {
        Vec::new()
    }

    async fn join(&self, _server: &str) -> Answer<Joined> {
        Ok(Joined::ByServers)
    }

    crate::on_servers::kept_on_servers!();
    crate::on_servers::copies_not_shown!();
}

/// Moves the bytes of a connection to a REST store.
pub struct RestTransport(WireTransport<Wire>);

impl Transport for RestTransport {
    #[inline]
    fn poll(&mut self, context: &mut Context<'_>) -> bool {
        self.0.poll(context)
    }
}

/// Gives the page at a path of a server that tells of itself over HTTP; `None` if it does not.
#[cfg(any(feature = "etcd", feature = "nats"))]
pub(crate) async fn page(server: &Endpoint, path: &str) -> Option<Vec<u8>> {
    let request = format!("GET {path} HTTP/1.1\r\nHost: {}\r\n\r\n", server.name());
    let asked = server.bounded(async {
        wire::Dialogue::open(server).await?.ask::<Wire>(request.as_bytes()).await
    });
    let (reply, answer) = asked.await.ok()?;
    (reply.status == 200).then(|| codec::body(&answer, &reply))
}

/// HTTP/1.1 as the shared connection sees it.
pub(crate) struct Wire {
    endpoint: Endpoint,
}

impl Protocol for Wire {
    type Reply = Reply;
    type Progress = Progress;

    #[inline]
    fn scan(
        progress: &mut Progress,
        _parts: u32,
        input: &[u8],
    ) -> Result<Option<(Reply, usize)>, MalformedAnswer> {
        codec::scan(progress, input)
    }

    fn closes(reply: &Reply) -> bool {
        reply.closes
    }

    fn peer(&self) -> String {
        self.endpoint.name()
    }

    fn timeout(&self) -> Duration {
        self.endpoint.timeout()
    }

    fn open(&self) -> impl Future<Output = Answer<Stream>> + 'static {
        let endpoint = self.endpoint.clone();
        async move { endpoint.bounded(endpoint.connect()).await }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open(text: &str) -> Result<Arc<RestOptions>, StoreError> {
        Ok(RestStore::open(&mut StoreUrl::parse(text)?)?.options)
    }

    #[test]
    fn a_url_says_where_records_are() {
        let plain = open("rest+http://h/a/b/{key}").unwrap();
        assert_eq!((plain.endpoint.name().as_str(), plain.place()), ("h:80", "/a/b"));
        assert!(plain.may_forget && !plain.template.takes_ttl());
        assert_eq!(open("rest+https://h/x{key}").unwrap().endpoint.name(), "h:443");
        let full = open(
            "rest+http://u:p@h:8098/buckets/b/keys/{key}?put=POST&type=text/plain&query=w=2\
             &header.X-Riak-Meta=1&ttl=Expire&durability=power&consistency=linearizable\
             &may-forget=false&timeout=1s",
        )
        .unwrap();
        assert!(!full.may_forget && full.template.takes_ttl());
        assert_eq!(full.durability, Durability::PowerLoss);
        assert_eq!(full.consistency, Consistency::Linearizable);
        let mut out = Vec::new();
        full.template.push_put(&mut out, b"k", b"v", None);
        assert_eq!(
            String::from_utf8(out).unwrap(),
            "POST /buckets/b/keys/k?w=2 HTTP/1.1\r\nHost: h:8098\r\nAuthorization: Basic dTpw\r\n\
             Accept-Encoding: identity\r\nX-Riak-Meta: 1\r\nContent-Type: text/plain\r\nContent-Length: 1\r\n\r\nv"
        );
    }

    #[test]
    fn a_wrong_url_is_refused_in_one_line() {
        for (text, hint) in [
            ("rest+http://h/path", "{key}"),
            ("rest+http://h/{key}/{key}", "{key}"),
            ("rest+http://h/get?key={key}", "goes into the path"),
            ("rest+http://h1,h2/{key}", "exactly one server"),
            ("rest+http://h/{key}?put=PATCH", "`POST`"),
            ("rest+http://h/{key}?header.A%0AB=1", "header's name"),
            ("rest+http://h/{key}?header.Content-Length=1", "leave it out"),
            ("rest+http://h/{key}?header.A=1%0D%0AB:2", "one line"),
            ("rest+http://h/{key}?type=a%0Ab", "one line"),
            ("rest+http://h/{key}?ttl=a%20b", "header's name"),
            ("rest+http://h/{key}?query=a%20b", "percent"),
            ("rest+http://h/{key}?durabilty=power", "did you mean `durability`?"),
            ("rest+http://h/{key}?ca=/x", "write `rest+https://…`"),
        ] {
            let message = open(text).err().expect(text).to_string();
            assert!(message.contains(hint) && !message.contains('\n'), "{text}: {message}");
        }
    }

    #[test]
    fn headers_that_may_be_secret_are_not_shown() {
        let text =
            "rest+http://h/{key}?header.Authorization=Bearer%20abc&header.X-Api-Key=d&header.A=e";
        let mut url = StoreUrl::parse(text).unwrap();
        url.understood();
        let shown = url.to_string();
        assert!(!shown.contains("abc") && !shown.contains("=d"), "{shown}");
        assert!(shown.contains("header.A=e") && shown.contains("/{key}"), "{shown}");
    }
}

//! Adapts RESP to the shared connection: who asks, which server, and how a connection is made ready.

mod handshake;
pub(super) mod sentinels;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use kvdyno_core::store::{Answer, RequestError};

pub(super) use sentinels::Sentinels;

use super::codec::{self, Progress, Token};
use super::errors;
use crate::error::StoreError;
use crate::url::StoreUrl;
use crate::wire::{
    Dialogue, Endpoint, MalformedAnswer, Protocol, ReachOptions, Stream, is_of_socket,
};

/// Version of the protocol to speak.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Resp {
    /// RESP3 where the server has it, else RESP2.
    #[default]
    Newest,
    /// RESP2.
    Two,
    /// RESP3, or an error.
    Three,
}

/// Place that reads go to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum ReadFrom {
    /// The server that takes the writes.
    #[default]
    Primary,
    /// A replica of it, which lags behind.
    Replica,
}

impl ReadFrom {
    /// Takes the option `read`.
    pub(super) fn take(url: &mut StoreUrl) -> Result<ReadFrom, StoreError> {
        let choices = [("primary", ReadFrom::Primary), ("replica", ReadFrom::Replica)];
        Ok(url.take_choice("read", &choices)?.unwrap_or_default())
    }
}

/// Identity and settings by which a client asks servers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Access {
    /// User of an access control list; `default` if only a password is given.
    pub(super) user: Option<String>,
    pub(super) password: Option<String>,
    /// Number of the database.
    pub(super) database: u32,
    pub(super) resp: Resp,
    /// True if a cluster's replicas are to answer reads themselves.
    pub(super) readonly: bool,
    /// Commands at which a connection was closed, so that they are sent no more.
    pub(super) omitted: Arc<Omitted>,
}

/// Commands at which a server, or a proxy before it, closes the connection instead of refusing them: each is asked once, on
/// a connection of its own, and left out after that.
#[derive(Debug, Default)]
pub(super) struct Omitted {
    pub(super) hello: AtomicBool,
    pub(super) client: AtomicBool,
}

impl Omitted {
    /// Returns the names of the commands.
    pub(super) fn names(&self) -> impl Iterator<Item = &'static str> {
        let named = [("HELLO", &self.hello), ("CLIENT", &self.client)];
        named.into_iter().filter(|(_, omitted)| omitted.load(Ordering::Relaxed)).map(|(n, _)| n)
    }
}

// How servers took to commands says nothing of who asks.
impl PartialEq for Omitted {
    fn eq(&self, _: &Omitted) -> bool {
        true
    }
}

impl Eq for Omitted {}

impl Access {
    /// Takes user and password, how the servers are reached, and the options `resp` and `db`; each also in
    /// the words of redis-py and redis-rs.
    ///
    /// # Errors
    /// [`StoreError::Url`] if an option has a wrong value, or one thing is told twice.
    pub(super) fn take(url: &mut StoreUrl) -> Result<(Access, ReachOptions), StoreError> {
        let reach = ReachOptions::take(url, &tls_scheme(url.scheme()))?;
        let versions =
            [("2", Resp::Two), ("resp2", Resp::Two), ("3", Resp::Three), ("resp3", Resp::Three)];
        let resp = url.take_choice("resp", &versions)?;
        let resp = url.take_choice("protocol", &versions)?.or(resp);
        let users = [url.user().map(str::to_owned), url.take("username"), url.take("user")];
        let passwords = [url.password().map(str::to_owned), url.take("password"), url.take("pass")];
        let database = url.take_number("db")?;
        let access = Access {
            user: only(url, "user", users)?,
            password: only(url, "password", passwords)?,
            database: database.unwrap_or(0),
            resp: resp.unwrap_or_default(),
            ..Access::default()
        };
        Ok((access, reach))
    }

    /// Takes the number of the database from the URL's path, unless that is a socket's.
    ///
    /// # Errors
    /// [`StoreError::Url`] if the path is no number.
    pub(super) fn with_database(mut self, url: &StoreUrl) -> Result<Access, StoreError> {
        if is_of_socket(url) {
            return Ok(self);
        }
        self.database = match url.path().trim_matches('/') {
            "" => self.database,
            number => number.parse().map_err(|_| {
                url.wrong("a path that is no database number", "write it like `redis://host/0`")
            })?,
        };
        Ok(self)
    }
}

/// Returns the value that one of several places gives; an error if several do.
fn only(
    url: &StoreUrl,
    what: &str,
    places: [Option<String>; 3],
) -> Result<Option<String>, StoreError> {
    let mut told = places.into_iter().flatten();
    match (told.next(), told.next()) {
        (one, None) => Ok(one),
        _ => Err(url.wrong(format!("a {what} twice"), "give it once, before the host's `@`")),
    }
}

/// Returns the scheme of the same store over TLS: `redis+cluster` becomes `rediss+cluster`.
fn tls_scheme(scheme: &str) -> String {
    let (base, kind) = scheme.split_at(scheme.find('+').unwrap_or(scheme.len()));
    match base {
        "rediss" | "valkeys" => scheme.to_owned(),
        plain => format!("{plain}s{kind}"),
    }
}

/// Server that a connection goes to.
#[derive(Clone)]
pub(super) enum To {
    /// This server.
    Server(Endpoint),
    /// The server that the sentinels call the primary.
    Primary(Arc<Sentinels>),
    /// One of the replicas that the sentinels know.
    Replica(Arc<Sentinels>),
}

/// Protocol of one connection.
#[derive(Clone)]
pub(super) struct Wire {
    pub(super) access: Arc<Access>,
    pub(super) to: To,
}

impl Wire {
    /// Returns the protocol of a connection to one server.
    pub(super) fn server(access: &Arc<Access>, endpoint: Endpoint) -> Wire {
        Wire { access: access.clone(), to: To::Server(endpoint) }
    }

    /// Connects and makes the connection ready; not bounded in time.
    pub(super) async fn dialogue(&self) -> Answer<Dialogue> {
        match &self.to {
            To::Server(endpoint) => handshake::open(&self.access, endpoint).await,
            To::Primary(sentinels) => sentinels.open_primary(&self.access).await,
            To::Replica(sentinels) => sentinels.open_replica(&self.access).await,
        }
    }

    /// Gives `attempt` the time that a request may take, and no more.
    pub(super) async fn bounded<T>(&self, attempt: impl Future<Output = Answer<T>>) -> Answer<T> {
        self.endpoint().bounded(attempt).await
    }

    /// Returns a server that is reached in the same way and with the same patience.
    pub(super) fn endpoint(&self) -> &Endpoint {
        match &self.to {
            To::Server(endpoint) => endpoint,
            To::Primary(sentinels) | To::Replica(sentinels) => sentinels.first(),
        }
    }
}

impl Protocol for Wire {
    type Reply = Token;
    type Progress = Progress;

    #[inline(always)]
    fn scan(
        progress: &mut Progress,
        parts: u32,
        input: &[u8],
    ) -> Result<Option<(Token, usize)>, MalformedAnswer> {
        codec::scan(progress, parts, input)
    }

    #[inline(always)]
    fn go_on(progress: &mut Progress) {
        progress.go_on();
    }

    fn peer(&self) -> String {
        match &self.to {
            To::Server(endpoint) => endpoint.name(),
            To::Primary(sentinels) => format!("the primary of {}", sentinels.name()),
            To::Replica(sentinels) => format!("a replica of {}", sentinels.name()),
        }
    }

    fn timeout(&self) -> Duration {
        self.endpoint().timeout()
    }

    fn open(&self) -> impl Future<Output = Answer<Stream>> + 'static {
        let wire = self.clone();
        async move { wire.bounded(async { wire.dialogue().await?.into_stream() }).await }
    }
}

/// Sends one command of a set-up dialogue. `Ok(Err(…))` is an error answer.
pub(super) async fn ask(
    dialogue: &mut Dialogue,
    words: &[&[u8]],
) -> Answer<Result<(Token, Vec<u8>), RequestError>> {
    let (first, bytes) = dialogue.ask::<Wire>(&codec::command(words)).await?;
    Ok(match first {
        Token::Error(text) => Err(errors::request_error(text.of(&bytes))),
        _ => Ok((first, bytes)),
    })
}

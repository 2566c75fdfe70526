//! RESP as the shared connection sees it: who asks, whom, and how a connection is made ready.

use std::sync::Arc;
use std::time::Duration;

use kvdyno_core::store::{Answer, Fault};

use super::codec::{self, Progress, Token};
use super::sentinel::Sentinels;
use super::{errors, handshake};
use crate::error::StoreError;
use crate::url::StoreUrl;
use crate::wire::{Dialogue, Endpoint, Malformed, Protocol, ReachOptions, Stream};

/// Which version of the protocol to speak.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Resp {
    /// RESP3 where the server has it, else RESP2.
    #[default]
    Newest,
    /// RESP2.
    Two,
    /// RESP3, or nothing.
    Three,
}

/// Who asks, and how.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Access {
    /// User of an access control list; `default` if only a password is given.
    pub(super) user: Option<String>,
    pub(super) password: Option<String>,
    /// Number of the database.
    pub(super) database: u32,
    pub(super) resp: Resp,
    /// A cluster's replicas are to answer reads themselves.
    pub(super) readonly: bool,
}

impl Access {
    /// Takes user and password, and how the servers are reached with the option `resp`.
    ///
    /// # Errors
    /// [`StoreError::Url`] if an option has a wrong value.
    pub(super) fn take(url: &mut StoreUrl) -> Result<(Access, ReachOptions), StoreError> {
        let reach = ReachOptions::take(url, &tls_scheme(url.scheme()))?;
        let resp = url.take_choice("resp", &[("2", Resp::Two), ("3", Resp::Three)])?;
        let access = Access {
            user: url.user().map(str::to_owned),
            password: url.password().map(str::to_owned),
            resp: resp.unwrap_or_default(),
            ..Access::default()
        };
        Ok((access, reach))
    }

    /// Takes the number of the database from the URL's path.
    ///
    /// # Errors
    /// [`StoreError::Url`] if the path is no number.
    pub(super) fn with_database(mut self, url: &StoreUrl) -> Result<Access, StoreError> {
        self.database = match url.path().trim_matches('/') {
            "" => 0,
            number => number.parse().map_err(|_| {
                url.wrong("a path that is no database number", "write it like `redis://host/0`")
            })?,
        };
        Ok(self)
    }
}

/// The scheme of the same store over TLS: `redis+cluster` becomes `rediss+cluster`.
fn tls_scheme(scheme: &str) -> String {
    let (base, kind) = scheme.split_at(scheme.find('+').unwrap_or(scheme.len()));
    match base {
        "rediss" | "valkeys" => scheme.to_owned(),
        plain => format!("{plain}s{kind}"),
    }
}

/// Whom a connection goes to.
#[derive(Clone)]
pub(super) enum To {
    /// This server.
    Server(Endpoint),
    /// Whichever server the sentinels say is the primary.
    Primary(Arc<Sentinels>),
    /// One of the replicas that the sentinels know.
    Replica(Arc<Sentinels>),
}

/// One connection's protocol.
#[derive(Clone)]
pub(super) struct Wire {
    pub(super) access: Arc<Access>,
    pub(super) to: To,
}

impl Wire {
    /// To one server.
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

    /// Some server that is reached in the same way and with the same patience.
    fn endpoint(&self) -> &Endpoint {
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
    ) -> Result<Option<(Token, usize)>, Malformed> {
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
) -> Answer<Result<(Token, Vec<u8>), Fault>> {
    let (first, bytes) = dialogue.ask::<Wire>(&codec::command(words)).await?;
    Ok(match first {
        Token::Error(text) => Err(errors::fault(text.of(&bytes))),
        _ => Ok((first, bytes)),
    })
}

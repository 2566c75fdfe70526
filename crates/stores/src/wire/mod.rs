//! Shares between the drivers with their own codecs one non-blocking connection that carries several clients of a worker
//! thread at the least CPU per operation; or, for a store of several servers, one to each of its *members*, with the same
//! clients on all of them.
//!
//! A request is encoded straight into the output of a member's connection; the
//! [`Transport`] writes all of it with one system call, reads with one, and finds whole answers; each client
//! then reads its answer out of the input buffer, where it still lies. Nothing is copied twice, and
//! nothing is allocated, once the buffers have grown to size.
//!
//! The worker's runtime must have Tokio's I/O and time drivers enabled.

// Official drivers need the options that servers are reached by, and nothing of the rest.
#![cfg_attr(not(any(feature = "redis", feature = "memcached")), allow(dead_code, unused_imports))]

mod certificate;
mod connection;
mod deadline;
mod decimal;
mod dialogue;
mod endpoint;
mod input;
mod link;
mod outcome;
#[cfg(all(test, any(feature = "redis", feature = "memcached")))]
pub(crate) mod recorded;
mod stream;
mod tls;

use std::future::Future;
use std::time::Duration;

use kvdyno_core::store::Answer;

pub(crate) use connection::Effect;
pub(crate) use decimal::{parse_decimal, parse_short_line, push_decimal};
#[cfg(any(feature = "riak", feature = "tarantool"))]
pub(crate) use dialogue::reach_one;
pub(crate) use dialogue::{Dialogue, is_closed};
pub use endpoint::Endpoint;
#[cfg(any(feature = "cassandra", feature = "mongodb", feature = "aerospike"))]
pub(crate) use endpoint::take_retry;
#[cfg(feature = "mongodb")]
pub(crate) use endpoint::take_timeout;
pub(crate) use endpoint::{ReachOptions, is_of_socket};
pub(crate) use link::{Link, Sent, WireTransport, open, unexpected};
pub(crate) use outcome::outcome_of_all;
pub(crate) use stream::Stream;
#[cfg(feature = "etcd")]
pub(crate) use tls::server_check;
#[cfg(any(feature = "etcd", feature = "nats"))]
pub(crate) use tls::{TlsFiles, Trust};

/// Most bytes that one answer may have. Redis' own limit of a value is 512 MiB; a batch may
/// bring several values.
pub(crate) const LARGEST_ANSWER: usize = 1 << 30;

/// Bytes that are not an answer in the protocol; the connection is of no more use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct MalformedAnswer(pub &'static str);

/// A protocol whose answers come in the order of the requests.
pub(crate) trait Protocol: 'static {
    /// An answer whose end is found; positions count from its first byte.
    type Reply: Copy;

    /// State of the search for the end of an incomplete answer.
    type Progress: Default;

    /// Looks for the end of an answer of `parts` replies that begins at the start of `input`.
    /// Gives the answer and its length, or `None` while bytes are missing.
    fn scan(
        progress: &mut Self::Progress,
        parts: u32,
        input: &[u8],
    ) -> Result<Option<(Self::Reply, usize)>, MalformedAnswer>;

    /// Goes on after an answer was found: from here on `progress` is that of the next one.
    fn go_on(progress: &mut Self::Progress) {
        *progress = Self::Progress::default();
    }

    /// Returns true if the server closes the connection after this answer; the next request needs a new one.
    fn closes(_reply: &Self::Reply) -> bool {
        false
    }

    /// Returns the name of the server that it talks to, for messages.
    fn peer(&self) -> String;

    /// Longest time that a request may take.
    fn timeout(&self) -> Duration;

    /// Connects and makes the connection ready for requests. Owns what it needs, so that it can
    /// be kept and polled by the connection.
    fn open(&self) -> impl Future<Output = Answer<Stream>> + 'static;
}

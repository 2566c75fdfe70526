//! The store contract: what a driver implements.
//!
//! A driver author implements two traits: [`Store`] (how to connect, what is promised) and
//! [`Client`] (one request slot). The rule that keeps every verdict right is Jepsen's: answer `Ok`
//! when the server said so, [`RequestError::failed`] when the request was surely not applied, and
//! [`RequestError::indeterminate`] whenever that is not known.

mod copies;
mod erased;
mod figure;
mod joined;
mod profile;
mod request_error;
mod threading;
mod transfer;
mod work;

use std::future::Future;
use std::path::Path;
use std::task::Context;
use std::time::SystemTime;

use serde::{Deserialize, Serialize};

pub use copies::{Copies, CopyPlace, NodeCopy};
pub use erased::{BoxedClient, BoxedStore, BoxedTransport, ErasedStore, Pending};
pub use figure::{Figure, FigureUnit};
pub use joined::Joined;
pub use profile::{Capabilities, Consistency, Durability, Profile, Promise};
pub use request_error::{Certainty, ErrorClass, RequestError, RequestErrorDetails};
pub use threading::{Threading, ThreadingOf};
pub use transfer::{FieldSpan, Put, Reading, Row, Rows, Value};
pub use work::{Work, end_of_log};

/// Answer to one wire request.
pub type Answer<T> = Result<T, RequestError>;

/// Operation of the run to which a request belongs; `sim:` logs it with each imperfection.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct OperationId {
    /// Number of the phase in the run, from 0.
    pub phase: u16,
    /// Number of the client group in the phase, from 0.
    pub group: u16,
    /// Number of the operation in the group, from 0.
    pub id: u64,
}

/// System under test: how to reach it, what it promises, and where its records are. No method has a default: a
/// default that a driver's author overlooked would state something untrue.
pub trait Store: Sized + Send + Sync + 'static {
    /// Request slot of this store.
    type Client: Client;
    /// Transport that moves the bytes of a connection's clients; [`NoTransport`] where calls do it themselves.
    type Transport: Transport + Unpin;

    /// Threading of the clients: each is an OS thread of its own, or one of many on a worker's runtime.
    const THREADING: ThreadingOf<Self>;

    /// Asks the store what it is and what it promises; reads promises back where it can be asked.
    ///
    /// # Errors
    /// A [`RequestError`] if the store cannot be reached or refuses.
    fn profile(&self) -> impl Future<Output = Answer<Profile>>;

    /// Opens one connection that carries `slots` clients (the pipeline depth; 1 for stores without
    /// pipelining). Called on the worker thread that will use it.
    ///
    /// # Errors
    /// A [`RequestError`] if the store cannot be reached or refuses.
    fn connect(
        &self,
        slots: usize,
    ) -> impl Future<Output = Answer<Connection<Self::Client, Self::Transport>>>;

    /// Returns the folder on this machine in which the store keeps its data, where it does so itself.
    fn folder(&self) -> Option<&Path>;

    /// Returns the figures that the driver noticed since the last call. It is called at the end of each phase,
    /// when the clients are done. It may ask the servers, within the time that a request may take; figures that
    /// cannot be told then are left out.
    fn figures(&self) -> impl Future<Output = Vec<Figure>>;

    /// Returns the same store, read at each stronger level that it has, with the level's name; the strongest
    /// first, none where this one reads so already. Records are read back at the first level that is answered.
    /// A store with another [behind](Store::behind) it returns the levels of that one.
    fn stronger(&self) -> Vec<(BoxedStore, String)>;

    /// Returns the store that has the records for good, where this one stands in front of it and may answer
    /// without asking it. The fate of writes is asked of that one.
    fn behind(&self) -> Option<BoxedStore>;

    /// Returns how to read each copy of the records by itself, as things are now. It is called when records are
    /// about to be read back.
    ///
    /// # Errors
    /// A [`RequestError`] if the servers cannot be asked where the copies are.
    fn copies(&self) -> impl Future<Output = Answer<Copies<BoxedStore>>>;

    /// Takes in a server (`host:port`) that has joined while clients go on. A store whose clients decide
    /// themselves which server has a record moves the records to it that are now its own, and refuses requests
    /// meanwhile.
    ///
    /// # Errors
    /// A [`RequestError`] if records could not be moved: some may lie where no client looks for them.
    fn join(&self, server: &str) -> impl Future<Output = Answer<Joined>>;

    /// Returns how many of the records at `keys` a server (`host:port`) that has joined has by now, as it says
    /// itself or as clients are sent to it.
    ///
    /// # Errors
    /// A [`RequestError`] if that cannot be told, or not by this driver.
    fn held_by(&self, server: &str, keys: &[Vec<u8>]) -> impl Future<Output = Answer<u64>>;

    /// Returns the work that an engine in this process did beside answering requests, as far as it ended since
    /// a moment. It is called at the end of each phase.
    fn work_since(&self, moment: SystemTime) -> Vec<Work>;
}

/// Implements the methods about copies and servers of a [`Store`] in this process that keeps each record once.
/// The store's `impl` calls this macro; it is no default, because it would be untrue of a store that is made of
/// others.
#[macro_export]
macro_rules! kept_once_in_this_process {
    () => {
        fn stronger(&self) -> Vec<($crate::store::BoxedStore, String)> {
            Vec::new()
        }

        fn behind(&self) -> Option<$crate::store::BoxedStore> {
            None
        }

        async fn copies(
            &self,
        ) -> $crate::store::Answer<$crate::store::Copies<$crate::store::BoxedStore>> {
            Ok($crate::store::Copies::One)
        }

        async fn join(&self, _: &str) -> $crate::store::Answer<$crate::store::Joined> {
            let why = "the store is in this process, and has no servers";
            Ok($crate::store::Joined::PassedOver(why.to_owned()))
        }

        async fn held_by(&self, _: &str, _: &[Vec<u8>]) -> $crate::store::Answer<u64> {
            Err($crate::store::RequestError::unsupported("servers"))
        }
    };
}

/// Implements the methods about figures and work of a [`Store`] whose driver notices nothing that the load does
/// not see, and whose engine is not known to do anything beside answering. The store's `impl` calls this macro;
/// it is no default.
#[macro_export]
macro_rules! notices_nothing {
    () => {
        async fn figures(&self) -> Vec<$crate::store::Figure> {
            Vec::new()
        }

        fn work_since(&self, _: std::time::SystemTime) -> Vec<$crate::store::Work> {
            Vec::new()
        }
    };
}

/// Connection, as [`Store::connect`] opens it.
#[derive(Debug)]
pub struct Connection<C, T> {
    /// Request slots of the connection, as many as were asked for.
    pub clients: Vec<C>,
    /// Transport that moves the bytes of all of them.
    pub transport: T,
}

impl<C> Connection<C, NoTransport> {
    /// Creates a connection of one client whose calls need no transport.
    pub fn direct(client: C) -> Self {
        Connection { clients: vec![client], transport: NoTransport }
    }
}

/// Transport that moves the bytes of all clients of a connection. The load polls each client, then the
/// transport, so that the requests of all slots leave in one write. A client's future therefore only queues its
/// request and waits for its answer.
pub trait Transport {
    /// Writes the queued requests, reads what has come, and hands answers to the clients' slots. Returns `true`
    /// if an answer (or a lost connection) was handed over, so that clients must be polled again; `false` if
    /// there is nothing to do until the waker in `context` is called.
    fn poll(&mut self, context: &mut Context<'_>) -> bool;
}

impl<T: Transport> Transport for &mut T {
    fn poll(&mut self, context: &mut Context<'_>) -> bool {
        T::poll(self, context)
    }
}

/// Transport of stores whose calls answer at once or wait by themselves.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoTransport;

impl Transport for NoTransport {
    #[inline]
    fn poll(&mut self, _context: &mut Context<'_>) -> bool {
        false
    }
}

/// Request slot: at most one request in flight.
///
/// The caller takes the latency around each method, so a method does what the wire asks and nothing else. After
/// an answer that lost the connection the next call makes one attempt to connect again; waiting between
/// attempts is the caller's task.
///
/// A request of one record borrows its arguments (`'a`) until its answer, so that a driver may return a future
/// of its own as it is; an `async fn` without lifetimes does as well.
pub trait Client {
    /// Reads the record at `key` into `into` (cleared by the caller). `Ok(true)` if it exists.
    ///
    /// # Errors
    /// Always [`RequestError::failed`]: a read changes nothing, so it is never indeterminate.
    fn get<'a>(
        &'a mut self,
        key: &'a [u8],
        into: &'a mut Reading,
    ) -> impl Future<Output = Answer<bool>>;

    /// Writes a record, or only the fields that `put` holds if [`Put::partial`].
    ///
    /// # Errors
    /// [`RequestError::failed`] if surely not applied, else [`RequestError::indeterminate`].
    fn put<'a>(&'a mut self, put: Put<'a>) -> impl Future<Output = Answer<()>>;

    /// Deletes the record at `key`. `Ok(true)` if there was one.
    ///
    /// # Errors
    /// Those of [`Client::put`].
    fn delete<'a>(&'a mut self, key: &'a [u8]) -> impl Future<Output = Answer<bool>>;

    /// Reads up to `count` records in key order, from the first key at or after `from`.
    /// Called only if [`Capabilities::scan`].
    ///
    /// # Errors
    /// Those of [`Client::get`].
    fn scan(
        &mut self,
        from: &[u8],
        count: usize,
        into: &mut Rows,
    ) -> impl Future<Output = Answer<()>> {
        let _ = (from, count, into);
        async { Err(RequestError::unsupported("scan")) }
    }

    /// Reads several records with one wire request; pushes exactly one row for each key, in the
    /// order asked. Called only if [`Capabilities::batch_get`].
    ///
    /// # Errors
    /// Those of [`Client::get`].
    fn get_batch(&mut self, keys: &[&[u8]], into: &mut Rows) -> impl Future<Output = Answer<()>> {
        let _ = (keys, into);
        async { Err(RequestError::unsupported("get-batch")) }
    }

    /// Writes several records with one wire request. Called only if [`Capabilities::batch_put`].
    ///
    /// # Errors
    /// Those of [`Client::put`], for the batch as a whole: [`RequestError::failed`] only if no write of it was
    /// applied.
    fn put_batch(&mut self, puts: &[Put<'_>]) -> impl Future<Output = Answer<()>> {
        let _ = puts;
        async { Err(RequestError::unsupported("put-batch")) }
    }

    /// Tells the client before each operation which one it is, for stores that log what they do, as `sim:`
    /// does.
    fn begin(&mut self, operation: OperationId) {
        let _ = operation;
    }
}

//! Erased form of a store, in which its type is forgotten. None of its methods has a default, nor has any
//! of [`Store`]: a store made of others (`cache(…)`) that does not hand on a method does not compile.
//!
//! Each request of a [`BoxedStore`] costs one allocation and two calls through a table, some 50 ns, which
//! is why the load itself is compiled for each store's own client (`load/any_store.rs`).

use std::future::Future;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Context;
use std::time::SystemTime;

use super::{
    Answer, Client, Connection, Copies, Figure, Joined, OperationId, Profile, Put, Reading, Rows,
    Store, Threading, ThreadingOf, Transport, Work,
};

/// Answer that is on its way.
pub type Pending<'a, T> = Pin<Box<dyn Future<Output = T> + 'a>>;

/// [`Store`] in a form that needs no type; every store has it. Each method calls the store's method of
/// that name.
pub trait ErasedStore: Send + Sync {
    /// Returns what [`Store::THREADING`] says of this store.
    fn threading(&self) -> Threading;

    /// Calls [`Store::profile`].
    fn profile(&self) -> Pending<'_, Answer<Profile>>;

    /// Calls [`Store::connect`], and erases the types of the connection.
    fn connect(&self, slots: usize)
    -> Pending<'_, Answer<Connection<BoxedClient, BoxedTransport>>>;

    /// Calls [`Store::folder`].
    fn folder(&self) -> Option<&Path>;

    /// Calls [`Store::figures`].
    fn figures(&self) -> Pending<'_, Vec<Figure>>;

    /// Calls [`Store::stronger`].
    fn stronger(&self) -> Vec<(BoxedStore, String)>;

    /// Calls [`Store::behind`].
    fn behind(&self) -> Option<BoxedStore>;

    /// Calls [`Store::copies`].
    fn copies(&self) -> Pending<'_, Answer<Copies<BoxedStore>>>;

    /// Calls [`Store::join`].
    fn join<'a>(&'a self, server: &'a str) -> Pending<'a, Answer<Joined>>;

    /// Calls [`Store::held_by`].
    fn held_by<'a>(&'a self, server: &'a str, keys: &'a [Vec<u8>]) -> Pending<'a, Answer<u64>>;

    /// Calls [`Store::work_since`].
    fn work_since(&self, moment: SystemTime) -> Vec<Work>;
}

impl<S: Store> ErasedStore for S {
    fn threading(&self) -> Threading {
        S::THREADING.of(self)
    }

    fn profile(&self) -> Pending<'_, Answer<Profile>> {
        Box::pin(Store::profile(self))
    }

    fn connect(
        &self,
        slots: usize,
    ) -> Pending<'_, Answer<Connection<BoxedClient, BoxedTransport>>> {
        Box::pin(async move {
            let Connection { clients, transport } = Store::connect(self, slots).await?;
            let clients = clients.into_iter().map(|client| BoxedClient(Box::new(client)));
            let transport = BoxedTransport(Box::new(transport));
            Ok(Connection { clients: clients.collect(), transport })
        })
    }

    fn folder(&self) -> Option<&Path> {
        Store::folder(self)
    }

    fn figures(&self) -> Pending<'_, Vec<Figure>> {
        Box::pin(Store::figures(self))
    }

    fn stronger(&self) -> Vec<(BoxedStore, String)> {
        Store::stronger(self)
    }

    fn behind(&self) -> Option<BoxedStore> {
        Store::behind(self)
    }

    fn copies(&self) -> Pending<'_, Answer<Copies<BoxedStore>>> {
        Box::pin(Store::copies(self))
    }

    fn join<'a>(&'a self, server: &'a str) -> Pending<'a, Answer<Joined>> {
        Box::pin(Store::join(self, server))
    }

    fn held_by<'a>(&'a self, server: &'a str, keys: &'a [Vec<u8>]) -> Pending<'a, Answer<u64>> {
        Box::pin(Store::held_by(self, server, keys))
    }

    fn work_since(&self, moment: SystemTime) -> Vec<Work> {
        Store::work_since(self, moment)
    }
}

/// [`Client`] in a form that needs no type.
trait ErasedClient {
    fn get<'a>(&'a mut self, key: &'a [u8], into: &'a mut Reading) -> Pending<'a, Answer<bool>>;
    fn put<'a>(&'a mut self, put: Put<'a>) -> Pending<'a, Answer<()>>;
    fn delete<'a>(&'a mut self, key: &'a [u8]) -> Pending<'a, Answer<bool>>;
    fn scan<'a>(
        &'a mut self,
        from: &'a [u8],
        count: usize,
        into: &'a mut Rows,
    ) -> Pending<'a, Answer<()>>;
    fn get_batch<'a>(
        &'a mut self,
        keys: &'a [&'a [u8]],
        into: &'a mut Rows,
    ) -> Pending<'a, Answer<()>>;
    fn put_batch<'a>(&'a mut self, puts: &'a [Put<'a>]) -> Pending<'a, Answer<()>>;
    fn begin(&mut self, operation: OperationId);
}

impl<C: Client> ErasedClient for C {
    fn get<'a>(&'a mut self, key: &'a [u8], into: &'a mut Reading) -> Pending<'a, Answer<bool>> {
        Box::pin(Client::get(self, key, into))
    }

    fn put<'a>(&'a mut self, put: Put<'a>) -> Pending<'a, Answer<()>> {
        Box::pin(Client::put(self, put))
    }

    fn delete<'a>(&'a mut self, key: &'a [u8]) -> Pending<'a, Answer<bool>> {
        Box::pin(Client::delete(self, key))
    }

    fn scan<'a>(
        &'a mut self,
        from: &'a [u8],
        count: usize,
        into: &'a mut Rows,
    ) -> Pending<'a, Answer<()>> {
        Box::pin(Client::scan(self, from, count, into))
    }

    fn get_batch<'a>(
        &'a mut self,
        keys: &'a [&'a [u8]],
        into: &'a mut Rows,
    ) -> Pending<'a, Answer<()>> {
        Box::pin(Client::get_batch(self, keys, into))
    }

    fn put_batch<'a>(&'a mut self, puts: &'a [Put<'a>]) -> Pending<'a, Answer<()>> {
        Box::pin(Client::put_batch(self, puts))
    }

    fn begin(&mut self, operation: OperationId) {
        Client::begin(self, operation);
    }
}

/// Store of any type. A clone is the same store.
#[derive(Clone)]
pub struct BoxedStore(Arc<dyn ErasedStore>);

impl BoxedStore {
    /// Erases a store's type.
    pub fn new(store: impl Store) -> BoxedStore {
        BoxedStore(Arc::new(store))
    }
}

impl From<Arc<dyn ErasedStore>> for BoxedStore {
    fn from(store: Arc<dyn ErasedStore>) -> BoxedStore {
        BoxedStore(store)
    }
}

/// Client of a store of any type.
pub struct BoxedClient(Box<dyn ErasedClient>);

/// Transport of a connection to a store of any type.
pub struct BoxedTransport(Box<dyn Transport + Unpin>);

impl Transport for BoxedTransport {
    fn poll(&mut self, context: &mut Context<'_>) -> bool {
        self.0.poll(context)
    }
}

impl Store for BoxedStore {
    type Client = BoxedClient;
    type Transport = BoxedTransport;

    const THREADING: ThreadingOf<Self> = ThreadingOf::Each(|store| store.0.threading());

    async fn profile(&self) -> Answer<Profile> {
        self.0.profile().await
    }

    async fn connect(&self, slots: usize) -> Answer<Connection<BoxedClient, BoxedTransport>> {
        self.0.connect(slots).await
    }

    fn folder(&self) -> Option<&Path> {
        self.0.folder()
    }

    async fn figures(&self) -> Vec<Figure> {
        self.0.figures().await
    }

    fn stronger(&self) -> Vec<(BoxedStore, String)> {
        self.0.stronger()
    }

    fn behind(&self) -> Option<BoxedStore> {
        self.0.behind()
    }

    async fn copies(&self) -> Answer<Copies<BoxedStore>> {
        self.0.copies().await
    }

    async fn join(&self, server: &str) -> Answer<Joined> {
        self.0.join(server).await
    }

    async fn held_by(&self, server: &str, keys: &[Vec<u8>]) -> Answer<u64> {
        self.0.held_by(server, keys).await
    }

    fn work_since(&self, moment: SystemTime) -> Vec<Work> {
        self.0.work_since(moment)
    }
}

impl Client for BoxedClient {
    async fn get(&mut self, key: &[u8], into: &mut Reading) -> Answer<bool> {
        self.0.get(key, into).await
    }

    async fn put(&mut self, put: Put<'_>) -> Answer<()> {
        self.0.put(put).await
    }

    async fn delete(&mut self, key: &[u8]) -> Answer<bool> {
        self.0.delete(key).await
    }

    async fn scan(&mut self, from: &[u8], count: usize, into: &mut Rows) -> Answer<()> {
        self.0.scan(from, count, into).await
    }

    async fn get_batch(&mut self, keys: &[&[u8]], into: &mut Rows) -> Answer<()> {
        self.0.get_batch(keys, into).await
    }

    async fn put_batch(&mut self, puts: &[Put<'_>]) -> Answer<()> {
        self.0.put_batch(puts).await
    }

    fn begin(&mut self, operation: OperationId) {
        self.0.begin(operation);
    }
}

//! A store whose type is forgotten for good, for stores that are made of others (`cache(…)`): any
//! store that the registry opens becomes a [`BoxedStore`], which is a store again.
//!
//! Each request costs one allocation and two calls through a table, some 50 ns, which is why the
//! load itself is compiled for each store's own client instead.

use std::future::Future;
use std::path::Path;
use std::pin::Pin;
use std::task::Context;
use std::time::SystemTime;

use kvdyno_core::load::AnyStore;
use kvdyno_core::store::{
    Answer, Client, Connection, Figure, OperationId, Profile, Put, Reading, Rows, Store, Threading,
    Transport, Work,
};

/// What opening a URL gives: a store to load, or to build another one of.
pub trait OpenedStore: AnyStore {
    /// Forgets its type.
    fn into_boxed(self: Box<Self>) -> BoxedStore;
}

impl<S: Store> OpenedStore for S {
    fn into_boxed(self: Box<Self>) -> BoxedStore {
        BoxedStore(self)
    }
}

/// An answer that is on its way.
type Pending<'a, T> = Pin<Box<dyn Future<Output = T> + 'a>>;

/// [`Store`] in a form that needs no type.
trait DynStore: Send + Sync {
    fn threading(&self) -> Threading;
    fn profile(&self) -> Pending<'_, Answer<Profile>>;
    fn connect(&self, slots: usize)
    -> Pending<'_, Answer<Connection<BoxedClient, BoxedTransport>>>;
    fn folder(&self) -> Option<&Path>;
    fn work_since(&self, moment: SystemTime) -> Vec<Work>;
    fn figures(&self) -> Pending<'_, Vec<Figure>>;
}

impl<S: Store> DynStore for S {
    fn threading(&self) -> Threading {
        Store::threading(self)
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

    fn work_since(&self, moment: SystemTime) -> Vec<Work> {
        Store::work_since(self, moment)
    }

    fn figures(&self) -> Pending<'_, Vec<Figure>> {
        Box::pin(Store::figures(self))
    }
}

/// [`Client`] in a form that needs no type.
trait DynClient {
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

impl<C: Client> DynClient for C {
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

/// Any store.
pub struct BoxedStore(Box<dyn DynStore>);

/// A client of any store.
pub struct BoxedClient(Box<dyn DynClient>);

/// What moves the bytes of any store's connection.
pub struct BoxedTransport(Box<dyn Transport + Unpin>);

impl Transport for BoxedTransport {
    fn poll(&mut self, context: &mut Context<'_>) -> bool {
        self.0.poll(context)
    }
}

impl Store for BoxedStore {
    type Client = BoxedClient;
    type Transport = BoxedTransport;

    fn threading(&self) -> Threading {
        self.0.threading()
    }

    async fn profile(&self) -> Answer<Profile> {
        self.0.profile().await
    }

    async fn connect(&self, slots: usize) -> Answer<Connection<BoxedClient, BoxedTransport>> {
        self.0.connect(slots).await
    }

    fn folder(&self) -> Option<&Path> {
        self.0.folder()
    }

    fn work_since(&self, moment: SystemTime) -> Vec<Work> {
        self.0.work_since(moment)
    }

    async fn figures(&self) -> Vec<Figure> {
        self.0.figures().await
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

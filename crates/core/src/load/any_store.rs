//! Type-erased stores that a phase can load: what the registry hands out. The loop behind such a store is still
//! compiled for the store's own client, so nothing is dispatched per operation; all that is around the loop is
//! compiled once.

use std::sync::Arc;

use super::error::LoadError;
use super::threads::{self, Assignment, Carried};
use crate::store::{BoxedStore, ErasedStore, Store};

/// Type-erased store that a phase can load, implemented for every [`Store`]. Its further methods are those of
/// `dyn AnyStore`.
pub trait AnyStore: ErasedStore {
    /// Carries the load of one worker, in its thread.
    ///
    /// # Errors
    /// [`LoadError`] if the worker could not begin.
    fn carry(self: Arc<Self>, assignment: &Assignment) -> Result<Carried, LoadError>;
}

impl<S: Store> AnyStore for S {
    fn carry(self: Arc<Self>, assignment: &Assignment) -> Result<Carried, LoadError> {
        threads::carry_with(&self, assignment)
    }
}

/// Conversion of an opened store to one that a phase can load.
impl From<BoxedStore> for Arc<dyn AnyStore> {
    fn from(store: BoxedStore) -> Arc<dyn AnyStore> {
        Arc::new(store)
    }
}

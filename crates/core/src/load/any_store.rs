//! A store whose type is forgotten and which can be loaded: what the registry hands out. The loop behind
//! it is still compiled for the store's own client, so nothing is dispatched per operation.

use std::future::Future;
use std::sync::Arc;

use super::copies::{self, Agreement};
use super::error::LoadError;
use super::job::{Context, Job};
use super::observer::Observer;
use super::run::run;
use super::threads;
use crate::measure::PhaseMeasure;
use crate::store::{
    Answer, BoxedStore, ErasedStore, Joined, Profile, RequestError, Store, Threading,
};

/// Implemented for every [`Store`].
pub trait AnyStore: ErasedStore {
    /// Runs a phase to its end; blocks.
    ///
    /// # Errors
    /// [`LoadError`] if the phase could not begin.
    fn load(
        self: Arc<Self>,
        job: &Arc<Job>,
        observer: &mut dyn Observer,
    ) -> Result<PhaseMeasure, LoadError>;
}

impl<S: Store> AnyStore for S {
    fn load(
        self: Arc<Self>,
        job: &Arc<Job>,
        observer: &mut dyn Observer,
    ) -> Result<PhaseMeasure, LoadError> {
        run(&self, job, observer)
    }
}

/// What is asked outside the load; each of these blocks.
impl dyn AnyStore + '_ {
    /// As [`Store::profile`].
    ///
    /// # Errors
    /// [`LoadError::Unavailable`] if the store cannot be reached or refuses.
    pub fn ask_profile(&self) -> Result<Profile, LoadError> {
        self.ask(ErasedStore::profile(self))
    }

    /// Reads every copy of records 0..`records` by itself and compares.
    ///
    /// # Errors
    /// [`LoadError`] if no copy could be looked for.
    pub fn compare_copies(&self, context: &Context, records: u64) -> Result<Agreement, LoadError> {
        self.wait(async {
            let copies = self.copies().await.map_err(LoadError::Unavailable)?;
            copies::compare(copies, context, records).await
        })?
    }

    /// As [`Store::join`].
    ///
    /// # Errors
    /// [`LoadError::Unavailable`] if records could not be moved.
    pub fn take_in(&self, server: &str) -> Result<Joined, LoadError> {
        self.ask(self.join(server))
    }

    /// As [`Store::held_by`].
    ///
    /// # Errors
    /// [`LoadError::Unavailable`] if that cannot be told.
    pub fn ask_held_by(&self, server: &str, keys: &[Vec<u8>]) -> Result<u64, LoadError> {
        self.ask(self.held_by(server, keys))
    }

    fn ask<T>(&self, asked: impl Future<Output = Answer<T>>) -> Result<T, LoadError> {
        self.wait(asked)?.map_err(|fault: RequestError| LoadError::Unavailable(fault))
    }

    fn wait<T>(&self, asked: impl Future<Output = T>) -> Result<T, LoadError> {
        Ok(match self.threading() {
            Threading::InProcess => threads::block_on_calling_thread(asked),
            Threading::Networked => {
                tokio::task::LocalSet::new().block_on(&threads::runtime()?, asked)
            }
        })
    }
}

/// The same store, to be loaded.
impl From<BoxedStore> for Arc<dyn AnyStore> {
    fn from(store: BoxedStore) -> Arc<dyn AnyStore> {
        Arc::new(store)
    }
}

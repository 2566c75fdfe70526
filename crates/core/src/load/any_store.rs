//! A store whose type is forgotten and which can be loaded: what the registry hands out. The loop behind
//! it is still compiled for the store's own client, so nothing is dispatched per operation.

use std::future::Future;
use std::sync::Arc;

use super::copies::{self, Agreement};
use super::error::LoadError;
use super::job::{Job, StoreContext};
use super::observer::Observer;
use super::phase::carry;
use super::recheck::recheck;
use super::threads;
use crate::measure::PhaseMeasure;
use crate::store::{
    Answer, BoxedStore, ErasedStore, Joined, Profile, RequestError, Store, Threading,
};

/// Implemented for every [`Store`].
pub trait AnyStore: ErasedStore {
    /// Carries the load of a phase; blocks until nothing is in flight any more.
    ///
    /// # Errors
    /// [`LoadError`] if the phase could not begin; what went wrong later is in the measure.
    fn load(
        self: Arc<Self>,
        job: &Arc<Job>,
        observer: &mut dyn Observer,
    ) -> Result<PhaseMeasure, LoadError>;

    /// Reads again what was not answered or looked wrong, which tells what is lost from what was late, and
    /// asks the store for its own figures: enters both. What was broken is repaired by then; blocks.
    fn look_again(
        self: Arc<Self>,
        job: &Job,
        measure: &mut PhaseMeasure,
        observer: &mut dyn Observer,
    );

    /// Both, of a phase without faults.
    ///
    /// # Errors
    /// As [`AnyStore::load`].
    fn run(
        self: Arc<Self>,
        job: &Arc<Job>,
        observer: &mut dyn Observer,
    ) -> Result<PhaseMeasure, LoadError> {
        let mut measure = Arc::clone(&self).load(job, observer)?;
        self.look_again(job, &mut measure, observer);
        Ok(measure)
    }
}

impl<S: Store> AnyStore for S {
    fn load(
        self: Arc<Self>,
        job: &Arc<Job>,
        observer: &mut dyn Observer,
    ) -> Result<PhaseMeasure, LoadError> {
        carry(&self, job, observer)
    }

    fn look_again(
        self: Arc<Self>,
        job: &Job,
        measure: &mut PhaseMeasure,
        observer: &mut dyn Observer,
    ) {
        // A store that stands in front of another neither has a record for good nor loses one.
        match Store::behind(&*self) {
            Some(behind) => recheck(&Arc::new(behind), job, measure, observer),
            None => recheck(&self, job, measure, observer),
        }
        // Servers may be asked, and are not waited for if the user does not.
        if !job.context.interrupt.is_urgent() {
            measure.figures = {
                let asked = Store::figures(&*self);
                wait(Store::threading(&*self), asked).unwrap_or_default()
            };
        }
    }
}

/// What a store is asked for on the calling thread.
fn wait<T>(threading: Threading, asked: impl Future<Output = T>) -> Result<T, LoadError> {
    Ok(match threading {
        Threading::InProcess => threads::block_on_calling_thread(asked),
        Threading::Networked => tokio::task::LocalSet::new().block_on(&threads::runtime()?, asked),
    })
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
    pub fn compare_copies(
        &self,
        context: &StoreContext,
        records: u64,
    ) -> Result<Agreement, LoadError> {
        wait(self.threading(), async {
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
        wait(self.threading(), asked)?.map_err(|error: RequestError| LoadError::Unavailable(error))
    }
}

/// The same store, to be loaded.
impl From<BoxedStore> for Arc<dyn AnyStore> {
    fn from(store: BoxedStore) -> Arc<dyn AnyStore> {
        Arc::new(store)
    }
}

//! Operations on an opened store, whatever its type; each of these calls blocks its thread.

use std::future::Future;
use std::sync::Arc;

use super::any_store::AnyStore;
use super::copies::{self, Agreement};
use super::error::LoadError;
use super::heartbeat::{self, Beat};
use super::job::{Job, StoreContext};
use super::looking_back::{self, LookedBack};
use super::observer::Observer;
use super::phase::carry;
use super::recheck::recheck;
use super::threads;
use crate::measure::{Nanos, PhaseMeasure};
use crate::store::{Answer, ErasedStore, Joined, Profile, RequestError, Threading};

impl dyn AnyStore {
    /// Carries the load of a phase; blocks until nothing is in flight any more.
    ///
    /// # Errors
    /// [`LoadError`] if the phase could not begin; what went wrong later is in the measure.
    pub fn load(
        self: &Arc<Self>,
        job: &Arc<Job>,
        observer: &mut dyn Observer,
    ) -> Result<PhaseMeasure, LoadError> {
        carry(self, job, observer)
    }

    /// Reads again the records that were not answered or looked wrong, which tells lost ones from late ones, asks the
    /// store for its own figures, and enters both into `measure`. Faults are repaired by then. Blocks until it is
    /// done.
    pub fn look_again(
        self: &Arc<Self>,
        job: &Job,
        measure: &mut PhaseMeasure,
        observer: &mut dyn Observer,
    ) {
        // A store that stands in front of another neither has a record for good nor loses one.
        match self.behind() {
            Some(behind) => recheck(&behind.into(), job, measure, observer),
            None => recheck(self, job, measure, observer),
        }
        // Servers may be asked, and are not waited for if the user does not.
        if !job.context.interrupt.was_raised_twice() {
            measure.figures = wait(self.threading(), self.figures()).unwrap_or_default();
        }
    }

    /// Carries the load of a phase without faults and looks again at once: [`Self::load`] and [`Self::look_again`].
    ///
    /// # Errors
    /// The errors of [`Self::load`].
    pub fn run(
        self: &Arc<Self>,
        job: &Arc<Job>,
        observer: &mut dyn Observer,
    ) -> Result<PhaseMeasure, LoadError> {
        let mut measure = self.load(job, observer)?;
        self.look_again(job, &mut measure, observer);
        Ok(measure)
    }
}

/// Requests to a store outside the load.
impl dyn AnyStore + '_ {
    /// Asks the store for its profile, as [`Store::profile`] does.
    ///
    /// # Errors
    /// [`LoadError::Unavailable`] if the store cannot be reached or refuses.
    pub fn ask_profile(&self) -> Result<Profile, LoadError> {
        self.ask(ErasedStore::profile(self))
    }

    /// Reads every copy of records 0..`records` by itself and compares the copies of each record.
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

    /// Looks for single records by clients of its own until a moment on [`now`](crate::measure::now)'s clock; a load may go
    /// on beside.
    ///
    /// # Errors
    /// [`LoadError`] if the store could not be connected to.
    pub fn look_back(
        &self,
        context: &StoreContext,
        records: &[u64],
        deadline: Nanos,
    ) -> Result<LookedBack, LoadError> {
        wait(self.threading(), looking_back::look_back(self, context, records, deadline))?
    }

    /// Reads and writes the heartbeat record of the dataset until `next` returns [`Beat::End`]; blocks. `next` gets
    /// what the last look found, and decides on the next step. A step that fails is tried again by the next beat.
    ///
    /// # Errors
    /// [`LoadError`] if the system gives no runtime.
    pub fn keep_heartbeat(
        &self,
        context: &StoreContext,
        next: &mut dyn FnMut(Option<&str>) -> Beat,
    ) -> Result<(), LoadError> {
        wait(self.threading(), heartbeat::keep_heartbeat(self, context, next))
    }

    /// Tells the store that `server` (`host:port`) has joined, as [`Store::join`] does.
    ///
    /// # Errors
    /// [`LoadError::Unavailable`] if records could not be moved.
    pub fn take_in(&self, server: &str) -> Result<Joined, LoadError> {
        self.ask(self.join(server))
    }

    /// Asks how many of the records at `keys` the joined `server` has by now, as [`Store::held_by`] does.
    ///
    /// # Errors
    /// [`LoadError::Unavailable`] if the store or its driver cannot tell.
    pub fn ask_held_by(&self, server: &str, keys: &[Vec<u8>]) -> Result<u64, LoadError> {
        self.ask(self.held_by(server, keys))
    }

    fn ask<T>(&self, asked: impl Future<Output = Answer<T>>) -> Result<T, LoadError> {
        wait(self.threading(), asked)?.map_err(|error: RequestError| LoadError::Unavailable(error))
    }
}

/// Runs a request to a store to its end on the calling thread.
fn wait<T>(threading: Threading, asked: impl Future<Output = T>) -> Result<T, LoadError> {
    Ok(match threading {
        Threading::InProcess => threads::block_on_calling_thread(asked),
        Threading::Networked => tokio::task::LocalSet::new().block_on(&threads::runtime()?, asked),
    })
}

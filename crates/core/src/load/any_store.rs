//! A store whose type is forgotten: what the registry hands out. The loop behind it is still
//! compiled for the store's own client, so nothing is dispatched per operation.

use std::future::Future;
use std::path::Path;
use std::sync::Arc;
use std::time::SystemTime;

use super::copies::{self, Agreement};
use super::job::{Context, Job, LoadError};
use super::phase::{self, Observer};
use super::threads;
use crate::measure::PhaseMeasure;
use crate::store::{Profile, Store, Threading, Work};

/// Implemented for every [`Store`].
pub trait AnyStore: Send + Sync {
    /// As [`Store::threading`].
    fn threading(&self) -> Threading;

    /// As [`Store::folder`].
    fn folder(&self) -> Option<&Path>;

    /// As [`Store::work_since`].
    fn work_since(&self, moment: SystemTime) -> Vec<Work>;

    /// As [`Store::profile`]; blocks.
    ///
    /// # Errors
    /// [`LoadError::Unavailable`] if the store cannot be reached or refuses.
    fn profile(&self) -> Result<Profile, LoadError>;

    /// Runs a phase to its end; blocks.
    ///
    /// # Errors
    /// [`LoadError`] if the phase could not begin.
    fn load(
        self: Arc<Self>,
        job: &Arc<Job>,
        observer: &mut dyn Observer,
    ) -> Result<PhaseMeasure, LoadError>;

    /// As [`Store::stronger`].
    fn stronger(&self) -> Vec<(Arc<dyn AnyStore>, String)>;

    /// Reads every copy of records 0..`records` by itself and compares; blocks.
    ///
    /// # Errors
    /// [`LoadError`] if no copy could be looked for.
    fn compare_copies(&self, context: &Context, records: u64) -> Result<Agreement, LoadError>;

    /// As [`Store::join`]; blocks.
    ///
    /// # Errors
    /// [`LoadError::Unavailable`] if records could not be moved.
    fn join(&self, server: &str) -> Result<Option<String>, LoadError>;
}

impl<S: Store> AnyStore for S {
    fn threading(&self) -> Threading {
        Store::threading(self)
    }

    fn folder(&self) -> Option<&Path> {
        Store::folder(self)
    }

    fn work_since(&self, moment: SystemTime) -> Vec<Work> {
        Store::work_since(self, moment)
    }

    fn profile(&self) -> Result<Profile, LoadError> {
        let profile = block_on(self, Store::profile(self))?;
        profile.map_err(LoadError::Unavailable)
    }

    fn load(
        self: Arc<Self>,
        job: &Arc<Job>,
        observer: &mut dyn Observer,
    ) -> Result<PhaseMeasure, LoadError> {
        phase::run(&self, job, observer)
    }

    fn stronger(&self) -> Vec<(Arc<dyn AnyStore>, String)> {
        let forget = |(store, how)| (Arc::new(store) as Arc<dyn AnyStore>, how);
        Store::stronger(self).into_iter().map(forget).collect()
    }

    fn compare_copies(&self, context: &Context, records: u64) -> Result<Agreement, LoadError> {
        block_on(self, copies::compare(self, context, records))?
    }

    fn join(&self, server: &str) -> Result<Option<String>, LoadError> {
        block_on(self, Store::join(self, server))?.map_err(LoadError::Unavailable)
    }
}

/// Waits for what a store is asked outside the load.
fn block_on<S: Store, T>(store: &S, asked: impl Future<Output = T>) -> Result<T, LoadError> {
    Ok(match Store::threading(store) {
        Threading::InProcess => threads::block_on_calling_thread(asked),
        Threading::Networked => tokio::task::LocalSet::new().block_on(&threads::runtime()?, asked),
    })
}

//! A store whose type is forgotten: what the registry hands out. The loop behind it is still
//! compiled for the store's own client, so nothing is dispatched per operation.

use std::path::Path;
use std::sync::Arc;
use std::time::SystemTime;

use super::job::{Job, LoadError};
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
        let profile = Store::profile(self);
        let profile = match Store::threading(self) {
            Threading::InProcess => threads::block_on_calling_thread(profile),
            Threading::Networked => {
                tokio::task::LocalSet::new().block_on(&threads::runtime()?, profile)
            }
        };
        profile.map_err(LoadError::Unavailable)
    }

    fn load(
        self: Arc<Self>,
        job: &Arc<Job>,
        observer: &mut dyn Observer,
    ) -> Result<PhaseMeasure, LoadError> {
        phase::run(&self, job, observer)
    }
}

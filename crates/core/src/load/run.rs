//! A phase with all that belongs to it: the load, another look at what looked wrong, and the store's own
//! figures.

use std::sync::Arc;

use super::error::LoadError;
use super::job::Job;
use super::observer::Observer;
use super::phase::carry;
use super::recheck::recheck;
use super::threads;
use crate::measure::PhaseMeasure;
use crate::store::{Store, Threading};

/// Runs `job` on `store`; blocks until it is over, and what looked wrong was read again.
///
/// # Errors
/// [`LoadError`] if the phase could not begin; what went wrong later is in the measure.
pub(super) fn run<S: Store>(
    store: &Arc<S>,
    job: &Arc<Job>,
    observer: &mut dyn Observer,
) -> Result<PhaseMeasure, LoadError> {
    let mut measure = carry(store, job, observer)?;
    // A store that stands in front of another neither has a record for good nor loses one.
    match store.behind() {
        Some(behind) => recheck(&Arc::new(behind), job, &mut measure, observer),
        None => recheck(store, job, &mut measure, observer),
    }
    measure.figures = match store.threading() {
        // Servers may be asked, and are not waited for if the user does not.
        _ if job.context.interrupt.is_urgent() => Vec::new(),
        Threading::InProcess => threads::block_on_calling_thread(store.figures()),
        Threading::Networked => threads::runtime()?.block_on(store.figures()),
    };
    Ok(measure)
}

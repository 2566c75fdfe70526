//! The keeper of a testbed that a run and its nemesis both give orders to.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use kvdyno_testbed::keeper::Keeper;

/// A testbed that the run and its nemesis both have a hand on.
pub type SharedKeeper = Arc<Mutex<Keeper>>;

/// The keeper, also if a thread that held it has panicked.
pub fn lock(keeper: &SharedKeeper) -> MutexGuard<'_, Keeper> {
    keeper.lock().unwrap_or_else(PoisonError::into_inner)
}

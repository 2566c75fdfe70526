//! The task that an agent is at, shared by the thread that hears the conductor and the thread that carries the load.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use kvdyno_core::load::{Dealing, Interrupt, Job};
use kvdyno_core::measure::now;
use kvdyno_core::verify::Floors;

/// State that the thread that hears orders shares with the main thread.
#[derive(Default)]
pub struct UnderWay {
    /// The phase that is prepared or runs.
    job: Mutex<Option<Arc<Job>>>,
    /// Signal to stop, raised by the user, or when the conductor is gone.
    interrupt: Arc<Interrupt>,
    joined: AtomicBool,
}

impl UnderWay {
    /// Notes that the conductor is reached.
    pub fn join(&self) {
        self.joined.store(true, Ordering::Relaxed);
    }

    /// Returns true once the conductor was reached.
    pub fn has_joined(&self) -> bool {
        self.joined.load(Ordering::Relaxed)
    }

    /// Sets the phase that is under way from now on, or none.
    pub fn set(&self, job: Option<Arc<Job>>) {
        *self.job.lock().unwrap_or_else(PoisonError::into_inner) = job;
    }

    /// Returns the signal to stop.
    pub fn interrupt(&self) -> Arc<Interrupt> {
        Arc::clone(&self.interrupt)
    }

    /// Does something to the phase that is under way, if one is.
    pub fn with(&self, act: impl FnOnce(&Job)) {
        if let Some(job) = &*self.job.lock().unwrap_or_else(PoisonError::into_inner) {
            act(job);
        }
    }

    /// Does something to the dealing of the phase of this number, if that phase is under way.
    pub fn with_dealing(&self, number: u32, act: impl FnOnce(&Dealing)) {
        self.with(|job| {
            if let Some(dealing) = job.dealing().filter(|dealing| dealing.number() == number) {
                act(dealing);
            }
        });
    }

    /// Does something to the floors of that phase, if it has any.
    pub fn with_floors(&self, number: u32, act: impl FnOnce(&Floors)) {
        self.with_dealing(number, |dealing| {
            if let Some(floors) = dealing.floors() {
                act(floors);
            }
        });
    }

    /// Stops all: nothing more is sent, and no answer is waited for.
    pub fn drop_everything(&self) {
        self.interrupt.raise();
        self.interrupt.raise();
        self.with(|job| {
            job.stop_at(now());
            job.abandon();
        });
    }
}

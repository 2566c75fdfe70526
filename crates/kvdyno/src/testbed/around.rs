//! A testbed around some work: it is set up before, and ended after; its steps are printed meanwhile.

use std::sync::{Arc, Mutex};

use kvdyno_core::ground::numbers;
use kvdyno_core::load::Interrupt;
use kvdyno_core::redact;
use kvdyno_testbed::keeper::{Keeper, Watching};
use kvdyno_testbed::pin::ClientsApart;
use kvdyno_testbed::{AmongClients, Description, Step, ready_to_start};

use super::shared_keeper::{SharedKeeper, lock};
use super::{about, own_program};
use crate::exit::Failure;

/// A testbed that is up until this is dropped.
pub struct Around {
    keeper: SharedKeeper,
    description: Description,
    _apart: Option<ClientsApart>,
    _among: Option<AmongClients>,
}

/// Makes sure that a testbed can be set up, before anything else is begun.
///
/// # Errors
/// [`Failure`] if its words are wrong or something is not installed.
pub fn check(words: &str) -> Result<(), Failure> {
    ready_to_start(words).map_err(about)
}

impl Around {
    /// Sets the testbed up; returns when it serves. From then on the calling thread, and threads that it starts, are
    /// where the testbed's clients have to be.
    ///
    /// # Errors
    /// [`Failure`] if it cannot be set up or the user does not want to wait; nothing is left behind.
    pub fn start(words: &str, detach: bool, interrupt: &Interrupt) -> Result<Around, Failure> {
        let mut printer = StepPrinter { words, interrupt };
        let keeper = Keeper::start(own_program(), words, detach, &mut printer).map_err(about)?;
        let apart = match &keeper.description().pinned {
            Some(pinned) if !detach => Some(ClientsApart::keep(pinned).map_err(Failure::internal)?),
            _ => None,
        };
        let among = match &keeper.description().network {
            Some(network) if !detach => {
                Some(AmongClients::enter(network).map_err(Failure::internal)?)
            }
            _ => None,
        };
        let description = keeper.description().clone();
        let keeper = Arc::new(Mutex::new(keeper));
        Ok(Around { keeper, description, _apart: apart, _among: among })
    }

    /// Returns the description of the testbed.
    pub fn description(&self) -> &Description {
        &self.description
    }

    /// Returns the testbed's keeper, for orders while a phase runs.
    pub fn keeper(&self) -> SharedKeeper {
        Arc::clone(&self.keeper)
    }

    /// Returns true if the testbed is still there.
    pub fn is_running(&self) -> bool {
        lock(&self.keeper).is_running()
    }

    /// Returns true if the testbed has ended in good order, as it does on `kvdyno testbed down`.
    pub fn was_ended(&self) -> bool {
        lock(&self.keeper).ended_well()
    }
}

/// Printer of each step on standard error, which leaves standard output to the results.
struct StepPrinter<'a> {
    words: &'a str,
    interrupt: &'a Interrupt,
}

impl Watching for StepPrinter<'_> {
    fn step(&mut self, step: &Step) {
        let took = numbers::approximate_duration(step.took.as_secs_f64());
        warn_user!("{}: {} ({took})", redact::redact(self.words), step.name);
    }

    fn interrupted(&self) -> bool {
        self.interrupt.is_raised()
    }
}

//! Orders to the run that goes on: a browser sends them; the thread that watches the phase carries them out and
//! answers. No other thread changes a phase, so each change is one event at one place.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use kvdyno_core::ground::units::UnitError;
use kvdyno_core::load::{Interrupt, NotSteered};
use kvdyno_core::suite::SuiteError;
use serde::Deserialize;

/// Longest time that an order waits for a phase that takes it.
const PATIENCE: Duration = Duration::from_secs(2);
/// Longest time for an order that was taken: servers that are started again take their time.
const AT_WORK: Duration = Duration::from_secs(60);
/// Most orders that may wait.
const MOST_WAITING: usize = 16;

/// Most characters of a note.
pub const LONGEST_NOTE: usize = 200;

/// Order of a user at the live page.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(tag = "do", rename_all = "kebab-case", deny_unknown_fields)]
pub enum SteeringOrder {
    /// Set another rate of a group, from some operation on.
    Rate {
        /// Number of the group in its phase, zero-based.
        group: usize,
        /// Rate as a suite writes it, such as `5k/s`.
        rate: String,
    },
    /// End the phase as if its time were over.
    EndPhase,
    /// End the run as Ctrl-C does.
    StopRun,
    /// Inject a fault into the testbed at once.
    Fault {
        /// Fault as a suite writes it, without a time: `do = "kill"` and `node = "any"`, each in a line.
        fault: String,
    },
    /// Repair at once what is broken of the testbed.
    Repair,
    /// Write a note into the result.
    Note {
        /// Text of the note.
        text: String,
    },
}

/// Reason why an order was not carried out.
#[derive(Debug, thiserror::Error)]
pub enum OrderRefused {
    /// The phase cannot be steered so.
    #[error(transparent)]
    Phase(#[from] NotSteered),
    /// The text is no rate.
    #[error("{0}; {hint}", hint = .0.hint())]
    Rate(#[from] UnitError),
    /// The phase inserts records of the phases after it.
    #[error("later phases need the records of this one")]
    Loads,
    /// The phase is a probe of a search, or one that kvdyno adds.
    #[error("kvdyno itself sets the rate of this phase (a search or warm-up)")]
    NotPlanned,
    /// The text is no fault.
    #[error(transparent)]
    Fault(#[from] SuiteError),
    /// The servers are no testbed of kvdyno's, so they may not be broken.
    #[error("faults are possible only on a testbed that kvdyno started")]
    NoTestbed,
    /// The order failed.
    #[error("{0}")]
    NotDone(String),
    /// The note has no word, or is longer than [`LONGEST_NOTE`].
    #[error("a note has 1 to 200 characters")]
    NoNote,
    /// All nodes are as they were.
    #[error("there is no fault to repair")]
    NothingBroken,
    /// The order takes longer than [`AT_WORK`].
    #[error("the last action is still running")]
    StillAtIt,
    /// The phase ended meanwhile.
    #[error("the phase is over")]
    PhaseOver,
    /// No phase took the order in time.
    #[error("no phase is running")]
    NoPhase,
    /// [`MOST_WAITING`] orders wait already.
    #[error("too many orders are waiting; try again")]
    TooMany,
}

/// Answer to an order: a description of what was done, or the reason why it was not.
pub type SteeringAnswer = Result<String, OrderRefused>;

/// An order that waits for its answer.
pub struct WaitingOrder {
    /// The order.
    pub order: SteeringOrder,
    number: u64,
    answer: SyncSender<SteeringAnswer>,
}

/// Queue of orders to the phase that goes on.
#[derive(Default)]
pub struct Steering {
    waiting: Mutex<VecDeque<WaitingOrder>>,
    /// Number of orders given so far.
    given: AtomicU64,
    /// Signal that the user wants to stop, once there is a run.
    interrupt: Mutex<Option<Arc<Interrupt>>>,
}

impl Steering {
    /// Lets orders stop the run by this signal from now on, even between its phases.
    pub fn stops(&self, interrupt: Arc<Interrupt>) {
        *locked(&self.interrupt) = Some(interrupt);
    }

    /// Gives an order, and waits for its answer.
    ///
    /// # Errors
    /// [`OrderRefused`] if it was not done.
    pub fn ask(&self, order: SteeringOrder) -> SteeringAnswer {
        let (answer, told) = sync_channel(1);
        let stops = order == SteeringOrder::StopRun;
        let number = self.given.fetch_add(1, Ordering::Relaxed);
        {
            let mut waiting = locked(&self.waiting);
            if waiting.len() >= MOST_WAITING {
                return Err(OrderRefused::TooMany);
            }
            waiting.push_back(WaitingOrder { order, number, answer });
        }
        match told.recv_timeout(PATIENCE) {
            Ok(answer) => answer,
            Err(RecvTimeoutError::Disconnected) => Err(OrderRefused::PhaseOver),
            Err(RecvTimeoutError::Timeout) if self.give_up(number) => {
                match (stops, &*locked(&self.interrupt)) {
                    (true, Some(interrupt)) => {
                        interrupt.raise();
                        Ok("the run stops".to_owned())
                    }
                    _ => Err(OrderRefused::NoPhase),
                }
            }
            Err(RecvTimeoutError::Timeout) => match told.recv_timeout(AT_WORK) {
                Ok(answer) => answer,
                Err(RecvTimeoutError::Disconnected) => Err(OrderRefused::PhaseOver),
                Err(RecvTimeoutError::Timeout) => Err(OrderRefused::StillAtIt),
            },
        }
    }

    /// Takes the order back, so that nothing carries it out later. Returns false if a phase has taken it already.
    fn give_up(&self, number: u64) -> bool {
        let mut waiting = locked(&self.waiting);
        let before = waiting.len();
        waiting.retain(|waiting| waiting.number != number);
        waiting.len() < before
    }

    /// Takes the next order, for the thread that carries it out.
    pub fn next(&self) -> Option<WaitingOrder> {
        locked(&self.waiting).pop_front()
    }
}

impl WaitingOrder {
    /// Answers the order.
    pub fn answer(self, answer: SteeringAnswer) {
        // A sender that no longer waits needs no answer.
        let _ = self.answer.send(answer);
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A sender that has waited too long takes back its own order, not those of others.
    #[test]
    fn an_order_that_is_given_up_takes_no_other_along() {
        let steering = Steering::default();
        std::thread::scope(|scope| {
            let first = scope.spawn(|| steering.ask(SteeringOrder::EndPhase));
            std::thread::sleep(PATIENCE / 2);
            let later = scope.spawn(|| steering.ask(SteeringOrder::StopRun));
            assert!(matches!(first.join().unwrap(), Err(OrderRefused::NoPhase)));
            let taken = steering.next().expect("the later one waits");
            assert_eq!(taken.order, SteeringOrder::StopRun);
            taken.answer(Ok("the run stops".to_owned()));
            assert_eq!(later.join().unwrap().unwrap(), "the run stops");
            assert!(steering.next().is_none());
        });
    }
}

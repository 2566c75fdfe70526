//! Orders by hand to the run that goes on: a browser asks, the thread that watches the phase answers and does it.
//! Nobody else changes a phase, so that each change is one event at one place.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use kvdyno_core::ground::units::UnitError;
use kvdyno_core::load::{Interrupt, NotSteered};
use kvdyno_core::suite::SuiteError;
use serde::Deserialize;

/// How long an order may wait for a phase that takes it.
const PATIENCE: Duration = Duration::from_secs(2);
/// How long one that was taken may need: servers that are started again take their time.
const AT_WORK: Duration = Duration::from_secs(60);
/// Most orders that wait.
const MOST_WAITING: usize = 16;

/// What may be ordered.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(tag = "do", rename_all = "kebab-case", deny_unknown_fields)]
pub enum SteeringOrder {
    /// Another rate of a group from some operation on.
    Rate {
        /// Number of the group.
        group: usize,
        /// As a suite writes it, such as `5k/s`.
        rate: String,
    },
    /// The phase ends as if its time were over.
    EndPhase,
    /// The run ends as by Ctrl-C.
    StopRun,
    /// Something is done to the testbed at once.
    Fault {
        /// As a suite writes it, without when: `do = "kill"` and `node = "any"`, each in a line.
        fault: String,
    },
    /// What is broken of the testbed is put right at once.
    Repair,
}

/// Why an order was not carried out.
#[derive(Debug, thiserror::Error)]
pub enum OrderRefused {
    /// The phase cannot be steered so.
    #[error(transparent)]
    Phase(#[from] NotSteered),
    /// What was typed is no rate.
    #[error("{0}; {hint}", hint = .0.hint())]
    Rate(#[from] UnitError),
    /// It inserts the records of the phases after it.
    #[error("later phases need the records of this one")]
    Loads,
    /// A probe of a search, or what kvdyno does for itself.
    #[error("this phase is not one of the suite's: its rate is kvdyno's")]
    NotPlanned,
    /// What was written is no fault.
    #[error(transparent)]
    Fault(#[from] SuiteError),
    /// Nobody may break what is somebody else's.
    #[error("the servers are no testbed that kvdyno has made: nothing is done to them")]
    NoTestbed,
    /// It could not be done.
    #[error("{0}")]
    NotDone(String),
    /// All nodes are as they were.
    #[error("nothing is broken")]
    NothingBroken,
    /// It takes longer than anybody waits for.
    #[error("it is still being done")]
    StillAtIt,
    /// It ended meanwhile.
    #[error("the phase is over")]
    PhaseOver,
    /// None took the order in time.
    #[error("no phase is under way")]
    NoPhase,
    /// [`MOST_WAITING`] wait already.
    #[error("too many orders wait")]
    TooMany,
}

/// What became of an order: in words what was done, or why it was not.
pub type SteeringAnswer = Result<String, OrderRefused>;

/// An order that waits for its answer.
pub struct WaitingOrder {
    /// What is to be done.
    pub order: SteeringOrder,
    number: u64,
    answer: SyncSender<SteeringAnswer>,
}

/// Hands orders to the phase that goes on.
#[derive(Default)]
pub struct Steering {
    waiting: Mutex<VecDeque<WaitingOrder>>,
    /// Orders that were given so far.
    given: AtomicU64,
    /// The user's wish to stop, once there is a run.
    interrupt: Mutex<Option<Arc<Interrupt>>>,
}

impl Steering {
    /// From now on a run can be stopped even between its phases.
    pub fn stops(&self, interrupt: Arc<Interrupt>) {
        *locked(&self.interrupt) = Some(interrupt);
    }

    /// Orders something, and waits for what becomes of it.
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

    /// Nobody is to carry this order out later; `false` if somebody has taken it already.
    fn give_up(&self, number: u64) -> bool {
        let mut waiting = locked(&self.waiting);
        let before = waiting.len();
        waiting.retain(|waiting| waiting.number != number);
        waiting.len() < before
    }

    /// The next order, for who carries it out.
    pub fn next(&self) -> Option<WaitingOrder> {
        locked(&self.waiting).pop_front()
    }
}

impl WaitingOrder {
    /// Tells what became of it.
    pub fn answer(self, answer: SteeringAnswer) {
        // Whoever has gone does not want to know.
        let _ = self.answer.send(answer);
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whoever has waited too long takes back the own order, not what others wait for.
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

//! Orders by hand to the run that goes on: a browser asks, the thread that watches the phase answers and does it.
//! Nobody else changes a phase, so that each change is one event at one place.

use std::collections::VecDeque;
use std::sync::mpsc::{RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use kvdyno_core::load::Interrupt;
use serde::Deserialize;

/// How long an order may wait for a phase that takes it.
const PATIENCE: Duration = Duration::from_secs(2);
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
}

/// What became of an order: in words what was done, or why it was not.
pub type SteeringAnswer = Result<String, String>;

/// An order that waits for its answer.
pub struct WaitingOrder {
    /// What is to be done.
    pub order: SteeringOrder,
    answer: SyncSender<SteeringAnswer>,
}

/// Hands orders to the phase that goes on.
#[derive(Default)]
pub struct Steering {
    waiting: Mutex<VecDeque<WaitingOrder>>,
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
    /// Why it was not done.
    pub fn ask(&self, order: SteeringOrder) -> SteeringAnswer {
        let (answer, told) = sync_channel(1);
        let stops = order == SteeringOrder::StopRun;
        {
            let mut waiting = locked(&self.waiting);
            if waiting.len() >= MOST_WAITING {
                return Err("too many orders wait".to_owned());
            }
            waiting.push_back(WaitingOrder { order, answer });
        }
        match told.recv_timeout(PATIENCE) {
            Ok(answer) => answer,
            Err(RecvTimeoutError::Disconnected) => Err("the phase is over".to_owned()),
            Err(RecvTimeoutError::Timeout) => {
                locked(&self.waiting).clear();
                match (stops, &*locked(&self.interrupt)) {
                    (true, Some(interrupt)) => {
                        interrupt.raise();
                        Ok("the run stops".to_owned())
                    }
                    _ => Err("no phase is under way".to_owned()),
                }
            }
        }
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

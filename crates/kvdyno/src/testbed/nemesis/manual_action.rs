//! Actions on the testbed that a user orders at the live page: a fault at once, or the repair of what is broken. The
//! executor of the suite's faults does them, too, so that both are reported, marked and repaired alike.

use std::sync::atomic::Ordering;
use std::time::Instant;

use kvdyno_core::measure::now;
use kvdyno_core::workload::fault::FaultPlan;
use kvdyno_report::events::Event;
use kvdyno_report::result::{FaultResult, SteeredResult};

use super::{FaultExecutor, Task};
use crate::steering::{OrderRefused, SteeringAnswer, WaitingOrder};

/// Action on the testbed that a user orders.
#[derive(Clone, Debug)]
pub enum ManualAction {
    /// This fault, at once.
    Fault(Box<FaultPlan>),
    /// Repair of all that is broken.
    Repair,
}

impl FaultExecutor {
    /// Does what was ordered, and answers with the result.
    pub(super) fn take(&mut self, (action, order): (ManualAction, WaitingOrder)) {
        let answer = match self.is_over.load(Ordering::Relaxed) {
            true => Err(OrderRefused::PhaseOver),
            false => self.carry_out_manually(action),
        };
        order.answer(answer);
    }

    fn carry_out_manually(&mut self, action: ManualAction) -> SteeringAnswer {
        let (began, known) = (now(), self.done.len());
        let what = match action {
            ManualAction::Fault(fault) => {
                let number = self.faults.len();
                self.faults.push((*fault).clone());
                self.begun.insert(number);
                self.fault(number, &fault);
                "fault"
            }
            ManualAction::Repair if !self.repair_at_once() => {
                return Err(OrderRefused::NothingBroken);
            }
            ManualAction::Repair => "repair",
        };
        let done = &self.done[known..];
        let said = in_words(done);
        // An action that was tried on a node may have changed it.
        if done.iter().any(|done| done.error.is_none() || !done.node.is_empty()) {
            let steered = SteeredResult::of_testbed(what, &said, self.since_begin(began));
            self.events.publish(Event::Steered(steered.clone()));
            self.manual.push(steered);
        }
        let done = &self.done[known..];
        match done.iter().find_map(|done| done.error.as_ref()) {
            Some(why) => Err(OrderRefused::NotDone(format!("{said}: not done: {why}"))),
            None => Ok(said),
        }
    }

    /// Repairs at once all that waits for its repair. Returns true if something did.
    fn repair_at_once(&mut self) -> bool {
        let moment = Instant::now();
        let is_repair = |task: &Task| matches!(task, Task::Repair(_));
        for (due, _) in self.agenda.iter_mut().filter(|(_, task)| is_repair(task)) {
            *due = moment.min(*due);
        }
        let mut is_done = false;
        while let Some(place) = self.agenda.iter().position(|(_, task)| is_repair(task)) {
            let (due, task) = self.agenda.swap_remove(place);
            self.carry_out(due, task);
            is_done = true;
        }
        is_done
    }
}

/// Describes actions with their nodes: `kill redis-1, redis-2`.
fn in_words(done: &[FaultResult]) -> String {
    let mut words: Vec<String> = Vec::new();
    let mut last = "";
    for done in done {
        let node = done.node.as_str();
        let said =
            if done.what == last { node.to_owned() } else { format!("{} {node}", done.what) };
        words.push(said.trim_end().to_owned());
        last = &done.what;
    }
    words.join(", ")
}

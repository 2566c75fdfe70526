//! Manual control of a phase: carries out the orders of the live page while it runs, one after the other, on the
//! thread that watches it, and keeps what was done for its result.

use std::sync::Arc;
use std::time::Duration;

use kvdyno_core::ground::units::parse_rate;
use kvdyno_core::load::{Carriers, Interrupt, Job};
use kvdyno_core::measure::{Nanos, now};
use kvdyno_core::redact::plain_lines;
use kvdyno_core::suite::fault_at_once;
use kvdyno_core::workload::PhasePlan;
use kvdyno_report::events::Event;
use kvdyno_report::events::stream::EventStream;
use kvdyno_report::result::SteeredResult;

use crate::steering::{LONGEST_NOTE, OrderRefused, Steering, SteeringOrder};
use crate::testbed::{Disturbance, ManualAction};

/// Time after which an order is known to all workers of this process.
const NOTICE: Duration = Duration::from_millis(100);
const NOTICE_OF_AGENTS: Duration = Duration::from_millis(500);

/// Manual control of a phase that runs.
pub(super) struct ManualControl<'a> {
    pub steering: Option<&'a Steering>,
    pub job: Arc<Job>,
    /// Number of agents that carry the phase; `None` if this process does.
    pub agents: Option<u32>,
    /// True for a phase of the plan; false for one that kvdyno adds.
    pub is_planned: bool,
    pub interrupt: &'a Interrupt,
    /// Orders that were carried out, in order.
    pub done: Vec<SteeredResult>,
}

/// Result of an order.
enum CarriedOut {
    /// It was carried out; the text says what was done.
    Done(SteeredResult, String),
    /// It concerns the testbed: the nemesis does it.
    HandedOn(ManualAction),
}

impl ManualControl<'_> {
    /// Begins with the phase: enters the changes that the plan repeats.
    pub fn begin(&mut self, plan: &PhasePlan) {
        for (number, group) in plan.groups.iter().enumerate() {
            for change in &group.changes {
                let at = self.job.due_of(number, *change).unwrap_or(0);
                let steered = SteeredResult::of_rate(number, *change, at);
                self.done.push(SteeredResult { repeated: true, ..steered });
            }
        }
    }

    /// Carries out the orders that wait; actions on the testbed are handed to the nemesis.
    pub fn turn(
        &mut self,
        plan: &PhasePlan,
        start: Nanos,
        events: &EventStream,
        disturbance: &mut Disturbance<'_>,
    ) {
        while let Some(waiting) = self.steering.and_then(Steering::next) {
            match self.carry_out(&waiting.order, plan, start) {
                Ok(CarriedOut::Done(steered, text)) => {
                    events.publish(Event::Steered(steered.clone()));
                    self.done.push(steered);
                    waiting.answer(Ok(text));
                }
                Ok(CarriedOut::HandedOn(action)) => disturbance.act_manually(action, waiting),
                Err(why) => waiting.answer(Err(why)),
            }
        }
    }

    fn carry_out(
        &self,
        order: &SteeringOrder,
        plan: &PhasePlan,
        start: Nanos,
    ) -> Result<CarriedOut, OrderRefused> {
        let since = now().saturating_sub(start);
        match order {
            SteeringOrder::StopRun => {
                self.interrupt.raise();
                let stop = SteeredResult::new("stop", since);
                Ok(CarriedOut::Done(stop, "the run stops".to_owned()))
            }
            SteeringOrder::EndPhase | SteeringOrder::Fault { .. } if plan.load => {
                Err(OrderRefused::Loads)
            }
            SteeringOrder::EndPhase => {
                let notice = self.notice();
                self.job.stop_at(now() + notice.as_nanos() as Nanos);
                let end = SteeredResult::new("end", since + notice.as_nanos() as Nanos);
                Ok(CarriedOut::Done(end, "the phase ends".to_owned()))
            }
            SteeringOrder::Note { text } => {
                let text = plain_lines(text.trim()).replace('\n', " ");
                if text.is_empty() || text.chars().count() > LONGEST_NOTE {
                    return Err(OrderRefused::NoNote);
                }
                let note = SteeredResult::note(&text, since);
                Ok(CarriedOut::Done(note, "the note is in the result".to_owned()))
            }
            _ if !self.is_planned => Err(OrderRefused::NotPlanned),
            SteeringOrder::Rate { group, rate } => self.change_rate(*group, rate),
            SteeringOrder::Fault { fault } => {
                Ok(CarriedOut::HandedOn(ManualAction::Fault(Box::new(fault_at_once(fault)?))))
            }
            SteeringOrder::Repair => Ok(CarriedOut::HandedOn(ManualAction::Repair)),
        }
    }

    fn change_rate(&self, group: usize, rate: &str) -> Result<CarriedOut, OrderRefused> {
        let rate = parse_rate(rate)?;
        let carriers = Carriers { processes: self.agents.unwrap_or(1), notice: self.notice() };
        let change = self.job.change_rate(group, rate, carriers)?;
        let at = self.job.due_of(group, change).unwrap_or(0);
        let steered = SteeredResult::of_rate(group, change, at);
        let text = steered.text();
        Ok(CarriedOut::Done(steered, text))
    }

    fn notice(&self) -> Duration {
        if self.agents.is_some() { NOTICE_OF_AGENTS } else { NOTICE }
    }

    /// Notes that a worker heard of a change too late.
    pub fn note_late(&mut self) {
        let rates = self.done.iter_mut().filter(|steered| steered.rate.is_some());
        rates.for_each(|steered| steered.late = true);
    }
}

/// Answers the orders that still wait, for the phase is over.
impl Drop for ManualControl<'_> {
    fn drop(&mut self) {
        while let Some(waiting) = self.steering.and_then(Steering::next) {
            waiting.answer(Err(OrderRefused::PhaseOver));
        }
    }
}

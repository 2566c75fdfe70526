//! Manual control of a phase while it runs: its rate is changed at one operation, the same in every process that
//! carries it, or it is ended before its time. The conductor calls this on the phase as a whole; agents get the
//! resulting change.

use std::time::Duration;

use super::job::Job;
use super::rate_orders::RateOrders;
use super::schedule::{due_after, first_due};
use crate::measure::{Nanos, now};
use crate::workload::RateChange;

/// Reason why a wish to change a running phase is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotSteered {
    /// No group has this number, or its clients have not begun.
    #[error("client group {0} is not running")]
    NoGroup(usize),
    /// The rate cannot be followed.
    #[error("the rate must be above 0 and at most 1G/s")]
    Rate,
    /// The clients of the group send the next request when the last is answered.
    #[error("the arrivals of the group are closed: it has no rate to change")]
    Closed,
    /// Every operation from which on the rate could be changed is due after the end.
    #[error("the phase is over before a change can reach every client")]
    TooLate,
    /// The phase would run out of requests before its time.
    #[error("at this rate the phase needs more than its {0} requests")]
    TooFew(u64),
}

/// Processes that carry a phase, and the time that an order takes to reach all of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Carriers {
    /// Number of processes that carry the phase, 1 or more.
    pub processes: u32,
    /// Time after which every process knows an order.
    pub notice: Duration,
}

impl Job {
    /// Changes the rate of a group to `rate` requests a second, from the first operation on that no process can
    /// have passed when it hears of it.
    ///
    /// # Errors
    /// [`NotSteered`] if the phase cannot be changed so.
    pub fn change_rate(
        &self,
        group: usize,
        rate: f64,
        carriers: Carriers,
    ) -> Result<RateChange, NotSteered> {
        let (Some((plan, _)), Some(&(start, workers))) = (self.groups.get(group), self.begun.get())
        else {
            return Err(NotSteered::NoGroup(group));
        };
        if !(rate > 0.0 && rate <= 1e9) {
            return Err(NotSteered::Rate);
        }
        let orders = &self.rates[group];
        let known = now().saturating_sub(start) + carriers.notice.as_nanos() as Nanos;
        let due = first_due(&plan.arrival, &orders.all(), known);
        let due = due.ok_or(NotSteered::Closed)?;
        // What idle clients hold already, and what lanes have looked at.
        let (clients, lanes) = (u64::from(plan.clients), workers as u64);
        let mut ahead = clients + 2 * lanes;
        if carriers.processes > 1 {
            // Lanes of owners look further, and over ids that are others'.
            ahead = 4 * (ahead + 4 * lanes) + 64;
        }
        if plan.arrival.is_random() {
            // Lanes are some standard deviations apart.
            ahead += (6.0 * (due as f64 * lanes as f64).sqrt()) as u64;
        }
        let change = RateChange { from: due + ahead, rate };
        self.refuse_late(group, change, start)?;
        orders.add(change);
        Ok(change)
    }

    /// Refuses a change that would come too late, or would need more operations than there are.
    fn refuse_late(
        &self,
        group: usize,
        change: RateChange,
        start: Nanos,
    ) -> Result<(), NotSteered> {
        let plan = &self.groups[group].0;
        let mut changes = self.rates[group].all();
        let at = start.saturating_add(due_after(&plan.arrival, &changes, change.from));
        if at >= self.deadline() || plan.requests.is_some_and(|all| change.from >= all) {
            return Err(NotSteered::TooLate);
        }
        changes.push(change);
        if let (Some(requests), Some(length)) = (plan.requests, self.plan.duration) {
            let asked = first_due(&plan.arrival, &changes, length.as_nanos() as Nanos);
            if asked.is_some_and(|asked| asked > requests) {
                return Err(NotSteered::TooFew(requests));
            }
        }
        Ok(())
    }

    /// Enters a change that was decided for all processes that carry the phase.
    #[inline]
    pub fn follow_change(&self, group: usize, change: RateChange) {
        if let Some(orders) = self.rates.get(group) {
            orders.add(change);
        }
    }

    /// Returns the changes of each group's rate so far, with the planned ones.
    #[must_use]
    pub fn changes(&self) -> Vec<Vec<RateChange>> {
        self.rates.iter().map(|orders| orders.all()).collect()
    }

    /// Returns the number of changes in all groups.
    #[must_use]
    pub fn change_count(&self) -> usize {
        self.rates.iter().map(|orders| RateOrders::count(orders)).sum()
    }

    /// Returns the time after the start at which a group's change takes effect, ns, approximate where arrivals are
    /// random; `None` if there is no such group or it has no rate.
    #[must_use]
    #[inline]
    pub fn due_of(&self, group: usize, change: RateChange) -> Option<Nanos> {
        let ((plan, _), orders) = self.groups.get(group).zip(self.rates.get(group))?;
        if plan.arrival.is_random() {
            let evenly = crate::workload::Arrival::at(plan.arrival.curve()?, false);
            return Some(due_after(&evenly, &orders.all(), change.from));
        }
        Some(due_after(&plan.arrival, &orders.all(), change.from))
    }
}

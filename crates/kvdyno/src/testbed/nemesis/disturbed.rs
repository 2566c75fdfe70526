//! Watches a phase on behalf of its nemesis: tells it how the phase goes, and notes which nodes get
//! requests.

use std::sync::Arc;

use kvdyno_core::load::{AnyStore, Interrupt, Observer, Progress};
use kvdyno_core::measure::{Interval, Nanos};
use kvdyno_core::workload::{Arrival, Dataset, PhasePlan};
use kvdyno_report::result::{FaultResult, UnaskedNode};

use super::super::NodeProcesses;
use super::super::asked::Asked;
use super::{Nemesis, News};
use crate::output::PhaseObserver;
use crate::testbed::shared_keeper::{SharedKeeper, lock};

/// Who a nemesis has to do with beside the testbed: `roster` hears of new processes, `store` of new
/// servers, and waiting is given up on `interrupt`.
#[derive(Clone, Copy)]
pub struct Hears<'a> {
    /// Which process each node is.
    pub roster: &'a NodeProcesses,
    /// Where the load goes.
    pub store: &'a Arc<dyn AnyStore>,
    /// The records in it.
    pub dataset: Dataset,
    /// Raised when the user wants to stop.
    pub interrupt: &'a Arc<Interrupt>,
}

/// Watches a phase and has its faults carried out between its begin and its end.
pub struct Disturbed<'a> {
    watching: PhaseObserver<'a>,
    keeper: Option<&'a SharedKeeper>,
    hears: Hears<'a>,
    phase: &'a PhasePlan,
    nemesis: Option<(Nemesis, Nanos)>,
    news: News,
    /// What was due and not started when the last interval was over.
    backlog: u64,
    faults: Vec<FaultResult>,
    /// Which nodes get requests, and when the phase began.
    asked: Option<(Asked, Nanos)>,
    unasked: Vec<UnaskedNode>,
}

impl<'a> Disturbed<'a> {
    /// Nothing is disturbed without a keeper or without faults.
    pub fn new(
        watching: PhaseObserver<'a>,
        keeper: Option<&'a SharedKeeper>,
        hears: Hears<'a>,
        phase: &'a PhasePlan,
    ) -> Self {
        let (news, faults, unasked) = (News::default(), Vec::new(), Vec::new());
        let (nemesis, asked, backlog) = (None, None, 0);
        Disturbed { watching, keeper, hears, phase, nemesis, news, backlog, faults, asked, unasked }
    }

    /// What was done, in order, and the nodes that got no requests although they served.
    pub fn into_told(mut self) -> (Vec<FaultResult>, Vec<UnaskedNode>) {
        // Where the phase could not even end, what is broken is repaired here.
        self.over();
        (self.faults, self.unasked)
    }

    fn tell(&self) {
        if let Some((nemesis, _)) = &self.nemesis {
            // A nemesis that has nothing left to do hears nothing more.
            let _ = nemesis.news.send(self.news);
        }
    }
}

impl Observer for Disturbed<'_> {
    fn began(&mut self, start: Nanos) {
        self.asked = self.keeper.map(|_| (Asked::begin(), start));
        if let Some(keeper) = self.keeper.filter(|_| !self.phase.faults.is_empty()) {
            let nemesis = Nemesis::start(keeper, self.hears, self.phase, start);
            self.nemesis = Some((nemesis, start));
        }
    }

    fn over(&mut self) {
        if let Some((nemesis, start)) = self.nemesis.take() {
            self.faults = nemesis.stop(start, |what| self.watching.repairs(what));
        }
        if let (Some((asked, start)), Some(keeper)) = (self.asked.take(), self.keeper) {
            let nodes = lock(keeper).nodes().unwrap_or_default();
            self.unasked = asked.unasked(&nodes, &self.faults, start);
        }
    }

    fn interval(&mut self, interval: &Interval) {
        let before = std::mem::replace(&mut self.backlog, interval.backlog);
        if let Some((_, start)) = self.nemesis.as_ref().filter(|_| !self.news.at_rate) {
            self.news.at_rate = reaches_rate(self.phase, interval, *start, before);
            self.tell();
        }
        if let Some((asked, _)) = &mut self.asked {
            asked.look();
        }
        self.watching.interval(interval);
    }

    fn first_fault(&self) -> Option<Nanos> {
        self.nemesis.as_ref().and_then(|(nemesis, _)| nemesis.first.begun())
    }

    fn progress(&mut self, progress: &Progress) {
        self.news.acked = progress.completed.saturating_sub(progress.unsuccessful);
        self.tell();
        self.watching.progress(progress);
    }

    fn again(&mut self, progress: &Progress) {
        self.watching.again(progress);
    }
}

/// Whether as many operations succeeded in an interval as fell due, but for 5 %, and no more: a load that
/// works off what had piled up is not at its rate yet, nor is one whose rate still changes. Clients
/// that ask for no rate reach theirs in any interval. `start`: the phase's begin; `before`: the
/// backlog when the interval began.
fn reaches_rate(phase: &PhasePlan, interval: &Interval, start: Nanos, before: u64) -> bool {
    if phase.groups.iter().all(|group| !group.arrival.is_open()) {
        return true;
    }
    let changes = phase.groups.iter().any(|group| match group.arrival {
        Arrival::Ramp { over, .. } => interval.start < start + over.as_nanos() as Nanos,
        _ => false,
    });
    let succeeded = interval.in_time().saturating_sub(interval.failed) as f64;
    !changes && !interval.catches_up(before) && succeeded >= 0.95 * interval.offered as f64
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use kvdyno_core::workload::{GroupPlan, Kind};

    use super::*;

    const SECOND: u64 = 1_000_000_000;

    fn phase(arrival: Arrival) -> PhasePlan {
        let group = GroupPlan { arrival, ..GroupPlan::plain("get", &[(Kind::Get, 1000)], 1) };
        PhasePlan::plain(1, "get", vec![group], Duration::from_secs(60))
    }

    /// The second second of a phase.
    fn interval(completed: u64, failed: u64, backlog: u64) -> Interval {
        let (start, end, offered) = (SECOND, 2 * SECOND, 1_000);
        Interval { start, end, offered, completed, failed, backlog, ..Interval::default() }
    }

    #[test]
    fn a_load_that_catches_up_is_not_at_its_rate() {
        let constant = phase(Arrival::Constant { rate: 1_000.0 });
        let reached = |interval, before| reaches_rate(&constant, &interval, 0, before);
        assert!(reached(interval(1_000, 0, 0), 0) && reached(interval(955, 0, 45), 0));
        assert!(!reached(interval(1_000, 60, 0), 0), "they failed");
        assert!(!reached(interval(900, 0, 100), 0), "it does not keep up");
        assert!(!reached(interval(1_000, 0, 200), 200), "a backlog stays");
        assert!(!reached(interval(1_200, 0, 0), 200), "a backlog is worked off");
        assert!(!reached(interval(1_200, 0, 0), 0), "and one that clients held");
    }

    #[test]
    fn a_rate_that_changes_is_reached_when_it_has_come_to_its_end() {
        let over = Duration::from_secs(2);
        let ramp = phase(Arrival::Ramp { from: 500.0, to: 1_000.0, over });
        let at = |start| Interval { start, end: start + SECOND, ..interval(1_000, 0, 0) };
        assert!(!reaches_rate(&ramp, &at(SECOND), 0, 0));
        assert!(reaches_rate(&ramp, &at(2 * SECOND), 0, 0));
        assert!(reaches_rate(&phase(Arrival::Closed), &interval(1, 0, 0), 0, 0));
    }
}

//! The disturbance of a testbed during a phase: its nemesis, which is fed by the phase's progress, and a look at
//! which nodes get requests.

use std::sync::Arc;

use kvdyno_core::load::{AnyStore, Interrupt, Progress};
use kvdyno_core::measure::{Interval, Nanos};
use kvdyno_core::workload::{Dataset, PhasePlan};
use kvdyno_report::events::stream::EventStream;
use kvdyno_report::result::{FaultResult, SteeredResult, UnaskedNode};

use super::super::NodeProcesses;
use super::super::node_traffic::NodeTraffic;
use super::{LookBack, ManualAction, Nemesis, NemesisActions, NemesisMessage, News};
use crate::steering::{OrderRefused, WaitingOrder};
use crate::testbed::shared_keeper::{SharedKeeper, lock};

/// Surroundings of a nemesis: `node_processes` is told of new processes, `store` of new servers, `events` of all that
/// is done; `interrupt` ends waiting.
#[derive(Clone, Copy)]
pub struct Surroundings<'a> {
    /// Processes of the nodes.
    pub node_processes: &'a NodeProcesses,
    /// Store that is loaded.
    pub store: &'a Arc<dyn AnyStore>,
    /// Records in it.
    pub dataset: Dataset,
    /// Raised when the user wants to stop.
    pub interrupt: &'a Arc<Interrupt>,
    /// Stream to which the run publishes events.
    pub events: &'a EventStream,
    /// Means to look for inserts after each power cut; `None` where they cannot be looked for.
    pub look_back: Option<&'a LookBack>,
    /// True if kvdyno has set up the testbed: then viewers of the live page may break it.
    pub is_ours: bool,
}

/// Disturbance of a testbed between the begin of a phase and its end.
pub struct Disturbance<'a> {
    keeper: Option<&'a SharedKeeper>,
    around: Surroundings<'a>,
    phase: &'a PhasePlan,
    nemesis: Option<(Nemesis, Nanos)>,
    news: News,
    /// Operations that were due and not started when the last interval was over.
    backlog: u64,
    /// Requests that each node gets, and the begin of the phase.
    node_traffic: Option<(NodeTraffic, Nanos)>,
}

/// Result of a disturbance.
#[derive(Debug, Default)]
pub struct Disturbed {
    /// Faults and repairs, in order.
    pub faults: Vec<FaultResult>,
    /// Those of them that were ordered by hand.
    pub manual: Vec<SteeredResult>,
    /// Nodes that got no requests although they served.
    pub unasked: Vec<UnaskedNode>,
    /// Nodes whose process ended without an order, each with how it ended.
    pub ended: Vec<(String, String)>,
    /// True if the testbed was ended in good order while the phase ran: its keeper is gone.
    pub is_testbed_gone: bool,
    /// Records that were absent after the repair of a power cut.
    pub absent: Vec<u64>,
}

impl<'a> Disturbance<'a> {
    /// Makes the disturbance of a phase; without a keeper or without faults nothing is disturbed.
    pub fn new(
        keeper: Option<&'a SharedKeeper>,
        around: Surroundings<'a>,
        phase: &'a PhasePlan,
    ) -> Self {
        let (nemesis, node_traffic, news, backlog) = (None, None, News::default(), 0);
        Disturbance { keeper, around, phase, nemesis, news, backlog, node_traffic }
    }

    /// Begins when the clients do, at `start`.
    pub fn begin(&mut self, start: Nanos) {
        self.node_traffic = self.keeper.map(|_| (NodeTraffic::begin(), start));
        if let Some(keeper) = self.keeper.filter(|_| !self.phase.faults.is_empty()) {
            let nemesis = Nemesis::start(keeper, self.around, self.phase, start);
            self.nemesis = Some((nemesis, start));
        }
    }

    /// Takes a complete interval.
    pub fn interval(&mut self, interval: &Interval) {
        let before = std::mem::replace(&mut self.backlog, interval.backlog);
        if let Some((_, start)) = self.nemesis.as_ref().filter(|_| !self.news.at_rate) {
            self.news.at_rate = reaches_rate(self.phase, interval, *start, before);
            self.send_news();
        }
        if let Some((node_traffic, _)) = &mut self.node_traffic {
            node_traffic.look();
        }
    }

    /// Takes the progress of the phase so far.
    pub fn progress(&mut self, progress: &Progress) {
        self.news.acked = progress.completed.saturating_sub(progress.unsuccessful);
        self.send_news();
    }

    /// Hands an action on the testbed, ordered at the live page, to the nemesis.
    pub fn act_manually(&mut self, action: ManualAction, order: WaitingOrder) {
        let (Some(keeper), Some((_, start)), true) =
            (self.keeper, &self.node_traffic, self.around.is_ours)
        else {
            return order.answer(Err(OrderRefused::NoTestbed));
        };
        let (nemesis, _) = self.nemesis.get_or_insert_with(|| {
            (Nemesis::start(keeper, self.around, self.phase, *start), *start)
        });
        // If the nemesis no longer listens, the sender of the order learns that the phase is over.
        let _ = nemesis.to_nemesis.send(NemesisMessage::Manual(Box::new((action, order))));
    }

    /// Returns the moment when the first fault was begun, if one was.
    pub fn first_fault(&self) -> Option<Nanos> {
        self.nemesis.as_ref().and_then(|(nemesis, _)| nemesis.first.begun())
    }

    /// Ends when the clients are done, or could not begin. Returns once what is still broken is repaired.
    pub fn end(&mut self) -> Disturbed {
        let actions = self.nemesis.take().map(|(nemesis, _)| nemesis.stop());
        let NemesisActions { done: faults, manual, absent } = actions.unwrap_or_default();
        let Some((node_traffic, start)) = self.node_traffic.take() else {
            return Disturbed { faults, manual, absent, ..Disturbed::default() };
        };
        let nodes = self.keeper.map(|keeper| lock(keeper).nodes());
        let is_testbed_gone = matches!(nodes, Some(Err(_)))
            && self.keeper.is_some_and(|keeper| lock(keeper).ended_well());
        let nodes = nodes.and_then(Result::ok).unwrap_or_default();
        let unasked = node_traffic.unasked(&nodes, &faults, start);
        let ended = nodes.into_iter().filter_map(|node| Some((node.name, node.ended_by_itself?)));
        let ended = ended.collect();
        Disturbed { faults, manual, unasked, ended, is_testbed_gone, absent }
    }

    fn send_news(&self) {
        if let Some((nemesis, _)) = &self.nemesis {
            // A nemesis that has nothing left to do receives nothing more.
            let _ = nemesis.to_nemesis.send(NemesisMessage::News(self.news));
        }
    }
}

/// Returns true if as many operations succeeded in an interval as fell due, but for 5 %, and no more. A load that
/// works off a backlog is not at its rate yet, nor is one whose rate still changes. Clients that ask for no rate
/// reach theirs in any interval. `start`: the phase's begin; `before`: the backlog when the interval began.
fn reaches_rate(phase: &PhasePlan, interval: &Interval, start: Nanos, before: u64) -> bool {
    if phase.groups.iter().all(|group| !group.arrival.is_open()) {
        return true;
    }
    let changes = phase
        .groups
        .iter()
        .filter_map(|group| group.arrival.curve())
        .any(|curve| interval.start < start + curve.settles_after().as_nanos() as Nanos);
    let enough = interval.succeeded() as f64 >= 0.95 * interval.offered as f64;
    !changes && !interval.catches_up(before) && enough
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use kvdyno_core::workload::{Arrival, GroupPlan, Kind};

    use super::*;

    const SECOND: u64 = 1_000_000_000;

    fn phase(arrival: Arrival) -> PhasePlan {
        let group = GroupPlan { arrival, ..GroupPlan::plain("get", &[(Kind::Get, 1000)], 1) };
        PhasePlan::plain(1, "get", vec![group], Duration::from_secs(60))
    }

    /// Returns the second second of a phase.
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

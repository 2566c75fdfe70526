//! Records of what the executor of faults has done, or could not do, as results have them.

use kvdyno_core::measure::{Nanos, now};
use kvdyno_core::workload::fault::ActionFailure;
use kvdyno_report::events::Event;
use kvdyno_report::result::{CutResult, FaultResult};
use kvdyno_testbed::{CutFigures, Role, TestbedError};

use super::FaultExecutor;

impl FaultExecutor {
    /// Describes something that was done to a node from `began` to now.
    pub(super) fn fault_result(
        &self,
        what: &str,
        node: &str,
        role: Option<Role>,
        began: Nanos,
    ) -> FaultResult {
        FaultResult {
            what: what.to_owned(),
            node: node.to_owned(),
            role: role.map(|role| role.name().to_owned()),
            began_ns: self.since_begin(began),
            ended_ns: self.since_begin(now()),
            ..FaultResult::default()
        }
    }

    /// Publishes and keeps an action that was done, or could not be.
    pub(super) fn publish(&mut self, done: FaultResult) {
        self.events.publish(Event::FaultDone(Box::new(done.clone())));
        self.done.push(done);
    }

    /// Records an action that could not be done, with its error, for each target.
    pub(super) fn note(
        &mut self,
        what: &'static str,
        aimed: &[(String, Option<Role>)],
        began: Nanos,
        (error, failure): (String, ActionFailure),
    ) {
        let (error, failure) = (Some(error), Some(failure));
        let nobody = [(String::new(), None)];
        for (node, role) in if aimed.is_empty() { &nobody[..] } else { aimed } {
            let action = self.fault_result(what, node, *role, began);
            self.publish(FaultResult { error: error.clone(), failure, ..action });
        }
    }
}

/// Returns an error as text, with its kind.
pub(super) fn failed(error: &TestbedError) -> (String, ActionFailure) {
    (error.to_string(), error.failure())
}

pub(super) fn cut_result(of: CutFigures) -> CutResult {
    let CutFigures { frozen_ns, held_within_ns, in_memory, undecided, written, lose } = of;
    let (lose, looked_back) = (Some(lose), None);
    CutResult { frozen_ns, held_within_ns, in_memory, undecided, written, lose, looked_back }
}

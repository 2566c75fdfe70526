//! The evidence that nodes served again by themselves after what was done to them.

use kvdyno_core::evidence::{Claimed, Evidence, FaultModel, Reason, ViolationKind};
use kvdyno_core::workload::fault::{RESTART, Repair};

use super::history::History;
use crate::result::FaultResult;

/// After each fault the nodes came back by themselves; `None` where no node was started again.
pub(super) fn came_back(history: &History<'_>) -> Option<Evidence> {
    let mut evidence = Evidence::of(Claimed::CameBack, None, Some(FaultModel::default()));
    let phases = 0..history.run.phases.len();
    let all = history.run.phases.iter().flat_map(|phase| &phase.faults);
    evidence.kept = all.filter(|fault| is_start(fault) && fault.error.is_none()).count() as u64;
    for (at, repair) in history.failed_repairs(phases) {
        if history.machine_failed(at) {
            evidence.excuse(Reason::MachineFailed, ViolationKind::NotBack, 1, &[]);
            continue;
        }
        match (ended_by_itself(repair), history.disk_lied(at)) {
            (true, true) => evidence.excuse(Reason::DiskLied, ViolationKind::NotBack, 1, &[]),
            (true, false) => evidence.violate(ViolationKind::NotBack, 1, &[]),
            (false, _) if is_start(repair) => evidence.leave(Reason::StillStarting, 1),
            (false, _) => evidence.bar(Reason::RepairFailed),
        }
    }
    let tried = evidence.stake() > 0 || !evidence.bars.is_empty();
    tried.then_some(evidence)
}

/// The node was started, and its process ended or refused to serve. What a keeper says of it is words.
pub(super) fn ended_by_itself(repair: &FaultResult) -> bool {
    repair.error.as_ref().is_some_and(|error| error.contains(" ended at once ("))
}

/// A start of a node over its data.
fn is_start(fault: &FaultResult) -> bool {
    fault.what == Repair::Start.told() || fault.kind() == Some(&RESTART)
}

//! Evidence that nodes served again by themselves after faults, and that the store served meanwhile.

use kvdyno_core::evidence::{Claimed, Evidence, FaultModel, OpenReason, ViolationKind};
use kvdyno_core::workload::fault::{ActionFailure, RESTART, Repair};

use super::history::FaultHistory;
use super::undone;
use crate::result::{FaultResult, PhaseResult, SideAccount, is_repair};

/// Shortest stretch without success, ns, that is no mere hiccup.
const SHORTEST_DOWNTIME_NS: u64 = 100_000_000;

/// Gathers the evidence that the nodes came back by themselves after each fault; `None` where no node was started again.
pub(super) fn came_back(history: &FaultHistory<'_>) -> Option<Evidence> {
    let mut evidence = Evidence::of(Claimed::CameBack, None, Some(FaultModel::default()));
    let phases = 0..history.run.phases.len();
    let all = history.run.phases.iter().flat_map(|phase| &phase.faults);
    evidence.kept = all.filter(|fault| is_start(fault) && fault.error.is_none()).count() as u64;
    for (at, repair) in history.failed_repairs(phases) {
        if history.machine_failed(at) || repair.failure == Some(ActionFailure::Machine) {
            evidence.excuse(OpenReason::MachineFailed, ViolationKind::NotBack, 1, &[]);
            continue;
        }
        match (ended_by_itself(repair), history.disk_lied(at)) {
            (true, true) => evidence.excuse(OpenReason::DiskLied, ViolationKind::NotBack, 1, &[]),
            (true, false) => evidence.violate(ViolationKind::NotBack, 1, &[]),
            (false, _) if is_start(repair) => evidence.leave(OpenReason::StillStarting, 1),
            (false, _) => evidence.bar(OpenReason::RepairFailed),
        }
    }
    let tried = evidence.stake() > 0 || !evidence.bars.is_empty();
    tried.then_some(evidence)
}

/// Gathers the evidence that operations went on to succeed through each fault of a phase: reads and writes from it to the
/// next one. No store promises that, so this refutes nothing. `None` where no fault was planned.
pub(super) fn no_downtime(phase: &PhaseResult) -> Option<Evidence> {
    let mut faults = phase.faults.iter().filter(|fault| !fault.repairs());
    let mut evidence = Evidence::of(Claimed::NoDowntime, Some(&phase.name), None);
    faults.next()?;
    for fault in phase.account.iter().filter(|account| !is_repair(&account.what)) {
        evidence.exposure.moments += 1;
        let was_down: Vec<Option<bool>> = fault.sides().map(|(_, side)| was_down(side)).collect();
        match was_down.contains(&Some(true)) {
            true => evidence.violate(ViolationKind::Down, 1, &[]),
            false if was_down.is_empty() || was_down.contains(&None) => {
                evidence.leave(OpenReason::NotKnown, 1);
            }
            false => evidence.kept += 1,
        }
    }
    if undone(phase).is_some() {
        evidence.bar(OpenReason::FaultNotDone);
    }
    Some(evidence)
}

/// Returns true if the fault began a stretch without success that was longer than usual before it; `None` where that
/// cannot be told.
fn was_down(side: &SideAccount) -> Option<bool> {
    let throughput = side.throughput.as_ref().filter(|told| told.undecided.is_none())?;
    let is_unaffected = throughput.of(1.0)? == Some(0);
    let usual = throughput.usual_dip_ns.max(SHORTEST_DOWNTIME_NS);
    Some(!is_unaffected && side.unavailable_ns? > usual)
}

/// Returns true if the node was started, and its process ended or refused to serve.
fn ended_by_itself(repair: &FaultResult) -> bool {
    repair.failure == Some(ActionFailure::ProcessEnded)
}

/// Returns true for a start of a node over its data.
fn is_start(fault: &FaultResult) -> bool {
    fault.what == Repair::Start.describe() || fault.kind() == Some(&RESTART)
}

//! Evidence of a phase's reads: each by itself, and the histories of sampled records.

use kvdyno_core::evidence::{
    Claimed, Disk, Evidence, FaultClass, FaultModel, OpenReason, ViolationKind,
};
use kvdyno_core::store::Consistency;
use kvdyno_core::verify::{AnomalyKind, Tally};

use super::history::{FaultHistory, promised};
use crate::result::{LinearizabilityAnswer, PhaseResult};

/// Gathers the evidence that every read of a phase was right; `None` where verification was off.
pub(super) fn right(
    history: &FaultHistory<'_>,
    at: usize,
    phase: &PhaseResult,
) -> Option<Evidence> {
    let tally = phase.tally.as_ref()?;
    let level = history.run.store.consistency.level;
    let fault = promised(history.run.store.durability.level);
    let model = FaultModel { fault, disk: Disk::HonoursFlushes, ..FaultModel::default() };
    let mut evidence = Evidence::of(Claimed::ReadsRight, Some(&phase.name), Some(model));
    // Another run does not excuse anomalies that it cannot have written.
    let mut of_no_other = tally.of_no_other;
    for kind in AnomalyKind::ALL {
        // A store that is eventually consistent may be stale.
        if kind == AnomalyKind::Stale && level == Consistency::Eventual {
            continue;
        }
        let of_kind = phase.anomalies.iter().filter(|anomaly| anomaly.kind == kind);
        let records: Vec<u64> = of_kind.map(|anomaly| anomaly.record).collect();
        let (what, mut count) = (violation(kind), tally.of(kind));
        let excuse = excuse(history, at, kind);
        if excuse == Some(OpenReason::OtherRun) {
            let own = count.min(of_no_other);
            evidence.violate(what, own, &records);
            (count, of_no_other) = (count - own, of_no_other - own);
        }
        match excuse {
            Some(reason) => evidence.excuse(reason, what, count, &records),
            None => evidence.violate(what, count, &records),
        }
    }
    evidence.leave(OpenReason::NotJudged, tally.unknown.saturating_add(tally.not_read_again));
    evidence.leave(OpenReason::OtherRun, tally.other_run);
    // A stamp tells whose bytes they are, and not whether they are the right version: such reads are no part of the stake.
    let by_stamp_only = tally.stamp_only.saturating_sub(tally.other_run);
    evidence.keep_rest_of(tally.reads.saturating_sub(by_stamp_only));
    Some(evidence)
}

/// Returns the reason for which a wrong read of a kind breaks no promise, if there is one. Corrupt bytes have no excuse.
fn excuse(history: &FaultHistory<'_>, at: usize, kind: AnomalyKind) -> Option<OpenReason> {
    if history.machine_failed(at) {
        return Some(OpenReason::MachineFailed);
    }
    let is_old = matches!(kind, AnomalyKind::Lost | AnomalyKind::Resurrected | AnomalyKind::Stale);
    match kind {
        AnomalyKind::Corrupt => None,
        // Another run's deletes and expiries leave no value by which they could be told.
        _ if is_crowded(history) => Some(OpenReason::OtherRun),
        _ if is_old && is_beyond(history, at) => Some(OpenReason::BeyondPromise),
        _ if is_old && history.disk_lied(at) => Some(OpenReason::DiskLied),
        _ => None,
    }
}

/// Returns true if a fault was done by then that acknowledged writes need not survive.
pub(super) fn is_beyond(history: &FaultHistory<'_>, at: usize) -> bool {
    let gravest = history.gravest(at);
    gravest > FaultClass::Running && gravest > promised(history.run.store.durability.level)
}

/// Returns true if another run was seen to write the same records.
pub(super) fn is_crowded(history: &FaultHistory<'_>) -> bool {
    let mut tallies = history.run.phases.iter().filter_map(|phase| phase.tally.as_ref());
    tallies.any(|tally: &Tally| tally.of_other_runs() > 0)
}

fn violation(kind: AnomalyKind) -> ViolationKind {
    match kind {
        AnomalyKind::Corrupt => ViolationKind::Corrupt,
        AnomalyKind::Phantom => ViolationKind::Phantom,
        AnomalyKind::Resurrected => ViolationKind::Resurrected,
        AnomalyKind::Stale => ViolationKind::Stale,
        AnomalyKind::Lost => ViolationKind::Lost,
    }
}

/// Gathers the evidence that the sampled histories of a phase are linearizable; `None` where none were kept. A store that
/// promises less has no promise to break.
pub(super) fn linearizable(history: &FaultHistory<'_>, phase: &PhaseResult) -> Option<Evidence> {
    let told = phase.linearizability.as_ref()?;
    let promises = history.run.store.consistency.level == Consistency::Linearizable;
    let model = promises.then(FaultModel::default);
    let mut evidence = Evidence::of(Claimed::Linearizable, Some(&phase.name), model);
    let record: Vec<u64> = told.violation.iter().map(|violation| violation.record).collect();
    match told.answer {
        LinearizabilityAnswer::Violated if is_crowded(history) => {
            evidence.excuse(OpenReason::OtherRun, ViolationKind::Contradiction, 1, &record);
        }
        LinearizabilityAnswer::Violated => {
            evidence.violate(ViolationKind::Contradiction, 1, &record)
        }
        LinearizabilityAnswer::Unknown => {
            evidence.leave(OpenReason::NotJudged, told.requests.max(1))
        }
        LinearizabilityAnswer::Ok => {}
    }
    evidence.keep_rest_of(told.requests);
    Some(evidence)
}

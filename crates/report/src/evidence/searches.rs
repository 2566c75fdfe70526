//! Evidence of a search for the highest rate: that a rate met the conditions that were asked for, and that the store
//! itself missed the next higher rate.

use kvdyno_core::evidence::{Claimed, Evidence, FaultModel, OpenReason, ViolationKind};

use super::invalid;
use crate::result::{CapacityResult, ProbeResult, StoreRun};

/// Gathers the evidence that a rate met the conditions in a run of its own: each operation of that run was at stake. An
/// invalid measurement decides neither way.
pub(super) fn met_objective(run: &StoreRun, found: &CapacityResult) -> Evidence {
    let mut evidence = of(Claimed::MetObjective, found);
    if found.carried.is_some() {
        let confirms =
            |probe: &&ProbeResult| probe.asked == found.carried && probe.met() && probe.confirms();
        for probe in found.probes.iter().filter(confirms) {
            let phase = run.phases.iter().find(|phase| phase.name == probe.phase);
            evidence.kept += phase.map_or(0, |phase| phase.ok());
            bar_invalid(run, probe, &mut evidence);
        }
        return evidence;
    }
    let Misses { by_store, unclear, probes } = Misses::of(found);
    let excuse = match () {
        () if probes.iter().any(|probe| invalid(run, &probe.phase).is_some()) => {
            Some(OpenReason::MachineFailed)
        }
        () if found.client_limited.is_some() || unclear >= by_store.max(1) => {
            Some(OpenReason::ClientLimited)
        }
        () => None,
    };
    match excuse {
        _ if found.missed.is_none() => evidence.bar(OpenReason::CutShort),
        // A rate below all that were confirmed may still meet the conditions.
        _ if found.probes.iter().any(ProbeResult::met) => evidence.bar(OpenReason::NotKnown),
        Some(reason) => evidence.excuse(reason, ViolationKind::Missed, by_store + unclear, &[]),
        None => evidence.violate(ViolationKind::Missed, by_store, &[]),
    }
    evidence
}

/// Gathers the evidence that the store itself missed the lowest missed rate: each probe at that rate was at stake.
pub(super) fn own_limit(run: &StoreRun, found: &CapacityResult) -> Evidence {
    let mut evidence = of(Claimed::OwnLimit, found);
    if found.carried.is_none() {
        return evidence;
    }
    let Misses { by_store, unclear, probes } = Misses::of(found);
    evidence.kept = by_store;
    // The search counts in the same way: clear misses decide, unless as many may have another cause.
    if unclear >= by_store {
        evidence.leave(OpenReason::ClientLimited, unclear);
    }
    if found.client_limited.is_some() {
        evidence.bar(OpenReason::ClientLimited);
    }
    probes.iter().for_each(|probe| bar_invalid(run, probe, &mut evidence));
    evidence
}

fn of(claimed: Claimed, found: &CapacityResult) -> Evidence {
    Evidence::of(claimed, Some(&found.phase), Some(FaultModel::default()))
}

fn bar_invalid(run: &StoreRun, probe: &ProbeResult, evidence: &mut Evidence) {
    if invalid(run, &probe.phase).is_some() {
        evidence.bar(OpenReason::MachineFailed);
    }
}

/// Probes that missed the conditions at the lowest missed rate.
struct Misses<'a> {
    probes: Vec<&'a ProbeResult>,
    by_store: u64,
    /// Misses that may have another cause than the store.
    unclear: u64,
}

impl Misses<'_> {
    fn of(found: &CapacityResult) -> Misses<'_> {
        let missed = |probe: &&ProbeResult| {
            found.missed.is_some()
                && probe.asked == found.missed
                && probe.seen.is_some()
                && !probe.met()
        };
        let probes: Vec<&ProbeResult> = found.probes.iter().filter(missed).collect();
        let unclear = probes.iter().filter(|probe| probe.is_unclear()).count() as u64;
        Misses { by_store: probes.len() as u64 - unclear, unclear, probes }
    }
}

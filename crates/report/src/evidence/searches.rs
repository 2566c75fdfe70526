//! The evidence of a search for the highest rate: that a rate met the conditions that somebody asked for, and that the rate above
//! it was missed by the store.

use kvdyno_core::evidence::{Claimed, Evidence, FaultModel, Reason, ViolationKind};

use super::invalid;
use crate::result::{CapacityResult, ProbeResult, StoreRun};

/// A rate met the conditions in a run of its own: of that run each operation was at stake.
pub(super) fn met_objective(run: &StoreRun, found: &CapacityResult) -> Evidence {
    let mut evidence = of(Claimed::MetObjective, found);
    if found.carried.is_some() {
        let at_rate = |probe: &&ProbeResult| probe.asked == found.carried && probe.met();
        for probe in found.probes.iter().filter(at_rate).filter(|probe| probe.confirms()) {
            let phase = run.phases.iter().find(|phase| phase.name == probe.phase);
            evidence.kept += phase.map_or(0, |phase| phase.ok());
            if invalid(run, &probe.phase).is_some() {
                evidence.bar(Reason::MachineFailed);
            }
        }
        return evidence;
    }
    let (by_store, unclear) = misses(found);
    if found.missed.is_none() {
        evidence.bar(Reason::CutShort);
    } else if found.probes.iter().any(ProbeResult::met) {
        // A rate below all that was confirmed may meet them for long.
        evidence.bar(Reason::NotKnown);
    } else if found.client_limited.is_some() || unclear >= by_store.max(1) {
        evidence.excuse(Reason::ClientLimited, ViolationKind::Missed, by_store + unclear, &[]);
        evidence.bar(Reason::ClientLimited);
    } else {
        evidence.violate(ViolationKind::Missed, by_store, &[]);
    }
    evidence
}

/// The lowest rate that was missed was missed by the store: of that rate each probe was at stake.
pub(super) fn own_limit(found: &CapacityResult) -> Evidence {
    let mut evidence = of(Claimed::OwnLimit, found);
    if found.carried.is_none() {
        return evidence;
    }
    let (by_store, unclear) = misses(found);
    evidence.kept = by_store;
    // As the search counts them: clear misses decide, unless as many may be another's doing.
    if unclear >= by_store {
        evidence.leave(Reason::ClientLimited, unclear);
    }
    if found.client_limited.is_some() {
        evidence.bar(Reason::ClientLimited);
    }
    evidence
}

fn of(claimed: Claimed, found: &CapacityResult) -> Evidence {
    Evidence::of(claimed, Some(&found.phase), Some(FaultModel::default()))
}

/// Probes that missed at the lowest rate that was missed: by the store, and those that something else may have spoilt.
fn misses(found: &CapacityResult) -> (u64, u64) {
    let missed = |probe: &&ProbeResult| {
        found.missed.is_some() && probe.asked == found.missed && probe.seen.is_some()
    };
    let misses = found.probes.iter().filter(missed).filter(|probe| !probe.met());
    let (unclear, by_store): (Vec<_>, Vec<_>) = misses.partition(|probe| probe.is_unclear());
    (by_store.len() as u64, unclear.len() as u64)
}

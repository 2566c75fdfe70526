//! Where a store's data lie, as far as the bytes tell that its disks were given: what lies elsewhere is never at stake when
//! their power is cut, and a cut of it shows nothing.

use std::collections::BTreeMap;

use kvdyno_core::verify::Tally;
use kvdyno_core::workload::Kind;
use kvdyno_core::workload::fault::POWER;

use crate::result::{FaultResult, PhaseResult, StoreRun};

/// Of the values of new records that were acknowledged, disks that keep them were given this share at least, however well
/// a store compresses. Those of a store that syncs small writes are given many times as much, for they write whole blocks;
/// those that hold nothing of it a few KiB.
const LEAST_GIVEN: f64 = 0.125;

/// Returns true if new records must lie elsewhere than on the disks whose power was cut: by the last cut of each phase these
/// had been given next to nothing of them. All phases are taken together, for one with few writes tells nothing. False where
/// that is not known.
pub(crate) fn lie_elsewhere(run: &StoreRun) -> bool {
    let Some(value) = mean_value(run) else { return false };
    let (mut given, mut held) = (0_u64, 0.0);
    for phase in &run.phases {
        let done = phase.faults.iter().filter(|fault| fault.was(&POWER) && fault.error.is_none());
        // Disks of several nodes that were cut off at one moment are counted together.
        let cuts: BTreeMap<u64, Option<u64>> =
            done.map(|fault| (fault.began_ns, written(fault))).collect();
        let Some(last) = cuts.keys().next_back() else { continue };
        let Some(all) = cuts.values().copied().sum::<Option<u64>>() else { return false };
        given = given.saturating_add(all);
        held += value * inserted_until(phase, *last);
    }
    (given as f64) < LEAST_GIVEN * held
}

fn written(cut: &FaultResult) -> Option<u64> {
    cut.cut.as_ref()?.written
}

/// Bytes of a value, the mean of all that were read.
fn mean_value(run: &StoreRun) -> Option<f64> {
    let tallies = || run.phases.iter().filter_map(|phase| phase.tally.as_ref());
    let sum = |of: fn(&Tally) -> u64| tallies().map(of).fold(0, u64::saturating_add);
    let (bytes, records) = (sum(|tally| tally.bytes_checked), sum(|tally| tally.records));
    (records > 0).then(|| bytes as f64 / records as f64)
}

/// New records that had been acknowledged when something was done at `moment`, about: of the writes those are left out that
/// came after it.
fn inserted_until(phase: &PhaseResult, moment: u64) -> f64 {
    let inserts = phase.series.iter().filter(|s| matches!(s.kind, Kind::Insert | Kind::InsertBatch));
    let inserted: u64 = inserts.map(|series| series.records).sum();
    let writes = phase.tally.as_ref().map_or(0, |tally| tally.writes_acknowledged);
    let harms = |what: &str| phase.faults.iter().any(|fault| fault.what == what && !fault.repairs());
    // Each was watched until the next one.
    let after = phase.account.iter().filter(|of| of.began_ns >= moment && harms(&of.what));
    let after: u64 = after.filter_map(|of| Some(of.writes.as_ref()?.ok)).sum();
    match writes {
        0 => 0.0,
        writes => inserted as f64 * (1.0 - (after as f64 / writes as f64).min(1.0)),
    }
}

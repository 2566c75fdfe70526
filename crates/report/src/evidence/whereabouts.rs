//! Place of a store's data, as told by the bytes that its disks were given: data that lie elsewhere are never at stake
//! when the power of these disks is cut, and such a cut shows nothing.

use std::collections::{BTreeMap, BTreeSet};

use kvdyno_core::verify::Tally;
use kvdyno_core::workload::Kind;
use kvdyno_core::workload::fault::POWER;

use super::history::FaultHistory;
use crate::result::{FaultResult, PhaseResult, SeriesResult, StoreRun};

/// Least share of the acknowledged new values that disks with the data must have been given, however well a store
/// compresses. The disks of a store that syncs small writes are given many times as much, since it writes whole blocks;
/// disks without its data are given a few KiB.
const LEAST_GIVEN: f64 = 0.125;

/// Returns true if new records must lie elsewhere than on the disks whose power was cut: from the set-up to the last cut
/// these had been given next to nothing of them. False where that is not known.
pub(crate) fn lie_elsewhere(run: &StoreRun) -> bool {
    let is_cut = |fault: &&FaultResult| fault.was(&POWER) && fault.error.is_none();
    let cuts_of = |phase: &'_ PhaseResult| -> BTreeMap<u64, Option<u64>> {
        // Disks of several nodes that were cut off at one moment are counted together.
        let cuts = phase.faults.iter().filter(is_cut);
        cuts.map(|fault| (fault.began_ns, written(fault))).collect()
    };
    let cuts: Vec<_> = run.phases.iter().map(cuts_of).collect();
    let Some(last) = cuts.iter().rposition(|cuts| !cuts.is_empty()) else { return false };
    let given: Option<u64> = cuts.iter().flat_map(BTreeMap::values).copied().sum();
    let Some((given, value)) = given.zip(mean_value(run)) else { return false };
    let before = run.phases[..last].iter().map(inserted).sum::<u64>() as f64;
    let moment = cuts[last].keys().next_back().copied().unwrap_or(0);
    let held = value * (before + inserted_until(&run.phases[last], moment));
    (given as f64) < LEAST_GIVEN * held * share_cut(run)
}

/// Returns the share of the data nodes whose power was cut at any time: records may be divided among them.
fn share_cut(run: &StoreRun) -> f64 {
    let faults = run.phases.iter().flat_map(|phase| &phase.faults);
    let cut = faults.filter(|fault| fault.was(&POWER) && fault.error.is_none());
    let cut: BTreeSet<&str> = cut.map(|fault| fault.node.as_str()).collect();
    match FaultHistory::of(run).data_nodes() {
        0 => 1.0,
        nodes => (cut.len() as f64 / nodes as f64).min(1.0),
    }
}

fn written(cut: &FaultResult) -> Option<u64> {
    cut.cut.as_ref()?.written
}

/// Returns the mean size of a value, bytes, over all values that were read.
fn mean_value(run: &StoreRun) -> Option<f64> {
    let tallies = || run.phases.iter().filter_map(|phase| phase.tally.as_ref());
    let sum = |of: fn(&Tally) -> u64| tallies().map(of).fold(0, u64::saturating_add);
    let (bytes, records) = (sum(|tally| tally.bytes_checked), sum(|tally| tally.records));
    (records > 0).then(|| bytes as f64 / records as f64)
}

/// Counts the new records that a phase wrote, and that were acknowledged.
fn inserted(phase: &PhaseResult) -> u64 {
    let is_insert = |of: &&SeriesResult| matches!(of.kind, Kind::Insert | Kind::InsertBatch);
    phase.series.iter().filter(is_insert).map(|series| series.records).sum()
}

/// Estimates how many new records had been acknowledged before the action at `moment`: the share of writes that came
/// after it is left out.
fn inserted_until(phase: &PhaseResult, moment: u64) -> f64 {
    let writes = phase.tally.as_ref().map_or(0, |tally| tally.writes_acknowledged);
    let harms =
        |what: &str| phase.faults.iter().any(|fault| fault.what == what && !fault.repairs());
    // Each fault was watched until the next one.
    let after = phase.account.iter().filter(|of| of.began_ns >= moment && harms(&of.what));
    let after: u64 = after.filter_map(|of| Some(of.writes.as_ref()?.ok)).sum();
    match writes {
        0 => 0.0,
        writes => inserted(phase) as f64 * (1.0 - (after as f64 / writes as f64).min(1.0)),
    }
}

#[cfg(test)]
mod tests {
    use kvdyno_core::evidence::{Claimed, EvidenceStatus, OpenReason};
    use kvdyno_core::store::{Durability, Promise};

    use super::*;
    use crate::evidence::{cut_text, of_run};
    use crate::result::{
        CutResult, FaultAccount, SideAccount, TestbedNode, TestbedResult, WriteAccount, mark_dark,
    };
    use crate::sample;

    const SECOND: u64 = 1_000_000_000;
    const KIB: u64 = 1 << 10;

    /// Makes up a phase with so many new records.
    fn inserts(name: &str, count: u64) -> PhaseResult {
        let mut phase = sample::two_stores().runs[0].phases[0].clone();
        phase.name = name.to_owned();
        phase.series.truncate(1);
        (phase.series[0].kind, phase.series[0].records) = (Kind::Insert, count);
        phase.tally = Some(Tally { writes_acknowledged: count, ..Tally::default() });
        (phase.faults, phase.account) = (Vec::new(), Vec::new());
        phase
    }

    /// Makes up 1,000 records of 100 bytes that were loaded, 1,000 that were inserted under two cuts, half of them after
    /// the last cut, and a phase that read all of it back. `written` is what each cut says that the disks were given.
    fn run(written: [Option<u64>; 2]) -> StoreRun {
        let mut run = StoreRun { phases: Vec::new(), ..sample::two_stores().runs.remove(0) };
        run.store.durability = Promise::checked(Durability::PowerLoss);
        run.store.capabilities.may_forget = false;
        run.testbed = Some(TestbedResult::default());
        let mut cut = inserts("cut", 1_000);
        for (at, written) in (1..).map(|number| number * SECOND).zip(written) {
            let figures = CutResult { written, ..CutResult::default() };
            let what = "power".to_owned();
            let fault =
                FaultResult { what, began_ns: at, cut: Some(figures), ..FaultResult::default() };
            cut.faults.push(fault);
            let writes = Some(SideAccount { ok: 250 * at / SECOND, ..SideAccount::default() });
            let (what, began_ns) = ("power".to_owned(), at);
            cut.account.push(FaultAccount { what, began_ns, writes, ..FaultAccount::default() });
        }
        mark_dark(&mut cut.faults);
        let account = WriteAccount {
            acknowledged: 2_000,
            read: 2_000,
            exact: true,
            ..WriteAccount::default()
        };
        cut.writes = Some(account);
        let mut back = inserts("cut:read-back", 0);
        back.tally = Some(Tally { records: 2_000, bytes_checked: 200_000, ..Tally::default() });
        run.phases = vec![inserts("load", 1_000), cut, back];
        run
    }

    fn status(run: &StoreRun) -> EvidenceStatus {
        of_run(run, Claimed::SurvivesPowerLoss).expect("it is promised").status()
    }

    /// At the last cut 1,500 records of 100 bytes had been acknowledged; an eighth of that is 18,750 bytes.
    #[test]
    fn disks_that_were_given_next_to_nothing_leave_a_cut_open() {
        let elsewhere = run([Some(4 * KIB), Some(4 * KIB)]);
        let open = EvidenceStatus::Inconclusive(OpenReason::LiesElsewhere);
        assert_eq!(status(&elsewhere), open);
        let evidence = of_run(&elsewhere, Claimed::SurvivesPowerLoss).unwrap();
        assert!(cut_text(&evidence).contains("not decided: the disks that were cut off"));
        assert_eq!(status(&run([Some(18_000), Some(749)])), open);
        for enough in [[Some(18_000), Some(750)], [Some(0), Some(4 << 20)], [None, Some(0)]] {
            assert_eq!(status(&run(enough)), EvidenceStatus::Confirmed, "{enough:?}");
        }
        // The cut says nothing of another claim, and losses stay losses.
        let lost = of_run(&elsewhere, Claimed::NothingLost).unwrap().status();
        assert_eq!(lost, EvidenceStatus::Confirmed);
        let mut broken = elsewhere;
        broken.phases[1].writes.as_mut().unwrap().lost = 3;
        assert_eq!(status(&broken), EvidenceStatus::Refuted);
    }

    /// Reads tell the size of values; without them nothing is said, nor without a cut.
    #[test]
    fn what_is_not_known_is_not_said() {
        let mut unread = run([Some(0), Some(0)]);
        assert!(lie_elsewhere(&unread));
        unread.phases[2].tally = None;
        assert!(!lie_elsewhere(&unread));
        let mut uncut = run([Some(0), Some(0)]);
        uncut.phases[1].faults.clear();
        assert!(!lie_elsewhere(&uncut));
        // One of four nodes was cut off, which holds a quarter.
        let mut quarter = run([Some(2_500), Some(2_500)]);
        assert!(lie_elsewhere(&quarter));
        let name = |number: u32| format!("n-{number}");
        let node = |number| TestbedNode { name: name(number), ..TestbedNode::default() };
        quarter.testbed.as_mut().unwrap().nodes = (0..4).map(node).collect();
        assert!(!lie_elsewhere(&quarter));
        // Records that came after the last cut need not be on any disk.
        let mut late = run([Some(0), Some(0)]);
        late.phases.remove(0);
        late.phases[0].account[1].writes.as_mut().unwrap().ok = 1_000;
        assert!(!lie_elsewhere(&late));
    }
}

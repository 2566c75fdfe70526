//! Evidence of made-up runs: a table of failures that were once seen, and properties of any run.

mod made_up;
mod properties;

pub(crate) use made_up::made_up;

use std::sync::LazyLock;

use kvdyno_core::evidence::{Claimed, Evidence, EvidenceStatus, OpenReason, ViolationKind};
use kvdyno_core::store::{Durability, Promise};
use kvdyno_core::verify::{OtherWriter, Tally};
use kvdyno_core::workload::fault::{ActionFailure, Lose};

use super::{cut_text, durability_text, of_phase, of_run, of_search};
use crate::result::{
    CapacityResult, CutResult, DeleteAccount, EndCause, FaultAccount, FaultResult, InsertAccount,
    Level, PhaseResult, ProbeResult, ShareRecovery, SideAccount, StoreRun, TestbedNode,
    TestbedResult, ThroughputRecovery, Undecided, Verdict, WriteAccount, mark_dark,
};
use crate::sample;

const SECOND: u64 = 1_000_000_000;

/// A run of one phase, without the parts that take long to copy, since many runs are made up.
static BARE: LazyLock<StoreRun> = LazyLock::new(|| {
    let mut run = sample::two_stores().runs.remove(0);
    run.phases.truncate(1);
    run.evidence.clear();
    let phase = &mut run.phases[0];
    phase.series.truncate(1);
    (phase.series[0].service, phase.series[0].response) = (None, None);
    (phase.workers, phase.errors) = (Vec::new(), Vec::new());
    (phase.resources, phase.course, phase.send_lag) = (None, None, None);
    (phase.linearizability, phase.anomalies) = (None, Vec::new());
    run
});

/// Makes up a run of a store with so many nodes, whose settings promise to survive power loss, without any phase.
fn run(nodes: usize) -> StoreRun {
    let mut run = StoreRun { phases: Vec::new(), ..BARE.clone() };
    run.store.durability = Promise::checked(Durability::PowerLoss);
    let node = |number: usize| TestbedNode { name: name(number), ..TestbedNode::default() };
    let nodes = (0..nodes).map(node).collect();
    run.testbed = Some(TestbedResult { nodes, ..TestbedResult::default() });
    run
}

fn name(number: usize) -> String {
    format!("n-{number}")
}

fn phase(name: &str, faults: Vec<FaultResult>, writes: Option<WriteAccount>) -> PhaseResult {
    let mut phase = BARE.phases[0].clone();
    let tally = Tally { reads: 50_000, judged: 50_000, ..Tally::default() };
    (phase.name, phase.tally) = (name.to_owned(), Some(tally));
    let mut phase = PhaseResult { faults, writes, ..phase };
    mark_dark(&mut phase.faults);
    phase
}

fn account(exact: bool, lost: u64) -> WriteAccount {
    WriteAccount { acknowledged: 48_211, read: 48_211, exact, lost, ..WriteAccount::default() }
}

fn done(what: &str, node: usize, at: u64) -> FaultResult {
    let (began_ns, ended_ns) = (at * SECOND, at * SECOND + SECOND / 10);
    FaultResult {
        what: what.into(),
        node: name(node),
        began_ns,
        ended_ns,
        ..FaultResult::default()
    }
}

/// Makes up cuts of power of the nodes, all nodes at one moment, each repaired after half a second.
fn cuts(count: u64, nodes: &[usize]) -> Vec<FaultResult> {
    let one = |cut: u64| {
        let fault = nodes.iter().map(move |node| done("power", *node, 2 * cut + 1));
        let repair = nodes.iter().map(move |node| done("start again", *node, 2 * cut + 2));
        fault.chain(repair)
    };
    (0..count).flat_map(one).collect()
}

fn power(run: &StoreRun) -> Evidence {
    of_run(run, Claimed::SurvivesPowerLoss).expect("it is promised")
}

/// Makes up a run on one node with one phase of cuts, read back.
fn cut(count: u64, account: WriteAccount) -> StoreRun {
    let mut run = run(1);
    run.phases.push(phase("cut", cuts(count, &[0]), Some(account)));
    run
}

#[test]
fn ten_cuts_without_a_loss_show_how_far_that_is_sure() {
    let run = cut(10, account(true, 0));
    assert_eq!(
        cut_text(&power(&run)),
        "shown by this run: 10 cuts of power, 0 of 48,211 acknowledged writes lost; at most 25.9 % of cuts lose any (95 %)"
    );
    assert_eq!(durability_text(&run), "survives power loss (shown)");
}

/// A cut at which nothing was unsynced tests nothing, and the text says so.
#[test]
fn a_claim_says_in_how_many_cuts_anything_was_at_stake() {
    let mut run = cut(3, account(true, 0));
    assert_eq!(power(&run).exposure.with_stake, None, "an earlier version did not count it");
    let figures = [(0, Some(0)), (4096, None), (0, Some(7))];
    let cuts = run.phases[0].faults.iter_mut().filter(|fault| fault.what == "power");
    for (fault, (in_memory, undecided)) in cuts.zip(figures) {
        let in_memory = Some(in_memory);
        fault.cut = Some(CutResult { in_memory, undecided, ..CutResult::default() });
    }
    let evidence = power(&run);
    assert_eq!((evidence.exposure.moments, evidence.exposure.with_stake), (3, Some(2)));
    let told = cut_text(&evidence);
    assert!(told.ends_with("; 2 of 3 cuts met anything unsynced"), "{told}");
}

/// P3: in `power-cut`, each loaded record is deleted once. An acknowledged delete is an acknowledged write.
#[test]
fn deletes_of_their_own_phase_are_at_stake_and_one_that_is_undone_refutes() {
    let told = |undone| {
        let inserts = Some(InsertAccount { acknowledged: 900, lost: 0 });
        let mut run = cut(3, WriteAccount { inserts, ..account(false, 0) });
        let deletes = Some(DeleteAccount { acknowledged: 100, undone });
        let after = WriteAccount { deletes, resurrected: undone, ..account(false, 0) };
        let later = cut(2, after).phases.remove(0);
        run.phases.push(PhaseResult { name: "deletes".to_owned(), ..later });
        power(&run)
    };
    let kept = told(0);
    assert_eq!((kept.status(), kept.stake()), (EvidenceStatus::Confirmed, 1_000));
    let text = cut_text(&kept);
    assert!(text.starts_with("shown by this run: 5 cuts of power, 0 of 1,000"), "{text}");
    let undone = told(3);
    assert_eq!(undone.status(), EvidenceStatus::Refuted);
    assert!(cut_text(&undone).contains("3 deletes undone"), "{}", cut_text(&undone));
}

/// Later writes over records whose deletes were seen undone take nothing back, whether the store promises anything or not.
#[test]
fn deletes_that_were_seen_undone_stay_so_when_updates_hide_them() {
    for level in [Durability::PowerLoss, Durability::None] {
        let inserts = Some(InsertAccount { acknowledged: 900, lost: 4 });
        let mut run = cut(3, WriteAccount { inserts, ..account(false, 4) });
        run.store.durability.level = level;
        for (name, deletes, resurrected) in [
            ("deletes", Some(DeleteAccount { acknowledged: 100, undone: 9 }), 9),
            ("updates", None, 2),
        ] {
            let after = WriteAccount { deletes, resurrected, ..account(false, 4) };
            let later = cut(2, after).phases.remove(0);
            run.phases.push(PhaseResult { name: name.to_owned(), ..later });
        }
        let evidence = power(&run);
        assert_eq!(evidence.found(ViolationKind::Resurrected), 9, "{level:?}");
        assert_eq!(evidence.found(ViolationKind::Lost), 4, "{level:?}");
    }
}

/// P7: an old snapshot loses old writes, so these are at stake, too; the number of new ones is told beside the stake.
#[test]
fn the_writes_that_came_since_the_last_read_back_are_told_beside_the_stake() {
    let inserts = Some(InsertAccount { acknowledged: 60, lost: 0 });
    let run = cut(3, WriteAccount { inserts, ..account(true, 0) });
    let evidence = power(&run);
    assert_eq!(evidence.exposure.fresh, Some(60));
    let told = cut_text(&evidence);
    assert!(told.contains("0 of 48,211 acknowledged writes lost (60 of them new"), "{told}");
    let unknown = power(&cut(3, account(true, 0)));
    assert!(!cut_text(&unknown).contains("new since"));
}

/// P9: an engine that never flushes its disk survives every cut that leaves the disk's cache.
#[test]
fn a_claim_says_what_became_of_what_disks_had_not_flushed() {
    let told = |loses: [Option<Lose>; 3]| {
        let mut run = cut(3, account(true, 0));
        let cuts = run.phases[0].faults.iter_mut().filter(|fault| fault.what == "power");
        for (fault, lose) in cuts.zip(loses) {
            fault.cut = Some(CutResult { lose, ..CutResult::default() });
        }
        let evidence = power(&run);
        (evidence.exposure.of_caches, cut_text(&evidence))
    };
    let (kept, torn) = (Some(Lose::Unwritten), Some(Lose::Torn));
    for (loses, of_caches, words) in [
        ([kept; 3], Some(0), "; disks kept what they had not flushed"),
        ([torn, kept, torn], Some(2), "; in 2 of these disks lost what they had not flushed"),
        ([torn; 3], Some(3), "; disks lost what they had not flushed"),
        ([torn, None, torn], None, "% of cuts lose any (95 %)"),
    ] {
        let (told, text) = told(loses);
        assert_eq!(told, of_caches);
        assert!(text.ends_with(words), "{text}");
    }
}

/// Violations after a failure of the machine, or of a part of kvdyno, are not blamed on the store.
#[test]
fn a_failure_of_the_machine_accuses_no_store() {
    let mut run = cut(1, account(true, 27_009));
    run.phases[0].tally = Some(Tally { anomalies: [9; 5], ..run.phases[0].tally.clone().unwrap() });
    run.cause = Some(EndCause::Internal);
    let machine = EvidenceStatus::Inconclusive(OpenReason::MachineFailed);
    assert_eq!(power(&run).status(), machine);
    assert_eq!(of_phase(&run, Claimed::ReadsRight, "cut").unwrap().status(), machine);
    // Violations found in earlier phases stay.
    run.phases.push(phase("after", Vec::new(), None));
    assert_eq!(power(&run).status(), EvidenceStatus::Refuted);
}

#[test]
fn what_was_lost_refutes_the_promise_and_only_that() {
    let mut run = cut(1, account(true, 27_009));
    let words = "1 cut of power, 27,009 of 48,211 acknowledged writes lost";
    assert_eq!(cut_text(&power(&run)), format!("refuted by this run: {words}"));
    assert_eq!(durability_text(&run), "survives power loss (refuted)");
    // Redis without a log loses writes, and breaks no promise.
    run.store.durability = Promise::checked(Durability::None);
    assert_eq!(power(&run).status(), EvidenceStatus::Observed);
    assert_eq!(cut_text(&power(&run)), words);
    let lost = of_run(&run, Claimed::NothingLost).unwrap();
    assert_eq!(
        (lost.status(), lost.found(ViolationKind::Lost)),
        (EvidenceStatus::Observed, 27_009)
    );
    // The store promises less: a cut says nothing of the promise, and takes writes that nobody promised to keep.
    run.store.durability = Promise::checked(Durability::ProcessKill);
    assert_eq!(durability_text(&run), "survives process kill (setting read back)");
    assert_eq!(of_run(&run, Claimed::NothingLost).unwrap().status(), EvidenceStatus::Observed);
}

#[test]
fn a_promise_that_nothing_tried_is_as_far_known_as_the_store_says() {
    let mut run = run(1);
    run.phases.push(phase("load", Vec::new(), Some(account(true, 0))));
    assert_eq!(power(&run).status(), EvidenceStatus::NothingToShow);
    assert_eq!(durability_text(&run), "survives power loss (setting read back)");
    run.store.durability = Promise::declared(Durability::PowerLoss);
    assert_eq!(durability_text(&run), "survives power loss (declared)");
    assert_eq!(of_run(&run, Claimed::NothingLost).unwrap().status(), EvidenceStatus::Confirmed);
}

/// P1: the syncs of `etcd:3` do nothing, and one member is cut off at a time.
#[test]
fn a_cut_shows_only_what_was_dark_together() {
    let cut = |together: &[usize]| {
        let mut run = run(3);
        run.phases.push(phase("cut", cuts(5, together), Some(account(true, 0))));
        run
    };
    let one = power(&cut(&[1]));
    assert_eq!((one.status(), one.stake(), one.lit), (EvidenceStatus::NothingToShow, 0, 48_211));
    assert!(
        cut_text(&one).starts_with("5 cuts of power of at most 1 of 3 nodes at one moment, 0 of")
    );
    assert_eq!(power(&cut(&[0, 2])).status(), EvidenceStatus::NothingToShow);
    let all = power(&cut(&[0, 1, 2]));
    assert_eq!((all.status(), all.stake()), (EvidenceStatus::Confirmed, 48_211));
    // Cuts one after the other do not count as together.
    let mut in_turn = run(2);
    // A node whose power stays cut is dark to the end, and a node that was started again is not.
    let mut stays = run(2);
    let faults = [cuts(1, &[0]), cuts(2, &[1])].concat();
    stays.phases.push(phase("cut", [&faults[..1], &faults[4..]].concat(), None));
    stays.phases[0].writes = Some(account(true, 0));
    assert_eq!(power(&stays).exposure.together, 2);
    // A node is dark for as long as its restart takes.
    let restarts = [done("restart", 0, 1), done("restart", 1, 2)].into();
    let mut restarted = run(2);
    restarted.phases.push(phase("restart", restarts, Some(account(true, 0))));
    let killed = of_run(&restarted, Claimed::SurvivesProcessKill).map(|one| one.exposure.together);
    assert_eq!(killed, Some(1));
    in_turn.phases.push(phase("cut", faults[..2].to_vec(), None));
    in_turn.phases.push(phase("later", faults[4..].to_vec(), Some(account(true, 0))));
    assert_eq!(power(&in_turn).exposure.together, 1);
    // Lost writes were evidently at stake all the same.
    let mut lost = cut(&[1]);
    lost.phases[0].writes = Some(account(true, 7));
    assert_eq!((power(&lost).status(), power(&lost).stake()), (EvidenceStatus::Refuted, 7));
    // A node that holds no data has no copy.
    let mut watched = cut(&[0, 1, 2]);
    let sentinel = TestbedNode { role: Some("observer".into()), ..TestbedNode::default() };
    watched.testbed.as_mut().unwrap().nodes.push(sentinel);
    assert_eq!(power(&watched).status(), EvidenceStatus::Confirmed);
}

/// P1: a member that ends by itself bars *shown*; a member that still starts leaves it open.
#[test]
fn a_node_that_does_not_come_back_bars_that_survival_is_shown() {
    let ended = |failure: ActionFailure| {
        let mut run = cut(3, account(true, 0));
        let repair = run.phases[0].faults.last_mut().unwrap();
        (repair.error, repair.failure) = (Some("look at its log".to_owned()), Some(failure));
        let back = of_run(&run, Claimed::CameBack).unwrap();
        (power(&run).status(), back.status(), back.stake())
    };
    let panicked = ended(ActionFailure::ProcessEnded);
    assert_eq!(
        panicked,
        (EvidenceStatus::Inconclusive(OpenReason::RepairFailed), EvidenceStatus::Refuted, 3)
    );
    // A failure of the machine says nothing about the store.
    let machine = EvidenceStatus::Inconclusive(OpenReason::MachineFailed);
    assert_eq!(ended(ActionFailure::Machine), (machine, machine, 3));
    let starting = EvidenceStatus::Inconclusive(OpenReason::StillStarting);
    assert_eq!(ended(ActionFailure::NotReady), (starting, starting, 3));
    assert_eq!(
        of_run(&cut(3, account(true, 0)), Claimed::CameBack).unwrap().status(),
        EvidenceStatus::Confirmed
    );
}

/// P3: corrupt records and undone deletes refute; unknown outcomes are counted apart.
#[test]
fn any_wrong_record_refutes_and_what_is_not_known_is_told_apart() {
    type Change = fn(&mut WriteAccount);
    let changes: [(ViolationKind, Change); 3] = [
        (ViolationKind::Corrupt, |account| account.corrupt = 1),
        (ViolationKind::Resurrected, |account| account.resurrected = 1),
        (ViolationKind::Phantom, |account| account.phantom = 1),
    ];
    for (what, change) in changes {
        let mut wrong = account(true, 0);
        change(&mut wrong);
        wrong.unknown = 5;
        let evidence = power(&cut(4, wrong));
        assert_eq!((evidence.status(), evidence.found(what)), (EvidenceStatus::Refuted, 1));
        assert_eq!((evidence.violated(), evidence.left(), evidence.stake()), (1, 5, 48_211));
        assert!(cut_text(&evidence).contains(", 5 not read back"), "{}", cut_text(&evidence));
    }
    let unknown = WriteAccount { unknown: 5, ..account(true, 0) };
    let open = power(&cut(4, unknown));
    assert_eq!(open.status(), EvidenceStatus::Inconclusive(OpenReason::NotReadBack));
}

/// P4: no store can do anything about a disk that lies, and a lie excuses nothing that was found before it.
#[test]
fn a_lie_of_the_disk_explains_what_came_after_it_and_nothing_before() {
    for lost in [0, 27] {
        let mut run = cut(3, account(true, lost));
        run.phases[0].faults.insert(0, done("disk-lies", 0, 0));
        let evidence = power(&run);
        assert_eq!(evidence.status(), EvidenceStatus::Inconclusive(OpenReason::DiskLied));
        assert_eq!(evidence.found(ViolationKind::Lost), lost);
        let end = "on a disk that did not keep what was synced, which says nothing of the store";
        assert!(cut_text(&evidence).ends_with(end), "{}", cut_text(&evidence));
        assert_eq!(durability_text(&run), "survives power loss (setting read back)");
        run.phases[0].faults[0].error = Some("it could not".into());
        assert_ne!(power(&run).status(), EvidenceStatus::Inconclusive(OpenReason::DiskLied));
    }
    for (lost, expected) in [(27, EvidenceStatus::Refuted), (0, EvidenceStatus::Confirmed)] {
        let mut run = cut(3, account(true, lost));
        let later = [vec![done("disk-lies", 0, 0)], cuts(3, &[0])].concat();
        run.phases.push(phase("lies", later, Some(account(true, 900))));
        let evidence = power(&run);
        assert_eq!((evidence.status(), evidence.found(ViolationKind::Lost)), (expected, lost));
    }
}

/// P5: a repair that could not be done takes no refutation back; a repair that had become meaningless does not count as one.
#[test]
fn what_was_undone_takes_nothing_back() {
    let failed = |what: &str, at| FaultResult { error: Some("no".into()), ..done(what, 0, at) };
    let mut lost = cut(3, account(true, 5));
    lost.phases[0].faults.push(failed("reconnect", 9));
    lost.phases[0].faults.push(failed("power", 9));
    assert_eq!(power(&lost).status(), EvidenceStatus::Refuted);
    let mut honest = cut(3, account(true, 0));
    honest.phases[0].faults.push(failed("resume", 9));
    assert_eq!(power(&honest).status(), EvidenceStatus::Confirmed, "the cut had ended it");
    let mut undone = cut(3, account(true, 0));
    undone.phases[0].faults.push(failed("power", 9));
    assert_eq!(power(&undone).status(), EvidenceStatus::Inconclusive(OpenReason::FaultNotDone));
}

/// P7: each account has its own stake and its own cuts; the worst account is told, whole.
#[test]
fn two_accounts_are_never_mixed() {
    let mut run = cut(6, WriteAccount { acknowledged: 10_360, ..account(true, 42) });
    let more = WriteAccount { acknowledged: 12_636, ..account(false, 50) };
    run.phases.push(phase("more", cuts(2, &[0]), Some(more)));
    let evidence = power(&run);
    let told = (evidence.exposure.moments, evidence.found(ViolationKind::Lost), evidence.stake());
    assert_eq!(told, (8, 50, 12_636));
    // An account that cannot see all writes takes nothing from one that could.
    run.phases[0].writes = Some(account(true, 0));
    run.phases[1].writes = Some(account(false, 0));
    let evidence = power(&run);
    assert_eq!((evidence.status(), evidence.exposure.moments), (EvidenceStatus::Confirmed, 6));
}

/// R1: a text once read "3 cuts of power, 3,851 of 3,253 acknowledged writes lost".
#[test]
fn lost_is_a_part_of_the_stake() {
    let told = WriteAccount { acknowledged: 3_253, read: 9_000, ..account(true, 3_851) };
    let evidence = power(&cut(3, told));
    assert_eq!((evidence.found(ViolationKind::Lost), evidence.stake()), (3_851, 3_851));
}

/// In `standard-2` earlier phases write over records, and a kill may take some. The inserts of the phase with the cuts
/// are counted apart.
#[test]
fn inserts_of_their_own_phase_show_what_they_show_whatever_was_written_over_before() {
    let own = |acknowledged, lost| Some(InsertAccount { acknowledged, lost });
    let cut = |lost, inserts| {
        let mut run = cut(10, WriteAccount { inserts, ..account(false, lost) });
        let killed = vec![done("kill", 0, 1), done("start again", 0, 2)];
        run.phases.insert(0, phase("killed", killed, Some(account(false, 0))));
        run
    };
    assert_eq!(
        cut_text(&power(&cut(0, own(900, 0)))),
        "shown by this run: 10 cuts of power, 0 of 900 acknowledged writes lost; at most 25.9 % of cuts lose any (95 %)"
    );
    let both = cut_text(&power(&cut(7, own(900, 5))));
    assert!(
        both.starts_with("refuted by this run: 10 cuts of power, at least 7 of 48,211"),
        "{both}"
    );
    // A phase that wrote over its own writes shows nothing, and nothing was at stake where nothing was written.
    let hidden = power(&cut(0, None));
    assert_eq!(hidden.status(), EvidenceStatus::Inconclusive(OpenReason::Overwritten));
    assert_ne!(power(&cut(0, own(0, 0))).status(), EvidenceStatus::Confirmed);
    // Losses by an earlier kill are not blamed on a cut, and are not passed over either.
    let mut killed = cut(3, own(900, 0));
    killed.phases[0].writes = Some(account(false, 3));
    let text = cut_text(&power(&killed));
    assert!(text.contains("3 lost before the first cut; not decided"), "{text}");
    assert_eq!(durability_text(&killed), "survives power loss (refuted)", "by the kill");
}

/// S6: a phase without reads does not pass for one whose reads were right.
#[test]
fn every_read_was_right_needs_a_read() {
    let mut run = run(1);
    run.phases.push(phase("p", Vec::new(), None));
    let status = |run: &StoreRun| of_phase(run, Claimed::ReadsRight, "p").unwrap().status();
    assert_eq!(status(&run), EvidenceStatus::Confirmed);
    run.phases[0].tally = Some(Tally::default());
    assert_eq!(status(&run), EvidenceStatus::NothingToShow);
    let other = Tally { reads: 9, judged: 2, other_run: 7, ..Tally::default() };
    run.phases[0].tally = Some(other);
    assert_eq!(status(&run), EvidenceStatus::Inconclusive(OpenReason::OtherRun));
    let by_stamp =
        |stamp_only| Tally { reads: 9, judged: 9 - stamp_only, stamp_only, ..Tally::default() };
    run.phases[0].tally = Some(by_stamp(4));
    assert_eq!(of_phase(&run, Claimed::ReadsRight, "p").unwrap().stake(), 5);
    run.phases[0].tally = Some(by_stamp(9));
    assert_eq!(status(&run), EvidenceStatus::NothingToShow, "no version was judged");
    run.phases[0].tally = None;
    assert_eq!(of_phase(&run, Claimed::ReadsRight, "p"), None, "verification was off");
}

/// Another run excuses anomalies that it may have written, and none that it cannot have written.
#[test]
fn another_run_is_no_excuse_for_old_values_of_this_one() {
    let told = |of_no_other| {
        let mut run = run(1);
        let tally = Tally {
            reads: 90,
            judged: 90,
            other_writers: vec![OtherWriter { session: 7, reads: 5 }],
            of_no_other,
            anomalies: [0, 0, 0, 8, 1],
            ..Tally::default()
        };
        run.phases.push(PhaseResult { tally: Some(tally), ..phase("p", Vec::new(), None) });
        of_phase(&run, Claimed::ReadsRight, "p").expect("reads were judged")
    };
    let excused = told(0);
    assert_eq!(excused.status(), EvidenceStatus::Inconclusive(OpenReason::OtherRun));
    let refuted = told(3);
    assert_eq!((refuted.status(), refuted.violated()), (EvidenceStatus::Refuted, 3));
    assert_eq!(refuted.stake(), excused.stake());
}

/// Makes up a fault after which throughput was as before at once, or after so long, with the longest stretch without
/// success, ns.
fn cost(after_ns: Option<u64>, unavailable_ns: Option<u64>) -> FaultAccount {
    let shares = vec![ShareRecovery { share: 1.0, after_ns }];
    let throughput = Some(ThroughputRecovery { shares, ..ThroughputRecovery::default() });
    let writes = Some(SideAccount { unavailable_ns, throughput, ..SideAccount::default() });
    FaultAccount { what: "kill".to_owned(), writes, ..FaultAccount::default() }
}

/// No store promises to be available all the time: downtime is told, and refutes nothing.
#[test]
fn downtime_is_counted_fault_by_fault_and_what_is_not_known_is_no_pass() {
    let mut run = run(1);
    run.phases.push(phase("p", vec![done("kill", 0, 1), done("start again", 0, 2)], None));
    let told = |run: &StoreRun| {
        let down = of_phase(run, Claimed::NoDowntime, "p").unwrap();
        assert_eq!(down.status(), EvidenceStatus::Observed);
        (down.kept, down.found(ViolationKind::Down), down.left())
    };
    let mut undecided = cost(Some(SECOND), Some(SECOND));
    let throughput = undecided.writes.as_mut().unwrap().throughput.as_mut().unwrap();
    throughput.undecided = Some(Undecided::TooVaried);
    let repair = FaultAccount { what: "start again".to_owned(), ..cost(None, Some(SECOND)) };
    run.phases[0].account = vec![
        cost(Some(0), Some(SECOND / 100)),
        cost(Some(SECOND), Some(SECOND)),
        cost(None, None),
        // Operations are slower, and never without success.
        cost(Some(SECOND), Some(SECOND / 100)),
        undecided,
        repair,
    ];
    assert_eq!(told(&run), (2, 1, 2));
    // A stretch that was usual before does not count against the fault.
    let side = run.phases[0].account[1].writes.as_mut().unwrap();
    side.throughput.as_mut().unwrap().usual_dip_ns = 2 * SECOND;
    assert_eq!(told(&run), (3, 0, 2));
    run.phases[0].faults.clear();
    assert_eq!(of_phase(&run, Claimed::NoDowntime, "p"), None);
}

fn probe(purpose: &str, rate: f64, seen: &str) -> ProbeResult {
    let [phase, purpose] = ["run@1", purpose].map(str::to_owned);
    let (asked, seen) = (Some(rate), Some(seen.to_owned()));
    ProbeResult { phase, purpose, asked, seen, ..ProbeResult::default() }
}

/// Makes up a search by its rates (carried, missed) and the outcomes of its probes, beside the phase of its confirmation.
fn searched(rates: [Option<f64>; 2], probes: &[(&str, f64, &str)]) -> StoreRun {
    let mut run = run(1);
    run.phases.push(phase("run@1", Vec::new(), None));
    let probes = probes.iter().map(|(purpose, rate, seen)| probe(purpose, *rate, seen)).collect();
    let [carried, missed] = rates;
    let phase = "run".to_owned();
    run.capacity = vec![CapacityResult { phase, carried, missed, probes, ..Default::default() }];
    run
}

#[test]
fn a_rate_is_shown_by_the_run_that_confirmed_it_and_a_limit_by_a_clear_miss() {
    use EvidenceStatus::{Confirmed, Inconclusive, NothingToShow, Refuted};
    let status = |run: &StoreRun| of_search(run, &run.capacity[0]).map(|one| one.status());
    let limited = Inconclusive(OpenReason::ClientLimited);
    let (low, high) = (Some(100.0), Some(105.0));
    let confirmed = ("confirm", 100.0, "meets");
    let (misses, unclear) = (("bracket", 105.0, "misses"), ("again", 105.0, "unclear"));
    let found = searched([low, high], &[confirmed, misses, misses, unclear]);
    assert_eq!(status(&found), [Confirmed, Confirmed]);
    assert_eq!(of_search(&found, &found.capacity[0])[0].stake(), found.phases[0].ok());
    for (rates, probes, expected) in [
        // Only the store may be the cause.
        ([low, high], &[confirmed, unclear, unclear][..], [Confirmed, limited]),
        ([low, None], &[confirmed], [Confirmed, NothingToShow]),
        // A rate that only a short probe met is not confirmed.
        ([low, high], &[("bisect", 100.0, "meets"), misses], [NothingToShow, Confirmed]),
        ([None, high], &[misses, misses], [Refuted, NothingToShow]),
        ([None, high], &[unclear, misses], [limited, NothingToShow]),
        (
            [None, high],
            &[("bisect", 90.0, "meets"), misses],
            [Inconclusive(OpenReason::NotKnown), NothingToShow],
        ),
        ([None, None], &[], [Inconclusive(OpenReason::CutShort), NothingToShow]),
    ] {
        assert_eq!(status(&searched(rates, probes)), expected, "{rates:?} {probes:?}");
    }
    let mut spoilt = found.clone();
    spoilt.capacity[0].client_limited = Some("the client was at its limit".to_owned());
    assert_eq!(status(&spoilt), [Confirmed, limited]);
    // An invalid measurement shows nothing, and refutes nothing.
    let invalid = |mut run: StoreRun| {
        let reason = crate::result::Reason { level: Level::Invalid, ..sample::reason(0.5, 0.1) };
        let phase = Some("run@1".to_owned());
        run.verdict = Some(Verdict::of(vec![crate::result::Reason { phase, ..reason }]));
        status(&run)
    };
    let machine = Inconclusive(OpenReason::MachineFailed);
    assert_eq!(invalid(found), [machine, machine]);
    let missed = searched([None, high], &[misses, misses]);
    assert_eq!(invalid(missed), [machine, NothingToShow]);
}

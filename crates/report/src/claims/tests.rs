//! Claims against results whose figures are known.

use kvdyno_core::suite::{Overrides, Suite};
use kvdyno_core::verdict::ClaimStatus::{Confirmed, Inconclusive, Refuted};

use super::*;
use crate::result::{
    FaultAccount, FaultResult, FigureResult, LatencyRecovery, ShareRecovery, SideAccount, Status,
    StretchResult, ThroughputRecovery, Unavailable, WriteAccount,
};
use crate::sample;

const SECOND: u64 = 1_000_000_000;

/// Plans a run with a fault in its second phase, and the claim.
fn plan(run: &StoreRun, holds: &str) -> Plan {
    let names: Vec<&str> = run.phases.iter().map(|phase| phase.name.as_str()).collect();
    let phases: String = names
        .iter()
        .map(|name| {
            let fault = if *name == names[1] { "[[phase.fault]]\ndo = \"kill\"\n" } else { "" };
            format!("[[phase]]\nname = \"{name}\"\nmix = \"get=50,update=50\"\nduration = \"9s\"\n{fault}")
        })
        .collect();
    let text = format!(
        "name = \"t\"\nrecords = 9\nwarmup = false\n{phases}[[claim]]\nsays = \"it is so\"\nholds = \
         \"{holds}\"\n"
    );
    Suite::parse("t.toml", &text).unwrap().plan(&Overrides::default()).unwrap()
}

/// Judges the claim for the sample's first store, with a fault in its second phase.
fn judged(holds: &str, change: impl FnOnce(&mut StoreRun)) -> ClaimResult {
    let mut run = sample::two_stores().runs.remove(0);
    let plan = plan(&run, holds);
    let phase = &mut run.phases[1];
    phase.faults = vec![FaultResult { what: "kill".to_owned(), ..FaultResult::default() }];
    change(&mut run);
    judge(&plan, &run).remove(0)
}

#[test]
fn a_phase_that_goes_on_has_the_figures_that_it_will_be_judged_by() {
    let run = sample::two_stores().runs.remove(0);
    let name = &run.phases[1].name;
    let holds = format!("rate in {name} > 1M/s, p50 in {name} < 1h, acked_lost in {name} == 0");
    let plan = plan(&run, &holds);
    let judged = judged(&holds, |run| run.phases[1].unstarted = None);
    let planned = |name: &str| plan.phases.iter().find(|phase| phase.name == name).unwrap();
    let phase = &run.phases[1];
    let load = || (phase.series.clone(), phase.wall_ns);
    let so_far = so_far(&plan, &run, planned(name), load);
    let stands: Vec<_> =
        so_far.iter().map(|(_, one)| (one.measured.as_str(), one.standing)).collect();
    let [rate, p50, lost] = &judged.conditions[..] else { panic!("{judged:?}") };
    assert_eq!(stands[0], (rate.measured.as_str(), Refuted));
    assert_eq!(stands[1], (p50.measured.as_str(), Confirmed));
    assert_eq!(stands[2], ("", Inconclusive));
    assert_eq!(so_far[2].1.why, "known when the phase is over");
    assert!(lost.why != so_far[2].1.why && so_far[0].0 == "it is so");
    // Nothing is added up for a phase that no claim is about.
    let others = super::so_far(&plan, &run, planned(&run.phases[0].name), || unreachable!());
    assert!(others.is_empty());
}

fn standing(holds: &str, change: impl FnOnce(&mut StoreRun)) -> ClaimStatus {
    judged(holds, change).standing
}

#[test]
fn conditions_without_a_phase_are_about_every_measured_one() {
    let all = judged("operations > 0", |_| {});
    let run = sample::two_stores().runs.remove(0);
    let measured: Vec<_> = run.phases.iter().filter(|phase| !phase.prepares()).collect();
    assert_eq!(all.conditions.len(), measured.len());
    assert_eq!(all.standing, Confirmed);
    let one = judged(&format!("rate in {} > 1M/s", measured[0].name), |_| {});
    assert_eq!((one.conditions.len(), one.standing), (1, Refuted));
    assert!(one.conditions[0].measured.ends_with("/s"), "{one:?}");
}

#[test]
fn what_failed_took_for_ever() {
    let name = |run: &StoreRun| run.phases[1].name.clone();
    let phase = name(&sample::two_stores().runs.remove(0));
    let calm = |run: &mut StoreRun| {
        run.phases[1].series.iter_mut().for_each(|s| (s.failed, s.indeterminate) = (0, 0));
        run.phases[1].unstarted = None;
    };
    let holds = format!("p99 in {phase} < 1h, max in {phase} < 1h");
    assert_eq!(standing(&holds, calm), Confirmed);
    let failing = judged(&holds, |run| {
        calm(run);
        let many = run.phases[1].series[0].ok;
        run.phases[1].series[0].failed = many;
    });
    assert_eq!(failing.standing, Refuted);
    assert!(failing.conditions[0].measured.starts_with("never"), "{failing:?}");
}

#[test]
fn loss_is_judged_by_what_was_read_back() {
    let back = |lost, exact, unknown| {
        move |run: &mut StoreRun| {
            let writes =
                WriteAccount { acknowledged: 9, lost, exact, unknown, ..Default::default() };
            run.phases.last_mut().unwrap().writes = Some(writes);
        }
    };
    let none = judged("acked_lost == 0", |_| {});
    assert_eq!(
        (none.standing, none.conditions[0].why.as_str()),
        (Inconclusive, "no phase was read back")
    );
    assert_eq!(standing("acked_lost == 0", back(0, true, 0)), Confirmed);
    assert_eq!(standing("acked_lost == 0", back(3, true, 0)), Refuted);
    assert_eq!(standing("acked_lost == 0", back(3, false, 0)), Refuted);
    assert_eq!(standing("acked_lost == 0", back(0, false, 0)), Inconclusive, "it may be more");
    assert_eq!(standing("acked_lost == 0", back(0, true, 1)), Inconclusive, "one is unknown");
    assert_eq!(standing("acked == 9", back(0, true, 0)), Confirmed);
    let forgets = |run: &mut StoreRun| {
        back(0, true, 0)(run);
        run.store.capabilities.may_forget = true;
    };
    assert_eq!(standing("acked_lost == 0", forgets), Inconclusive);
    // The first phase's writes are read back after a later phase.
    let first = sample::two_stores().runs[0].phases[0].name.clone();
    assert_eq!(standing(&format!("acked_lost in {first} == 0"), back(0, true, 0)), Confirmed);
}

/// Makes up the return of 95 % of the throughput within a time that was watched.
fn to_95(after_ns: Option<u64>, watched_ns: u64) -> Option<ThroughputRecovery> {
    let shares = vec![ShareRecovery { share: 0.95, after_ns }];
    Some(ThroughputRecovery { shares, watched_ns, ..ThroughputRecovery::default() })
}

fn side() -> SideAccount {
    SideAccount {
        ok: 1,
        first_error_ns: Some(5),
        last_error_ns: Some(2 * SECOND),
        former_rate: Some(1_000.0),
        throughput: to_95(Some(3 * SECOND), 10 * SECOND),
        former_p99_ns: Some(1.0),
        latency: Some(LatencyRecovery { watched_ns: 10 * SECOND, ..LatencyRecovery::default() }),
        ..SideAccount::default()
    }
}

#[test]
fn the_worst_fault_decides() {
    let phase = sample::two_stores().runs[0].phases[1].name.clone();
    let account = |run: &mut StoreRun| {
        run.verdict = None;
        let quick = SideAccount { throughput: to_95(Some(0), 10 * SECOND), ..side() };
        let fault = |reads, writes| FaultAccount {
            until_ns: 10 * SECOND,
            reads: Some(reads),
            writes: Some(writes),
            ..FaultAccount::default()
        };
        run.phases[1].account = vec![fault(quick.clone(), side()), fault(quick.clone(), quick)];
        run.phases[1].unavailable = Some(Unavailable {
            all: StretchResult { from_ns: 0, length_ns: SECOND },
            reads: None,
            writes: Some(StretchResult { from_ns: 0, length_ns: 2 * SECOND }),
        });
    };
    for (holds, expected) in [
        ("recovers in PHASE to 95% within 3s", Confirmed),
        ("recovers in PHASE to 95% within 2s", Refuted),
        ("recovers(reads) in PHASE to 95% within 1s", Confirmed),
        ("recovers in PHASE to 70% within 9s", Inconclusive),
        ("calm in PHASE < 9s", Refuted),
        ("calm in PHASE < 11s", Inconclusive),
        ("last_error in PHASE <= 2s", Confirmed),
        ("first_error in PHASE < 1ms", Confirmed),
        ("unavailable in PHASE < 2s", Confirmed),
        ("unavailable(writes) in PHASE < 2s", Refuted),
        ("unavailable(reads) in PHASE < 2s", Inconclusive),
        ("unavailable(get) in PHASE < 2s", Inconclusive),
    ] {
        let claim = judged(&holds.replace("PHASE", &phase), account);
        assert_eq!(claim.standing, expected, "{holds}: {claim:?}");
        assert_eq!(expected == Inconclusive, !claim.conditions[0].why.is_empty(), "{claim:?}");
    }
    // A fault that was soon followed by the next one may have cost more than was seen.
    let cut_short = |run: &mut StoreRun| {
        account(run);
        let open = SideAccount { throughput: to_95(None, SECOND), ..side() };
        run.phases[1].account.push(FaultAccount {
            until_ns: SECOND,
            reads: Some(open),
            ..FaultAccount::default()
        });
    };
    for (within, expected) in [("9s", Inconclusive), ("2s", Refuted)] {
        let holds = format!("recovers in {phase} to 95% within {within}");
        let claim = judged(&holds, cut_short);
        assert_eq!(claim.standing, expected, "{claim:?}");
        assert_eq!(claim.conditions[0].measured, "at least 3.00 s");
    }
    let claim = judged(&format!("errors in {phase} >= 0"), account);
    let reach = "as far as kill: a process that ends proves nothing about a loss of power";
    assert_eq!(claim.reach, reach);
    let twice = |run: &mut StoreRun| {
        account(run);
        let fault = &mut run.phases[1].faults[0];
        (fault.node, fault.began_ns) = ("redis-1".to_owned(), 7_300_000_000);
        fault.not_whole = Some("redis-2 has no link".to_owned());
    };
    let claim = judged(&format!("errors in {phase} >= 0"), twice);
    let second = "a second failure before copies were whole: kill of redis-1 at 7.3 s";
    assert_eq!(claim.reach, format!("{reach}; {second}"));
}

#[test]
fn a_cut_of_power_reaches_as_far_as_its_disk() {
    let phase = sample::two_stores().runs[0].phases[1].name.clone();
    let claim = judged(&format!("operations in {phase} > 0"), |run| {
        let power = FaultResult { what: "power".to_owned(), ..FaultResult::default() };
        run.phases[1].faults.push(power);
    });
    let reach = "as far as kill, power: a cut of power with a disk that honours flushes";
    assert!(claim.reach.starts_with(reach), "{}", claim.reach);
    let claim = judged(&format!("operations in {phase} > 0"), |run| {
        for what in ["disk-lies", "power"] {
            let fault = FaultResult { what: what.to_owned(), ..FaultResult::default() };
            run.phases[1].faults.push(fault);
        }
    });
    let reach = "as far as kill, disk-lies, power: the disk did not keep what was synced";
    assert!(claim.reach.starts_with(reach), "{}", claim.reach);
}

#[test]
fn a_fault_that_was_not_done_confirms_nothing() {
    let phase = sample::two_stores().runs[0].phases[1].name.clone();
    let holds = format!("operations in {phase} > 0");
    assert_eq!(standing(&holds, |_| {}), Confirmed);
    let refused = judged(&holds, |run| {
        run.phases[1].faults[0].error = Some("no node is a primary now".to_owned());
    });
    assert_eq!(refused.standing, Inconclusive);
    assert!(refused.conditions[0].why.contains("no node is a primary now"), "{refused:?}");
    assert_eq!(standing(&holds, |run| run.phases[1].faults.clear()), Inconclusive);
    let gone = judged(&holds, |run| run.phases.truncate(1));
    assert!(gone.conditions[0].why.contains("did not come to its end"), "{gone:?}");
    let cut = |run: &mut StoreRun| run.phases[1].stopped = StopReason::StoreLost;
    assert_eq!(standing(&holds, cut), Inconclusive);
}

#[test]
fn a_claim_about_a_phase_that_never_began_reaches_no_fault_and_says_where_faults_were() {
    let last = sample::two_stores().runs[0].phases.last().unwrap().name.clone();
    let holds = format!("errors in {last} == 0");
    let cut_short = |run: &mut StoreRun| {
        run.phases.truncate(2);
        run.status = Status::Interrupted;
    };
    let claim = judged(&holds, cut_short);
    let reach =
        "no fault was injected in the phases that it asks about: it says nothing of failures";
    assert_eq!((claim.standing, &claim.reach[..]), (Inconclusive, reach));
    assert!(claim.conditions[0].why.contains("did not come to its end"), "{claim:?}");
    // A kill that was not done, and a repair, are no faults of any phase.
    for idle in [
        FaultResult { error: Some("no".to_owned()), ..FaultResult::default() },
        FaultResult { what: "resume".to_owned(), ..FaultResult::default() },
    ] {
        let claim = judged(&holds, |run| {
            cut_short(run);
            run.phases[1].faults = vec![idle.clone()];
        });
        assert_eq!(claim.reach, "no fault was injected: it says nothing of failures", "{idle:?}");
    }
}

#[test]
fn what_drivers_noticed_can_be_claimed() {
    let phase = sample::two_stores().runs[0].phases[1].name.clone();
    let noticed = |run: &mut StoreRun| {
        run.phases[1].figures = vec![FigureResult {
            name: "hit ratio".to_owned(),
            value: Some(0.932),
            unit: kvdyno_core::store::FigureUnit::Share,
            detail: String::new(),
            warning: None,
        }];
    };
    assert_eq!(standing(&format!("figure(hit ratio) in {phase} > 90%"), noticed), Confirmed);
    let unknown = judged(&format!("figure(hits) in {phase} > 90%"), noticed);
    assert!(unknown.conditions[0].why.contains("hit ratio"), "{unknown:?}");
    let about = |store: &str| {
        let text = format!(
            "name=\"t\"\nrecords=1\n[[phase]]\nname=\"p\"\nmix=\"get\"\nduration=\"1s\"\n[[claim]]\nsays=\"x\"\nholds=\"errors == 0\"\nstore=\"{store}\""
        );
        let plan = Suite::parse("t", &text).unwrap().plan(&Overrides::default()).unwrap();
        judge(&plan, &sample::two_stores().runs[0]).len()
    };
    let store = &sample::two_stores().runs[0].store;
    let scheme = store.url.split(':').next().unwrap();
    assert_eq!((about("nosuch"), about(&store.name), about(scheme)), (0, 1, 1));
}

#[test]
fn a_cut_of_disks_that_hold_nothing_leaves_what_is_claimed_of_it_open() {
    let name = sample::two_stores().runs[0].phases[1].name.clone();
    let cut = |written: u64| {
        move |run: &mut StoreRun| {
            let tally = run.phases[1].tally.get_or_insert_default();
            (tally.records, tally.bytes_checked, tally.writes_acknowledged) =
                (1_000, 100_000, 1_000);
            run.phases[1].series[0].kind = kvdyno_core::workload::Kind::Insert;
            run.phases[1].series[0].records = 1_000;
            let cut =
                Some(crate::result::CutResult { written: Some(written), ..Default::default() });
            let power = FaultResult { what: "power".to_owned(), cut, ..FaultResult::default() };
            run.phases[1].faults.push(power);
        }
    };
    let claim = format!("corrupt in {name} == 0");
    assert_eq!(standing(&claim, cut(1 << 30)), Confirmed);
    let open = judged(&claim, cut(0));
    assert_eq!(open.standing, Inconclusive);
    assert!(open.conditions[0].why.contains("lies elsewhere"), "{open:?}");
    assert_eq!(standing(&format!("operations in {name} > 0"), cut(0)), Confirmed);
}

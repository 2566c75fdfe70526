//! Gets that find nothing, told apart from those that do, for every kind that gets.

use hdrhistogram::Histogram;
use kvdyno_core::measure::{KindTotal, PhaseMeasure};
use kvdyno_core::workload::fault::{FaultPlan, Harm, NodeFault, NodeSelector};

use super::*;

const MIX: [(Kind, u16); 7] = [
    (Kind::Get, 300),
    (Kind::GetAbsent, 100),
    (Kind::GetBatch, 100),
    (Kind::PutGet, 100),
    (Kind::ReadModifyWrite, 100),
    (Kind::Delete, 100),
    (Kind::Update, 200),
];

/// Runs a phase against a store that has forgotten half of its records. There is one client, so that
/// no read is early and all that was put is there.
fn forgotten(may_forget: bool, threading: Threading, plan: PhasePlan) -> PhaseMeasure {
    let bench = Bench::loaded(threading, Behaviour { may_forget, ..Behaviour::default() });
    bench.store.0.forget();
    bench.run(plan).0
}

fn mixed(arrival: Arrival) -> PhasePlan {
    let requests = Some(5_000);
    phase(vec![GroupPlan { arrival, requests, ..group(&MIX, 1) }], None)
}

fn of(measure: &PhaseMeasure, kind: Kind) -> &KindTotal {
    &measure.series.iter().find(|(series, _)| series.kind == kind).expect("its series").1
}

#[test]
fn every_kind_of_get_has_its_hits_and_misses_apart() {
    let arrivals = [Arrival::Closed, Arrival::Constant { rate: 20_000.0 }];
    for (arrival, threading) in
        arrivals.into_iter().zip([Threading::InProcess, Threading::Networked])
    {
        let measure = forgotten(true, threading, mixed(arrival.clone()));
        for (_, series) in &measure.series {
            let length = |h: &Option<Histogram<u64>>| h.as_ref().map_or(0, |h| h.len());
            let (hits, misses) = (length(&series.service), length(&series.missed_service));
            assert_eq!((hits + misses, hits), (series.ok, series.found()), "{series:?}");
            let responses = length(&series.response) + length(&series.missed_response);
            assert_eq!(responses, if arrival.is_open() { series.ok } else { 0 });
        }
        for kind in [Kind::Get, Kind::ReadModifyWrite] {
            let gets = of(&measure, kind);
            assert_eq!((gets.missing, gets.ok - gets.found()), (gets.missed, gets.missed));
            assert!(gets.missed > 0 && gets.missed < gets.ok, "{kind:?}: {gets:?}");
        }
        let batches = of(&measure, Kind::GetBatch);
        assert_eq!(batches.records, 10 * batches.ok);
        assert!(batches.missed > 0 && batches.missed < batches.records, "{batches:?}");
        // What has just been put is there; what is asked for because it is absent is no miss, nor is
        // what a delete did not find.
        assert_eq!(of(&measure, Kind::PutGet).missed, 0);
        let absent = of(&measure, Kind::GetAbsent);
        assert_eq!((absent.missed, absent.missing, absent.found()), (0, absent.ok, absent.ok));
        let deletes = of(&measure, Kind::Delete);
        assert!(deletes.missing > 0 && deletes.missed == 0 && deletes.found() == deletes.ok);
    }
}

/// The ledger's sum agrees with the answers, whatever the store promises.
#[test]
fn misses_are_those_that_the_ledger_expects_to_be_hits() {
    for may_forget in [true, false] {
        let measure = forgotten(may_forget, Threading::InProcess, mixed(Arrival::Closed));
        let tally = &measure.tally;
        let answered: u64 = measure.series.iter().map(|(_, series)| series.missed).sum();
        let legal = tally.legal_misses - of(&measure, Kind::GetAbsent).ok;
        assert!(legal > 0, "what was deleted is no miss: {tally:?}");
        assert_eq!(answered, tally.missed() + legal + tally.early, "{tally:?}");
        let (unexpected, wrong) = (tally.unexpected_misses, tally.wrong_misses);
        assert_eq!((unexpected > 0, wrong > 0), (may_forget, !may_forget), "{tally:?}");
        assert_eq!(tally.illegal() > 0, !may_forget);
        assert!(measure.missed_at.is_empty(), "nobody asks when");
    }
}

#[test]
fn a_phase_with_faults_tells_when_records_were_missed() {
    let mut plan = mixed(Arrival::Closed);
    plan.faults.push(FaultPlan {
        harm: Harm::ToNodes { fault: NodeFault::Kill, aim: NodeSelector::All, count: None },
        when: None,
        at: Duration::from_secs(1),
        repair: None,
        every: None,
        spread: None,
    });
    let measure = forgotten(true, Threading::InProcess, plan);
    let timed: u64 = measure.missed_at.iter().map(|(_, count)| count).sum();
    assert_eq!(timed, measure.tally.missed());
    assert!(measure.missed_at.is_sorted_by(|a, b| a.0 < b.0));
    let within = |at: u64| at + 20_000_000 > measure.start && at <= measure.end;
    assert!(measure.missed_at.iter().all(|(at, _)| within(*at)));
    let slots = measure.timeline.slots.iter().flatten();
    let (hits, misses) = slots.fold((0, 0), |sum, s| (sum.0 + s.hits, sum.1 + s.misses));
    let gets = measure.series.iter().filter(|(series, _)| series.kind.gets());
    let (records, missed) = gets.fold((0, 0), |sum, (_, m)| (sum.0 + m.records, sum.1 + m.missed));
    assert_eq!((hits, misses), (records - missed, missed));
}

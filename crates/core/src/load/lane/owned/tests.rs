//! Lanes of one load that several processes carry: together they do each operation once.

use std::sync::Arc;

use super::*;
use crate::load::rate_orders::RateOrders;
use crate::store::OperationId;
use crate::workload::{
    Arrival, Dataset, Distribution, GroupPlan, KeyForm, KeyModel, Kind, Part, RateChange, Workload,
    YcsbLaw,
};

const SECOND: Nanos = 1_000_000_000;

fn group(mix: &[(Kind, u16)], keys: Distribution) -> GroupPlan {
    let plan = GroupPlan::plain("test", mix, 2_000);
    GroupPlan { keys, requests: Some(10_000), ..plan }
}

fn lanes(plan: &GroupPlan, ownership: &Ownership, count: u64) -> Vec<Lane> {
    let key = KeyModel { form: KeyForm::Decimal, length: 16 };
    let dataset = Dataset { id: 3, session: 1, key, fields: 1, capacity: 1_000_000 };
    let workload = Workload::new(plan, &dataset, Part::WHOLE).unwrap();
    let first = OperationId { phase: 0, group: 0, id: 0 };
    let lane = |number| {
        let rate = Arc::new(RateOrders::of(&plan.changes));
        let dues = Dues::new(&plan.arrival, rate, 0, number, count, plan.seed);
        let lane = Lane::new(0, first, Arc::new(plan.clone()), workload.clone(), dues);
        lane.of_owner(ownership.clone(), || Nanos::MAX)
    };
    (0..count).map(lane).collect()
}

/// Every (id, kind, record) that a process carries out.
fn carried_out(plan: &GroupPlan, ownership: &Ownership, count: u64) -> Vec<(u64, Kind, u64)> {
    let mut all = Vec::new();
    for lane in lanes(plan, ownership, count) {
        while let Some(issued) = lane.claim(0, Nanos::MAX) {
            let operation = issued.operation;
            let one_of = |i| (issued.id, operation.kind, lane.batch_record(&issued, i));
            let batch =
                matches!(operation.kind, Kind::GetBatch | Kind::PutBatch | Kind::InsertBatch);
            let records = (0..if batch { operation.count } else { 1 }).map(one_of);
            all.extend(records.filter(|(_, _, record)| lane.owns(*record)));
        }
        if !ownership.is_all() {
            assert_eq!(lane.issued(), 10_000, "all its ids are passed");
        }
    }
    all
}

fn distributions() -> [Distribution; 6] {
    [
        Distribution::Uniform,
        Distribution::Sequential,
        Distribution::Zipfian { exponent: 0.99, scrambled: true },
        Distribution::Zipfian { exponent: 1.3, scrambled: false },
        Distribution::Latest { exponent: 0.99 },
        Distribution::Ycsb { law: YcsbLaw::Latest, records: 2_000 },
    ]
}

/// One, two and five processes carry out the same operations, each exactly once, whatever the number of
/// their workers.
#[test]
fn owners_together_do_exactly_what_one_process_does() {
    let singles = [
        (Kind::Get, 400),
        (Kind::Insert, 150),
        (Kind::Update, 150),
        (Kind::ReadModifyWrite, 100),
        (Kind::PutGet, 50),
        (Kind::Delete, 50),
        (Kind::Scan, 50),
        (Kind::GetAbsent, 50),
    ];
    let batches = [(Kind::GetBatch, 400), (Kind::PutBatch, 300), (Kind::InsertBatch, 300)];
    for mix in [singles.as_slice(), &batches, &[(Kind::Insert, 1_000)]] {
        for keys in distributions() {
            let plan = group(mix, keys);
            let mut whole = carried_out(&plan, &Ownership::ALL, 2);
            whole.sort_unstable();
            for count in [2, 5] {
                let owner = |index| {
                    let lanes = 1 + u64::from(index % 3);
                    carried_out(&plan, &Ownership::new(index, count), lanes)
                };
                let each: Vec<_> = (0..count).map(owner).collect();
                assert!(each.iter().all(|own| !own.is_empty()), "{keys:?}: {count}");
                let mut all = each.concat();
                all.sort_unstable();
                assert!(all == whole, "{keys:?}, {mix:?}: {count} owners do something else");
            }
        }
    }
}

/// Every operation is due when it would be in one process, is counted as offered in the same interval, and operations
/// that were never started have the same bounds.
#[test]
fn owners_together_are_offered_what_one_process_is() {
    let arrivals = [
        Arrival::Constant { rate: 1_000.0 },
        Arrival::Ramp { from: 100.0, to: 3_000.0, over: std::time::Duration::from_secs(3) },
        curve("sine 200/s to 2k/s every 3s"),
        curve("spikes 500/s to 4k/s for 200ms every 1s"),
    ];
    for arrival in arrivals {
        // Ordered while it runs, or not at all.
        let changes = match arrival {
            Arrival::Constant { .. } => vec![RateChange { from: 1_500, rate: 700.0 }],
            _ => Vec::new(),
        };
        let plan = group(&[(Kind::Get, 1_000)], Distribution::Uniform);
        let plan = GroupPlan { arrival: arrival.clone(), changes, ..plan };
        // How many of what falls due in a second is started in it: all, none, or some.
        for keeps_up in [1.0, 0.0, 0.6] {
            let seen = |ownership: &Ownership, count| {
                let (mut offered, mut dues, mut unstarted) = ([0; 4], Vec::new(), 0);
                for lane in lanes(&plan, ownership, count) {
                    for (second, offered) in (1..).zip(&mut offered) {
                        let until = (second as f64 * keeps_up * SECOND as f64) as Nanos;
                        while let Some(issued) = lane.claim(0, until) {
                            dues.push((issued.id, issued.due.unwrap()));
                        }
                        *offered += lane.offered_before(second * SECOND, &mut Walk::of(u64::MAX));
                    }
                    unstarted += lane
                        .unstarted(4 * SECOND, &mut Walk::of(u64::MAX))
                        .map_or(0, |bounds| bounds.len());
                }
                (offered, dues, unstarted)
            };
            let mut whole = seen(&Ownership::ALL, 1);
            whole.1.sort_unstable();
            for count in [2, 5] {
                let mut together = ([0; 4], Vec::new(), 0);
                for index in 0..count {
                    let (offered, dues, unstarted) = seen(&Ownership::new(index, count), 2);
                    together.0.iter_mut().zip(offered).for_each(|(all, own)| *all += own);
                    together.1.extend(dues);
                    together.2 += unstarted;
                }
                together.1.sort_unstable();
                let told = (together.0, whole.0);
                assert!(together == whole, "{arrival:?}, {keeps_up}, {count}: {told:?}");
            }
        }
    }
}

fn curve(text: &str) -> Arrival {
    let text: crate::workload::CurveText = text.parse().unwrap();
    Arrival::at(text.read(std::path::Path::new("")).unwrap(), false)
}

/// A rate at random stays the rate of all of them together.
#[test]
fn random_arrivals_of_all_owners_are_as_many_as_were_asked_for() {
    let arrival = Arrival::Poisson { rate: 20_000.0 };
    let plan = GroupPlan {
        arrival,
        requests: None,
        ..group(&[(Kind::Get, 1_000)], Distribution::Uniform)
    };
    let due = |index| {
        let own = lanes(&plan, &Ownership::new(index, 4), 2);
        own.iter().map(|lane| lane.offered_before(5 * SECOND, &mut Walk::of(u64::MAX))).sum::<u64>()
    };
    let all: u64 = (0..4).map(due).sum();
    assert!((98_500..101_500).contains(&all), "{all}");
}

/// Estimates the own operations, where there is no time to draw every one, from the share among those that were drawn.
#[test]
fn what_an_owner_has_no_time_to_draw_is_estimated() {
    let plan = GroupPlan {
        arrival: Arrival::Constant { rate: 20_000.0 },
        requests: None,
        ..group(&[(Kind::Get, 1_000)], Distribution::Uniform)
    };
    let seen = |drawn| {
        let (mut offered, mut unstarted, mut estimated) = (0, 0, false);
        for lane in lanes(&plan, &Ownership::new(1, 4), 2) {
            let mut walk = Walk::of(drawn);
            offered += lane.offered_before(5 * SECOND, &mut walk);
            estimated |= walk.has_estimated();
            unstarted +=
                lane.unstarted(5 * SECOND, &mut Walk::of(drawn)).map_or(0, |bounds| bounds.len());
        }
        (offered, unstarted, estimated)
    };
    let (exact, bounds, estimated) = seen(u64::MAX);
    assert!(exact == bounds && !estimated, "{exact}, {bounds}");
    let (about, bounds, estimated) = seen(3_000);
    assert!(estimated && about.abs_diff(exact) * 20 < exact, "{about} of {exact}");
    assert!(bounds.abs_diff(exact) * 20 < exact, "{bounds} of {exact}");
    assert!(seen(0).0.abs_diff(exact) * 20 < exact, "nothing was drawn: an equal share");
}

#[test]
fn a_lane_that_owns_nothing_of_an_endless_load_ends() {
    let plan = GroupPlan {
        requests: None,
        records: 1,
        insert_first: 1,
        ..group(&[(Kind::Get, 1_000)], Distribution::Uniform)
    };
    let owners = (0..3).map(|index| Ownership::new(index, 3));
    let (mine, others): (Vec<_>, Vec<_>) = owners.partition(|owner| owner.owns(0));
    assert!(lanes(&plan, &mine[0], 1)[0].claim(0, Nanos::MAX).is_some());
    for other in others {
        assert!(lanes(&plan, &other, 1)[0].claim(0, Nanos::MAX).is_none());
    }
}

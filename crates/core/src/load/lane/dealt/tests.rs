//! Lanes of several processes whose operations are dealt: together they carry out what one process would, each once.

use std::collections::BTreeMap;
use std::sync::Mutex;

use super::*;
use crate::load::dealing::{BlockClaim, Deal};
use crate::load::schedule::Dues;
use crate::store::OperationId;
use crate::workload::{
    Arrival, Dataset, Distribution, GroupPlan, KeyForm, KeyModel, Part, Workload,
};

/// Lanes of several processes, and the dealer of their blocks.
struct Together {
    lanes: Vec<Lane>,
    claims: Arc<Mutex<Vec<(usize, BlockClaim)>>>,
    dealings: Vec<Arc<Dealing>>,
    workload: Workload,
    front: u64,
}

impl Together {
    fn new(mix: &[(Kind, u16)], processes: u32, lanes_each: u64) -> Together {
        let keys = Distribution::Zipfian { exponent: 0.99, scrambled: true };
        let plan = GroupPlan { keys, batch: 4, ..GroupPlan::plain("run", mix, 1_000) };
        let key = KeyModel { form: KeyForm::Decimal, length: 16 };
        let dataset = Dataset { id: 3, session: 1, key, fields: 1, capacity: 1_000_000 };
        let workload = Workload::new(&plan, &dataset, Part::WHOLE).unwrap();
        let claims: Arc<Mutex<Vec<(usize, BlockClaim)>>> = Arc::default();
        let (mut lanes, mut dealings) = (Vec::new(), Vec::new());
        for process in 0..processes {
            let asked = Arc::clone(&claims);
            let dealing = Arc::new(Dealing::new(0, None, move |claim| {
                asked.lock().unwrap().push((process as usize, claim));
            }));
            for number in 0..lanes_each {
                let dues = Dues::new(&Arrival::Closed, Arc::default(), 0, 0, 1, 1);
                let first = OperationId { phase: 0, group: 0, id: 0 };
                let lane = Lane::new(0, first, Arc::new(plan.clone()), workload.clone(), dues);
                let ownership = Ownership::new(process, processes);
                lanes.push(lane.of_dealing(ownership, Arc::clone(&dealing), (number, lanes_each)));
            }
            dealings.push(dealing);
        }
        Together { lanes, claims, dealings, workload, front: 0 }
    }

    /// Answers all claims, up to number `end`; then nothing is left to be dealt, and all lanes are to catch up.
    fn deal(&mut self, end: u64) {
        for (process, claim) in std::mem::take(&mut *self.claims.lock().unwrap()) {
            let to = (self.front + claim.blocks * BLOCK).min(end);
            let deal = Deal { lane: claim.lane, from: self.front, to };
            self.dealings[process].give(deal);
            self.front = to;
        }
    }

    /// Carries out operations until `end` is reached; a lane does as many of them at a turn as its number, counted from 1.
    /// Returns each operation with the lanes that gave it out.
    fn carry(&mut self, end: u64) -> BTreeMap<u64, Vec<(usize, Operation)>> {
        let mut given: BTreeMap<u64, Vec<(usize, Operation)>> = BTreeMap::new();
        let mut idle = 0;
        while idle < 10 {
            self.deal(end);
            let mut any = false;
            for (number, lane) in self.lanes.iter().enumerate() {
                for _ in 0..=number {
                    let Some(issued) = lane.claim(0, Nanos::MAX) else { break };
                    assert_eq!(issued.due, None);
                    given.entry(issued.id).or_default().push((number, issued.operation));
                    any = true;
                }
            }
            idle = if any { 0 } else { idle + 1 };
        }
        given
    }
}

#[test]
fn all_operations_are_carried_out_once_reads_by_whoever_is_free_and_writes_by_their_owner() {
    const END: u64 = 40_000;
    let mix = [(Kind::Get, 500), (Kind::Update, 300), (Kind::Insert, 100), (Kind::Scan, 100)];
    let mut dealt = Together::new(&mix, 3, 2);
    let given = dealt.carry(END);
    let mut drawer = dealt.workload.drawer();
    let mut reads = [0_u64; 6];
    for id in 0..END {
        let operation = drawer.draw(id);
        let by = given.get(&id).map(Vec::as_slice).unwrap_or_default();
        let [(lane, carried)] = by else { panic!("{id}: {operation:?} by {by:?}") };
        assert_eq!(*carried, operation, "{id}");
        if operation.kind.read_only() {
            reads[*lane] += 1;
        } else {
            let owner = Ownership::new(*lane as u32 / 2, 3);
            assert!(owner.owns(operation.record), "{id} by lane {lane}");
        }
    }
    assert_eq!(given.len() as u64, END, "and no others");
    assert!(reads[5] > 3 * reads[0], "the quicker a lane the more it reads: {reads:?}");
}

#[test]
fn where_nothing_is_written_no_operation_of_others_is_looked_at() {
    let mut dealt = Together::new(&[(Kind::Get, 1_000)], 2, 1);
    let given = dealt.carry(10_000);
    assert_eq!(given.len(), 10_000);
    assert!(given.values().all(|by| by.len() == 1));
}

/// A batch of reads goes whole to the lane that it is dealt to, and a batch of writes in parts to its owners.
#[test]
fn batches_of_reads_are_whole_and_batches_of_writes_split() {
    const END: u64 = 4_000;
    let mut dealt = Together::new(&[(Kind::GetBatch, 500), (Kind::PutBatch, 500)], 3, 1);
    let given = dealt.carry(END);
    let mut drawer = dealt.workload.drawer();
    let mut split = 0;
    for (id, by) in &given {
        let operation = drawer.draw(*id);
        let records = (0..operation.count).map(|i| drawer.batch_record(*id, &operation, i));
        for record in records.collect::<Vec<_>>() {
            let sends =
                |(lane, _): &&(usize, Operation)| dealt.lanes[*lane].sends(operation.kind, record);
            assert_eq!(by.iter().filter(sends).count(), 1, "{id} {operation:?}: {record}");
        }
        split += usize::from(by.len() > 1);
        assert!(operation.kind == Kind::PutBatch || by.len() == 1, "{by:?}");
    }
    assert_eq!(given.len() as u64, END);
    assert!(split > 500, "{split}");
}

#[test]
fn a_lane_that_was_dealt_nothing_waits_until_the_load_ends() {
    let mut dealt = Together::new(&[(Kind::Get, 1_000)], 2, 1);
    assert!(dealt.lanes[0].claim(0, Nanos::MAX).is_none());
    assert!(dealt.lanes[0].waits(Nanos::MAX) && !dealt.lanes[0].waits(0));
    dealt.deal(1_000);
    assert!(dealt.lanes[0].claim(0, Nanos::MAX).is_some(), "it was dealt blocks meanwhile");
}

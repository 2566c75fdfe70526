//! Two owners of a load's records, each with a ledger of its own records only, do what one process does.

use super::*;

/// Bench of one of two processes: the same store, and a ledger that is dense over its own records.
fn owner(bench: &Bench, index: u32) -> Bench {
    owner_of(bench, index, 2)
}

fn owner_of(bench: &Bench, index: u32, count: u32) -> Bench {
    let ownership = Ownership::new(index, count);
    let mut context = bench.context.clone();
    context.options.ownership = ownership.clone();
    let ledger = Ledger::new(LedgerConfig {
        slots: ownership.slots_of_all(context.dataset.capacity),
        linearizable: true,
        staleness: Duration::ZERO,
        may_forget: false,
        overlap_capacity: 1 << 16,
        initial: Initial::Never,
        expiry: None,
        may_apply_again: false,
        taken_over: Some(TakenOver {
            from: ownership.slots(context.dataset.capacity),
            deletes: false,
        }),
    });
    context.ledger = Some(Arc::new(ledger.unwrap()));
    Bench { store: Arc::clone(&bench.store), context }
}

/// Runs both at once.
fn together(owners: &[Bench; 2], plan: &PhasePlan) -> [PhaseMeasure; 2] {
    std::thread::scope(|scope| {
        let threads = owners.each_ref().map(|owner| scope.spawn(|| owner.run(plan.clone()).0));
        threads.map(|thread| thread.join().unwrap())
    })
}

#[test]
fn two_owners_carry_one_load_and_every_read_is_judged() {
    for threading in [Threading::InProcess, Threading::Networked] {
        let bench = Bench::new(threading, Behaviour::default());
        let owners = [0, 1].map(|index| owner(&bench, index));
        let loaded = together(&owners, &load_phase());
        assert_eq!(loaded.iter().map(|own| own.started).sum::<u64>(), RECORDS);
        let mut mixed = group(
            &[
                (Kind::Get, 450),
                (Kind::Update, 250),
                (Kind::Insert, 50),
                (Kind::Delete, 50),
                (Kind::ReadModifyWrite, 100),
                (Kind::GetBatch, 100),
            ],
            4,
        );
        mixed.requests = Some(40_000);
        mixed.keys = Distribution::Zipfian { exponent: 0.99, scrambled: true };
        let mixed = phase(vec![mixed], None);
        let one = Bench::loaded(threading, Behaviour::default()).run(mixed.clone()).0;
        let both = together(&owners, &mixed);
        for own in &both {
            assert_eq!(own.stopped, StopReason::Requests);
            assert_eq!((own.issued[0], own.records), (40_000, one.records));
            assert_eq!(own.tally.illegal(), 0, "{:?}", own.anomalies);
            assert_eq!(own.tally.judged, own.tally.reads, "only its own records are read");
            let share = own.started as f64 / 40_000.0;
            assert!((0.4..0.65).contains(&share), "{share}");
        }
        let count = |measure: &PhaseMeasure, kind| {
            let of_kind = measure.series.iter().filter(|(series, _)| series.kind == kind);
            of_kind
                .map(|(_, series)| (series.ok, series.records))
                .fold((0, 0), |a, b| (a.0 + b.0, a.1 + b.1))
        };
        for kind in [Kind::Get, Kind::Update, Kind::Insert, Kind::Delete, Kind::ReadModifyWrite] {
            let sum = both.iter().map(|own| count(own, kind).0).sum::<u64>();
            assert_eq!(sum, count(&one, kind).0, "{kind:?}");
        }
        let batched = both.iter().map(|own| count(own, Kind::GetBatch).1).sum::<u64>();
        assert_eq!(batched, count(&one, Kind::GetBatch).1, "each record of each batch, once");
    }
}

/// One of three is lost. The others together carry out what one process would, and no value that the lost one wrote is
/// wrong to them, written over or not. Values that they write themselves are judged, in records of any owner.
#[test]
fn two_of_three_owners_take_over_the_records_of_the_third() {
    for threading in [Threading::InProcess, Threading::Networked] {
        let bench = Bench::new(threading, Behaviour::default());
        let owners = [0, 1, 2].map(|index| owner_of(&bench, index, 3));
        for owner in &owners {
            owner.run(load_phase());
        }
        let mut mixed = group(&[(Kind::Get, 500), (Kind::Update, 400), (Kind::Insert, 100)], 4);
        mixed.requests = Some(20_000);
        let mixed = phase(vec![mixed], None);
        let [first, _, third] = owners;
        let lost = [LostOwner { index: 1, session: bench.context.dataset.session + 1 }];
        let left = [first, third].map(|mut owner| {
            let records = owner.context.dataset.capacity;
            let options = &mut owner.context.options;
            options.ownership = options.ownership.after(&lost, records);
            owner
        });
        let one = Bench::loaded(threading, Behaviour::default()).run(mixed.clone()).0;
        for round in 0..2 {
            let both = together(&left, &mixed);
            for own in &both {
                assert_eq!(own.tally.illegal(), 0, "{:?}", own.anomalies);
                assert_eq!(own.tally.other_run, 0);
                let share = own.started as f64 / 20_000.0;
                assert!((0.4..0.6).contains(&share), "{share}");
            }
            let by_stamp: u64 = both.iter().map(|own| own.tally.stamp_only).sum();
            assert!(by_stamp > 0 || round > 0, "the third's, when they are first read");
            if round == 0 {
                assert_eq!(both.iter().map(|own| own.started).sum::<u64>(), one.started);
            }
        }
    }
}

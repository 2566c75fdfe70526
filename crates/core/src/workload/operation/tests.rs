//! Operations are pure functions of seed and id: mixes, records, sizes and batches, held to that.

use super::*;
use crate::workload::plan::{Distribution, KeyForm, KeyModel, SizeModel, ValueModel, YcsbLaw};
use std::collections::{HashMap, HashSet};

const DATASET: Dataset = Dataset {
    id: 3,
    session: 1,
    key: KeyModel { form: KeyForm::Decimal, length: 16 },
    fields: 1,
    capacity: 1_000_000,
};

/// Every kind, of which some insert.
const ALL_KINDS: [(Kind, u16); 11] = [
    (Kind::Insert, 100),
    (Kind::Get, 150),
    (Kind::GetAbsent, 50),
    (Kind::Update, 100),
    (Kind::Delete, 100),
    (Kind::PutGet, 100),
    (Kind::ReadModifyWrite, 100),
    (Kind::Scan, 100),
    (Kind::GetBatch, 80),
    (Kind::PutBatch, 80),
    (Kind::InsertBatch, 40),
];

fn plan(parts: &[(Kind, u16)], keys: Distribution) -> GroupPlan {
    GroupPlan {
        keys,
        values: ValueModel {
            size: SizeModel::JavaUniform { min: 100, max: 1899, seed: 42 },
            seed: None,
            compressible: 0.0,
        },
        one_field: true,
        scan_length: SizeModel::Uniform { min: 1, max: 100 },
        seed: 99,
        ..GroupPlan::plain("group", parts, 10_000)
    }
}

fn ycsb(law: YcsbLaw) -> Distribution {
    Distribution::Ycsb { law, records: 10_000 }
}

/// Returns true if choices go to records that were inserted since the phase began, too.
fn follows_inserts(keys: Distribution) -> bool {
    Chooser::new(&keys, 1).unwrap().follows_inserts()
}

fn distributions() -> [Distribution; 11] {
    [
        Distribution::Sequential,
        Distribution::Uniform,
        Distribution::Zipfian { exponent: 0.99, scrambled: true },
        Distribution::Zipfian { exponent: 1.5, scrambled: false },
        Distribution::Latest { exponent: 0.99 },
        Distribution::Hotspot { records: 0.2, operations: 0.8 },
        Distribution::Exponential { percentile: 0.95, share: 0.5 },
        ycsb(YcsbLaw::Zipfian { inserts: 0.5, operations: 500 }),
        ycsb(YcsbLaw::Latest),
        ycsb(YcsbLaw::Hotspot { records: 0.2, operations: 0.8 }),
        ycsb(YcsbLaw::Exponential { percentile: 0.95, share: 0.5 }),
    ]
}

fn workload(plan: &GroupPlan) -> Workload {
    Workload::new(plan, &DATASET, Part::WHOLE).unwrap()
}

/// An operation with all records of its batch.
fn whole(drawer: &mut Drawer, id: u64) -> (Operation, Vec<u64>) {
    let operation = drawer.draw(id);
    let records = match operation.kind {
        Kind::Scan => 1,
        _ => operation.count,
    };
    (operation, (0..records).map(|i| drawer.batch_record(id, &operation, i)).collect())
}

#[test]
fn one_operation_in_a_hundred_goes_to_the_sample_and_all_others_where_they_went() {
    let parts = [(Kind::Get, 500), (Kind::Update, 300), (Kind::Insert, 100), (Kind::Scan, 100)];
    let mut asks = plan(&parts, Distribution::Uniform);
    let mut before = workload(&asks).drawer();
    asks.linearizability = true;
    let mut after = workload(&asks).drawer();
    let sampled = Sampled::of(asks.records);
    let mut moved = 0;
    for id in 0..100_000 {
        let (mut old, new) = (before.draw(id), after.draw(id));
        if old.record != new.record {
            assert!(matches!(new.kind, Kind::Get | Kind::Update), "{new:?}");
            assert!(sampled.number(new.record).is_some(), "{new:?}");
            (moved, old.record) = (moved + 1, new.record);
        }
        assert_eq!(old, new);
    }
    // Four operations in five can be aimed; chance sends one in 625 there anyway.
    assert!((700..=860).contains(&moved), "{moved}");
    let part = Part { index: 0, count: 2 };
    let mut of_part = Workload::new(&asks, &DATASET, part).unwrap().drawer();
    asks.linearizability = false;
    let mut plain = Workload::new(&asks, &DATASET, part).unwrap().drawer();
    assert!((0..10_000).step_by(2).all(|id| of_part.draw(id) == plain.draw(id)));
}

#[test]
fn an_id_gives_the_same_operation_from_any_drawer_in_any_order() {
    let dataset = Dataset { fields: 10, ..DATASET };
    for keys in distributions() {
        let plan = plan(&ALL_KINDS, keys);
        let workload = Workload::new(&plan, &dataset, Part::WHOLE).unwrap();
        let mut drawer = workload.drawer();
        let in_order: Vec<_> = (0..5000).map(|id| whole(&mut drawer, id)).collect();
        let again = Workload::new(&plan, &dataset, Part::WHOLE).unwrap();
        let mut drawers = [again.drawer(), workload.drawer(), again.drawer()];
        for n in 0..5000u64 {
            let id = n * 1234 % 5000 + n % 2;
            if let Some(expected) = in_order.get(id as usize) {
                assert_eq!(&whole(&mut drawers[(n % 3) as usize], id), expected, "{keys:?}");
            }
        }
    }
}

/// Compares what is drawn with what is drawn the long way, and returns true if there is a short one.
fn is_drawn_shortly(plan: &GroupPlan, dataset: &Dataset, part: Part) -> bool {
    let drawn = Workload::new(plan, dataset, part).unwrap();
    let short = drawn.compiled.plain.is_some();
    let mut long = Workload::new(plan, dataset, part).unwrap();
    Arc::get_mut(&mut long.compiled).unwrap().plain = None;
    let (mut drawn, mut long) = (drawn.drawer(), long.drawer());
    for k in 0..10_000 {
        let id = k * u64::from(part.count) + u64::from(part.index);
        assert_eq!(drawn.draw(id), long.draw(id), "{id} of {part:?} of {plan:?}");
    }
    short
}

#[test]
fn the_short_way_draws_what_the_long_one_does() {
    let parts = [
        (Kind::Get, 400),
        (Kind::Update, 300),
        (Kind::PutGet, 100),
        (Kind::ReadModifyWrite, 100),
        (Kind::Delete, 100),
    ];
    for keys in distributions() {
        let mut plain = plan(&parts, keys);
        plain.values.size = SizeModel::Fixed { size: 100 };
        plain.one_field = false;
        let latest = matches!(plain.keys, Distribution::Latest { .. });
        for part in [Part::WHOLE, Part { index: 1, count: 3 }] {
            assert_eq!(is_drawn_shortly(&plain, &DATASET, part), !latest);
        }
    }
}

#[test]
fn what_needs_more_than_a_kind_and_a_record_is_drawn_the_long_way() {
    let dataset = Dataset { fields: 4, ..DATASET };
    let updates = [(Kind::Get, 500), (Kind::Update, 500)];
    let mut plain = plan(&updates, Distribution::Uniform);
    plain.values.size = SizeModel::Fixed { size: 100 };
    plain.one_field = false;
    assert!(is_drawn_shortly(&plain, &dataset, Part::WHOLE));
    let changes: [fn(&mut GroupPlan); 3] = [
        |plan| plan.one_field = true,
        |plan| plan.linearizability = true,
        |plan| plan.values.size = SizeModel::Uniform { min: 50, max: 100 },
    ];
    for change in changes {
        let mut more = plain.clone();
        change(&mut more);
        assert!(!is_drawn_shortly(&more, &dataset, Part::WHOLE), "{more:?}");
    }
    for (kind, _) in ALL_KINDS {
        let mut more = plan(&[(kind, 1000)], Distribution::Uniform);
        (more.values.size, more.one_field) = (plain.values.size.clone(), false);
        assert_eq!(
            is_drawn_shortly(&more, &dataset, Part::WHOLE),
            kind == Kind::Delete || can_be_aimed(kind),
            "{kind:?}"
        );
    }
}

#[test]
fn another_seed_gives_other_operations() {
    for keys in distributions() {
        let one = plan(&ALL_KINDS, keys);
        let two = GroupPlan { seed: 100, ..one.clone() };
        let (mut one, mut two) = (workload(&one).drawer(), workload(&two).drawer());
        let same = (0..2000).filter(|&id| one.draw(id) == two.draw(id)).count();
        assert!(same < 400, "{keys:?}: {same} of 2,000 alike");
    }
}

#[test]
fn sizes_have_a_seed_apart() {
    let mut one = plan(&[(Kind::Update, 1000)], Distribution::Uniform);
    one.values.size = SizeModel::Uniform { min: 1, max: 1_000_000 };
    one.values.seed = Some(5);
    let two = GroupPlan { seed: 100, ..one.clone() };
    let mut three = one.clone();
    three.values.seed = Some(6);
    let draws = |plan: &GroupPlan| -> Vec<Operation> {
        let mut drawer = workload(plan).drawer();
        (0..100).map(|id| drawer.draw(id)).collect()
    };
    for ((one, two), three) in draws(&one).into_iter().zip(draws(&two)).zip(draws(&three)) {
        assert!(one.size == two.size && one.record != two.record);
        assert!(one.size != three.size && one.record == three.record);
    }
}

#[test]
fn each_kind_has_what_it_needs() {
    let dataset = Dataset { fields: 10, ..DATASET };
    let plan = plan(&ALL_KINDS, Distribution::Uniform);
    let workload = Workload::new(&plan, &dataset, Part::WHOLE).unwrap();
    let mut drawer = workload.drawer();
    let mut fields = HashSet::new();
    let mut lengths = HashSet::new();
    for id in 0..20_000 {
        let operation = drawer.draw(id);
        let Operation { kind, record, field, size, count } = operation;
        match kind {
            Kind::Insert | Kind::InsertBatch => assert!(record >= 10_000),
            Kind::GetAbsent => assert!(record >= workload.keys().capacity() / 2),
            _ => assert!(record < 10_000),
        }
        match kind {
            Kind::Update | Kind::ReadModifyWrite => {
                assert!(fields.insert(field.unwrap()) || fields.len() <= 10);
            }
            _ => assert_eq!(field, None),
        }
        match kind {
            Kind::Get | Kind::GetAbsent | Kind::GetBatch | Kind::Scan | Kind::Delete => {
                assert_eq!(size, 0);
            }
            _ => assert!((100..1900).contains(&size)),
        }
        match kind {
            Kind::Scan => assert!(lengths.insert(count) || (1..=100).contains(&count)),
            Kind::GetBatch | Kind::PutBatch | Kind::InsertBatch => assert_eq!(count, 10),
            _ => assert_eq!(count, 1),
        }
    }
    assert_eq!(fields, (0..10).collect());
    assert_eq!(lengths, (1..=100).collect());
}

#[test]
fn inserts_make_each_record_once_and_are_traced() {
    for (first, stride) in [(10_000, 1), (10_001, 2)] {
        let plan = GroupPlan {
            insert_first: first,
            insert_stride: stride,
            ..plan(&ALL_KINDS, Distribution::Uniform)
        };
        let workload = workload(&plan);
        let mut drawer = workload.drawer();
        let mut k = 0;
        for id in 0..5500 {
            assert_eq!(workload.inserts_before(id), k);
            assert_eq!(
                workload.records_after(id),
                if k == 0 { 0 } else { first + (k - 1) * stride + 1 }
            );
            let (operation, records) = whole(&mut drawer, id);
            if operation.kind.inserts() {
                for record in records {
                    assert_eq!(record, first + k * stride);
                    assert_eq!(workload.inserted_record(k), record);
                    assert_eq!(workload.inserted_by(record), Some(k));
                    k += 1;
                }
            }
        }
        assert_eq!(workload.inserted_by(9999), None);
        assert!(stride == 1 || workload.inserted_by(first + 1).is_none());
    }
}

#[test]
fn latest_reaches_over_what_was_inserted_before() {
    let plan = GroupPlan {
        records: 50,
        insert_first: 51,
        insert_stride: 2,
        ..plan(&[(Kind::Insert, 500), (Kind::Get, 500)], Distribution::Latest { exponent: 0.5 })
    };
    let workload = workload(&plan);
    let mut drawer = workload.drawer();
    let (mut newest, mut old, mut gets) = (0, 0, 0);
    for id in 0..100_000 {
        let operation = drawer.draw(id);
        if operation.kind == Kind::Get {
            gets += 1;
            let inserted = workload.inserts_before(id);
            if operation.record < 50 {
                old += 1;
            } else {
                let k = workload.inserted_by(operation.record).unwrap();
                assert!(k < inserted, "record {} is not inserted yet", operation.record);
                newest += u32::from(k + 1 == inserted);
            }
        }
    }
    // Exponent 0.5 over n records gives the newest about 1 / (2 × sqrt n) of the reads, and its
    // sum over n = 50 to 50,000 is 217; the fifty oldest have a share of 25 / n each read.
    assert!((150..300).contains(&newest), "{newest} of {gets}");
    assert!((100..400).contains(&old), "{old} of {gets}");
}

#[test]
fn latest_without_a_record_asks_for_the_first_insert() {
    let plan = GroupPlan {
        records: 0,
        insert_first: 0,
        ..plan(&[(Kind::Insert, 1), (Kind::Get, 999)], Distribution::Latest { exponent: 0.99 })
    };
    let mut drawer = workload(&plan).drawer();
    assert!((0..1000).all(|id| drawer.draw(id).record == 0));
}

#[test]
fn no_record_gives_record_zero() {
    for keys in distributions() {
        let plan = GroupPlan { records: 0, insert_first: 0, ..plan(&ALL_KINDS, keys) };
        let workload = workload(&plan);
        let mut drawer = workload.drawer();
        for id in 0..3000 {
            let (operation, records) = whole(&mut drawer, id);
            if !operation.kind.inserts() && operation.kind != Kind::GetAbsent {
                let most = workload.inserts_before(id).max(1);
                assert!(records.iter().all(|&record| record < most));
            }
        }
    }
}

#[test]
fn records_of_a_batch_differ() {
    for keys in distributions() {
        for records in [10, 11, 25, 1000, 10_000] {
            let parts = [(Kind::GetBatch, 500), (Kind::PutBatch, 400), (Kind::InsertBatch, 100)];
            let plan = GroupPlan { records, ..plan(&parts, keys) };
            let mut drawer = workload(&plan).drawer();
            for id in 0..2000 {
                let (operation, batch) = whole(&mut drawer, id);
                assert_eq!(batch[0], operation.record);
                assert_eq!(batch.iter().collect::<HashSet<_>>().len(), 10, "{keys:?} {records}");
                if !operation.kind.inserts() && !follows_inserts(keys) {
                    assert!(batch.iter().all(|&record| record < records));
                }
            }
        }
    }
    let plan = GroupPlan { records: 4, ..plan(&[(Kind::GetBatch, 1000)], Distribution::Uniform) };
    let (_, batch) = whole(&mut workload(&plan).drawer(), 0);
    assert_eq!(batch.iter().collect::<HashSet<_>>(), [0, 1, 2, 3].iter().collect());
}

#[test]
fn batches_follow_the_distribution() {
    let keys = Distribution::Hotspot { records: 0.2, operations: 0.8 };
    let mut drawer = workload(&plan(&[(Kind::GetBatch, 1000)], keys)).drawer();
    let hot =
        (0..10_000).flat_map(|id| whole(&mut drawer, id).1).filter(|&record| record < 2000).count();
    assert!(hot.abs_diff(80_000) < 800, "{hot} of 100,000");
}

#[test]
fn sequential_batches_do_not_overlap() {
    for kind in [Kind::GetBatch, Kind::PutBatch] {
        let mut drawer = workload(&plan(&[(kind, 1000)], Distribution::Sequential)).drawer();
        let records: Vec<u64> = (0..2000).flat_map(|id| whole(&mut drawer, id).1).collect();
        assert!(records.iter().zip(0..).all(|(&record, n)| record == n % 10_000));
    }
}

#[test]
fn parts_write_records_of_their_own_and_miss_none() {
    for (keys, groups) in distributions().into_iter().flat_map(|k| [1, 2, 3].map(|g| (k, g))) {
        let mut owners = HashMap::new();
        for (group, index) in (0..groups).flat_map(|g| (0..3).map(move |index| (g, index))) {
            let mut plan = plan(&ALL_KINDS, keys);
            plan.records = 1000;
            plan.insert_first = 1000 + group;
            plan.insert_stride = groups;
            let part = Part { index, count: 3 };
            let workload = Workload::new(&plan, &DATASET, part).unwrap();
            let mut drawer = workload.drawer();
            for id in (u64::from(index)..9000).step_by(3) {
                let (operation, records) = whole(&mut drawer, id);
                for record in records.into_iter().filter(|_| !operation.kind.read_only()) {
                    assert_eq!(record % 3, u64::from(index), "{keys:?} {:?}", operation.kind);
                    if operation.kind.inserts() {
                        assert_eq!(owners.insert(record, (group, index)), None, "{record}");
                        assert!((1000..workload.records_after(id + 1)).contains(&record));
                    } else if !follows_inserts(keys) {
                        assert!(record < 1000);
                    }
                }
            }
        }
        // 140 operations of 1,000 insert 500 records; 9,000 operations of each group, no gap but
        // at the ends.
        assert_eq!(owners.len() as u64, 4500 * groups);
        assert!(owners.keys().all(|&record| record < 1000 + 4500 * groups + 6 * groups));
    }
}

#[test]
fn a_part_of_one_is_the_whole() {
    let plan = plan(&ALL_KINDS, Distribution::Latest { exponent: 0.99 });
    let part = Part { index: 0, count: 1 };
    let mut one = Workload::new(&plan, &DATASET, part).unwrap().drawer();
    let mut whole_load = workload(&plan).drawer();
    assert!((0..5000).all(|id| whole(&mut one, id) == whole(&mut whole_load, id)));
}

#[test]
fn scrambled_groups_share_their_hot_records() {
    let keys = Distribution::Zipfian { exponent: 1.2, scrambled: true };
    let hottest = |seed: u64| {
        let plan = GroupPlan { seed, ..plan(&[(Kind::Get, 1000)], keys) };
        let mut drawer = workload(&plan).drawer();
        let mut counts: HashMap<u64, u32> = HashMap::new();
        for id in 0..20_000 {
            *counts.entry(drawer.draw(id).record).or_default() += 1;
        }
        counts.into_iter().max_by_key(|&(_, count)| count).map(|(record, _)| record)
    };
    assert_eq!(hottest(1), hottest(2));
}

/// Java's sequence starts over after 2^36 values; before that, a far one has to be counted up to.
#[test]
fn ids_of_any_size_are_drawn() {
    for keys in distributions() {
        let mut drawer = workload(&plan(&ALL_KINDS, keys)).drawer();
        for start in [1 << 24, 1 << 36, 1 << 53, 1 << 63, u64::MAX - ((1 << 36) - 1)] {
            for id in start..start + 100 {
                assert_eq!(whole(&mut drawer, id), whole(&mut drawer, id));
            }
        }
    }
}

fn refusal(change: impl FnOnce(&mut GroupPlan, &mut Dataset), part: Part) -> String {
    let mut plan = plan(&ALL_KINDS, Distribution::Uniform);
    let mut dataset = DATASET;
    change(&mut plan, &mut dataset);
    Workload::new(&plan, &dataset, part).unwrap_err().to_string()
}

#[test]
fn plans_that_make_no_sense_are_refused() {
    let whole = Part::WHOLE;
    assert!(refusal(|plan, _| plan.batch = 0, whole).starts_with("the batch is 0"));
    assert!(refusal(|plan, _| plan.batch = 65_537, whole).ends_with("1 to 65536"));
    assert!(refusal(|plan, _| plan.insert_stride = 0, whole).contains("inserting groups is 0"));
    assert!(refusal(|_, data| data.fields = 0, whole).contains("number of fields is 0"));
    assert!(refusal(|_, data| data.key.length = 7, whole).contains("key length is 7"));
    assert!(refusal(|plan, _| plan.values.compressible = 2.0, whole).contains("compressible"));
    assert!(refusal(|plan, _| plan.mix.parts.truncate(1), whole).contains("sum to 100;"));
    let scan = SizeModel::Uniform { min: 0, max: 9 };
    assert!(refusal(|plan, _| plan.scan_length = scan, whole).contains("scan length is 0"));
    assert_eq!(
        refusal(|plan, _| plan.records = 1_000_001, whole),
        "the records that exist reach to 1000001 records; the dataset has room for 1000000: raise \
         its capacity or ask for less"
    );
    // 1,000 operations insert 500 records.
    let said = refusal(|plan, _| plan.requests = Some(1_981_000), whole);
    assert!(said.starts_with("the inserts reach to 1000500 records"), "{said}");
    let mut fits = plan(&ALL_KINDS, Distribution::Uniform);
    fits.requests = Some(1_980_000);
    assert!(Workload::new(&fits, &DATASET, whole).is_ok());

    let short = |capacity| {
        move |_: &mut GroupPlan, data: &mut Dataset| {
            data.key.length = 8;
            data.capacity = capacity;
        }
    };
    let said = refusal(short(100_000_001), whole);
    assert!(said.starts_with("keys of 8 bytes name 100000000 records; this run needs"), "{said}");
    assert!(refusal(short(50_000_001), whole).contains("absent keys keep half"));

    let part = Part { index: 3, count: 3 };
    assert!(refusal(|_, _| (), part).starts_with("part 3 of 3 does not exist"));
    assert!(refusal(|_, _| (), Part { index: 0, count: 0 }).starts_with("part 0 of 0"));
    let part = Part { index: 0, count: 3 };
    assert!(refusal(|plan, _| plan.records = 2, part).contains("load at least 3 records"));
}

/// Workers on several threads read one workload, each with a drawer of its own.
#[test]
fn threads_draw_the_same_operations() {
    let workload = workload(&plan(&ALL_KINDS, Distribution::Latest { exponent: 0.99 }));
    let mut drawer = workload.drawer();
    let alone: Vec<_> = (0..20_000).map(|id| whole(&mut drawer, id)).collect();
    let together = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..4)
            .map(|worker| {
                let mut drawer = workload.drawer();
                let ids = (worker..20_000).step_by(4);
                scope.spawn(move || ids.map(|id| (id, whole(&mut drawer, id))).collect::<Vec<_>>())
            })
            .collect();
        workers.into_iter().flat_map(|worker| worker.join().unwrap()).collect::<HashMap<_, _>>()
    });
    assert_eq!(together.len(), alone.len());
    assert!(alone.iter().zip(0..).all(|(operation, id)| together[&id] == *operation));
}

//! Counts allocations: once buffers have grown, an operation of the load engine makes none, with
//! keys, clocks, histograms, stamps and ledger on. This is a binary of its own, because the counter
//! sees the whole process, and has one test, because the counter would see allocations of another
//! one.

mod counting;

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use kvdyno_core::load::{
    AnyStore, Interrupt, Job, LoadOptions, Observer, Pacing, Progress, StoreContext,
};
use kvdyno_core::measure::Interval;
use kvdyno_core::store::{
    Answer, Capabilities, Client, Connection, Consistency, Durability, NoTransport, Profile,
    Promise, Put, Reading, Rows, Store, Threading, ThreadingOf,
};
use kvdyno_core::verify::{Initial, Ledger, LedgerConfig};
use kvdyno_core::workload::{
    Dataset, Distribution, GroupPlan, KeyForm, KeyModel, Kind, Ownership, Part, PhasePlan,
    SizeModel, ValueModel,
};

const RECORDS: u64 = 1_000;
/// Length of a key, bytes.
const KEY: usize = 8;
const FIELDS: u16 = 3;
const FIELD: usize = 40;
/// Number of operations of the shorter run.
const OPERATIONS: u64 = 50_000;

/// Fields of a record, as far as they are there.
type Slot = [Option<[u8; FIELD]>; FIELDS as usize];

/// Store that keeps records in an array and never allocates.
struct ArrayStore {
    slots: Arc<Vec<Mutex<Slot>>>,
    fields: u16,
    threading: Threading,
}

struct ArrayClient {
    slots: Arc<Vec<Mutex<Slot>>>,
    fields: u16,
}

impl ArrayClient {
    fn slot(&self, key: &[u8]) -> &Mutex<Slot> {
        &self.slots[number(key)]
    }
}

impl Client for ArrayClient {
    async fn get(&mut self, key: &[u8], into: &mut Reading) -> Answer<bool> {
        let slot = self.slot(key).lock().unwrap();
        if self.fields == 1 {
            slot[0].iter().for_each(|bytes| into.set_whole(bytes));
        }
        for (field, bytes) in (0..).zip(&*slot).filter(|_| self.fields > 1) {
            bytes.iter().for_each(|bytes| into.push_field(field, bytes));
        }
        Ok(slot.iter().any(Option::is_some))
    }

    async fn put(&mut self, put: Put<'_>) -> Answer<()> {
        let mut slot = self.slot(put.key).lock().unwrap();
        for (field, bytes) in put.value.fields() {
            slot[usize::from(field)] = bytes.try_into().ok();
        }
        Ok(())
    }

    async fn delete(&mut self, key: &[u8]) -> Answer<bool> {
        let before = std::mem::take(&mut *self.slot(key).lock().unwrap());
        Ok(before.iter().any(Option::is_some))
    }

    async fn scan(&mut self, from: &[u8], count: usize, into: &mut Rows) -> Answer<()> {
        let mut key = [0; KEY];
        let first = number(from);
        for (number, slot) in self.slots.iter().enumerate().skip(first).take(count) {
            (0..KEY).for_each(|place| key[KEY - 1 - place] = b'0' + digit(number, place));
            slot.lock().unwrap()[0].iter().for_each(|bytes| into.push(&key, Some(bytes)));
        }
        Ok(())
    }

    async fn get_batch(&mut self, keys: &[&[u8]], into: &mut Rows) -> Answer<()> {
        for key in keys {
            into.push(key, self.slot(key).lock().unwrap()[0].as_ref().map(|bytes| &bytes[..]));
        }
        Ok(())
    }

    async fn put_batch(&mut self, puts: &[Put<'_>]) -> Answer<()> {
        for put in puts {
            self.slot(put.key).lock().unwrap()[0] = put.value.whole().try_into().ok();
        }
        Ok(())
    }
}

/// Parses the number in a key.
fn number(key: &[u8]) -> usize {
    key.iter().fold(0, |number, digit| number * 10 + usize::from(digit - b'0'))
}

/// Returns the digit at `place`, counted from the last one.
fn digit(number: usize, place: usize) -> u8 {
    (number / 10usize.pow(place as u32) % 10) as u8
}

impl Store for ArrayStore {
    type Client = ArrayClient;
    type Transport = NoTransport;

    const THREADING: ThreadingOf<Self> = ThreadingOf::Each(|store| store.threading);

    async fn profile(&self) -> Answer<Profile> {
        let fields = self.fields > 1;
        Ok(Profile {
            store: "array".to_owned(),
            version: None,
            capabilities: Capabilities {
                fields,
                pipeline: true,
                scan: true,
                batch_get: true,
                batch_put: true,
                ..Capabilities::default()
            },
            durability: Promise::checked(Durability::None),
            consistency: Promise::checked(Consistency::Linearizable),
            ttl_precision: Duration::ZERO,
            timeout: Duration::from_secs(1),
            settings: Vec::new(),
        })
    }

    async fn connect(&self, slots: usize) -> Answer<Connection<ArrayClient, NoTransport>> {
        let client = || ArrayClient { slots: Arc::clone(&self.slots), fields: self.fields };
        Ok(Connection { clients: (0..slots).map(|_| client()).collect(), transport: NoTransport })
    }
    fn folder(&self) -> Option<&Path> {
        None
    }

    kvdyno_core::kept_once_in_this_process!();
    kvdyno_core::notices_nothing!();
}

struct Unobserved;

impl Observer for Unobserved {
    fn interval(&mut self, _: &Interval) {}

    fn progress(&mut self, _: &Progress) {}
}

/// One store, with the context of its runs.
struct Bench {
    store: Arc<dyn AnyStore>,
    context: StoreContext,
}

impl Bench {
    fn new(threading: Threading, fields: u16) -> Bench {
        let slots = (0..RECORDS).map(|_| Mutex::new(Slot::default()));
        let slots = Arc::new(slots.collect());
        let store: Arc<dyn AnyStore> = Arc::new(ArrayStore { slots, fields, threading });
        let dataset = Dataset {
            id: 1,
            session: 2,
            key: KeyModel { form: KeyForm::Decimal, length: KEY as u16 },
            fields,
            capacity: RECORDS,
        };
        let ledger = Ledger::new(LedgerConfig {
            slots: RECORDS * u64::from(fields),
            linearizable: true,
            staleness: Duration::ZERO,
            may_forget: false,
            overlap_capacity: 16,
            initial: Initial::Never,
            expiry: None,
            may_apply_again: false,
            taken_over: None,
        });
        let context = StoreContext {
            dataset,
            ledger: Some(Arc::new(ledger.unwrap())),
            fields_apart: fields > 1,
            profile: store.ask_profile().unwrap(),
            options: LoadOptions {
                threads: 1,
                // Longer than any run here: handing an interval over allocates.
                interval: Duration::from_secs(3_600),
                part: Part::WHOLE,
                ownership: Ownership::ALL,
                give_up: Duration::from_secs(30),
                pace: Pacing::Both,
                settle: Duration::ZERO,
            },
            interrupt: Arc::new(Interrupt::default()),
        };
        Bench { store, context }
    }

    /// Counts the allocations of the whole process while a phase runs.
    fn allocations(&self, mix: &[(Kind, u16)], one_field: bool, operations: u64) -> u64 {
        let records = if mix[0].0 == Kind::Insert { 0 } else { RECORDS };
        let group = GroupPlan {
            keys: Distribution::Zipfian { exponent: 0.99, scrambled: true },
            values: ValueModel {
                size: SizeModel::Fixed { size: FIELD as u32 },
                seed: None,
                compressible: 0.3,
            },
            one_field,
            scan_length: SizeModel::Uniform { min: 1, max: 20 },
            requests: Some(operations),
            ..GroupPlan::plain("count", mix, records)
        };
        let plan = PhasePlan::plain(0, "count", vec![group], Duration::from_secs(60));
        let job = Arc::new(Job::new(plan, self.context.clone()).unwrap());
        let before = counting::count();
        let measure = self.store.run(&job, &mut Unobserved).unwrap();
        let allocations = counting::count() - before;
        assert_eq!(measure.series.iter().map(|(_, series)| series.ok).sum::<u64>(), operations);
        assert!(measure.anomalies.is_empty(), "{:?}", measure.anomalies[0]);
        allocations
    }
}

#[test]
fn no_operation_allocates() {
    let mixed: &[(Kind, u16)] = &[
        (Kind::Get, 400),
        (Kind::Update, 200),
        (Kind::Delete, 100),
        (Kind::PutGet, 100),
        (Kind::ReadModifyWrite, 200),
    ];
    let mixes: [&[(Kind, u16)]; 8] = [
        &[(Kind::Get, 1_000)],
        &[(Kind::Update, 1_000)],
        &[(Kind::PutGet, 1_000)],
        &[(Kind::ReadModifyWrite, 1_000)],
        mixed,
        &[(Kind::Scan, 1_000)],
        &[(Kind::GetBatch, 1_000)],
        &[(Kind::PutBatch, 500), (Kind::GetBatch, 500)],
    ];
    for threading in [Threading::InProcess, Threading::Networked] {
        for (fields, one_field) in [(1, false), (FIELDS, false), (FIELDS, true)] {
            let bench = Bench::new(threading, fields);
            bench.allocations(&[(Kind::Insert, 1_000)], false, RECORDS);
            // Neither scans nor batches are for records whose fields are written apart.
            let mixes = if fields == 1 { &mixes[..] } else { &mixes[..5] };
            for (number, mix) in mixes.iter().enumerate() {
                // Those of several records are told by fewer.
                let operations = if number < 5 { OPERATIONS } else { OPERATIONS / 10 };
                let once = bench.allocations(mix, one_field, operations);
                let twice = bench.allocations(mix, one_field, 2 * operations);
                // A phase makes threads, channels and buffers; the system may wake its watcher
                // once more. One allocation in a thousand operations would be 50 more.
                let more = twice.saturating_sub(once);
                assert!(
                    more < 20,
                    "{threading:?}, {fields} fields, one written: {one_field}, {mix:?}: {once} \
                     allocations for {operations} operations, {twice} for twice as many"
                );
            }
        }
    }
}

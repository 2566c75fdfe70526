//! The load loop, driven whole: counts, schedules, stalls, errors, ends.

mod ends;
mod misses;
mod owners;
mod pacing;
mod recheck;
mod stores;

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use kvdyno_core::load::{
    AnyStore, Interrupt, Job, LoadOptions, Observer, Pacing, Progress, StoreContext,
};
use kvdyno_core::measure::{Interval, PhaseMeasure, StopReason, now};
use kvdyno_core::store::{Profile, Threading};
use kvdyno_core::verify::{Initial, Ledger, LedgerConfig, TakenOver};
use kvdyno_core::workload::{
    Arrival, Dataset, Distribution, GroupPlan, KeyForm, KeyModel, Kind, LostOwner, Ownership, Part,
    PhasePlan,
};
use stores::{Behaviour, MapStore, Shared};

const RECORDS: u64 = 10_000;

fn group(mix: &[(Kind, u16)], clients: u32) -> GroupPlan {
    GroupPlan { clients, ..GroupPlan::plain("test", mix, RECORDS) }
}

fn phase(groups: Vec<GroupPlan>, duration: Option<Duration>) -> PhasePlan {
    PhasePlan { duration, ..PhasePlan::plain(1, "test", groups, Duration::from_secs(60)) }
}

fn load_phase() -> PhasePlan {
    let mut load = group(&[(Kind::Insert, 1000)], 2);
    (load.requests, load.records, load.insert_first) = (Some(RECORDS), 0, 0);
    PhasePlan { index: 0, ..phase(vec![load], None) }
}

struct Bench {
    store: Arc<Shared>,
    context: StoreContext,
}

#[derive(Default)]
struct Seen {
    /// Offered, started and completed operations of each interval.
    intervals: Vec<(u64, u64, u64)>,
    /// Begin and end of each interval, ns, and the number of its operations that ended later.
    lengths: Vec<(u64, u64, u64)>,
}

impl Observer for Seen {
    fn interval(&mut self, interval: &Interval) {
        self.intervals.push((interval.offered, interval.started, interval.completed));
        self.lengths.push((interval.start, interval.end, interval.drained));
    }

    fn progress(&mut self, _: &Progress) {}
}

impl Bench {
    fn new(threading: Threading, behaviour: Behaviour) -> Bench {
        let store = Arc::new(Shared(Arc::new(MapStore::new(threading, behaviour))));
        let profile: Profile = (&*store as &dyn AnyStore).ask_profile().unwrap();
        let dataset = Dataset {
            id: 1,
            session: 2,
            key: KeyModel { form: KeyForm::Hash, length: 32 },
            fields: 1,
            capacity: 1_000_000,
        };
        let ledger = Ledger::new(LedgerConfig {
            slots: dataset.capacity,
            linearizable: true,
            staleness: Duration::ZERO,
            may_forget: profile.capabilities.may_forget,
            overlap_capacity: 1 << 16,
            initial: Initial::Never,
            expiry: None,
            may_apply_again: false,
            taken_over: None,
        });
        let context = StoreContext {
            dataset,
            ledger: Some(Arc::new(ledger.unwrap())),
            fields_apart: false,
            profile,
            options: LoadOptions {
                threads: 2,
                interval: Duration::from_millis(100),
                part: Part::WHOLE,
                ownership: Ownership::ALL,
                give_up: Duration::from_millis(700),
                pace: Pacing::Both,
                settle: Duration::ZERO,
            },
            interrupt: Arc::new(Interrupt::default()),
        };
        Bench { store, context }
    }

    /// Returns the store in the form that the load takes.
    fn any_store(&self) -> Arc<dyn AnyStore> {
        Arc::<Shared>::clone(&self.store)
    }

    fn run(&self, plan: PhasePlan) -> (PhaseMeasure, Seen) {
        let job = Arc::new(Job::new(plan, self.context.clone()).unwrap());
        let mut seen = Seen::default();
        let measure = self.any_store().run(&job, &mut seen).unwrap();
        (measure, seen)
    }

    fn loaded(threading: Threading, behaviour: Behaviour) -> Bench {
        let bench = Bench::new(threading, behaviour);
        let (measure, _) = bench.run(load_phase());
        assert_eq!((measure.records, measure.started), (RECORDS, RECORDS));
        assert_eq!(measure.figures[0].value, RECORDS as f64);
        bench
    }
}

fn total(measure: &PhaseMeasure) -> (u64, u64, u64) {
    measure.series.iter().fold((0, 0, 0), |(ok, missing, failed), (_, s)| {
        (ok + s.ok, missing + s.missing, failed + s.failed + s.indeterminate)
    })
}

#[test]
fn a_correct_store_raises_no_alarm_and_every_read_is_judged() {
    for threading in [Threading::InProcess, Threading::Networked] {
        let bench = Bench::loaded(threading, Behaviour::default());
        let mut mixed = group(
            &[
                (Kind::Get, 500),
                (Kind::Update, 300),
                (Kind::Delete, 100),
                (Kind::ReadModifyWrite, 100),
            ],
            8,
        );
        mixed.requests = Some(200_000);
        mixed.keys = Distribution::Zipfian { exponent: 0.99, scrambled: true };
        let (measure, seen) = bench.run(phase(vec![mixed], None));
        assert_eq!(measure.stopped, StopReason::Requests);
        assert_eq!(total(&measure).0, 200_000);
        assert_eq!(measure.tally.illegal(), 0, "{:?}", measure.anomalies);
        assert_eq!(measure.tally.unknown, 0);
        assert_eq!(measure.tally.reads, 120_000);
        assert_eq!(measure.tally.judged, 120_000);
        assert_eq!(seen.intervals.iter().map(|i| i.2).sum::<u64>(), 200_000);
        assert_eq!(seen.intervals.iter().map(|i| i.1).sum::<u64>(), 200_000);
        // A read-modify-write is two requests.
        assert_eq!(measure.figures[0].value, 220_000.0);
    }
}

#[test]
fn operation_sets_do_not_depend_on_threads() {
    let mut counts = Vec::new();
    for (threading, clients) in
        [(Threading::InProcess, 1), (Threading::InProcess, 7), (Threading::Networked, 5)]
    {
        let bench = Bench::loaded(threading, Behaviour::default());
        let mut mixed =
            group(&[(Kind::Get, 700), (Kind::Update, 250), (Kind::Insert, 50)], clients);
        mixed.requests = Some(30_123);
        let (measure, _) = bench.run(phase(vec![mixed], None));
        let of_kind: Vec<_> = measure.series.iter().map(|(s, m)| (s.kind, m.ok)).collect();
        counts.push((of_kind, measure.records));
    }
    assert_eq!(counts[0], counts[1]);
    assert_eq!(counts[0], counts[2]);
}

#[test]
fn a_stall_shows_in_response_time_and_every_due_operation_is_offered() {
    for threading in [Threading::InProcess, Threading::Networked] {
        let bench = Bench::loaded(threading, Behaviour::default());
        let behaviour = &bench.store.0.behaviour;
        let from = now() + 500_000_000;
        behaviour.stall_from.store(from, Ordering::Relaxed);
        behaviour.stall_until.store(from + 1_000_000_000, Ordering::Relaxed);
        let mut gets = group(&[(Kind::Get, 1000)], 2);
        gets.arrival = Arrival::Constant { rate: 500.0 };
        let (measure, seen) = bench.run(phase(vec![gets], Some(Duration::from_secs(3))));
        assert_eq!(measure.offered, 1_500);
        assert_eq!(seen.intervals.iter().map(|i| i.0).sum::<u64>(), 1_500);
        // The last ones may still be due at the stop where the machine is busy.
        assert!(total(&measure).0 > 1_450, "{threading:?}: {:?}", total(&measure));
        let series = &measure.series[0].1;
        let (response, service) = (series.response.as_ref(), series.service.as_ref());
        // A third of the requests fell due in the second that stood still, evenly over it.
        let p90 = response.unwrap().value_at_quantile(0.90) as f64 / 1e9;
        assert!((p90 - 0.7).abs() < 0.05, "{threading:?}: p90 of response time {p90} s");
        // Only the requests that were in flight saw it in their service time.
        assert!(service.unwrap().value_at_quantile(0.99) < 100_000_000);
    }
}

#[test]
fn errors_are_counted_exactly_over_all_threads() {
    let behaviour = Behaviour { fail_one_in: 7, ..Behaviour::default() };
    let bench = Bench::new(Threading::InProcess, behaviour);
    let mut gets = group(&[(Kind::GetAbsent, 1000)], 4);
    gets.requests = Some(10_000);
    let (measure, _) = bench.run(phase(vec![gets], None));
    let failed = bench.store.0.failed.load(Ordering::Relaxed);
    assert_eq!(total(&measure), (10_000 - failed, 10_000 - failed, failed));
    assert_eq!(measure.errors.iter().map(|e| e.count).sum::<u64>(), failed);
    assert_eq!(measure.errors[0].first_message, "not now");
    let histogram = measure.series[0].1.unsuccessful_service.as_ref().unwrap();
    assert_eq!(histogram.len(), failed);
}

/// A driver that sends requests again speaks of its last attempt only.
#[test]
fn with_a_driver_that_retries_no_write_has_surely_failed() {
    for retries in [false, true] {
        let behaviour = Behaviour { fail_one_in: 10, ..Behaviour::default() };
        let mut bench = Bench::new(Threading::Networked, behaviour);
        bench.context.profile.capabilities.may_apply_again = retries;
        let (measure, _) = bench.run(load_phase());
        let failed: u64 = measure.series.iter().map(|(_, s)| s.failed).sum();
        let indeterminate: u64 = measure.series.iter().map(|(_, s)| s.indeterminate).sum();
        let (some, none) = if retries { (indeterminate, failed) } else { (failed, indeterminate) };
        assert!(some > 0 && none == 0, "{failed} failed, {indeterminate} indeterminate");
    }
}

#[test]
fn a_store_that_is_gone_ends_the_phase() {
    let bench = Bench::loaded(Threading::Networked, Behaviour::default());
    bench.store.0.behaviour.gone_from.store(now() + 300_000_000, Ordering::Relaxed);
    let begun = Instant::now();
    let mut gets = group(&[(Kind::Get, 1000)], 4);
    gets.requests = Some(u64::MAX >> 8);
    let (measure, _) = bench.run(phase(vec![gets], None));
    assert_eq!(measure.stopped, StopReason::StoreLost);
    assert!(begun.elapsed() < Duration::from_secs(5));
    // One attempt per back-off, not one per microsecond.
    assert!(total(&measure).2 < 200, "{} failed", total(&measure).2);
}

#[test]
fn an_interrupt_stops_and_keeps_what_was_measured() {
    let bench = Bench::loaded(Threading::Networked, Behaviour::default());
    let interrupt = Arc::clone(&bench.context.interrupt);
    let raiser = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(400));
        interrupt.raise();
    });
    let mut gets = group(&[(Kind::Get, 1000)], 4);
    gets.arrival = Arrival::Constant { rate: 1_000.0 };
    let (measure, _) = bench.run(phase(vec![gets], Some(Duration::from_secs(30))));
    raiser.join().unwrap();
    assert_eq!(measure.stopped, StopReason::Interrupted);
    let done = total(&measure).0;
    assert!((300..700).contains(&done), "{done} operations in about 0.4 s at 1,000/s");
}

#[test]
fn at_the_stop_operations_due_and_not_started_are_lower_bounds() {
    let bench = Bench::loaded(Threading::InProcess, Behaviour::default());
    let from = now() + 200_000_000;
    bench.store.0.behaviour.stall_from.store(from, Ordering::Relaxed);
    bench.store.0.behaviour.stall_until.store(from + 2_000_000_000, Ordering::Relaxed);
    let mut gets = group(&[(Kind::Get, 1000)], 1);
    gets.arrival = Arrival::Poisson { rate: 1_000.0 };
    let (measure, _) = bench.run(phase(vec![gets], Some(Duration::from_secs(1))));
    let unstarted = measure.unstarted.unwrap().len();
    assert_eq!(measure.started + unstarted, measure.offered);
    assert!((600..1_000).contains(&unstarted), "{unstarted} were due while it stood still");
}

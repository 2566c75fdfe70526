//! Records whose reads were wrong or not answered: each of them is counted, however many there are, and
//! whatever keeps kvdyno from reading them again.

use kvdyno_core::measure::OldRecords;
use kvdyno_core::verify::{ANOMALIES_KEPT, AnomalyKind, RIGHT_AGAIN};

use super::*;

/// Plans of two passes by `clients`: every record inserted once, and every record read once.
fn passes(records: u64, clients: u32) -> [PhasePlan; 2] {
    let mut insert = group(&[(Kind::Insert, 1_000)], clients);
    (insert.requests, insert.records, insert.insert_first) = (Some(records), 0, 0);
    let mut read = group(&[(Kind::Get, 1_000)], clients);
    (read.requests, read.records, read.insert_first) = (Some(records), records, records);
    read.keys = Distribution::Sequential;
    let [insert, read] = [insert, read].map(|group| phase(vec![group], None));
    [PhasePlan { index: 0, ..insert }, PhasePlan { load: true, ..read }]
}

/// Observer that counts what it is told of the load and of the passes after it.
#[derive(Default)]
struct Counted {
    completed: u64,
    asked_again: u64,
}

impl Observer for Counted {
    fn interval(&mut self, interval: &Interval) {
        self.completed += interval.completed;
    }

    fn progress(&mut self, _: &Progress) {}

    fn again(&mut self, progress: &Progress) {
        self.asked_again = self.asked_again.max(progress.requests.unwrap_or(0));
    }
}

/// Runs a phase, and calls `then` as soon as the clients are done. Returns the measurement, and the number of
/// records in the largest pass whose progress was told.
fn run_and_then(bench: &Bench, plan: PhasePlan, mut then: impl FnMut()) -> (PhaseMeasure, u64) {
    let job = Arc::new(Job::new(plan, bench.context.clone()).unwrap());
    let mut observer = Counted::default();
    let mut measure = bench.any_store().load(&job, &mut observer).unwrap();
    then();
    bench.any_store().look_again(&job, &mut measure, &mut observer);
    assert_eq!(observer.completed, measure.started, "passes are no part of the timeline");
    (measure, observer.asked_again)
}

#[test]
fn more_lost_records_than_are_kept_as_examples_are_all_counted() {
    let records = ANOMALIES_KEPT as u64 + 5_000;
    let bench = Bench::new(Threading::InProcess, Behaviour::default());
    bench.store.0.behaviour.forgets.store(true, Ordering::Relaxed);
    let [insert, read] = passes(records, 2);
    let (written, _) = bench.run(insert);
    assert_eq!(written.tally.writes_acknowledged, records);
    let read = PhasePlan { inserted_from: Some(records - 700), ..read };
    let (measure, asked_again) = run_and_then(&bench, read, || {});
    assert_eq!(measure.old, OldRecords { lost: records, lost_inserts: 700, late: 0, unread: 0 });
    assert_eq!(measure.tally.of(AnomalyKind::Lost), records);
    assert_eq!((measure.tally.illegal(), measure.tally.not_read_again), (records, 0));
    assert_eq!(
        (measure.tally.reads, measure.tally.records),
        (records, records),
        "as the phase made"
    );
    assert_eq!((measure.behind.reads, measure.behind.absent), (records, records));
    assert_eq!(measure.behind.versions, None, "nothing was seen that could be behind");
    assert_eq!(measure.anomalies.len(), ANOMALIES_KEPT, "examples");
    assert!(measure.anomalies.iter().all(|lost| lost.kind == AnomalyKind::Lost));
    assert_eq!(asked_again, records, "with progress");
}

#[test]
fn records_that_come_right_are_late_and_none_of_them_is_lost() {
    for threading in [Threading::InProcess, Threading::Networked] {
        let bench = Bench::new(threading, Behaviour::default());
        let hides = |hides| bench.store.0.behaviour.hides.store(hides, Ordering::Relaxed);
        let [insert, read] = passes(20_000, 3);
        bench.run(insert);
        hides(true);
        let (measure, _) = run_and_then(&bench, read, || hides(false));
        assert_eq!(measure.old, OldRecords { late: 20_000, ..OldRecords::default() });
        assert_eq!(measure.tally.anomalies, [0, 0, 0, 20_000, 0], "each wrong read stands");
        assert!(measure.anomalies.iter().all(|anomaly| anomaly.again == RIGHT_AGAIN));
    }
}

#[test]
fn more_unanswered_records_than_anyone_remembers_are_all_asked_for_again() {
    // Every other request fails, by one client: of 30,000 records 15,000 are not answered at first.
    let behaviour = Behaviour { fail_one_in: 2, ..Behaviour::default() };
    let bench = Bench::new(Threading::InProcess, behaviour);
    let [_, read] = passes(30_000, 1);
    let (measure, _) = bench.run(read);
    assert_eq!(measure.errors.iter().map(|error| error.count).sum::<u64>(), 15_000);
    assert_eq!((measure.unread, measure.tally.reads), (0, 30_000));
    assert_eq!((measure.tally.legal_misses, measure.tally.illegal()), (30_000, 0));
}

#[test]
fn what_an_interrupt_leaves_is_counted_as_not_read_again_and_never_as_lost() {
    let bench = Bench::new(Threading::InProcess, Behaviour::default());
    let behaviour = &bench.store.0.behaviour;
    let [insert, read] = passes(20_000, 2);
    bench.run(insert);
    behaviour.hides.store(true, Ordering::Relaxed);
    let interrupt = Arc::clone(&bench.context.interrupt);
    let (measure, _) = run_and_then(&bench, read, || interrupt.raise());
    assert_eq!(measure.old, OldRecords { unread: 20_000, ..OldRecords::default() });
    assert_eq!(measure.tally.anomalies, [0, 0, 0, 20_000, 0]);
    assert_eq!(measure.tally.not_read_again, 20_000);
    assert_eq!(measure.stopped, StopReason::Interrupted);
    let again = "not read again: kvdyno was stopped";
    assert!(measure.anomalies.iter().all(|anomaly| anomaly.again == again));
}

#[test]
fn an_interrupt_in_the_middle_leaves_the_rest_and_keeps_what_was_read() {
    let bench = Bench::new(Threading::InProcess, Behaviour::default());
    let [insert, read] = passes(20_000, 2);
    bench.run(insert);
    let behaviour = &bench.store.0.behaviour;
    behaviour.hides.store(true, Ordering::Relaxed);
    // 20,000 puts and 20,000 reads, and then a quarter of the second look at them.
    let interrupt = Arc::clone(&bench.context.interrupt);
    *behaviour.stopped_at.lock().unwrap() = Some((45_000, interrupt));
    let (measure, _) = run_and_then(&bench, read, || {
        behaviour.hides.store(false, Ordering::Relaxed);
    });
    let OldRecords { lost, late, unread, .. } = measure.old;
    assert_eq!((lost, late + unread), (0, 20_000));
    assert!((4_000..=5_100).contains(&late), "{late} were right when read again");
    assert_eq!((measure.tally.not_read_again, measure.tally.illegal()), (unread, 20_000));
    assert_eq!(measure.stopped, StopReason::Interrupted);
}

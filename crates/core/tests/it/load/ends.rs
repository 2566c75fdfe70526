//! Ends of phases, and operations that end later.

use std::sync::atomic::Ordering;
use std::time::Duration;

use kvdyno_core::measure::{PhaseMeasure, StopReason, now};
use kvdyno_core::store::Threading;
use kvdyno_core::workload::{Arrival, Kind};

use super::stores::Behaviour;
use super::{Bench, Seen, group, phase, total};

const MS: u64 = 1_000_000;

fn span_ms(measure: &PhaseMeasure) -> f64 {
    (measure.end - measure.start) as f64 / MS as f64
}

/// Asserts that the intervals cover the phase from its begin to its end, each a tenth of a second
/// but the last.
fn covered(measure: &PhaseMeasure, seen: &Seen) {
    let mut at = measure.start;
    for &(start, end, _) in &seen.lengths {
        assert_eq!(start, at, "{:?}", seen.lengths);
        assert!(end > start && (end - start == 100 * MS || end == measure.end), "{start} to {end}");
        at = end;
    }
    assert_eq!(at, measure.end, "{:?}", seen.lengths);
    let last = |n: usize| seen.lengths.len() - n > 1;
    let drained = seen.lengths.iter().enumerate().filter(|(n, told)| last(*n) && told.2 > 0);
    assert_eq!(drained.count(), 0, "the drain is told in the last interval");
}

#[test]
fn a_phase_with_a_rate_takes_the_time_that_was_asked_for() {
    let constant = |rate| Arrival::Constant { rate };
    let ramp = Arrival::Ramp { from: 4.0, to: 8.0, over: Duration::from_secs(1) };
    // Arrival, requests, duration, the requests that fall due, its length, and what ends it.
    let cases = [
        (constant(5.0), None, Some(600), 3, 600.0, StopReason::Duration),
        (constant(4.0), None, Some(650), 3, 650.0, StopReason::Duration),
        (constant(5.0), Some(3), None, 3, 600.0, StopReason::Requests),
        (constant(5.0), Some(3), Some(5_000), 3, 600.0, StopReason::Requests),
        (constant(5.0), Some(90), Some(550), 3, 550.0, StopReason::Duration),
        // Six fall due in the time of the change, and then one each eighth of a second.
        (ramp, Some(7), None, 7, 1_125.0, StopReason::Requests),
    ];
    let bench = Bench::loaded(Threading::Networked, Behaviour::default());
    for (arrival, requests, duration, due, length, stopped) in cases {
        let mut gets = group(&[(Kind::Get, 1000)], 4);
        (gets.arrival, gets.requests) = (arrival.clone(), requests);
        let (measure, seen) = bench.run(phase(vec![gets], duration.map(Duration::from_millis)));
        let told = (measure.offered, total(&measure).0, span_ms(&measure), measure.stopped);
        assert_eq!(told, (due, due, length, stopped), "{arrival:?}");
        let rate = due as f64 * 1e3 / length;
        assert!((measure.rate() - rate).abs() < 1e-9, "{arrival:?}: {} a second", measure.rate());
        covered(&measure, &seen);
    }
}

#[test]
fn with_requests_alone_the_last_answer_is_the_end() {
    let bench = Bench::loaded(Threading::InProcess, Behaviour::default());
    for arrival in [Arrival::Closed, Arrival::Poisson { rate: 1_000.0 }] {
        let mut gets = group(&[(Kind::Get, 1000)], 2);
        (gets.arrival, gets.requests) = (arrival, Some(300));
        let (measure, seen) = bench.run(phase(vec![gets], None));
        assert_eq!((measure.end, measure.stopped), (measure.last_end + 1, StopReason::Requests));
        covered(&measure, &seen);
    }
}

#[test]
fn what_is_in_flight_at_the_deadline_is_counted_and_in_no_rate() {
    for threading in [Threading::InProcess, Threading::Networked] {
        let bench = Bench::loaded(threading, Behaviour::default());
        let behaviour = &bench.store.0.behaviour;
        behaviour.stall_from.store(now() + 150 * MS, Ordering::Relaxed);
        behaviour.stall_until.store(now() + 1_500 * MS, Ordering::Relaxed);
        let gets = group(&[(Kind::Get, 1000)], 3);
        let (measure, seen) = bench.run(phase(vec![gets], Some(Duration::from_millis(300))));
        assert_eq!((span_ms(&measure), measure.stopped), (300.0, StopReason::Duration));
        assert!(measure.last_end > measure.end, "{threading:?}");
        let gets = &measure.series[0].1;
        assert_eq!((gets.drained.ok, gets.drained.records), (3, 3), "{threading:?}");
        assert_eq!(gets.service.as_ref().map(|h| h.len()), Some(gets.ok), "all have a latency");
        let rate = (gets.ok - 3) as f64 / 0.3;
        assert!((measure.rate() - rate).abs() < 1e-6);
        assert_eq!(seen.lengths.iter().map(|told| told.2).collect::<Vec<_>>(), [0, 0, 3]);
        covered(&measure, &seen);
    }
}

#[test]
fn a_phase_that_is_stopped_ends_when_it_is() {
    let bench = Bench::loaded(Threading::Networked, Behaviour::default());
    let behaviour = &bench.store.0.behaviour;
    behaviour.stall_from.store(now() + 100 * MS, Ordering::Relaxed);
    behaviour.stall_until.store(now() + 2_000 * MS, Ordering::Relaxed);
    let interrupt = std::sync::Arc::clone(&bench.context.interrupt);
    let raiser = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(600));
        interrupt.raise();
        now()
    });
    let gets = group(&[(Kind::Get, 1000)], 2);
    let (measure, seen) = bench.run(phase(vec![gets], Some(Duration::from_secs(30))));
    let raised = raiser.join().unwrap();
    assert_eq!(measure.stopped, StopReason::Interrupted);
    assert!((measure.start..measure.last_end).contains(&measure.end));
    assert!(measure.end >= raised, "it was noticed after it was wished for");
    assert_eq!(measure.series[0].1.drained.ok, 2);
    covered(&measure, &seen);
}

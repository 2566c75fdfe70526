//! Cost of waiting, and a client that is given no processor.

use std::sync::atomic::AtomicBool;

use kvdyno_core::load::{Begin, Job};
use kvdyno_core::measure::{WorkerUse, allowed_cpus, now, pin_current_thread};
use kvdyno_core::verdict::{PhaseFacts, Reason, judge_phase};

use super::*;

/// Runs one client with 200 requests a second for half a second: it waits nearly all the time.
fn waits(threading: Threading, pace: Pacing) -> WorkerUse {
    let mut bench = Bench::loaded(threading, Behaviour::default());
    bench.context.options.pace = pace;
    let mut gets = group(&[(Kind::Get, 1_000)], 1);
    gets.arrival = Arrival::Constant { rate: 200.0 };
    let (measure, _) = bench.run(phase(vec![gets], Some(Duration::from_millis(500))));
    assert!((99..=100).contains(&measure.started), "{pace:?}: {}", measure.started);
    assert!(measure.send_lag.is_some(), "how late requests left is told");
    measure.workers[0]
}

#[test]
fn each_way_of_waiting_keeps_to_its_promise() {
    for threading in [Threading::InProcess, Threading::Networked] {
        let timer = waits(threading, Pacing::Timer);
        assert_eq!(timer.spun, Duration::ZERO, "{threading:?}");
        // At most 60 µs for each request; what is spun while the thread has no processor counts too.
        let both = waits(threading, Pacing::Both);
        assert!(
            both.spun <= Duration::from_micros(100 * 60) + both.waited,
            "{threading:?} {both:?}"
        );
        let spin = waits(threading, Pacing::Spin);
        let lost = spin.waited + spin.cpu;
        assert!(spin.spun + lost > spin.wall * 8 / 10, "{threading:?} {spin:?}");
        // Spinning is not work: a worker that only waits is not busy, however it waits.
        for used in [timer, both, spin] {
            assert!(used.cpu < used.wall / 2, "{threading:?} {used:?}");
        }
    }
}

/// A worker stays on the last processor; so does a hog that never rests.
#[test]
fn a_client_that_is_starved_is_told_to_be_the_limit() {
    let bench = Bench::loaded(Threading::Networked, Behaviour::default());
    let stop = AtomicBool::new(false);
    let (measure, plan) = std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                pin_current_thread(*allowed_cpus().last().unwrap()).unwrap();
                while !stop.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            });
        }
        let mut bench = bench;
        bench.context.options.threads = 1;
        let gets = group(&[(Kind::Get, 1_000)], 4);
        let plan = phase(vec![gets], Some(Duration::from_millis(1_500)));
        let (measure, _) = bench.run(plan.clone());
        stop.store(true, Ordering::Relaxed);
        (measure, plan)
    });
    let reasons = judge_phase(&PhaseFacts {
        plan: &plan,
        measure: &measure,
        threading: Threading::Networked,
        resources: None,
        after_end: false,
        outages: &[],
        prepares: false,
    });
    let limited = reasons.iter().find_map(|reason| match reason {
        Reason::ClientLimited { waited, .. } => Some(*waited),
        _ => None,
    });
    let used = measure.workers[0];
    assert!(limited.is_some_and(|waited| waited > 0.3), "{reasons:?} {used:?}");
    assert!(used.cpu < used.wall * 6 / 10, "by its own time alone it looks idle: {used:?}");
}

/// Observer that hears of the begin only when it is past for a while, as an agent does whose
/// connection stood still.
struct LateObserver;

impl Observer for LateObserver {
    fn ready(&mut self, _: usize) -> Begin {
        let start = now();
        std::thread::sleep(Duration::from_millis(400));
        Begin::At(start)
    }

    fn interval(&mut self, _: &Interval) {}

    fn progress(&mut self, _: &Progress) {}
}

#[test]
fn what_fell_due_before_a_late_begin_is_sent_late() {
    for threading in [Threading::InProcess, Threading::Networked] {
        let bench = Bench::loaded(threading, Behaviour::default());
        let mut gets = group(&[(Kind::Get, 1_000)], 2);
        gets.arrival = Arrival::Constant { rate: 500.0 };
        let plan = phase(vec![gets], Some(Duration::from_secs(1)));
        let job = Arc::new(Job::new(plan, bench.context.clone()).unwrap());
        let measure = bench.any_store().run(&job, &mut LateObserver).unwrap();
        let lag = measure.send_lag.expect("requests left late");
        let early = lag.count_between(1_000_000, 600_000_000);
        assert!((190..=260).contains(&early), "{threading:?}: {early} of {}", lag.len());
        assert!(lag.value_at_quantile(0.99) > 300_000_000, "{threading:?}: {}", lag.max());
        assert!(measure.workers.iter().all(|used| used.late >= Duration::from_millis(400)));
    }
}

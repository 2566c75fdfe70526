//! Events of the made-up run.

use std::time::Duration;

use kvdyno_core::measure::{MachineTimes, Nanos, ProcessCounters, Sample};

use super::{ORIGIN, Recording, SECOND, outcome, recordings, two_stores};
use kvdyno_report::events::{Event, LoadEnded, PhaseBegan, StoreEnded, used};
use kvdyno_report::result::{RunResult, Status, StoreRun};

/// Returns the events of the run whose result is [`two_stores`].
#[must_use]
pub fn events() -> Vec<Event> {
    let RunResult { ended, status, runs, .. } = two_stores();
    let begun =
        RunResult { ended: None, status: Status::Running, runs: Vec::new(), ..two_stores() };
    let mut events = vec![Event::run_began(begun)];
    for (number, run) in runs.into_iter().enumerate() {
        let store = run.store.name.clone();
        let begun = StoreRun {
            phases: Vec::new(),
            ended: None,
            verdict: None,
            status: Status::Running,
            ..run.clone()
        };
        events.push(Event::StoreBegan(Box::new(begun)));
        for recording in recordings(number) {
            events.extend(events_of(recording, number, &store));
        }
        events.push(Event::StoreEnded(StoreEnded {
            verdict: run.verdict.unwrap(),
            status: run.status,
            cause: run.cause,
            at: run.ended.unwrap(),
        }));
    }
    events.push(Event::RunEnded { status, at: ended.unwrap() });
    events
}

fn events_of(recording: Recording, run: usize, store: &str) -> Vec<Event> {
    let (start, plan) = (recording.measure.start, recording.plan.clone());
    let began = PhaseBegan { run, store: store.to_owned(), offset_ns: start - ORIGIN, plan };
    let mut events = vec![Event::PhaseBegan(Box::new(began))];
    events.extend(
        recording
            .intervals
            .iter()
            .cloned()
            .map(|interval| Event::Interval(Box::new(interval.since(ORIGIN)))),
    );
    let samples = samples(start);
    let nodes = ["node-1".to_owned()];
    let pairs = samples.windows(2).filter_map(|pair| used(&pair[0], &pair[1], &nodes, ORIGIN));
    events.extend(pairs.map(Event::Used));
    let outcome = outcome(recording);
    let ended = LoadEnded { anomalies: outcome.anomalies(), ..LoadEnded::default() };
    let result = Event::PhaseEnded(Box::new(outcome.result()));
    events.extend([Event::LoadEnded(Box::new(ended)), result]);
    events
}

/// Makes four samples, one a second, of a server that keeps half a processor busy, grows by a MiB a second and writes
/// 1,000 bytes in each.
fn samples(start: Nanos) -> Vec<Sample> {
    let at = |second: u64| ProcessCounters {
        user: Duration::from_millis(500 * second),
        rss: (second + 1) << 20,
        written_bytes: Some(1000 * second),
        ..ProcessCounters::default()
    };
    let sample = |second| Sample {
        at: start + second * SECOND,
        machine: MachineTimes::default(),
        own: at(second),
        servers: vec![Some(at(second))],
    };
    (0..4).map(sample).collect()
}

//! kvdyno's own delays are told before the store is named as the cause.

use super::*;

/// The phase of the issue: the worker waited 5.2 of 8 s for its processor, and sent up to 3.2 s late.
#[test]
fn what_was_not_sent_is_laid_to_the_client_where_that_explains_it() {
    let mut phase = served(&[0.0], Some(0.0));
    phase.open();
    phase.measure.started = 89_350;
    phase.measure.workers[0].cpu = Duration::from_secs(1);
    let text = phase.only("missed-schedule", Level::Invalid).text();
    assert!(text.starts_with("the store kept up with 8,935 of 10,000 ops/s"), "{text}");
    phase.measure.workers[0].waited = Duration::from_millis(6_500);
    let mut lag = latency_histogram();
    lag.record_n(1_000, 10_000).unwrap();
    lag.record(3_200_000_000).unwrap();
    phase.measure.send_lag = Some(lag);
    let reason = phase.only("missed-schedule", Level::Invalid);
    let text = reason.text();
    assert!(
        text.contains("waited for a processor 65.0 % of the time, which can explain all"),
        "{text}"
    );
    assert!(!text.contains("the store kept"), "{text}");
    assert!(reason.record().excuses_store);
    // In process other threads of the store may have had the processor, unless other programs did.
    phase.threading = Threading::InProcess;
    phase.measure.send_lag = None;
    assert!(phase.only("missed-schedule", Level::Invalid).text().starts_with("the store kept up"));
}

#[test]
fn a_client_that_stood_still() {
    let gap = |from: u64, ms: u64| {
        let from = SECOND + from * 1_000_000;
        Stretch { from, to: from + ms * 1_000_000 }
    };
    let mut phase = healthy();
    phase.measure.stalls.gaps = vec![gap(1_000, 99)];
    phase.none();
    phase.measure.stalls.gaps = vec![gap(1_000, 100)];
    phase.none();
    phase.measure.stalls.gaps = vec![gap(1_000, 51), gap(3_000, 50)];
    phase.only("client-stalled", Level::Suspect);
    phase.measure.stalls.gaps = vec![gap(1_000, 501)];
    phase.only("client-stalled", Level::Invalid);
    // What fell due and what timed out meanwhile is the client's.
    phase.open();
    phase.measure.errors = vec![ErrorSummary {
        class: ErrorClass::Timeout,
        certainty: Certainty::Indeterminate,
        count: 12,
        of_client: 10,
        first_message: String::new(),
        first_at: 0,
        last_at: 0,
    }];
    let text = phase.only("client-stalled", Level::Invalid).text();
    assert!(text.contains("5,010 requests fell due and 10 requests timed out meanwhile"), "{text}");
    phase.set_gets(99_000, 1_000);
    let text = phase.reasons()[0].text();
    assert!(
        text.ends_with("did not succeed; 10 of them timed out while kvdyno itself stood still")
    );
}

#[test]
fn a_quota_of_processor_time_that_held_the_client_up() {
    let mut phase = healthy();
    phase.measure.stalls.throttled = Duration::from_secs(12);
    phase.none();
    phase.measure.workers[0].cpu = Duration::from_secs(2);
    phase.measure.workers[0].waited = Duration::from_millis(6_400);
    let reason = phase.only("client-stalled", Level::Invalid);
    assert!((reason.record().figure - 0.64).abs() < 1e-9, "{reason:?}");
    assert!(reason.text().contains("quota was used up for 6.40 s"), "{}", reason.text());
}

#[test]
fn threads_that_waited_for_a_processor_are_told_unless_they_waited_for_each_other() {
    let waited = |clients: u64, servers: &[f64], others: Option<f64>| {
        let mut phase = served(servers, others);
        phase.measure.workers[0].waited = Duration::from_millis(clients);
        phase
    };
    waited(1_000, &[], Some(0.5)).none();
    let reason = waited(1_001, &[], Some(0.5)).only("waited-to-run", Level::Suspect);
    // What else went on may be the server, which nobody named.
    let text = reason.text();
    assert!(text.contains("10.0 % of the time; who had it is not known"), "{text}");
    let reason = waited(200, &[0.05, 0.3], Some(0.06)).only("waited-to-run", Level::Suspect);
    let text = reason.text();
    assert!(
        text.contains(
            "waited for a processor 2.0 % of the time, a thread of a server 30.0 %; other"
        ),
        "{text}"
    );
    waited(3_000, &[0.3], Some(0.019)).none();
    let mut phase = waited(3_000, &[], None);
    phase.threading = Threading::InProcess;
    phase.none();
}

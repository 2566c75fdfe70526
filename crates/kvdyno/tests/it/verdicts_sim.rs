//! For each imperfection of `sim:`: a run of the kvdyno binary notices it, and names just the
//! operations that `sim:` logged.

use std::collections::{BTreeMap, BTreeSet};

use crate::support::suite::Suite;
use crate::support::{Bench, Id, Outcome, number_at, same};
use serde_json::Value;

/// Inserts only, and then every record is read back.
fn inserts() -> Suite {
    Suite::inserts(20_000).set("clients", 4)
}

/// One client updates and reads few records.
fn one_client() -> Suite {
    Suite::of(200).load().phase("mix", "get = 50, update = 50").set("requests", 20_000)
}

/// Four clients only read what was loaded.
fn gets(requests: u64) -> Suite {
    Suite::of(1_000).load().phase("get", "get").set("clients", 4).set("requests", requests)
}

#[test]
fn lie_every_put_acknowledged_and_not_stored_is_named_lost_by_its_writer() {
    let run = Bench::new().sim("lie=100", inserts());
    run.only("lost");
    same(&run.writers("lost"), &run.logged("lie"));
    assert_eq!(run.named("lost"), run.logged("lie").len(), "each one once");
    assert_eq!(run.code, 1);
}

#[test]
fn lie_in_batches_is_told_record_by_record() {
    let batches = Suite::of(20_000).phase("insert", "insert-batch").set("batch", 20);
    let run = Bench::new().sim("lie=100", batches.set("clients", 4).set("requests", 1_000));
    run.only("lost");
    same(&run.writers("lost"), &run.logged("lie"));
    assert_eq!(run.named("lost"), run.log.len(), "each record once");
    assert_eq!(run.code, 1);
}

#[test]
fn lie_under_updates_is_named_once_however_many_reads_find_it() {
    // Each record is written over once in order, then read ten times.
    let suite = Suite::of(2_000)
        .set("clients", 4)
        .set("keys", "sequential")
        .load()
        .phase("rewrite", "update")
        .set("requests", "records")
        .set("read-back", false)
        .phase("get", "get")
        .set("requests", 20_000);
    let run = Bench::new().sim("lie=100", suite);
    run.only("lost");
    let lies = run.logged("lie");
    // A record that was not loaded and was written over after that is whole again.
    let seen: std::collections::BTreeSet<_> = lies.into_iter().filter(|id| id.0 == 1).collect();
    let named = run.writers("lost");
    same(&named, &seen);
    assert_eq!(run.named("lost"), named.len(), "each one once");
    assert!(run.anomalies[0]["again"].as_str().unwrap().ends_with("; 10 reads found it so"));
    assert_eq!(run.code, 1);
}

#[test]
fn lose_every_put_that_is_undone_later_is_named_lost_by_its_writer() {
    let run = Bench::new().sim("lose=100&lose-after=1ms", inserts());
    run.only("lost");
    same(&run.writers("lost"), &run.logged("lose"));
    assert_eq!(run.named("lost"), run.logged("lose").len(), "each one once");
    assert_eq!(run.code, 1);
}

#[test]
fn stale_reads_of_one_client_are_all_named() {
    let run = Bench::new().sim("stale=20", one_client());
    run.only("stale");
    same(&run.readers("stale"), &run.logged("stale"));
    assert_eq!(run.named("stale"), run.logged("stale").len(), "each one once");
    assert_eq!(run.code, 1);
}

#[test]
fn stale_reads_of_64_clients_at_zipfian_are_named_to_99_per_cent() {
    let suite = Suite::of(10_000)
        .load()
        .phase("mix", "get = 50, update = 50")
        .line("keys = { zipfian = { exponent = 0.99 } }")
        .set("clients", 64)
        .set("requests", 400_000);
    let run = Bench::new().sim("stale=50", suite);
    run.only("stale");
    let (named, logged) = (run.readers("stale"), run.logged("stale"));
    assert!(logged.len() > 500, "too few to tell: {}", logged.len());
    blamed_for_a_stale_read_that_could_not_be_told(&run, &logged);
    let found = named.intersection(&logged).count();
    let share = found as f64 / logged.len() as f64;
    assert!(share >= 0.99, "{found} of {} stale reads named", logged.len());
    assert_eq!(run.tally("unknown"), 0);
    assert_eq!(run.code, 1);
}

/// A stale read may find a version whose answer is still to come: that is legal, and under a
/// linearizable store it shows that the version was current then. A later read that is right then
/// contradicts it. That one of the two is wrong is certain, which one cannot be known; the later
/// one is named. Nothing else may be named that `sim:` did not log.
fn blamed_for_a_stale_read_that_could_not_be_told(run: &Outcome, logged: &BTreeSet<Id>) {
    let id = |a: &Value, key| (number_at(a, "phase"), number_at(a, "group"), number_at(a, key));
    let record = |a: &Value| number_at(a, "record");
    let (right, wrong): (Vec<_>, Vec<_>) =
        run.anomalies.iter().partition(|a| logged.contains(&id(a, "operation")));
    let records: BTreeMap<Id, u64> =
        right.iter().map(|a| (id(a, "operation"), record(a))).collect();
    let stale = || run.log.iter().filter(|entry| entry["kind"] == "stale");
    let record_of: BTreeMap<&str, u64> = stale()
        .filter_map(|entry| Some((entry["key"].as_str()?, *records.get(&id(entry, "id"))?)))
        .collect();
    // `None` of a record of which no stale read was named, so that its number is not known.
    let untold: BTreeSet<Option<u64>> = stale()
        .filter(|entry| !records.contains_key(&id(entry, "id")))
        .map(|entry| record_of.get(entry["key"].as_str().unwrap()).copied())
        .collect();
    for anomaly in wrong {
        let to_blame = [Some(record(anomaly)), None].iter().any(|r| untold.contains(r));
        assert!(to_blame, "every stale read of this record was named, and this: {anomaly}");
    }
}

#[test]
fn outlive_every_read_of_a_record_that_should_be_gone_is_named() {
    let watch = Suite::of(500).set("ttl", "1s").load().phase("watch", "get");
    let suite = watch.set("rate", 4_000).set("duration", "2s");
    let run = Bench::new().sim("outlive=20&outlive-for=1m", suite);
    run.only("stale");
    // Named once for each record, by a read that `sim:` logged.
    let (named, logged) = (run.readers("stale"), run.logged("outlive"));
    assert!(named.is_subset(&logged), "{:?}", named.difference(&logged).next());
    let records: BTreeSet<_> = run.log.iter().map(|entry| entry["key"].as_str()).collect();
    assert_eq!(named.len(), records.len());
    assert_eq!(run.code, 1);
}

#[test]
fn corrupt_reads_are_all_named() {
    let run = Bench::new().sim("corrupt=100", gets(20_000));
    run.only("corrupt");
    same(&run.readers("corrupt"), &run.logged("corrupt"));
    assert_eq!(run.named("corrupt"), run.logged("corrupt").len(), "each one once");
    assert_eq!(run.code, 1);
}

#[test]
fn absent_records_that_are_there_are_all_named_stale() {
    let run = Bench::new().sim("absent=100", gets(20_000));
    run.only("stale");
    assert!(run.anomalies.iter().all(|anomaly| anomaly["seen"].is_null()));
    assert!(run.anomalies.iter().all(|anomaly| anomaly["again"] == "right when read again"));
    same(&run.readers("stale"), &run.logged("absent"));
    assert_eq!(run.code, 1);
}

#[test]
fn resurrect_every_delete_that_is_undone_is_named_by_its_writer() {
    let delete = Suite::of(5_000).set("clients", 4).load().phase("delete", "delete");
    let suite = delete.set("keys", "sequential").set("requests", "records");
    let run = Bench::new().sim("resurrect=50&resurrect-after=1ms", suite);
    run.only("resurrected");
    same(&run.writers("resurrected"), &run.logged("resurrect"));
    assert_eq!(run.named("resurrected"), run.logged("resurrect").len(), "each one once");
    assert_eq!(run.code, 1);
}

#[test]
fn phantom_every_failed_put_that_is_there_is_named_by_its_writer() {
    let run = Bench::new().sim("phantom=100", inserts());
    run.only("phantom");
    same(&run.writers("phantom"), &run.logged("phantom"));
    assert_eq!(run.named("phantom"), run.logged("phantom").len(), "each one once");
    assert_eq!(run.code, 1);
}

#[test]
fn refuse_each_refusal_is_counted_and_nothing_else_is_wrong() {
    let run = Bench::new().sim("refuse=200", one_client());
    let refused = run.logged("refuse").len() as u64;
    assert_eq!(run.errors("rejected", "failed"), refused);
    assert_eq!(run.count("", "failed"), refused);
    assert_eq!(run.count("", "indeterminate"), 0);
    assert!(run.anomalies.is_empty(), "{}", run.anomalies[0]);
    assert_eq!(run.tally("unknown"), 0);
}

#[test]
fn timeout_reads_fail_and_writes_are_indeterminate_and_nothing_else_is_wrong() {
    let run = Bench::new().sim("timeout=100&timeout-after=1ms&late=3ms", one_client());
    let writes =
        ["timeout-applied", "timeout-late", "timeout-never"].map(|kind| run.logged(kind).len());
    let (reads, writes) = (run.logged("timeout-read").len(), writes.iter().sum::<usize>());
    assert_eq!(run.errors("timeout", "failed"), reads as u64);
    assert_eq!(run.errors("timeout", "indeterminate"), writes as u64);
    assert_eq!(run.tally("writes_indeterminate"), writes as u64);
    assert!(run.anomalies.is_empty(), "{}", run.anomalies[0]);
    assert_eq!(run.tally("unknown"), 0);
}

#[test]
fn stall_is_in_the_response_time_of_all_that_was_due_meanwhile() {
    let get = Suite::of(100).load().phase("get", "get").set("clients", 4);
    let suite = get.set("rate", 1_000).set("duration", "3s");
    // Counted from the first request, which is the probe's.
    let run = Bench::new().sim("stall=1s&at=1s", suite);
    assert!(!run.logged("stall").is_empty());
    let get = &run.phase("get")["series"][0];
    // A third of what was due fell into the stall and waited until its end.
    let p99 = get["response"]["p99_ns"].as_u64().unwrap();
    assert!((900_000_000..1_200_000_000).contains(&p99), "p99 {p99} ns");
    let p90 = get["response"]["p90_ns"].as_u64().unwrap();
    assert!(p90 > 500_000_000, "p90 {p90} ns");
    let offered = run.phase("get")["offered"].as_u64().unwrap();
    assert!((2_990..=3_001).contains(&offered), "{offered} offered");
    assert!(run.anomalies.is_empty());
}

#[test]
fn service_time_is_what_is_measured() {
    let run = Bench::new().sim("service=2ms", gets(1_000));
    let p50 = run.phase("get")["series"][0]["service"]["p50_ns"].as_u64().unwrap();
    assert!((2_000_000..4_000_000).contains(&p50), "p50 {p50} ns");
    let mean = run.phase("get")["series"][0]["service"]["mean_ns"].as_f64().unwrap();
    assert!(mean >= 2_000_000.0, "mean {mean} ns");
    run.is_clean();
}

//! No false alarm: a correct store is driven hard and nothing is said against it, nor is anything
//! left unknown.

use crate::support::Bench;
use crate::support::suite::Suite;

/// Many clients on small records, few of which are often asked for.
fn busy(records: u64) -> Suite {
    let zipfian = "keys = { zipfian = { exponent = 0.99 } }";
    Suite::of(records).line(zipfian).set("clients", 64).set("value", "40B").load()
}

#[test]
fn ten_million_operations_on_a_correct_store_and_nothing_to_say() {
    // Kept apart from the phase with deletes: there reads of what was deleted are legal misses.
    let rest = "update = 30, read-modify-write = 10, put-get = 10";
    let suite = busy(100_000)
        .phase("updates", &format!("get = 50, {rest}"))
        .set("requests", "4.5M")
        .phase("deletes", &format!("get = 40, delete = 10, {rest}"))
        .set("requests", "4.5M")
        .phase("inserts", "get = 70, insert = 20, update = 5, delete = 5")
        .set("keys", "latest")
        .set("requests", "1M");
    let bench = Bench::new();
    let run = bench.run(&["run", &bench.suite(suite), "--store", "map:", "--quiet"]);
    assert!(run.count("", "ok") >= 10_000_000);
    run.is_clean();
    assert_eq!(run.tally("stamp_only"), 0);
    assert_eq!(run.tally("judged"), run.tally("reads"));
}

#[test]
fn timeouts_that_apply_late_refusals_and_spread_raise_no_alarm() {
    let mix = "get = 50, update = 30, delete = 5, read-modify-write = 10, put-get = 5";
    let suite = busy(2_000).phase("updates", mix).set("requests", 150_000);
    let options =
        "timeout=500&timeout-after=2ms&late=10ms&refuse=200&service=20us&spread=lognormal";
    let run = Bench::new().sim(options, suite);
    assert!(run.logged("timeout-late").len() > 50, "too few late writes");
    assert!(run.anomalies.is_empty(), "{}", run.anomalies[0]);
    assert!(run.tally("judged") > 80_000);
    assert_eq!(run.tally("unknown"), 0);
}

#[test]
fn null_checks_exactly_the_bytes_that_it_gave() {
    let bench = Bench::new();
    let run = bench.run(&[
        "run",
        "--store",
        "null:?length=123",
        "--records",
        "1000",
        "--value",
        "123B",
        "--mix",
        "get=100",
        "--requests",
        "50000",
        "--clients",
        "2",
        "--set",
        "run.read-back=false",
        "--quiet",
    ]);
    run.is_no_failure();
    let gets: u64 = run.count("get", "ok") - run.count("get", "missing");
    assert!(gets >= 50_000);
    assert_eq!(run.tally("bytes_checked"), gets * 123);
    assert!(run.anomalies.is_empty());
}

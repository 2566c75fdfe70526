//! The suite `visibility` tells how far reads are behind writes: held against a store whose lag is known, one without lag,
//! and one whose writes are never seen.

use super::run;
use crate::support::Scratch;

/// Returns the median time until a write was seen in a phase, ms.
fn seen(phase: &serde_json::Value) -> f64 {
    let mut series = phase["series"].as_array().unwrap().iter();
    let seen = series.find(|series| series["kind"] == "put-seen").expect("a row of put-seen");
    seen["service"]["p50_ns"].as_f64().expect("a median") / 1e6
}

#[test]
fn the_lag_of_reads_is_what_a_run_finds() {
    let options = ["--scale", "0.002", "--duration", "2s", "--set", "read-back=false"];
    let behind = run("visibility", "sim:?stale=1&stale-age=40ms&staleness=500ms", &options);
    let beside = run("visibility", "sim:?service=100us", &options);
    assert!(behind.printed.contains("put-seen: from the put's answer until"), "{}", behind.printed);
    for name in ["idle", "busy"] {
        let median = seen(behind.phase(name));
        assert!((39.0..60.0).contains(&median), "{name}: {median} ms behind");
        let median = seen(beside.phase(name));
        assert!(median < 20.0, "{name}: {median} ms without a lag");
        let gets = behind.phase(name)["tally"]["reads"].as_u64();
        assert!(gets > Some(behind.done(name)[0].1), "each get is judged: {gets:?}");
    }
}

#[test]
fn a_write_that_no_get_sees_fails_after_four_seconds() {
    let scratch = Scratch::new();
    let line = "run --records 10 --clients 1 --mix put-seen=100 --requests 1 --quiet --out r --settle 1s --set run.warmup=false \
                --set run.read-back=false --store sim:?stale=1&stale-age=1h&consistency=eventual&service=5ms";
    let ended = scratch.run(&line.split_ascii_whitespace().collect::<Vec<_>>());
    let result = scratch.result("r");
    let errors = &result["runs"][0]["phases"][1]["errors"];
    assert_eq!(errors[0]["count"], 1, "{errors}\n{}", ended.err);
    assert!(errors.to_string().contains("no get found what was put, within 4 s"), "{errors}");
}

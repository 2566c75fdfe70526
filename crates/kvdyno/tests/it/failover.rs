//! A result's time without success, lost writes and claims, against `sim:`, which logs each thing that it does wrong.

use std::collections::BTreeSet;

use crate::support::suite::Suite;
use crate::support::{Bench, Id, Outcome, grouped, number_at, same};
use serde_json::Value;

fn inserts() -> Suite {
    Suite::inserts(20_000).set("clients", 4)
}

/// Makes a suite of few records, loaded by four clients.
fn loaded() -> Suite {
    Suite::of(2_000).set("clients", 4).load()
}

fn writes<'a>(run: &'a Outcome, phase: &str) -> &'a Value {
    let writes = &run.phase(phase)["writes"];
    assert!(writes.is_object(), "no account of writes: {}", run.stderr);
    writes
}

fn claim<'a>(run: &'a Outcome, says: &str) -> &'a Value {
    let claims = run.result["runs"][0]["claims"].as_array().unwrap();
    claims.iter().find(|claim| claim["says"] == says).unwrap_or_else(|| panic!("no claim {says}"))
}

#[test]
fn a_stall_is_told_to_50_ms() {
    let suite = loaded().phase("mix", "get = 50, insert = 50").set("duration", "5s");
    // Another process may hold this one up for longer than that: before it reads an answer that was given ahead of
    // the stall (a shorter time is told), or after the stall's end (a longer one); hardly three times.
    let mut told = Vec::new();
    for _ in 0..3 {
        let run = Bench::new().sim("service=1ms&stall=900ms&at=3s", &suite);
        let stalled = &run.phase("mix")["unavailable"];
        let ms = |side: &str| number_at(&stalled[side], "length_ns") as f64 / 1e6;
        assert!(run.phase("mix")["account"].as_array().unwrap().is_empty(), "no fault was done");
        let sides = ["all", "reads", "writes"].map(ms);
        if sides.iter().all(|side| (850.0..=950.0).contains(side)) {
            return;
        }
        told.push(sides);
    }
    panic!("900 ms were told as {told:?}");
}

#[test]
fn every_acknowledged_insert_that_is_gone_is_counted_and_ten_are_traced() {
    let suite = inserts()
        .claim("nothing is lost", "acked_lost == 0")
        .claim("all were acknowledged", "acked == 20k, recovered == 0");
    let run = Bench::new().sim("lie=100", suite);
    let writes = writes(&run, "insert");
    let lies = run.logged("lie");
    assert_eq!(number_at(writes, "lost"), lies.len() as u64, "{writes}");
    assert_eq!((number_at(writes, "acknowledged"), number_at(writes, "read")), (20_000, 20_000));
    assert_eq!((&writes["exact"], number_at(writes, "unknown")), (&Value::Bool(true), 0));
    let examples = writes["examples"].as_array().unwrap();
    let traced: BTreeSet<Id> = examples.iter().map(writer).collect();
    assert_eq!(traced.len(), 10);
    assert!(traced.is_subset(&lies), "{traced:?}");
    assert!(examples.iter().all(|lost| lost["found"].is_null() && lost["version"] == 1));
    assert_eq!(claim(&run, "nothing is lost")["standing"], "refuted");
    assert_eq!(claim(&run, "all were acknowledged")["standing"], "confirmed");
    assert_eq!(run.code, 1);
    let lost = lies.len();
    for part in [
        "REFUTED: nothing is lost".to_owned(),
        format!("acked_lost == 0 in insert: NO, {lost}"),
        "CONFIRMED: all were acknowledged".to_owned(),
        "reaches no fault was injected".to_owned(),
        format!("20,000 writes acknowledged, {lost} of these lost"),
        "written by operation 0/0/".to_owned(),
    ] {
        assert!(run.stdout.contains(&part), "no {part:?} in {}", run.stdout);
    }
}

#[test]
fn one_number_for_one_thing_in_all_that_is_written_however_many_writes_are_lost() {
    let suite = Suite::inserts(94_000)
        .set("clients", 4)
        .claim("nothing is lost", "acked_lost == 0")
        .claim("every read is right", "anomalies == 0");
    let bench = Bench::new();
    let run = bench.sim("lie=2", suite);
    let [page, markdown, junit] = ["x.html", "x.md", "x.xml"].map(|name| bench.report(name));
    let lost = run.logged("lie").len() as u64;
    assert!(lost > 40_000, "{lost}");
    // The result.
    let (writes, read_back) = (writes(&run, "insert"), run.phase("insert:read-back"));
    assert_eq!((number_at(writes, "lost"), number_at(writes, "acknowledged")), (lost, 94_000));
    let nothing = ["late", "unknown", "corrupt", "phantom", "resurrected"];
    assert!(nothing.iter().all(|key| number_at(writes, key) == 0), "{writes}");
    assert_eq!(read_back["tally"]["anomalies"], serde_json::json!([0, 0, 0, 0, lost]));
    assert_eq!(number_at(&read_back["tally"], "not_read_again"), 0);
    assert_eq!((run.anomalies.len() as u64, run.named("lost") as u64), (lost, lost));
    same(&run.writers("lost"), &run.logged("lie"));
    // All that is told of it.
    let number = grouped(lost);
    let account = format!("94,000 writes acknowledged, {number} of these lost");
    let anomalies = format!("ANOMALIES: {number} lost, 0 unknown");
    for text in [&run.stdout, &markdown, &page] {
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        for told in [&account, &anomalies] {
            assert!(text.contains(told), "no {told:?} in {text}");
        }
    }
    assert!(junit.contains(&format!("anomalies: {number} lost")), "{junit}");
    for says in ["nothing is lost", "every read is right"] {
        let claim = claim(&run, says);
        assert_eq!(claim["standing"], "refuted");
        assert!(claim["conditions"].to_string().contains(&number), "{claim}");
    }
}

fn writer(lost: &Value) -> Id {
    let part = |at: usize| lost["writer"][at].as_u64().unwrap_or_else(|| panic!("{lost}"));
    (part(0), part(1), part(2))
}

#[test]
fn writes_without_an_answer_that_are_there_are_recovered() {
    let run = Bench::new().sim("timeout=50&timeout-after=1ms&late=3ms", inserts());
    let writes = writes(&run, "insert");
    let applied: BTreeSet<Id> =
        run.logged("timeout-applied").union(&run.logged("timeout-late")).copied().collect();
    // Reads time out as well, and are sent again until each record is known.
    assert!(!run.phase("insert:read-back")["errors"].as_array().unwrap().is_empty());
    assert_eq!(number_at(writes, "unknown"), 0);
    assert_eq!(number_at(writes, "recovered"), applied.len() as u64);
    let indeterminate = applied.len() + run.logged("timeout-never").len();
    assert_eq!(number_at(writes, "indeterminate"), indeterminate as u64);
    let acknowledged = number_at(writes, "acknowledged");
    assert_eq!(acknowledged + number_at(writes, "indeterminate"), 20_000);
    assert_eq!(number_at(writes, "lost"), 0);
}

#[test]
fn what_was_written_over_may_have_been_lost_too() {
    let suite = loaded()
        .phase("rewrite", "update")
        .set("keys", "sequential")
        .set("requests", "records")
        .phase_claim("nothing is lost", "acked_lost == 0");
    let clean = Bench::new().sim("service=0ns", &suite);
    assert_eq!(writes(&clean, "rewrite")["exact"], false);
    let claimed = claim(&clean, "nothing is lost");
    assert_eq!(claimed["standing"], "inconclusive", "{claimed}");
    assert_eq!(clean.code, 2);
    let lying = Bench::new().sim("lie=100", suite);
    assert_eq!(claim(&lying, "nothing is lost")["standing"], "refuted");
    assert!(lying.stdout.contains("at least"), "{}", lying.stdout);
}

#[test]
fn a_healthy_store_has_no_account_and_raises_no_alarm() {
    let holds =
        ["acked_lost == 0, anomalies == 0", "errors == 0, unknown == 0, stale_versions == 0"];
    let run = Bench::new().sim("service=10us", inserts().claim("all is well", holds));
    run.is_clean();
    assert_eq!(claim(&run, "all is well")["standing"], "confirmed", "{}", run.stdout);
    assert!(run.phases().iter().all(|phase| phase["account"].as_array().unwrap().is_empty()));
    assert!(!run.stdout.contains("What the faults"), "{}", run.stdout);
    assert_eq!(number_at(writes(&run, "insert"), "lost"), 0);
}

#[test]
fn what_no_phase_can_tell_is_refused_at_once() {
    let suite = inserts().phase_claim("errors end", "last_error < 10s");
    let run = Bench::new().sim("service=0ns", suite);
    assert_eq!(run.code, 64, "{}", run.stdout);
    assert!(run.stderr.contains("errors end"), "{}", run.stderr);
}

#[test]
fn stale_reads_are_told_by_versions() {
    // One client writes each record over and over, so that the log tells how old a read is.
    let suite = Suite::of(50)
        .load()
        .phase("mix", "get = 50, update = 50")
        .set("requests", 20_000)
        .phase_claim("nothing old is read", "stale_versions == 0");
    let run = Bench::new().sim("stale=20&stale-age=50ms", suite);
    let stale = &run.phase("mix")["stale"];
    let in_mix = || run.anomalies.iter().filter(|anomaly| anomaly["phase_name"] == "mix");
    assert_eq!(number_at(stale, "reads"), in_mix().count() as u64);
    let behind = |anomaly: &Value| number_at(anomaly, "floor") - number_at(anomaly, "seen");
    let versions: Vec<u64> = in_mix().map(behind).collect();
    assert_eq!(Some(number_at(stale, "most_versions")), versions.iter().copied().max());
    assert_eq!(Some(number_at(stale, "least_versions")), versions.iter().copied().min());
    assert_eq!(claim(&run, "nothing old is read")["standing"], "refuted");
    same(&run.readers("stale"), &run.logged("stale"));
}

#[test]
fn half_of_what_a_phase_reached_is_what_the_next_one_asks_for() {
    let suite = loaded().phase("read", "get").set("rate", "50% of load").set("requests", 500);
    let bench = Bench::new();
    let run = bench.sim("service=1ms", suite);
    let load = run.phase("load");
    let reached = 2_000.0 / (number_at(load, "wall_ns") as f64 / 1e9);
    let asked = run.phase("read")["groups"][0]["rate"].as_f64().unwrap();
    assert!((asked / reached - 0.5).abs() < 1e-6, "{asked} of {reached}");
}

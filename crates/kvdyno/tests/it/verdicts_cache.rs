//! A store is held to the staleness that it declares: what is older is named, what is not is counted
//! and legal.

use crate::support::suite::Suite;
use crate::support::{Bench, number_at};

fn mix(clients: u32) -> Suite {
    mix_of(200, clients)
}

/// The more records, the longer until the next update of one makes an old value of it go.
fn mix_of(records: u64, clients: u32) -> Suite {
    let loaded = Suite::of(records).set("clients", clients).load();
    loaded.phase("mix", "get = 50, update = 50").set("requests", 20_000 * clients)
}

#[test]
fn stale_reads_within_the_declared_staleness_are_counted_and_legal() {
    let run = Bench::new().sim("stale=20&stale-age=50ms&staleness=60s", mix(1));
    run.is_clean();
    assert_eq!(run.tally("legal_stale"), run.logged("stale").len() as u64);
    let level = &run.result["runs"][0]["store"]["consistency"]["level"];
    assert_eq!(level, "bounded-staleness-60000000000ns");
}

#[test]
fn stale_reads_beyond_the_declared_staleness_are_named() {
    // The oldest version of the last minute comes back, which soon is older than 2 ms.
    let run = Bench::new().sim("stale=20&stale-age=60s&staleness=2ms", mix(1));
    run.only("stale");
    let (named, logged) = (run.readers("stale"), run.logged("stale"));
    assert!(named.is_subset(&logged), "{:?}", named.difference(&logged).next());
    assert_eq!(named.len() as u64 + run.tally("legal_stale"), logged.len() as u64);
    assert!(named.len() > logged.len() / 2, "{} of {}", named.len(), logged.len());
    assert_eq!(run.code, 1);
}

#[test]
fn a_cache_whose_invalidation_fails_keeps_to_its_time_to_live() {
    let bench = Bench::new();
    let suite = bench.suite(mix(2));
    let store = "cache(sim:?refuse=20, map:)?ttl=50ms";
    let run = bench.run(&["run", &suite, "--store", store, "--quiet"]);
    run.is_clean();
    assert!(run.tally("legal_stale") > 0, "no old value was ever read: {}", run.stderr);
    let figures = run.phase("mix")["figures"].as_array().unwrap();
    let figure = |name: &str| figures.iter().find(|figure| figure["name"] == name);
    assert!(figure("hit ratio").unwrap()["value"].as_f64().unwrap() > 0.01);
    for name in ["get of the cache, median", "get of the store after a miss, 99th percentile"] {
        assert!(figure(name).unwrap()["value"].as_f64().unwrap() > 0.0, "{name}");
    }
    assert!(figure("requests to the cache that failed").unwrap()["warning"].is_string());
}

#[test]
fn a_cache_that_declares_less_than_it_keeps_is_named() {
    let bench = Bench::new();
    let suite = bench.suite(mix_of(2_000, 2));
    let store = "cache(sim:?refuse=20, map:)?ttl=60s&staleness=1ms";
    let run = bench.run(&["run", &suite, "--store", store, "--quiet"]);
    assert!(run.named("stale") > 10, "{} stale", run.named("stale"));
    assert_eq!(run.named("phantom") + run.named("corrupt"), 0);
    assert_eq!(run.code, 1);
}

#[test]
fn a_sound_cache_is_clean_in_both_modes_and_hides_passwords() {
    let bench = Bench::new();
    let suite = bench.suite(mix(2));
    for mode in ["aside", "through"] {
        let store = format!("cache(map:, map:)?mode={mode}&ttl=1s");
        let run = bench.run(&["run", &suite, "--store", &store, "--quiet"]);
        run.is_clean();
    }
    let store = "cache(map:, redis://joe:hunter2@127.0.0.1:1)";
    let run = bench.run(&["run", &suite, "--store", store, "--quiet"]);
    assert_eq!(run.code, 69, "{}", run.stderr);
    let said = format!("{}{}{}", run.stdout, run.stderr, run.result);
    assert!(!said.contains("hunter2"), "{said}");
}

#[test]
fn what_the_store_behind_a_cache_has_lost_is_lost_though_the_cache_has_it() {
    let bench = Bench::new();
    let loaded = Suite::of(500).set("clients", 2).load();
    let suite = loaded.phase("mix", "insert").set("requests", 2_000).set("read-back", true);
    let suite = bench.suite(suite.phase_claim("nothing is lost", "acked_lost == 0"));
    let sim = format!("sim:?lie=50&log={}", bench.path("sim.jsonl").display());
    let inner = format!("cache(map:, {sim})?mode=through&ttl=60s");
    let outer = format!("cache(map:, {inner})?mode=through&ttl=60s");
    for store in [inner, outer] {
        let _ = std::fs::remove_file(bench.path("sim.jsonl"));
        let run = bench.run(&["run", &suite, "--store", &store, "--quiet"]);
        let writes = &run.phase("mix")["writes"];
        assert_eq!(number_at(writes, "lost"), run.logged("lie").len() as u64, "{}", run.stdout);
        let how = writes["how"].as_str().unwrap();
        assert!(how.starts_with("of sim itself (the run reads "), "{how}");
        let claim = &run.result["runs"][0]["claims"][0];
        assert_eq!((claim["standing"].as_str(), run.code), (Some("refuted"), 1), "{}", run.stdout);
    }
}

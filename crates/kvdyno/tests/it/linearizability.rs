//! The histories of sampled records, kept under load and judged: a violation is found where there
//! is one and nowhere else, costs the exit code, and comes with a file for other checkers.

use crate::support::suite::Suite;
use crate::support::{Bench, Outcome};

/// Makes a load of eight clients that read and write few enough records that the sampled ones are busy.
fn unwatched(last: &str) -> Suite {
    let mix = format!("get = 50, update = 30, read-modify-write = 10, {last} = 10");
    let loaded = Suite::of(1_000).set("clients", 8).load();
    loaded.phase("mix", &mix).set("requests", 200_000)
}

/// Makes the same load with histories.
fn busy() -> Suite {
    unwatched("put-get").set("linearizability", true)
}

fn claimed(suite: Suite) -> Suite {
    suite.phase_claim("some order explains every history", "violations == 0")
}

/// Returns the standing of that claim.
fn standing(run: &Outcome) -> &serde_json::Value {
    &run.result["runs"][0]["claims"][0]["standing"]
}

/// Returns the result of linearizability of the phase `mix`.
fn answer(run: &Outcome) -> serde_json::Value {
    run.phase("mix")["linearizability"].clone()
}

fn history(bench: &Bench) -> String {
    std::fs::read_to_string(bench.path("out-0/history-0-mix.edn")).unwrap()
}

#[test]
fn old_values_served_on_purpose_are_found_and_shown() {
    let bench = Bench::new();
    let run = bench.sim("stale=20", claimed(busy()));
    let told = answer(&run);
    assert_eq!(told["answer"], "violated", "{told}");
    assert_eq!(standing(&run), "refuted");
    let requests = told["violation"]["requests"].as_array().unwrap();
    assert!((2..=6).contains(&requests.len()), "{told}");
    assert_eq!(run.code, 1);
    assert!(run.stdout.contains("mix: NOT LINEARIZABLE: "), "{}", run.stdout);
    let record = told["violation"]["record"].as_u64().unwrap();
    assert!(history(&bench).contains(&format!(":value [{record} ")));
}

#[test]
fn a_map_is_linearizable_every_time() {
    for _ in 0..5 {
        let bench = Bench::new();
        let suite = bench.suite(claimed(busy()));
        let run = bench.run(&["run", &suite, "--store", "map:", "--quiet"]);
        let told = answer(&run);
        assert_eq!(told["answer"], "ok", "{told}");
        assert_eq!(standing(&run), "confirmed");
        run.is_no_failure();
        assert_eq!(told["records"], 16);
        let requests = told["requests"].as_u64().unwrap();
        assert!((2_000..=30_000).contains(&requests), "{told}");
        assert!(run.stdout.contains("mix: linearizable: "), "{}", run.stdout);
        // Each request has its two lines, as has each write that was there before and was read.
        let written = history(&bench).lines().count() as u64 / 2;
        assert!((requests..=requests + 16).contains(&written), "{written} of {requests}");
    }
}

#[test]
fn timeouts_and_refusals_are_no_violation() {
    let bench = Bench::new();
    let run = bench.sim("timeout=300&refuse=300&timeout-after=1ms&late=2ms", busy());
    let told = answer(&run);
    assert_eq!(told["answer"], "ok", "{told}");
    assert!(told["indeterminate"].as_u64().unwrap() > 0, "{told}");
    assert!(run.stdout.contains("mix: linearizable: "), "{}", run.stdout);
}

#[test]
fn a_store_that_promises_less_is_measured_and_not_failed() {
    let run = Bench::new().sim("stale=20&consistency=eventual", busy());
    assert_eq!(answer(&run)["answer"], "violated");
    run.is_no_failure();
}

#[test]
fn without_being_asked_nothing_is_kept_and_the_flag_asks() {
    let bench = Bench::new();
    let suite = bench.suite(claimed(unwatched("put-get")));
    let run = bench.run(&["run", &suite, "--store", "map:", "--quiet"]);
    let said = "phase mix asks for no linearizability";
    assert!(run.code == 64 && run.stderr.contains(said), "{}: {}", run.code, run.stderr);
    assert!(!bench.path("out-0/history-0-mix.edn").exists());
    let run = bench.run(&["run", &suite, "--store", "map:", "--quiet", "--linearizability"]);
    assert_eq!(answer(&run)["answer"], "ok");
    assert_eq!(standing(&run), "confirmed");
    assert!(bench.path("out-0/history-0-mix.edn").exists());
    let arguments = ["run", &suite, "--store", "map:", "--quiet", "--linearizability"];
    let run = bench.run(&[&arguments[..], &["--no-verify"]].concat());
    let told = answer(&run);
    assert_eq!(told["answer"], "unknown");
    assert!(run.stdout.contains("mix: linearizable or not is unknown: verification is off"));
}

#[test]
fn what_cannot_be_judged_is_refused_at_once() {
    let bench = Bench::new();
    let suite = bench.suite(unwatched("delete").set("linearizability", true));
    let run = bench.run(&["run", &suite, "--store", "map:"]);
    let said = "linearizability of phase `mix` cannot be judged: it deletes records";
    assert!(run.code == 64 && run.stderr.contains(said), "{}: {}", run.code, run.stderr);
}

//! Runs a suite by the command itself, as a user does, and checks what every good run has in common.

#[cfg(all(feature = "server-tests", feature = "full"))]
mod caches;
mod in_process;
#[cfg(feature = "server-tests")]
mod on_servers;
#[cfg(all(feature = "server-tests", feature = "full"))]
mod on_testbeds;
mod visibility;

use serde_json::Value;

use crate::support::{Scratch, is_excused};

/// A run that has ended.
pub struct Finished {
    /// Output of the run.
    pub printed: String,
    result: Value,
}

/// Runs `suite` against `store` and checks that it ended as it deserves: every phase to its end, every read judged
/// and right, no operation failed, and the verdict's exit code.
#[track_caller]
pub fn run(suite: &str, store: &str, options: &[&str]) -> Finished {
    let scratch = Scratch::new();
    let arguments = ["run", suite, "--store", store, "--quiet", "--out", "result"];
    let ended = scratch.run(&[&arguments, options].concat());
    let told = format!("{suite} on {store}\n{}\n{}", ended.out, ended.err);
    assert!(scratch.path("result/result.json").exists(), "{told}");
    let result = scratch.result("result");
    let run = &result["runs"][0];
    assert_eq!(run["status"]["state"], "complete", "{told}");
    for phase in run["phases"].as_array().unwrap() {
        let mut missing = 0;
        for series in phase["series"].as_array().unwrap() {
            let unsuccessful = (&series["failed"], &series["indeterminate"]);
            assert_eq!(unsuccessful, (&0.into(), &0.into()), "{told}");
            missing += series["missing"].as_u64().unwrap();
        }
        let tally = &phase["tally"];
        assert_eq!((&tally["reads"], &tally["unknown"]), (&tally["judged"], &0.into()), "{told}");
        // Only reads of records whose insert was under way may find nothing.
        assert_eq!(tally["unexpected_misses"], 0, "{told}");
        let legal = [&tally["early"], &tally["legal_misses"]].map(|count| count.as_u64().unwrap());
        assert!(missing <= legal.iter().sum(), "{told}");
    }
    assert!(ended.out.contains("no anomaly, 0 unknown"), "{told}");
    assert_eq!(ended.code(), deserved(&run["verdict"], &told), "{told}");
    assert!(scratch.path("result/report.html").exists(), "{told}");
    Finished { printed: ended.out, result }
}

/// Returns the exit code for a verdict. Only the build and a busy machine may make it invalid: nothing that the suite
/// or the store is to blame for.
fn deserved(verdict: &Value, told: &str) -> i32 {
    let reasons = verdict["reasons"].as_array().unwrap();
    let invalid: Vec<&str> = reasons
        .iter()
        .filter(|reason| reason["level"] == "invalid")
        .map(|reason| reason["name"].as_str().unwrap())
        .collect();
    // A suite that is much smaller than life has few sends, of which some are late on such a machine.
    let excused = |name: &&str| is_excused(name) || *name == "late-sends";
    assert!(invalid.iter().all(excused), "{told}");
    assert_eq!(invalid.contains(&"debug-build"), cfg!(debug_assertions), "{told}");
    if invalid.is_empty() { 0 } else { 2 }
}

impl Finished {
    /// Returns the phases in order.
    pub fn phases(&self) -> &[Value] {
        self.result["runs"][0]["phases"].as_array().unwrap()
    }

    /// Returns the phase of this name.
    #[track_caller]
    pub fn phase(&self, name: &str) -> &Value {
        self.phases().iter().find(|phase| phase["name"] == name).expect(name)
    }

    /// Returns the names of all phases, warm-ups and added ones too.
    pub fn names(&self) -> Vec<&str> {
        self.phases().iter().map(|phase| phase["name"].as_str().unwrap()).collect()
    }

    /// Returns the operations that succeeded in the phase of this name, by kind.
    #[track_caller]
    pub fn done(&self, name: &str) -> Vec<(&str, u64)> {
        let series = self.phase(name)["series"].as_array().unwrap().iter();
        series.map(|s| (s["kind"].as_str().unwrap(), s["ok"].as_u64().unwrap())).collect()
    }

    /// Asserts that the run is marked as scaled, in the table and in the verdict, and shows no published figure.
    #[track_caller]
    pub fn assert_not_comparable(&self) {
        assert!(self.printed.contains(": not comparable with the published figures"));
        assert!(!self.printed.contains("published: "), "{}", self.printed);
        let reasons = self.result["runs"][0]["verdict"]["reasons"].as_array().unwrap();
        assert!(reasons.iter().any(|reason| reason["name"] == "scaled"));
        assert!(self.result["suite"]["scale"].as_f64().is_some());
    }
}

/// The published rows of 2011 in their order: label, clients, seed of the value sizes.
pub const AMESAR_2011: [(&str, u64, Option<i64>); 12] = [
    ("Put", 20, Some(1776)),
    ("Get", 20, None),
    ("Get", 20, None),
    ("Get", 50, None),
    ("Put", 20, Some(1812)),
    ("Put", 20, Some(1846)),
    ("Get", 20, None),
    ("Get", 20, None),
    ("PutGet", 20, Some(1861)),
    ("Get", 20, None),
    ("Get", 20, None),
    ("Get", 50, None),
];

/// Runs `amesar-2011` with 1,000 records and requests instead of 10 million.
#[track_caller]
pub fn assert_amesar_2011(store: &str) {
    let run = run("amesar-2011", store, &["--scale", "0.0001"]);
    run.assert_not_comparable();
    let rows: Vec<_> = run
        .phases()
        .iter()
        .map(|phase| {
            let group = &phase["groups"][0];
            let (clients, seed) =
                (group["clients"].as_u64().unwrap(), group["value_seed"].as_i64());
            (phase["label"].as_str().unwrap(), clients, seed)
        })
        .collect();
    assert_eq!(rows, AMESAR_2011);
    for phase in run.phases() {
        assert_eq!(phase["started_operations"], 1_000, "{}", phase["name"]);
    }
    // The table has the rows in the same order, with clients and seed as its last columns.
    let words = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    let (_, table) = run.printed.split_once("Test ").unwrap();
    for ((label, clients, seed), line) in AMESAR_2011.iter().zip(table.lines().skip(1)) {
        let mut last = vec![clients.to_string()];
        last.extend(seed.map(|seed| seed.to_string()));
        let words = words(line);
        assert!(words[0] == *label && words.ends_with(&last), "{line}");
    }
}

/// Phases of `aws-2014` without warm-ups: an insert run before each test.
#[track_caller]
pub fn assert_aws_2014(store: &str) {
    let options = ["--scale", "0.0001", "--clients", "16", "--set", "warmup=100ms"];
    let run = run("aws-2014", store, &options);
    run.assert_not_comparable();
    let names = run.names();
    let measured: Vec<_> = names.iter().filter(|name| !name.ends_with(":warm-up")).collect();
    let expected = ["insert-1", "mix-50-50", "insert-2", "mix-80-20", "insert-3", "get-100"];
    assert!(measured.into_iter().eq(&expected), "{names:?}");
    assert_eq!(run.done("insert-1"), [("insert", 1_000)]);
    assert_eq!(run.done("mix-50-50"), [("get", 3_000), ("update", 3_000)]);
    assert_eq!(run.done("insert-2"), [("update", 1_000)]);
    assert_eq!(run.done("mix-80-20"), [("get", 4_800), ("update", 1_200)]);
    assert_eq!(run.done("get-100"), [("get", 6_000)]);
}

/// `gce-2015`: populated by inserts, then reads, then the inserts again.
#[track_caller]
pub fn assert_gce_2015(store: &str) {
    let options = ["--scale", "0.0001", "--clients", "32", "--set", "warmup=100ms"];
    let run = run("gce-2015", store, &options);
    run.assert_not_comparable();
    assert_eq!(run.names(), ["insert", "read:warm-up", "read", "write"]);
    assert_eq!(run.done("insert"), [("insert", 1_000)]);
    assert_eq!(run.done("read"), [("get", 24_000)]);
    assert_eq!(run.done("write"), [("update", 1_000)]);
}

/// One of the YCSB core workloads as built in: what its run phase does, of 1,000 operations.
#[track_caller]
pub fn assert_ycsb(suite: &str, store: &str, does: &[(&str, u64)]) {
    let run = run(suite, store, &["--set", "warmup=100ms", "--clients", "4"]);
    let names = run.names();
    let planned: Vec<_> = names.iter().filter(|name| !name.ends_with(":read-back")).collect();
    assert_eq!(planned, [&"load", &"run:warm-up", &"run"]);
    // What was written last is read back once.
    assert_eq!(names.len(), planned.len() + 1, "{names:?}");
    assert_eq!(run.done("load"), [("insert", 1_000)]);
    assert_eq!(run.done("run"), does);
}

//! Faults of a phase on real servers: they are done when they are due, put right, told, and what
//! they cost is counted.
#![cfg(feature = "server-tests")]

use std::process::{Command, Output};

use serde_json::Value;

const LOAD: &str = r#"
name = "faults"
records = 2000
clients = 4
warmup = false

[[phase]]
name = "load"
load = true

[[phase]]
name = "mix"
mix = { get = 50, update = 50 }
rate = "1k/s"
duration = "4s"
"#;

struct Ran {
    output: Output,
    result: Value,
    _folder: tempfile::TempDir,
}

fn run(fault: &str, target: [&str; 2]) -> Ran {
    let folder = tempfile::tempdir().unwrap();
    let suite = folder.path().join("faults.toml");
    std::fs::write(&suite, format!("{LOAD}\n{fault}")).unwrap();
    let out = folder.path().join("out");
    let output = Command::new(env!("CARGO_BIN_EXE_kvdyno"))
        .args(["run", suite.to_str().unwrap(), "--quiet", "--out", out.to_str().unwrap()])
        .args(target)
        .output()
        .unwrap();
    let text = std::fs::read_to_string(out.join("result.json")).unwrap_or_default();
    Ran { output, result: serde_json::from_str(&text).unwrap_or_default(), _folder: folder }
}

impl Ran {
    fn told(&self) -> String {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        format!("{}\n{}", text(&self.output.stdout), text(&self.output.stderr))
    }

    fn phase(&self, name: &str) -> &Value {
        let phases = self.result["runs"][0]["phases"].as_array().unwrap_or_else(|| {
            panic!("{}", self.told());
        });
        phases.iter().find(|phase| phase["name"] == name).unwrap_or_else(|| {
            panic!("no phase {name}: {}", self.told());
        })
    }

    /// What was done, and to whom; none of it went wrong.
    fn faults(&self) -> Vec<(&str, &str)> {
        let faults = self.phase("mix")["faults"].as_array().unwrap();
        assert!(faults.iter().all(|fault| fault["error"].is_null()), "{}", self.told());
        let text = |value: &'_ Value| value.as_str().unwrap().to_owned().leak() as &str;
        faults.iter().map(|fault| (text(&fault["what"]), text(&fault["node"]))).collect()
    }

    fn unsuccessful(&self) -> u64 {
        let series = self.phase("mix")["series"].as_array().unwrap().iter();
        series.map(|s| s["failed"].as_u64().unwrap() + s["indeterminate"].as_u64().unwrap()).sum()
    }

    fn anomalies(&self) -> u64 {
        let phases = self.result["runs"][0]["phases"].as_array().unwrap().iter();
        phases.map(|phase| phase["anomalies"].as_array().unwrap().len() as u64).sum()
    }
}

#[test]
fn a_killed_server_is_started_again_and_what_it_had_acknowledged_is_there() {
    let fault = "[[phase.fault]]\ndo = \"kill\"\nat = \"1s\"\nrepair = \"1s\"\n";
    let ran = run(fault, ["--testbed", "redis?persistence=aof-always"]);
    assert_eq!(ran.faults(), [("kill", "redis-1"), ("start again", "redis-1")]);
    assert!(ran.unsuccessful() > 0, "a second without a server: {}", ran.told());
    assert_eq!(ran.anomalies(), 0, "{}", ran.told());
    assert_eq!(ran.phase("mix:read-back")["tally"]["judged"], 2000, "{}", ran.told());
    let faults = &ran.phase("mix")["faults"];
    let began = |at: usize| faults[at]["began_ns"].as_u64().unwrap();
    assert!(began(0) >= 1_000_000_000 && began(1) >= began(0) + 1_000_000_000, "{faults}");
    assert!(ran.told().contains("mix: kill redis-1"), "{}", ran.told());
}

#[test]
fn what_a_killed_server_has_forgotten_is_named_lost() {
    // Repaired only when the clients are done.
    let fault = "[[phase.fault]]\ndo = \"kill\"\nat = \"3s\"\n";
    let ran = run(fault, ["--testbed", "redis"]);
    assert_eq!(ran.faults(), [("kill", "redis-1"), ("start again", "redis-1")]);
    let lost = ran.phase("mix:read-back")["tally"]["anomalies"].as_array().unwrap();
    let named: u64 = lost.iter().map(|count| count.as_u64().unwrap()).sum();
    assert_eq!(named, 2000, "all was in memory only: {}", ran.told());
    assert_eq!(ran.output.status.code(), Some(1), "{}", ran.told());
}

#[test]
fn every_server_rewrites_its_log_while_the_load_goes_on() {
    let fault = "[[phase.fault]]\ndo = \"rewrite\"\nnode = \"all\"\nat = \"500ms\"\n";
    let testbed = "redis-sharded:2?persistence=aof-everysec&rewrites=held-off";
    let ran = run(fault, ["--testbed", testbed]);
    assert_eq!(ran.faults(), [("rewrite", "redis-1"), ("rewrite", "redis-2")]);
    assert_eq!((ran.unsuccessful(), ran.anomalies()), (0, 0), "{}", ran.told());
}

#[test]
fn a_paused_server_is_resumed_again_and_again() {
    let fault = "[[phase.fault]]\ndo = \"pause\"\nnode = 1\nat = \"500ms\"\nrepair = \"300ms\"\nevery = \"1s\"\n";
    let ran = run(fault, ["--testbed", "redis"]);
    let faults = ran.faults();
    assert!(faults.len() >= 4, "{faults:?}");
    for pair in faults.chunks(2) {
        assert_eq!(pair, [("pause", "redis-1"), ("resume", "redis-1")]);
    }
    assert_eq!(ran.anomalies(), 0, "{}", ran.told());
}

#[test]
fn faults_want_a_testbed() {
    let fault = "[[phase.fault]]\ndo = \"kill\"\n";
    let ran = run(fault, ["--store", "map:"]);
    assert_eq!(ran.output.status.code(), Some(64));
    assert!(ran.told().contains("--testbed NAME"), "{}", ran.told());
}

#[test]
fn a_fault_that_cannot_be_done_is_told() {
    let fault = "[[phase.fault]]\ndo = \"kill\"\nnode = \"primary\"\n";
    let ran = run(fault, ["--testbed", "redis"]);
    let error = ran.phase("mix")["faults"][0]["error"].as_str().unwrap();
    assert!(error.contains("no node is a primary now"), "{error}");
    assert_eq!(ran.unsuccessful(), 0);
}

//! Runs the kvdyno binary on a store and reads back what it wrote down, and what `sim:` says that it
//! did wrong.

#![allow(dead_code, unused_imports, reason = "each test binary uses a part of it")]

mod command;
pub mod library;
pub mod next_step;
pub mod suite;

use std::collections::BTreeSet;
use std::fmt::Display;
use std::path::{Path, PathBuf};

pub use command::{Ended, KVDYNO, Running, Scratch, finds_kvdyno, is_excused, kvdyno};
use serde_json::Value;

/// Phase, group and number of an operation.
pub type Id = (u64, u64, u64);

/// Client group of the reads that kvdyno makes for itself, to look again at suspects.
const RECHECK_GROUP: u64 = u16::MAX as u64;
/// Phase number of the look for existing records, which is no phase of the plan.
const PROBE_PHASE: u64 = u16::MAX as u64;

/// A folder for one test.
pub struct Bench {
    /// Folder in which the command runs.
    pub scratch: Scratch,
}

/// Output and files of one run.
pub struct Outcome {
    /// Exit code.
    pub code: i32,
    /// Its standard error.
    pub stderr: String,
    /// Its standard output.
    pub stdout: String,
    /// Its `result.json`.
    pub result: Value,
    /// Its `anomalies.jsonl`.
    pub anomalies: Vec<Value>,
    /// The log of `sim:`, without entries of the probe for existing records and of second looks.
    pub log: Vec<Value>,
}

impl Bench {
    pub fn new() -> Bench {
        Bench { scratch: Scratch::new() }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.scratch.path(name)
    }

    /// Writes a suite file. Returns its path.
    pub fn suite(&self, suite: impl Display) -> String {
        let path = self.path("suite.toml");
        suite::write(&path, suite);
        path.display().to_string()
    }

    /// Runs a suite on `sim:` with `options`.
    pub fn sim(&self, options: &str, suite: impl Display) -> Outcome {
        let log = self.path("sim.jsonl");
        let store = format!("sim:?{options}&log={}", log.display());
        let suite = self.suite(suite);
        self.run(&["run", &suite, "--store", &store, "--quiet"])
    }

    /// Runs kvdyno with `arguments`, its result in a folder of its own.
    pub fn run(&self, arguments: &[&str]) -> Outcome {
        let number = (0..).find(|n| !self.path(&format!("out-{n}")).exists()).unwrap();
        let out = self.path(&format!("out-{number}"));
        let out_argument = out.display().to_string();
        let ran = self.scratch.run(&[arguments, &["--out", &out_argument]].concat());
        let log = lines(&self.path("sim.jsonl")).into_iter().filter(|entry| {
            number_at(entry, "group") != RECHECK_GROUP && number_at(entry, "phase") != PROBE_PHASE
        });
        let result = std::fs::read_to_string(out.join("result.json")).unwrap_or_default();
        Outcome {
            code: ran.code(),
            stderr: ran.err,
            stdout: ran.out,
            result: serde_json::from_str(&result).unwrap_or_default(),
            anomalies: lines(&out.join("anomalies.jsonl")),
            log: log.collect(),
        }
    }

    /// Returns the first run's result as `name` is to show it.
    pub fn report(&self, name: &str) -> String {
        self.scratch.run(&["report", "out-0", "-o", name]).expect(0);
        std::fs::read_to_string(self.path(name)).unwrap()
    }
}

fn lines(path: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

pub fn number_at(value: &Value, key: &str) -> u64 {
    value[key].as_u64().unwrap_or_else(|| panic!("no number {key} in {value}"))
}

/// Formats a number as kvdyno prints it: 12,345.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let from_end = |at: usize| digits.len() - at;
    let parts = digits.char_indices().map(|(at, digit)| {
        if at > 0 && from_end(at) % 3 == 0 { format!(",{digit}") } else { digit.to_string() }
    });
    parts.collect()
}

/// Asserts that kvdyno named what `sim:` logged, no more and no less.
pub fn same(named: &BTreeSet<Id>, logged: &BTreeSet<Id>) {
    let missed: Vec<_> = logged.difference(named).take(5).collect();
    let wrong: Vec<_> = named.difference(logged).take(5).collect();
    let (n, l) = (named.len(), logged.len());
    assert!(
        missed.is_empty() && wrong.is_empty(),
        "{n} named, {l} logged; not named: {missed:?} …; named wrongly: {wrong:?} …"
    );
}

impl Outcome {
    /// Returns the ids that `sim:` logged as `kind`; there must be some: else the test would prove nothing.
    pub fn logged(&self, kind: &str) -> BTreeSet<Id> {
        let of_kind = self.log.iter().filter(|entry| entry["kind"] == kind);
        let ids: BTreeSet<Id> = of_kind
            .map(|e| (number_at(e, "phase"), number_at(e, "group"), number_at(e, "id")))
            .collect();
        let few = ids.len() < 4;
        assert!(!few, "sim did too little wrong to prove anything: {ids:?}; {}", self.stderr);
        ids
    }

    /// Returns the reads that kvdyno named as `kind`.
    pub fn readers(&self, kind: &str) -> BTreeSet<Id> {
        let of_kind = self.anomalies.iter().filter(|anomaly| anomaly["kind"] == kind);
        of_kind
            .map(|a| (number_at(a, "phase"), number_at(a, "group"), number_at(a, "operation")))
            .collect()
    }

    /// Returns the writers of what kvdyno named as `kind`; all of them must be known.
    pub fn writers(&self, kind: &str) -> BTreeSet<Id> {
        let of_kind = self.anomalies.iter().filter(|anomaly| anomaly["kind"] == kind);
        let id = |anomaly: &Value| {
            let writer =
                anomaly["writer"].as_array().unwrap_or_else(|| panic!("no writer: {anomaly}"));
            let part = |i: usize| writer[i].as_u64().unwrap();
            (part(0), part(1), part(2))
        };
        of_kind.map(id).collect()
    }

    /// Returns the number of anomalies of a kind.
    pub fn named(&self, kind: &str) -> usize {
        self.anomalies.iter().filter(|anomaly| anomaly["kind"] == kind).count()
    }

    /// Asserts that all anomalies are of this kind.
    pub fn only(&self, kind: &str) {
        let other = self.anomalies.iter().find(|anomaly| anomaly["kind"] != kind);
        assert!(other.is_none(), "not {kind}: {}", other.unwrap());
    }

    /// Returns the phases of the only store.
    pub fn phases(&self) -> &[Value] {
        self.result["runs"][0]["phases"].as_array().map_or(&[], Vec::as_slice)
    }

    pub fn phase(&self, name: &str) -> &Value {
        let found = self.phases().iter().find(|phase| phase["name"] == name);
        found.unwrap_or_else(|| panic!("no phase {name}: {}", self.stderr))
    }

    /// Returns a figure of the verification, over all phases.
    pub fn tally(&self, key: &str) -> u64 {
        let tallies = self.phases().iter().filter(|phase| !phase["tally"].is_null());
        tallies.map(|phase| number_at(&phase["tally"], key)).sum()
    }

    /// Returns a count of the series of a kind, over all phases; of all kinds if it is empty.
    pub fn count(&self, kind: &str, key: &str) -> u64 {
        let series = self.phases().iter().flat_map(|phase| phase["series"].as_array().unwrap());
        series.filter(|s| kind.is_empty() || s["kind"] == kind).map(|s| number_at(s, key)).sum()
    }

    /// Returns the errors of a class and certainty, over all phases.
    pub fn errors(&self, class: &str, certainty: &str) -> u64 {
        let errors = self.phases().iter().flat_map(|phase| phase["errors"].as_array().unwrap());
        let wanted = errors.filter(|e| e["class"] == class && e["certainty"] == certainty);
        wanted.map(|e| number_at(e, "count")).sum()
    }

    /// Asserts that the run was right in everything.
    pub fn is_clean(&self) {
        assert!(
            self.anomalies.is_empty(),
            "{} anomalies, such as {}",
            self.anomalies.len(),
            self.anomalies[0]
        );
        assert_eq!(self.tally("unknown"), 0);
        assert!(self.tally("judged") > 0, "nothing was judged: {}", self.stderr);
        self.is_no_failure();
    }

    /// Asserts that nothing speaks against the store. 2: the measurement is short, or of a debug build.
    pub fn is_no_failure(&self) {
        assert!(matches!(self.code, 0 | 2), "{}: {}{}", self.code, self.stderr, self.stdout);
    }
}

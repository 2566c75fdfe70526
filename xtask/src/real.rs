//! `cargo xtask real STORE`: checks that CI cannot run, against a server that no registry has and a variable names:
//! the driver's conformance, its testbed, every suite, and the failovers on three nodes. CI holds the recorded
//! answers of these servers.

use std::path::{Path, PathBuf};
use std::process::Command;

use clap::{Args, ValueEnum};
use kvdyno_core::suite::builtins;
use serde_json::Value;

use crate::steps::{self, StepFailure, root};

/// Options of `cargo xtask real`.
#[derive(Debug, Args)]
pub struct Options {
    /// The store
    store: RealStore,
    /// A kvdyno with the store's driver that is built already; else one is built
    #[arg(long)]
    binary: Option<PathBuf>,
    /// Share of the records and requests of each suite
    #[arg(long, default_value_t = 0.01)]
    scale: f64,
    /// Requests a second of the failovers
    #[arg(long, default_value = "300/s")]
    rate: String,
    /// Only these suites, by name, and no tests
    #[arg(long)]
    suite: Vec<String>,
}

/// Stores whose server is in no registry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum RealStore {
    Aerospike,
    Riak,
    Mongodb,
}

impl RealStore {
    /// Returns the name of its driver's feature, its tests and its testbed.
    fn name(self) -> &'static str {
        match self {
            RealStore::Aerospike => "aerospike",
            RealStore::Riak => "riak",
            RealStore::Mongodb => "mongodb",
        }
    }

    /// Returns the variable that names its program.
    fn variable(self) -> &'static str {
        match self {
            RealStore::Aerospike => "KVDYNO_ASD",
            RealStore::Riak => "KVDYNO_RIAK",
            RealStore::Mongodb => "KVDYNO_MONGOD",
        }
    }
}

/// Runs all of it and prints a row for each suite.
///
/// # Errors
/// If no program is named, a test fails, or a suite ends otherwise than with a judgement.
pub fn real(options: &Options) -> Result<(), StepFailure> {
    let (name, variable) = (options.store.name(), options.store.variable());
    if !std::env::var_os(variable).is_some_and(|path| Path::new(&path).is_file()) {
        let message = format!("{variable} does not name the program of a real {name}");
        return Err(StepFailure::Found(message));
    }
    if options.suite.is_empty() {
        tests(name)?;
    }
    let binary = match &options.binary {
        Some(binary) => binary.clone(),
        None => {
            let build = ["build", "--package", "kvdyno", "--features", "full"];
            steps::run(steps::cargo().args(build).args(steps::BY_DIST))?;
            steps::dist_binary()
        }
    };
    let folder = root().join("target/real").join(name);
    std::fs::create_dir_all(&folder).map_err(StepFailure::file(&folder))?;
    let mut failed = Vec::new();
    println!(
        "\n| suite | testbed | ended | verdict | errors | acknowledged | lost | time to full redundancy |"
    );
    println!("| --- | --- | --- | --- | ---: | ---: | ---: | --- |");
    for suite in suites(&options.suite)? {
        let row = Row::run(options, &binary, &suite, &folder)?;
        println!("{}", row.text());
        if row.is_failure() {
            failed.push(suite);
        }
    }
    match failed.is_empty() {
        true => Ok(()),
        false => {
            Err(StepFailure::Found(format!("{} did not come to a judgement", failed.join(", "))))
        }
    }
}

/// Runs the tests of driver and testbed, which use the real server if it is named.
fn tests(name: &str) -> Result<(), StepFailure> {
    let features = format!("kvdyno-stores/{name},kvdyno-stores/server-tests");
    let driver = ["test", "-p", "kvdyno-stores", "--features", &features, "--test", name];
    steps::run(steps::cargo().args(driver))?;
    let features = "kvdyno-testbed/server-tests";
    let testbed = ["test", "-p", "kvdyno-testbed", "--features", features, "--test", "real", name];
    steps::run(steps::cargo().args(testbed))
}

/// Returns the names of the suites that come with kvdyno: all, or those that were asked for.
fn suites(asked: &[String]) -> Result<Vec<String>, StepFailure> {
    let all = || builtins().iter().map(|suite| suite.name);
    if let Some(unknown) = asked.iter().find(|asked| all().all(|name| name != *asked)) {
        return Err(StepFailure::Found(format!("no suite is called {unknown}")));
    }
    let wanted = |name: &&str| asked.is_empty() || asked.iter().any(|asked| asked == name);
    Ok(all().filter(wanted).map(str::to_owned).collect())
}

/// Returns true for suites with faults: they run on three nodes, with a rate of their own.
fn disturbs(suite: &str) -> bool {
    ["failover", "rolling", "grow", "shrink", "all-nodes"]
        .iter()
        .any(|begin| suite.starts_with(begin))
}

/// Output of one suite.
struct Row {
    suite: String,
    testbed: String,
    code: Option<i32>,
    result: Value,
    /// Last words on standard error.
    said: String,
}

impl Row {
    fn run(
        options: &Options,
        binary: &Path,
        suite: &str,
        folder: &Path,
    ) -> Result<Row, StepFailure> {
        let name = options.store.name();
        let testbed = if disturbs(suite) { format!("{name}:3") } else { name.to_owned() };
        let out = folder.join(suite);
        if out.exists() {
            std::fs::remove_dir_all(&out).map_err(StepFailure::file(&out))?;
        }
        let mut run = Command::new(binary);
        run.args(["run", suite, "--testbed", &testbed, "--quiet", "--out"]).arg(&out);
        match disturbs(suite) {
            true => run.args(["--scale", "0.1", "--rate", &options.rate]),
            false => run.args(["--scale", &options.scale.to_string(), "--duration", "5s"]),
        };
        let ended = run.output().map_err(|source| steps::start_failure(&run, source))?;
        let text = std::fs::read_to_string(out.join("result.json")).unwrap_or_default();
        let result = serde_json::from_str(&text).unwrap_or_default();
        let words = String::from_utf8_lossy(&ended.stderr);
        let said = words.lines().last().unwrap_or_default().to_owned();
        Ok(Row { suite: suite.to_owned(), testbed, code: ended.status.code(), result, said })
    }

    /// Returns true if the suite ended neither with a judgement (0, 1, 2) nor with a refusal before anything began.
    fn is_failure(&self) -> bool {
        !matches!(self.code, Some(0..=2)) && !self.is_refused()
    }

    /// Returns true if the suite needs what the testbed (64) or the store (69) does not have.
    fn is_refused(&self) -> bool {
        match self.code {
            Some(64) => true,
            Some(69) => self.result.is_null() && self.said.contains(" has no "),
            _ => false,
        }
    }

    fn text(&self) -> String {
        let ended = match self.code {
            Some(0) => "well".to_owned(),
            Some(1) => "refuted or lost".to_owned(),
            Some(2) => "not decided".to_owned(),
            _ if self.is_refused() => format!("refused: {}", self.said),
            other => format!("FAILED ({other:?}): {}", self.said),
        };
        let run = &self.result["runs"][0];
        let phases = || run["phases"].as_array().into_iter().flatten();
        let sum = |of: &dyn Fn(&Value) -> u64| phases().map(of).sum::<u64>();
        let errors = sum(&|phase| {
            let errors = phase["errors"].as_array().into_iter().flatten();
            errors.filter_map(|error| error["count"].as_u64()).sum()
        });
        let most = |field: &str| {
            phases().filter_map(|phase| phase["writes"][field].as_u64()).max().unwrap_or(0)
        };
        let whole = phases().flat_map(|phase| phase["faults"].as_array().into_iter().flatten());
        let whole: Vec<String> = whole.filter_map(redundancy).collect();
        let verdict = run["verdict"]["level"].as_str().unwrap_or("-");
        format!(
            "| `{}` | `{}` | {ended} | {verdict} | {errors} | {} | {} | {} |",
            self.suite,
            self.testbed,
            most("acknowledged"),
            most("lost"),
            whole.join(", ")
        )
    }
}

/// Returns the time that copies took after a repair, in words.
fn redundancy(fault: &Value) -> Option<String> {
    let whole = fault["whole"].as_object()?;
    let seconds = |field: &str| whole[field].as_u64().map(|ns| format!("{:.1} s", ns as f64 / 1e9));
    seconds("after_ns").or_else(|| Some(format!("not within {}", seconds("watched_ns")?)))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn row(code: Option<i32>, result: Value) -> Row {
        let (suite, testbed) = ("failover".to_owned(), "riak:3".to_owned());
        Row { suite, testbed, code, result, said: "it says".to_owned() }
    }

    #[test]
    fn a_row_tells_what_a_result_holds() {
        let whole = json!({ "after_ns": 12_340_000_000u64, "watched_ns": 12_340_000_000u64 });
        let late = json!({ "after_ns": null, "watched_ns": 60_000_000_000u64 });
        let result = json!({ "runs": [{
            "verdict": { "level": "valid" },
            "phases": [
                { "errors": [{ "count": 3 }, { "count": 4 }], "writes": null, "faults": [] },
                {
                    "errors": [],
                    "writes": { "acknowledged": 900, "lost": 2 },
                    "faults": [{ "whole": whole }, { "whole": null }, { "whole": late }],
                },
            ],
        }] });
        let expected = "| `failover` | `riak:3` | refuted or lost | valid | 7 | 900 | 2 | 12.3 s, not within 60.0 s |";
        assert_eq!(row(Some(1), result).text(), expected);
    }

    #[test]
    fn only_what_is_no_judgement_fails() {
        for code in [0, 1, 2, 64] {
            assert!(!row(Some(code), Value::Null).is_failure());
        }
        assert!(row(Some(70), Value::Null).is_failure() && row(None, Value::Null).is_failure());
        assert!(row(Some(69), Value::Null).text().contains("FAILED (Some(69)): it says"));
        let lacks = Row { said: "riak has no scan".to_owned(), ..row(Some(69), Value::Null) };
        assert!(!lacks.is_failure() && lacks.text().contains("refused: riak has no scan"));
    }

    #[test]
    fn every_suite_is_run() {
        let all = suites(&[]).unwrap();
        assert_eq!(all.len(), builtins().len());
        assert_eq!(suites(&["failover".to_owned()]).unwrap(), ["failover"]);
        assert_eq!(all.iter().filter(|suite| disturbs(suite)).count(), 10, "{all:?}");
        assert!(suites(&["no-such".to_owned()]).is_err());
    }
}

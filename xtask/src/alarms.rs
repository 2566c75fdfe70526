//! `cargo xtask alarms`: runs a load without faults on healthy testbeds, again and again, and counts what kvdyno says
//! against them. There must be nothing: neither a wrong read, nor one that it could not judge, nor replicas that
//! differ. Its table stands in docs/FAILOVER.md.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use clap::Args;
use rustix::process::{Pid, Signal};
use serde_json::Value;

use crate::bench::Section;
use crate::bench::page;
use crate::steps::{self, StepFailure, root};

/// Options of `cargo xtask alarms`.
#[derive(Debug, Args)]
pub struct Options {
    /// Testbeds, as `kvdyno run --testbed` takes them; with another list the page stays as it is
    #[arg(default_values_t = DEFAULT.map(str::to_owned))]
    testbeds: Vec<String>,
    /// Runs of each; with fewer than 20 the page stays as it is
    #[arg(long, default_value_t = ENOUGH)]
    runs: u32,
    /// A kvdyno that is built already; else one is built with all drivers
    #[arg(long)]
    binary: Option<PathBuf>,
}

/// Clusters whose failovers are tested.
const DEFAULT: [&str; 5] = [
    "redis-sentinel:3",
    "redis-cluster:6",
    "etcd:3",
    "cassandra:3?consistency=quorum",
    "cassandra:3?consistency=one",
];

/// Runs of each testbed from which on the page's table is written.
const ENOUGH: u32 = 20;

/// Suite of few records, so that reads and writes meet; all is read back at the end, and each copy by itself. The
/// testbed stays up from run to run: each run deletes what the one before has made.
const SUITE: &str = r#"
name = "healthy"
records = 2000
clients = 8
warmup = false

[[phase]]
name = "load"
label = "Load"
load = true

[[phase]]
name = "mix"
label = "Mix"
mix = { get = 50, update = 30, insert = 20 }
rate = "1k/s"
duration = "4s"
read-back = true
"#;

/// Sums over all runs of a testbed.
#[derive(Debug, Default, PartialEq, Eq)]
struct Sum {
    runs: u64,
    reads: u64,
    alarms: u64,
    unknown: u64,
    compared: u64,
    differ: u64,
    errors: u64,
    longest_ns: u64,
}

/// Runs each testbed as often as was asked, and prints the table.
///
/// # Errors
/// If a build or a run fails, or if anything was said against a testbed.
pub fn alarms(options: &Options) -> Result<(), StepFailure> {
    let folder = root().join("target/alarms");
    std::fs::create_dir_all(&folder).map_err(StepFailure::file(&folder))?;
    let suite = folder.join("healthy.toml");
    std::fs::write(&suite, SUITE).map_err(StepFailure::file(&suite))?;
    let binary = match &options.binary {
        Some(binary) => binary.clone(),
        None => {
            let build = ["build", "--package", "kvdyno", "--features", "full"];
            steps::run(steps::cargo().args(build).args(steps::BY_DIST))?;
            steps::dist_binary()
        }
    };
    let mut sums = Vec::new();
    for testbed in &options.testbeds {
        let mut sum = Sum::default();
        let up = Up::start(&binary, testbed)?;
        for _ in 0..options.runs {
            sum.add(&healthy(&binary, &suite, &folder, &up.url)?);
        }
        drop(up);
        println!("{}", row(testbed, &sum));
        sums.push((testbed, sum));
    }
    let text = table(&sums);
    println!("\n{text}");
    if options.runs >= ENOUGH && options.testbeds == DEFAULT {
        page::write(&root().join("docs/FAILOVER.md"), &[Section { name: "alarms", text }])?;
    }
    match sums.iter().find(|(_, sum)| sum.alarms + sum.unknown + sum.differ > 0) {
        Some((testbed, _)) => Err(StepFailure::Found(format!(
            "something was said against {testbed}, which is healthy"
        ))),
        None => Ok(()),
    }
}

/// A testbed that is up until this is dropped.
struct Up {
    child: Child,
    url: String,
}

impl Up {
    fn start(binary: &Path, testbed: &str) -> Result<Up, StepFailure> {
        let mut command = Command::new(binary);
        command.args(["testbed", "up", testbed]).stdin(Stdio::null()).stdout(Stdio::piped());
        let child = command.spawn().map_err(|source| steps::start_failure(&command, source))?;
        let mut up = Up { child, url: String::new() };
        let lines = BufReader::new(up.child.stdout.take().expect("a pipe")).lines();
        for line in lines.map_while(Result::ok) {
            if let Some(url) = line.strip_prefix("Store: ") {
                up.url = url.to_owned();
            }
            if line.starts_with("It stays up") {
                return Ok(up);
            }
        }
        Err(steps::failure(&command, "it ended before it was up"))
    }
}

impl Drop for Up {
    fn drop(&mut self) {
        let _ = rustix::process::kill_process(Pid::from_child(&self.child), Signal::TERM);
        let _ = self.child.wait();
    }
}

/// Carries out one run. Returns its result.
fn healthy(binary: &Path, suite: &Path, folder: &Path, url: &str) -> Result<Value, StepFailure> {
    let out = folder.join("result");
    if out.exists() {
        std::fs::remove_dir_all(&out).map_err(StepFailure::file(&out))?;
    }
    let mut run = Command::new(binary);
    run.arg("run")
        .arg(suite)
        .args(["--store", url, "--data", "wipe", "--quiet", "--out"])
        .arg(&out);
    let ended = run.output().map_err(|source| steps::start_failure(&run, source))?;
    let path = out.join("result.json");
    let text = std::fs::read_to_string(&path).unwrap_or_default();
    let result: Value = serde_json::from_str(&text).unwrap_or_default();
    // Exit code 1 tells of alarms, which are counted; 2 of a machine that is too busy.
    match ended.status.code() {
        Some(0..=2) if !result["runs"][0]["phases"].is_null() => Ok(result),
        _ => {
            eprint!("{}", String::from_utf8_lossy(&ended.stderr));
            Err(steps::failure(&run, &ended.status.to_string()))
        }
    }
}

impl Sum {
    /// Adds the figures of one result.
    fn add(&mut self, result: &Value) {
        self.runs += 1;
        let phases = result["runs"][0]["phases"].as_array();
        for phase in phases.into_iter().flatten() {
            let count = |value: &Value| value.as_u64().unwrap_or(0);
            let all = |values: &Value| values.as_array().map_or(0, |v| v.iter().map(count).sum());
            let tally = &phase["tally"];
            self.reads += count(&tally["reads"]);
            self.unknown += count(&tally["unknown"]) + count(&phase["writes"]["unknown"]);
            let illegal: u64 = all(&tally["anomalies"]);
            let accounts = phase["account"].as_array().map_or(0, Vec::len) as u64;
            self.alarms += illegal + accounts + count(&phase["writes"]["lost"]);
            let copies = &phase["writes"]["copies"];
            self.compared += count(&copies["compared"]);
            self.differ += count(&copies["differ"]);
            let errors = phase["errors"].as_array();
            self.errors += errors.into_iter().flatten().map(|e| count(&e["count"])).sum::<u64>();
            self.longest_ns = self.longest_ns.max(count(&phase["unavailable"]["all"]["length_ns"]));
        }
    }
}

fn table(sums: &[(&String, Sum)]) -> String {
    let rows: Vec<String> = sums.iter().map(|(testbed, sum)| row(testbed, sum)).collect();
    format!(
        "| testbed | runs | reads | false alarms | unknown | copies compared | that differ | errors | longest time without success |\n\
         | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n{}\n",
        rows.join("\n")
    )
}

fn row(testbed: &str, sum: &Sum) -> String {
    let Sum { runs, reads, alarms, unknown, compared, differ, errors, longest_ns } = sum;
    let longest = longest_ns / 1_000_000;
    format!(
        "| `{testbed}` | {runs} | {reads} | {alarms} | {unknown} | {compared} | {differ} | {errors} | \
         {longest} ms |"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_that_speaks_against_a_store_is_counted() {
        let phase = serde_json::json!({
            "tally": { "reads": 10, "unknown": 2, "anomalies": [0, 0, 0, 3, 1] },
            "writes": { "unknown": 1, "lost": 5, "copies": { "compared": 9, "differ": 4 } },
            "account": [{}],
            "errors": [{ "count": 7 }],
            "unavailable": { "all": { "length_ns": 25_000_000 } },
        });
        let mut sum = Sum::default();
        sum.add(&serde_json::json!({ "runs": [{ "phases": [phase, { "tally": null }] }] }));
        let told = Sum {
            runs: 1,
            reads: 10,
            alarms: 10,
            unknown: 3,
            compared: 9,
            differ: 4,
            errors: 7,
            longest_ns: 25_000_000,
        };
        assert_eq!(sum, told);
        assert_eq!(row("redis", &sum), "| `redis` | 1 | 10 | 10 | 3 | 9 | 4 | 7 | 25 ms |");
    }
}

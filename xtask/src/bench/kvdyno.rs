//! kvdyno as a benchmark subject: by its command line, and by what its result says.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use serde_json::Value;

use super::child;
use crate::steps::{Failure, root};

/// Base command on the release binary, writing its result to `out`.
pub(super) fn command(out: &Path, prefix: &[&str]) -> Command {
    let binary = root().join("target/release/kvdyno");
    let mut words = prefix.iter();
    let mut command = match words.next() {
        Some(program) => {
            let mut command = Command::new(program);
            command.args(words).arg(binary);
            command
        }
        None => Command::new(binary),
    };
    command.arg("run").arg("--out").arg(out).arg("--quiet");
    command
}

/// What one run of kvdyno did.
pub(super) struct Ran {
    /// Processor time of the process.
    pub cpu: Duration,
    /// Operations of all phases, warm-up and loading included.
    pub operations: u64,
    /// Operations and nanoseconds of the measured phases.
    pub measured: (u64, u64),
}

impl Ran {
    /// Processor time for each operation, µs.
    pub(super) fn cpu_per_operation(&self) -> f64 {
        self.cpu.as_secs_f64() * 1e6 / self.operations as f64
    }

    /// Time for each operation of the measured phases, ns.
    pub(super) fn ns_per_operation(&self) -> f64 {
        self.measured.1 as f64 / self.measured.0 as f64
    }
}

/// Runs it and reads its result; the folder is emptied first.
pub(super) fn run(out: &Path, command: &mut Command) -> Result<Ran, Failure> {
    if out.exists() {
        std::fs::remove_dir_all(out).map_err(Failure::file(out))?;
    }
    let cpu = child::cpu_time(command)?;
    let path = out.join("result.json");
    let text = std::fs::read_to_string(&path).map_err(Failure::file(&path))?;
    let (operations, measured) = operations(&text)
        .ok_or_else(|| Failure::Found(format!("{} does not tell what was done", path.display())))?;
    Ok(Ran { cpu, operations, measured })
}

/// All operations started, and (operations, ns) of the last phase that is no warm-up.
fn operations(result: &str) -> Option<(u64, (u64, u64))> {
    let result: Value = serde_json::from_str(result).ok()?;
    let mut all = 0;
    let mut measured = None;
    for run in result["runs"].as_array()? {
        for phase in run["phases"].as_array()? {
            let operations = phase["started_operations"].as_u64()?;
            all += operations;
            if phase["warmup"] == false {
                measured = Some((operations, phase["wall_ns"].as_u64()?));
            }
        }
    }
    Some((all, measured.filter(|&(operations, _)| operations > 0)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_are_read_from_the_result() {
        let result = r#"{"runs": [{"phases": [
            {"warmup": true, "started_operations": 10, "wall_ns": 5},
            {"warmup": false, "started_operations": 100, "wall_ns": 7000}]}]}"#;
        assert_eq!(operations(result), Some((110, (100, 7000))));
        assert_eq!(operations("{}"), None);
        assert_eq!(operations(r#"{"runs": []}"#), None);
    }
}

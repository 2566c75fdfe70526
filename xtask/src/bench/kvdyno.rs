//! kvdyno as a benchmark subject: its command line, and the figures of its result.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use serde_json::Value;

use crate::steps::{self, StepFailure};

/// Makes the base command on the binary of the profile `dist`, which writes its result to `out`.
pub(super) fn command(out: &Path, prefix: &[&str]) -> Command {
    let binary = steps::dist_binary();
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

/// Figures of the measured phase of a run.
pub(super) struct Ran {
    /// Processor time of the whole process while the phase ran, every thread of it.
    pub cpu: Duration,
    /// Operations started.
    pub operations: u64,
    /// Wall time from its start to its end.
    pub wall: Duration,
    /// Most memory of the process so far, bytes.
    pub peak_rss: u64,
    /// Median and 99th percentile of the gets' service time, if there were any.
    pub gets: Option<(Duration, Duration)>,
}

impl Ran {
    /// Returns the processor time for each operation, ns.
    pub(super) fn cpu_ns(&self) -> f64 {
        self.cpu.as_secs_f64() * 1e9 / self.operations as f64
    }
}

/// Empties the folder, runs the command, and reads the figures of its measured phase.
pub(super) fn run(out: &Path, command: &mut Command) -> Result<Ran, StepFailure> {
    measured(&result(out, command)?).ok_or_else(|| {
        let path = out.join("result.json");
        StepFailure::Found(format!("{} does not tell what was done", path.display()))
    })
}

/// Empties the folder, runs the command, and reads its result.
pub(super) fn result(out: &Path, command: &mut Command) -> Result<Value, StepFailure> {
    if out.exists() {
        std::fs::remove_dir_all(out).map_err(StepFailure::file(out))?;
    }
    // Its output is not needed: the result has all.
    steps::measure(command)?;
    let path = out.join("result.json");
    let text = std::fs::read_to_string(&path).map_err(StepFailure::file(&path))?;
    serde_json::from_str(&text)
        .map_err(|error| StepFailure::Found(format!("{} is no JSON: {error}", path.display())))
}

/// Does the same as [`run`], but returns all that the result holds of the measured phase.
pub(super) fn phase(out: &Path, command: &mut Command) -> Result<Value, StepFailure> {
    let result = result(out, command)?;
    let phase = measured_phase(&result).cloned();
    phase.ok_or_else(|| StepFailure::Found(format!("{} has no phase `run`", out.display())))
}

/// Returns the phase called `run`: phases before it load or warm up, those after it read back.
pub(super) fn measured_phase(result: &Value) -> Option<&Value> {
    let phases = result["runs"].as_array()?.first()?["phases"].as_array()?;
    phases.iter().find(|phase| phase["name"] == "run")
}

/// Returns the figures of the measured phase in a result.
pub(super) fn measured(result: &Value) -> Option<Ran> {
    let phase = measured_phase(result)?;
    let own = &phase["resources"]["own"];
    let time = |part: &Value| {
        let nanos = u32::try_from(part["nanos"].as_u64()?).ok()?;
        Some(Duration::new(part["secs"].as_u64()?, nanos))
    };
    let cpu = time(&own["user"])? + time(&own["system"])?;
    let operations = phase["started_operations"].as_u64().filter(|&operations| operations > 0)?;
    let wall = Duration::from_nanos(phase["wall_ns"].as_u64()?);
    let gets = phase["series"].as_array()?.iter().find(|series| series["kind"] == "get");
    let gets = gets.and_then(|series| {
        let time = |name| series["service"][name].as_u64().map(Duration::from_nanos);
        Some((time("p50_ns")?, time("p99_ns")?))
    });
    Some(Ran { cpu, operations, wall, peak_rss: own["peak_rss"].as_u64()?, gets })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_measured_phase_is_read_from_the_result() {
        let phase = |name: &str, operations: u64, secs: u64| {
            format!(
                r#"{{"name": "{name}", "started_operations": {operations}, "wall_ns": 4000,
                "series": [{{"kind": "get", "service": {{"p50_ns": 7, "p99_ns": 9}}}}],
                "resources": {{"own": {{"user": {{"secs": {secs}, "nanos": 500000000}},
                "system": {{"secs": 1, "nanos": 0}}, "peak_rss": 33}}}}}}"#
            )
        };
        let phases = [phase("load", 10, 7), phase("run", 1_000, 2), phase("run:read-back", 5, 9)];
        let result = format!(r#"{{"runs": [{{"phases": [{}]}}]}}"#, phases.join(","));
        let ran = measured(&serde_json::from_str(&result).unwrap()).unwrap();
        assert_eq!((ran.operations, ran.cpu), (1_000, Duration::from_millis(3_500)));
        assert_eq!(ran.cpu_ns(), 3.5e6);
        assert_eq!((ran.wall.as_nanos(), ran.peak_rss), (4_000, 33));
        let gets = ran.gets.map(|(median, p99)| (median.as_nanos(), p99.as_nanos()));
        assert_eq!(gets, Some((7, 9)));
        let nothing = [serde_json::json!({}), serde_json::json!({ "runs": [] })];
        assert!(nothing.iter().all(|result| measured(result).is_none()));
    }
}

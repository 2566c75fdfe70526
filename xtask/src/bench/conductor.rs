//! Resources of a conductor with more and more agents, which are simulated (they tell intervals and carry no load);
//! and the time between the begins of real agents.

use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use serde_json::Value;

use super::pairs::Median;
use super::{Options, REDIS, Section, kvdyno};
use crate::steps::{self, StepFailure, root};

/// Numbers of agents of the conductor.
const AGENTS: [u32; 5] = [1, 10, 50, 200, 1_000];
/// Duration of their load, seconds.
const SECONDS: u64 = 20;
/// Asked bounds with 200 agents: processors and MiB.
const MOST: (f64, f64) = (0.5, 300.0);
/// Number of agents that begin together, number of phases, and asked bound of their median start, ms.
const TOGETHER: (u32, u64, f64) = (4, 50, 1.0);
/// Token of the agents; any text of 16 characters or more serves.
const TOKEN: &str = "the token of a benchmark";

pub(super) fn run(options: &Options) -> Result<Section, StepFailure> {
    let out = root().join("target/bench/conductor");
    let mut text = String::from(
        "| agents | processors of the conductor | most memory, MiB | begin, clocks known to ± ms |\n\
         | --- | --- | --- | --- |\n",
    );
    for agents in AGENTS {
        let Conducted { processors, memory, clocks } = conduct(&out, agents, options)?;
        println!("{agents} agents: {processors:.3} processors, {memory:.1} MiB");
        text += &format!("| {agents} | {processors:.3} | {memory:.1} | {clocks:.2} |\n");
    }
    let (processors, memory) = MOST;
    let (agents, times, within) = TOGETHER;
    let starts = starts(&out, options)?;
    text += &format!(
        "\nEach agent tells an interval of 5 kinds of operation a second, 4,000 of each. Processors are the processor time of \
         the whole process over the time of the phase. At 200 agents at most {processors} processors and {memory:.0} MiB are \
         asked for.\n\nOf {agents} real agents on this machine the last began {} ms after the first, in {times} phases begun one \
         after the other; the uncertainty of two clocks is in it. A median within {within} ms is asked for.\n",
        Median::of(&starts)
    );
    Ok(Section { name: "conductor", text })
}

/// Figures of a conductor from one run.
struct Conducted {
    processors: f64,
    /// Most memory, MiB.
    memory: f64,
    /// Uncertainty of the agent's clock that was known worst, ms.
    clocks: f64,
}

/// Process of simulated agents that is ended when this is dropped.
struct Simulated(Child);

impl Drop for Simulated {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn conduct(out: &Path, agents: u32, options: &Options) -> Result<Conducted, StepFailure> {
    // This listener is closed by the time that the conductor takes its address.
    let free = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
    let address = free.map_err(StepFailure::file("127.0.0.1:0"))?.to_string();
    let mut simulated = Command::new(steps::dist_binary());
    simulated.args(["simulated-agents", "--conductor", &address, "--count", &agents.to_string()]);
    simulated.env("KVDYNO_TOKEN", TOKEN).stdin(Stdio::null());
    let started = simulated.spawn().map_err(|source| steps::start_failure(&simulated, source));
    let _simulated = Simulated(started?);
    let mut command = kvdyno::command(out, &[]);
    let seconds = format!("{}s", options.scaled(SECONDS));
    command.env("KVDYNO_TOKEN", TOKEN).stderr(Stdio::null());
    command.args(["--testbed", REDIS, "--records", "1000", "--mix", "get=50,update=50"]);
    command.args(["--clients", "1000", "--duration", &seconds, "--set", "read-back=false"]);
    command.args(["--agents", &agents.to_string(), "--reads", "own", "--listen", &address]);
    let result = kvdyno::result(out, &mut command)?;
    let ran = kvdyno::measured(&result);
    let (Some(ran), Some(clocks)) = (ran, worst_clock(&result)) else {
        return Err(StepFailure::Found(format!("{} tells too little", out.display())));
    };
    let processors = ran.cpu.as_secs_f64() / ran.wall.as_secs_f64();
    Ok(Conducted { processors, memory: ran.peak_rss as f64 / f64::from(1 << 20), clocks })
}

fn worst_clock(result: &Value) -> Option<f64> {
    let agents = kvdyno::measured_phase(result)?["agents"].as_array()?;
    let known = agents.iter().filter_map(|agent| agent["clock_uncertainty_ns"].as_f64());
    known.reduce(f64::max).map(|ns| ns / 1e6)
}

/// Returns by how much the last of some real agents began after the first, in each of many phases, ms.
fn starts(out: &Path, options: &Options) -> Result<Vec<f64>, StepFailure> {
    let (agents, times, _) = TOGETHER;
    let mut suite = String::from(
        "name = \"starts\"\nrecords = 1000\nclients = 4\nwarmup = false\n\n[[phase]]\nname = \"load\"\n\
         label = \"Load\"\nload = true\n",
    );
    for number in 0..options.scaled(times) {
        suite += &format!(
            "\n[[phase]]\nname = \"start-{number}\"\nlabel = \"Start\"\nmix = {{ get = 100 }}\n\
             rate = \"100/s\"\nduration = \"300ms\"\n"
        );
    }
    let path = root().join("target/bench/starts.toml");
    std::fs::write(&path, suite).map_err(StepFailure::file(&path))?;
    let mut command = Command::new(steps::dist_binary());
    command.arg("run").arg(&path).arg("--out").arg(out).arg("--quiet");
    command.args(["--testbed", REDIS, "--agents", &format!("local:{agents}")]);
    let result = kvdyno::result(out, &mut command)?;
    let phases = result["runs"][0]["phases"].as_array().cloned().unwrap_or_default();
    let begun = phases.iter().filter(|phase| phase["label"] == "Start");
    let apart: Option<Vec<f64>> = begun.map(apart).collect();
    apart.ok_or_else(|| StepFailure::Found("a result does not tell when agents began".to_owned()))
}

/// Returns the most by which agents began apart, ms: each began by its own clock, which may be wrong.
fn apart(phase: &Value) -> Option<f64> {
    let agents = phase["agents"].as_array()?;
    let all = |name: &str| {
        let figures = agents.iter().map(|agent| agent[name].as_f64());
        figures.collect::<Option<Vec<f64>>>()
    };
    let (late, clocks) = (all("begin_late_ns")?, all("clock_uncertainty_ns")?);
    let last = late.iter().copied().reduce(f64::max)?;
    let first = late.iter().copied().reduce(f64::min)?;
    let mut clocks = clocks;
    clocks.sort_by(f64::total_cmp);
    let unsure: f64 = clocks.iter().rev().take(2).sum();
    Some((last - first + unsure) / 1e6)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agents_begin_as_far_apart_as_their_clocks_allow_at_most() {
        let agent = |late: u64, clock: u64| serde_json::json!({ "begin_late_ns": late, "clock_uncertainty_ns": clock });
        let agents = [agent(60_000, 20_000), agent(160_000, 40_000), agent(90_000, 30_000)];
        let phase = serde_json::json!({ "agents": agents });
        assert_eq!(apart(&phase), Some(0.17));
        assert_eq!(apart(&serde_json::json!({ "agents": [agent(1, 1), {}] })), None);
        let phases = serde_json::json!([{ "name": "run", "agents": agents }]);
        assert_eq!(worst_clock(&serde_json::json!({ "runs": [{ "phases": phases }] })), Some(0.04));
    }
}

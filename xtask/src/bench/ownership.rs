//! Cost of drawing: each agent draws every operation and passes over those of the others' records. Compared with the
//! client's whole processor time for an operation on a server over the wire.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use super::pairs::Median;
use super::target::Target;
use super::{Options, REDIS, Section, child, instructions, kvdyno};
use crate::steps::{StepFailure, root};

/// Numbers of agents that carry one load.
const AGENTS: [u64; 5] = [1, 2, 4, 8, 16];
/// Operations that one agent carries out, in the shorter run and in the longer: what both do only once cancels out.
const OWN: [u64; 2] = [200_000, 1_200_000];
/// Largest asked share of the client's processor time at 16 agents, %.
const MOST: f64 = 10.0;
const RECORDS: u64 = 100_000;
/// Requests in flight on a connection, and requests of a run over the wire.
const PIPELINES: [(u64, u64); 3] = [(1, 200_000), (4, 500_000), (16, 2_000_000)];

pub(super) fn run(options: &Options) -> Result<Section, StepFailure> {
    let program = instructions::hot_path()?;
    let out = root().join("target/bench/ownership");
    let target = Target::start(REDIS, RECORDS)?;
    let mut loops = AGENTS.map(|_| Vec::new());
    let mut wires = PIPELINES.map(|_| Vec::new());
    for pass in 0..options.pairs {
        for (agents, figures) in AGENTS.into_iter().zip(&mut loops) {
            figures.push(each(&program, agents, options)?);
        }
        for ((pipeline, requests), figures) in PIPELINES.into_iter().zip(&mut wires) {
            let (pipeline, requests) = (pipeline.to_string(), options.scaled(requests).to_string());
            let mut command = over_the_wire(&out, &target, &["--pipeline", &pipeline]);
            command.args(["--requests", &requests, "--keys", "uniform"]);
            figures.push(kvdyno::run(&out, &mut command)?.cpu_ns());
        }
        println!("pass {} of {}", pass + 1, options.pairs);
    }
    let busiest = AGENTS.into_iter().map(|agents| busiest(&out, &target, agents, options));
    let busiest = busiest.collect::<Result<Vec<_>, _>>()?;
    Ok(Section { name: "ownership", text: table(&loops, &wires, &busiest) })
}

/// Measures the processor time of the whole process for each operation carried out by one of so many agents, ns.
fn each(program: &Path, agents: u64, options: &Options) -> Result<f64, StepFailure> {
    let mut took = [(0.0, 0.0); 2];
    for (own, took) in OWN.into_iter().zip(&mut took) {
        let all = (options.scaled(own) * agents).to_string();
        let mut command = Command::new(program);
        let used = child::run(command.args(["null:", "0", "true", &all, &agents.to_string()]))?;
        let done = used.said.split(' ').next().and_then(|count| count.parse().ok());
        let done: f64 = done.ok_or_else(|| {
            StepFailure::Found("hot_path did not tell how much it has done".to_owned())
        })?;
        *took = (used.cpu.as_secs_f64() * 1e9, done);
    }
    Ok((took[1].0 - took[0].0) / (took[1].1 - took[0].1))
}

fn over_the_wire(out: &Path, target: &Target, more: &[&str]) -> Command {
    let mut command = kvdyno::command(out, &[]);
    let records = RECORDS.to_string();
    command.args(["--store", target.url(), "--records", &records, "--value", "100B"]);
    command.args(["--mix", "get=100", "--clients", "64", "--threads", "1", "--data", "wipe"]);
    command.args(more);
    command
}

/// Returns the busiest agent's share of the operations, compared with an equal share, when few keys get most requests.
fn busiest(
    out: &Path,
    target: &Target,
    agents: u64,
    options: &Options,
) -> Result<f64, StepFailure> {
    if agents == 1 {
        return Ok(1.0);
    }
    let requests = options.scaled(200_000).to_string();
    let local = format!("local:{agents}");
    let mut command = over_the_wire(out, target, &["--agents", &local, "--keys", "zipfian"]);
    let phase = kvdyno::phase(out, command.args(["--requests", &requests]))?;
    largest_share(&phase)
        .map(|share| share * agents as f64)
        .ok_or_else(|| StepFailure::Found("a result does not tell what agents did".to_owned()))
}

fn largest_share(phase: &Value) -> Option<f64> {
    let shares = phase["agents"].as_array()?.iter().map(|agent| agent["share"].as_f64());
    shares.collect::<Option<Vec<_>>>()?.into_iter().reduce(f64::max)
}

fn table(loops: &[Vec<f64>], wires: &[Vec<f64>], busiest: &[f64]) -> String {
    let alone = Median::of(&loops[0]).value;
    let wires: Vec<f64> = wires.iter().map(|figures| Median::of(figures).value).collect();
    let mut text = String::from(
        "| agents | the loop, CPU ns for each operation carried out | of it drawing and passing over, ns | of a \
         networked client's CPU, pipeline 1 | pipeline 4 | pipeline 16 | busiest agent over the mean, zipfian keys |\n\
         | --- | --- | --- | --- | --- | --- | --- |\n",
    );
    for ((agents, figures), busiest) in AGENTS.into_iter().zip(loops).zip(busiest) {
        let each = Median::of(figures);
        let over = (each.value - alone).max(0.0);
        let share = |wire: f64| over / (wire + over) * 100.0;
        let shares: Vec<_> = wires.iter().map(|wire| format!("{:.1} %", share(*wire))).collect();
        let shares = shares.join(" | ");
        text += &format!("| {agents} | {each} | {over:.0} | {shares} | {busiest:.2} |\n");
    }
    text += &format!(
        "\nThe loop is that of `null:` with verification and uniform keys, in one process that owns what one of so many \
         agents owns. The networked client is kvdyno alone on Redis, 64 clients: {} ns of processor time for each get \
         (pipeline 1, 4 and 16). Asked for on a networked store is at most {MOST:.0} %: of more than 16 agents, and of \
         more than 6 and 2 with these pipelines, each draws its own operations alone unless told otherwise.\n",
        wires.iter().map(|wire| format!("{wire:.0}")).collect::<Vec<_>>().join(", ")
    );
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_drawing_costs_is_a_share_of_the_whole() {
        let loops = [vec![70.0], vec![80.0], vec![100.0], vec![150.0], vec![270.0]];
        let text = table(
            &loops,
            &[vec![5_800.0], vec![1_800.0], vec![600.0]],
            &[1.0, 1.1, 1.3, 1.6, 2.25],
        );
        assert!(
            text.contains(
                "| 270.000 (n = 1: too few for an interval) | 200 | 3.3 % | 10.0 % | 25.0 % | 2.25 |"
            ),
            "{text}"
        );
        assert!(text.contains("| 0 | 0.0 % | 0.0 % | 0.0 % | 1.00 |"), "{text}");
        let phase = serde_json::json!({ "agents": [{ "share": 0.25 }, { "share": 0.75 }] });
        assert_eq!(largest_share(&phase), Some(0.75));
        assert_eq!(largest_share(&serde_json::json!({})), None);
    }
}

//! Open arrivals: lateness of requests, the share of the asked rate that is reached, and the cost of waiting, for
//! each way of waiting.

use kvdyno_testbed::{Deployment, Testbed};
use serde_json::Value;

use super::pairs::Median;
use super::{Options, Section, kvdyno};
use crate::steps::{StepFailure, root};

/// Rate against a store that answers at once, requests a second.
const NULL_RATE: f64 = 100_000.0;
/// Rate against a server, as a share of what closed clients reach.
const SHARE: f64 = 0.5;
/// Duration of each run, seconds.
const SECONDS: u32 = 5;
const CONNECTIONS: u32 = 50;
const PACES: [&str; 3] = ["both", "spin", "timer"];

/// Figures of one run.
struct Sent {
    /// Lateness, median and 99th percentile, µs.
    late: [f64; 2],
    /// Requests started over those that were due, %.
    started: f64,
    /// Share of one processor, working and spinning, %.
    busy: f64,
    spun: f64,
}

impl Sent {
    fn of(phase: &Value) -> Option<Sent> {
        let lag = &phase["send_lag"];
        let late = [lag["p50_ns"].as_f64()? / 1e3, lag["p99_ns"].as_f64()? / 1e3];
        let worker = phase["workers"].as_array()?.first()?;
        let of_wall =
            |name: &str| Some(worker[name].as_f64()? / worker["wall_ns"].as_f64()? * 100.0);
        let started = phase["started_operations"].as_f64()? / phase["offered"].as_f64()? * 100.0;
        Some(Sent { late, started, busy: of_wall("cpu_ns")?, spun: of_wall("spun_ns")? })
    }
}

/// One line of the table.
struct Line {
    name: String,
    pace: &'static str,
    runs: Vec<Sent>,
}

pub(super) fn run(options: &Options) -> Result<Section, StepFailure> {
    let mut server = Deployment::up("redis?pin=servers")?;
    let pinned = server.describe().pinned;
    let pinned =
        pinned.ok_or_else(|| StepFailure::Found("two processors are needed".to_owned()))?;
    let clients: Vec<_> = pinned.clients.iter().map(ToString::to_string).collect();
    let (url, client_cpus) = (server.url().to_owned(), clients.join(","));
    let run = |store: &str, data: &str, load: &[&str]| {
        let out = root().join("target/bench/open");
        let mut command = kvdyno::command(&out, &["taskset", "-c", &client_cpus]);
        command.args(["--store", store, "--records", "100k", "--value", "100B"]);
        command.args(["--mix", "get=100", "--threads", "1", "--data", data]).args(load);
        kvdyno::phase(&out, &mut command)
    };
    let (connections, seconds) = (CONNECTIONS.to_string(), format!("{SECONDS}s"));
    let closed = run(&url, "fresh", &["--clients", &connections, "--duration", &seconds])?;
    let span = closed["wall_ns"].as_f64().unwrap_or(f64::NAN) / 1e9;
    let reached = closed["started_operations"].as_f64().unwrap_or(f64::NAN) / span;
    let half = (reached * SHARE / 1e3).round() * 1e3;
    let mut lines: Vec<Line> = Vec::new();
    for (store, rate) in [("null:", NULL_RATE), ("Redis", half)] {
        let name = format!("`{store}` at {rate:.0}/s").replace("`Redis`", "Redis");
        lines.extend(PACES.map(|pace| Line { name: name.clone(), pace, runs: Vec::new() }));
    }
    for pass in 0..options.pairs {
        for (number, line) in lines.iter_mut().enumerate() {
            let redis = number >= PACES.len();
            let (store, clients, rate) = match redis {
                true => (url.as_str(), connections.as_str(), half),
                false => ("null:", "1", NULL_RATE),
            };
            let rate = format!("{rate}/s");
            let load = ["--clients", clients, "--duration", &seconds, "--rate", &rate];
            let phase = run(store, "reuse", &[&load[..], &["--pace", line.pace]].concat())?;
            let sent = Sent::of(&phase);
            line.runs.push(sent.ok_or_else(|| {
                StepFailure::Found("a result does not tell how late requests left".to_owned())
            })?);
        }
        println!("pass {} of {}", pass + 1, options.pairs);
    }
    Ok(Section { name: "open", text: table(&lines, reached) })
}

fn table(lines: &[Line], reached: f64) -> String {
    let mut text = String::from(
        "| load | `--pace` | late, median µs | late, 99 % µs | started of due | worked, of a \
         processor | spun, of a processor |\n| --- | --- | --- | --- | --- | --- | --- |\n",
    );
    for Line { name, pace, runs } in lines {
        let median = |figure: fn(&Sent) -> f64| {
            Median::of(&runs.iter().map(figure).collect::<Vec<_>>()).value
        };
        let late = Median::of(&runs.iter().map(|sent| sent.late[1]).collect::<Vec<_>>());
        text += &format!(
            "| {name} | {pace} | {:.2} | {late} | {:.3} % | {:.0} % | {:.0} % |\n",
            median(|sent| sent.late[0]),
            median(|sent| sent.started),
            median(|sent| sent.busy),
            median(|sent| sent.spun),
        );
    }
    text += &format!(
        "\nAsked for is at most 50 µs at the 99th percentile and 99.9 % of the due requests started. \
         Client on one processor, server on another, {SECONDS} s each, in turns; {CONNECTIONS} \
         connections, closed clients of which reached {reached:.0}/s here.\n"
    );
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_phase_tells_of_its_requests_is_read() {
        let phase = serde_json::json!({
            "offered": 1000, "started_operations": 999,
            "send_lag": { "p50_ns": 1500, "p99_ns": 20_000 },
            "workers": [{ "wall_ns": 100, "cpu_ns": 25, "spun_ns": 50 }],
        });
        let sent = Sent::of(&phase).unwrap();
        assert_eq!((sent.late, sent.busy, sent.spun), ([1.5, 20.0], 25.0, 50.0));
        assert!((sent.started - 99.9).abs() < 1e-9);
        assert!(Sent::of(&serde_json::json!({})).is_none());
        let line = Line { name: "`null:` at 5/s".to_owned(), pace: "spin", runs: vec![sent] };
        let text = table(&[line], 7.0);
        assert!(text.contains("| `null:` at 5/s | spin | 1.50 | 20.000 (n = 1"), "{text}");
    }
}

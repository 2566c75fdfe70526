//! Time to make a board of 1,000 results, and size of its pages: bare JSONs, as a git repository keeps them, of many
//! stores, machines and days, all made of one that was measured.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use super::{Options, Section, child, kvdyno};
use crate::steps::{self, StepFailure, root};

/// Number of results on the board.
const RESULTS: u64 = 1_000;
/// Number of stores, and of machines that measured each.
const STORES: u64 = 10;
const MACHINES: u64 = 4;
/// Asked bounds: seconds of wall time, and bytes of the first page.
const MOST: (f64, u64) = (10.0, 1_000_000);

pub(super) fn run(options: &Options) -> Result<Section, StepFailure> {
    let folder = root().join("target/bench/board");
    if folder.exists() {
        fs::remove_dir_all(&folder).map_err(StepFailure::file(&folder))?;
    }
    let mut command = kvdyno::command(&folder.join("measured"), &[]);
    command.args(["--store", "map:", "--records", "2000", "--mix", "get=80,update=20"]);
    command.args(["--duration", "2s"]);
    let measured = kvdyno::result(&folder.join("measured"), &mut command)?;
    let results = options.scaled(RESULTS);
    let kept = folder.join("results");
    fs::create_dir_all(&kept).map_err(StepFailure::file(&kept))?;
    for number in 0..results {
        let file = kept.join(format!("{number}.json"));
        fs::write(&file, on_a_day(&measured, number).to_string())
            .map_err(StepFailure::file(&file))?;
    }
    let site = folder.join("site");
    let made = make(&kept, &site)?;
    let again = make(&kept, &site)?;
    let sizes = sizes(&site)?;
    let index = sizes.iter().find(|(path, _)| path.ends_with("index.html")).map_or(0, |of| of.1);
    let largest = sizes.iter().map(|(_, size)| *size).max().unwrap_or(0);
    let mb = |bytes: u64| bytes as f64 / 1e6;
    let (most_s, most_bytes) = MOST;
    let text = format!(
        "| figure | found | asked for |\n| --- | --- | --- |\n\
         | by the clock, with a report of each result, s | {:.1} | less than {most_s} |\n\
         | its processor time, s | {:.1} | |\n\
         | by the clock, when the reports are there already, s | {:.1} | |\n\
         | `index.html`, MB | {:.3} | less than {:.0} |\n\
         | the largest other page, MB | {:.2} | |\n\
         | most memory held, MiB | {:.0} | |\n\n\
         `kvdyno board` of {results} results, bare JSONs, of {STORES} stores on {MACHINES} machines each; every tenth is suspect.\n",
        made.0,
        made.1.cpu.as_secs_f64(),
        again.0,
        mb(index),
        mb(most_bytes),
        mb(largest),
        made.1.peak_rss as f64 / f64::from(1 << 20),
    );
    Ok(Section { name: "board", text })
}

/// Makes the site. Returns the seconds of wall time, and what the process used.
fn make(kept: &Path, site: &Path) -> Result<(f64, child::Used), StepFailure> {
    let mut command = Command::new(steps::dist_binary());
    command.arg("board").arg(kept).arg("-o").arg(site);
    let began = std::time::Instant::now();
    let used = child::run(&mut command)?;
    Ok((began.elapsed().as_secs_f64(), used))
}

/// Returns the pages of a site with their sizes, bytes, without its reports.
fn sizes(site: &Path) -> Result<Vec<(PathBuf, u64)>, StepFailure> {
    let entries = fs::read_dir(site).map_err(StepFailure::file(site))?;
    let mut sizes = Vec::new();
    for entry in entries.flatten() {
        let size = entry.metadata().map_err(StepFailure::file(entry.path()))?;
        if size.is_file() {
            sizes.push((entry.path(), size.len()));
        }
    }
    Ok(sizes)
}

/// Returns the result as if another machine had measured another store, on another day and with other figures.
fn on_a_day(measured: &Value, number: u64) -> Value {
    let mut result = measured.clone();
    let (store, rest) = (number % STORES, number / STORES);
    let (machine, day) = (rest % MACHINES, rest / MACHINES);
    result["started"] =
        json!(format!("2026-{:02}-{:02}T{:02}:00:00Z", 1 + day / 28, 1 + day % 28, store));
    // Results of one moment and one seed would count as the same.
    result["seed"] = json!(number);
    result["host"]["cpu"] = json!(format!("Processor {machine}"));
    // A scatter of a few percent, and a step for each store.
    let scatter = 1.0 + 0.02 * ((number.wrapping_mul(2_654_435_761) >> 7) % 100) as f64 / 100.0;
    let factor = scatter * if day > store + 5 { 1.1 } else { 1.0 };
    let run = &mut result["runs"][0];
    run["store"]["name"] = json!(format!("store-{store}"));
    run["store"]["version"] = json!(format!("{}.{}", 1 + day / 10, day % 10));
    let level = if number % 10 == 9 { "suspect" } else { "valid" };
    run["verdict"] = json!({ "level": level, "reasons": [] });
    for phase in run["phases"].as_array_mut().into_iter().flatten() {
        let wall = phase["wall_ns"].as_f64().unwrap_or(1e9);
        phase["wall_ns"] = json!((wall * factor) as u64);
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_of_many_stores_machines_and_days() {
        let measured = json!({ "started": "", "host": {}, "runs": [{ "store": {}, "phases": [
            { "wall_ns": 1_000_000_000 } ] }] });
        let all: Vec<Value> = (0..RESULTS).map(|number| on_a_day(&measured, number)).collect();
        let count = |of: fn(&Value) -> String| {
            all.iter().map(of).collect::<std::collections::BTreeSet<_>>().len() as u64
        };
        assert_eq!(count(|result| result["runs"][0]["store"]["name"].to_string()), STORES);
        assert_eq!(count(|result| result["host"]["cpu"].to_string()), MACHINES);
        let days = RESULTS / MACHINES / STORES;
        assert_eq!(count(|result| result["started"].to_string()), days * STORES);
        assert!(count(|result| result["runs"][0]["phases"][0]["wall_ns"].to_string()) > 50);
    }
}

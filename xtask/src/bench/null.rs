//! The load loop alone: a store that answers at once shows what everything around a store costs.

use super::pairs::Median;
use super::{Options, Section, kvdyno};
use crate::steps::{Failure, root};

/// Records hit at random.
const RECORDS: &str = "1M";
/// Requests of each run.
const REQUESTS: u64 = 50_000_000;
/// Operations a second on one core that must be reached, without and with verification.
const ASKED: [(&str, f64); 2] = [("without", 8e6), ("with", 5e6)];

pub(super) fn run(options: &Options) -> Result<Section, Failure> {
    let out = root().join("target/bench/null");
    let requests = options.scaled(REQUESTS).to_string();
    let mut text = String::from(
        "| verification | million operations a second on one core | ns each | asked for |\n\
         | --- | --- | --- | --- |\n",
    );
    for (verification, asked) in ASKED {
        let mut rates = Vec::new();
        for _ in 0..options.pairs {
            let mut command = kvdyno::command(&out, &[]);
            command.args(["--store", "null:", "--records", RECORDS, "--value", "100B"]);
            command.args(["--mix", "get=100", "--clients", "1", "--requests", &requests]);
            // It has every record that it is asked for.
            command.args(["--data", "reuse"]);
            if verification == "without" {
                command.arg("--no-verify");
            }
            rates.push(1e3 / kvdyno::run(&out, &mut command)?.cpu_ns());
        }
        let rate = Median::of(&rates);
        let (each, asked) = (1e3 / rate.value, asked / 1e6);
        text += &format!("| {verification} | {rate} | {each:.1} | {asked} |\n");
    }
    text += "\nRates are operations over processor time of the whole process, so that what else \
             runs on the machine counts less.\n";
    Ok(Section { name: "null", text })
}

//! The account of writes at full load: inserts with the ledger on, on one thread, and reading all of them
//! back beside reading them once.

use serde_json::Value;

use super::pairs::Median;
use super::{Options, Section, kvdyno};
use crate::steps::{StepFailure, root};

/// Records inserted.
const RECORDS: u64 = 1_000_000;
/// Asked rate of acknowledged inserts, a second.
const RATE: f64 = 200_000.0;

/// Suite in which `RECORDS` are inserted and read back, and then read once more as a load reads.
const SUITE: &str = r#"
name = "account"
records = RECORDS
value = "100B"
clients = 1
warmup = false

[[phase]]
name = "insert"
mix = "insert"
requests = "records"
read-back = true

[[phase]]
name = "read"
mix = "get"
keys = "sequential"
requests = "records"
read-back = false
"#;

/// Figures of one run.
struct Shown {
    /// Acknowledged inserts a second.
    inserts: f64,
    /// Time of the reading back over that of reading once.
    ratio: f64,
}

pub(super) fn run(options: &Options) -> Result<Section, StepFailure> {
    let folder = root().join("target/bench");
    std::fs::create_dir_all(&folder).map_err(StepFailure::file(&folder))?;
    let suite = folder.join("account.toml");
    let records = options.scaled(RECORDS);
    std::fs::write(&suite, SUITE.replace("RECORDS", &records.to_string()))
        .map_err(StepFailure::file(&suite))?;
    let out = folder.join("account");
    let (mut rates, mut ratios) = (Vec::new(), Vec::new());
    for pass in 0..options.pairs {
        let mut command = kvdyno::command(&out, &[]);
        command.arg(&suite).args(["--store", "sim:"]);
        let shown = shown(&kvdyno::result(&out, &mut command)?, records).ok_or_else(|| {
            StepFailure::Found(
                "an insert into `sim:` was not acknowledged, or not accounted for".to_owned(),
            )
        })?;
        rates.push(shown.inserts);
        ratios.push(shown.ratio);
        println!("pass {} of {}", pass + 1, options.pairs);
    }
    let per_second: Vec<f64> = rates.iter().map(|rate| rate / 1e3).collect();
    let text = format!(
        "| figure | found | asked for |\n| --- | --- | --- |\n\
         | acknowledged inserts, thousand a second, one client (one thread), by the clock | {} | at least {} |\n\
         | reading {records} records back, over reading them once | {} | about 1 |\n\n\
         Both by the clock, not by processor time: what else runs on the machine makes the first too low.\n",
        Median::of(&per_second),
        RATE / 1e3,
        Median::of(&ratios),
    );
    Ok(Section { name: "account", text })
}

/// Returns the figures of a result; `None` if any write is not accounted for.
fn shown(result: &Value, records: u64) -> Option<Shown> {
    let phases = result["runs"][0]["phases"].as_array()?;
    let phase = |name: &str| phases.iter().find(|phase| phase["name"] == name);
    let wall = |name: &str| phase(name)?["wall_ns"].as_f64().filter(|ns| *ns > 0.0);
    let writes = &phase("insert")?["writes"];
    let count = |key: &str| writes[key].as_u64();
    let whole = (count("acknowledged"), count("lost"), count("unknown"), count("read"));
    if whole != (Some(records), Some(0), Some(0), Some(records)) {
        return None;
    }
    Some(Shown {
        inserts: records as f64 * 1e9 / wall("insert")?,
        ratio: wall("insert:read-back")? / wall("read")?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_accounts_for_every_write_counts() {
        let result = |lost: u64| {
            let writes = serde_json::json!({
                "acknowledged": 1000, "lost": lost, "unknown": 0, "read": 1000
            });
            serde_json::json!({ "runs": [{ "phases": [
                { "name": "insert", "wall_ns": 2_000_000, "writes": writes },
                { "name": "insert:read-back", "wall_ns": 900_000 },
                { "name": "read", "wall_ns": 1_000_000 },
            ] }] })
        };
        let shown_by = shown(&result(0), 1000).unwrap();
        assert_eq!((shown_by.inserts, shown_by.ratio), (500_000.0, 0.9));
        assert!(shown(&result(1), 1000).is_none() && shown(&result(0), 999).is_none());
    }
}

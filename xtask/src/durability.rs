//! `cargo xtask durability`: cuts the power of stores under load, again and again, and counts the acknowledged writes
//! that each setting loses. Its table stands in docs/DURABILITY.md.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::SystemTime;

use clap::Args;
use kvdyno_core::ground::share_bound::largest_share;
use serde_json::Value;

use crate::bench::Section;
use crate::bench::page;
use crate::steps::{self, StepFailure, root};

/// Options of `cargo xtask durability`.
#[derive(Debug, Args)]
pub struct Options {
    /// Testbeds, as `kvdyno run --testbed` takes them [default: those of the page]; of the page only the rows of
    /// these are written anew
    testbeds: Vec<String>,
    /// Rate of inserts on these [default: the page's]
    #[arg(long)]
    rate: Option<String>,
    /// Cuts of each, about; a row of fewer than 10 is not written into the page
    #[arg(long, default_value_t = ENOUGH)]
    cuts: u64,
    /// A kvdyno that is built already; else one is built with all drivers
    #[arg(long)]
    binary: Option<PathBuf>,
}

/// Each store at each setting of durability that it has, with the rate of its inserts.
const DEFAULT: [(&str, &str); 36] = [
    ("redis?persistence=none&disk=ext4", MODEST),
    ("redis?persistence=rdb&disk=ext4", MODEST),
    ("redis?persistence=aof-everysec&disk=ext4", MODEST),
    ("redis?persistence=aof-always&disk=ext4", HALF),
    ("redis?persistence=aof-always&disk=xfs", HALF),
    ("redis-sentinel:3?persistence=none&disk=ext4", MODEST),
    ("redis-sentinel:3?persistence=aof-everysec&disk=ext4", MODEST),
    // At half of their capacity their logs take longer to read than the time between cuts.
    ("redis-sentinel:3?persistence=aof-always&disk=ext4", "2k/s"),
    ("valkey?persistence=aof-everysec&disk=ext4", MODEST),
    ("valkey?persistence=aof-always&disk=ext4", HALF),
    ("etcd?disk=ext4", HALF),
    ("etcd?disk=xfs", HALF),
    ("etcd:3?disk=ext4", HALF),
    ("nats?sync=interval&disk=ext4", MODEST),
    ("nats?sync=always&disk=ext4", HALF),
    ("nats:3?sync=always&disk=ext4", HALF),
    // It does not always come back by itself, and does where it may leave the broken end of its log out.
    ("tarantool?wal=write&disk=ext4", MODEST),
    ("tarantool?wal=write&recovery=force&disk=ext4", MODEST),
    ("tarantool?wal=fsync&disk=ext4", HALF),
    ("tarantool:2?wal=fsync&disk=ext4", HALF),
    ("engine:lmdb?durability=power&disk=ext4", HALF),
    ("engine:lmdb?durability=process&disk=ext4", MODEST),
    ("engine:fjall?durability=power&disk=ext4", HALF),
    ("engine:fjall?durability=process&disk=ext4", MODEST),
    ("engine:fjall?durability=none&disk=ext4", MODEST),
    ("engine:redb?durability=power&disk=ext4", HALF),
    ("engine:redb?durability=none&disk=ext4", MODEST),
    ("engine:rocksdb?durability=power&disk=ext4", HALF),
    ("engine:rocksdb?durability=process&disk=ext4", MODEST),
    ("engine:rocksdb?durability=none&disk=ext4", MODEST),
    ("mongodb?disk=ext4", HALF),
    ("cassandra:1?sync=periodic&disk=ext4:2GiB", SLOW),
    ("cassandra:1?sync=batch&disk=ext4:2GiB", HALF),
    ("cassandra:1?sync=group&disk=ext4:2GiB", HALF),
    // Replicas in memory and a snapshot now and then.
    ("redis-sentinel:3?persistence=rdb&disk=ext4", MODEST),
    ("engine:lmdb?durability=none&disk=ext4", MODEST),
];

/// The same for servers that no registry has: only if this variable names their program.
const NAMED: [(&str, &str, &str); 5] = [
    ("KVDYNO_ASD", "aerospike:1?storage=file&disk=ext4:2GiB", SLOW),
    ("KVDYNO_RIAK", "riak:1?backend=bitcask&sync=on&disk=ext4:2GiB", SLOW),
    ("KVDYNO_RIAK", "riak:1?backend=bitcask&sync=off&disk=ext4:2GiB", SLOW),
    ("KVDYNO_RIAK", "riak:1?backend=bitcask&io=nif&sync=on&disk=ext4:2GiB", SLOW),
    ("KVDYNO_RIAK", "riak:1?backend=leveldb&sync=on&disk=ext4:2GiB", HALF),
];

/// Rate that makes kvdyno measure the store's capacity first.
const HALF: &str = "50% of capacity";

/// Rate where most acknowledged writes are lost: each loss is read again and told, which takes long for a million of
/// them.
const MODEST: &str = "1k/s";

/// Rate for the same where cuts are far apart: no more than 100,000 losses are listed.
const SLOW: &str = "250/s";

/// Fewest cuts of a row of the page's table.
const ENOUGH: u64 = 10;

/// Longest time without a success: a store takes its time to come back on a busy machine.
const PATIENCE: &str = "3m";

/// Confidence of the last column.
const SURE: f64 = 0.95;

/// Time from cut to cut of a store which is back at once, s.
const QUICK: u64 = 6;

/// Returns the time from one cut to the next, with time for the store to come back, s.
fn a_cut_takes(testbed: &str) -> u64 {
    match testbed.split([':', '?']).next() {
        // Java replays its log slowly.
        Some("cassandra") => 33,
        Some("riak") => 30,
        Some("aerospike") => 18,
        // Its servers wait for one another, and then elect a leader.
        _ if testbed.starts_with("nats:3") => 13,
        _ => QUICK,
    }
}

/// Makes a suite of inserts only, so that each loss is seen, with cuts of all nodes at once, so that no copy helps.
/// The capacity is searched only if the rate is a share of it: a store that syncs nothing loses all of that phase in
/// the first cut, and that would be more losses than a result lists one by one.
fn suite(testbed: &str, cuts: u64, rate: &str) -> String {
    let seconds = cuts * a_cut_takes(testbed);
    // Clients take their time to find a slow store again: a cut with nothing at stake shows nothing.
    let every = if a_cut_takes(testbed) > QUICK { "9300ms" } else { "3300ms" };
    let capacity = match rate.contains("capacity") {
        true => "[[phase]]\nname = \"capacity\"\nmix = \"insert\"\nduration = \"3s\"\n",
        false => "",
    };
    format!(
        "name = \"durability\"\nrecords = 2000\nclients = 20\nwarmup = false\n\
         [[phase]]\nname = \"load\"\nload = true\n\
         {capacity}[[phase]]\nname = \"cut\"\nmix = \"insert\"\nrate = \"{rate}\"\nduration = \"{seconds}s\"\n\
         read-back = true\n\
         [[phase.fault]]\ndo = \"power\"\nnode = \"all\"\nat = \"2s\"\nspread = \"2s\"\nrepair = \"300ms\"\n\
         every = \"{every}\"\n"
    )
}

/// Losses of one testbed by its cuts.
#[derive(Debug, Default, PartialEq)]
pub struct CutRow {
    /// Name and version of the store.
    pub store: String,
    /// Promise of the store: what a write survives.
    pub promised: String,
    /// Acknowledged inserts of the whole run.
    pub acknowledged: u64,
    /// Lost writes, cut by cut.
    pub lost: Vec<u64>,
    /// Writes that were acknowledged in the last whole second before each cut.
    pub at_stake: Vec<u64>,
    /// Time from the oldest lost write's answer to its cut, ms, the longest of all cuts.
    pub reach_ms: u64,
    /// Number of starts after a cut that went wrong.
    pub not_back: u64,
    /// Number of records that hold what they must not.
    pub wrong: u64,
    /// Number of records whose fate is unknown.
    pub unknown: u64,
    /// False if the store did not come back, so that nothing is known of what was lost.
    pub is_read_back: bool,
}

/// Cuts off each testbed as often as was asked, and prints the table.
///
/// # Errors
/// If a build or a run fails.
pub fn durability(options: &Options) -> Result<(), StepFailure> {
    let folder = root().join("target/durability");
    let binary = match &options.binary {
        Some(binary) => binary.clone(),
        None => {
            let build = ["build", "--release", "--package", "kvdyno", "--features", "full"];
            steps::run(steps::cargo().args(build))?;
            root().join("target/release/kvdyno")
        }
    };
    let path = root().join("docs/DURABILITY.md");
    for (testbed, rate) in wanted(options) {
        let row = cut_off(&binary, &folder, testbed, rate, options.cuts)?;
        let line = line(testbed, &row);
        println!("{line}");
        // A store that did not come back cannot be cut off again.
        if row.lost.len() as u64 >= ENOUGH || !row.is_read_back {
            let before = std::fs::read_to_string(&path).map_err(StepFailure::file(&path))?;
            let text = with_row(page::section(&before, "durability").unwrap_or_default(), &line);
            page::write(&path, &[Section { name: "durability", text }])?;
        }
    }
    Ok(())
}

/// Returns the testbeds to cut off, each with its rate of inserts.
fn wanted(options: &Options) -> Vec<(&str, &str)> {
    let named = NAMED.into_iter().filter(|(variable, ..)| {
        !options.testbeds.is_empty() || std::env::var_os(variable).is_some()
    });
    let known: Vec<(&str, &str)> =
        DEFAULT.into_iter().chain(named.map(|(_, testbed, rate)| (testbed, rate))).collect();
    let rate_of = |wanted: &str| {
        let found = known.iter().find(|(testbed, _)| *testbed == wanted);
        options.rate.as_deref().unwrap_or(found.map_or(HALF, |(_, rate)| *rate))
    };
    let own = options.testbeds.iter().map(String::as_str);
    let all: Vec<&str> = match options.testbeds.is_empty() {
        true => known.iter().map(|(testbed, _)| *testbed).collect(),
        false => own.collect(),
    };
    all.into_iter().map(|testbed| (testbed, rate_of(testbed))).collect()
}

/// Returns the table with `line` in the place of the row of the same testbed, or at its end.
fn with_row(table: &str, line: &str) -> String {
    let testbed = |line: &str| line.split('|').nth(1).map(str::to_owned);
    let mut lines: Vec<&str> = table.trim_end().lines().collect();
    match lines.iter().position(|old| testbed(old) == testbed(line)) {
        Some(place) => lines[place] = line,
        None => lines.push(line),
    }
    lines.join("\n") + "\n"
}

/// Makes one row: `binary`, a kvdyno, runs `testbed` in `folder` and cuts it off about `cuts` times under inserts at
/// `rate`.
///
/// # Errors
/// If the run fails, or lacks a figure of the row.
pub fn cut_off(
    binary: &Path,
    folder: &Path,
    testbed: &str,
    rate: &str,
    cuts: u64,
) -> Result<CutRow, StepFailure> {
    std::fs::create_dir_all(folder).map_err(StepFailure::file(folder))?;
    let path = folder.join("durability.toml");
    std::fs::write(&path, suite(testbed, cuts, rate)).map_err(StepFailure::file(&path))?;
    row(&run(binary, &path, folder, testbed)?)
}

/// Files that one run left: its result, its anomalies, and its timeline.
struct Ran {
    result: Value,
    anomalies: Vec<Value>,
    timeline: String,
}

/// Carries out one run.
fn run(binary: &Path, suite: &Path, folder: &Path, testbed: &str) -> Result<Ran, StepFailure> {
    let out = folder.join("result");
    if out.exists() {
        std::fs::remove_dir_all(&out).map_err(StepFailure::file(&out))?;
    }
    let mut run = Command::new(binary);
    run.arg("run").arg(suite).args(["--testbed", testbed, "--quiet"]);
    run.args(["--give-up", PATIENCE, "--out"]).arg(&out);
    let ended = run.output().map_err(|source| steps::start_failure(&run, source))?;
    let read = |name: &str| std::fs::read_to_string(out.join(name)).unwrap_or_default();
    let result: Value = serde_json::from_str(&read("result.json")).unwrap_or_default();
    let anomalies = read("anomalies.jsonl");
    let anomalies = anomalies.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    // Exit code 1 tells of losses, which are counted; 2 of a machine that is too busy.
    match ended.status.code() {
        Some(0..=2) if phase(&result, "cut").is_some() => {
            Ok(Ran { result, anomalies, timeline: read("timeline.csv") })
        }
        _ => {
            eprint!("{}", String::from_utf8_lossy(&ended.stderr));
            Err(steps::failure(&run, &ended.status.to_string()))
        }
    }
}

fn phase<'a>(result: &'a Value, name: &str) -> Option<&'a Value> {
    let phases = result["runs"][0]["phases"].as_array()?;
    phases.iter().find(|phase| phase["name"] == name)
}

fn count(value: &Value) -> u64 {
    value.as_u64().unwrap_or(0)
}

/// Returns the begin of a phase, ns since 1970.
fn moment(phase: &Value) -> Option<u64> {
    let text = phase["started"].as_str()?;
    let moment = humantime::parse_rfc3339(text).ok()?;
    Some(moment.duration_since(SystemTime::UNIX_EPOCH).ok()?.as_nanos() as u64)
}

/// Returns the writes that were acknowledged in each second of the phase with the cuts.
fn by_second(timeline: &str) -> BTreeMap<u64, u64> {
    let mut lines = timeline.lines().map(|line| line.split(',').collect::<Vec<&str>>());
    let head = lines.next().unwrap_or_default();
    let column = |name: &str| head.iter().position(|column| *column == name);
    let columns = column("phase_name").zip(column("interval")).zip(column("ok"));
    let Some(((phase, interval), ok)) = columns else { return BTreeMap::new() };
    let mut seconds = BTreeMap::new();
    for line in lines.filter(|line| line.get(phase) == Some(&"cut")) {
        let number = |at: usize| line.get(at).and_then(|text| text.parse::<u64>().ok());
        if let Some((second, acknowledged)) = number(interval).zip(number(ok)) {
            *seconds.entry(second).or_default() += acknowledged;
        }
    }
    seconds
}

/// Makes the row of a run.
fn row(ran: &Ran) -> Result<CutRow, StepFailure> {
    let told = |what: &str| StepFailure::Found(format!("the result has no {what}"));
    let cut = phase(&ran.result, "cut").ok_or_else(|| told("phase cut"))?;
    let faults = cut["faults"].as_array().cloned().unwrap_or_default();
    let of = |what: &'static str| faults.iter().filter(move |fault| fault["what"] == what);
    let done = of("power").filter(|fault| fault["error"].is_null());
    let mut cuts: Vec<(u64, u64)> =
        done.map(|fault| (count(&fault["began_ns"]), count(&fault["ended_ns"]))).collect();
    cuts.dedup();
    let seconds = by_second(&ran.timeline);
    let at_stake = cuts.iter().filter_map(|(began, _)| {
        // The second that contains the cut is not whole.
        let before = (began / 1_000_000_000).checked_sub(1)?;
        Some(seconds.get(&before).copied().unwrap_or(0))
    });
    let store = &ran.result["runs"][0]["store"];
    let version = store["version"].as_str().unwrap_or_default();
    let writes = &cut["writes"];
    let anomalies = |place: usize| count(&writes["anomalies"][place]);
    let mut row = CutRow {
        store: format!("{} {version}", store["name"].as_str().unwrap_or_default()),
        promised: store["durability"]["level"].as_str().unwrap_or_default().replace('-', " "),
        acknowledged: count(&writes["acknowledged"]),
        lost: vec![0; cuts.len()],
        at_stake: at_stake.collect(),
        not_back: of("start again").filter(|fault| !fault["error"].is_null()).count() as u64,
        // The kinds corrupt, phantom and resurrected.
        wrong: anomalies(0) + anomalies(1) + anomalies(2),
        unknown: count(&writes["unknown"]),
        is_read_back: true,
        ..CutRow::default()
    };
    let Some(back) = phase(&ran.result, "cut:read-back") else {
        // No server is left that could be asked.
        let ended = row.not_back > 0;
        row.acknowledged = seconds.values().sum();
        row.is_read_back = false;
        return if ended { Ok(row) } else { Err(told("records read back")) };
    };
    let (start, read) = (moment(cut), moment(back));
    let (start, read) = start.zip(read).ok_or_else(|| told("begin of a phase"))?;
    let lost = || ran.anomalies.iter().filter(|anomaly| anomaly["kind"] == "lost");
    // Only listed losses tell which cut took them, and the list is bounded.
    let (listed, counted) = (lost().count() as u64, count(&writes["lost"]));
    if listed != counted {
        return Err(StepFailure::Found(format!(
            "{counted} writes are lost, and {listed} of them are listed: give a lower --rate"
        )));
    }
    for lost in lost() {
        let acknowledged =
            (read + count(&lost["sent_ns"])).saturating_sub(count(&lost["behind_ns"]) + start);
        // A write that was acknowledged while power was being cut belongs to that cut. A write that is gone though no
        // cut came after it was lost by what the last cut led to: another primary.
        let taken = cuts.iter().position(|(_, ended)| acknowledged <= *ended);
        let Some(taken) = taken.or(cuts.len().checked_sub(1)) else {
            return Err(told("cut that took a lost write"));
        };
        row.lost[taken] += 1;
        let reach = cuts[taken].0.saturating_sub(acknowledged) / 1_000_000;
        row.reach_ms = row.reach_ms.max(reach);
    }
    Ok(row)
}

/// Returns the median; 0 of nothing.
fn middle(values: &[u64]) -> u64 {
    let mut values = values.to_vec();
    values.sort_unstable();
    values.get(values.len() / 2).copied().unwrap_or(0)
}

fn line(testbed: &str, row: &CutRow) -> String {
    let lost = &row.lost;
    let (median, worst) = (middle(lost), lost.iter().max().copied().unwrap_or(0));
    let at_stake = middle(&row.at_stake);
    let (cuts, lossy) = (lost.len() as u64, lost.iter().filter(|lost| **lost > 0).count() as u64);
    let most = largest_share(lossy, cuts, SURE) * 100.0;
    let reach = if worst > 0 { format!("{} ms", row.reach_ms) } else { "–".to_owned() };
    let back = match row.not_back {
        0 => "yes".to_owned(),
        times => format!("not {times} time(s)"),
    };
    let unknown = match row.unknown {
        0 => String::new(),
        unknown => format!(" ({unknown} not told)"),
    };
    let CutRow { store, promised, acknowledged, wrong, .. } = row;
    if !row.is_read_back {
        return format!(
            "| `{testbed}` | {store} | {promised} | {cuts} | {acknowledged} | {at_stake} | not told | not told | – | \
             not after the last | – | – |"
        );
    }
    format!(
        "| `{testbed}` | {store} | {promised} | {cuts} | {acknowledged} | {at_stake} | {median} | {worst} | \
         {reach} | \
         {back} | {wrong}{unknown} | {most:.0} % |"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// Two cuts of two nodes each: one write is lost in the first, two in the second, one after that.
    #[test]
    fn each_loss_is_of_the_cut_that_took_it() {
        let fault = |what: &str, began: u64, error: Value| json!({ "what": what, "began_ns": began, "ended_ns": began + 30_000_000, "error": error });
        let (first, second) = (2_000_000_000_u64, 5_000_000_000_u64);
        let faults = [first, first, second, second].map(|at| fault("power", at, Value::Null));
        let mut faults = faults.to_vec();
        faults.push(fault("start again", first + 400_000_000, Value::Null));
        faults.push(fault("start again", second + 400_000_000, json!("it ended at once")));
        let result = json!({ "runs": [{
            "store": { "name": "redis", "version": "7", "durability": { "level": "power-loss" } },
            "phases": [
                { "name": "cut", "started": "2026-01-01T00:00:00Z", "wall_ns": 10_000_000_000_u64,
                  "faults": faults,
                  "writes": { "acknowledged": 5_000, "lost": 4, "unknown": 0, "anomalies": [1, 0, 0, 0, 4] } },
                { "name": "cut:read-back", "started": "2026-01-01T00:00:11Z" },
            ],
        }] });
        let lost = |acknowledged_ms: u64| {
            let behind = 11_001_000_000 - acknowledged_ms * 1_000_000;
            json!({ "kind": "lost", "sent_ns": 1_000_000, "behind_ns": behind })
        };
        let rotten = json!({ "kind": "corrupt" });
        let anomalies = vec![lost(1_400), lost(4_100), lost(5_020), lost(6_500), rotten];
        // The first cut is in second 2, the second in second 5; another phase is not counted.
        let timeline = "run,phase_name,interval,kind,ok\n0,cut,1,insert,700\n0,cut,2,insert,300\n\
                        0,cut,4,insert,900\n0,load,4,insert,5000\n"
            .to_owned();
        let row = super::row(&Ran { result, anomalies, timeline }).unwrap();
        assert_eq!(row.at_stake, [700, 900]);
        assert_eq!((row.lost.as_slice(), row.reach_ms), (&[1, 3][..], 900));
        assert_eq!((row.not_back, row.wrong), (1, 1));
        let gone = json!({ "runs": [{ "phases": [{ "name": "cut", "faults": [
            fault("power", first, Value::Null), fault("start again", second, json!("it ended at once")),
        ] }] }] });
        let timeline = "phase_name,interval,ok\ncut,1,800\ncut,2,100\n".to_owned();
        let row_of_gone =
            super::row(&Ran { result: gone, anomalies: Vec::new(), timeline }).unwrap();
        assert!(
            line("cassandra", &row_of_gone).contains("| 1 | 900 | 800 | not told | not told |")
        );
        let bounded = json!({ "runs": [{ "phases": [
            { "name": "cut", "started": "2026-01-01T00:00:00Z", "writes": { "lost": 3 } },
            { "name": "cut:read-back", "started": "2026-01-01T00:00:11Z" },
        ] }] });
        let (anomalies, timeline) = (vec![lost(1_400)], String::new());
        let few = super::row(&Ran { result: bounded, anomalies, timeline });
        assert!(few.unwrap_err().to_string().contains("3 writes are lost, and 1 of them"));
        assert_eq!(
            line("redis", &row),
            "| `redis` | redis 7 | power loss | 2 | 5000 | 900 | 3 | 3 | 900 ms | not 1 time(s) | 1 | 100 % |"
        );
        let none = CutRow { lost: vec![0; 10], is_read_back: true, ..CutRow::default() };
        assert!(line("etcd", &none).ends_with("| 0 | 0 | – | yes | 0 | 26 % |"));
    }

    #[test]
    fn a_row_takes_the_place_of_the_testbed_s_former_one() {
        let page = include_str!("../../docs/DURABILITY.md");
        let table = page::section(page, "durability").expect("the table");
        let rows = table.lines().count();
        let first = table.lines().nth(2).expect("a row");
        let of = |testbed: &str| format!("| `{testbed}` | new |");
        let known = first.split('`').nth(1).expect("a testbed");
        let again = with_row(table, &of(known));
        assert_eq!((again.lines().nth(2), again.lines().count()), (Some(&*of(known)), rows));
        let more = with_row(table, &of("another"));
        assert_eq!((more.lines().last(), more.lines().count()), (Some(&*of("another")), rows + 1));
        assert_eq!(with_row(table, first), table);
    }

    #[test]
    fn a_list_of_one_s_own_has_the_rates_of_the_page() {
        let options = |testbeds: &[&str], rate: Option<&str>| Options {
            testbeds: testbeds.iter().map(|testbed| (*testbed).to_owned()).collect(),
            rate: rate.map(str::to_owned),
            cuts: ENOUGH,
            binary: None,
        };
        let own = ["redis?persistence=none&disk=ext4", NAMED[0].1, "sim"];
        let modest = options(&own, None);
        let rates: Vec<&str> = wanted(&modest).into_iter().map(|(_, rate)| rate).collect();
        assert_eq!(rates, [MODEST, SLOW, HALF]);
        assert_eq!(wanted(&options(&own[..1], Some("7/s"))), [(own[0], "7/s")]);
        assert!(wanted(&options(&[], None)).len() >= DEFAULT.len());
    }
}

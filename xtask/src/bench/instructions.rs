//! `cargo xtask instructions`: how many instructions an operation takes in the worker's thread, counted
//! by valgrind, beside the figures that were accepted last. Counts do not depend on what else the
//! machine does, so a regression shows where times would not. They depend on the compiler and on
//! which clock the machine lets kvdyno read: where these differ, figures are shown and not judged.

use std::collections::BTreeMap;
use std::fs::read_to_string;
use std::path::Path;
use std::process::Command;

use clap::Args;
use serde_json::{Value, json};

use super::kvdyno;
use crate::servers;
use crate::steps::{self, Failure, root};

/// Share by which a figure may rise above the accepted one.
const ALLOWED: f64 = 0.05;
/// Operations of the shorter run and of the longer: what both do but once cancels out.
const OPERATIONS: [u64; 2] = [20_000, 80_000];
/// Records: few, for inserting them is not what is counted.
const RECORDS: &str = "1000";
/// The accepted figures.
const ACCEPTED: &str = "xtask/src/bench/instructions.json";

/// A load whose operations are counted.
struct Load {
    name: &'static str,
    store: &'static str,
    arguments: &'static [&'static str],
}

const LOADS: [Load; 4] = [
    Load {
        name: "null: gets, verification off",
        store: "null:",
        arguments: &["--mix", "get=100", "--no-verify"],
    },
    Load { name: "null: gets", store: "null:", arguments: &["--mix", "get=100"] },
    Load {
        name: "null: half gets, half updates",
        store: "null:",
        arguments: &["--mix", "get=50,update=50"],
    },
    Load {
        name: "map: half gets, half updates",
        store: "map:",
        arguments: &["--mix", "get=50,update=50"],
    },
];

/// What to do with the figures.
#[derive(Clone, Copy, Debug, Args)]
pub struct Options {
    /// Accept the figures found
    #[arg(long)]
    accept: bool,
}

/// Figures and what they were taken with.
#[derive(Debug, PartialEq)]
struct Figures {
    /// Compiler and clock.
    conditions: String,
    /// Instructions for each operation, by load.
    each: BTreeMap<String, f64>,
}

/// Builds kvdyno, counts, and compares with the accepted figures.
///
/// # Errors
/// If a figure rose by more than 5 %, or if valgrind or kvdyno could not be run.
pub fn instructions(options: Options) -> Result<(), Failure> {
    servers::ensure_valgrind()?;
    steps::run(steps::cargo().args(["build", "--release", "--package", "kvdyno"]))?;
    let mut each = BTreeMap::new();
    for load in &LOADS {
        let counts = [count(load, OPERATIONS[0])?, count(load, OPERATIONS[1])?];
        let more = counts[1].saturating_sub(counts[0]) as f64;
        each.insert(load.name.to_owned(), more / (OPERATIONS[1] - OPERATIONS[0]) as f64);
    }
    let found = Figures { conditions: conditions()?, each };
    let path = root().join(ACCEPTED);
    if options.accept {
        std::fs::write(&path, found.to_json()).map_err(Failure::file(&path))?;
        println!("accepted in {ACCEPTED}");
    }
    let text = read_to_string(&path).map_err(Failure::file(&path))?;
    let accepted = Figures::from_json(&text)
        .ok_or_else(|| Failure::Found(format!("{ACCEPTED} holds no figures")))?;
    judge(&found, &accepted)
}

/// Instructions of the thread that carried the load: of all but the first, the one with the most.
fn count(load: &Load, operations: u64) -> Result<u64, Failure> {
    let folder = root().join("target/bench/instructions");
    if folder.exists() {
        std::fs::remove_dir_all(&folder).map_err(Failure::file(&folder))?;
    }
    std::fs::create_dir_all(&folder).map_err(Failure::file(&folder))?;
    let file = format!("--callgrind-out-file={}", folder.join("threads").display());
    let tool = ["valgrind", "--quiet", "--tool=callgrind", "--separate-threads=yes", &file];
    let mut command = kvdyno::command(&folder.join("result"), &tool);
    command.args(["--store", load.store, "--records", RECORDS, "--value", "100B"]);
    command.args(["--clients", "1", "--requests", &operations.to_string()]).args(load.arguments);
    let output = command.output().map_err(|source| steps::start_failure(&command, source))?;
    most(&folder)?.ok_or_else(|| {
        print!("{}", String::from_utf8_lossy(&output.stderr));
        steps::failure(&command, &output.status.to_string())
    })
}

/// The greatest total in callgrind's files, one for each thread.
fn most(folder: &Path) -> Result<Option<u64>, Failure> {
    let mut most = None;
    for entry in std::fs::read_dir(folder).map_err(Failure::file(folder))? {
        let path = entry.map_err(Failure::file(folder))?.path();
        if path.is_file() {
            let text = read_to_string(&path).map_err(Failure::file(&path))?;
            most = most.max(total(&text));
        }
    }
    Ok(most)
}

/// `None` for the first thread of the process, which makes plan and report.
fn total(profile: &str) -> Option<u64> {
    if profile.lines().any(|line| line == "thread: 1") {
        return None;
    }
    profile.lines().find_map(|line| line.strip_prefix("totals: ")?.trim().parse().ok())
}

/// What figures depend on beside kvdyno itself.
fn conditions() -> Result<String, Failure> {
    let rustc = steps::output(Command::new("rustc").arg("--version"))?;
    let path = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
    let clock = read_to_string(path).unwrap_or_default();
    Ok(format!("{}, clock {}", rustc.trim(), clock.trim()))
}

/// Shows both, and fails where they may be compared and one rose too far.
fn judge(found: &Figures, accepted: &Figures) -> Result<(), Failure> {
    let comparable = found.conditions == accepted.conditions;
    let mut risen = Vec::new();
    println!("{:32} {:>8} {:>8} {:>7}", "instructions each", "now", "accepted", "change");
    for (name, &now) in &found.each {
        let Some(&before) = accepted.each.get(name) else {
            println!("{name:32} {now:8.0} {:>8}", "none");
            continue;
        };
        let change = now / before - 1.0;
        println!("{name:32} {now:8.0} {before:8.0} {:>+6.1}%", change * 100.0);
        if change > ALLOWED {
            risen.push(format!("{name} {:+.1} %", change * 100.0));
        }
    }
    if !comparable {
        println!("not judged: accepted with {}, this is {}", accepted.conditions, found.conditions);
        return Ok(());
    }
    if risen.is_empty() {
        return Ok(());
    }
    let risen = risen.join(", ");
    Err(Failure::Found(format!(
        "an operation takes more instructions than was accepted: {risen}; if that is worth it, run \
         `cargo xtask instructions --accept`"
    )))
}

impl Figures {
    fn to_json(&self) -> String {
        let each: BTreeMap<_, _> = self.each.iter().map(|(name, n)| (name, n.round())).collect();
        format!("{:#}\n", json!({ "conditions": self.conditions, "instructions": each }))
    }

    fn from_json(text: &str) -> Option<Figures> {
        let value: Value = serde_json::from_str(text).ok()?;
        let conditions = value["conditions"].as_str()?.to_owned();
        let figures = value["instructions"].as_object()?;
        let each = figures.iter().map(|(name, n)| Some((name.clone(), n.as_f64()?)));
        Some(Figures { conditions, each: each.collect::<Option<_>>()? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figures(conditions: &str, each: f64) -> Figures {
        let each = BTreeMap::from([("null".to_owned(), each)]);
        Figures { conditions: conditions.to_owned(), each }
    }

    #[test]
    fn a_rise_of_more_than_a_twentieth_fails_where_it_can_be_told() {
        let accepted = figures("a", 600.0);
        assert!(judge(&figures("a", 629.0), &accepted).is_ok());
        let error = judge(&figures("a", 631.0), &accepted).unwrap_err().to_string();
        assert!(error.contains("null +5.2 %"), "{error}");
        assert!(judge(&figures("another compiler", 631.0), &accepted).is_ok());
        assert!(judge(&figures("a", 300.0), &accepted).is_ok());
    }

    #[test]
    fn accepted_figures_are_kept_and_read_again() {
        let accepted = figures("rustc 1.2.3, clock tsc", 612.0);
        assert_eq!(Figures::from_json(&accepted.to_json()).unwrap(), accepted);
        assert_eq!(Figures::from_json("{}"), None);
        let kept = Figures::from_json(include_str!("instructions.json")).unwrap();
        let names: Vec<_> = LOADS.iter().map(|load| load.name.to_owned()).collect();
        assert!(names.iter().all(|name| kept.each.contains_key(name)), "{kept:?}");
    }

    #[test]
    fn the_busiest_thread_carried_the_load() {
        let folder = tempfile::tempdir().unwrap();
        let files = [
            ("threads", ""),
            ("threads-01", "thread: 1\ntotals: 700\n"),
            ("threads-02", "thread: 2\ntotals: 7\n"),
            ("threads-03", "thread: 3\ntotals: 90\n"),
        ];
        for (name, text) in files {
            std::fs::write(folder.path().join(name), text).unwrap();
        }
        assert_eq!(most(folder.path()).unwrap(), Some(90));
    }
}

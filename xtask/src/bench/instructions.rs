//! `cargo xtask instructions`: counts with valgrind how many instructions an operation takes in the worker's thread,
//! and compares them with the figures that were accepted last. Counts do not depend on what else the machine does,
//! over the wire only a little, so a regression shows where times would not show it. They depend on the profile, each
//! of which has accepted figures of its own, and on the compiler: if that differs from the one of the accepted
//! figures, the bound is wider.

use std::collections::BTreeMap;
use std::fs::read_to_string;
use std::path::{Path, PathBuf};
use std::process::Command;

use clap::{Args, ValueEnum};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::REDIS;
use super::target::Target;
use crate::servers;
use crate::steps::{self, StepFailure, root};

/// Share by which a figure may rise above the accepted one.
const ALLOWED: f64 = 0.05;
/// The same with another compiler, and over the wire, where a figure also depends on when the server answers.
const ALLOWED_BY_ANOTHER: f64 = 0.25;
/// Numbers of agents that own the records: the cost of drawing is the difference for each further agent.
const AGENTS: [u64; 2] = [2, 6];
/// Share by which an operation over the wire may take more of one of several agents than of a single process.
const AS_ALONE: f64 = 0.05;
/// Path of the file of accepted figures.
const ACCEPTED: &str = "xtask/src/bench/instructions.json";

/// Load whose operations are counted.
struct Load {
    name: &'static str,
    /// Name of the figure for an operation that one of several agents carries out, without the drawing of the others'
    /// operations; `None` if that is not counted. A store of records in this process would have fewer of them there.
    of_agent: Option<&'static str>,
    /// URL of the store, or the testbed of a server.
    store: &'static str,
    /// Updates in each 1,000 operations; the others are gets.
    updates: u16,
    verify: bool,
    /// Operations of the shorter run and of the longer: what both do only once cancels out.
    operations: [u64; 2],
}

/// Numbers of operations for loads that take some hundreds of instructions each.
const MANY: [u64; 2] = [20_000, 120_000];

const LOADS: [Load; 5] = [
    Load {
        name: "null: gets, verification off",
        of_agent: None,
        store: "null:",
        updates: 0,
        verify: false,
        operations: MANY,
    },
    Load {
        name: "null: gets",
        of_agent: None,
        store: "null:",
        updates: 0,
        verify: true,
        operations: MANY,
    },
    Load {
        name: "null: half gets, half updates",
        of_agent: Some("null: half of each, by one of several agents"),
        store: "null:",
        updates: 500,
        verify: true,
        operations: MANY,
    },
    Load {
        name: "map: half gets, half updates",
        of_agent: None,
        store: "map:",
        updates: 500,
        verify: true,
        operations: MANY,
    },
    Load {
        name: OVER_THE_WIRE[0],
        of_agent: Some(OVER_THE_WIRE[1]),
        store: REDIS,
        updates: 500,
        verify: true,
        operations: [4_000, 24_000],
    },
];

/// Names of the figures of a server over loopback: in one process, and by one of several agents.
const OVER_THE_WIRE: [&str; 2] =
    ["redis: half gets, half updates", "redis: half of each, by one of several agents"];

/// Options of `cargo xtask instructions`.
#[derive(Clone, Copy, Debug, Args)]
pub struct Options {
    /// Accept the figures found
    #[arg(long)]
    accept: bool,

    /// Profile of the build that is judged
    #[arg(long, default_value = "release")]
    profile: BuildProfile,
}

/// Build profile of `Cargo.toml` that users have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum BuildProfile {
    /// Profile of users who try kvdyno.
    Release,
    /// Profile of packages and benchmarks.
    Dist,
}

impl BuildProfile {
    fn word(self) -> &'static str {
        match self {
            BuildProfile::Release => "release",
            BuildProfile::Dist => "dist",
        }
    }
}

/// Accepted figures of each profile.
type Accepted = BTreeMap<BuildProfile, Figures>;

/// Figures, with the conditions under which they were taken.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Figures {
    /// Version of the compiler.
    conditions: String,
    /// Instructions for each operation, by load.
    #[serde(rename = "instructions")]
    each: BTreeMap<String, f64>,
}

/// Builds the benchmark, counts, and compares with the accepted figures.
///
/// # Errors
/// If a figure rose by more than its bound, or if valgrind or the benchmark could not be run.
pub fn instructions(options: Options) -> Result<(), StepFailure> {
    servers::ensure_valgrind()?;
    let program = program(options.profile)?;
    let server = Target::start(REDIS, 0)?;
    let mut each = BTreeMap::new();
    for load in &LOADS {
        let url = if load.store == REDIS { server.url() } else { load.store };
        let by = |owners| each_operation(&program, url, load, owners);
        each.insert(load.name.to_owned(), by(1)?.round());
        if let Some(name) = load.of_agent {
            let [few, many] = AGENTS.map(by);
            each.insert(name.to_owned(), carried_out([few?, many?]).round());
        }
    }
    drop(server);
    let found = Figures { conditions: conditions()?, each };
    let path = root().join(ACCEPTED);
    let text = read_to_string(&path).map_err(StepFailure::file(&path))?;
    let mut accepted = accepted(&text)?;
    if options.accept {
        accepted.insert(options.profile, found.clone());
        let text = serde_json::to_string_pretty(&accepted).expect("figures are plain JSON");
        std::fs::write(&path, text + "\n").map_err(StepFailure::file(&path))?;
        println!("accepted in {ACCEPTED}");
    }
    let word = options.profile.word();
    println!("the profile {word}:");
    let before = accepted.get(&options.profile).ok_or_else(|| {
        let message = format!("{ACCEPTED} holds no figures of the profile {word}");
        StepFailure::Found(message)
    })?;
    judge(&found, before)?;
    judge_agents(&found)
}

/// Reads the file of accepted figures.
fn accepted(text: &str) -> Result<Accepted, StepFailure> {
    serde_json::from_str(text)
        .map_err(|error| StepFailure::Found(format!("{ACCEPTED} holds no figures: {error}")))
}

/// Builds `crates/stores/benches/hot_path.rs` like [`steps::BY_DIST`]. Returns the program.
pub(super) fn hot_path() -> Result<PathBuf, StepFailure> {
    program(BuildProfile::Dist)
}

/// Builds `crates/stores/benches/hot_path.rs` by this profile. Returns the path of the program.
fn program(profile: BuildProfile) -> Result<PathBuf, StepFailure> {
    let mut cargo = steps::cargo();
    cargo.args([
        "bench",
        "--no-run",
        "--profile",
        profile.word(),
        "--package",
        "kvdyno-stores",
        "--bench",
        "hot_path",
    ]);
    let told = steps::output(cargo.arg("--message-format=json-render-diagnostics"))?;
    let built = told.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let mut paths = built.filter(|message| message["target"]["name"] == "hot_path");
    let path = paths.find_map(|message| Some(PathBuf::from(message["executable"].as_str()?)));
    path.ok_or_else(|| StepFailure::Found("cargo did not tell where hot_path is".to_owned()))
}

/// Counts the instructions for each operation that one of so many owners carries out, with the drawing for it.
fn each_operation(program: &Path, url: &str, load: &Load, owners: u64) -> Result<f64, StepFailure> {
    let [few, many] = load.operations.map(|operations| {
        let mut arguments = vec![url.to_owned(), load.updates.to_string(), load.verify.to_string()];
        arguments.extend([(operations * owners).to_string(), owners.to_string()]);
        count(program, &arguments)
    });
    let (few, many) = (few?, many?);
    let more = |of: fn(&Counted) -> u64| of(&many).saturating_sub(of(&few)) as f64;
    Ok(more(|counted| counted.instructions) / more(|counted| counted.operations))
}

/// Returns the own part of an operation's instructions with the two numbers of [`AGENTS`]: each further agent is one
/// more operation that is drawn.
fn carried_out([few, many]: [f64; 2]) -> f64 {
    let draws = (many - few) / (AGENTS[1] - AGENTS[0]) as f64;
    few - draws * (AGENTS[0] - 1) as f64
}

/// Totals of one run of the load.
struct Counted {
    instructions: u64,
    operations: u64,
}

/// Counts the instructions of all threads that carried the load: every thread but the first, which makes the plan and
/// looks after the others. Phases follow each other, and valgrind gives a new thread the number of one that has
/// ended, so no single thread is picked.
fn count(program: &Path, arguments: &[String]) -> Result<Counted, StepFailure> {
    let folder = root().join("target/bench/instructions");
    if folder.exists() {
        std::fs::remove_dir_all(&folder).map_err(StepFailure::file(&folder))?;
    }
    std::fs::create_dir_all(&folder).map_err(StepFailure::file(&folder))?;
    let mut command = Command::new("valgrind");
    command.args(["--quiet", "--tool=callgrind", "--separate-threads=yes"]);
    command.arg(format!("--callgrind-out-file={}", folder.join("threads").display()));
    let said = steps::output(command.arg(program).args(arguments))?;
    let found = |what: &str| StepFailure::Found(what.to_owned());
    let instructions = of_workers(&folder)?;
    let instructions =
        instructions.ok_or_else(|| found("valgrind counted no thread but the first"))?;
    let operations = said.split(' ').next().and_then(|count| count.parse().ok());
    let operations =
        operations.ok_or_else(|| found("hot_path did not tell how much it has done"))?;
    Ok(Counted { instructions, operations })
}

/// Adds up the totals in callgrind's files, one for each thread, without the first thread's.
fn of_workers(folder: &Path) -> Result<Option<u64>, StepFailure> {
    let mut sum = None;
    for entry in std::fs::read_dir(folder).map_err(StepFailure::file(folder))? {
        let path = entry.map_err(StepFailure::file(folder))?.path();
        let text = read_to_string(&path).map_err(StepFailure::file(&path))?;
        if let Some(total) = total(&text) {
            sum = Some(sum.unwrap_or(0) + total);
        }
    }
    Ok(sum)
}

/// Returns the total of a thread; `None` for the first thread of the process.
fn total(profile: &str) -> Option<u64> {
    if profile.lines().any(|line| line == "thread: 1") {
        return None;
    }
    profile.lines().find_map(|line| line.strip_prefix("totals: ")?.trim().parse().ok())
}

/// Returns the conditions on which figures depend beside kvdyno itself. Valgrind's own processor has no counter that
/// kvdyno takes for a clock, so the clock is the same everywhere.
fn conditions() -> Result<String, StepFailure> {
    Ok(steps::output(Command::new("rustc").arg("--version"))?.trim().to_owned())
}

/// Prints both, and fails if a figure rose too far.
fn judge(found: &Figures, accepted: &Figures) -> Result<(), StepFailure> {
    let same = found.conditions == accepted.conditions;
    let allowed = if same { ALLOWED } else { ALLOWED_BY_ANOTHER };
    let mut risen = Vec::new();
    println!("{:46} {:>8} {:>8} {:>7}", "instructions each", "now", "accepted", "change");
    for (name, &now) in &found.each {
        let Some(&before) = accepted.each.get(name) else {
            println!("{name:46} {now:8.0}");
            risen.push(format!("{name} was never accepted"));
            continue;
        };
        let change = now / before - 1.0;
        println!("{name:46} {now:8.0} {before:8.0} {:>+6.1}%", change * 100.0);
        let over_the_wire = OVER_THE_WIRE.contains(&name.as_str());
        if change > if over_the_wire { ALLOWED_BY_ANOTHER } else { allowed } {
            risen.push(format!("{name} {:+.1} %", change * 100.0));
        }
    }
    if !same {
        let (before, now) = (&accepted.conditions, &found.conditions);
        println!("accepted with {before}, this is {now}: up to {:.0} % more pass", allowed * 100.0);
    }
    if risen.is_empty() {
        return Ok(());
    }
    let risen = risen.join(", ");
    Err(StepFailure::Found(format!(
        "an operation takes more instructions than was accepted: {risen}; if that is worth it, run \
         `cargo xtask instructions --accept`"
    )))
}

/// Fails if an operation over the wire takes an agent more than a single process, beyond the bound.
fn judge_agents(found: &Figures) -> Result<(), StepFailure> {
    let [alone, agent] = OVER_THE_WIRE.map(|name| found.each.get(name).copied());
    let (Some(alone), Some(agent)) = (alone, agent) else {
        return Err(StepFailure::Found(format!("no figures of {OVER_THE_WIRE:?}")));
    };
    let more = agent / alone - 1.0;
    println!(
        "over the wire one of several agents takes {:+.1} % of a single process",
        more * 100.0
    );
    if more <= AS_ALONE {
        return Ok(());
    }
    Err(StepFailure::Found(format!(
        "over the wire an operation takes one of several agents {:+.1} % instructions of a single process's; allowed \
         is {:.0} %",
        more * 100.0,
        AS_ALONE * 100.0
    )))
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
        assert!(judge(&figures("another compiler", 751.0), &accepted).is_err());
        assert!(judge(&figures("a", 300.0), &accepted).is_ok());
    }

    #[test]
    fn over_the_wire_only_much_more_fails() {
        let wire = |each| {
            let each = OVER_THE_WIRE.map(|name| (name.to_owned(), each));
            Figures { conditions: "a".to_owned(), each: each.into() }
        };
        assert!(judge(&wire(700.0), &wire(600.0)).is_ok());
        assert!(judge(&wire(751.0), &wire(600.0)).is_err());
    }

    #[test]
    fn accepted_figures_are_kept_and_read_again() {
        let figures = Accepted::from([(BuildProfile::Dist, figures("rustc 1.2.3", 612.0))]);
        assert_eq!(accepted(&serde_json::to_string(&figures).unwrap()).unwrap(), figures);
        assert!(accepted("[]").is_err());
        let kept = accepted(include_str!("instructions.json")).unwrap();
        for profile in BuildProfile::value_variants() {
            let each = &kept[profile].each;
            let mut names = LOADS.iter().flat_map(|load| [Some(load.name), load.of_agent]);
            assert!(names.all(|name| name.is_none_or(|name| each.contains_key(name))), "{kept:?}");
        }
    }

    #[test]
    fn what_drawing_takes_is_no_part_of_an_operation_that_is_carried_out() {
        let (own, draw) = (1_500.0, 40.0);
        let with = |agents: u64| own + draw * (agents - 1) as f64;
        assert_eq!(carried_out(AGENTS.map(with)), own);
    }

    #[test]
    fn an_agent_that_takes_more_over_the_wire_than_one_process_fails() {
        let with = |agent| {
            let each = OVER_THE_WIRE.map(str::to_owned).into_iter().zip([7_600.0, agent]);
            Figures { conditions: "a".to_owned(), each: each.collect() }
        };
        assert!(judge_agents(&with(7_900.0)).is_ok());
        let error = judge_agents(&with(8_000.0)).unwrap_err().to_string();
        assert!(error.contains("+5.3 %"), "{error}");
        assert!(judge_agents(&figures("a", 600.0)).is_err());
    }

    #[test]
    fn a_load_that_was_never_accepted_fails() {
        let accepted = figures("a", 600.0);
        let mut found = figures("a", 600.0);
        found.each.insert("new".to_owned(), 5.0);
        let error = judge(&found, &accepted).unwrap_err().to_string();
        assert!(error.contains("new was never accepted"), "{error}");
    }

    #[test]
    fn all_threads_but_the_first_carried_the_load() {
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
        assert_eq!(of_workers(folder.path()).unwrap(), Some(97));
    }
}

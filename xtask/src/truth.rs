//! `cargo xtask truth`: runs kvdyno on engines in which one lie was planted, or none, and compares its verdict with
//! what is known. A liar must be found out with its own lie, an honest engine must not be accused. docs/TRUTH.md has
//! the table.

pub mod engines;
pub mod judgement;
pub mod load;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use clap::Args;

use crate::bench::Section;
use crate::bench::page;
use crate::steps::{self, StepFailure, root};
use engines::{ENGINES, MustSay, PlantedEngine, page_table};
use judgement::{RunSaid, TrialOutcome, judge};
use load::Load;

/// Options of `cargo xtask truth`.
#[derive(Debug, Args)]
pub struct Options {
    /// Run each engine once, instead of liars 10 times and honest engines 20 times
    #[arg(long)]
    quick: bool,
    /// Only these engines, by name
    #[arg(long)]
    only: Vec<String>,
    /// Runs side by side; none of them measures
    #[arg(long, default_value_t = 3)]
    jobs: usize,
    /// A kvdyno that is built already; else one is built
    #[arg(long)]
    binary: Option<PathBuf>,
    /// Write the table of engines into docs/TRUTH.md, and run nothing
    #[arg(long)]
    page: bool,
}

/// Number of runs of a liar.
const LIAR_RUNS: u64 = 10;
/// Number of runs of an honest engine: even one accusation in twenty runs matters.
const HONEST_RUNS: u64 = 20;

/// An engine under a load, to be run several times.
#[derive(Clone, Copy, Debug)]
pub struct Trial {
    /// The engine.
    pub engine: &'static PlantedEngine,
    /// The load.
    pub load: Load,
    /// Answer that must be given.
    pub expected: MustSay,
}

/// Runs the engines that were asked for, and prints the table.
///
/// # Errors
/// If a build fails, or if kvdyno did not say what it must.
pub fn truth(options: &Options) -> Result<(), StepFailure> {
    let page = root().join("docs/TRUTH.md");
    if options.page {
        return page::write(&page, &[Section { name: "planted", text: page_table() }]);
    }
    let trials = chosen(&options.only)?;
    let folder = root().join("target/truth");
    std::fs::create_dir_all(&folder).map_err(StepFailure::file(&folder))?;
    let binary = match &options.binary {
        Some(binary) => std::fs::canonicalize(binary).map_err(StepFailure::file(binary))?,
        None => {
            let build = ["build", "--release", "--package", "kvdyno", "--features", "full"];
            steps::run(steps::cargo().args(build))?;
            root().join("target/release/kvdyno")
        }
    };
    let found = all(options, &binary, &folder, &trials)?;
    let (table, wrong) = table(&trials, &found);
    println!("\n{table}");
    if !options.quick && options.only.is_empty() {
        page::write(&page, &[Section { name: "planted-found", text: table }])?;
    }
    match wrong.is_empty() {
        true => Ok(()),
        false => Err(StepFailure::Found(wrong.join("\n"))),
    }
}

/// Returns the trials of these engines, of all if none is named.
fn chosen(only: &[String]) -> Result<Vec<Trial>, StepFailure> {
    if let Some(unknown) = only.iter().find(|name| ENGINES.iter().all(|one| one.name != **name)) {
        let names: Vec<&str> = ENGINES.iter().map(|one| one.name).collect();
        let message = format!("there is no engine `{unknown}`; there are {}", names.join(", "));
        return Err(StepFailure::Found(message));
    }
    let asked = |one: &&PlantedEngine| only.is_empty() || only.iter().any(|name| name == one.name);
    let engines = ENGINES.iter().filter(asked);
    let trials = engines.flat_map(|engine| {
        let trials = engine.trials.iter();
        trials.map(move |(load, expected)| Trial { engine, load: *load, expected: *expected })
    });
    Ok(trials.collect())
}

/// Runs all trials as often as each is due, some side by side. Returns the judgements by the number of the trial.
fn all(
    options: &Options,
    binary: &Path,
    folder: &Path,
    trials: &[Trial],
) -> Result<BTreeMap<usize, Vec<TrialOutcome>>, StepFailure> {
    let runs = |trial: &Trial| match (options.quick, trial.engine.is_honest()) {
        (true, _) => 1,
        (false, true) => HONEST_RUNS,
        (false, false) => LIAR_RUNS,
    };
    let due = trials.iter().enumerate();
    let due: Vec<(usize, u64)> =
        due.flat_map(|(place, trial)| (0..runs(trial)).map(move |run| (place, run))).collect();
    let (next, found) = (AtomicUsize::new(0), Mutex::new(BTreeMap::new()));
    let work = || -> Result<(), StepFailure> {
        while let Some((place, run)) = due.get(next.fetch_add(1, Ordering::Relaxed)) {
            let trial = &trials[*place];
            let judgement = try_once(binary, folder, trial, *run)?;
            println!("{} {} {run}: {judgement:?}", trial.engine.name, trial.load.name());
            let mut found = found.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            found.entry(*place).or_insert_with(Vec::new).push(judgement);
        }
        Ok(())
    };
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..options.jobs.max(1)).map(|_| scope.spawn(work)).collect();
        workers.into_iter().try_for_each(|worker| worker.join().expect("a worker returns"))
    })?;
    Ok(found.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner))
}

/// Returns the trial of an engine under a load; `None` if the list has none such.
#[must_use]
pub fn trial(name: &str, load: Load) -> Option<Trial> {
    let trials = chosen(&[name.to_owned()]).ok()?;
    trials.into_iter().find(|trial| trial.load == load)
}

/// Returns the folder with the engines' sources.
#[must_use]
pub fn sources() -> PathBuf {
    root().join("crates/kvdyno/tests/planted")
}

/// Builds an engine in `folder`. Returns the path of the shared library.
///
/// # Errors
/// If the compiler is missing or refuses.
pub fn build(engine: &PlantedEngine, folder: &Path) -> Result<PathBuf, StepFailure> {
    let library = folder.join(format!("{}.so", engine.name));
    let mut cc = Command::new("cc");
    cc.args(["-O2", "-shared", "-fPIC", "-o"]).arg(&library);
    steps::output(cc.arg(sources().join(format!("{}.c", engine.name))))?;
    Ok(library)
}

/// Carries out one run of a trial with `binary`, a kvdyno, and judges it. Its files lie in `folder`; the result stays
/// there if it is not as it must be. `run` is the seed of its faults.
///
/// # Errors
/// If the engine cannot be built, or kvdyno not be started.
pub fn try_once(
    binary: &Path,
    folder: &Path,
    trial: &Trial,
    run: u64,
) -> Result<TrialOutcome, StepFailure> {
    let own = folder.join(format!("{}-{}-{run}", trial.engine.name, trial.load.name()));
    if own.exists() {
        std::fs::remove_dir_all(&own).map_err(StepFailure::file(&own))?;
    }
    // An engine that keeps its data elsewhere has this folder for it.
    let elsewhere = own.join("elsewhere");
    std::fs::create_dir_all(&elsewhere).map_err(StepFailure::file(&elsewhere))?;
    let library = build(trial.engine, &own)?;
    let suite = own.join("suite.toml");
    std::fs::write(&suite, trial.load.suite(run + 1)).map_err(StepFailure::file(&suite))?;
    let (library, disk, elsewhere) = (library.display(), trial.load.disk(), elsewhere.display());
    let testbed = format!("engine:plugin?library={library}&disk={disk}&options=config={elsewhere}");
    let mut kvdyno = Command::new(binary);
    kvdyno.arg("run").arg(&suite).args(["--quiet", "--testbed", &testbed]);
    let out = own.join("result");
    let ended = kvdyno.arg("--out").arg(&out).output();
    let ended = ended.map_err(|source| steps::start_failure(&kvdyno, source))?;
    let text = std::fs::read_to_string(out.join("result.json")).unwrap_or_default();
    let result = serde_json::from_str(&text).unwrap_or_default();
    let judgement = judge(trial.expected, &RunSaid::read(ended.status.code(), &result));
    match judgement {
        TrialOutcome::Right => std::fs::remove_dir_all(&own).map_err(StepFailure::file(&own))?,
        _ => {
            let said = [ended.stdout, ended.stderr].concat();
            let log = own.join("said.txt");
            std::fs::write(&log, said).map_err(StepFailure::file(&log))?;
        }
    }
    Ok(judgement)
}

/// Makes the table of results, and a line for each trial that did not come out right.
fn table(trials: &[Trial], found: &BTreeMap<usize, Vec<TrialOutcome>>) -> (String, Vec<String>) {
    let mut table = String::from(
        "| engine | what is planted | shown by | runs | result |\n| --- | --- | --- | ---: | --- |\n",
    );
    let mut wrong = Vec::new();
    for (place, Trial { engine, load, expected }) in trials.iter().enumerate() {
        let PlantedEngine { name, planted, .. } = engine;
        let found = found.get(&place).map(Vec::as_slice).unwrap_or_default();
        let of = |is: fn(&TrialOutcome) -> bool| found.iter().filter(|one| is(one)).count();
        let right = of(|one| *one == TrialOutcome::Right);
        let accused = of(|one| matches!(one, TrialOutcome::Accused(_)));
        let undecided = of(|one| matches!(one, TrialOutcome::Undecided(_)));
        let mut result = match expected {
            MustSay::Refuted(..) => format!("caught {right}"),
            MustSay::Open(..) => format!("left open {right}, accused {accused}"),
            MustSay::Confirmed(_) => format!("confirmed {right}, accused {accused}"),
        };
        if undecided > 0 {
            result += &format!(", undecided {undecided}");
        }
        let (load, runs) = (load.text(), found.len());
        table += &format!("| `{name}` | {planted} | {load} | {runs} | {result} |\n");
        let first = found.iter().find(|one| **one != TrialOutcome::Right);
        wrong.extend(first.map(|one| format!("{name} under {load}: {one:?}")));
        if found.is_empty() {
            wrong.push(format!("{name} under {load} was not run"));
        }
    }
    (table, wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_counts_what_was_found_and_names_what_is_wrong() {
        let named = |name: &str| chosen(&[name.to_owned()]).unwrap()[0];
        let trials = [
            named("liar_syncs_every_tenth_write"),
            named("honest_ends_at_an_error"),
            named("liar_keeps_data_elsewhere"),
            named("liar_ignores_errors"),
        ];
        let (right, missed) = (TrialOutcome::Right, TrialOutcome::Missed("it passed".to_owned()));
        let accused = TrialOutcome::Accused("of a loss".to_owned());
        let found = BTreeMap::from([
            (0, vec![right.clone(), missed, right.clone()]),
            (1, vec![right.clone(), accused, TrialOutcome::Undecided("busy".to_owned())]),
            (2, vec![right]),
        ]);
        let (text, wrong) = table(&trials, &found);
        let ends: Vec<&str> = text.lines().skip(2).collect();
        assert!(ends[0].ends_with("| 3 | caught 2 |"), "{text}");
        assert!(ends[1].ends_with("| 3 | confirmed 1, accused 1, undecided 1 |"), "{text}");
        assert!(ends[2].ends_with("| 1 | left open 1, accused 0 |"), "{text}");
        assert_eq!(wrong.len(), 3, "{wrong:?}");
        assert!(wrong[0].contains("it passed") && wrong[1].contains("of a loss"), "{wrong:?}");
        assert!(wrong[2].contains("was not run"), "{wrong:?}");
    }

    #[test]
    fn engines_are_chosen_by_name() {
        let all = chosen(&[]).unwrap();
        assert_eq!(all.len(), ENGINES.iter().map(|one| one.trials.len()).sum::<usize>());
        let one = chosen(&["honest_syncs_each_write".to_owned()]).unwrap();
        assert!(one.len() > 3 && one.iter().all(|trial| trial.engine.is_honest()));
        let unknown = chosen(&["nobody".to_owned()]).unwrap_err().to_string();
        assert!(unknown.contains("`nobody`") && unknown.contains("liar_undoes_deletes"));
    }
}

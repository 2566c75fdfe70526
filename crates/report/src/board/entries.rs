//! Results as the board shows them: one entry for each measured phase of each store of each result.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use kvdyno_core::evidence::EvidenceStatus;
use kvdyno_core::ground::hash::fnv_1a;
use kvdyno_core::verdict::ConditionFigure;
use serde_json::Value;

use super::evidence::{CutEvidence, ShownElsewhere};
use crate::compare::{ComparedSide, Samples, store_key};
use crate::files::{INTERVALS_FILE, REPORT_FILE};
use crate::result::{
    CapacityResult, HistogramError, Level, PhaseResult, RESULT_FILE, RunResult, Status, StoreRun,
};
use crate::view::main_row;
use crate::wording::{difference_stamp, promises};

/// Depth to which folders are searched for results.
const DEEPEST: u32 = 5;
/// Normal quantile of a 95 % interval.
const OF_95_PERCENT: f64 = 1.96;
/// Members of a plan that name or number something, or say which threads carry it, and change no figure.
const NAMES_ONLY: [&str; 3] = ["name", "seed", "threads"];

/// A figure and its 95 % confidence interval, as far as the run itself gives one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct BoardFigure {
    pub value: f64,
    pub interval: Option<(f64, f64)>,
}

/// A measured phase of a store.
#[derive(Clone, Debug)]
pub(super) struct BoardEntry {
    /// Number of its store's run in the result.
    pub number: usize,
    pub suite: String,
    pub phase: String,
    /// True if requests came at a given rate: then latency is compared, and the rate is not.
    pub is_open: bool,
    pub store: String,
    /// Setup of the store.
    pub setup: String,
    pub version: String,
    pub machine: String,
    /// Version or git build of the kvdyno that measured.
    pub kvdyno: String,
    /// Time of the measurement, RFC 3339, UTC.
    pub when: String,
    pub durability: String,
    /// Evidence of its own cuts of power.
    pub evidence: Option<CutEvidence>,
    /// Evidence of another result's cuts of power.
    pub shown_elsewhere: Option<ShownElsewhere>,
    pub consistency: String,
    /// Conditions that must be equal for a ranking.
    pub class: Class,
    pub verdict: Standing,
    /// Names of the reasons for the verdict.
    pub reasons: String,
    pub rate: Option<BoardFigure>,
    /// True if latencies are lower bounds: some operations were due and never started.
    pub is_at_least: bool,
    pub p50: Option<f64>,
    pub p99: Option<BoardFigure>,
    pub p99_9: Option<f64>,
    /// Currency, and cost of a million operations.
    pub cost: Option<(String, f64)>,
    /// Name of its report, without extension.
    pub report: String,
}

/// Conditions that entries ranked together have in common.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Class {
    pub durability: String,
    pub consistency: String,
    /// Changes to the suite, in words; empty if there are none.
    pub stamp: String,
    pub records: u64,
    /// Hash of the phases that were planned.
    pub plan: u64,
}

/// Credibility of an entry, best first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Standing {
    Valid,
    Suspect,
    Invalid,
    /// The run did not come to its end.
    Unfinished,
}

impl Standing {
    pub fn name(self) -> &'static str {
        match self {
            Standing::Valid => Level::Valid.name(),
            Standing::Suspect => Level::Suspect.name(),
            Standing::Invalid => Level::Invalid.name(),
            Standing::Unfinished => "unfinished",
        }
    }

    fn of(run: &StoreRun) -> Standing {
        match (&run.status, &run.verdict) {
            (Status::Complete, Some(verdict)) => match verdict.level {
                Level::Valid => Standing::Valid,
                Level::Suspect => Standing::Suspect,
                Level::Invalid => Standing::Invalid,
            },
            _ => Standing::Unfinished,
        }
    }
}

/// A result with the file in which it was found.
pub(super) struct FoundResult {
    pub path: PathBuf,
    pub result: RunResult,
    /// Name of its report, without extension.
    pub report: String,
}

/// Lists files of results at a path: the file itself, that of its folder, or those in folders below. `Err` if there are
/// none.
pub(super) fn files(path: &Path) -> Result<Vec<PathBuf>, String> {
    let mut found = Vec::new();
    if path.is_file() {
        found.push(path.to_owned());
    } else {
        gather(path, 0, &mut found);
    }
    found.sort();
    if found.is_empty() { Err("no result.json in it, nor below".to_owned()) } else { Ok(found) }
}

fn gather(folder: &Path, depth: u32, found: &mut Vec<PathBuf>) {
    let whole = folder.join(RESULT_FILE);
    if whole.is_file() {
        return found.push(whole);
    }
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        let is_hidden = entry.file_name().to_string_lossy().starts_with('.');
        match entry.file_type() {
            Ok(kind) if kind.is_dir() && depth < DEEPEST && !is_hidden => {
                gather(&path, depth + 1, found)
            }
            // One JSON file for each result, as a git repository keeps them. A folder of trials has a summary, which is
            // not a result.
            Ok(kind) if kind.is_file() && is_json(&path) => found.push(path),
            _ => {}
        }
    }
}

/// Returns true if the files beside a result belong to it.
pub(crate) fn is_whole(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name == RESULT_FILE)
}

fn is_json(path: &Path) -> bool {
    path.extension().is_some_and(|ending| ending == "json")
        && path.file_name().is_some_and(|name| name != crate::result::TRIALS_FILE)
}

impl FoundResult {
    /// Reads the result of a file.
    pub fn read(path: &Path) -> Result<FoundResult, String> {
        let result = RunResult::load(path).map_err(|error| error.to_string())?;
        Ok(FoundResult::new(path.to_owned(), result))
    }

    /// Names the report of a result that is in this file.
    pub fn new(path: PathBuf, result: RunResult) -> FoundResult {
        // The same result in two places gets the same name, whichever compiler built the program that reads it.
        let runs = result.runs.iter().map(|run| (&run.store.url, &run.ended)).collect::<Vec<_>>();
        let identity = format!("{:?}", (&result.started, &result.command, result.seed, runs));
        let hash = fnv_1a(identity.bytes());
        let day: String = result.started.chars().take(10).filter(char::is_ascii_digit).collect();
        let report = format!("{day}-{hash:016x}");
        FoundResult { path, result, report }
    }

    fn folder(&self) -> &Path {
        self.path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
    }

    /// Writes its report into `folder`: a copy of the one beside it, or a new one, if there is none yet.
    pub fn write_report(&self, folder: &Path) -> Result<(), String> {
        let to = folder.join(&self.report).with_extension("html");
        let own = self.folder().join(REPORT_FILE);
        let written = if is_whole(&self.path) && own.is_file() {
            fs::copy(&own, &to).map(drop).map_err(|error| error.to_string())
        } else if to.is_file() {
            Ok(())
        } else {
            // The files beside a bare JSON file are not its timeline.
            let nowhere = folder.join(&self.report);
            let beside = if is_whole(&self.path) { self.folder() } else { &nowhere };
            let page =
                crate::html::report(&self.result, beside).map_err(|error| error.to_string())?;
            fs::write(&to, page).map_err(|error| error.to_string())
        };
        written.map_err(|error| format!("{}: {error}", to.display()))
    }

    /// Returns an entry for each measured phase.
    pub fn entries(&self) -> Result<Vec<BoardEntry>, HistogramError> {
        let result = &self.result;
        let folder = self.folder();
        let has_intervals = is_whole(&self.path) && folder.join(INTERVALS_FILE).is_file();
        let samples = match has_intervals {
            true => Samples::read(folder, result)?,
            false => Samples::default(),
        };
        let mut entries = Vec::new();
        for (number, run) in result.runs.iter().enumerate() {
            let measured = run.phases.iter().filter(|phase| {
                !phase.prepares() && phase.probe.is_none() && !phase.name.ends_with(":read-back")
            });
            for phase in measured {
                let errors = errors(&samples, number, phase);
                entries.push(BoardEntry { number, ..self.entry(run, phase, errors)? });
            }
            let is_shown = |search: &&CapacityResult| {
                let [met, _] = crate::evidence::of_search(run, search);
                met.status() == EvidenceStatus::Confirmed
            };
            for search in run.capacity.iter().filter(is_shown) {
                let rate = search.carried.map(|value| BoardFigure { value, interval: None });
                let phase = format!("{} ({})", search.phase, search.conditions);
                entries.push(BoardEntry {
                    phase,
                    rate,
                    cost: cost(result, search.carried),
                    ..self.blank(run)
                });
            }
        }
        Ok(entries)
    }

    fn entry(
        &self,
        run: &StoreRun,
        phase: &PhaseResult,
        [of_rate, of_p99]: [Option<f64>; 2],
    ) -> Result<BoardEntry, HistogramError> {
        let row = main_row(phase)?;
        let figure = |value: Option<f64>, error: Option<f64>| {
            let value = value.filter(|value| *value > 0.0)?;
            let interval = error.map(|error| {
                let factor = (OF_95_PERCENT * error).exp();
                (value / factor, value * factor)
            });
            Some(BoardFigure { value, interval })
        };
        let (steers, latency) = (phase.open(), row.latency.carried());
        Ok(BoardEntry {
            phase: phase.name.clone(),
            is_open: steers,
            rate: figure(row.rate, of_rate),
            is_at_least: row.lower_bound,
            p50: latency.p50,
            p99: figure(latency.p99, of_p99),
            p99_9: latency.p99_9,
            cost: cost(&self.result, row.rate.filter(|_| !steers)),
            ..self.blank(run)
        })
    }

    /// Fills in all that does not depend on the phase.
    fn blank(&self, run: &StoreRun) -> BoardEntry {
        let result = &self.result;
        let (durability, consistency) = promises(run);
        let host = &result.host;
        let cpu = host.cpu.as_deref().unwrap_or(&host.architecture);
        let cores = host.cores.map_or(String::new(), |cores| format!(" × {cores}"));
        let build = result.kvdyno.git.as_ref().unwrap_or(&result.kvdyno.version);
        let reasons = run.verdict.iter().flat_map(|verdict| &verdict.reasons);
        let mut names: Vec<&str> = reasons
            .filter(|reason| reason.level != Level::Valid)
            .map(|reason| reason.name.as_str())
            .collect();
        names.dedup();
        BoardEntry {
            number: 0,
            suite: result.suite.name.clone(),
            phase: String::new(),
            is_open: false,
            store: run.store.name.clone(),
            setup: store_key(run),
            version: run.store.version.clone().unwrap_or_default(),
            machine: format!("{cpu}{cores}"),
            kvdyno: build.clone(),
            when: result.started.clone(),
            class: Class::of(result, run),
            durability,
            evidence: CutEvidence::of(run),
            shown_elsewhere: None,
            consistency,
            verdict: Standing::of(run),
            reasons: names.join(", "),
            rate: None,
            is_at_least: false,
            p50: None,
            p99: None,
            p99_9: None,
            cost: None,
            report: self.report.clone(),
        }
    }
}

impl Class {
    fn of(result: &RunResult, run: &StoreRun) -> Class {
        let mut plan = result.suite.plan["phases"].clone();
        unnamed(&mut plan);
        Class {
            durability: run.store.durability.level.describe().to_owned(),
            consistency: run.store.consistency.level.describe().into_owned(),
            stamp: difference_stamp(result).unwrap_or_default(),
            records: run.dataset.map_or(0, |dataset| dataset.capacity),
            plan: fnv_1a(plan.to_string().bytes()),
        }
    }

    /// Describes the class in words.
    pub fn text(&self) -> String {
        let records = kvdyno_core::ground::numbers::grouped(self.records as f64);
        let mut text = format!(
            "promised durability {}, promised consistency {}, {records} records",
            self.durability, self.consistency
        );
        if !self.stamp.is_empty() {
            text += &format!("; {}", self.stamp);
        }
        text
    }
}

/// Gives each of `entries` (oldest first) without evidence of its own the newest result of the same store, version, setup
/// and promise that has some. A refutation takes precedence over results that show the contrary.
pub(super) fn share(entries: &mut [BoardEntry]) {
    let mut best: BTreeMap<_, (bool, ShownElsewhere)> = BTreeMap::new();
    for entry in entries.iter() {
        let Some(CutEvidence { is_against, figures }) = &entry.evidence else { continue };
        let known = best.get(&key(entry));
        if known.is_some_and(|(against, _)| *against && !is_against) {
            continue;
        }
        let what = if *is_against { "refuted" } else { "shown" };
        let text = format!("{what} by another result: {figures}");
        let report = entry.report.clone();
        best.insert(key(entry), (*is_against, ShownElsewhere { text, report }));
    }
    for entry in entries.iter_mut().filter(|entry| entry.evidence.is_none()) {
        entry.shown_elsewhere = best.get(&key(entry)).map(|(_, shown)| shown.clone());
    }
}

/// Returns store, version, setup and promise, which must be the same.
fn key(entry: &BoardEntry) -> [String; 4] {
    let BoardEntry { store, version, setup, class, .. } = entry;
    [store.clone(), version.clone(), setup.clone(), class.durability.clone()]
}

/// Removes members of a plan that change no figure, from its phases and everything in them.
fn unnamed(plan: &mut Value) {
    match plan {
        Value::Array(parts) => parts.iter_mut().for_each(unnamed),
        Value::Object(members) => {
            members.retain(|name, _| !NAMES_ONLY.contains(&name.as_str()));
            members.values_mut().for_each(unnamed);
        }
        _ => {}
    }
}

/// Returns the standard errors of the logarithms of rate and p99, where the run's intervals give them.
fn errors(samples: &Samples, run: usize, phase: &PhaseResult) -> [Option<f64>; 2] {
    let slots = samples.phase(run, phase.index).of(|_| true);
    if slots.len() < 3 {
        return [None, None];
    }
    let side = ComparedSide::new(&[slots]);
    let figures = [ConditionFigure::Rate, ConditionFigure::Percentile(99_000)];
    let estimates = side.estimates(&figures, 1);
    let within = |at: usize| {
        let error = estimates.get(at).map(|estimate| estimate.within);
        error.filter(|error| error.is_finite())
    };
    [within(0), within(1)]
}

/// Returns the currency and the cost of a million operations at a rate.
fn cost(result: &RunResult, rate: Option<f64>) -> Option<(String, f64)> {
    let (cost, rate) = (result.cost.as_ref()?, rate.filter(|rate| *rate > 0.0)?);
    Some((cost.currency.clone(), cost.hourly() / (rate * 3_600.0) * 1e6))
}

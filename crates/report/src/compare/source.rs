//! Reads the sides of a comparison: result folders, folders of trials, or the stores within one of these.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::result::{HistogramError, RESULT_FILE, ResultFileError, RunResult, StoreRun};

use super::samples::Samples;

/// Most trials that are read of one folder.
const MOST_TRIALS: usize = 1_000;

/// Results that cannot be compared.
#[derive(Debug, thiserror::Error)]
pub enum CompareError {
    /// A result cannot be read.
    #[error(transparent)]
    Load(#[from] ResultFileError),
    /// A histogram in a result cannot be decoded.
    #[error(transparent)]
    Histogram(#[from] HistogramError),
    /// A folder holds neither a result nor trials.
    #[error(
        "{0} has no result.json, directly or in folders of trials; name a result, or the folder that \
         `kvdyno run --trials` wrote"
    )]
    Empty(PathBuf),
    /// A result has one store only, and no second result is named.
    #[error("{path} has one store only ({store}); name a second result, or run several stores")]
    Alone {
        /// Path of the result.
        path: PathBuf,
        /// Name of its store.
        store: String,
    },
    /// A store has no counterpart.
    #[error(
        "{store} of {first} is not in {second}, which has {others}; name results of the same stores"
    )]
    NoCounterpart {
        /// Name of the store.
        store: String,
        /// Path of the result that has it.
        first: PathBuf,
        /// Path of the result that lacks it.
        second: PathBuf,
        /// Names of the stores in that one.
        others: String,
    },
    /// The two sides have no measured phase in common.
    #[error("{first} and {second} have no measured phase in common; compare runs of one suite")]
    NoPhase {
        /// Name of the first side.
        first: String,
        /// Name of the second side.
        second: String,
    },
    /// The sides made different promises or had different tasks.
    #[error("not compared: {}; --allow-unequal compares them all the same", .0.join("; "))]
    Unequal(Vec<String>),
    /// A condition is about a figure that has no margin.
    #[error("{condition}: comparisons know {known}; write one of these")]
    NoMargin {
        /// The condition.
        condition: String,
        /// Figures that have a margin.
        known: String,
    },
    /// A condition cannot be asked of a comparison.
    #[error("{condition}: {problem}")]
    Condition {
        /// The condition.
        condition: String,
        /// Problem, and the remedy.
        problem: String,
    },
    /// A condition is about a phase or operations that the two sides do not both have.
    #[error(
        "{condition}: the two results share no such phase or operation; use what they share: {known}"
    )]
    NotThere {
        /// The condition.
        condition: String,
        /// Phases and operations that both sides have.
        known: String,
    },
}

/// A result with its intervals.
#[derive(Debug)]
pub struct Recorded {
    /// Result of the run.
    pub result: RunResult,
    /// Intervals of the result.
    pub samples: Samples,
    /// Folder of its files.
    pub folder: PathBuf,
}

/// A store in one result or in each of several trials.
#[derive(Clone, Debug)]
pub struct Source {
    /// URL of the store, or the words of its testbed.
    pub key: String,
    /// Name of the system.
    pub name: String,
    /// Each trial, with the store's number in it.
    pub trials: Vec<(Arc<Recorded>, usize)>,
    /// Name of the side in the comparison.
    pub label: String,
}

impl Source {
    /// Returns the store's runs, each with its result.
    pub fn runs(&self) -> impl Iterator<Item = (&RunResult, &StoreRun)> {
        self.trials.iter().map(|(recorded, run)| (&recorded.result, &recorded.result.runs[*run]))
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.label)
    }
}

/// Returns the stores of a result or of a folder of trials; trials of one store are one source.
///
/// # Errors
/// [`CompareError`] if there is no result, or one that cannot be read.
pub fn sources(path: &Path) -> Result<Vec<Source>, CompareError> {
    let mut found: Vec<Source> = Vec::new();
    for folder in result_folders(path)? {
        let result = RunResult::load(&folder)?;
        let beside = if folder.is_dir() { folder.as_path() } else { parent_of(&folder) };
        let samples = Samples::read(beside, &result)?;
        let folder = beside.to_owned();
        add(&mut found, &Arc::new(Recorded { result, samples, folder }));
    }
    name(&mut found);
    Ok(found)
}

/// Returns the stores of trials that are in memory, each trial with the folder of its files.
///
/// # Errors
/// [`HistogramError`] if a histogram cannot be decoded.
pub fn sources_of(trials: &[(PathBuf, RunResult)]) -> Result<Vec<Source>, HistogramError> {
    let mut found: Vec<Source> = Vec::new();
    for (folder, result) in trials {
        let samples = Samples::read(folder, result)?;
        let (result, folder) = (result.clone(), folder.clone());
        add(&mut found, &Arc::new(Recorded { result, samples, folder }));
    }
    name(&mut found);
    Ok(found)
}

fn add(found: &mut Vec<Source>, recorded: &Arc<Recorded>) {
    for (number, run) in recorded.result.runs.iter().enumerate() {
        let key = store_key(run);
        let trial = (Arc::clone(recorded), number);
        match found.iter_mut().find(|source| source.key == key) {
            Some(source) => source.trials.push(trial),
            None => {
                let (name, label) = (run.store.name.clone(), String::new());
                found.push(Source { key, name, label, trials: vec![trial] });
            }
        }
    }
}

/// Labels stores by their names, or by their keys where several have one name.
fn name(found: &mut [Source]) {
    let names: Vec<String> = found.iter().map(|source| source.name.clone()).collect();
    for source in found {
        let same = names.iter().filter(|name| **name == source.name).count();
        source.label = if same > 1 { source.key.clone() } else { source.name.clone() };
    }
}

/// Returns the URL of a store, or the words of its testbed: ports differ from run to run, the words do not.
pub fn store_key(run: &StoreRun) -> String {
    run.testbed.as_ref().map_or(&run.store.url, |testbed| &testbed.request).clone()
}

/// Lists result folders at `path`, in order: the path itself, or the trials in it.
///
/// # Errors
/// [`CompareError::Empty`] if there are none.
pub fn result_folders(path: &Path) -> Result<Vec<PathBuf>, CompareError> {
    if !path.is_dir() || path.join(RESULT_FILE).is_file() {
        return Ok(vec![path.to_owned()]);
    }
    let entries = fs::read_dir(path).into_iter().flatten().flatten();
    let mut folders: Vec<PathBuf> = entries
        .map(|entry| entry.path())
        .filter(|folder| folder.join(RESULT_FILE).is_file())
        .collect();
    folders.sort();
    folders.truncate(MOST_TRIALS);
    if folders.is_empty() { Err(CompareError::Empty(path.to_owned())) } else { Ok(folders) }
}

/// Returns the folder of a file; `.` for a bare name.
fn parent_of(file: &Path) -> &Path {
    file.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Pairs the stores of the results at `paths`: in one result its first store with each other one; in several the stores
/// of the first result with their counterparts in each other one.
///
/// # Errors
/// [`CompareError`] if a result cannot be read or a store has no counterpart.
pub fn pairs(paths: &[PathBuf]) -> Result<Vec<(Source, Source)>, CompareError> {
    let mut all = Vec::new();
    for path in paths {
        all.push((path, sources(path)?));
    }
    let mut pairs = Vec::new();
    let Some(((path, base), others)) = all.split_first() else { return Ok(pairs) };
    if others.is_empty() {
        return within(path, base);
    }
    for (other_path, other) in others {
        for first in base {
            let found = counterpart(first, base, other).ok_or_else(|| {
                let names: Vec<&str> = other.iter().map(|o| o.label.as_str()).collect();
                CompareError::NoCounterpart {
                    store: first.label.clone(),
                    first: (*path).clone(),
                    second: (*other_path).clone(),
                    others: names.join(", "),
                }
            })?;
            let (mut first, mut second) = (first.clone(), found.clone());
            // Else two pairs could have one name, and each the gates of both.
            if first.label == second.label || others.len() > 1 {
                first.label = format!("{} in {}", first.label, path.display());
                second.label = format!("{} in {}", second.label, other_path.display());
            }
            pairs.push((first, second));
        }
    }
    Ok(pairs)
}

/// Pairs the first store of a result with each other one.
fn within(path: &Path, base: &[Source]) -> Result<Vec<(Source, Source)>, CompareError> {
    match base {
        [] => Err(CompareError::Empty(path.to_owned())),
        [only] => Err(CompareError::Alone { path: path.to_owned(), store: only.label.clone() }),
        [first, rest @ ..] => {
            Ok(rest.iter().map(|second| (first.clone(), second.clone())).collect())
        }
    }
}

/// Finds the same store in another result: by its key, or by its name; where each result has one store only, these two
/// are a pair.
fn counterpart<'a>(first: &Source, base: &[Source], other: &'a [Source]) -> Option<&'a Source> {
    if let ([_], [only]) = (base, other) {
        return Some(only);
    }
    let of_name = || {
        let mut same = other.iter().filter(|source| source.name == first.name);
        same.next().filter(|_| same.next().is_none())
    };
    other.iter().find(|source| source.key == first.key).or_else(of_name)
}

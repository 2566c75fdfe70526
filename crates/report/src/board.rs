//! The board: a public static site of many results. It has one page a suite with every store and machine, and one page a
//! store with its history; each figure links to its report. Only like results are ranked together, and none is hidden.

mod entries;
mod evidence;
mod feed;
mod history;
mod pages;
mod steps;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use entries::{BoardEntry, FoundResult, Standing};
pub(crate) use entries::{BoardFigure, is_whole};

use crate::ranking::store_labels;
use crate::result::{HistogramError, RESULT_FILE, RunResult};
use pages::{IndexPage, StorePage, SuitePage};
use steps::Steps;

/// Folder of the reports in a site.
const REPORTS: &str = "reports";

/// A site that cannot be written.
#[derive(Debug, thiserror::Error)]
pub enum BoardError {
    /// A file cannot be written.
    #[error("cannot write {path}: {source}; name another folder with -o")]
    Unwritable {
        /// Path of the file.
        path: PathBuf,
        /// Error of the system.
        source: io::Error,
    },
}

/// Results, read for a site.
#[derive(Default)]
pub struct Board {
    entries: Vec<BoardEntry>,
    results: usize,
    skipped: Vec<Skipped>,
}

/// A file that appears on no page.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Skipped {
    /// Path of the file.
    pub path: String,
    /// Reason for which it was skipped.
    pub why: String,
}

/// Outcome of reading one file: its report's name with its entries, or why it was skipped.
type Read = Result<(String, Vec<BoardEntry>), Skipped>;

impl Board {
    /// Reads the results at `paths`: folders of results or of trials, folders that hold such folders or one JSON file for
    /// each result, or files. Their reports are written to `site`. Files that cannot be read are skipped and kept by
    /// name.
    ///
    /// # Errors
    /// [`BoardError`] if the site cannot be written.
    pub fn read(paths: &[PathBuf], site: &Path) -> Result<Board, BoardError> {
        let reports = site.join(REPORTS);
        fs::create_dir_all(&reports).map_err(|source| unwritable(&reports, source))?;
        let mut board = Board::default();
        let mut files = BTreeSet::new();
        for path in paths {
            match entries::files(path) {
                Ok(found) => files.extend(found),
                Err(why) => board.skipped.push(Skipped { path: path.display().to_string(), why }),
            }
        }
        // If the same result is in two places, the one with its files beside it counts.
        let (whole, bare): (Vec<PathBuf>, Vec<PathBuf>) =
            files.into_iter().partition(|file| entries::is_whole(file));
        let mut known = BTreeSet::new();
        for read in [whole, bare].iter().flat_map(|files| read_all(files, &reports)) {
            match read {
                Ok((report, entries)) if known.insert(report.clone()) => {
                    board.results += 1;
                    board.entries.extend(entries);
                }
                Ok(_) => {}
                Err(skipped) => board.skipped.push(skipped),
            }
        }
        board.entries.sort_by(|a, b| (&a.when, &a.report).cmp(&(&b.when, &b.report)));
        entries::share(&mut board.entries);
        board.skipped.sort();
        Ok(board)
    }

    /// Returns the number of results on the board.
    #[must_use]
    pub fn results(&self) -> usize {
        self.results
    }

    /// Returns the files that appear on no page.
    #[must_use]
    pub fn skipped(&self) -> &[Skipped] {
        &self.skipped
    }

    /// Writes the pages into `site`.
    ///
    /// # Errors
    /// [`BoardError`] if a page cannot be made or written.
    pub fn write(&self, site: &Path) -> Result<(), BoardError> {
        let steps = Steps::new();
        let mut of_suite: BTreeMap<&str, Vec<&BoardEntry>> = BTreeMap::new();
        let mut of_store: BTreeMap<&str, Vec<&BoardEntry>> = BTreeMap::new();
        for entry in &self.entries {
            of_suite.entry(&entry.suite).or_default().push(entry);
            of_store.entry(&entry.store).or_default().push(entry);
        }
        let mut latest = Vec::new();
        for (name, entries) in &of_store {
            let page = StorePage::new(name, entries, &steps);
            latest.extend(page.latest_steps());
            write_page(site, &pages::store_file(name), &page.write())?;
        }
        for (name, entries) in &of_suite {
            write_page(site, &pages::suite_file(name), &SuitePage::new(name, entries).write())?;
        }
        let newest = self.entries.last().map_or("1970-01-01T00:00:00Z", |entry| &entry.when);
        write_page(site, feed::FEED, &feed::atom(&latest, newest))?;
        for (name, badge) in feed::badges(&self.entries) {
            write_page(site, &name, &badge)?;
        }
        write_page(site, "index.html", &IndexPage::new(self, &of_suite, &of_store, latest).write())
    }
}

/// A measured phase with its figures, for other tools.
pub(crate) struct NamedFigures {
    /// `suite/store/phase`.
    pub name: String,
    /// Name of its verdict, if the measurement must not be believed.
    pub invalid: Option<&'static str>,
    /// True if latencies are lower bounds.
    pub is_at_least: bool,
    /// Rate (operations a second), p50, p99 and p99.9 (ns), as far as there are enough operations for them.
    pub figures: [Option<BoardFigure>; 4],
}

/// Returns the measured phases of a result that is at `path`.
///
/// # Errors
/// [`HistogramError`] if a histogram cannot be decoded.
pub(crate) fn figures_of(
    result: &RunResult,
    path: &Path,
) -> Result<Vec<NamedFigures>, HistogramError> {
    let file = if path.is_dir() { path.join(RESULT_FILE) } else { path.to_owned() };
    let found = FoundResult::new(file, result.clone());
    let labels = store_labels(result);
    let named = found.entries()?.into_iter().map(|entry| {
        let plain = |value: Option<f64>| value.map(|value| BoardFigure { value, interval: None });
        NamedFigures {
            name: format!("{}/{}/{}", entry.suite, labels[entry.number], entry.phase),
            invalid: (entry.verdict >= Standing::Invalid).then(|| entry.verdict.name()),
            is_at_least: entry.is_at_least,
            figures: [entry.rate, plain(entry.p50), entry.p99, plain(entry.p99_9)],
        }
    });
    Ok(named.collect())
}

/// Reads each file's result, in their order, with as many threads as there are processors.
fn read_all(files: &[PathBuf], reports: &Path) -> Vec<Read> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let share = files.len().div_ceil(threads).max(1);
    std::thread::scope(|scope| {
        let parts: Vec<_> = files
            .chunks(share)
            .map(|part| {
                scope.spawn(|| part.iter().map(|file| read(file, reports)).collect::<Vec<_>>())
            })
            .collect();
        parts.into_iter().flat_map(|part| part.join().expect("a reader ends")).collect()
    })
}

fn read(file: &Path, reports: &Path) -> Read {
    let skipped = |why: String| Skipped { path: file.display().to_string(), why };
    let found = FoundResult::read(file).map_err(skipped)?;
    let entries = found.entries().map_err(|error| skipped(error.to_string()))?;
    if entries.is_empty() {
        return Err(skipped("no measured phase is over in it".to_owned()));
    }
    found.write_report(reports).map_err(skipped)?;
    Ok((found.report, entries))
}

fn write_page(site: &Path, name: &str, page: &str) -> Result<(), BoardError> {
    let path = site.join(name);
    fs::write(&path, page).map_err(|source| unwritable(&path, source))
}

fn unwritable(path: &Path, source: io::Error) -> BoardError {
    BoardError::Unwritable { path: path.to_owned(), source }
}

#[cfg(test)]
mod tests;

//! Writes the folder that a run leaves behind. `result.json` is replaced whole, all other files grow by whole lines, so
//! that Ctrl-C, a kill or a full disk leave everything that was measured until then.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use serde::Serialize;

use crate::events::fold::Fold;
use crate::events::{Event, LoadEnded, PhaseBegan};
use crate::files::{
    ANOMALIES_FILE, HISTORY_FILE, INTERVALS_FILE, IntervalPlace, REPORT_FILE, RESOURCES_FILE,
    TIMELINE_FILE, interval_log, plain_name, resources_csv, rows, timeline_csv,
};
use crate::html;
use crate::result::{AnomalyResult, RESULT_FILE, RunResult, TRIALS_FILE, rfc3339};
use crate::trials::Trials;

/// Parent of a run's folder if none is named.
pub const DEFAULT_PARENT: &str = "kvdyno-results";

/// Errors with the folder of a result. The run goes on without it.
#[derive(Debug, thiserror::Error)]
pub enum FolderError {
    /// The folder cannot be made.
    #[error("cannot make the folder {path}: {source}; choose another with --out")]
    Create {
        /// Path of the folder.
        path: PathBuf,
        /// Error of the system.
        source: io::Error,
    },
    /// The folder has a result already.
    #[error("{path} holds a result already; choose another folder with --out")]
    Occupied {
        /// Path of the folder.
        path: PathBuf,
    },
    /// A file cannot be written; its former content is still there.
    #[error("cannot write {path}: {source}; make room there, or name another place (--out, -o)")]
    Write {
        /// Path of the file.
        path: PathBuf,
        /// Error of the system.
        source: io::Error,
    },
    /// The report cannot be made.
    #[error("cannot make {path}: {source}")]
    Report {
        /// Path of the report.
        path: PathBuf,
        /// Error of the report.
        source: html::HtmlError,
    },
}

/// The folder of a run, open for writing.
#[derive(Debug)]
pub struct ResultFolder {
    path: PathBuf,
    /// Result of the events so far.
    fold: Fold,
    /// Phase that is running, or that ran last.
    phase: Option<PhaseBegan>,
    intervals: AppendedFile,
    timeline: AppendedFile,
    resources: AppendedFile,
    anomalies: AppendedFile,
}

/// One line of `anomalies.jsonl`.
#[derive(Serialize)]
struct AnomalyLine<'a> {
    run: usize,
    store: &'a str,
    phase_name: &'a str,
    #[serde(flatten)]
    anomaly: &'a AnomalyResult,
}

impl ResultFolder {
    /// Creates the folder of a run that began at `started`. `out` names it; without, it is a new one under
    /// [`DEFAULT_PARENT`], named after the moment and `suite`.
    ///
    /// # Errors
    /// [`FolderError`] if it cannot be made or holds a result already.
    pub fn create(
        out: Option<&Path>,
        suite: &str,
        started: SystemTime,
    ) -> Result<ResultFolder, FolderError> {
        let path = match out {
            Some(path) => named_folder(path)?,
            None => new_folder(Path::new(DEFAULT_PARENT), suite, started)?,
        };
        let mut folder = ResultFolder {
            intervals: AppendedFile::create(path.join(INTERVALS_FILE))?,
            timeline: AppendedFile::create(path.join(TIMELINE_FILE))?,
            resources: AppendedFile::create(path.join(RESOURCES_FILE))?,
            anomalies: AppendedFile::create(path.join(ANOMALIES_FILE))?,
            path,
            fold: Fold::default(),
            phase: None,
        };
        folder.intervals.append(&interval_log::header(started))?;
        folder.timeline.append(&rows::header::<timeline_csv::TimelineRow>())?;
        folder.resources.append(&rows::header::<resources_csv::ResourceRow>())?;
        Ok(folder)
    }

    /// Removes the files of a run that never began; other files stay, and so does a folder that holds any.
    pub fn discard(self) {
        let files = [RESULT_FILE, INTERVALS_FILE, TIMELINE_FILE, RESOURCES_FILE, ANOMALIES_FILE];
        for name in files {
            let _ = fs::remove_file(self.path.join(name));
        }
        let _ = fs::remove_dir(&self.path);
        if self.path.parent() == Some(Path::new(DEFAULT_PARENT)) {
            let _ = fs::remove_dir(DEFAULT_PARENT);
        }
    }

    /// Returns the names of the files that could not be written to their end.
    pub fn cut_off(&self) -> impl Iterator<Item = String> {
        let files = [&self.intervals, &self.timeline, &self.resources, &self.anomalies];
        let cut = files.into_iter().filter(|file| file.file.is_none());
        cut.filter_map(|file| Some(file.path.file_name()?.to_string_lossy().into_owned()))
    }

    /// Returns the path of the folder.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Writes the content of an event to its files.
    ///
    /// # Errors
    /// [`FolderError`] if a file cannot be written; for a file that grows, the first time only: from then on it is left
    /// alone.
    ///
    /// # Panics
    /// If the event does not follow from those before.
    pub fn keep(&mut self, event: &Event) -> Result<(), FolderError> {
        self.fold.apply(event).expect("events follow from those before");
        match event {
            Event::PhaseBegan(began) => self.phase = Some((**began).clone()),
            Event::Interval(interval) => {
                let logged = self.rows(|to, place| interval_log::write(to, place, interval));
                let drawn = self.rows(|to, place| timeline_csv::write(to, place, interval));
                return self.intervals.append(&logged).and(self.timeline.append(&drawn));
            }
            Event::Used(used) => {
                let rows = self.rows(|to, place| resources_csv::write(to, place, used));
                return self.resources.append(&rows);
            }
            Event::LoadEnded(ended) => return self.keep_findings(ended),
            Event::RunBegan(_)
            | Event::StoreBegan(_)
            | Event::PhaseEnded(_)
            | Event::Searched(_)
            | Event::StoreEnded(_)
            | Event::Judged { .. }
            | Event::RunEnded { .. } => {
                let result = self.fold.result();
                return result.map_or(Ok(()), |result| save_result(&self.path, result));
            }
            _ => {}
        }
        Ok(())
    }

    /// Returns the rows that `write` makes for the current phase; none before the first phase.
    fn rows(&self, write: impl FnOnce(&mut Vec<u8>, IntervalPlace<'_>)) -> Vec<u8> {
        let mut rows = Vec::new();
        if let Some(phase) = &self.phase {
            write(&mut rows, phase.into());
        }
        rows
    }

    /// Adds anomalies to `anomalies.jsonl`, and writes histories as one file in Jepsen's EDN:
    /// `history-RUN-PHASE.edn`.
    fn keep_findings(&mut self, ended: &LoadEnded) -> Result<(), FolderError> {
        let lines = self.rows(|to, IntervalPlace { run, store, phase_name, .. }| {
            for anomaly in &ended.anomalies {
                let line = AnomalyLine { run, store, phase_name, anomaly };
                serde_json::to_writer(&mut *to, &line).expect("it is plain JSON in memory");
                to.push(b'\n');
            }
        });
        let kept = self.anomalies.append(&lines);
        let (Some(history), Some(phase)) = (&ended.history, &self.phase) else { return kept };
        let name = format!("{HISTORY_FILE}{}-{}.edn", phase.run, plain_name(&phase.plan.name));
        kept.and(replace(&self.path.join(name), history.as_bytes()))
    }

    /// Replaces `result.json` as a whole: the old file stays until the new one is on disk.
    ///
    /// # Errors
    /// [`FolderError`] if it cannot be written; the former one is still there then.
    pub fn save(&self, result: &RunResult) -> Result<(), FolderError> {
        save_result(&self.path, result)
    }

    /// Writes `report.html` from the result and the files of the folder.
    ///
    /// # Errors
    /// [`FolderError`] if it cannot be made or written.
    pub fn write_report(&self, result: &RunResult) -> Result<PathBuf, FolderError> {
        write_report(&self.path, result, &self.path.join(REPORT_FILE))
    }
}

/// Replaces the `result.json` of `folder` as a whole.
///
/// # Errors
/// [`FolderError`] if it cannot be written; a former one is still there then.
pub fn save_result(folder: &Path, result: &RunResult) -> Result<(), FolderError> {
    let mut text = serde_json::to_vec_pretty(result).expect("a result is plain JSON");
    text.push(b'\n');
    replace(&folder.join(RESULT_FILE), &text)
}

/// Writes a report of `result` to `to`; charts over time come from the files in `folder`.
///
/// # Errors
/// [`FolderError`] if it cannot be made or written.
pub fn write_report(folder: &Path, result: &RunResult, to: &Path) -> Result<PathBuf, FolderError> {
    let page = html::report(result, folder)
        .map_err(|source| FolderError::Report { path: to.to_owned(), source })?;
    replace(to, page.as_bytes())?;
    Ok(to.to_owned())
}

/// Makes a folder for several results, each of which gets a folder of its own in it: `out`, or a new one under
/// [`DEFAULT_PARENT`] that is named after the moment and `what`.
///
/// # Errors
/// [`FolderError`] if it cannot be made or holds results already.
pub fn new_parent(
    out: Option<&Path>,
    what: &str,
    started: SystemTime,
) -> Result<PathBuf, FolderError> {
    let Some(path) = out else { return new_folder(Path::new(DEFAULT_PARENT), what, started) };
    refuse_occupied(path, true)?;
    named_folder(path)
}

/// Refuses a folder that holds a result already, before it is made; for `several` results, also one with result folders
/// in it.
///
/// # Errors
/// [`FolderError`] if it does.
pub fn refuse_occupied(path: &Path, several: bool) -> Result<(), FolderError> {
    let holds = |path: &Path| path.join(RESULT_FILE).exists();
    let inside = fs::read_dir(path).into_iter().flatten().flatten().filter(|_| several);
    match holds(path) || inside.map(|entry| entry.path()).any(|entry| holds(&entry)) {
        true => Err(FolderError::Occupied { path: path.to_owned() }),
        false => Ok(()),
    }
}

/// Removes a folder for several results in which none was written.
pub fn discard_parent(path: &Path) {
    let _ = fs::remove_dir(path);
    if path.parent() == Some(Path::new(DEFAULT_PARENT)) {
        let _ = fs::remove_dir(DEFAULT_PARENT);
    }
}

/// Writes the summary of trials and its page into their folder. Returns the page's path.
///
/// # Errors
/// [`FolderError`] if they cannot be made or written.
pub fn write_trials(folder: &Path, trials: &Trials) -> Result<PathBuf, FolderError> {
    let mut text = serde_json::to_vec_pretty(trials).expect("a summary is plain JSON");
    text.push(b'\n');
    replace(&folder.join(TRIALS_FILE), &text)?;
    let to = folder.join(REPORT_FILE);
    write_trials_page(trials, &to)?;
    Ok(to)
}

/// Writes the page over trials to `to`.
///
/// # Errors
/// [`FolderError`] if it cannot be written.
pub fn write_trials_page(trials: &Trials, to: &Path) -> Result<(), FolderError> {
    replace(to, trials.html().as_bytes())
}

fn named_folder(path: &Path) -> Result<PathBuf, FolderError> {
    fs::create_dir_all(path)
        .map_err(|source| FolderError::Create { path: path.to_owned(), source })?;
    refuse_occupied(path, false)?;
    Ok(path.to_owned())
}

fn new_folder(parent: &Path, suite: &str, started: SystemTime) -> Result<PathBuf, FolderError> {
    let failed = |path: &Path, source| FolderError::Create { path: path.to_owned(), source };
    fs::create_dir_all(parent).map_err(|source| failed(parent, source))?;
    let moment = rfc3339(started);
    let moment = moment[..19].replace(':', "-");
    let name = format!("{moment}-{}", plain_name(suite));
    let mut path = parent.join(&name);
    for again in 2.. {
        match fs::create_dir(&path) {
            Ok(()) => break,
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && again < 1_000 => {
                path = parent.join(format!("{name}-{again}"));
            }
            Err(source) => return Err(failed(&path, source)),
        }
    }
    Ok(path)
}

/// Writes a temporary file, syncs it and renames it over the old one: a reader sees the old or the new file, never a part.
fn replace(path: &Path, bytes: &[u8]) -> Result<(), FolderError> {
    let failed = |source: io::Error| FolderError::Write { path: path.to_owned(), source };
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    let mut file = tempfile::Builder::new()
        .prefix(".kvdyno-")
        .permissions(readable_by_all())
        .tempfile_in(folder)
        .map_err(|error| failed(without_path(error)))?;
    file.as_file_mut().write_all(bytes).map_err(failed)?;
    file.as_file().sync_all().map_err(failed)?;
    file.persist(path).map_err(|error| failed(error.error))?;
    // The rename itself lasts once the folder is on disk.
    File::open(folder).and_then(|folder| folder.sync_all()).map_err(failed)
}

/// Returns the error of a temporary file that cannot be made, without its path: no user knows that file.
fn without_path(error: io::Error) -> io::Error {
    match error.to_string().split_once(" at path ") {
        Some((what, _)) => io::Error::new(error.kind(), what.to_owned()),
        None => error,
    }
}

/// Returns the permissions of a new file: temporary files are private by default, and a report is to be read like any
/// other file. The process's umask still applies.
fn readable_by_all() -> fs::Permissions {
    use std::os::unix::fs::PermissionsExt;
    fs::Permissions::from_mode(0o666)
}

/// A file that grows by whole lines until it cannot be written.
#[derive(Debug)]
struct AppendedFile {
    path: PathBuf,
    /// `None` once a write failed.
    file: Option<File>,
    length: u64,
}

impl AppendedFile {
    fn create(path: PathBuf) -> Result<AppendedFile, FolderError> {
        match OpenOptions::new().write(true).create(true).truncate(true).open(&path) {
            Ok(file) => Ok(AppendedFile { path, file: Some(file), length: 0 }),
            Err(source) => Err(FolderError::Write { path, source }),
        }
    }

    /// Adds whole lines; a line that does not fit is taken back.
    fn append(&mut self, bytes: &[u8]) -> Result<(), FolderError> {
        let Some(file) = &mut self.file else { return Ok(()) };
        match file.write_all(bytes) {
            Ok(()) => {
                self.length += bytes.len() as u64;
                Ok(())
            }
            Err(source) => {
                // If even this fails, readers still pass over the broken last line.
                let _ = file.set_len(self.length);
                self.file = None;
                Err(FolderError::Write { path: self.path.clone(), source })
            }
        }
    }
}

#[cfg(test)]
mod tests;

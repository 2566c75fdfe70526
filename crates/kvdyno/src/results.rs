//! `kvdyno report` and `kvdyno merge`: results shown again and brought together.

use std::path::Path;
use std::time::SystemTime;

use kvdyno_report::folder::{ResultFolder, write_report, write_trials_page};
use kvdyno_report::joined::JoinedTimeline;
use kvdyno_report::result::{self, Absent, RESULT_FILE, RunResult};
use kvdyno_report::trials::Trials;
use kvdyno_report::{junit, markdown, terminal};

use crate::args::{MergeArguments, ReportArguments};
use crate::exit::{Exit, Failure};
use crate::terminal_style::style_of_terminal;

/// Prints results and writes their reports anew.
///
/// # Errors
/// [`Failure`] if a result cannot be read or a report not be written.
pub fn report(arguments: &ReportArguments) -> Result<Exit, Failure> {
    if arguments.output.is_some() && arguments.results.len() > 1 {
        return Err(Failure::usage("-o takes one result; leave it out for several"));
    }
    for path in &arguments.results {
        let folder = folder_of(path);
        let to = arguments.output.clone().unwrap_or_else(|| folder.join("report.html"));
        match path.is_dir() && !path.join(RESULT_FILE).is_file() {
            true => report_trials(path, &to)?,
            false => report_one(path, folder, &to)?,
        }
        say!("Report: {}", to.display());
    }
    Ok(Exit::Done)
}

/// Where the other files of a result are that is named by its folder or its file.
fn folder_of(path: &Path) -> &Path {
    if path.is_dir() { path } else { path.parent().unwrap_or(Path::new(".")) }
}

fn report_one(path: &Path, folder: &Path, to: &Path) -> Result<(), Failure> {
    let result = RunResult::load(path).map_err(Failure::usage)?;
    say_styled!(terminal::render(&result, style_of_terminal(true)).map_err(Failure::usage)?);
    match ending(to) {
        Some("md") => write(to, &markdown::render(&result).map_err(Failure::usage)?),
        Some("xml") => write(to, &junit::of_result(&result)),
        Some("html") => write_report(folder, &result, to).map(|_| ()).map_err(Failure::internal),
        _ => Err(no_format(to, ".html, .md or .xml")),
    }
}

fn report_trials(path: &Path, to: &Path) -> Result<(), Failure> {
    let trials = Trials::read(path).map_err(Failure::usage)?;
    say_styled!(trials.terminal(style_of_terminal(true)));
    match ending(to) {
        Some("md") => write(to, &trials.markdown()),
        Some("html") => write_trials_page(&trials, to).map_err(Failure::internal),
        _ => Err(no_format(to, ".html or .md")),
    }
}

fn ending(path: &Path) -> Option<&str> {
    path.extension()?.to_str()
}

fn no_format(to: &Path, formats: &str) -> Failure {
    Failure::usage(format!("{}: name a file that ends in {formats}", to.display()))
}

fn write(to: &Path, text: &str) -> Result<(), Failure> {
    std::fs::write(to, text).map_err(|e| {
        Failure::internal(format!("cannot write {}: {e}; name another file", to.display()))
    })
}

/// Brings the parts of one load together, and ends as a run with the same result would.
///
/// # Errors
/// [`Failure`] if a part cannot be read, the parts do not belong together, or one is missing.
pub fn merge(arguments: &MergeArguments) -> Result<Exit, Failure> {
    let parts: Result<Vec<RunResult>, _> = arguments.results.iter().map(RunResult::load).collect();
    let parts = parts.map_err(Failure::usage)?;
    let merged = result::merge(&parts, Absent::Refuse).map_err(Failure::usage)?;
    let name = format!("{}-merged", merged.suite.name);
    // Times of the merged timeline count from then.
    let began = merged.started_at().unwrap_or_else(SystemTime::now);
    let mut folder =
        ResultFolder::create(arguments.out.as_deref(), &name, began).map_err(Failure::usage)?;
    folder.save(&merged).map_err(Failure::internal)?;
    let folders = arguments.results.iter().map(|path| folder_of(path));
    for joined in JoinedTimeline::of(folders.zip(&parts), &merged) {
        folder.append(&merged, &joined).map_err(Failure::internal)?;
    }
    let report = folder.write_report(&merged).map_err(Failure::internal)?;
    say_styled!(terminal::render(&merged, style_of_terminal(false)).map_err(Failure::usage)?);
    say!("Report: {}", report.display());
    let exits = merged.runs.iter().map(|run| Exit::of_run(run, false));
    Ok(exits.fold(Exit::Done, Exit::worse))
}

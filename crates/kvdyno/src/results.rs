//! `kvdyno report`: shows results again.

use std::path::Path;

use kvdyno_report::folder::{write_report, write_trials_page};
use kvdyno_report::result::{RESULT_FILE, RunResult};
use kvdyno_report::trials::Trials;
use kvdyno_report::{junit, markdown, terminal};

use crate::args::ReportArguments;
use crate::exit::{Exit, Failure};
use crate::terminal_style::style_of_terminal;

/// Prints results and writes their reports anew.
///
/// # Errors
/// [`Failure`] if a result cannot be read or a report not be written.
pub fn report(arguments: &ReportArguments) -> Result<Exit, Failure> {
    if arguments.out.is_some() && arguments.results.len() > 1 {
        return Err(Failure::usage(
            "-o works with one result only; leave it out, or name one result",
        ));
    }
    for path in &arguments.results {
        let folder = folder_of(path);
        let to = arguments.out.clone().unwrap_or_else(|| folder.join("report.html"));
        match path.is_dir() && !path.join(RESULT_FILE).is_file() {
            true => report_trials(path, &to)?,
            false => report_one(path, folder, &to)?,
        }
        say!("Report: {}", to.display());
    }
    Ok(Exit::Done)
}

/// Returns the folder with the other files of a result that is named by its folder or its file.
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

//! `kvdyno report` and `kvdyno merge`: results shown again and brought together.

use std::path::Path;

use kvdyno_report::folder::{ResultFolder, write_report};
use kvdyno_report::result::{self, Absent, RunResult};
use kvdyno_report::{markdown, terminal};

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
        let result = RunResult::load(path).map_err(Failure::usage)?;
        say!("{}", terminal::render(&result, style_of_terminal()).map_err(Failure::usage)?);
        let folder = if path.is_dir() { path } else { path.parent().unwrap_or(Path::new(".")) };
        let to = arguments.output.clone().unwrap_or_else(|| folder.join("report.html"));
        match to.extension().and_then(|extension| extension.to_str()) {
            Some("md") => {
                let text = markdown::render(&result).map_err(Failure::usage)?;
                std::fs::write(&to, text)
                    .map_err(|e| Failure::internal(format!("{}: {e}", to.display())))?;
            }
            Some("html") => {
                write_report(folder, &result, &to).map_err(Failure::internal)?;
            }
            _ => {
                return Err(Failure::usage(format!(
                    "{}: name a file that ends in .html or .md",
                    to.display()
                )));
            }
        }
        say!("Report: {}", to.display());
    }
    Ok(Exit::Done)
}

/// Brings the parts of one load together.
///
/// # Errors
/// [`Failure`] if a part cannot be read, the parts do not belong together, or one is missing.
pub fn merge(arguments: &MergeArguments) -> Result<Exit, Failure> {
    let parts: Result<Vec<RunResult>, _> = arguments.results.iter().map(RunResult::load).collect();
    let merged =
        result::merge(&parts.map_err(Failure::usage)?, Absent::Refuse).map_err(Failure::usage)?;
    let now = std::time::SystemTime::now();
    let folder = ResultFolder::create(
        arguments.out.as_deref(),
        &format!("{}-merged", merged.suite.name),
        now,
        kvdyno_core::measure::now(),
    )
    .map_err(Failure::usage)?;
    folder.save(&merged).map_err(Failure::internal)?;
    let report = folder.write_report(&merged).map_err(Failure::internal)?;
    say!("{}", terminal::render(&merged, style_of_terminal()).map_err(Failure::usage)?);
    say!("Report: {}", report.display());
    Ok(Exit::Done)
}

//! Suites: files that describe the phases of a run, and the plan that they become.
//!
//! A suite is found by name ([`Suite::find`]), changed by the command line ([`Overrides`]) and
//! turned into a [`Plan`], which is plain data: [`Suite::plan`]. The format is in docs/SUITES.md.

mod build;
mod builtin;
mod claims;
mod describe;
mod document;
mod error;
mod faults;
mod file;
mod keys;
mod models;
mod overrides;
mod plan;
mod prices;
pub mod properties;
mod published;
mod quick_form;
mod reader;
pub mod requirements;
mod search;
mod shares;
#[cfg(test)]
mod tests;
mod unanswerable;
mod ycsb;

use std::path::Path;

pub use builtin::{Builtin, CAPACITY, builtin, builtins};
pub use describe::PlanEstimate;
pub use error::{Place, Problem, SuiteError};
pub use keys::{KEYS, KeyLevel, SuiteKey, option_help};
pub use overrides::Overrides;
pub use plan::{Plan, PlannedChange, records_after};
pub use prices::EXAMPLE_PRICES;
pub use published::{PublishedRow, PublishedSetup};
pub use quick_form::QuickForm;
pub use requirements::Requirements;
pub use search::SearchPlan;
pub use shares::ShareOfCapacity;

use crate::ground::hints::hint;
use crate::workload::fault::FaultPlan;
use document::Document;
use file::SuiteSpec;

/// Reads a fault that is done at once by manual control, written as in `[[phase.fault]]` but without the keys for its time.
///
/// # Errors
/// [`SuiteError`] with the place of the first mistake.
pub fn fault_at_once(text: &str) -> Result<FaultPlan, SuiteError> {
    faults::fault_at_once(text)
}

/// Largest suite file that is read, bytes.
const LARGEST_FILE: u64 = 16 << 20;

/// A suite: phases of load, in order.
#[derive(Clone, Debug)]
pub struct Suite {
    document: Document,
    spec: SuiteSpec,
    notes: Vec<String>,
}

impl Suite {
    /// Reads a suite from `text`; `file` is its name in messages.
    ///
    /// # Errors
    /// [`SuiteError`] with the place of the first mistake.
    pub fn parse(file: &str, text: &str) -> Result<Suite, SuiteError> {
        Suite::of(Document::parse(file, text)?)
    }

    /// Reads a YCSB workload file (Java properties, see [`properties::decode`]); `file` is its name in
    /// messages, and the stem of its last part names the suite.
    ///
    /// # Errors
    /// [`SuiteError`] with the place of the first mistake.
    pub fn parse_ycsb(file: &str, text: &str) -> Result<Suite, SuiteError> {
        let stem = Path::new(file).file_stem().and_then(|stem| stem.to_str()).unwrap_or("ycsb");
        Suite::of_ycsb(stem, "YCSB workload file", file, text)
    }

    fn of_ycsb(name: &str, title: &str, file: &str, text: &str) -> Result<Suite, SuiteError> {
        let translated = ycsb::translate(name, title, file, text)?;
        let mut suite = Suite::parse(&format!("{file} (as a suite)"), &translated.toml)?;
        suite.notes = translated.notes;
        Ok(suite)
    }

    /// Finds the suite that `word` means: a built-in's name, `ycsb:FILE`, or a file.
    ///
    /// # Errors
    /// [`SuiteError`] if there is no such suite, or if it has a mistake.
    pub fn find(word: &str) -> Result<Suite, SuiteError> {
        if let Some(file) = word.strip_prefix("ycsb:") {
            return Suite::parse_ycsb(file, &properties::decode(&bytes(file)?));
        }
        if let Some(builtin) = builtin(word) {
            return builtin.suite();
        }
        if word.ends_with(".toml") || word.contains('/') || Path::new(word).is_file() {
            return Suite::parse(word, &read(word)?);
        }
        let names: Vec<&str> = builtins().iter().map(|builtin| builtin.name).collect();
        let what = "a built-in suite or a file".to_owned();
        let problem = Problem::UnknownWord { word: word.to_owned(), what };
        Err(SuiteError::new(Place::Suite(word.to_owned()), problem, hint(word, &names)))
    }

    fn of(document: Document) -> Result<Suite, SuiteError> {
        let spec = SuiteSpec::read(&document)?;
        Ok(Suite { document, spec, notes: Vec::new() })
    }

    /// Returns its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.spec.name
    }

    /// Returns its description in a line; it may be empty.
    #[must_use]
    pub fn title(&self) -> &str {
        &self.spec.title
    }

    /// Returns notes for the user on how it was read: YCSB properties without effect.
    #[must_use]
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Makes its plan, in which everything is decided.
    ///
    /// # Errors
    /// [`SuiteError`] if an override does not fit, or if phases do not fit together.
    pub fn plan(&self, overrides: &Overrides) -> Result<Plan, SuiteError> {
        overrides.check()?;
        let mut document = self.document.clone();
        overrides.edit(&mut document)?;
        let spec = SuiteSpec::read(&document)?;
        let mut plan = build::plan(&document, &spec, overrides)?;
        plan.notes.clone_from(&self.notes);
        if let Some(problem) = unanswerable::claim(&plan.claims, &plan.phases) {
            // A file that claims it is wrong; a file that was changed is told of.
            if plan.changes.is_empty() {
                let hint = "ask about what the phase has, or leave the claim out";
                let place = Place::Suite(plan.suite);
                return Err(SuiteError::new(place, Problem::Conflict(problem), hint));
            }
            plan.notes.push(problem);
        }
        Ok(plan)
    }
}

fn unreadable(file: &str, message: String) -> SuiteError {
    let hint = "check the name, or see `kvdyno suites` for the built-in ones";
    SuiteError::new(Place::Suite(file.to_owned()), Problem::Unreadable(message), hint)
}

/// Reads the text of a suite file.
fn read(file: &str) -> Result<String, SuiteError> {
    let not_text = |_| unreadable(file, "it is not UTF-8 text".to_owned());
    String::from_utf8(bytes(file)?).map_err(not_text)
}

/// Reads the bytes of a suite file.
fn bytes(file: &str) -> Result<Vec<u8>, SuiteError> {
    let fail = |message: String| unreadable(file, message);
    let length = std::fs::metadata(file).map_err(|error| fail(error.to_string()))?.len();
    if length > LARGEST_FILE {
        return Err(fail("it is larger than 16 MiB".to_owned()));
    }
    std::fs::read(file).map_err(|error| fail(error.to_string()))
}

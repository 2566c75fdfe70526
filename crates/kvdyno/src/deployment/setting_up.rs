//! The whole set-up of a deployment: machines are created, prepared and tuned, and written into the plain file that a run reads.

use std::path::{Path, PathBuf};

use kvdyno_core::load::Interrupt;

use super::course::prepare_machines;
use super::file::LifeFile;
use super::record::Record;
use super::steps::Steps;
use super::tuning::tune_all;
use super::written;
use crate::exit::Failure;

/// Sets everything up. Returns the plain deployment file of what is up then. `logs` is the folder that keeps the output of
/// all commands.
///
/// # Errors
/// [`Failure`] of the step that failed; what was made until then is still there, and the record knows of it.
pub fn bring_up(
    file: &LifeFile,
    record: &mut Record,
    logs: &Path,
    interrupt: &Interrupt,
) -> Result<PathBuf, Failure> {
    let mut steps = Steps::new(interrupt, logs, file.step_within).in_folder(&record.entry.begun_in);
    prepare_machines(file, record, &mut steps)?;
    let disclosed = tune_all(file, record, &mut steps)?;
    written::write(file, record, &steps.times, disclosed)
}

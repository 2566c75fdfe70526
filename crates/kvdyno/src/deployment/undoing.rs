//! From machines to nothing: what was made is destroyed, and then looked for, until two listings some time apart are empty.
//! Listings of clouds lag behind creation, so one that is empty proves nothing.

use std::path::Path;
use std::time::{Duration, Instant};

use kvdyno_core::load::Interrupt;

use super::course::{failure, of_deployment};
use super::file::{LifeFile, StepLines};
use super::record::{DeploymentStage, Record};
use super::steps::Steps;
use super::tuning::put_all_back;
use crate::exit::Failure;
use crate::signals;

/// Empty listings, one after the other, after which nothing is left.
const EMPTY_LISTINGS: u32 = 2;
/// Most rounds of a sweep that still finds something.
const MOST_ROUNDS: u32 = 60;
/// Pause after a round that found something.
const AFTER_FINDING: Duration = Duration::from_secs(1);
/// Time between two looks while waiting.
const LOOK: Duration = Duration::from_millis(50);
/// Most things that are named to the user.
const NAMED: usize = 5;

/// Destroys a deployment and forgets it. `logs` keeps the output of the commands.
///
/// # Errors
/// [`Failure`] if something may be left; the record stays then.
pub fn undo(mut record: Record, logs: Option<&Path>) -> Result<(), Failure> {
    let own = record.folder().join("logs");
    let logs = logs.unwrap_or(&own);
    std::fs::create_dir_all(logs).map_err(Failure::internal)?;
    // A full disk is no reason to let machines run.
    if let Err(failure) = record.note(|entry| entry.stage = DeploymentStage::Destroy) {
        failure.print();
    }
    let file = file_of(&record)?;
    // Another one: an interrupt that ended the work before ends nothing of this.
    let interrupt = signals::watch().map_err(Failure::internal)?;
    let tag = record.entry.tag.clone();
    let advice = format!("`kvdyno deployment sweep` tries again (tag {tag})");
    destroy(&file, &record, logs, &interrupt)
        .map_err(|why| Failure::unavailable(format!("{why}; {advice}")))?;
    record.forget()?;
    match file.sweep {
        Some(_) => warn_user!("kvdyno: nothing of {tag} is left"),
        None => warn_user!("kvdyno: {tag} is destroyed; without `sweep` nothing was looked for"),
    }
    Ok(())
}

/// Returns the deployment file of a record, as it was when the deployment was made.
///
/// # Errors
/// [`Failure`] if it cannot be read.
pub fn file_of(record: &Record) -> Result<LifeFile, Failure> {
    let given = record.entry.variables.iter().map(|(name, value)| format!("{name}={value}"));
    let given: Vec<String> = given.collect();
    let path = record.entry.file.display().to_string();
    LifeFile::parse(&path, &record.text()?, &given).map_err(Failure::usage)
}

fn destroy(
    file: &LifeFile,
    record: &Record,
    logs: &Path,
    interrupt: &Interrupt,
) -> Result<(), Failure> {
    let mut steps = Steps::new(interrupt, logs, file.step_within).in_folder(&record.entry.begun_in);
    put_all_back(file, record, &mut steps);
    let lines = of_deployment(file, record, &file.destroy);
    let destroyed = steps.run(DeploymentStage::Destroy.word(), &lines).map_err(failure);
    let Some(sweep) = &file.sweep else { return destroyed.map(drop) };
    if let Err(error) = destroyed {
        if interrupt.is_raised() {
            return Err(error);
        }
        warn_user!("kvdyno: {error}; the sweep goes on");
    }
    until_two_are_empty(file, record, (logs, sweep), interrupt)
}

/// Lists and destroys, until two listings are empty that lie the file's time apart.
fn until_two_are_empty(
    file: &LifeFile,
    record: &Record,
    (logs, sweep): (&Path, &str),
    interrupt: &Interrupt,
) -> Result<(), Failure> {
    let run = |name: &str, line: &str| {
        let lines = StepLines { all: vec![line.to_owned()], ..StepLines::default() };
        let mut steps =
            Steps::new(interrupt, logs, file.step_within).in_folder(&record.entry.begun_in);
        let done = steps.run(name, &of_deployment(file, record, &lines)).map_err(failure)?;
        let told = done.into_iter().map(|done| done.out).collect::<String>();
        let lines = told.lines().map(str::trim).filter(|line| !line.is_empty());
        Ok::<Vec<String>, Failure>(lines.map(str::to_owned).collect())
    };
    let mut empty = 0;
    for _ in 0..MOST_ROUNDS {
        let found = match &file.list {
            Some(list) => run("list", list)?,
            None => run("sweep", sweep)?,
        };
        if found.is_empty() {
            empty += 1;
            if empty == EMPTY_LISTINGS {
                return Ok(());
            }
            pause(file.listings_apart, interrupt)?;
            continue;
        }
        empty = 0;
        warn_user!("kvdyno: found {}", named(&found));
        if file.list.is_some() {
            run("sweep", sweep)?;
        }
        pause(AFTER_FINDING.min(file.listings_apart), interrupt)?;
    }
    Err(Failure::unavailable(format!(
        "the sweep still finds something after {MOST_ROUNDS} rounds; see what its log says"
    )))
}

fn pause(time: Duration, interrupt: &Interrupt) -> Result<(), Failure> {
    let until = Instant::now() + time;
    while Instant::now() < until {
        if interrupt.is_raised() {
            return Err(Failure::stopped("interrupted while looking for what is left"));
        }
        std::thread::sleep(LOOK);
    }
    Ok(())
}

fn named(found: &[String]) -> String {
    let first = found.iter().take(NAMED).map(String::as_str).collect::<Vec<_>>().join(", ");
    let more = found.len().saturating_sub(NAMED);
    if more > 0 { format!("{first} and {more} more") } else { first }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_are_named_and_the_rest_is_counted() {
        let all: Vec<String> = (1..=7).map(|number| format!("i-{number}")).collect();
        assert_eq!(named(&all[..2]), "i-1, i-2");
        assert_eq!(named(&all), "i-1, i-2, i-3, i-4, i-5 and 2 more");
    }
}

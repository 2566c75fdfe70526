//! From nothing to machines that are prepared: the steps in their order, each noted in the record before it begins.

use super::environment;
use super::file::{LifeFile, StepLines};
use super::machines::{self, DeployedMachine, unique};
use super::record::{DeploymentStage, Record};
use super::steps::{StepError, StepLine, Steps};
use crate::exit::{Exit, Failure};

/// Creates the machines and prepares them.
///
/// # Errors
/// [`Failure`] of the step that failed; what was made until then is still there, and the record knows of it.
pub fn prepare_machines(
    file: &LifeFile,
    record: &mut Record,
    steps: &mut Steps<'_>,
) -> Result<(), Failure> {
    record.note(|entry| entry.stage = DeploymentStage::Create)?;
    let lines = of_deployment(file, record, &file.create);
    let printed = steps.run(DeploymentStage::Create.word(), &lines).map_err(failure)?;
    let printed: Vec<String> = printed.into_iter().map(|done| done.out).collect();
    let made = machines::read(&printed)
        .and_then(|made| unique(file.machines.iter().cloned().chain(made).collect()))
        .map_err(|error| {
            Failure::unavailable(format!("`create`: {error}; see docs/DEPLOYMENTS.md"))
        })?;
    if made.is_empty() {
        return Err(Failure::unavailable(
            "`create` succeeded and there is no machine; make it print {\"nodes\": […], \"load\": […]}",
        ));
    }
    record.note(|entry| {
        entry.machines = made;
        entry.stage = DeploymentStage::Ready;
    })?;
    let lines = of_machines(file, record, &file.ready);
    steps.run_until(DeploymentStage::Ready.word(), &lines, file.ready_within).map_err(failure)?;
    record.note(|entry| entry.stage = DeploymentStage::Prepare)?;
    let lines = of_machines(file, record, &file.prepare);
    steps.run(DeploymentStage::Prepare.word(), &lines).map_err(failure)?;
    Ok(())
}

/// Returns the command lines of a step of the deployment as a whole.
pub fn of_deployment(file: &LifeFile, record: &Record, lines: &StepLines) -> Vec<StepLine> {
    let environment = environment::of_all(file, record);
    let each = lines.all.iter().map(|line| StepLine {
        machine: None,
        line: file.line(line),
        environment: environment.clone(),
    });
    each.chain(of_machines_but_all(file, record, lines)).collect()
}

/// Returns the command lines of a step of each machine.
pub fn of_machines(file: &LifeFile, record: &Record, lines: &StepLines) -> Vec<StepLine> {
    let machines = &record.entry.machines;
    let each = machines.iter().flat_map(|machine| {
        let own = lines.of_machine(machine.kind);
        own.into_iter().map(|line| of_machine(file, record, machine, line))
    });
    each.collect()
}

fn of_machines_but_all(file: &LifeFile, record: &Record, lines: &StepLines) -> Vec<StepLine> {
    let lines = StepLines { all: Vec::new(), ..lines.clone() };
    of_machines(file, record, &lines)
}

/// Returns a command line of one machine.
pub fn of_machine(
    file: &LifeFile,
    record: &Record,
    machine: &DeployedMachine,
    line: &str,
) -> StepLine {
    let mut environment = environment::of_all(file, record);
    environment.extend(environment::of_machine(&record.entry.machines, machine));
    StepLine { machine: Some(machine.name.clone()), line: file.line(line), environment }
}

/// Returns the failure of a step.
pub fn failure(error: StepError) -> Failure {
    match error {
        StepError::Interrupted(_) => Failure::stopped(error),
        StepError::Failed { .. } => Failure::unavailable(error),
    }
}

/// Returns the failure of a set-up together with what became of what it had made.
pub fn with_ending(failure: &Failure, undone: Result<(), Failure>) -> Failure {
    let told = match undone {
        Ok(()) => format!("{failure}; what was made is destroyed again"),
        Err(other) => format!("{failure}; and what was made is not destroyed: {other}"),
    };
    match failure.exit {
        Exit::Interrupted => Failure::stopped(told),
        _ => Failure::unavailable(told),
    }
}

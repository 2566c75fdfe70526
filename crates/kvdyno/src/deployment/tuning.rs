//! The tuning of all machines of a deployment: before the run, and back after it.

use std::collections::BTreeMap;

use super::course::{failure, of_machine};
use super::file::LifeFile;
use super::machines::{DeployedMachine, MachineKind};
use super::record::Record;
use super::steps::{StepLine, Steps};
use super::tune;
use crate::exit::Failure;

/// Last line of a machine whose settings could not be put back.
const NOT_DONE: &str = "not-put-back";

/// Changes the settings of all machines. Returns what to disclose of it.
///
/// # Errors
/// [`Failure`] of the machine that cannot be reached.
pub fn tune_all(
    file: &LifeFile,
    record: &mut Record,
    steps: &mut Steps<'_>,
) -> Result<BTreeMap<String, String>, Failure> {
    let mut disclosed = BTreeMap::new();
    if file.tune == tune::Tune::default() {
        return Ok(disclosed);
    }
    // Written down first: what was begun is put back.
    record.note(|entry| entry.tuned = true)?;
    for kind in [MachineKind::Node, MachineKind::Load] {
        let Some(settings) = file.tune.of(kind) else { continue };
        let script = settings.script().map_err(Failure::usage)?;
        let machines = of_kind(record, kind);
        let lines = scripts(file, record, &machines, (&format!("tune-{}", kind.word()), &script))?;
        let told = steps.run("tune", &lines).map_err(failure)?;
        for (machine, told) in machines.iter().zip(told) {
            disclosed.extend(tune::disclosed(&machine.name, &told.out));
        }
    }
    Ok(disclosed)
}

/// Puts the former settings of all machines back. A machine that cannot be reached is told of, and keeps nobody from the
/// others: most are destroyed next.
pub fn put_all_back(file: &LifeFile, record: &Record, steps: &mut Steps<'_>) {
    if !record.entry.tuned {
        return;
    }
    for kind in [MachineKind::Node, MachineKind::Load] {
        if file.tune.of(kind).is_none() {
            continue;
        }
        let machines = of_kind(record, kind);
        let done = scripts(file, record, &machines, ("put-back", &tune::put_back()));
        let done = done.and_then(|mut lines| {
            // A line that fails would stop those of other machines.
            lines.iter_mut().for_each(|line| line.line.push_str(&format!(" || echo {NOT_DONE}")));
            steps.run("put-back", &lines).map_err(failure)
        });
        let told = |name: &str, why: &str| {
            warn_user!(
                "kvdyno: {name}: settings of the kernel are not put back{why}; the former values are in {} there",
                tune::KEPT
            );
        };
        match done {
            Ok(done) => {
                let each = machines.iter().zip(done);
                let failed = each.filter(|(_, done)| done.out.trim_end().ends_with(NOT_DONE));
                failed.for_each(|(machine, _)| told(&machine.name, ""));
            }
            Err(error) => told(kind.word(), &format!(": {error}")),
        }
    }
}

fn of_kind(record: &Record, kind: MachineKind) -> Vec<DeployedMachine> {
    record.entry.machines.iter().filter(|machine| machine.kind == kind).cloned().collect()
}

/// Returns the command lines that run a script on each machine, by the file's `shell`.
fn scripts(
    file: &LifeFile,
    record: &Record,
    machines: &[DeployedMachine],
    (name, script): (&str, &str),
) -> Result<Vec<StepLine>, Failure> {
    let path = record.folder().join(format!("{name}.sh"));
    std::fs::write(&path, script).map_err(|error| {
        Failure::internal(format!("cannot write {}: {error}; make room there", path.display()))
    })?;
    let shell = file.shell.as_deref().unwrap_or("sh -s");
    let line = format!("{{\n{shell}\n}} < \"$STATE/{name}.sh\"");
    Ok(machines.iter().map(|machine| of_machine(file, record, machine, &line)).collect())
}

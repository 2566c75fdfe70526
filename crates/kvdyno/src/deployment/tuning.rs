//! The tuning of all machines of a deployment: before the run, and back after it.

use std::collections::BTreeMap;

use super::course::{failure, of_machine};
use super::file::LifeFile;
use super::machines::{Machine, MachineKind};
use super::record::Record;
use super::steps::{StepLine, Steps};
use super::tune;
use crate::exit::Failure;

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
        for machine in of_kind(record, kind) {
            let script = ("put-back", tune::put_back());
            let lines = scripts(file, record, &[machine], (script.0, &script.1));
            let done = lines.and_then(|lines| steps.run("put back", &lines).map_err(failure));
            if let Err(error) = done {
                warn_user!("kvdyno: settings of the kernel are not put back: {error}");
            }
        }
    }
}

fn of_kind(record: &Record, kind: MachineKind) -> Vec<Machine> {
    record.entry.machines.iter().filter(|machine| machine.kind == kind).cloned().collect()
}

/// Returns the command lines that run a script on each machine, by the file's `shell`.
fn scripts(
    file: &LifeFile,
    record: &Record,
    machines: &[Machine],
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

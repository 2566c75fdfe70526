//! `kvdyno deployment plan|up|status|extend|down|sweep`.

use std::path::Path;
use std::time::Duration;

use kvdyno_core::ground::numbers;
use kvdyno_core::redact;

use super::bill;
use super::course::{failure, of_deployment, of_machines, with_ending};
use super::environment::moment;
use super::file::{LifeFile, StepLines};
use super::machines::MachineKind;
use super::notice;
use super::record::{self, DeploymentStage, FoundRecord, Record, now};
use super::setting_up::bring_up;
use super::steps::Steps;
use super::undoing::{file_of, undo};
use crate::args::{DeploymentArguments, DeploymentCommand, DeploymentFileArguments};
use crate::exit::{Exit, Failure};
use crate::signals;

/// Runs `kvdyno deployment …`.
///
/// # Errors
/// [`Failure`] if the file is wrong, or a step fails.
pub fn deployment(arguments: &DeploymentArguments) -> Result<Exit, Failure> {
    match &arguments.command {
        DeploymentCommand::Plan(file) => plan(file),
        DeploymentCommand::Up { file, yes } => up(file, *yes),
        DeploymentCommand::Status { file } => status(file),
        DeploymentCommand::Extend { file, by } => extend(file, *by),
        DeploymentCommand::Down { file } => down(file),
        DeploymentCommand::Sweep { file } => sweep(file.as_deref()),
    }
}

fn plan(arguments: &DeploymentFileArguments) -> Result<Exit, Failure> {
    let file = read(arguments)?;
    say!("{}", bill::sentence(&arguments.file, &file)?);
    for (name, value) in &file.variables.0 {
        say!("  {name} = {value}");
    }
    let whole = |lines: &StepLines| lines.all.clone();
    let each = |lines: &StepLines| {
        let of = |kind: MachineKind| lines.of_machine(kind).join("\n");
        vec![
            format!("on each node: {}", of(MachineKind::Node)),
            format!("on each load machine: {}", of(MachineKind::Load)),
        ]
    };
    let one = |line: &Option<String>| line.iter().cloned().collect::<Vec<_>>();
    let steps = [
        ("functions", one(&file.functions)),
        ("create", whole(&file.create)),
        ("ready", each(&file.ready)),
        ("prepare", each(&file.prepare)),
        ("destroy", whole(&file.destroy)),
        ("list", one(&file.list)),
        ("sweep", one(&file.sweep)),
        ("extend", one(&file.extend)),
    ];
    for (name, lines) in steps {
        let lines = lines.iter().filter(|line| !line.trim_end().ends_with(':'));
        for line in lines {
            let shown = redact::redact_message(line.trim()).replace('\n', "\n    ");
            say!("{name}\n    {shown}");
        }
    }
    Ok(Exit::Done)
}

fn up(arguments: &DeploymentFileArguments, yes: bool) -> Result<Exit, Failure> {
    let file = read(arguments)?;
    bill::consent(&arguments.file, &file, yes)?;
    let text = std::fs::read_to_string(&arguments.file).map_err(Failure::usage)?;
    let interrupt = signals::watch().map_err(Failure::internal)?;
    let variables = file.variables.0.clone();
    let mut record = Record::make(&arguments.file, &text, variables, file.expires)?;
    let logs = record.folder().join("logs");
    std::fs::create_dir_all(&logs).map_err(Failure::internal)?;
    let nodes = match bring_up(&file, &mut record, &logs, &interrupt) {
        Ok(nodes) => nodes,
        Err(failure) => return Err(with_ending(&failure, undo(record, None))),
    };
    record.note(|entry| entry.stage = DeploymentStage::Up)?;
    print(&FoundRecord { entry: record.entry.clone(), record: None });
    let nodes = nodes.display();
    let loads = record.entry.machines.iter().any(|machine| machine.kind == MachineKind::Load);
    let agents = match (&file.listen, loads && file.agent.is_some()) {
        (Some(listen), true) => format!(" --agents {nodes} --listen {listen}"),
        (None, true) => format!(" --agents {nodes} --listen HOST:PORT"),
        (_, false) => String::new(),
    };
    say!("Measure: kvdyno run SUITE --testbed {nodes}{agents}");
    say!("End it:  kvdyno deployment down {}", arguments.file.display());
    Ok(Exit::Done)
}

fn print(found: &FoundRecord) {
    let entry = &found.entry;
    let age = numbers::approximate_duration(now().saturating_sub(entry.begun) as f64);
    say!(
        "{} ({}): begun {age} ago, ends at {}",
        entry.tag,
        entry.stage.word(),
        moment(entry.expires)
    );
    for machine in &entry.machines {
        let word = machine.kind.word();
        say!("  {word} {}: {} (inside {})", machine.name, machine.outer, machine.inner);
    }
}

fn status(path: &Path) -> Result<Exit, Failure> {
    let all = record::of_file(path);
    if all.is_empty() {
        say!("nothing of {} is up", path.display());
    }
    for found in all {
        print(&found);
        if found.is_left_behind() {
            say!("  {}", notice::sentence(&found.entry));
        }
        let Some(record) = found.record else {
            say!("  another kvdyno works on it now");
            continue;
        };
        let file = file_of(&record)?;
        let interrupt = signals::watch().map_err(Failure::internal)?;
        let logs = record.folder().join("logs");
        std::fs::create_dir_all(&logs).map_err(Failure::internal)?;
        let mut steps =
            Steps::new(&interrupt, &logs, file.step_within).in_folder(&record.entry.begun_in);
        for line in of_machines(&file, &record, &file.ready) {
            let answers = steps.run("status", std::slice::from_ref(&line));
            let machine = line.machine.unwrap_or_default();
            match answers {
                Ok(_) => say!("  {machine} is ready"),
                Err(error) => say!("  {machine} is not ready: {error}"),
            }
        }
        if let Some(list) = &file.list {
            let lines = StepLines { all: vec![list.clone()], ..StepLines::default() };
            let told =
                steps.run("list", &of_deployment(&file, &record, &lines)).map_err(failure)?;
            let told: String = told.into_iter().map(|done| done.out).collect();
            for line in told.lines() {
                say!("  found {line}");
            }
        }
    }
    Ok(Exit::Done)
}

fn extend(path: &Path, by: Duration) -> Result<Exit, Failure> {
    let mut all = owned(path)?;
    if all.is_empty() {
        return Err(nothing_up(path));
    }
    for record in &mut all {
        let file = file_of(record)?;
        let Some(line) = file.extend.clone() else {
            return Err(Failure::usage(format!(
                "{}: it has no command `extend`, so its machines end at {}; end them and create new ones",
                path.display(),
                moment(record.entry.expires)
            )));
        };
        let before = record.entry.expires;
        let expires = now() + by.as_secs();
        // The command has the new moment in its environment; the record has it only once the machines know it.
        record.entry.expires = expires;
        let lines = StepLines { all: vec![line], ..StepLines::default() };
        let lines = of_deployment(&file, record, &lines);
        record.entry.expires = before;
        let interrupt = signals::watch().map_err(Failure::internal)?;
        let logs = record.folder().join("logs");
        std::fs::create_dir_all(&logs).map_err(Failure::internal)?;
        let mut steps =
            Steps::new(&interrupt, &logs, file.step_within).in_folder(&record.entry.begun_in);
        steps.run("extend", &lines).map_err(failure)?;
        record.note(|entry| entry.expires = expires)?;
        say!("{} ends at {}", record.entry.tag, moment(expires));
    }
    Ok(Exit::Done)
}

fn down(path: &Path) -> Result<Exit, Failure> {
    let all = owned(path)?;
    if all.is_empty() {
        return Err(nothing_up(path));
    }
    all.into_iter().try_for_each(|record| undo(record, None))?;
    Ok(Exit::Done)
}

fn sweep(path: Option<&Path>) -> Result<Exit, Failure> {
    let all = path.map_or_else(record::all, record::of_file);
    let left = all.into_iter().filter(FoundRecord::is_left_behind);
    let left: Vec<FoundRecord> = left.collect();
    if left.is_empty() {
        say!("nothing was left behind");
        return Ok(Exit::Done);
    }
    // One that cannot be destroyed keeps no other from it.
    let mut first = None;
    for found in left {
        warn_user!("kvdyno: {}", notice::sentence(&found.entry));
        let undone = found.record.map_or(Ok(()), |record| undo(record, None));
        if let Err(failure) = undone {
            failure.print();
            first.get_or_insert(failure.exit);
        }
    }
    Ok(first.unwrap_or(Exit::Done))
}

/// Returns the records of a file, all of which this process owns now.
fn owned(path: &Path) -> Result<Vec<Record>, Failure> {
    let each = record::of_file(path).into_iter().map(|found| {
        found.record.ok_or_else(|| {
            Failure::usage(format!(
                "another kvdyno works on {} of {} now; try again once that has ended, or stop it by Ctrl-C",
                found.entry.tag,
                path.display()
            ))
        })
    });
    each.collect()
}

fn nothing_up(path: &Path) -> Failure {
    let path = path.display();
    Failure::usage(format!("nothing of {path} is up; `kvdyno deployment up {path}` creates it"))
}

fn read(arguments: &DeploymentFileArguments) -> Result<LifeFile, Failure> {
    LifeFile::read(&arguments.file, &arguments.variables).map_err(Failure::usage)
}

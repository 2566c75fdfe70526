//! `kvdyno run SUITE --deployment FILE`: machines are created before the run and destroyed after it, whatever becomes of it.

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use kvdyno_report::folder;

use super::bill;
use super::course::with_ending;
use super::environment::moment;
use super::file::{Keep, LifeFile};
use super::machines::MachineKind;
use super::record::{DeploymentStage, Record};
use super::setting_up::bring_up;
use super::undoing::undo;
use crate::args::RunArguments;
use crate::exit::{Exit, Failure};
use crate::run;
use crate::signals;

/// Folder of the commands' output, in the result's.
const LOGS: &str = "deployment";
/// Address that stands for a node before there is one.
const NO_NODE: &str = "127.0.0.1:1";

/// Runs `kvdyno run` or `kvdyno capacity`, with a deployment around it if one is asked for.
///
/// # Errors
/// [`Failure`] if nothing could be measured, or something of the deployment may be left.
pub fn run(mut arguments: RunArguments) -> Result<Exit, Failure> {
    match arguments.measure.deployment.deployment.take() {
        Some(file) => around(&file, arguments),
        None => run::run(arguments),
    }
}

/// Creates the machines of a deployment file, runs on them, and destroys them.
fn around(path: &Path, mut arguments: RunArguments) -> Result<Exit, Failure> {
    let given = std::mem::take(&mut arguments.measure.deployment.variables);
    let file = LifeFile::read(path, &given).map_err(Failure::usage)?;
    let nodes = file.variables.expand(&file.url, &[("NODES", NO_NODE)]).map_err(Failure::usage)?;
    let conduct = &mut arguments.measure.execution.conduct;
    if file.agent.is_some() && conduct.listen.is_none() {
        conduct.listen = Some(file.listen.clone().ok_or_else(|| {
            Failure::usage(format!(
                "{}: add `listen = \"HOST:PORT\"` or --listen HOST:PORT, by which its load machines reach this one",
                path.display()
            ))
        })?);
    }
    // What is wrong with the run itself is found before a machine is paid for.
    arguments.measure.store = vec![nodes];
    if arguments.measure.execution.output.dry_run {
        let exit = run::run(arguments)?;
        say!("\n{} would be created: {}", path.display(), bill::sentence(path, &file)?);
        return Ok(exit);
    }
    run::refuse_early(&arguments)?;
    arguments.measure.store.clear();
    bill::consent(path, &file, arguments.measure.execution.conduct.yes)?;
    // Who has agreed to the machines is not asked again whether their nodes may be harmed.
    arguments.measure.execution.conduct.yes = true;
    let out = result_folder(&mut arguments)?;
    let logs = out.join(LOGS);
    std::fs::create_dir_all(&logs).map_err(|error| {
        Failure::usage(format!("cannot make {}: {error}; choose another --out", logs.display()))
    })?;
    let text = std::fs::read_to_string(path).map_err(Failure::usage)?;
    let interrupt = signals::watch().map_err(Failure::internal)?;
    let mut record = Record::make(path, &text, file.variables.0.clone(), file.expires)?;
    let nodes = match bring_up(&file, &mut record, &logs, &interrupt) {
        Ok(nodes) => nodes,
        Err(failure) => return Err(with_ending(&failure, undo(record, Some(&logs)))),
    };
    let noted = record.note(|entry| entry.stage = DeploymentStage::Run);
    let ended = noted.and_then(|()| run::run(on_nodes(arguments, &file, &record, &nodes)));
    let exit = ended.unwrap_or_else(|failure| {
        failure.print();
        failure.exit
    });
    finish(&file, record, &logs, exit)
}

/// Destroys the machines after the run, or keeps them.
fn finish(file: &LifeFile, mut record: Record, logs: &Path, exit: Exit) -> Result<Exit, Failure> {
    let keep = match file.keep {
        Keep::Never => false,
        Keep::OnFailure => !matches!(exit, Exit::Done | Exit::Interrupted),
        Keep::Always => true,
    };
    if !keep {
        undo(record, Some(logs))?;
        return Ok(exit);
    }
    record.note(|entry| entry.stage = DeploymentStage::Up)?;
    warn_user!(
        "kvdyno: the machines of {} stay, and end at {}: `kvdyno deployment down {}` ends them before",
        record.entry.tag,
        moment(record.entry.expires),
        record.entry.file.display()
    );
    Ok(exit)
}

/// Returns the arguments of the run on the machines that are up.
fn on_nodes(
    mut arguments: RunArguments,
    file: &LifeFile,
    record: &Record,
    nodes: &Path,
) -> RunArguments {
    let nodes = nodes.display().to_string();
    let loads = record.entry.machines.iter().any(|machine| machine.kind == MachineKind::Load);
    let conduct = &mut arguments.measure.execution.conduct;
    match loads && file.agent.is_some() {
        true => conduct.agents = Some(nodes.clone()),
        false => conduct.listen = None,
    }
    conduct.wait = conduct.wait.or(Some(file.ready_within.max(Duration::from_secs(60))));
    conduct.wait = conduct.wait.filter(|_| conduct.agents.is_some());
    arguments.measure.testbed = vec![nodes];
    arguments
}

/// Makes the result's folder now: it keeps the output of all steps, also of those before the run.
fn result_folder(arguments: &mut RunArguments) -> Result<PathBuf, Failure> {
    let output = &mut arguments.measure.execution.output;
    let several = arguments.measure.execution.conduct.trials > 1;
    if let Some(out) = &output.out {
        folder::refuse_occupied(out, several).map_err(Failure::usage)?;
    }
    let name = arguments.suite.as_deref().map(Path::new).and_then(Path::file_stem);
    let name = name.and_then(|name| name.to_str()).unwrap_or("run");
    let made = folder::new_parent(output.out.as_deref(), name, SystemTime::now());
    let made = made.map_err(Failure::usage)?;
    output.out = Some(made.clone());
    Ok(made)
}

//! `kvdyno testbed`: throwaway deployments of real servers, on their own or around one run.

mod aim;
mod arguments;
mod around;
mod consent;
mod disclosed;
mod engine_node;
mod fault;
mod fitting;
mod kinds;
mod nemesis;
mod newcomers;
mod node_processes;
mod node_traffic;
mod recovery_wait;
mod shared_keeper;
mod wanted_action;

use std::path::Path;
use std::time::Duration;

use kvdyno_core::ground::numbers;
use kvdyno_core::load::Interrupt;
use kvdyno_core::workload::fault::ActionFailure;
use kvdyno_stores::url;
use kvdyno_testbed::keeper::{self, RunningTestbed};
use kvdyno_testbed::{Description, NodeDescription, TestbedError, install, is_file, sim};

pub use arguments::{TestbedArguments, TestbedCommand};
pub use around::{Around, check};
pub use consent::consent;
pub use disclosed::disclosed;
pub use fitting::{fitted, store_of};
pub use nemesis::{Disturbance, Disturbed, LookBack, ManualAction, Surroundings};
pub use node_processes::NodeProcesses;
pub use shared_keeper::{SharedKeeper, lock};

use crate::exit::{Exit, Failure};
use crate::signals;

/// Pause between two looks whether a testbed is to end.
const LOOK: Duration = Duration::from_millis(50);

/// Runs `kvdyno testbed …`.
///
/// # Errors
/// [`Failure`] if the testbed cannot be set up, found or changed.
pub fn testbed(arguments: &TestbedArguments) -> Result<Exit, Failure> {
    match &arguments.command {
        TestbedCommand::Up { testbed, detach } => up(testbed, *detach),
        TestbedCommand::Down { testbeds, all, force } => down(testbeds, *all, *force),
        TestbedCommand::Fault(asked) => {
            fault::carry_out(&one(asked.target.testbed.as_deref())?, asked)
        }
        TestbedCommand::List => list(),
        TestbedCommand::Kinds => kinds::list(),
        TestbedCommand::Install { kinds } => install(kinds),
        TestbedCommand::Keep => {
            keeper::serve();
            Ok(Exit::Done)
        }
        TestbedCommand::DiskDevice => {
            kvdyno_testbed::serve_device();
            Ok(Exit::Done)
        }
        TestbedCommand::EngineNode { settings } => {
            engine_node::serve(settings).map_err(Failure::internal)?;
            Ok(Exit::Done)
        }
        TestbedCommand::SimNode { settings } => {
            sim::serve(settings).map_err(Failure::internal)?;
            Ok(Exit::Done)
        }
    }
}

fn up(words: &str, detach: bool) -> Result<Exit, Failure> {
    check(words)?;
    let interrupt = signals::watch().map_err(Failure::internal)?;
    let around = Around::start(words, detach, &interrupt)?;
    say!("{}", describe(around.description()));
    if detach {
        say!("It stays up until `kvdyno testbed down`.");
        return Ok(Exit::Done);
    }
    say!("It stays up until Ctrl-C.");
    match wait(&around, &interrupt) {
        true => Ok(Exit::Done),
        false => Err(Failure::internal(
            "the testbed has ended, because its keeper process ended; start it again",
        )),
    }
}

/// Waits for Ctrl-C or the testbed's end. Returns false if the testbed has ended without an order.
fn wait(around: &Around, interrupt: &Interrupt) -> bool {
    while !interrupt.is_raised() {
        if !around.is_running() {
            return around.was_ended();
        }
        std::thread::sleep(LOOK);
    }
    true
}

/// Describes a testbed for the terminal.
fn describe(testbed: &Description) -> String {
    let version = testbed.version.as_deref().unwrap_or("(version unknown)");
    let ready = numbers::approximate_duration(testbed.ready_after.as_secs_f64());
    let mut text = format!(
        "{} {version} is up after {ready}: {}, {}\n",
        testbed.request,
        counted(testbed.nodes.len(), "process", "es"),
        counted(testbed.changed.len(), "setting", "s") + " changed",
    );
    for (name, value) in &testbed.changed {
        text.push_str(&format!(
            "  {name} = {}\n",
            if value.is_empty() { "(empty)" } else { value }
        ));
    }
    for node in &testbed.nodes {
        text.push_str(&format!("  {}\n", node_line(node)));
    }
    text.push_str(&format!("Store: {}", url::shown(&testbed.url)));
    if let Some(network) = &testbed.network {
        let path = network.clients.display();
        text.push_str(&format!(
            "\nIts network is its own: nsenter --net={path} COMMAND reaches it"
        ));
    }
    text
}

fn node_line(node: &NodeDescription) -> String {
    let mut line = format!("{}  {}", node.name, node.address);
    if let Some(role) = node.role {
        line.push_str(&format!("  {}", role.name()));
    }
    match node.pid {
        Some(pid) => line.push_str(&format!("  pid {pid}")),
        None if node.running => {}
        None => line.push_str("  not running"),
    }
    line
}

fn counted(count: usize, what: &str, plural: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { plural })
}

fn down(wanted: &[String], all: bool, force: bool) -> Result<Exit, Failure> {
    let running = keeper::running().map_err(about)?;
    let ids: Vec<String> = running.iter().map(RunningTestbed::id).collect();
    let named = |id: &str| wanted.iter().any(|name| id == name || kind_of(id) == name);
    if let Some(absent) =
        wanted.iter().find(|name| !ids.iter().any(|id| id == *name || kind_of(id) == *name))
    {
        let known: Vec<&str> = ids.iter().map(String::as_str).collect();
        let advice = match known.is_empty() {
            true => "`kvdyno testbed up NAME` starts one".to_owned(),
            false => kvdyno_core::ground::hints::hint(absent, &known),
        };
        return Err(Failure::usage(format!("no testbed {absent} is up; {advice}")));
    }
    // Without a name, the only testbed is meant.
    let only = wanted.is_empty() && running.len() == 1;
    if wanted.is_empty() && !all && running.len() > 1 {
        return Err(Failure::usage(format!(
            "several testbeds are running ({}): name one, or use --all",
            ids.join(", ")
        )));
    }
    for testbed in running {
        let id = testbed.id();
        if all && !force && testbed.describe().is_ok_and(|described| described.attached) {
            say!(
                "{id} is left: the command that started it still runs; --force ends it all the same"
            );
        } else if all || only || named(&id) {
            testbed.end().map_err(about)?;
            say!("{id} is down");
        }
    }
    Ok(Exit::Done)
}

/// Returns the testbed of this name, or the only one.
fn one(name: Option<&str>) -> Result<RunningTestbed, Failure> {
    if let Some(file) = name.filter(|name| is_file(name)) {
        return Err(Failure::usage(format!(
            "{file} is a file, but --testbed takes the name of a testbed that is up; start it with `kvdyno \
             testbed up {file}`, then use its name in `kvdyno testbed list`"
        )));
    }
    let running = keeper::running().map_err(about)?;
    let ids: Vec<String> = running.iter().map(RunningTestbed::id).collect();
    let meant = |testbed: &RunningTestbed| {
        let id = testbed.id();
        name.is_none_or(|name| id == name || kind_of(&id) == name)
    };
    let mut meant: Vec<RunningTestbed> = running.into_iter().filter(meant).collect();
    match (meant.pop(), meant.is_empty()) {
        (Some(only), true) => Ok(only),
        (Some(_), false) => Err(Failure::usage(format!(
            "several testbeds are running: add --testbed NAME, one of {}",
            ids.join(", ")
        ))),
        (None, _) if ids.is_empty() => {
            Err(Failure::usage("no testbed is up; `kvdyno testbed up NAME` starts one"))
        }
        (None, _) => {
            Err(Failure::usage(format!("no such testbed is up; name one of {}", ids.join(", "))))
        }
    }
}

/// Returns the kind in a testbed's name: `redis-sharded` of `redis-sharded-x7Bq2w`.
fn kind_of(id: &str) -> &str {
    id.rsplit_once('-').map_or(id, |(kind, _)| kind)
}

fn list() -> Result<Exit, Failure> {
    let running = keeper::running().map_err(about)?;
    if running.is_empty() {
        say!(
            "No testbed is up. `kvdyno testbed up NAME` starts one; `kvdyno testbed kinds` lists them."
        );
    }
    for testbed in running {
        match testbed.describe() {
            Ok(description) => {
                say!("{}  {}  {}", testbed.id(), description.request, url::shown(&description.url));
                for node in &description.nodes {
                    say!("  {}", node_line(node));
                }
            }
            // It ended since it was listed.
            Err(error) => say!("{}  {error}", testbed.id()),
        }
    }
    Ok(Exit::Done)
}

fn install(kinds: &[String]) -> Result<Exit, Failure> {
    for name in kinds {
        let software = kinds::software(name)?;
        let report = |line: &str| say!("{line} …");
        install::install(&software, &report).map_err(about)?;
        say!("{name} is installed");
        for software in software {
            if let Some(path) = software.find() {
                say!("  {}: {}", software.shown(), path.display());
            }
        }
    }
    Ok(Exit::Done)
}

/// Makes the failure of a testbed: one line, and the exit code.
fn about(error: TestbedError) -> Failure {
    match error {
        TestbedError::Interrupted => Failure::interrupted(),
        error if error.failure() == ActionFailure::Machine => Failure::internal(error),
        error if error.is_usage() => Failure::usage(error),
        error => Failure::unavailable(error),
    }
}

/// Returns the path of this program, and the arguments that start it as a keeper.
fn own_program() -> (&'static Path, &'static [&'static str]) {
    (Path::new("/proc/self/exe"), &["testbed", "keep"])
}

//! `kvdyno agent --stay`: an agent that serves one run after the other. Each run gets a process of its own, so that nothing of
//! one run, neither memory nor a driver that hangs, is left for the next.

use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use kvdyno_core::load::Interrupt;
use kvdyno_testbed::process::end_with_parent;

use crate::args::AgentArguments;
use crate::exit::{Exit, Failure};
use crate::signals;

/// This program, whatever has become of its file.
const PROGRAM: &str = "/proc/self/exe";
/// Time for which the agent of one run waits for its conductor; then another waits.
const ROUND: &str = "10m";
/// Time between two looks at it.
const LOOK: Duration = Duration::from_millis(50);
/// Shortest and longest pause after an agent that did not serve a run.
const PAUSES: [Duration; 2] = [Duration::from_millis(500), Duration::from_secs(30)];

/// Serves runs until a signal ends it.
///
/// # Errors
/// [`Failure`] if no agent can be started.
pub fn stay(arguments: &AgentArguments) -> Result<Exit, Failure> {
    let interrupt = signals::watch().map_err(Failure::internal)?;
    let mut served = 0_u64;
    let mut pause = PAUSES[0];
    loop {
        let mut child = start(arguments).map_err(|error| {
            Failure::internal(format!("cannot start an agent: {error}; make room for a process"))
        })?;
        let Some(code) = ended(&mut child, &interrupt).map_err(Failure::internal)? else {
            return Ok(Exit::Done);
        };
        match code {
            Some(0) => {
                served += 1;
                pause = PAUSES[0];
                warn_user!("kvdyno: run {served} is over; waiting for the next conductor");
            }
            // Its own words say what is wrong, and no conductor will change it.
            Some(code) if code == Exit::Usage as i32 => return Ok(Exit::Usage),
            _ if wait(pause, &interrupt) => pause = (pause * 2).min(PAUSES[1]),
            _ => return Ok(Exit::Done),
        }
        if interrupt.is_raised() {
            return Ok(Exit::Done);
        }
    }
}

fn start(arguments: &AgentArguments) -> std::io::Result<Child> {
    let mut command = Command::new(PROGRAM);
    command.args(["agent", "--conductor", &arguments.conductor, "--wait", ROUND]);
    if let Some(name) = &arguments.name {
        command.args(["--name", name]);
    }
    // A signal is for this process, which then ends the other.
    command.stdin(Stdio::null()).process_group(0);
    end_with_parent(&mut command);
    command.spawn()
}

/// Waits for the end of an agent. Returns its exit code; `None` outside if it was ended because a signal came.
fn ended(child: &mut Child, interrupt: &Interrupt) -> std::io::Result<Option<Option<i32>>> {
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status.code()));
        }
        if interrupt.is_raised() {
            child.kill()?;
            child.wait()?;
            return Ok(None);
        }
        std::thread::sleep(LOOK);
    }
}

/// Waits; false if a signal came meanwhile.
fn wait(time: Duration, interrupt: &Interrupt) -> bool {
    let until = Instant::now() + time;
    while Instant::now() < until {
        if interrupt.is_raised() {
            return false;
        }
        std::thread::sleep(LOOK);
    }
    true
}

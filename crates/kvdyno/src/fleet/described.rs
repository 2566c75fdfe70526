//! Agents on machines that a deployment file names, started and ended by its command lines.

use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::time::Duration;

use kvdyno_core::load::Interrupt;
use kvdyno_testbed::LoadMachine;

use super::end_line::EndLine;
use super::gathering::Fleet;
use super::token::{TOKEN_VARIABLE, Token};
use crate::exit::Failure;

/// Starts an agent on each machine, and waits until all have come. They reach this machine at `listen`.
///
/// # Errors
/// [`Failure`] if a command line fails, or an agent does not come.
pub fn start(
    machines: &[LoadMachine],
    listen: &str,
    token: &Token,
    interrupt: &Interrupt,
    patience: Duration,
) -> Result<Fleet, Failure> {
    let mut fleet = Fleet::listen(listen, machines.len() as u32, token)?;
    let port = fleet.address().rsplit(':').next().unwrap_or_default();
    let host = listen.rsplit_once(':').map_or(listen, |(host, _)| host);
    let conductor = format!("{host}:{port}");
    let shell = |machine: &LoadMachine, line: &str| {
        let mut command = Command::new("sh");
        command
            .args(["-c", line])
            .envs(machine.environment())
            .env("KVDYNO_CONDUCTOR", &conductor)
            .env(TOKEN_VARIABLE, token.text())
            // Ctrl-C is the conductor's to hear.
            .process_group(0)
            .stdin(Stdio::null())
            .stdout(Stdio::null());
        command
    };
    for machine in machines {
        // Also of one that did not start as it should: something of it may be there.
        fleet.ends.extend(machine.end.as_deref().map(|line| EndLine {
            machine: machine.name.clone(),
            line: line.to_owned(),
            command: shell(machine, line),
        }));
        let child = shell(machine, &machine.start).spawn().map_err(Failure::internal)?;
        fleet.children.push(child);
    }
    let expected = machines.iter().map(|machine| machine.name.clone()).collect();
    fleet.wait_for_all(interrupt, Some(patience), Some(expected))?;
    Ok(fleet)
}

//! Agents that the conductor starts itself: processes of this program on this machine, each with its share of
//! the processors.

use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

use kvdyno_core::load::Interrupt;
use kvdyno_core::measure::allowed_cpus;
use kvdyno_testbed::pin::{ClientsApart, Pinned};

use super::gathering::Fleet;
use super::token::{TOKEN_VARIABLE, Token};
use crate::exit::Failure;

/// This program, whatever has become of its file.
const PROGRAM: &str = "/proc/self/exe";

/// Starts `count` agents where the calling thread is, and waits until they have come.
///
/// # Errors
/// [`Failure`] if one cannot be started.
pub fn start(count: u32, interrupt: &Interrupt) -> Result<Fleet, Failure> {
    let token = Token::made()?;
    let mut fleet = Fleet::listen("127.0.0.1:0", count, &token)?;
    let processors = allowed_cpus();
    for index in 0..count {
        let own = share(&processors, index as usize, count as usize);
        let child = start_one(fleet.address(), &token, own)?;
        fleet.children.push(child);
    }
    fleet.wait_for_all(interrupt, None, None)?;
    Ok(fleet)
}

/// Starts one agent beside a conductor that others join from elsewhere.
///
/// # Errors
/// [`Failure`] if it cannot be started.
pub fn start_beside(fleet: &mut Fleet, token: &Token) -> Result<(), Failure> {
    let port = fleet.address().rsplit(':').next().unwrap_or_default().to_owned();
    let child = start_one(&format!("localhost:{port}"), token, allowed_cpus())?;
    fleet.children.push(child);
    Ok(())
}

/// Neighbouring processors for each, as equally as they can be dealt out; where there are fewer than agents,
/// several have the same.
fn share(all: &[usize], index: usize, count: usize) -> Vec<usize> {
    let (from, to) = (index * all.len() / count, (index + 1) * all.len() / count);
    match all.get(from..to) {
        Some(own) if !own.is_empty() => own.to_vec(),
        _ => all.get(from).copied().into_iter().collect(),
    }
}

fn start_one(address: &str, token: &Token, processors: Vec<usize>) -> Result<Child, Failure> {
    let mut command = Command::new(PROGRAM);
    command
        .args(["agent", "--conductor", address])
        .env(TOKEN_VARIABLE, token.text())
        // Ctrl-C is the conductor's to hear.
        .process_group(0)
        .stdin(Stdio::null())
        .stdout(Stdio::null());
    // A process has the processors of the thread that starts it.
    let starting = std::thread::spawn(move || {
        let pinned = Pinned { servers: Vec::new(), clients: processors };
        let _apart = ClientsApart::keep(&pinned)?;
        command.spawn()
    });
    let started = starting
        .join()
        .map_err(|_| Failure::internal("an agent was not started; report it as a bug of kvdyno"))?;
    started.map_err(|error| {
        Failure::internal(format!("cannot start an agent: {error}; use fewer agents"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processors_are_dealt_out_whole_and_everybody_has_one() {
        let all = [0, 1, 2, 3, 6, 7, 8];
        let of = |count| (0..count).map(|index| share(&all, index, count)).collect::<Vec<_>>();
        assert_eq!(of(2), [vec![0, 1, 2], vec![3, 6, 7, 8]]);
        assert_eq!(of(7).concat(), all);
        assert!(of(10).iter().all(|own| own.len() == 1), "{:?}", of(10));
    }
}

//! Command lines that end agents on other machines once a run is over. They run side by side and within a time limit: one
//! that hangs keeps nobody waiting. Their environment holds the token of the agents, so a command is never printed.

use std::process::{Child, Command};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};

/// Longest time that the lines have.
const WITHIN: Duration = Duration::from_secs(20);
/// Time between two looks at them.
const LOOK: Duration = Duration::from_millis(20);

/// A command line that ends an agent.
pub struct EndLine {
    /// Name of the agent's machine.
    pub machine: String,
    /// The line, as the deployment file has it.
    pub line: String,
    /// The shell that runs it, in a process group of its own.
    pub command: Command,
}

/// Runs all lines and warns about each that does not succeed.
pub fn run_all(lines: Vec<EndLine>) {
    for problem in problems(lines, WITHIN) {
        warn_user!("kvdyno: {problem}");
    }
}

/// Runs all lines side by side. Returns what went wrong, one text a line.
fn problems(lines: Vec<EndLine>, within: Duration) -> Vec<String> {
    let until = Instant::now() + within;
    let started = lines.into_iter().map(|mut end| (end.command.spawn(), end.machine, end.line));
    let started: Vec<_> = started.collect();
    let each = started.into_iter().filter_map(|(child, machine, line)| {
        let why = match child {
            Ok(mut child) => ended(&mut child, until)?,
            Err(error) => error.to_string(),
        };
        Some(format!(
            "the end line of {machine} (`{line}`) {why}: see what is left on that machine"
        ))
    });
    each.collect()
}

/// Waits for a line. Returns how it failed, if it did.
fn ended(child: &mut Child, until: Instant) -> Option<String> {
    loop {
        match child.try_wait() {
            Ok(Some(status)) if status.success() => return None,
            Ok(Some(status)) => return Some(format!("failed ({status})")),
            Ok(None) if Instant::now() < until => std::thread::sleep(LOOK),
            Ok(None) => {
                let _ = kill_process_group(Pid::from_child(child), Signal::KILL);
                let _ = child.wait();
                return Some("did not end in time".to_owned());
            }
            Err(error) => return Some(error.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::CommandExt;

    use super::*;

    fn line(machine: &str, line: &str) -> EndLine {
        let mut command = Command::new("sh");
        command
            .args(["-c", line])
            .env("KVDYNO_TOKEN", "a-token-that-nobody-may-see")
            .process_group(0);
        EndLine { machine: machine.to_owned(), line: line.to_owned(), command }
    }

    #[test]
    fn lines_that_fail_or_hang_are_told_without_their_environment() {
        let begun = Instant::now();
        let lines = vec![
            line("a", "sleep 60"),
            line("b", "exit 3"),
            line("c", "sleep 60"),
            line("d", "true"),
        ];
        let told = problems(lines, Duration::from_millis(300));
        assert!(begun.elapsed() < Duration::from_secs(10), "{told:?}");
        assert_eq!(told.len(), 3, "{told:?}");
        let why = [
            "a (`sleep 60`) did not end in time",
            "b (`exit 3`) failed (exit status: 3)",
            "c (`sleep 60`) did not",
        ];
        for (told, why) in told.iter().zip(why) {
            assert!(told.contains(why) && !told.contains("token"), "{told}");
        }
    }
}

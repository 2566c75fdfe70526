//! Shares between all processes of a testbed what they have in common: they end with their starter, they can be
//! found in /proc, and tools among them are run to their end.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use rustix::io::Errno;
use rustix::process::{Signal, getppid, set_parent_process_death_signal};

use crate::error::TestbedError;

/// Has the kernel kill the process when the thread that starts it ends.
pub fn end_with_parent(command: &mut Command) {
    // The parent's own number, as its children see it: 0 would be a parent in another namespace.
    let parent = std::process::id();
    // SAFETY: between fork and exec this makes two system calls and builds an error from a number;
    // none of it allocates or locks.
    unsafe {
        command.pre_exec(move || {
            set_parent_process_death_signal(Some(Signal::KILL))?;
            // The parent may have died before the call above.
            if getppid().map(|pid| pid.as_raw_pid() as u32) != Some(parent) {
                return Err(Errno::SRCH.into());
            }
            Ok(())
        });
    }
}

/// Returns the number by which /proc shows our child `pid`. It is another one if we live in a PID namespace and /proc is
/// that of the machine, as a keeper's is.
#[must_use]
pub fn visible_pid(pid: u32) -> u32 {
    if std::process::id() == own_visible_pid() {
        return pid;
    }
    let parent = own_visible_pid();
    let numbers = fs::read_dir("/proc").into_iter().flatten().flatten();
    let mut numbers = numbers.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    numbers.find(|number| is_child(*number, parent, pid)).unwrap_or(pid)
}

/// Returns the number by which /proc shows this process.
#[must_use]
pub fn own_visible_pid() -> u32 {
    let own = fs::read_link("/proc/self").ok();
    own.and_then(|link| link.to_str()?.parse().ok()).unwrap_or_else(std::process::id)
}

/// Returns true if `number` is a child of `parent`, and `inner` in its own namespace (proc_pid_status(5), NSpid).
fn is_child(number: u32, parent: u32, inner: u32) -> bool {
    let status = fs::read_to_string(format!("/proc/{number}/status")).unwrap_or_default();
    let field = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name))?;
        line.split_ascii_whitespace().last()?.parse::<u32>().ok()
    };
    field("PPid:") == Some(parent) && field("NSpid:") == Some(inner)
}

/// Looks a program up in the search path, and where Debian keeps servers.
#[must_use]
pub fn look_up(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let more = ["/usr/local/sbin", "/usr/sbin", "/sbin"].map(PathBuf::from);
    let folders = std::env::split_paths(&path).chain(more);
    folders.map(|folder| folder.join(program)).find(|file| is_executable(file))
}

fn is_executable(file: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    fs::metadata(file).is_ok_and(|data| data.is_file() && data.permissions().mode() & 0o111 != 0)
}

/// Runs a tool to its end and gives what it printed.
///
/// # Errors
/// [`TestbedError::Refused`] with the last of its words if it fails.
pub fn run<A: AsRef<OsStr>>(
    program: &Path,
    arguments: impl IntoIterator<Item = A>,
) -> Result<String, TestbedError> {
    let mut command = Command::new(program);
    command.args(arguments);
    run_command(&mut command)
}

/// Runs a tool like [`run`], with a folder, an environment or whatever else the command has.
///
/// # Errors
/// [`TestbedError::Refused`] with the last of its words if it fails.
pub fn run_command(command: &mut Command) -> Result<String, TestbedError> {
    let program = Path::new(command.get_program());
    let name = program.file_name().unwrap_or(program.as_os_str()).to_string_lossy().into_owned();
    end_with_parent(command);
    let output = command.stdin(Stdio::null()).output();
    let output = output.map_err(TestbedError::system("run", &name))?;
    let told = String::from_utf8_lossy(&output.stdout).into_owned();
    if output.status.success() {
        return Ok(told);
    }
    let errors = String::from_utf8_lossy(&output.stderr);
    let lines: Vec<&str> = told.lines().chain(errors.lines()).map(str::trim).collect();
    let lines: Vec<&str> = lines.into_iter().filter(|line| !line.is_empty()).collect();
    let last = lines[lines.len().saturating_sub(6)..].join(" | ");
    Err(TestbedError::Refused { node: name, problem: format!("{} ({last})", output.status) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tool_that_fails_tells_its_last_words() {
        let shell = look_up("sh").unwrap();
        assert_eq!(run(&shell, ["-c", "echo hello"]).unwrap(), "hello\n");
        let error = run(&shell, ["-c", "echo why >&2; exit 3"]).unwrap_err().to_string();
        assert_eq!(error, "sh: exit status: 3 (why)");
        assert!(look_up("no-such-program").is_none());
    }

    #[test]
    fn outside_a_namespace_numbers_are_as_they_are() {
        let mut child = Command::new("sleep").arg("1000").spawn().unwrap();
        assert_eq!(visible_pid(child.id()), child.id());
        assert!(is_child(child.id(), own_visible_pid(), child.id()));
        child.kill().unwrap();
        child.wait().unwrap();
    }
}

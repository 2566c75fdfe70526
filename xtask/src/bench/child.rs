//! A process that is run to its end, and the processor time that it took: what `wait4` says, from
//! the first instruction to the last, nothing subtracted.

use std::io::Read;
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::steps::{self, Failure};

/// Runs the command to its end and returns its processor time, in the program and in the kernel on
/// its behalf. What it prints is shown only if it fails.
#[allow(clippy::zombie_processes)] // wait4 below waits for it, and tells what it used.
pub(super) fn cpu_time(command: &mut Command) -> Result<Duration, Failure> {
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|source| steps::start_failure(command, source))?;
    let mut stdout = String::new();
    if let Some(pipe) = &mut child.stdout {
        // Output that is no text is left out; how the process ended decides.
        let _ = pipe.read_to_string(&mut stdout);
    }
    let (mut status, pid) = (0, child.id() as libc::pid_t);
    // SAFETY: a rusage of zeros is a valid value.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: both pointers are to live values that the call fills; the process is a child of this
    // one that nobody else waits for.
    let waited = unsafe { libc::wait4(pid, &raw mut status, 0, &raw mut usage) };
    if waited != pid {
        return Err(steps::start_failure(command, std::io::Error::last_os_error()));
    }
    if !libc::WIFEXITED(status) || libc::WEXITSTATUS(status) != 0 {
        print!("{stdout}");
        return Err(steps::failure(command, &format!("wait status {status}")));
    }
    let time = |t: libc::timeval| Duration::new(t.tv_sec as u64, t.tv_usec as u32 * 1000);
    Ok(time(usage.ru_utime) + time(usage.ru_stime))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_is_seen_and_sleep_is_not() {
        let work = "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done";
        let worked = cpu_time(Command::new("sh").args(["-c", work])).unwrap();
        let slept = cpu_time(Command::new("sleep").arg("0.3")).unwrap();
        assert!(worked > slept + Duration::from_millis(20), "{worked:?} {slept:?}");
    }

    #[test]
    fn a_process_that_fails_is_no_measurement() {
        let error = cpu_time(Command::new("sh").args(["-c", "exit 7"])).unwrap_err();
        assert!(error.to_string().contains("sh -c exit 7"), "{error}");
        assert!(cpu_time(Command::new("sh").args(["-c", "kill -9 $$"])).is_err());
    }
}

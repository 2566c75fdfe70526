//! Runs a process to its end, and tells what it used: the processor time by `wait4`, from the first instruction to
//! the last, nothing subtracted, and its most memory.

use std::io::Read;
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::steps::{self, StepFailure};

/// Pause between two looks at the memory of a process.
const LOOK: Duration = Duration::from_millis(50);

/// Resources that a process used, and its output.
pub(super) struct Used {
    /// Processor time in the program and in the kernel on its behalf.
    pub cpu: Duration,
    /// Most resident memory, bytes, as seen every 50 ms. `wait4` would count this process's own
    /// memory as well, for the other is begun as a copy of it.
    pub peak_rss: u64,
    /// Its standard output.
    pub said: String,
}

/// Runs the command to its end. Its output is shown only if it fails.
#[allow(clippy::zombie_processes)] // wait4 below waits for it, and tells what it used.
pub(super) fn run(command: &mut Command) -> Result<Used, StepFailure> {
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|source| steps::start_failure(command, source))?;
    let (mut said, pid) = (Vec::new(), child.id() as libc::pid_t);
    let pipe = child.stdout.take();
    let peak_rss = std::thread::scope(|scope| {
        let watching = scope.spawn(|| watch(pid));
        if let Some(mut pipe) = pipe {
            // Output that ends early is kept as it is; the exit of the process decides.
            let _ = pipe.read_to_end(&mut said);
        }
        watching.join().unwrap_or_default()
    });
    let said = String::from_utf8_lossy(&said).into_owned();
    let mut status = 0;
    // SAFETY: a rusage of zeros is a valid value.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: both pointers are to live values that the call fills; the process is a child of this
    // one that nobody else waits for.
    let waited = unsafe { libc::wait4(pid, &raw mut status, 0, &raw mut usage) };
    if waited != pid {
        return Err(steps::start_failure(command, std::io::Error::last_os_error()));
    }
    if !libc::WIFEXITED(status) || libc::WEXITSTATUS(status) != 0 {
        print!("{said}");
        return Err(steps::failure(command, &format!("wait status {status}")));
    }
    let time = |t: libc::timeval| Duration::new(t.tv_sec as u64, t.tv_usec as u32 * 1000);
    Ok(Used { cpu: time(usage.ru_utime) + time(usage.ru_stime), peak_rss, said })
}

/// Returns the process's most memory, bytes, watched until it has ended: a process that has ended has no memory
/// (proc(5), VmHWM).
fn watch(pid: libc::pid_t) -> u64 {
    let mut most = 0;
    let field = |text: &str| -> Option<u64> {
        let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
        line.split_ascii_whitespace().next()?.parse().ok()
    };
    while let Some(kib) =
        std::fs::read_to_string(format!("/proc/{pid}/status")).ok().and_then(|text| field(&text))
    {
        most = most.max(kib * 1024);
        std::thread::sleep(LOOK);
    }
    most
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_is_seen_and_sleep_is_not() {
        let work = "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done";
        let worked = run(Command::new("sh").args(["-c", work])).unwrap();
        let slept = run(Command::new("sleep").arg("0.3")).unwrap();
        let (worked, slept, rss) = (worked.cpu, slept.cpu, slept.peak_rss);
        assert!(worked > slept + Duration::from_millis(20), "{worked:?} {slept:?}");
        assert!((64 << 10..64 << 20).contains(&rss), "{rss}");
    }

    #[test]
    fn a_process_that_fails_is_no_measurement() {
        let error = run(Command::new("sh").args(["-c", "exit 7"])).err().unwrap();
        assert!(error.to_string().contains("sh -c exit 7"), "{error}");
        assert!(run(Command::new("sh").args(["-c", "kill -9 $$"])).is_err());
        let said = run(Command::new("echo").arg("hello")).unwrap().said;
        assert_eq!(said, "hello\n");
    }
}

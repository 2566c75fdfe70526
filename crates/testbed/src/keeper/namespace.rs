//! Starts a process in a PID namespace of its own: when its first process ends, the kernel kills all that are in the
//! namespace, whatever they have done to get away (pid_namespaces(7)). That first process inherits what its parents leave
//! behind, so it does nothing else than wait for all of them: else each would stay as a zombie.

use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;

use rustix::fs::{Mode, OFlags, open};
use rustix::process::{Signal, getegid, geteuid, set_parent_process_death_signal};

/// Files of /proc with which a user namespace is given its users, and what to write into them.
type Maps = [(&'static std::ffi::CStr, Vec<u8>); 3];

/// Has the command run in a PID namespace: as root, or in a user namespace of its own where users may
/// make them. Where neither is allowed it runs as it is.
///
/// The started process then waits for the first process of the namespace, which waits for the command; both end as it does.
/// Killing it kills the first process and with it all others.
pub fn in_namespace(command: &mut Command) {
    let (user, group) = (geteuid().as_raw(), getegid().as_raw());
    let maps: Maps = [
        (c"/proc/self/setgroups", b"deny".to_vec()),
        (c"/proc/self/uid_map", format!("{user} {user} 1").into_bytes()),
        (c"/proc/self/gid_map", format!("{group} {group} 1").into_bytes()),
    ];
    // SAFETY: between fork and exec only system calls are made, on memory that was there before;
    // nothing allocates or locks.
    unsafe { command.pre_exec(move || enter(&maps)) };
}

fn enter(maps: &Maps) -> io::Result<()> {
    if !unshare(libc::CLONE_NEWPID) {
        if !unshare(libc::CLONE_NEWUSER | libc::CLONE_NEWPID) {
            return Ok(());
        }
        for (path, text) in maps {
            write(path, text)?;
        }
    }
    // The caller itself stays outside: the first child is process 1 within.
    // SAFETY: this process has one thread, having just been forked.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        0 => {
            die_with_parent()?;
            stay_behind()
        }
        inner => wait_for(inner),
    }
}

/// Lets this process stay as number 1, while its child goes on.
fn stay_behind() -> io::Result<()> {
    // SAFETY: this process has one thread, having just been forked.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        0 => Ok(()),
        child => wait_for(child),
    }
}

fn unshare(what: libc::c_int) -> bool {
    // SAFETY: the call takes no memory.
    unsafe { libc::unshare(what) == 0 }
}

fn write(path: &std::ffi::CStr, text: &[u8]) -> io::Result<()> {
    let file = open(path, OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty())?;
    match rustix::io::write(&file, text)? == text.len() {
        true => Ok(()),
        false => Err(io::ErrorKind::WriteZero.into()),
    }
}

/// Has the kernel kill this process when its parent ends: a parent outside of the namespace may kill even process 1 in it.
/// Should the parent be gone already, the closed standard input ends the keeper.
fn die_with_parent() -> io::Result<()> {
    Ok(set_parent_process_death_signal(Some(Signal::KILL))?)
}

/// Holds nothing open, waits for every process that ends, and ends as the inner process did. Never returns: the code that
/// follows is for the inner process.
fn wait_for(inner: libc::pid_t) -> ! {
    let mut status = 0;
    // SAFETY: all descriptors of this process are given up, and none is used afterwards; waitpid
    // fills a live integer; _exit does not return.
    unsafe {
        if libc::syscall(libc::SYS_close_range, 0, libc::c_uint::MAX, 0) != 0 {
            for descriptor in 0..65_536 {
                libc::close(descriptor);
            }
        }
        loop {
            match libc::waitpid(-1, &raw mut status, 0) {
                -1 if *libc::__errno_location() == libc::EINTR => {}
                // One that was left behind.
                other if other != -1 && other != inner => {}
                _ => break,
            }
        }
        libc::_exit(if libc::WIFEXITED(status) { libc::WEXITSTATUS(status) } else { 1 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Stdio;

    /// The shell is number 2 where namespaces may be made; else it is any other. Either way its words and its end come
    /// through.
    #[test]
    fn the_command_runs_and_its_end_comes_through() {
        let mut command = Command::new("sh");
        command.args(["-c", "echo $$; exit 7"]).stdout(Stdio::piped());
        in_namespace(&mut command);
        let output = command.output().unwrap();
        assert_eq!(output.status.code(), Some(7));
        let number: u32 = String::from_utf8(output.stdout).unwrap().trim().parse().unwrap();
        let root = geteuid().is_root();
        assert!(number == 2 || !root || !may_unshare(), "{number}");
    }

    /// Returns true if this process may make namespaces: root in a container may lack the right, too.
    fn may_unshare() -> bool {
        let status = Command::new("unshare").args(["--pid", "--fork", "true"]).status();
        status.is_ok_and(|status| status.success())
    }

    #[test]
    #[ignore = "needs a PID namespace"]
    fn what_is_left_behind_does_not_stay_as_a_zombie() {
        // A program by a name that nobody else has, left behind by the shell that started it.
        let folder = tempfile::tempdir().unwrap();
        let name = format!("orphan-{}", std::process::id());
        let program = folder.path().join(&name);
        std::os::unix::fs::symlink("/bin/sleep", &program).unwrap();
        let line = format!("sh -c '{} 0.2 & exit 0'; read end", program.display());
        let mut command = Command::new("sh");
        command.args(["-c", &line]).stdin(Stdio::piped());
        in_namespace(&mut command);
        let mut child = command.spawn().unwrap();
        let states = || -> Vec<String> {
            let entries = std::fs::read_dir("/proc").unwrap().flatten();
            let stats = entries.filter_map(|e| std::fs::read_to_string(e.path().join("stat")).ok());
            stats.filter(|stat| stat.contains(&format!("({name})"))).collect()
        };
        let within = |holds: &dyn Fn() -> bool| {
            (0..2000).any(|_| {
                std::thread::sleep(std::time::Duration::from_millis(5));
                holds()
            })
        };
        let seen = within(&|| !states().is_empty());
        let gone = within(&|| states().is_empty());
        // The shell reads its end, and everything goes.
        drop(child.stdin.take());
        child.wait().unwrap();
        assert!(seen, "it never ran");
        assert!(gone, "it stays: {:?}", states());
    }

    #[test]
    fn a_command_that_is_not_there_is_an_error() {
        let mut command = Command::new("no-such-program");
        in_namespace(&mut command);
        assert_eq!(command.spawn().err().unwrap().kind(), io::ErrorKind::NotFound);
    }
}

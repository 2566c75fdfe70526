//! Processes that servers start meanwhile. Redis writes its snapshots and rewrites its file in a
//! process of its own, and the result should name what this costs.

use std::time::Duration;

use super::super::clock::{Nanos, now};
use super::super::procfs::{ProcFile, ProcessCounters};
use super::Offspring;

/// Time between two looks: a rewrite may take less than a second.
pub(super) const EVERY: Duration = Duration::from_millis(100);
/// Time between two notes of how much such a process has worked, ns.
const NOTED: Nanos = 1_000_000_000;
/// Highest number of such processes that are kept of a phase.
const KEPT: usize = 1_000;

/// Watch for processes that the servers start.
#[derive(Debug)]
pub(super) struct Nursery {
    files: Vec<Option<ProcFile>>,
    seen: Vec<Offspring>,
    /// Process number of each of `seen`.
    pids: Vec<u32>,
}

impl Nursery {
    pub(super) fn new(servers: &[u32]) -> Nursery {
        let files = servers.iter().map(|pid| children(*pid)).collect();
        Nursery { files, seen: Vec::new(), pids: Vec::new() }
    }

    /// Watches another process as the server at this place, or a new server behind the last.
    pub(super) fn watch(&mut self, server: usize, pid: u32) {
        if server >= self.files.len() {
            self.files.resize_with(server + 1, || None);
        }
        self.files[server] = children(pid);
    }

    /// Returns all processes that were seen.
    pub(super) fn seen(self) -> Vec<Offspring> {
        self.seen
    }

    pub(super) fn look(&mut self) {
        let at = now();
        for (server, file) in self.files.iter_mut().enumerate() {
            let Some(children) = file.as_mut().and_then(ProcFile::read) else { continue };
            let children: Vec<u32> =
                children.split_ascii_whitespace().filter_map(|pid| pid.parse().ok()).collect();
            for pid in children {
                match self.pids.iter().rposition(|known| *known == pid) {
                    Some(index) => {
                        self.seen[index].to = at;
                        // A process that was only just made still has the name of its parent.
                        if let Some(name) = title(pid) {
                            self.seen[index].name = name;
                        }
                        if let Some(worked) = worked(pid) {
                            note(&mut self.seen[index].work, at, worked);
                        }
                    }
                    None if self.seen.len() >= KEPT => {}
                    None => {
                        let Some(name) = title(pid) else { continue };
                        self.pids.push(pid);
                        let work = worked(pid).map(|worked| (at, worked)).into_iter().collect();
                        self.seen.push(Offspring { server, name, from: at, to: at, work });
                    }
                }
            }
        }
    }
}

/// Opens the file that lists the processes which this one has started.
fn children(pid: u32) -> Option<ProcFile> {
    ProcFile::open(format!("/proc/{pid}/task/{pid}/children")).ok()
}

/// Reads the processor time that a process has had.
fn worked(pid: u32) -> Option<Duration> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    ProcessCounters::parse(&stat).map(|used| used.user + used.system)
}

/// Notes how much a process has worked. The newest note is always the last; those before it are at
/// least [`NOTED`] apart.
fn note(work: &mut Vec<(Nanos, Duration)>, at: Nanos, worked: Duration) {
    if let [.., before, newest] = &mut work[..]
        && at < before.0 + NOTED
    {
        *newest = (at, worked);
    } else {
        work.push((at, worked));
    }
}

/// Reads the first word of the command line that a process shows, without folders: its title, where it
/// gave itself one.
fn title(pid: u32) -> Option<String> {
    let line = std::fs::read(format!("/proc/{pid}/cmdline")).ok()?;
    let text = String::from_utf8_lossy(&line);
    let word = text.split(['\0', ' ']).next().filter(|word| !word.is_empty())?;
    Some(word.rsplit('/').next().unwrap_or(word).to_owned())
}

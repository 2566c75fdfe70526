//! Looks in /proc whether processes that were stopped stand still, by all their threads.

use std::fs;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

/// Returns true if no thread of the group's processes comes back to what it did. `leader` is its number in /proc; one that is not
/// waited for yet is there even if it is over.
pub(crate) fn stands_still(leader: u32) -> bool {
    let mut processes = group_of(leader).peekable();
    processes.peek().is_some() && processes.all(|process| is_still(&process))
}

/// Waits until no thread of these processes, which were stopped, comes back to what it did, but no longer than `limit`.
pub(crate) fn await_still(processes: &[u32], limit: Duration) {
    let begin = Instant::now();
    let still = |pid: &u32| is_still(Path::new(&format!("/proc/{pid}")));
    while !processes.iter().all(still) && begin.elapsed() < limit {
        thread::sleep(Duration::from_micros(200));
    }
}

/// The folders in /proc of a group's processes.
pub(crate) fn group_of(leader: u32) -> impl Iterator<Item = PathBuf> {
    let paths = entries(Path::new("/proc")).map(|entry| entry.path());
    paths.filter(move |path| state_and_group(path).is_some_and(|(_, group)| group == leader))
}

/// Returns true if all threads of a process are stopped (`T`), over, or wait for a disk (`D`) in the kernel, which they leave only to
/// be stopped. One that is gone has none.
fn is_still(process: &Path) -> bool {
    let stopped = |(state, _)| ['T', 't', 'Z', 'X', 'D'].contains(&state);
    entries(&process.join("task")).all(|thread| state_and_group(&thread.path()).is_none_or(stopped))
}

fn entries(path: &Path) -> impl Iterator<Item = fs::DirEntry> + use<> {
    fs::read_dir(path).into_iter().flatten().flatten()
}

/// State and group of a process or thread, by its folder in /proc. Behind the name, which may hold anything, come state,
/// parent, group.
fn state_and_group(path: &Path) -> Option<(char, u32)> {
    let stat = fs::read_to_string(path.join("stat")).ok()?;
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
    let state = fields.next()?.chars().next()?;
    Some((state, fields.nth(1)?.parse().ok()?))
}

//! Reads what servers tell in their logs of their work beside requests, where a kind of testbed knows how to
//! read it.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;
use std::time::SystemTime;

use kvdyno_core::store::{Work, end_of_log};

use crate::registry::kind;

/// Returns the work of the server process `pid` of a testbed of this kind that ended since a moment; nothing if its kind
/// tells none or its log, which is its standard output, cannot be read.
#[must_use]
pub fn work_of(kind_name: &str, pid: u32, since: SystemTime) -> Vec<Work> {
    let Some(read) = kind(kind_name).and_then(|kind| kind.changes.read_work) else {
        return Vec::new();
    };
    let log = end_of_log(Path::new(&format!("/proc/{pid}/fd/1"))).unwrap_or_default();
    log.lines().filter_map(read).filter(|work| work.to >= since).collect()
}

/// Most bytes of a log that are read at one look; of more the last are.
const MOST_NEWS: u64 = 1 << 20;

/// Follows the logs of servers: each piece of work is told once, soon after it was logged.
#[derive(Debug)]
pub struct LogWatch {
    read_work: Option<fn(&str) -> Option<Work>>,
    /// Position up to which the log of each process was read.
    read: BTreeMap<u32, u64>,
}

impl LogWatch {
    /// Watches the servers of a testbed of this kind.
    #[must_use]
    pub fn new(kind_name: &str) -> LogWatch {
        let read_work = kind(kind_name).and_then(|kind| kind.changes.read_work);
        LogWatch { read_work, read: BTreeMap::new() }
    }

    /// Returns what the server process `pid` has logged of its work since the last call; nothing the first time.
    pub fn news(&mut self, pid: u32) -> Vec<Work> {
        let Some(read_work) = self.read_work else { return Vec::new() };
        let text = self.grown(pid, Path::new(&format!("/proc/{pid}/fd/1"))).unwrap_or_default();
        text.lines().filter_map(read_work).collect()
    }

    /// Returns the whole lines that a log has grown by; nothing of a log that is no file.
    fn grown(&mut self, pid: u32, log: &Path) -> std::io::Result<String> {
        let mut file = File::open(log)?;
        let metadata = file.metadata()?;
        if !metadata.is_file() {
            return Ok(String::new());
        }
        let end = metadata.len();
        let from = *self.read.entry(pid).or_insert(end);
        let from = from.min(end).max(end.saturating_sub(MOST_NEWS));
        file.seek(SeekFrom::Start(from))?;
        let mut bytes = Vec::new();
        file.take(MOST_NEWS).read_to_end(&mut bytes)?;
        let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        self.read.insert(pid, from + whole as u64);
        Ok(String::from_utf8_lossy(&bytes[..whole]).into_owned())
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn each_line_of_a_growing_log_is_told_once_and_whole() {
        let mut log = tempfile::NamedTempFile::new().unwrap();
        let mut watch = LogWatch::new("redis-sentinel");
        assert!(watch.read_work.is_some());
        writeln!(log, "before").unwrap();
        let path = log.path().to_owned();
        let mut grown = || watch.grown(1, &path).unwrap();
        assert_eq!(grown(), "");
        write!(log, "one\ntw").unwrap();
        assert_eq!(grown(), "one\n");
        writeln!(log, "o").unwrap();
        assert_eq!([grown(), grown()], ["two\n", ""]);
        log.as_file().set_len(0).unwrap();
        assert_eq!(grown(), "", "it was begun anew");
    }
}

//! What servers tell in their logs of their work beside requests, where a kind of testbed knows how to
//! read it.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::time::SystemTime;

use kvdyno_core::store::Work;

use crate::registry::kind;

/// Bytes of a log's end that are read.
const MOST: u64 = 16 << 20;

/// Work of the server process `pid` of a testbed of this kind that ended since a moment; nothing if its kind
/// tells none or its log, which is its standard output, cannot be read.
#[must_use]
pub fn work_of(kind_name: &str, pid: u32, since: SystemTime) -> Vec<Work> {
    let Some(read) = kind(kind_name).and_then(|kind| kind.changes.tells) else { return Vec::new() };
    let log = end_of(&format!("/proc/{pid}/fd/1")).unwrap_or_default();
    log.lines().filter_map(read).filter(|work| work.to >= since).collect()
}

fn end_of(path: &str) -> std::io::Result<String> {
    let mut file = File::open(path)?;
    let metadata = file.metadata()?;
    // A terminal or a pipe is nothing to read from.
    if !metadata.is_file() {
        return Ok(String::new());
    }
    file.seek(SeekFrom::Start(metadata.len().saturating_sub(MOST)))?;
    let mut bytes = Vec::new();
    file.take(MOST).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

//! What servers tell in their logs of their work beside requests, where a kind of testbed knows how to
//! read it.

use std::path::Path;
use std::time::SystemTime;

use kvdyno_core::store::{Work, end_of_log};

use crate::registry::kind;

/// Work of the server process `pid` of a testbed of this kind that ended since a moment; nothing if its kind
/// tells none or its log, which is its standard output, cannot be read.
#[must_use]
pub fn work_of(kind_name: &str, pid: u32, since: SystemTime) -> Vec<Work> {
    let Some(read) = kind(kind_name).and_then(|kind| kind.changes.tells) else { return Vec::new() };
    let log = end_of_log(Path::new(&format!("/proc/{pid}/fd/1"))).unwrap_or_default();
    log.lines().filter_map(read).filter(|work| work.to >= since).collect()
}

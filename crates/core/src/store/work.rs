//! What a store did beside answering requests: merging its files, writing a snapshot. It is set beside what
//! left its level meanwhile.

use std::fs::File;
use std::io::{Read, Result, Seek, SeekFrom};
use std::path::Path;
use std::time::SystemTime;

/// Bytes of a log's end that are read.
const MOST: u64 = 32 << 20;

/// A piece of such work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Work {
    /// What: `compaction`, `flush of a memtable`.
    pub what: String,
    /// When it began.
    pub from: SystemTime,
    /// When it ended; as `from` where that is not told.
    pub to: SystemTime,
}

/// The end of the log that a store writes of its work; of what is no file (a terminal, a pipe) nothing.
///
/// # Errors
/// What the system says if it cannot be read.
pub fn end_of_log(path: &Path) -> Result<String> {
    let mut file = File::open(path)?;
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        return Ok(String::new());
    }
    file.seek(SeekFrom::Start(metadata.len().saturating_sub(MOST)))?;
    let mut bytes = Vec::new();
    file.take(MOST).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

//! Work of a store beside answering requests, such as merging its files or writing a snapshot. Reports set
//! it beside figures that left their level meanwhile.

use std::fs::File;
use std::io::{Read, Result, Seek, SeekFrom};
use std::path::Path;
use std::time::SystemTime;

/// Number of bytes that are read of a log's end.
const MOST: u64 = 32 << 20;

/// Piece of such work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Work {
    /// Kind of work, such as `compaction` or `flush of a memtable`.
    pub what: String,
    /// Time at which it began.
    pub from: SystemTime,
    /// Time at which it ended; the same as `from` where that is not known.
    pub to: SystemTime,
}

/// Reads the end of the log that a store writes of its work; an empty text if `path` is no regular file (a
/// terminal, a pipe).
///
/// # Errors
/// The error of the system if it cannot be read.
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

//! Logs what `sim:` did wrong on purpose, to be compared with what kvdyno found.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use kvdyno_core::store::OperationId;

/// Entries kept in memory; a file takes all.
const KEPT: usize = 4_000_000;

/// Thing done wrong on purpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Imperfection {
    /// The request began in the stall and waited until its end.
    Stall,
    /// The put was answered OK and not stored.
    Lie,
    /// The put was stored, answered OK, and undone later.
    Lose,
    /// The get returned a version that had been written over before it began.
    Stale,
    /// The get returned the current version with one bit flipped.
    Corrupt,
    /// The get said that the record is not there though it is.
    Absent,
    /// The delete was answered OK, and undone later.
    Resurrect,
    /// The get found a record whose time to live had been over before it began.
    Outlive,
    /// The request failed and was not applied.
    Refuse,
    /// The read timed out.
    TimeoutRead,
    /// The write timed out and had been applied before.
    TimeoutApplied,
    /// The write timed out and is applied later.
    TimeoutLate,
    /// The write timed out and is never applied.
    TimeoutNever,
    /// The put was reported as failed and is applied.
    Phantom,
}

impl Imperfection {
    /// Returns its word in the log file.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Imperfection::Stall => "stall",
            Imperfection::Lie => "lie",
            Imperfection::Lose => "lose",
            Imperfection::Stale => "stale",
            Imperfection::Corrupt => "corrupt",
            Imperfection::Absent => "absent",
            Imperfection::Resurrect => "resurrect",
            Imperfection::Outlive => "outlive",
            Imperfection::Refuse => "refuse",
            Imperfection::TimeoutRead => "timeout-read",
            Imperfection::TimeoutApplied => "timeout-applied",
            Imperfection::TimeoutLate => "timeout-late",
            Imperfection::TimeoutNever => "timeout-never",
            Imperfection::Phantom => "phantom",
        }
    }
}

/// One imperfection.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LogEntry {
    /// Kind of what was done wrong.
    pub kind: Imperfection,
    /// The operation: for [`Imperfection::Lose`] and [`Imperfection::Resurrect`] the write undone.
    pub operation: OperationId,
    /// Key of the record; the first key of a scan.
    pub key: Vec<u8>,
}

/// All imperfections of one `sim:` store, in the order in which they took effect. Complete once
/// the store is dropped, or after [`super::SimStore::settle`].
#[derive(Debug, Default)]
pub struct SimLog {
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    entries: Vec<LogEntry>,
    file: Option<File>,
    unwritten: u64,
}

static NAMED: Mutex<BTreeMap<String, Arc<SimLog>>> = Mutex::new(BTreeMap::new());

/// Returns the log of the store opened with `name=NAME` in this process; the newest if there were several.
#[must_use]
pub fn log_named(name: &str) -> Option<Arc<SimLog>> {
    NAMED.lock().unwrap_or_else(PoisonError::into_inner).get(name).cloned()
}

impl SimLog {
    /// Opens a log that also appends to the file at `path`, and is found by `name`.
    pub(super) fn open(path: Option<&str>, name: Option<&str>) -> io::Result<Arc<SimLog>> {
        let file =
            path.map(|path| File::options().create(true).append(true).open(path)).transpose()?;
        let log = Arc::new(SimLog { inner: Mutex::new(Inner { file, ..Inner::default() }) });
        if let Some(name) = name {
            let mut named = NAMED.lock().unwrap_or_else(PoisonError::into_inner);
            named.insert(name.to_owned(), Arc::clone(&log));
        }
        Ok(log)
    }

    /// Adds an entry.
    pub(super) fn add(&self, kind: Imperfection, operation: OperationId, key: &[u8]) {
        let mut inner = self.inner();
        let mut missed = false;
        if let Some(file) = &mut inner.file {
            let mut line = serde_json::json!({
                "kind": kind.name(),
                "phase": operation.phase,
                "group": operation.group,
                "id": operation.id,
                "key": String::from_utf8_lossy(key),
            })
            .to_string();
            line.push('\n');
            missed = file.write_all(line.as_bytes()).is_err();
        }
        if inner.entries.len() < KEPT {
            inner.entries.push(LogEntry { kind, operation, key: key.to_vec() });
        } else {
            missed |= inner.file.is_none();
        }
        inner.unwritten += u64::from(missed);
    }

    /// Returns the first 4,000,000 imperfections so far.
    #[must_use]
    pub fn entries(&self) -> Vec<LogEntry> {
        self.inner().entries.clone()
    }

    /// Returns the number of imperfections that neither the file nor the memory took.
    #[must_use]
    pub fn unwritten(&self) -> u64 {
        self.inner().unwritten
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

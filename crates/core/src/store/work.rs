//! What a store did beside answering requests: merging its files, writing a snapshot. It is set beside what
//! left its level meanwhile.

use std::time::SystemTime;

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

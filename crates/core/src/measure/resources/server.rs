//! One server that is followed through all its processes: started again it has another number, and
//! its counters begin at nothing, but what it used before was used all the same.

use super::super::procfs::{ProcessCounters, ProcessFiles};

/// A server and what it has used.
#[derive(Debug)]
pub(super) struct Server {
    pid: u32,
    files: Option<ProcessFiles>,
    /// What its former processes had used when they were last seen.
    before: ProcessCounters,
    /// As it was last seen, former processes and all.
    last: ProcessCounters,
}

impl Server {
    pub(super) fn open(pid: u32) -> Server {
        let (before, last) = (ProcessCounters::default(), ProcessCounters::default());
        Server { pid, files: ProcessFiles::open(&pid.to_string()).ok(), before, last }
    }

    /// Number of its process now.
    pub(super) fn pid(&self) -> u32 {
        self.pid
    }

    /// It is this process from now on.
    pub(super) fn started_again(&mut self, pid: u32) {
        *self = Server { before: self.last, last: self.last, ..Server::open(pid) };
    }

    /// `None` while it is not there.
    pub(super) fn read(&mut self) -> Option<ProcessCounters> {
        let counted = self.files.as_mut()?.read()?;
        self.last = counted.on_top_of(&self.before);
        Some(self.last)
    }
}

//! A server that is followed through all its processes. Started again it has another process number
//! and its counters begin at zero, but what it used before counts all the same.

use super::super::procfs::{ProcessCounters, ProcessFiles};

/// Server, and the resources that it has used.
#[derive(Debug)]
pub(super) struct Server {
    pid: u32,
    files: Option<ProcessFiles>,
    /// Counters of its former processes when they were last seen.
    before: ProcessCounters,
    /// Counters when it was last seen, with those of former processes.
    last: ProcessCounters,
}

impl Server {
    pub(super) fn open(pid: u32) -> Server {
        let (before, last) = (ProcessCounters::default(), ProcessCounters::default());
        Server { pid, files: ProcessFiles::open(&pid.to_string()).ok(), before, last }
    }

    /// Returns the number of its process now.
    pub(super) fn pid(&self) -> u32 {
        self.pid
    }

    /// Goes on with another process of this server.
    pub(super) fn started_again(&mut self, pid: u32) {
        *self = Server { before: self.last, last: self.last, ..Server::open(pid) };
    }

    /// Reads the counters, former processes included; `None` while it is not there.
    pub(super) fn read(&mut self) -> Option<ProcessCounters> {
        let counted = self.files.as_mut()?.read()?;
        self.last = counted.on_top_of(&self.before);
        Some(self.last)
    }
}

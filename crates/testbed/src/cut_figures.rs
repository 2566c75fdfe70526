//! Figures of a cut of power: how much of what was written was at stake, and how fast all of it went dark.

use kvdyno_core::workload::fault::Lose;
use serde::{Deserialize, Serialize};

/// Figures of one cut of power, of all nodes that it met.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CutFigures {
    /// Time from the order to stand still until the last file system was shut, ns.
    pub frozen_ns: u64,
    /// Time from the first order to hold flushes until all disks did, ns, before that; `None` where disks cannot hold any.
    pub held_within_ns: Option<u64>,
    /// Bytes of files that lay in memory alone and are gone; `None` where the kernel does not tell.
    pub in_memory: Option<u64>,
    /// Number of writes since the last flush, or sectors of them, of which the cut decided what stays; `None` where the
    /// disks keep all that they were handed.
    pub undecided: Option<u64>,
    /// Bytes that the file systems had handed to their disks since they were last cut off, or since the testbed was set up;
    /// `None` where the kernel does not tell.
    #[serde(default)]
    pub written: Option<u64>,
    /// Kind of loss of what disks had been handed and had not flushed.
    pub lose: Lose,
}

//! What is done to a testbed while a phase runs, as plain data: whoever holds the testbed carries it
//! out. Jepsen calls the whole of it the nemesis.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// What is done to a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FaultKind {
    /// Its process is killed (-9).
    Kill,
    /// Its process is ended in good order.
    Stop,
    /// Its process stands still (SIGSTOP).
    Pause,
    /// Its process is killed and started again at once.
    Restart,
    /// It rewrites its log of writes, as Redis does with its append-only file.
    Rewrite,
}

impl FaultKind {
    /// Every kind with the word for it.
    pub const ALL: [(&'static str, FaultKind); 5] = [
        ("kill", FaultKind::Kill),
        ("stop", FaultKind::Stop),
        ("pause", FaultKind::Pause),
        ("restart", FaultKind::Restart),
        ("rewrite", FaultKind::Rewrite),
    ];

    /// The word for it.
    #[must_use]
    pub fn name(self) -> &'static str {
        Self::ALL.iter().find(|(_, kind)| *kind == self).map_or("", |(word, _)| word)
    }

    /// Something is left to be repaired.
    #[must_use]
    pub fn lasts(self) -> bool {
        matches!(self, FaultKind::Kill | FaultKind::Stop | FaultKind::Pause)
    }
}

/// Which node is meant, decided when the fault is due.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Aim {
    /// One that runs and holds data, by chance.
    Any,
    /// Each one that runs and holds data.
    All,
    /// One that takes writes and passes them on.
    Primary,
    /// One that gets its data from a primary.
    Replica,
    /// The one of this number, from 1.
    Number(u32),
    /// The one of this name.
    Name(String),
}

/// A fault of a phase.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FaultPlan {
    /// What is done.
    pub kind: FaultKind,
    /// To which node.
    pub aim: Aim,
    /// When, from the phase's begin.
    pub at: Duration,
    /// What it did is put right so long after it was done; at the latest when the phase is over.
    pub repair: Option<Duration>,
    /// It is done again at this interval, until the phase is over.
    pub every: Option<Duration>,
}

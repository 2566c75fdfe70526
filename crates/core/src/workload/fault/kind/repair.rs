//! Repairs of what a fault did to a node.

use serde::{Deserialize, Serialize};

use super::{LOSSY, PARTITION, ProcessOutcome, SLOW};

/// Repair of what a fault did.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Repair {
    /// Starts the node at the same address with the same data; done when it serves again. A node that runs is killed
    /// first, one whose power is off gets it back.
    Start,
    /// Lets the process go on (SIGCONT).
    Resume,
    /// Ends trouble with the network.
    Heal(Trouble),
    /// Deletes what filled its disk.
    FreeDisk,
    /// Ends trouble with its disk.
    Mend(DiskTrouble),
}

/// Trouble with a node's network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Trouble {
    /// [`PARTITION`].
    Partition,
    /// [`LOSSY`].
    Lossy,
    /// [`SLOW`].
    Slow,
}

/// Trouble with a disk: its misbehaviour without the values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DiskTrouble {
    /// It answers flushes and does not do them.
    Lies,
    /// Writes and flushes take longer.
    Slow,
    /// It answers nothing.
    Stall,
    /// It refuses what it is asked for.
    Error,
    /// Bits of what it stores or reads flip.
    Rot,
}

impl DiskTrouble {
    /// Returns true if the repair starts the node again on a file system that is mounted again: what a file system
    /// and a store have in memory of such a disk is no longer what is on it.
    #[must_use]
    pub fn renews(self) -> bool {
        matches!(self, DiskTrouble::Error | DiskTrouble::Rot)
    }

    /// Returns the outcome of the repair for the node's process.
    fn outcome(self) -> ProcessOutcome {
        if self.renews() { ProcessOutcome::Renewed } else { ProcessOutcome::Untouched }
    }
}

impl Repair {
    /// Every repair.
    pub const ALL: [Repair; 11] = [
        Repair::Start,
        Repair::Resume,
        Repair::Heal(Trouble::Partition),
        Repair::Heal(Trouble::Lossy),
        Repair::Heal(Trouble::Slow),
        Repair::FreeDisk,
        Repair::Mend(DiskTrouble::Lies),
        Repair::Mend(DiskTrouble::Slow),
        Repair::Mend(DiskTrouble::Stall),
        Repair::Mend(DiskTrouble::Error),
        Repair::Mend(DiskTrouble::Rot),
    ];

    /// Returns the words for it in results.
    #[must_use]
    pub fn describe(self) -> &'static str {
        match self {
            Repair::Start => "start again",
            Repair::Resume => "resume",
            Repair::Heal(Trouble::Partition) => "reconnect",
            Repair::Heal(Trouble::Lossy | Trouble::Slow) => "network as before",
            Repair::FreeDisk => "disk freed",
            Repair::Mend(_) => "disk mended",
        }
    }

    /// Returns the word for it on the command line and in deployment files, and its effect in a few more words.
    #[must_use]
    pub fn word(self) -> (&'static str, &'static str) {
        match self {
            Repair::Start => ("start", "Start the node"),
            Repair::Resume => ("resume", "Resume the node (SIGCONT)"),
            Repair::Heal(_) => ("heal", "Undo the faults of the node's network"),
            Repair::FreeDisk => ("disk-free", "Free the node's disk"),
            Repair::Mend(_) => ("disk-mend", "Make the disk work again"),
        }
    }

    /// Returns the outcome for the node's process.
    #[must_use]
    pub fn outcome(self) -> ProcessOutcome {
        match self {
            Repair::Start => ProcessOutcome::Renewed,
            Repair::Resume => ProcessOutcome::Resumed,
            Repair::Heal(_) | Repair::FreeDisk => ProcessOutcome::Untouched,
            Repair::Mend(trouble) => trouble.outcome(),
        }
    }
}

impl Trouble {
    /// Returns the word for the fault that it comes from.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Trouble::Partition => PARTITION.word,
            Trouble::Lossy => LOSSY.word,
            Trouble::Slow => SLOW.word,
        }
    }
}

//! What puts right what a fault did to a node.

use serde::{Deserialize, Serialize};

use super::disk::DiskTrouble;
use super::kind::{Fate, LOSSY, PARTITION, SLOW};

/// What puts right what a fault did.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Repair {
    /// Same address, same data; done when it serves again. A node that runs is killed first, one whose power
    /// is off gets it back.
    Start,
    /// SIGCONT.
    Resume,
    /// Trouble with the network is over.
    Heal(Trouble),
    /// What filled its disk is gone.
    FreeDisk,
    /// Its disk does again as it should.
    Mend(DiskTrouble),
}

/// What is wrong with a node's network.
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

    /// What results call it.
    #[must_use]
    pub fn told(self) -> &'static str {
        match self {
            Repair::Start => "start again",
            Repair::Resume => "resume",
            Repair::Heal(Trouble::Partition) => "reconnect",
            Repair::Heal(Trouble::Lossy | Trouble::Slow) => "network as before",
            Repair::FreeDisk => "disk freed",
            Repair::Mend(_) => "disk mended",
        }
    }

    /// The word for it on the command line and in deployment files; what it does, in a few more.
    #[must_use]
    pub fn word(self) -> (&'static str, &'static str) {
        match self {
            Repair::Start => ("start", "Start it"),
            Repair::Resume => ("resume", "SIGCONT"),
            Repair::Heal(_) => ("heal", "Undo what was done to its network"),
            Repair::FreeDisk => ("disk-free", "Free its disk"),
            Repair::Mend(_) => ("disk-mend", "Let its disk do again as it should"),
        }
    }

    /// What becomes of the node's process.
    #[must_use]
    pub fn fate(self) -> Fate {
        match self {
            Repair::Start => Fate::Renewed,
            Repair::Resume => Fate::Resumed,
            Repair::Heal(_) | Repair::FreeDisk => Fate::Untouched,
            Repair::Mend(trouble) => trouble.fate(),
        }
    }
}

impl Trouble {
    /// The word for the fault that it comes from.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Trouble::Partition => PARTITION.word,
            Trouble::Lossy => LOSSY.word,
            Trouble::Slow => SLOW.word,
        }
    }
}

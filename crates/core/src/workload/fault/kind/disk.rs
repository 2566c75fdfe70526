//! Faults of a node's disk: the writes that a cut of power takes, and other misbehaviour. Each kind of fault is
//! described whole here, as the others are in the file above.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::super::values::{FaultField, FaultValues, FieldForm, InvalidFault};
use super::repair::{DiskTrouble, Repair};
use super::{FaultKind, Needs, NodeFault, ProcessOutcome};

/// Writes that a cut of power takes beside those that the system has not handed to the disk yet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Lose {
    /// Nothing: the disk keeps whatever it was handed.
    #[default]
    Unwritten,
    /// Each write since the last flush, by chance.
    Some,
    /// Each sector of each write since the last flush, by chance.
    Torn,
    /// Every write since the last flush.
    Unflushed,
}

impl Lose {
    /// Words for it, each with its meaning.
    const WORDS: [(&'static str, &'static str); 4] = [
        ("unwritten", "What the system had not handed to the disk"),
        ("some", "That, and each write since the disk's last flush by chance, in any order"),
        ("torn", "That, and each sector of a write since the last flush by chance"),
        ("unflushed", "That, and every write since the last flush"),
    ];

    const ALL: [Lose; 4] = [Lose::Unwritten, Lose::Some, Lose::Torn, Lose::Unflushed];

    /// Returns the word for it.
    #[must_use]
    pub fn word(self) -> &'static str {
        Lose::WORDS[self as usize].0
    }

    pub(super) fn of(values: &FaultValues) -> Lose {
        let named = |lose: &Lose| Some(lose.word()) == values.word(&LOSE);
        Lose::ALL.into_iter().find(named).unwrap_or_default()
    }
}

/// Kind of access to a disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Access {
    /// The disk writes.
    Writes,
    /// The disk writes out its cache.
    Flushes,
    /// The disk reads.
    Reads,
}

impl Access {
    const ALL: [Access; 3] = [Access::Writes, Access::Flushes, Access::Reads];

    /// Returns the word for it.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Access::Writes => "writes",
            Access::Flushes => "flushes",
            Access::Reads => "reads",
        }
    }

    fn of(values: &FaultValues, field: &FaultField) -> Access {
        let named = |access: &Access| Some(access.word()) == values.word(field);
        Access::ALL.into_iter().find(named).unwrap_or(Access::Writes)
    }
}

/// Misbehaviour of a disk until it is repaired.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Misbehaviour {
    /// [`DISK_LIES`].
    Lies,
    /// [`DISK_SLOW`]: each write and flush takes so much longer.
    Slow(Duration),
    /// [`DISK_STALL`].
    Stall,
    /// [`DISK_ERROR`], of accesses of this kind.
    Error(Access),
    /// [`BIT_ROT`].
    Rot {
        /// Accesses whose bytes are harmed: writes or reads.
        of: Access,
        /// Share of these accesses in which one bit flips.
        share: f64,
    },
}

impl Misbehaviour {
    /// Returns its trouble, without its values.
    #[must_use]
    pub fn trouble(self) -> DiskTrouble {
        match self {
            Misbehaviour::Lies => DiskTrouble::Lies,
            Misbehaviour::Slow(_) => DiskTrouble::Slow,
            Misbehaviour::Stall => DiskTrouble::Stall,
            Misbehaviour::Error(_) => DiskTrouble::Error,
            Misbehaviour::Rot { .. } => DiskTrouble::Rot,
        }
    }

    pub(super) fn kind(self) -> &'static FaultKind {
        match self.trouble() {
            DiskTrouble::Lies => &DISK_LIES,
            DiskTrouble::Slow => &DISK_SLOW,
            DiskTrouble::Stall => &DISK_STALL,
            DiskTrouble::Error => &DISK_ERROR,
            DiskTrouble::Rot => &BIT_ROT,
        }
    }

    pub(super) fn values(self) -> FaultValues {
        let values = FaultValues::default();
        match self {
            Misbehaviour::Lies | Misbehaviour::Stall => values,
            Misbehaviour::Slow(longer) => values.with(&LATENCY, Some(longer)),
            Misbehaviour::Error(of) => values.with(&REFUSES, Some(of.word())),
            Misbehaviour::Rot { of, share } => {
                values.with(&ROTS, Some(of.word())).with(&SHARE, Some(share))
            }
        }
    }
}

pub(super) static LOSE: FaultField = FaultField {
    key: "lose",
    help: "which data are lost",
    example: "some",
    form: FieldForm::Word { what: "what a cut of power can take", words: &Lose::WORDS },
};

static LATENCY: FaultField = FaultField {
    key: "latency",
    help: "how much longer each write and each flush takes, such as 20ms",
    example: "20ms",
    form: FieldForm::Time,
};

static REFUSES: FaultField = FaultField {
    key: "refuses",
    help: "what fails",
    example: "flushes",
    form: FieldForm::Word {
        what: "what a disk can refuse",
        words: &[
            ("writes", "Each write"),
            ("flushes", "Each flush: whoever syncs is told"),
            ("reads", "Each read of what the system has not in memory"),
        ],
    },
};

static ROTS: FaultField = FaultField {
    key: "rots",
    help: "what is harmed",
    example: "reads",
    form: FieldForm::Word {
        what: "what can rot",
        words: &[
            ("writes", "What is stored is another than what was written"),
            ("reads", "What is read is another than what is stored"),
        ],
    },
};

static SHARE: FaultField = FaultField {
    key: "share",
    help: "share of reads or writes in which one bit flips [default: 1%]",
    example: "5%",
    form: FieldForm::Share,
};

/// Share of accesses in which a bit flips, where none is given.
const USUAL_ROT: f64 = 0.01;

/// The disk answers flushes and does not do them.
pub static DISK_LIES: FaultKind = FaultKind {
    word: "disk-lies",
    help: "Make the disk acknowledge flushes without doing them",
    fields: &[],
    needs: Needs::Device,
    outcome: ProcessOutcome::Untouched,
    repair: Some(Repair::Mend(DiskTrouble::Lies)),
    makes: |_, targets| Ok(targets.suffer(NodeFault::disk(Misbehaviour::Lies))),
};

/// Each write and each flush of the disk takes longer.
pub static DISK_SLOW: FaultKind = FaultKind {
    word: "disk-slow",
    help: "Make each write and flush of the disk take longer",
    fields: &[&LATENCY],
    needs: Needs::Device,
    outcome: ProcessOutcome::Untouched,
    repair: Some(Repair::Mend(DiskTrouble::Slow)),
    makes: |values, targets| match values.time(&LATENCY).filter(|longer| !longer.is_zero()) {
        Some(longer) => Ok(targets.suffer(NodeFault::disk(Misbehaviour::Slow(longer)))),
        None => Err(InvalidFault::how_much(DISK_SLOW.word, DISK_SLOW.fields)),
    },
};

/// The disk answers nothing until it is repaired, and then all that was asked for.
pub static DISK_STALL: FaultKind = FaultKind {
    word: "disk-stall",
    help: "Make the disk answer nothing until it is repaired",
    fields: &[],
    needs: Needs::Device,
    outcome: ProcessOutcome::Untouched,
    repair: Some(Repair::Mend(DiskTrouble::Stall)),
    makes: |_, targets| Ok(targets.suffer(NodeFault::disk(Misbehaviour::Stall))),
};

/// The disk refuses reads, writes or flushes (EIO).
pub static DISK_ERROR: FaultKind = FaultKind {
    word: "disk-error",
    help: "Make the disk fail requests (EIO)",
    fields: &[&REFUSES],
    needs: Needs::Device,
    outcome: ProcessOutcome::Untouched,
    repair: Some(Repair::Mend(DiskTrouble::Error)),
    makes: |values, targets| {
        let of = Access::of(values, &REFUSES);
        Ok(targets.suffer(NodeFault::disk(Misbehaviour::Error(of))))
    },
};

/// Bits of what is stored or read flip.
pub static BIT_ROT: FaultKind = FaultKind {
    word: "bit-rot",
    help: "Flip bits of what the disk stores or reads",
    fields: &[&ROTS, &SHARE],
    needs: Needs::Device,
    outcome: ProcessOutcome::Untouched,
    repair: Some(Repair::Mend(DiskTrouble::Rot)),
    makes: |values, targets| {
        let share = values.number(&SHARE).unwrap_or(USUAL_ROT);
        let of = Access::of(values, &ROTS);
        Ok(targets.suffer(NodeFault::disk(Misbehaviour::Rot { of, share })))
    },
};

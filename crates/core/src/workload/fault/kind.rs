//! Every kind of fault, each described whole in one place: its word, the fields written with it, its needs of a
//! testbed, the outcome for the node, and its repair. Suite files, the command line, the keeper, deployment files and
//! reports know kinds from here alone. A new kind needs a variant of [`NodeFault`], its [`FaultKind`], and a line in
//! [`FaultKind::ALL`]; the testbed carries it out (`acting.rs`).

pub(super) mod disk;
pub(super) mod repair;

use serde::{Deserialize, Serialize};

use self::disk::{BIT_ROT, DISK_ERROR, DISK_LIES, DISK_SLOW, DISK_STALL, LOSE, Lose, Misbehaviour};
use self::repair::{Repair, Trouble};
use super::aim::{NodeSelector, Targets};
use super::cut::{CutFrom, Sides, Way};
use super::slowness::Slowness;
use super::values::{FaultField, FaultValues, FieldForm, InvalidFault};

/// Fault of nodes, done to all of them at one moment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum NodeFault {
    /// [`KILL`].
    Kill,
    /// [`STOP`].
    Stop,
    /// [`PAUSE`].
    Pause,
    /// [`RESTART`].
    Restart,
    /// [`PARTITION`]; the nodes to which it is done stay together.
    Partition {
        /// The others from whom they are cut off.
        from: CutFrom,
        /// Direction of the packets that are dropped.
        way: Way,
    },
    /// [`LOSSY`].
    Lossy {
        /// Share of packets that is lost, both ways: above 0, at most 1.
        share: f64,
    },
    /// [`SLOW`].
    Slow(Slowness),
    /// [`DISK_FULL`].
    DiskFull,
    /// [`POWER`].
    Power {
        /// Writes that are lost, beside those that the system has not handed to the disk.
        lose: Lose,
        /// Seed of what is left to chance.
        seed: u64,
    },
    /// The disk of the node misbehaves.
    Disk {
        /// Kind of misbehaviour.
        how: Misbehaviour,
        /// Seed of what is left to chance.
        seed: u64,
    },
    /// [`REWRITE`].
    Rewrite,
    /// [`COMPACT`].
    Compact,
    /// [`REMOVE`].
    Remove,
}

/// Outcome for a node's process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProcessOutcome {
    /// The process goes on as before.
    Untouched,
    /// The process stands still.
    Paused,
    /// The process goes on after a pause.
    Resumed,
    /// The process has ended.
    Ended,
    /// Another process has taken its place.
    Renewed,
    /// The process has ended, and the node no longer belongs to the system.
    Left,
}

/// Requirement of a fault on a testbed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Needs {
    /// Nothing beyond what every testbed has.
    Nothing,
    /// A network of its own for each node.
    Network,
    /// A disk of its own for each node.
    Disk,
    /// A real file system of its own for each node.
    FileSystem,
    /// A real file system of its own for each node, on a device that can misbehave.
    Device,
    /// Servers that have this ability.
    Ability(Ability),
}

/// Ability that some servers have while they are up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ability {
    /// Take another node.
    Grow,
    /// Give up a node.
    Shrink,
    /// Rewrite a log of writes.
    Rewrite,
    /// Merge files when told to.
    Compact,
}

impl Ability {
    /// Returns it in words, to stand after "can".
    #[must_use]
    pub fn describe(self) -> &'static str {
        match self {
            Ability::Grow => "take another node",
            Ability::Shrink => "give up a node",
            Ability::Rewrite => "rewrite a log of writes",
            Ability::Compact => "merge its files on command",
        }
    }
}

/// A kind of fault.
#[derive(Debug)]
pub struct FaultKind {
    /// The word for it: in suites, on the command line, in deployment files and results.
    pub word: &'static str,
    /// Its effect in a few words, for the command line.
    pub help: &'static str,
    /// Fields that may be written with it.
    pub fields: &'static [&'static FaultField],
    /// Its requirement on a testbed.
    pub needs: Needs,
    /// Outcome for the node's process.
    pub outcome: ProcessOutcome,
    /// Its repair; `None` where it is over by itself, or stays.
    pub repair: Option<Repair>,
    /// Maker of the harm from the values and targets that were written with it.
    pub(super) makes: fn(&FaultValues, Targets) -> Result<Harm, InvalidFault>,
}

/// Its process is killed (-9).
pub static KILL: FaultKind = FaultKind {
    word: "kill",
    help: "Kill the node with SIGKILL",
    fields: &[],
    needs: Needs::Nothing,
    outcome: ProcessOutcome::Ended,
    repair: Some(Repair::Start),
    makes: |_, targets| Ok(targets.suffer(NodeFault::Kill)),
};

/// Its power is cut: its process ends, and what was not synced to its disk is gone.
pub static POWER: FaultKind = FaultKind {
    word: "power",
    help: "Cut the node's power: it loses unsynced data",
    fields: &[&LOSE],
    needs: Needs::FileSystem,
    outcome: ProcessOutcome::Ended,
    repair: Some(Repair::Start),
    makes: |values, targets| {
        Ok(targets.suffer(NodeFault::Power { lose: Lose::of(values), seed: 0 }))
    },
};

/// Its process is ended in good order (SIGTERM); done when it is gone.
pub static STOP: FaultKind = FaultKind {
    word: "stop",
    help: "Stop the node cleanly (SIGTERM)",
    fields: &[],
    needs: Needs::Nothing,
    outcome: ProcessOutcome::Ended,
    repair: Some(Repair::Start),
    makes: |_, targets| Ok(targets.suffer(NodeFault::Stop)),
};

/// Its process stands still (SIGSTOP).
pub static PAUSE: FaultKind = FaultKind {
    word: "pause",
    help: "Pause the node (SIGSTOP)",
    fields: &[],
    needs: Needs::Nothing,
    outcome: ProcessOutcome::Paused,
    repair: Some(Repair::Resume),
    makes: |_, targets| Ok(targets.suffer(NodeFault::Pause)),
};

/// Its process is killed, unless it is down, and started again at once; done when it serves.
pub static RESTART: FaultKind = FaultKind {
    word: "restart",
    help: "Start the node again over its data",
    fields: &[],
    needs: Needs::Nothing,
    outcome: ProcessOutcome::Renewed,
    repair: None,
    makes: |_, targets| Ok(targets.suffer(NodeFault::Restart)),
};

/// Packets between it and others are dropped.
pub static PARTITION: FaultKind = FaultKind {
    word: "partition",
    help: "Cut the node off from others",
    fields: &[&FROM, &WAY, &SIDES],
    needs: Needs::Network,
    outcome: ProcessOutcome::Untouched,
    repair: Some(Repair::Heal(Trouble::Partition)),
    makes: partition,
};

/// A share of its packets is dropped by chance.
pub static LOSSY: FaultKind = FaultKind {
    word: "lossy",
    help: "Drop some of the node's packets",
    fields: &[&LOSS],
    needs: Needs::Network,
    outcome: ProcessOutcome::Untouched,
    repair: Some(Repair::Heal(Trouble::Lossy)),
    makes: |values, targets| match values.number(&LOSS).filter(|share| *share > 0.0) {
        Some(share) => Ok(targets.suffer(NodeFault::Lossy { share })),
        None => Err(InvalidFault::how_much(LOSSY.word, LOSSY.fields)),
    },
};

/// Its network has less bandwidth, or each packet that it sends takes longer.
pub static SLOW: FaultKind = FaultKind {
    word: "slow",
    help: "Give the node less bandwidth, more delay, or both",
    fields: &[&BANDWIDTH, &DELAY],
    needs: Needs::Network,
    outcome: ProcessOutcome::Untouched,
    repair: Some(Repair::Heal(Trouble::Slow)),
    makes: |values, targets| match Slowness::new(values.whole(&BANDWIDTH), values.time(&DELAY)) {
        Some(slowness) => Ok(targets.suffer(NodeFault::Slow(slowness))),
        None => Err(InvalidFault::how_much(SLOW.word, SLOW.fields)),
    },
};

/// No byte is free on the disk that holds its folder.
pub static DISK_FULL: FaultKind = FaultKind {
    word: "disk-full",
    help: "Fill the node's disk",
    fields: &[],
    needs: Needs::Disk,
    outcome: ProcessOutcome::Untouched,
    repair: Some(Repair::FreeDisk),
    makes: |_, targets| Ok(targets.suffer(NodeFault::DiskFull)),
};

/// It rewrites its log of writes, as Redis does with its append-only file; done when that is over.
pub static REWRITE: FaultKind = FaultKind {
    word: "rewrite",
    help: "Make the node rewrite its log of writes",
    fields: &[],
    needs: Needs::Ability(Ability::Rewrite),
    outcome: ProcessOutcome::Untouched,
    repair: None,
    makes: |_, targets| Ok(targets.suffer(NodeFault::Rewrite)),
};

/// It merges its files, as Cassandra does with its tables; done when that is over.
pub static COMPACT: FaultKind = FaultKind {
    word: "compact",
    help: "Make the node merge its files",
    fields: &[],
    needs: Needs::Ability(Ability::Compact),
    outcome: ProcessOutcome::Untouched,
    repair: None,
    makes: |_, targets| Ok(targets.suffer(NodeFault::Compact)),
};

/// It leaves the system in good order, its data moved to the others, and ends.
pub static REMOVE: FaultKind = FaultKind {
    word: "remove",
    help: "Take the node out of the cluster",
    fields: &[],
    needs: Needs::Ability(Ability::Shrink),
    outcome: ProcessOutcome::Left,
    repair: None,
    makes: |_, targets| Ok(targets.suffer(NodeFault::Remove)),
};

/// One more node joins the system and takes its share of the data.
pub static ADD: FaultKind = FaultKind {
    word: "add",
    help: "Add one more node",
    fields: &[],
    needs: Needs::Ability(Ability::Grow),
    outcome: ProcessOutcome::Untouched,
    repair: None,
    makes: |_, targets| {
        targets.nobody("a node that is added gets its name by itself")?;
        Ok(Harm::Add)
    },
};

/// Harm done by a fault, with its targets.
#[derive(Clone, Debug, PartialEq)]
pub enum Harm {
    /// A fault of nodes that are there.
    ToNodes {
        /// The fault.
        fault: NodeFault,
        /// Selector of the nodes.
        aim: NodeSelector,
        /// Number of nodes hit at one moment, drawn by chance; `None`: one of those that the aim describes, or each
        /// of those that it names.
        count: Option<u32>,
    },
    /// The network is split: each side is cut off from the others.
    Split {
        /// Lists of nodes that stay together.
        sides: Sides,
        /// Direction of the packets that are dropped, as the first side sees it.
        way: Way,
    },
    /// One more node joins.
    Add,
}

impl Harm {
    /// Makes the harm of a fault of this kind with the values and targets that were written with it.
    ///
    /// # Errors
    /// [`InvalidFault`] if something is missing, or does not go together.
    pub fn new(
        kind: &FaultKind,
        values: &FaultValues,
        targets: Targets,
    ) -> Result<Harm, InvalidFault> {
        FaultKind::fit(kind.word, values)?;
        (kind.makes)(values, targets)
    }

    /// Returns its kind.
    #[must_use]
    pub fn kind(&self) -> &'static FaultKind {
        match self {
            Harm::ToNodes { fault, .. } => fault.kind(),
            Harm::Split { .. } => &PARTITION,
            Harm::Add => &ADD,
        }
    }

    /// Returns its requirement on a testbed: that of its kind, or more where the values ask for more.
    #[must_use]
    pub fn needs(&self) -> Needs {
        match self {
            Harm::ToNodes { fault: NodeFault::Power { lose, .. }, .. }
                if *lose != Lose::Unwritten =>
            {
                Needs::Device
            }
            _ => self.kind().needs,
        }
    }

    pub(super) fn values(&self) -> FaultValues {
        match self {
            Harm::ToNodes { fault, .. } => fault.values(),
            Harm::Split { sides, way } => FaultValues::default()
                .with(&SIDES, Some(sides.clone()))
                .with(&WAY, Some(way.word())),
            Harm::Add => FaultValues::default(),
        }
    }
}

impl Targets {
    /// Makes the harm of `fault` to these targets.
    pub(super) fn suffer(self, fault: NodeFault) -> Harm {
        Harm::ToNodes { fault, aim: self.aim.unwrap_or_default(), count: self.count }
    }
}

static FROM: FaultField = FaultField {
    key: "from",
    help: "from which peers the nodes are cut off",
    example: "nodes",
    form: FieldForm::Word { what: "who it can be cut off from", words: &CutFrom::WORDS },
};

static SIDES: FaultField = FaultField {
    key: "sides",
    help: "instead of nodes: groups whose members still reach each other, such as redis-1+clients|redis-2",
    example: "redis-1+clients|redis-2",
    form: FieldForm::Sides,
};

static WAY: FaultField = FaultField {
    key: "way",
    help: "which packets are dropped, as the nodes see it",
    example: "out",
    form: FieldForm::Word { what: "a way of packets", words: &Way::WORDS },
};

static LOSS: FaultField = FaultField {
    key: "loss",
    help: "share of packets lost, such as 10%",
    example: "10%",
    form: FieldForm::Share,
};

static BANDWIDTH: FaultField = FaultField {
    key: "bandwidth",
    help: "bytes a second each way, such as 1MB/s",
    example: "1MB/s",
    form: FieldForm::Bandwidth,
};

static DELAY: FaultField = FaultField {
    key: "delay",
    help: "how much longer each packet takes that they send, such as 20ms",
    example: "20ms",
    form: FieldForm::Time,
};

fn partition(values: &FaultValues, targets: Targets) -> Result<Harm, InvalidFault> {
    let way = values.word(&WAY).and_then(Way::of).unwrap_or_default();
    let from = values.word(&FROM).and_then(CutFrom::of);
    let Some(sides) = values.sides(&SIDES) else {
        let from = from.unwrap_or_default();
        return Ok(targets.suffer(NodeFault::Partition { from, way }));
    };
    if from.is_some() {
        return Err(InvalidFault::new(
            "`sides` says who is cut off from whom",
            "leave out `from`; `clients` may stand among the names",
        ));
    }
    targets.nobody("`sides` names the nodes already")?;
    Ok(Harm::Split { sides, way })
}

impl FaultKind {
    /// All kinds.
    pub const ALL: [&'static FaultKind; 18] = [
        &KILL,
        &POWER,
        &STOP,
        &PAUSE,
        &RESTART,
        &PARTITION,
        &LOSSY,
        &SLOW,
        &DISK_FULL,
        &DISK_LIES,
        &DISK_SLOW,
        &DISK_STALL,
        &DISK_ERROR,
        &BIT_ROT,
        &REWRITE,
        &COMPACT,
        &REMOVE,
        &ADD,
    ];

    /// Returns the kind of this word; `None` if it is none.
    #[must_use]
    pub fn of(word: &str) -> Option<&'static FaultKind> {
        FaultKind::ALL.into_iter().find(|kind| kind.word == word)
    }

    /// Checks that no value is given which the fault or repair of this word does not take.
    ///
    /// # Errors
    /// [`InvalidFault`] that names the field and the fault that takes it.
    pub fn fit(word: &str, values: &FaultValues) -> Result<(), InvalidFault> {
        let given = FaultKind::fields().filter(|(field, _)| values.get(field).is_some());
        let alien = given.into_iter().find(|(_, of)| of.word != word);
        alien.map_or(Ok(()), |(field, of)| {
            let message = format!("`{}` is no option of the fault `{word}`", field.key);
            Err(InvalidFault::new(message, format!("it is for `{}`", of.word)))
        })
    }

    /// Returns all fields that may be written with faults, each with its kind.
    pub fn fields() -> impl Iterator<Item = (&'static FaultField, &'static FaultKind)> {
        FaultKind::ALL
            .into_iter()
            .flat_map(|kind| kind.fields.iter().map(move |field| (*field, kind)))
    }
}

impl PartialEq for FaultKind {
    /// Compares the words: there is one kind of each word.
    fn eq(&self, other: &FaultKind) -> bool {
        self.word == other.word
    }
}

impl NodeFault {
    pub(super) fn disk(how: Misbehaviour) -> NodeFault {
        NodeFault::Disk { how, seed: 0 }
    }

    /// Sets the seed of what is left to chance in it; calls `draw` only if something is.
    #[must_use]
    pub fn seeded(self, draw: impl FnOnce() -> u64) -> NodeFault {
        match self {
            NodeFault::Power { lose: lose @ (Lose::Some | Lose::Torn), .. } => {
                NodeFault::Power { lose, seed: draw() }
            }
            NodeFault::Disk { how: how @ Misbehaviour::Rot { .. }, .. } => {
                NodeFault::Disk { how, seed: draw() }
            }
            other => other,
        }
    }

    /// Returns its kind.
    #[must_use]
    pub fn kind(&self) -> &'static FaultKind {
        match self {
            NodeFault::Kill => &KILL,
            NodeFault::Stop => &STOP,
            NodeFault::Pause => &PAUSE,
            NodeFault::Restart => &RESTART,
            NodeFault::Partition { .. } => &PARTITION,
            NodeFault::Lossy { .. } => &LOSSY,
            NodeFault::Slow(_) => &SLOW,
            NodeFault::DiskFull => &DISK_FULL,
            NodeFault::Power { .. } => &POWER,
            NodeFault::Disk { how, .. } => how.kind(),
            NodeFault::Rewrite => &REWRITE,
            NodeFault::Compact => &COMPACT,
            NodeFault::Remove => &REMOVE,
        }
    }

    /// Returns the values that were written with it.
    #[must_use]
    pub fn values(&self) -> FaultValues {
        let values = FaultValues::default();
        match self {
            NodeFault::Partition { from, way } => {
                values.with(&FROM, from.word()).with(&WAY, Some(way.word()))
            }
            NodeFault::Lossy { share } => values.with(&LOSS, Some(*share)),
            NodeFault::Slow(slowness) => {
                values.with(&BANDWIDTH, slowness.bandwidth()).with(&DELAY, slowness.delay())
            }
            NodeFault::Power { lose, .. } if *lose != Lose::default() => {
                values.with(&LOSE, Some(lose.word()))
            }
            NodeFault::Disk { how, .. } => how.values(),
            _ => values,
        }
    }
}

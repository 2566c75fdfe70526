//! Faults: what a phase does to a testbed while it runs, as plain data. The testbed's keeper carries them out. Jepsen
//! calls all of this the nemesis. docs/FAULTS.md is its page for users.

mod action;
mod aim;
mod cut;
mod kind;
mod plan;
mod slowness;
mod values;

pub use action::{ActionFailure, NodeAction};
pub use aim::{NodeSelector, Targets};
pub use cut::{CutFrom, Sides, Way};
pub use kind::disk::{
    Access, BIT_ROT, DISK_ERROR, DISK_LIES, DISK_SLOW, DISK_STALL, Lose, Misbehaviour,
};
pub use kind::repair::{DiskTrouble, Repair, Trouble};
pub use kind::{
    ADD, Ability, COMPACT, DISK_FULL, FaultKind, Harm, KILL, LOSSY, Needs, NodeFault, PARTITION,
    PAUSE, POWER, ProcessOutcome, REMOVE, RESTART, REWRITE, SLOW, STOP,
};
pub use plan::{FaultCondition, FaultPlan};
pub use slowness::Slowness;
pub use values::{FaultField, FaultValues, FieldForm, FieldValue, InvalidFault};

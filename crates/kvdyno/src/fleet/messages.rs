//! What conductor and agents say to each other, as plain values. Orders go down: the conductor alone decides.
//! What an agent measured goes up, as its workers tell it.

use std::time::Duration;

use kvdyno_core::load::{BlockClaim, Deal, LookedAgain, Pacing, WorkerReport};
use kvdyno_core::measure::{Batch, Nanos, Stalls};
use kvdyno_core::verify::{Acks, FloorRuns};
use kvdyno_core::workload::{LostOwner, Ownership, Part, PhasePlan, RateChange};
use kvdyno_report::events::ProcessUsed;
use serde::{Deserialize, Serialize};

use super::clocks::ClocksShown;
use super::loss::TakesOver;
use super::machine_use::MachineUse;
use crate::account::Unclear;

/// Number of the format of these messages; agents of another are refused.
pub const FORMAT: u32 = 8;

/// What the conductor orders.
#[derive(Debug, Serialize, Deserialize)]
pub enum AgentOrder {
    /// The agent is not taken, or no longer; why, in one line.
    Refused(String),
    /// The agent is one of those that carry the load.
    Taken {
        /// What it is called.
        name: String,
    },
    /// A store is to be loaded: connect, and make ready to judge what it answers.
    Open(Box<Opening>),
    /// What does the agent's clock say?
    Clock {
        /// Number of the question.
        number: u32,
    },
    /// Connect the workers of a phase.
    Prepare(Box<Preparing>),
    /// A phase that is prepared is to begin then: confirm it, if this is heard in time.
    StartAt {
        /// [`Preparing::number`].
        number: u32,
        /// When, on the agent's clock.
        at: Nanos,
    },
    /// All have confirmed the moment named last: the phase begins then.
    Begin {
        /// [`Preparing::number`].
        number: u32,
    },
    /// A phase that is prepared will not begin.
    CallOff {
        /// [`Preparing::number`].
        number: u32,
    },
    /// No operation starts at or after this time on the agent's clock.
    StopAt(Nanos),
    /// The rate of a group changes with one operation, the same for all agents.
    Rate {
        /// Number of the group.
        group: usize,
        /// With which operation, and to what.
        change: RateChange,
    },
    /// A lane is dealt operations.
    Deal {
        /// [`Preparing::number`].
        number: u32,
        /// Which lane, and which operations.
        deal: Deal,
    },
    /// What another agent's records hold at the begin.
    Base {
        /// [`Preparing::number`].
        number: u32,
        /// Number of that agent among those that own records.
        owner: u32,
        /// Their floors.
        runs: FloorRuns,
    },
    /// What was acknowledged to other agents.
    Floors {
        /// [`Preparing::number`].
        number: u32,
        /// For each, its number among those that own records, and what, by the clock of the agent that hears it.
        told: Vec<(u32, Acks)>,
        /// By how much the clocks of any two may differ beside, ns.
        off: Nanos,
    },
    /// Do not wait for requests in flight.
    Abandon,
    /// The load is over, and what was broken is repaired: read again what was not answered or looked wrong.
    ReadAgain,
    /// The user wants to stop: do not go on reading again.
    Hurry,
    /// Of the records below this number: of how many own ones is unclear what they hold?
    CountUnclear {
        /// Where they end.
        records: u64,
    },
    /// Agents were lost: their records are those of the others from now on.
    TakeOver {
        /// All of those that were lost, in order.
        lost: Vec<LostOwner>,
    },
    /// The store is done with.
    Close,
    /// The run is over.
    End,
}

/// A store to be loaded.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Opening {
    /// Its URL, with passwords.
    pub url: String,
    /// The run's plan, as JSON.
    pub plan: String,
    /// SHA-256 of `plan`, in hexadecimal digits.
    pub plan_hash: String,
    /// Which operations the agent draws.
    pub part: Part,
    /// Of which records it carries them out.
    pub ownership: Ownership,
    /// Tells this run's writes from those of earlier ones.
    pub session: u32,
    /// Check what is read.
    pub verify: bool,
    /// Every record of the plan is there already.
    pub exists: bool,
    /// Records of other agents that this one may have to judge.
    pub takes_over: TakesOver,
    /// What clients may spend on being on time.
    pub pace: Pacing,
    /// How long an eventually consistent store may take to settle.
    pub settle: Duration,
}

/// A phase to be prepared.
#[derive(Debug, Serialize, Deserialize)]
pub struct Preparing {
    /// Tells it from one that was called off: an agent that is connecting hears of that when it is done.
    pub number: u32,
    /// What the agent does: the phase's plan with its share of the clients.
    pub phase: PhasePlan,
    /// Records are read back: at the strongest level of reads that the store answers.
    pub reads_back: bool,
    /// Operations of closed groups are dealt.
    pub deals: bool,
}

/// What an agent tells.
#[derive(Debug, Serialize, Deserialize)]
pub enum Told {
    /// Its first word.
    Hello(Hello),
    /// The store is reached; this is the plan's hash as this agent understands it.
    Opened {
        /// SHA-256 of the plan when it is written again.
        plan_hash: String,
    },
    /// The store cannot be reached, or the plan not read: why, in one line.
    Failed(String),
    /// What its clock says.
    Clock {
        /// Number of the question.
        number: u32,
        /// The time.
        shown: ClocksShown,
    },
    /// All workers of a phase are connected.
    Ready {
        /// [`Preparing::number`].
        number: u32,
        /// How many.
        workers: usize,
    },
    /// A phase cannot begin here.
    Unready {
        /// [`Preparing::number`].
        number: u32,
        /// Why, in one line.
        why: String,
    },
    /// The order to begin then was heard in time.
    WillBegin {
        /// [`Preparing::number`].
        number: u32,
        /// When, on the agent's clock.
        at: Nanos,
    },
    /// A lane asks for operations.
    Claim {
        /// [`Preparing::number`].
        number: u32,
        /// Which lane, and how many.
        claim: BlockClaim,
    },
    /// What its records hold at the begin.
    Base {
        /// [`Preparing::number`].
        number: u32,
        /// Their floors.
        runs: FloorRuns,
    },
    /// What was acknowledged to it since it told last.
    Floors {
        /// [`Preparing::number`].
        number: u32,
        /// What, by its own clock.
        told: Acks,
    },
    /// An interval of one worker.
    Batch(Box<Batch>),
    /// What its process used in its last second.
    Used(ProcessUsed),
    /// A worker has ended.
    Ended(Box<WorkerReport>),
    /// All workers have.
    Loaded {
        /// When the agent stood still meanwhile.
        stalls: Stalls,
        /// What its machine did.
        machine: MachineUse,
        /// Records 0..n exist after the phase, as far as it inserted them.
        records: u64,
        /// Processor time that it took to draw what other agents carried out.
        passing: Duration,
    },
    /// What was read again, and what verification came to.
    LookedAgain(Box<LookedAgain>),
    /// As asked.
    Unclear(Unclear),
}

/// Who an agent is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hello {
    /// [`FORMAT`].
    pub format: u32,
    /// Version of its kvdyno.
    pub version: String,
    /// SHA-256 of its program.
    pub build: String,
    /// Name of its machine.
    pub machine: String,
    /// Number of its process.
    pub process: u32,
}

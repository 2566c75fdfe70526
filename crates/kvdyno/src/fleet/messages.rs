//! Messages of conductor and agents, as plain values. Orders go down: the conductor alone decides. Measurements go
//! up, as an agent's workers report them.

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

/// Format number of these messages; the conductor refuses agents of another format.
pub const FORMAT: u32 = 8;

/// Order of the conductor.
#[derive(Debug, Serialize, Deserialize)]
pub enum AgentOrder {
    /// The agent is not taken, or no longer; the text says why, in one line.
    Refused(String),
    /// The agent is one of those that carry the load.
    Taken {
        /// Name of the agent.
        name: String,
    },
    /// A store is to be loaded: connect, and prepare to judge its answers.
    Open(Box<Opening>),
    /// Tell the time of the agent's clocks.
    Clock {
        /// Number of the question.
        number: u32,
    },
    /// Connect the workers of a phase.
    Prepare(Box<Preparing>),
    /// A phase that is prepared is to begin at this moment: confirm it, if this is heard in time.
    StartAt {
        /// [`Preparing::number`].
        number: u32,
        /// Moment of the begin, on the agent's clock.
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
        /// First operation of the new rate, and that rate.
        change: RateChange,
    },
    /// A lane is dealt operations.
    Deal {
        /// [`Preparing::number`].
        number: u32,
        /// Lane, and its operations.
        deal: Deal,
    },
    /// Floors of another agent's records at the begin of the phase.
    Base {
        /// [`Preparing::number`].
        number: u32,
        /// Number of that agent among those that own records, zero-based.
        owner: u32,
        /// Floors of its records.
        runs: FloorRuns,
    },
    /// Writes that were acknowledged to other agents.
    Floors {
        /// [`Preparing::number`].
        number: u32,
        /// For each agent, its number among those that own records, and its writes, by the clock of the agent that
        /// hears this.
        #[serde(rename = "told")]
        acks: Vec<(u32, Acks)>,
        /// Largest further difference between the clocks of any two agents, ns.
        off: Nanos,
    },
    /// Do not wait for requests in flight.
    Abandon,
    /// The load is over, and what was broken is repaired: read again what was not answered or looked wrong.
    ReadAgain,
    /// The user wants to stop: do not go on reading again.
    Hurry,
    /// Count the agent's own records, among those below this number, of which it is unclear what they hold.
    CountUnclear {
        /// End of the range of records, exclusive.
        records: u64,
    },
    /// Agents were lost: the others own their records from now on.
    TakeOver {
        /// All agents that were lost, in order.
        lost: Vec<LostOwner>,
    },
    /// The run is done with the store.
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
    /// Part of the operations that the agent draws.
    pub part: Part,
    /// Ownership of records: the agent carries out the operations of its own.
    pub ownership: Ownership,
    /// Session number of the run, by which its writes are told from those of earlier runs.
    pub session: u32,
    /// True if values that are read are checked.
    pub verify: bool,
    /// True if every record of the plan exists already.
    pub exists: bool,
    /// Records of other agents that this one may have to judge.
    pub takes_over: TakesOver,
    /// Means by which clients wait until a request is due.
    pub pace: Pacing,
    /// Time that an eventually consistent store may take to settle.
    pub settle: Duration,
}

/// A phase to be prepared.
#[derive(Debug, Serialize, Deserialize)]
pub struct Preparing {
    /// Number of the phase. It differs for a phase that was called off: an agent that is still connecting hears of
    /// the calling off only when it is done.
    pub number: u32,
    /// The phase's plan with this agent's share of the clients.
    pub phase: PhasePlan,
    /// True if records are read back, at the strongest level of reads that the store answers.
    pub reads_back: bool,
    /// True if the operations of closed groups are dealt.
    pub deals: bool,
}

/// Message of an agent.
#[derive(Debug, Serialize, Deserialize)]
pub enum AgentReport {
    /// Its first message: who it is.
    Hello(Hello),
    /// The store is reached.
    Opened {
        /// SHA-256 of the plan as this agent writes it again, in hexadecimal digits.
        plan_hash: String,
    },
    /// The store cannot be reached, or the plan not be read; the text says why, in one line.
    Failed(String),
    /// The time of its clocks.
    Clock {
        /// Number of the question.
        number: u32,
        /// Readings of its clocks.
        shown: ClocksShown,
    },
    /// All workers of a phase are connected.
    Ready {
        /// [`Preparing::number`].
        number: u32,
        /// Number of workers.
        workers: usize,
    },
    /// A phase cannot begin here.
    Unready {
        /// [`Preparing::number`].
        number: u32,
        /// Reason, in one line.
        why: String,
    },
    /// The order to begin at this moment was heard in time.
    WillBegin {
        /// [`Preparing::number`].
        number: u32,
        /// Moment of the begin, on the agent's clock.
        at: Nanos,
    },
    /// A lane asks for operations.
    Claim {
        /// [`Preparing::number`].
        number: u32,
        /// Lane, and the number of blocks that it asks for.
        claim: BlockClaim,
    },
    /// Floors of its records at the begin of the phase.
    Base {
        /// [`Preparing::number`].
        number: u32,
        /// The floors.
        runs: FloorRuns,
    },
    /// Writes that were acknowledged to it since it told last.
    Floors {
        /// [`Preparing::number`].
        number: u32,
        /// The writes, by its own clock.
        #[serde(rename = "told")]
        acks: Acks,
    },
    /// One worker's figures of an interval.
    Batch(Box<Batch>),
    /// Use of its machine by its process in its last second.
    Used(ProcessUsed),
    /// A worker has ended.
    Ended(Box<WorkerReport>),
    /// All workers have ended.
    Loaded {
        /// Times at which the agent stood still during the phase.
        stalls: Stalls,
        /// Use of its machine.
        machine: MachineUse,
        /// Records 0..n exist after the phase, as far as this agent inserted them.
        records: u64,
        /// Processor time that it spent on drawing operations that other agents carried out.
        passing: Duration,
    },
    /// Results of reading again, and of verification.
    LookedAgain(Box<LookedAgain>),
    /// Answer to [`AgentOrder::CountUnclear`].
    Unclear(Unclear),
}

/// Identity of an agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hello {
    /// Format of its messages, as [`FORMAT`].
    pub format: u32,
    /// Version of its kvdyno.
    pub version: String,
    /// SHA-256 of its program, in hexadecimal digits.
    pub build: String,
    /// Name of its machine.
    pub machine: String,
    /// Process number.
    pub process: u32,
}

//! The story of a run, told once: plain values, one after the other, which everything else listens to. The
//! result of a run is a fold over them ([`fold`]); who hears them is a subscriber ([`stream`]) and changes
//! nothing.
//!
//! Times of intervals and of samples count from the begin of the run, so that all phases have one clock. What
//! results keep of a phase ([`FaultResult`], [`PhaseResult`]) counts from the begin of that phase.

pub mod fold;
pub mod recording;
pub mod stream;
mod used;

use kvdyno_core::load::Progress;
use kvdyno_core::measure::{Interval, Nanos, OldRecords};
use kvdyno_core::workload::PhasePlan;
use serde::{Deserialize, Serialize};

use crate::result::{
    AnomalyResult, CapacityResult, ClaimResult, EndCause, EventResult, FaultResult, PhaseResult,
    ProbeResult, RunResult, Status, SteeredResult, StoreRun, TestbedNode, Verdict,
};
pub use used::{MACHINE, OWN, ProcessUsed, Used, used};

/// Number of the format that events are written in; a reader refuses any other.
pub const FORMAT: u32 = 1;

/// Something that happened in a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub enum Event {
    /// A run begins.
    RunBegan(Box<RunBegan>),
    /// A store begins, with what it promises and the testbed that it is.
    StoreBegan(Box<StoreRun>),
    /// A store could not be run at all.
    StoreFailed {
        /// Why, in one line.
        message: String,
    },
    /// The clients of a phase begin.
    PhaseBegan(Box<PhaseBegan>),
    /// How far the phase is; several times a second.
    Progress(Progress),
    /// How far reading again what was not answered or looked wrong is.
    ReadingAgain(Progress),
    /// An interval of the phase is complete: all workers have passed it.
    Interval(Box<Interval>),
    /// What machine, kvdyno and servers used from one sample to the next.
    Used(Used),
    /// What servers told of their work beside requests while the load goes on, such as a promotion. The phase's result has
    /// all of it.
    Worked {
        /// Times are ns since the phase began.
        work: Vec<EventResult>,
    },
    /// Something is done to nodes now: a fault, or its repair.
    FaultBegan {
        /// What.
        what: String,
        /// When, ns since the phase began.
        at_ns: u64,
    },
    /// It is done, or could not be. How long copies took to be whole is in the phase's result.
    FaultDone(Box<FaultResult>),
    /// Somebody at the live page has done something to the phase.
    Steered(SteeredResult),
    /// What is put right, or waited for, once the clients are done.
    #[serde(rename = "mending")]
    RecoveryWait {
        /// What, such as `start again: redis-1`.
        what: String,
    },
    /// Processes of the testbed's nodes that came after it was up, all so far.
    NodesCame {
        /// In the order in which they came.
        nodes: Vec<TestbedNode>,
    },
    /// The phase's clients are done, and what looked wrong was read again.
    LoadEnded(Box<LoadEnded>),
    /// A phase is over, with all that belongs to it: reading back, and what became of the writes.
    PhaseEnded(Box<PhaseResult>),
    /// A search has tried something.
    Probed(Box<ProbeResult>),
    /// A search has found what it looked for, or given up.
    Searched(Box<CapacityResult>),
    /// How the measurement of the store that runs is judged so far: what is told of a phase when it is over.
    JudgedSoFar {
        /// Whether what was measured may be believed.
        verdict: Verdict,
        /// How the suite's claims about the store stand.
        claims: Vec<ClaimResult>,
    },
    /// The store is done with.
    StoreEnded(StoreEnded),
    /// How the suite's claims about the store stand.
    Judged {
        /// Each claim.
        claims: Vec<ClaimResult>,
    },
    /// The run is over.
    RunEnded {
        /// How far it came.
        status: Status,
        /// When, RFC 3339, UTC.
        at: String,
    },
}

/// A run that begins.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunBegan {
    /// [`FORMAT`].
    pub format: u32,
    /// Its result, without any figures yet.
    pub result: RunResult,
}

/// A phase that begins.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PhaseBegan {
    /// Number of the store's run, from 0.
    pub run: usize,
    /// Name of the store.
    pub store: String,
    /// When, ns since the run began.
    pub offset_ns: Nanos,
    /// What it is.
    pub plan: PhasePlan,
}

/// What is told of a load as soon as it is over.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LoadEnded {
    /// Examples of anomalies; the phase's result counts all.
    pub anomalies: Vec<AnomalyResult>,
    /// Histories of sampled records in Jepsen's EDN, if they were kept.
    pub history: Option<String>,
    /// What became of records that were old or absent when they were read last.
    pub old: OldRecords,
}

/// A store that is done with.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StoreEnded {
    /// Whether what was measured may be believed.
    pub verdict: Verdict,
    /// How far it came.
    pub status: Status,
    /// Why it did not come to its end.
    #[serde(default)]
    pub cause: Option<EndCause>,
    /// When, RFC 3339, UTC.
    pub at: String,
}

impl Event {
    /// A run whose result has no figures yet begins.
    #[must_use]
    pub fn run_began(result: RunResult) -> Event {
        Event::RunBegan(Box::new(RunBegan { format: FORMAT, result }))
    }

    /// Whoever is behind may pass over it: the result does not depend on it.
    #[must_use]
    pub fn may_be_missed(&self) -> bool {
        matches!(
            self,
            Event::Progress(_)
                | Event::ReadingAgain(_)
                | Event::Interval(_)
                | Event::Used(_)
                | Event::Worked { .. }
                | Event::JudgedSoFar { .. }
                | Event::RecoveryWait { .. }
        )
    }

    /// About how much memory it takes, bytes.
    pub(crate) fn weight(&self) -> usize {
        const PLAIN: usize = 256;
        match self {
            Event::Interval(interval) => PLAIN + interval.weight(),
            _ => PLAIN,
        }
    }
}

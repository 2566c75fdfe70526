//! Events of a run: plain values, told once, in order, to all parts that need them. The result of a run is a fold over
//! them ([`fold`]); a subscriber ([`stream`]) receives them and changes nothing.
//!
//! Times of intervals and of samples count from the begin of the run, so that all phases have one clock. Times in a
//! phase's results ([`FaultResult`], [`PhaseResult`]) count from the begin of that phase.

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

/// Number of the format of written events; a reader refuses any other.
pub const FORMAT: u32 = 1;

/// An event of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub enum Event {
    /// A run begins.
    RunBegan(Box<RunBegan>),
    /// A store begins, with its promises and its testbed.
    StoreBegan(Box<StoreRun>),
    /// A store could not be run at all.
    StoreFailed {
        /// Reason, in one line.
        message: String,
    },
    /// The clients of a phase begin.
    PhaseBegan(Box<PhaseBegan>),
    /// Progress of the phase; several times a second.
    Progress(Progress),
    /// Progress of reading records again that were not answered or looked wrong.
    ReadingAgain(Progress),
    /// An interval of the phase is complete: all workers have passed it.
    Interval(Box<Interval>),
    /// Resources that machine, kvdyno and servers used from one sample to the next.
    Used(Used),
    /// Events that servers reported of their other work, such as a promotion, while the load goes on. The phase's result
    /// has all of them.
    Worked {
        /// Events of the servers; times are ns since the phase began.
        work: Vec<EventResult>,
    },
    /// A fault, or its repair, begins.
    FaultBegan {
        /// Name of the action.
        what: String,
        /// Begin, ns since the phase began.
        at_ns: u64,
    },
    /// The fault or repair is done, or could not be done. The phase's result has the time until copies were whole.
    FaultDone(Box<FaultResult>),
    /// A person at the live page has changed the phase.
    Steered(SteeredResult),
    /// A repair, or a wait for recovery, once the clients are done.
    #[serde(rename = "mending")]
    RecoveryWait {
        /// Name of the action, such as `start again: redis-1`.
        what: String,
    },
    /// Processes of the testbed's nodes that started after it was up, all so far.
    NodesCame {
        /// Processes in the order of their start.
        nodes: Vec<TestbedNode>,
    },
    /// The phase's clients are done, and records with suspicious reads were read again.
    LoadEnded(Box<LoadEnded>),
    /// A phase is over, with all that belongs to it: reading back, and the account of its writes.
    PhaseEnded(Box<PhaseResult>),
    /// A search has made a probe.
    Probed(Box<ProbeResult>),
    /// A search has ended, with or without an answer.
    Searched(Box<CapacityResult>),
    /// The verdict and claims so far on the store that is running: sent when a phase is over.
    JudgedSoFar {
        /// Verdict on the measurement.
        verdict: Verdict,
        /// Results of the suite's claims about the store.
        claims: Vec<ClaimResult>,
    },
    /// A store is finished.
    StoreEnded(StoreEnded),
    /// The suite's claims about the store are judged.
    Judged {
        /// Result of each claim.
        claims: Vec<ClaimResult>,
    },
    /// The run is over.
    RunEnded {
        /// Status of the run.
        status: Status,
        /// Time, RFC 3339, UTC.
        at: String,
    },
}

/// Begin of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunBegan {
    /// Format of the events, [`FORMAT`].
    pub format: u32,
    /// Result of the run, without any figures yet.
    pub result: RunResult,
}

/// Begin of a phase.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PhaseBegan {
    /// Number of the store's run, from 0.
    pub run: usize,
    /// Name of the store.
    pub store: String,
    /// Begin of the phase, ns since the run began.
    pub offset_ns: Nanos,
    /// Plan of the phase.
    pub plan: PhasePlan,
}

/// Findings of a load as soon as it is over.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LoadEnded {
    /// Examples of anomalies; the phase's result counts all.
    pub anomalies: Vec<AnomalyResult>,
    /// Histories of sampled records in Jepsen's EDN, if they were kept.
    pub history: Option<String>,
    /// Counts of records that were old or absent at their last read, by what became of them.
    pub old: OldRecords,
}

/// End of a store's run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StoreEnded {
    /// Verdict on the measurement.
    pub verdict: Verdict,
    /// Status of the store's run.
    pub status: Status,
    /// Reason why it did not come to its end.
    #[serde(default)]
    pub cause: Option<EndCause>,
    /// Time, RFC 3339, UTC.
    pub at: String,
}

impl Event {
    /// Makes the begin of a run, whose result has no figures yet.
    #[must_use]
    pub fn run_began(result: RunResult) -> Event {
        Event::RunBegan(Box::new(RunBegan { format: FORMAT, result }))
    }

    /// Returns true for an event that a slow subscriber may miss: the result does not depend on it.
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

    /// Estimates the memory that the event takes, bytes.
    pub(crate) fn weight(&self) -> usize {
        const PLAIN: usize = 256;
        match self {
            Event::Interval(interval) => PLAIN + interval.weight(),
            _ => PLAIN,
        }
    }
}

//! How much a reason must rest on before anything is said: a share of too little is a share of nothing. One
//! tick of a clock that ticks a hundred times a second is half of a phase of 20 ms.

use super::reason::Reason;
use crate::measure::{LEAST_TICKS, LEAST_TIME};

/// What a figure is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Basis {
    /// Things that happened, each counted, or what the plan and the build say: nothing is estimated.
    Facts,
    /// Operations that ended.
    Operations,
    /// Requests that fell due.
    Due,
    /// Requests that a free client sent when they fell due, and answers to requests that had due times:
    /// whichever is less.
    Sends,
    /// Whole intervals of the timeline.
    Intervals,
    /// Ticks of the clock by which the system shares a processor's time out, 10 ms as a rule.
    Ticks,
    /// Milliseconds of a client thread's life, whose times the system counts in nanoseconds.
    ThreadTime,
}

impl Basis {
    /// In a sentence, after a number.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Basis::Facts => "facts",
            Basis::Operations => "operations",
            Basis::Due => "requests due",
            Basis::Sends => "timed sends",
            Basis::Intervals => "whole intervals",
            Basis::Ticks => "clock ticks",
            Basis::ThreadTime => "ms of a client thread",
        }
    }
}

/// The least that a reason rests on: below it nothing is said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Least {
    /// How much.
    pub number: u64,
    /// Of what.
    pub of: Basis,
}

impl Reason {
    /// What it must rest on.
    #[must_use]
    pub fn least(&self) -> Least {
        let (number, of) = match self {
            // A thread is given and denied its processor for some milliseconds at a time.
            Reason::ClientLimited { .. } => (LEAST_TIME.as_millis() as u64, Basis::ThreadTime),
            // The first operations find cold caches.
            Reason::HarnessShare { .. } => (10_000, Basis::Operations),
            // One that falls due at the very end may have no time left.
            Reason::MissedSchedule { .. } => (20, Basis::Due),
            // A 99th percentile of fewer is their longest.
            Reason::LateSends { .. } => (100, Basis::Sends),
            Reason::Drift { .. } => (8, Basis::Intervals),
            Reason::NeverSettled { .. } => (12, Basis::Intervals),
            Reason::LittlesLaw { .. } | Reason::IdleClients { .. } => (100, Basis::Operations),
            Reason::OtherLoad { .. } | Reason::WaitedToRun { .. } | Reason::Disturbed { .. } => {
                (LEAST_TICKS, Basis::Ticks)
            }
            // Gaps are facts, and too few of them are none (`measure::Stalls`).
            Reason::ClientStalled { .. }
            | Reason::UnexpectedMisses { .. }
            | Reason::ErrorRatio { .. }
            | Reason::TooFewSamples { .. }
            | Reason::TooShort { .. }
            | Reason::CutShort { .. }
            | Reason::DebugBuild
            | Reason::Incomplete { .. }
            | Reason::Scaled { .. }
            | Reason::Steered { .. }
            | Reason::Unjudged { .. }
            | Reason::OtherRun { .. }
            | Reason::AgentLost { .. }
            | Reason::AgentUnlike { .. }
            | Reason::ServerEnded { .. }
            | Reason::TestbedGone
            | Reason::BeginLate { .. }
            | Reason::KeysSkewed { .. }
            | Reason::ClocksUncertain { .. }
            | Reason::Anomalies { .. } => (0, Basis::Facts),
        };
        Least { number, of }
    }
}

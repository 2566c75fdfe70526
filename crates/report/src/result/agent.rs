//! Part of one of several agents in a phase.

use serde::{Deserialize, Serialize};

/// A process that carried a part of a phase's load. Its measurements are among the figures of the phase; these show
/// whether the agents were alike.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct AgentResult {
    /// Name of the agent in this run.
    pub name: String,
    /// Name of its machine.
    pub machine: String,
    /// Number of its process on that machine.
    pub process: u32,
    /// Number of its worker threads.
    pub workers: u32,
    /// Request slots that these threads carried.
    pub clients: u32,
    /// Operations that ended, successfully or not; a batch counts with each agent that owns records of it.
    pub operations: u64,
    /// Share that these are of all operations of the phase, 0 to 1.
    pub share: f64,
    /// Operations a second that succeeded.
    pub rate: Option<f64>,
    /// 99th percentile of those that succeeded (for gets, of the hits), ns: response time where arrivals are open, else
    /// service time.
    pub p99_ns: Option<u64>,
    /// 99th percentile of the lag of its requests, sent late although a client was free, ns; open arrivals only.
    pub late_p99_ns: Option<u64>,
    /// Delay of its first worker's begin after the agreed moment, by its own clock, ns.
    pub begin_late_ns: Option<u64>,
    /// Processors that its workers kept busy, spinning left out.
    pub processors: f64,
    /// Share of the processor time of its workers, spinning left out, in which they drew operations that other agents
    /// carried out.
    pub passing: Option<f64>,
    /// Share of the time in which its busiest worker worked or would have, spinning left out.
    pub busiest: f64,
    /// Difference of its machine's CLOCK_MONOTONIC from the conductor's, ns, before the phase: agent's minus conductor's.
    pub clock_offset_ns: i64,
    /// Bound of the error of that difference, ns; from the phase's begin to its end, if the agent was there to be asked
    /// again. The agent's times here have the same precision.
    pub clock_uncertainty_ns: u64,
    /// Reason why it was lost, if it was.
    pub lost: Option<String>,
    /// Share of all its machine's processors' time spent working, by any process.
    pub machine_busy: Option<f64>,
    /// Share of all its machine's processors' time that other virtual machines took.
    pub steal: Option<f64>,
    /// Share of its speed that its machine's fullest network link carried in one direction.
    pub link: Option<f64>,
    /// Most bytes that waited in the queues of its machine's TCP sockets; sampled once a second.
    pub queued_bytes: Option<u64>,
    /// Values of records of other agents that it read; their owners' floors tell which versions they may hold.
    #[serde(default)]
    pub foreign_reads: u64,
    /// Number of them that were judged by these floors.
    #[serde(default)]
    pub foreign_judged: u64,
    /// Number of each interval in which at least 200 of its operations ended, with their p99, ns.
    pub p99s_ns: Vec<(u32, u64)>,
}

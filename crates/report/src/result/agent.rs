//! What one of several agents did in a phase.

use serde::{Deserialize, Serialize};

/// A process that carried a part of a phase's load. What it measured is among the figures of the phase; these
/// show whether the agents were alike.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct AgentResult {
    /// What it is called in this run.
    pub name: String,
    /// Name of its machine.
    pub machine: String,
    /// Number of its process there.
    pub process: u32,
    /// Its worker threads.
    pub workers: u32,
    /// Request slots that these carried.
    pub clients: u32,
    /// Operations that ended, in whatever way; a batch counts with each agent that owns records of it.
    pub operations: u64,
    /// Their share of all operations of the phase, 0 to 1.
    pub share: f64,
    /// Operations a second that succeeded.
    pub rate: Option<f64>,
    /// 99th percentile of those that succeeded, of gets the hits, ns: response time where arrivals are open, else service time.
    pub p99_ns: Option<u64>,
    /// 99th percentile of how late it sent requests although a client was free, ns; open arrivals only.
    pub late_p99_ns: Option<u64>,
    /// How long after the agreed moment its first worker began, by its own clock, ns.
    pub begin_late_ns: Option<u64>,
    /// Processors that its workers kept busy, spinning left out.
    pub processors: f64,
    /// Share of the processor time of its workers, spinning left out, in which they drew what other agents carried out.
    pub passing: Option<f64>,
    /// Share of the time that its busiest worker worked or would have, spinning left out.
    pub busiest: f64,
    /// Its machine's CLOCK_MONOTONIC less the conductor's, ns, before the phase.
    pub clock_offset_ns: i64,
    /// The true difference is no further from that, ns; from the phase's begin to its end, if the agent was there
    /// to be asked again. So exact are the agent's times here, too.
    pub clock_uncertainty_ns: u64,
    /// Why it was lost, if it was.
    pub lost: Option<String>,
    /// Share of all its machine's processors' time spent working, whoever for.
    pub machine_busy: Option<f64>,
    /// Share of it that other virtual machines took.
    pub steal: Option<f64>,
    /// Share of its speed that its machine's fullest network link carried in one direction.
    pub link: Option<f64>,
    /// Most bytes that were seen waiting in the queues of its machine's TCP sockets; looked at once a second.
    pub queued_bytes: Option<u64>,
    /// Values that it read of records that other agents own; their owners' floors tell what they may hold.
    #[serde(default)]
    pub foreign_reads: u64,
    /// Those of them that were judged by these floors.
    #[serde(default)]
    pub foreign_judged: u64,
    /// Number of each interval in which at least 200 of its operations ended, with their p99, ns.
    pub p99s_ns: Vec<(u32, u64)>,
}

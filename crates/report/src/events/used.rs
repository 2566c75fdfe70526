//! Resources used from one sample to the next.

use kvdyno_core::measure::{Nanos, ProcessCounters, Sample};
use serde::{Deserialize, Serialize};

/// Name of the whole machine among the processes.
pub const MACHINE: &str = "machine";
/// Name of kvdyno itself among the processes.
pub const OWN: &str = "kvdyno";

/// Resources used during a stretch of time. Times are ns since the run began.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Used {
    /// Begin, ns.
    pub from_ns: Nanos,
    /// End, ns.
    pub to_ns: Nanos,
    /// Use by the whole machine ([`MACHINE`]), by kvdyno ([`OWN`]) and by each server that was there all the time.
    pub processes: Vec<ProcessUsed>,
}

/// Resources used by one process.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ProcessUsed {
    /// [`MACHINE`], [`OWN`], or the name of a node.
    pub process: String,
    /// Processors kept busy: 1.5 is one and a half.
    pub processors: f64,
    /// Memory held at the end, bytes.
    pub rss_bytes: Option<u64>,
    /// Bytes read from storage, where the system tells.
    pub read_bytes: Option<u64>,
    /// Bytes sent to storage, where the system tells.
    pub written_bytes: Option<u64>,
    /// Bytes received, by a node with a network namespace of its own.
    pub received_bytes: Option<u64>,
    /// Bytes sent, by a node with a network namespace of its own.
    pub sent_bytes: Option<u64>,
}

/// Returns the resources used between two samples of a run that began at `origin`; `nodes` are the names of the sampled
/// servers, in their order. `None` if no time passed.
#[must_use]
pub fn used(before: &Sample, after: &Sample, nodes: &[String], origin: Nanos) -> Option<Used> {
    let seconds = after.at.saturating_sub(before.at) as f64 / 1e9;
    if seconds <= 0.0 {
        return None;
    }
    let mut processes = vec![
        ProcessUsed {
            process: MACHINE.to_owned(),
            processors: after.machine.since(&before.machine).busy(),
            ..ProcessUsed::default()
        },
        process(OWN, &before.own, &after.own, seconds),
    ];
    for ((name, before), after) in nodes.iter().zip(&before.servers).zip(&after.servers) {
        if let (Some(before), Some(after)) = (before, after) {
            processes.push(process(name, before, after, seconds));
        }
    }
    let since = |at: Nanos| at.saturating_sub(origin);
    Some(Used { from_ns: since(before.at), to_ns: since(after.at), processes })
}

fn process(
    name: &str,
    before: &ProcessCounters,
    after: &ProcessCounters,
    seconds: f64,
) -> ProcessUsed {
    let worked = (after.user + after.system).saturating_sub(before.user + before.system);
    let grown = |a: Option<u64>, b: Option<u64>| Some(b?.saturating_sub(a?));
    ProcessUsed {
        process: name.to_owned(),
        processors: worked.as_secs_f64() / seconds,
        rss_bytes: Some(after.rss),
        read_bytes: grown(before.read_bytes, after.read_bytes),
        written_bytes: grown(before.written_bytes, after.written_bytes),
        received_bytes: grown(before.received_bytes, after.received_bytes),
        sent_bytes: grown(before.sent_bytes, after.sent_bytes),
    }
}

//! What was done to the testbed while a phase ran: a fault, or its repair.

use kvdyno_core::workload::fault::{ActionFailure, FaultKind, Lose, ProcessOutcome, Repair};
use serde::{Deserialize, Serialize};

/// One thing done to one node. Times are ns since the phase began.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct FaultResult {
    /// What was done: `kill`, `pause`, `rewrite`, `move records`; `resume`, `start again`, `reconnect`,
    /// `network as before` and `disk freed` repair.
    pub what: String,
    /// Name of the node; empty if none was to be found.
    pub node: String,
    /// What the node was to the others just before, where that is known: `primary`.
    pub role: Option<String>,
    /// When it was begun.
    pub began_ns: u64,
    /// When it was done: the process gone, the rewrite over, the node serving again.
    pub ended_ns: u64,
    /// By which means: a signal, a tool of the system, a command of the store's or the user's.
    pub used: Option<String>,
    /// Why it could not be done.
    pub error: Option<String>,
    /// The way in which it could not be done: `process-ended`, `not-ready`, `usage`, `machine` or `other`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, schemars(with = "Option<String>"))]
    pub failure: Option<ActionFailure>,
    /// Of a fault that ended the node's processes: when none of them ran.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dark: Option<DarkSpan>,
    /// Of a repair, and of a node that was added: until every copy of every record was there again;
    /// `None` where the servers cannot tell.
    pub whole: Option<Redundancy>,
    /// Of a fault: what was missing of the copies that an earlier repair was to bring back. It was a
    /// second failure before copies were whole.
    pub not_whole: Option<String>,
    /// Figures of a cut of power that was done, of all nodes that it met at that moment.
    #[serde(default)]
    pub cut: Option<CutResult>,
}

/// Time in which no process of a node ran, ns since the phase began.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct DarkSpan {
    /// When the last one had ended.
    pub from_ns: u64,
    /// When the node was started again; `None` if it was not in the phase.
    pub to_ns: Option<u64>,
}

impl DarkSpan {
    /// Returns true if it was dark at a time. At its begin it was, however short it is.
    #[must_use]
    pub fn covers(&self, at_ns: u64) -> bool {
        self.from_ns <= at_ns && (at_ns == self.from_ns || self.to_ns.is_none_or(|to| at_ns < to))
    }
}

/// Notes of each fault of a phase when its node was dark because of it: what was done later says until when.
pub fn mark_dark(faults: &mut [FaultResult]) {
    for at in 0..faults.len() {
        let fault = &faults[at];
        let began_again = |from: u64| {
            let starts = faults.iter().filter(|again| {
                again.error.is_none()
                    && again.node == fault.node
                    && again.what == Repair::Start.told()
            });
            starts.map(|again| again.began_ns).filter(|began| *began >= from).min()
        };
        let dark = fault.done_fate().and_then(|fate| match fate {
            ProcessOutcome::Ended => {
                let from_ns = fault.ended_ns.max(fault.began_ns);
                Some(DarkSpan { from_ns, to_ns: began_again(from_ns) })
            }
            ProcessOutcome::Renewed => {
                Some(DarkSpan { from_ns: fault.began_ns, to_ns: Some(fault.ended_ns) })
            }
            ProcessOutcome::Untouched
            | ProcessOutcome::Paused
            | ProcessOutcome::Resumed
            | ProcessOutcome::Left => None,
        });
        faults[at].dark = dark;
    }
}

/// Figures of a cut of power.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct CutResult {
    /// From the order to stand still until the last file system was shut, ns.
    pub frozen_ns: u64,
    /// From the first order to hold flushes until all disks did, ns, before that; `None` where disks cannot hold any.
    pub held_within_ns: Option<u64>,
    /// Bytes of files that lay in memory alone and are gone; `None` where the kernel does not tell.
    pub in_memory: Option<u64>,
    /// Writes since the disk's last flush, or sectors of them, of which the cut decided what stays; `None` where the disk
    /// keeps all that it was handed.
    pub undecided: Option<u64>,
    /// Bytes that the file systems had handed to their disks since they were last cut off, or since the testbed was set up;
    /// `None` where that is not known.
    #[serde(default)]
    pub written: Option<u64>,
    /// Part that it took of what disks had been handed and had not flushed: `unwritten` is nothing, `some`, `torn` and
    /// `unflushed` as faults say it. `None` in results of versions that did not keep it.
    #[serde(default)]
    #[cfg_attr(test, schemars(with = "Option<String>"))]
    pub lose: Option<Lose>,
    /// Inserts that it met, as far as they were looked for when every node and copy was back, before the next cut.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub looked_back: Option<LookedBackResult>,
}

/// Inserts that were looked for after a cut of power, by clients outside of every figure.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct LookedBackResult {
    /// Acknowledged since the cut before.
    pub acknowledged: u64,
    /// Newest of these that the store answered about in the time that there was.
    pub answered: u64,
    /// Number of these that were absent at each of several looks.
    pub absent: u64,
}

impl CutResult {
    /// Returns true if the cut met anything that was not on the disk for good; `None` where that is not known.
    #[must_use]
    pub fn had_stake(&self) -> Option<bool> {
        let met = |count: Option<u64>| count.is_some_and(|count| count > 0);
        match met(self.in_memory) || met(self.undecided) {
            true => Some(true),
            false if self.in_memory.is_none() => None,
            false => Some(false),
        }
    }
}

/// How long copies took to be whole again.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Redundancy {
    /// From the begin of the repair until every copy was there, ns: the time to full redundancy. `None`
    /// if that did not come within `watched_ns`.
    pub after_ns: Option<u64>,
    /// How long it was watched, from the begin of the repair, ns.
    pub watched_ns: u64,
    /// What was missing when it was last looked at; empty where nothing was.
    pub missing: String,
}

/// A node that served and got no requests.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct UnaskedNode {
    /// Its name.
    pub node: String,
    /// From when, ns since the phase began: the phase's begin, or when it served again.
    pub from_ns: u64,
    /// Until when, ns since the phase began: a fault, or the end of the phase.
    pub to_ns: u64,
}

/// What [`FaultResult::what`] tells of clients that move the records of a node that was added to it.
pub const MOVE_RECORDS: &str = "move records";

/// Returns true if what was done puts right what a fault did.
#[must_use]
pub fn is_repair(what: &str) -> bool {
    Repair::ALL.iter().any(|repair| repair.told() == what)
}

impl FaultResult {
    /// It puts right what a fault did.
    #[must_use]
    pub fn repairs(&self) -> bool {
        is_repair(&self.what)
    }

    /// The kind of fault that it is; none of repairs.
    #[must_use]
    pub fn kind(&self) -> Option<&'static FaultKind> {
        FaultKind::of(&self.what)
    }

    /// What became of the node's processes, of a fault that was done.
    fn done_fate(&self) -> Option<ProcessOutcome> {
        self.kind().filter(|_| self.error.is_none()).map(|kind| kind.fate)
    }

    /// Returns true if it ended the node's processes, by a cut of power or otherwise.
    #[must_use]
    pub fn ends_processes(&self) -> bool {
        matches!(self.done_fate(), Some(ProcessOutcome::Ended | ProcessOutcome::Renewed))
    }

    /// It leaves nothing to repair: it is over when it is done, or stays.
    #[must_use]
    pub fn ends_by_itself(&self) -> bool {
        self.what == MOVE_RECORDS || self.kind().is_some_and(|kind| kind.repair.is_none())
    }

    /// It is a fault of this kind, and was done.
    #[must_use]
    pub fn was(&self, kind: &FaultKind) -> bool {
        self.error.is_none() && self.kind() == Some(kind)
    }

    /// The same was done to another node at the same moment, with the same end.
    fn is_one_with(&self, other: &FaultResult) -> bool {
        let of = |fault: &FaultResult| {
            let FaultResult { what, began_ns, ended_ns, used, error, .. } = fault.clone();
            (what, began_ns, ended_ns, used, error)
        };
        of(self) == of(other)
    }
}

/// What was done, each moment once: what befell several nodes at one moment is one, its `node` all of
/// them as [`several`] tells them.
#[must_use]
pub fn moments(faults: &[FaultResult]) -> Vec<FaultResult> {
    let together = faults.chunk_by(|one, next| one.is_one_with(next));
    together
        .map(|moment| {
            let nodes: Vec<&str> = moment.iter().map(|fault| fault.node.as_str()).collect();
            let first = moment[0].clone();
            let alike = moment.iter().all(|fault| fault.role == first.role);
            let role = first.role.filter(|_| alike);
            FaultResult { node: several(&nodes), role, ..first }
        })
        .collect()
}

/// Names of nodes: a few of them, or how many there are.
#[must_use]
pub fn several(nodes: &[&str]) -> String {
    const FEW: usize = 3;
    match nodes {
        few if few.len() <= FEW => few.join(", "),
        many => format!("{} nodes", many.len()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_befell_several_nodes_at_one_moment_is_one() {
        let fault = |node: &str, began_ns| FaultResult {
            what: "rewrite".to_owned(),
            node: node.to_owned(),
            role: Some("peer".to_owned()),
            began_ns,
            ended_ns: 9,
            ..FaultResult::default()
        };
        let told = |faults: &[FaultResult]| -> Vec<String> {
            moments(faults).into_iter().map(|fault| fault.node).collect()
        };
        assert!(told(&[]).is_empty());
        let all = [fault("r-1", 1), fault("r-2", 1), fault("r-3", 1), fault("r-4", 1)];
        assert_eq!(told(&all), ["4 nodes"]);
        assert_eq!(told(&all[..3]), ["r-1, r-2, r-3"]);
        assert_eq!(told(&[fault("r-1", 1), fault("r-1", 5)]), ["r-1", "r-1"]);
        let mixed = [fault("r-1", 1), FaultResult { role: None, ..fault("r-2", 1) }];
        assert_eq!(moments(&mixed)[0].role, None);
    }
}

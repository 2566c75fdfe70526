//! Actions on the testbed while a phase ran: faults and repairs.

use kvdyno_core::workload::fault::{ActionFailure, FaultKind, Lose, ProcessOutcome, Repair};
use serde::{Deserialize, Serialize};

/// An action on one node. Times are ns since the phase began.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct FaultResult {
    /// Name of the action: `kill`, `pause`, `rewrite`, `move records`; `resume`, `start again`, `reconnect`,
    /// `network as before` and `disk freed` repair.
    pub what: String,
    /// Name of the node; empty if none was to be found.
    pub node: String,
    /// Role of the node just before, where it is known: `primary`.
    pub role: Option<String>,
    /// Begin of the action.
    pub began_ns: u64,
    /// End of the action: the process gone, the rewrite over, the node serving again.
    pub ended_ns: u64,
    /// Means by which it was done: a signal, a tool of the system, a command of the store's or the user's.
    pub used: Option<String>,
    /// Reason why it could not be done.
    pub error: Option<String>,
    /// Kind of that failure: `process-ended`, `not-ready`, `usage`, `machine` or `other`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, schemars(with = "Option<String>"))]
    pub failure: Option<ActionFailure>,
    /// Time in which no process of the node ran, if a fault ended them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dark: Option<DarkSpan>,
    /// Time until every copy of every record was there again, after a repair or after a node was added; `None` where the
    /// servers cannot tell.
    pub whole: Option<Redundancy>,
    /// Copies that an earlier repair had not brought back yet when a fault began: it was a second failure before copies
    /// were whole.
    pub not_whole: Option<String>,
    /// Figures of a cut of power that was done, over all nodes that it hit at that moment.
    #[serde(default)]
    pub cut: Option<CutResult>,
}

/// Time in which no process of a node ran, ns since the phase began.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct DarkSpan {
    /// End of the last process.
    pub from_ns: u64,
    /// Time at which the node was started again; `None` if it was not in the phase.
    pub to_ns: Option<u64>,
}

impl DarkSpan {
    /// Returns true if the node was dark at a time. At the begin of the span it was, however short it is.
    #[must_use]
    pub fn covers(&self, at_ns: u64) -> bool {
        self.from_ns <= at_ns && (at_ns == self.from_ns || self.to_ns.is_none_or(|to| at_ns < to))
    }
}

/// Records for each fault of a phase when its node was dark because of it: later actions say until when.
pub fn mark_dark(faults: &mut [FaultResult]) {
    for at in 0..faults.len() {
        let fault = &faults[at];
        let began_again = |from: u64| {
            let starts = faults.iter().filter(|again| {
                again.error.is_none()
                    && again.node == fault.node
                    && again.what == Repair::Start.describe()
            });
            starts.map(|again| again.began_ns).filter(|began| *began >= from).min()
        };
        let dark = fault.done_outcome().and_then(|outcome| match outcome {
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
    /// Time from the order to stand still until the last file system was shut, ns.
    pub frozen_ns: u64,
    /// Time from the first order to hold flushes until all disks did, ns, before that; `None` where disks cannot hold any.
    pub held_within_ns: Option<u64>,
    /// Bytes of files that were in memory only and are lost; `None` where the kernel does not tell.
    pub in_memory: Option<u64>,
    /// Writes since the disk's last flush, or sectors of them, that the cut may keep or drop; `None` where the disk keeps
    /// everything that it was handed.
    pub undecided: Option<u64>,
    /// Bytes that the file systems had handed to their disks since they were last cut off, or since the testbed was set
    /// up; `None` where that is not known.
    #[serde(default)]
    pub written: Option<u64>,
    /// Part that the cut took of what disks had been handed and had not flushed: `unwritten` is nothing, `some`, `torn`
    /// and `unflushed` as in faults. `None` in results of versions that did not keep it.
    #[serde(default)]
    #[cfg_attr(test, schemars(with = "Option<String>"))]
    pub lose: Option<Lose>,
    /// Inserts that the cut hit, as far as they were looked for when every node and copy was back, before the next cut.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub looked_back: Option<LookedBackResult>,
}

/// Inserts that were looked for after a cut of power, by clients that count in no figure.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct LookedBackResult {
    /// Inserts acknowledged since the cut before.
    pub acknowledged: u64,
    /// Number of the newest of these for which the store gave an answer in the available time.
    pub answered: u64,
    /// Number of these that were absent at each of several looks.
    pub absent: u64,
}

impl CutResult {
    /// Returns true if anything was not yet on the disk for good at the cut; `None` where that is not known.
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

/// Time that copies took to be whole again.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Redundancy {
    /// Time from the begin of the repair until every copy was there, ns: the time to full redundancy. `None` if that did
    /// not come within `watched_ns`.
    pub after_ns: Option<u64>,
    /// Time that it was watched, from the begin of the repair, ns.
    pub watched_ns: u64,
    /// Copies that were missing at the last look; empty if none was.
    pub missing: String,
}

/// A node that served and got no requests.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct UnaskedNode {
    /// Name of the node.
    pub node: String,
    /// Begin of that stretch, ns since the phase began: the phase's begin, or when the node served again.
    pub from_ns: u64,
    /// End of that stretch, ns since the phase began: a fault, or the end of the phase.
    pub to_ns: u64,
}

/// Text in [`FaultResult::what`] for clients that move records to a node that was added.
pub const MOVE_RECORDS: &str = "move records";

/// Returns true if an action repairs what a fault did.
#[must_use]
pub fn is_repair(what: &str) -> bool {
    Repair::ALL.iter().any(|repair| repair.describe() == what)
}

impl FaultResult {
    /// Returns true if the action repairs what a fault did.
    #[must_use]
    pub fn repairs(&self) -> bool {
        is_repair(&self.what)
    }

    /// Returns the kind of fault that it is; `None` for repairs.
    #[must_use]
    pub fn kind(&self) -> Option<&'static FaultKind> {
        FaultKind::of(&self.what)
    }

    /// Returns the outcome for the node's processes; `None` unless it is a fault that was done.
    fn done_outcome(&self) -> Option<ProcessOutcome> {
        self.kind().filter(|_| self.error.is_none()).map(|kind| kind.outcome)
    }

    /// Returns true if it ended the node's processes, by a cut of power or otherwise.
    #[must_use]
    pub fn ends_processes(&self) -> bool {
        matches!(self.done_outcome(), Some(ProcessOutcome::Ended | ProcessOutcome::Renewed))
    }

    /// Returns true if it leaves nothing to repair: it is over when it is done, or stays.
    #[must_use]
    pub fn ends_by_itself(&self) -> bool {
        self.what == MOVE_RECORDS || self.kind().is_some_and(|kind| kind.repair.is_none())
    }

    /// Returns true if it is a fault of this kind, and was done.
    #[must_use]
    pub fn was(&self, kind: &FaultKind) -> bool {
        self.error.is_none() && self.kind() == Some(kind)
    }

    /// Returns true if the same was done to another node at the same moment, with the same outcome.
    fn is_one_with(&self, other: &FaultResult) -> bool {
        let of = |fault: &FaultResult| {
            let FaultResult { what, began_ns, ended_ns, used, error, .. } = fault.clone();
            (what, began_ns, ended_ns, used, error)
        };
        of(self) == of(other)
    }
}

/// Lists actions, each moment once: an action on several nodes at one moment is one entry, whose `node` names them as
/// [`several`] does.
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

/// Names nodes: a few of them by name, or how many there are.
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

//! Accounts of faults under load and of acknowledged writes, as results hold them. Times are ns; where nothing else is
//! said they count from the begin of the phase.

use serde::{Deserialize, Serialize};

/// A stretch of a phase.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct StretchResult {
    /// Begin of the stretch.
    pub from_ns: u64,
    /// Length of the stretch.
    pub length_ns: u64,
}

/// The longest stretches of a phase in which nothing succeeded, from its begin, one success to the
/// next, or its end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Unavailable {
    /// Longest stretch without success of any operation.
    pub all: StretchResult,
    /// Longest stretch without success of an operation that only reads; `None` if there was no such operation.
    pub reads: Option<StretchResult>,
    /// Longest stretch without success of an operation that writes; `None` if there was no such operation.
    pub writes: Option<StretchResult>,
}

/// Consequences of an action on the testbed: a fault, or its repair.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct FaultAccount {
    /// Name of the action.
    pub what: String,
    /// Nodes that it hit, at about the same time.
    pub nodes: Vec<String>,
    /// Begin of the first of these actions.
    pub began_ns: u64,
    /// End of the last of these actions.
    pub ended_ns: u64,
    /// End of the time in which consequences were watched: a fault's until the next fault, a repair's until the next
    /// action of any kind, at the latest when the phase was over.
    pub until_ns: u64,
    /// Consequences for operations that only read.
    pub reads: Option<SideAccount>,
    /// Consequences for operations that write.
    pub writes: Option<SideAccount>,
    /// Requests that piled up meanwhile; only where all arrivals were open.
    pub backlog: Option<BacklogAccount>,
}

/// Requests that were due and had not ended, of all kinds together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct BacklogAccount {
    /// Most of them at one time.
    pub most: u64,
    /// Due requests that ended without success from the fault's begin until the backlog was drained: they were given up
    /// for good.
    #[serde(default)]
    pub given_up: u64,
    /// Time from the fault's begin until a window began in which no more waited than twice as many as before the fault,
    /// or than fall due in a tenth of a second, and no more ended without success than before. 0 if the first window was
    /// so, `None` if none was.
    #[serde(default)]
    pub answered_ns: Option<u64>,
    /// Time from the fault's begin to the begin of the last window that was judged.
    #[serde(default)]
    pub watched_ns: u64,
    /// Length of the windows; 0 in results of versions that told something else.
    #[serde(default)]
    pub window_ns: u64,
    /// Reason why that is not decided; `None` if it is.
    #[serde(default)]
    pub undecided: Option<Undecided>,
}

/// Consequences of a fault for reads or for writes. Times count from the fault's begin.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct SideAccount {
    /// Operations that succeeded.
    pub ok: u64,
    /// Operations that certainly were not applied.
    pub failed: u64,
    /// Operations that may have been applied.
    pub indeterminate: u64,
    /// Time of the first operation that ended without success; `None` if all succeeded.
    pub first_error_ns: Option<u64>,
    /// Time of the last such operation.
    pub last_error_ns: Option<u64>,
    /// Longest time without success that the fault began; `None` if nothing succeeded in all the time that was watched,
    /// and something earlier had begun that.
    pub unavailable_ns: Option<u64>,
    /// Begin of that stretch, since the phase began: it may lie a little before the fault.
    pub unavailable_from_ns: Option<u64>,
    /// Requests a second that fell due in the watched time after the fault; only where all arrivals were open.
    pub asked_rate: Option<f64>,
    /// Operations a second that succeeded before the first fault of the phase, without the time in which the load caught
    /// up with its schedule, and never more than fell due; `None` if that time was too short, or the time after the fault
    /// was.
    pub former_rate: Option<f64>,
    /// Recovery of the throughput; `None` in results of versions that told something else.
    #[serde(default)]
    pub throughput: Option<ThroughputRecovery>,
    /// 99th percentile before the first fault of the phase, without the time in which the load caught up with its
    /// schedule; failed operations count as infinite; `None` if there is none.
    pub former_p99_ns: Option<f64>,
    /// Recovery of the latency; `None` if there is no former percentile, and in results of versions that told something
    /// else.
    #[serde(default)]
    pub latency: Option<LatencyRecovery>,
}

/// Reason why a recovery is not decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Undecided {
    /// The next action came too soon: half of the time until then is too short for a window.
    WatchedTooShort,
    /// The time before the first fault was too short, or the load was catching up with its schedule then.
    NothingBefore,
    /// Too few operations ended to tell one share from another.
    TooFewOperations,
    /// Before the fault, throughput varied so much that a store at 90 % would look recovered.
    TooVaried,
}

impl Undecided {
    /// Describes the reason in a phrase.
    #[must_use]
    pub fn text(self) -> &'static str {
        match self {
            Undecided::WatchedTooShort => "less than 4 s were watched after a fault",
            Undecided::NothingBefore => {
                "the time before the first fault was too short, or the load was catching up then"
            }
            Undecided::TooFewOperations => "too few operations ended",
            Undecided::TooVaried => "throughput varied too much before the first fault",
        }
    }
}

/// Recovery of the throughput: the begin of the earliest window that is like the windows before the first fault of the
/// phase. Times count from the fault's begin.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ThroughputRecovery {
    /// Length of the windows.
    pub window_ns: u64,
    /// Begin of the last window that was judged.
    pub watched_ns: u64,
    /// Share of the expected operations that a window may lack: the 95 % range of windows before, at most 4.5 %.
    pub may_lack: f64,
    /// Dips of up to this length were usual before.
    pub usual_dip_ns: u64,
    /// Time of return for each share of the throughput that was asked for (closed arrivals: of the former rate). The
    /// whole (1) is left out if it is undecided.
    pub shares: Vec<ShareRecovery>,
    /// Dips after the recovery that are longer than those before the fault.
    pub later_dips: u64,
    /// Longest of them.
    pub longest_later_dip: Option<StretchResult>,
    /// Reason why that is not decided; `None` if it is.
    pub undecided: Option<Undecided>,
}

/// Return of a share of the throughput that was asked for, or of the former one.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ShareRecovery {
    /// Share; 1 is the whole.
    pub share: f64,
    /// Time of return, since the fault's begin; 0 if the first window was as before, `None` if none was.
    pub after_ns: Option<u64>,
}

/// Recovery of the latency: the begin of the earliest window in which no larger share of operations was slow than before
/// the first fault. Times count from the fault's begin, in whole intervals.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct LatencyRecovery {
    /// Operations above this latency are slow: twice the former 99th percentile, ns.
    pub bound_ns: f64,
    /// Share of slow operations before.
    pub former_share: f64,
    /// Length of the windows.
    pub window_ns: u64,
    /// Begin of the last window that was judged.
    pub watched_ns: u64,
    /// Begin of the earliest such window; 0 if the first one was, `None` if none was.
    pub after_ns: Option<u64>,
    /// Reason why that is not decided; `None` if it is.
    pub undecided: Option<Undecided>,
}

/// Reads of a value older than what had been acknowledged before they were sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct StaleAccount {
    /// Number of stale reads, without those whose record is lost.
    pub reads: u64,
    /// Number of reads that the following figures are about: all of them as they were made, with those of records that
    /// are lost. Less than `reads` in results of versions that told them of some only.
    pub examined: u64,
    /// Number of these that found nothing.
    pub absent: u64,
    /// Number of these that found a record which should have expired.
    pub outlived: u64,
    /// Number of these that found a value of an earlier run.
    pub earlier: u64,
    /// Fewest versions that the others were behind; 0 if there are no others.
    pub least_versions: u64,
    /// Most versions that the others were behind; 0 if there are no others.
    pub most_versions: u64,
    /// Least time by which the stalest of all was behind, ns; `None` where that is not known.
    pub most_behind_ns: Option<u64>,
}

/// Account of all writes that the run had made by then: every record was read back.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct WriteAccount {
    /// Writes that were acknowledged, each of one record.
    pub acknowledged: u64,
    /// Writes that certainly were not applied.
    pub failed: u64,
    /// Writes that may have been applied.
    pub indeterminate: u64,
    /// True if no record was written twice, so that every lost write is seen to be lost. If not, the loss of a write that
    /// was overwritten before the fault is not seen: there may be more.
    pub exact: bool,
    /// Acknowledged writes that are lost: records that are still old or absent.
    pub lost: u64,
    /// Records that hold a write though none of their writes was acknowledged.
    pub recovered: u64,
    /// Records whose acknowledged delete was undone.
    pub resurrected: u64,
    /// Records that hold bytes which nobody wrote there.
    pub corrupt: u64,
    /// Records that hold a version which nobody sent, or whose write certainly failed.
    pub phantom: u64,
    /// Records that held an older value at first, and the right one later.
    pub late: u64,
    /// Records without an answer, or that could not be judged.
    pub unknown: u64,
    /// Records that were read back.
    pub read: u64,
    /// Wrong reads while the records were read back: corrupt, phantom, resurrected, stale, lost. Fields are counted
    /// one by one where they are written apart.
    pub anomalies: [u64; 5],
    /// Way in which they were read.
    pub how: String,
    /// Examples of lost writes.
    pub examples: Vec<LostWrite>,
    /// Agreement of the copies of each record, which were read before; `None` where there is one copy only.
    pub copies: Option<CopiesAccount>,
    /// Account of the phase's own writes, if all of them were inserts of new records: then each lost one is seen to be
    /// lost, even if earlier phases overwrote records. `None` if there were other writes, too.
    pub inserts: Option<InsertAccount>,
    /// Account of the phase's own writes, if all of them were deletes, each of another record, and no earlier phase
    /// deleted any: then each undone one is seen to be undone. `None` if there were other writes, too.
    pub deletes: Option<DeleteAccount>,
    /// Account of lost agents, whose writes nobody can judge; `None` if no agent was lost.
    pub of_lost: Option<LostAgentsAccount>,
}

/// Account of the inserts of one phase.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct InsertAccount {
    /// Inserts that were acknowledged.
    pub acknowledged: u64,
    /// Number of these that are lost.
    pub lost: u64,
}

/// Account of the deletes of one phase.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct DeleteAccount {
    /// Deletes that were acknowledged.
    pub acknowledged: u64,
    /// Number of these whose record is back.
    pub undone: u64,
}

/// Account of lost agents: the outcome of their writes is unknown, since nobody else knows what their records must hold.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct LostAgentsAccount {
    /// Names of the agents.
    pub agents: Vec<String>,
    /// Part of [`WriteAccount::acknowledged`] that is theirs: as far as they had reported, up to a second before they
    /// were lost.
    pub acknowledged: u64,
    /// Part of [`WriteAccount::unknown`] that is theirs: their records were not read back.
    pub records: u64,
}

/// Agreement of replicas: every copy of each record was read by itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct CopiesAccount {
    /// Reason why that is not shown; empty if it is.
    pub not_shown: String,
    /// Names of the copies that were read.
    pub copies: Vec<String>,
    /// Copies that could not be read, each with the reason.
    pub left_out: Vec<String>,
    /// Records whose copies should be read.
    pub asked: u64,
    /// Records of which at least two copies were read.
    pub compared: u64,
    /// Number of these of which some copy was not answered.
    pub partly: u64,
    /// Records whose copies differ, and differed for the whole time that the store was given to settle.
    pub differ: u64,
    /// Records whose copies differed at first and agree since.
    pub late: u64,
    /// Time that it took, until all copies agreed or the store's time was over, ns.
    pub waited_ns: u64,
    /// Examples of records whose copies differ.
    pub examples: Vec<DifferingRecord>,
}

/// A record whose copies differ.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct DifferingRecord {
    /// Number of the record.
    pub record: u64,
    /// Key of the record.
    pub key: String,
    /// Content of each copy, as (node, content).
    pub found: Vec<(String, String)>,
}

/// An acknowledged write that is lost, and its history.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct LostWrite {
    /// Number of the record.
    pub record: u64,
    /// Key of the record.
    pub key: String,
    /// Number of the field.
    pub field: u16,
    /// Version that must be there.
    pub version: u32,
    /// Phase, group and number of the operation that wrote it, where they can be told.
    pub writer: Option<(u16, u16, u64)>,
    /// Time of its acknowledgement, since the begin of the phase with the faults, to 1 ms; `None` where it is not known
    /// or was before that phase.
    pub acknowledged_ns: Option<u64>,
    /// Position of that time relative to the faults, in words: `3.20 ms before kill node-1`, or `during kill node-1`.
    pub relation: String,
    /// Version that is there; `None` if there is none.
    pub found: Option<u32>,
    /// Result of reading it again.
    pub again: String,
}

/// Most examples of lost writes.
pub const LOST_SHOWN: usize = 10;

impl StaleAccount {
    /// Counts the reads that found some version of this run, so that it is known how many versions it was behind.
    #[must_use]
    pub fn by_versions(&self) -> u64 {
        let others = [self.absent, self.outlived, self.earlier];
        others.iter().fold(self.examined, |left, others| left.saturating_sub(*others))
    }
}

impl SideAccount {
    /// Returns the number of operations that did not succeed.
    #[must_use]
    pub fn errors(&self) -> u64 {
        self.failed.saturating_add(self.indeterminate)
    }
}

impl ThroughputRecovery {
    /// Returns when `share` of the throughput that was asked for, or of the former one, was reached again: `Some(None)`
    /// if it was not, `None` if that is not told.
    #[must_use]
    pub fn of(&self, share: f64) -> Option<Option<u64>> {
        let found = self.shares.iter().find(|told| (told.share - share).abs() < 1e-9)?;
        Some(found.after_ns)
    }
}

impl FaultAccount {
    /// Names the action and the nodes that it hit.
    #[must_use]
    pub fn name(&self) -> String {
        [std::slice::from_ref(&self.what), &self.nodes].concat().join(" ").trim_end().to_owned()
    }

    /// Returns the consequences for reads and for writes, as far as there were such operations.
    pub fn sides(&self) -> impl Iterator<Item = (&'static str, &SideAccount)> {
        let sides = [("reads", &self.reads), ("writes", &self.writes)];
        sides.into_iter().filter_map(|(name, side)| Some((name, side.as_ref()?)))
    }
}

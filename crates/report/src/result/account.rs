//! What a fault under load cost and what became of the writes: the shape in which results hold it.
//! Times are ns; where nothing else is said they count from the begin of the phase.

use serde::{Deserialize, Serialize};

/// A stretch of a phase.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct StretchResult {
    /// Its begin.
    pub from_ns: u64,
    /// How long it was.
    pub length_ns: u64,
}

/// The longest stretches of a phase in which nothing succeeded, from its begin, one success to the
/// next, or its end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Unavailable {
    /// No operation did.
    pub all: StretchResult,
    /// No operation that only reads did; `None` if there was none.
    pub reads: Option<StretchResult>,
    /// No operation that writes did; `None` if there was none.
    pub writes: Option<StretchResult>,
}

/// What followed something that was done to the testbed: a fault, or its repair.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct FaultAccount {
    /// What was done.
    pub what: String,
    /// To which nodes, at about the same time.
    pub nodes: Vec<String>,
    /// When the first of it was begun.
    pub began_ns: u64,
    /// When the last of it was done.
    pub ended_ns: u64,
    /// Until when its consequences were watched: a fault's until the next fault, a repair's until
    /// anything was done, at the latest when the phase was over.
    pub until_ns: u64,
    /// Operations that only read.
    pub reads: Option<SideAccount>,
    /// Operations that write.
    pub writes: Option<SideAccount>,
    /// What piled up meanwhile; only where all arrivals were open.
    pub backlog: Option<BacklogAccount>,
}

/// Requests that were due and had not ended, of all kinds together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct BacklogAccount {
    /// Most of them at once.
    pub most: u64,
    /// Of what was due, how many ended without success from the fault's begin until the backlog was drained: they were
    /// given up for good.
    #[serde(default)]
    pub given_up: u64,
    /// From the fault's begin until a window began in which no more waited than twice as many as before the fault, or than
    /// fall due in a tenth of a second, and no more ended without success than before. 0 if the first window was so, `None` if
    /// none was.
    #[serde(default)]
    pub answered_ns: Option<u64>,
    /// From the fault's begin to the begin of the last window that was looked at.
    #[serde(default)]
    pub watched_ns: u64,
    /// Length of the windows; 0 in results of versions that told something else.
    #[serde(default)]
    pub window_ns: u64,
    /// Why that is not decided; `None` if it is.
    #[serde(default)]
    pub undecided: Option<Undecided>,
}

/// What followed a fault, for reads or for writes. Times count from the fault's begin.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct SideAccount {
    /// Operations that succeeded.
    pub ok: u64,
    /// Operations surely not applied.
    pub failed: u64,
    /// Operations perhaps applied.
    pub indeterminate: u64,
    /// The first operation that ended without success; `None` if all succeeded.
    pub first_error_ns: Option<u64>,
    /// The last such operation.
    pub last_error_ns: Option<u64>,
    /// Longest time without success that the fault began; `None` if nothing succeeded in all that was watched, and
    /// something earlier had begun that.
    pub unavailable_ns: Option<u64>,
    /// When that began, since the phase began: it may have been a little before the fault.
    pub unavailable_from_ns: Option<u64>,
    /// Requests a second that fell due in what was watched after the fault; only where all arrivals were
    /// open.
    pub asked_rate: Option<f64>,
    /// Operations that succeeded a second, before the first fault of the phase, without the time in which
    /// the load caught up with its schedule, and never more than fell due; `None` if that was too
    /// short, or what followed was.
    pub former_rate: Option<f64>,
    /// When throughput was as before; `None` in results of versions that told something else.
    #[serde(default)]
    pub throughput: Option<ThroughputRecovery>,
    /// 99th percentile before the first fault of the phase, without the time in which the load caught up
    /// with its schedule, what failed counted as infinite; `None` if there is none.
    pub former_p99_ns: Option<f64>,
    /// When latency was as before; `None` if there is no former percentile, and in results of versions that told something
    /// else.
    #[serde(default)]
    pub latency: Option<LatencyRecovery>,
}

/// Reason why a recovery is not decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Undecided {
    /// The next thing was done too soon: half of the time until then is no window.
    WatchedTooShort,
    /// The time before the first fault was too short, or the load was catching up with its schedule then.
    NothingBefore,
    /// Too few operations ended to tell one share from another.
    TooFewOperations,
    /// Before the fault, throughput varied so much that a store at 90 % would look recovered.
    TooVaried,
}

impl Undecided {
    /// Describes it in a phrase.
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

/// Recovery of the throughput: the begin of the earliest window that is as windows before the first fault of the phase were.
/// Times count from the fault's begin.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ThroughputRecovery {
    /// Length of the windows.
    pub window_ns: u64,
    /// Begin of the last window that was looked at.
    pub watched_ns: u64,
    /// Share of the expected operations that a window may lack: the 95 % range of windows before, at most 4.5 %.
    pub may_lack: f64,
    /// Dips of up to this length were usual before.
    pub usual_dip_ns: u64,
    /// For each share of what was asked (closed arrivals: of the former rate), when it succeeded again. Without all of it (1)
    /// if that is undecided.
    pub shares: Vec<ShareRecovery>,
    /// Dips after the recovery that are longer than those before the fault.
    pub later_dips: u64,
    /// The longest of them.
    pub longest_later_dip: Option<StretchResult>,
    /// Why that is not decided; `None` if it is.
    pub undecided: Option<Undecided>,
}

/// Return of a share of the throughput that was asked, or of the former one.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ShareRecovery {
    /// The share; 1 is all of it.
    pub share: f64,
    /// Since the fault's begin; 0 if the first window was as before, `None` if none was.
    pub after_ns: Option<u64>,
}

/// Recovery of the latency: the begin of the earliest window in which no larger share was slow than before the first fault.
/// Times count from the fault's begin, in whole intervals.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct LatencyRecovery {
    /// Operations above this latency are slow: twice the former 99th percentile, ns.
    pub bound_ns: f64,
    /// Share of slow operations before.
    pub former_share: f64,
    /// Length of the windows.
    pub window_ns: u64,
    /// Begin of the last window that was looked at.
    pub watched_ns: u64,
    /// Begin of the earliest such window; 0 if the first one was so, `None` if none was.
    pub after_ns: Option<u64>,
    /// Why that is not decided; `None` if it is.
    pub undecided: Option<Undecided>,
}

/// Reads of something older than what had been acknowledged before they were sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct StaleAccount {
    /// How many, without those whose record is lost.
    pub reads: u64,
    /// Of how many the following is told: of all of them as they were made, with those of records that are lost.
    /// Less than `reads` in results of versions that told it of some only.
    pub examined: u64,
    /// Of these, reads that found nothing.
    pub absent: u64,
    /// Of these, reads that found what should have vanished by time to live.
    pub outlived: u64,
    /// Of these, reads that found what an earlier run wrote.
    pub earlier: u64,
    /// Fewest versions that the others were behind; 0 if there are no others.
    pub least_versions: u64,
    /// Most versions that the others were behind; 0 if there are no others.
    pub most_versions: u64,
    /// The stalest of all was at least so long behind, ns; `None` where that is not known.
    pub most_behind_ns: Option<u64>,
}

/// What became of all writes that the run had made by then: every record was read back.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct WriteAccount {
    /// Writes that were acknowledged, each of one record.
    pub acknowledged: u64,
    /// Writes that surely were not applied.
    pub failed: u64,
    /// Writes that may have been applied.
    pub indeterminate: u64,
    /// No record was written twice, so that every write that is gone is seen to be gone. If not, the
    /// loss of what was written over before the fault is not seen: there may be more.
    pub exact: bool,
    /// Acknowledged writes that are gone: records that are old or absent still.
    pub lost: u64,
    /// Records that hold a write though none of theirs was acknowledged.
    pub recovered: u64,
    /// Records whose acknowledged delete was undone.
    pub resurrected: u64,
    /// Records that hold bytes which nobody wrote there.
    pub corrupt: u64,
    /// Records that hold a version which nobody sent, or whose write surely failed.
    pub phantom: u64,
    /// Records that held something old at first and what is right later.
    pub late: u64,
    /// Records of which it cannot be told: not judged, or not answered.
    pub unknown: u64,
    /// Records that were read back.
    pub read: u64,
    /// Wrong reads while the records were read back: corrupt, phantom, resurrected, stale, lost. Fields are counted
    /// one by one where they are written apart.
    pub anomalies: [u64; 5],
    /// How they were read.
    pub how: String,
    /// Some of the writes that are gone.
    pub examples: Vec<LostWrite>,
    /// Whether the copies of each record agree, read before; `None` where there is one of each.
    pub copies: Option<CopiesAccount>,
    /// The phase's own writes, if all of them were inserts of new records: then each that is gone is seen to be gone,
    /// whatever phases before have written over. `None` if it wrote others, too.
    pub inserts: Option<InsertAccount>,
    /// The phase's own writes, if all of them were deletes, each of another record, and no phase before deleted any: then
    /// each that is undone is seen to be undone. `None` if it wrote others, too.
    pub deletes: Option<DeleteAccount>,
    /// Whose writes nobody can account for; `None` if no agent was lost.
    pub of_lost: Option<LostAgentsAccount>,
}

/// What became of the inserts of one phase.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct InsertAccount {
    /// Inserts that were acknowledged.
    pub acknowledged: u64,
    /// Of these, those that are gone.
    pub lost: u64,
}

/// Account of the deletes of one phase.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct DeleteAccount {
    /// Deletes that were acknowledged.
    pub acknowledged: u64,
    /// Of these, those whose record is back.
    pub undone: u64,
}

/// Agents that were lost: what became of their writes is unknown. Nobody else knows what their records must hold.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct LostAgentsAccount {
    /// Their names.
    pub agents: Vec<String>,
    /// Of [`WriteAccount::acknowledged`], theirs: as far as they had told of them, up to a second before they were lost.
    pub acknowledged: u64,
    /// Of [`WriteAccount::unknown`], their records, which were not read back.
    pub records: u64,
}

/// Whether replicas agree: every copy of each record was read by itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct CopiesAccount {
    /// Why that is not shown; empty if it is.
    pub not_shown: String,
    /// The copies that were read.
    pub copies: Vec<String>,
    /// Copies that could not be read, each with why.
    pub left_out: Vec<String>,
    /// Records whose copies were to be read.
    pub asked: u64,
    /// Records of which at least two copies were read.
    pub compared: u64,
    /// Of these, records of which some copy was not answered.
    pub partly: u64,
    /// Records whose copies differ, and did so for as long as the store was given to settle.
    pub differ: u64,
    /// Records whose copies differed at first and agree since.
    pub late: u64,
    /// How long it took, with the time until all agreed.
    pub waited_ns: u64,
    /// Some of the records whose copies differ.
    pub examples: Vec<DifferingRecord>,
}

/// A record whose copies differ.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct DifferingRecord {
    /// Number of the record.
    pub record: u64,
    /// Its key.
    pub key: String,
    /// Which node has what.
    pub found: Vec<(String, String)>,
}

/// An acknowledged write that is gone, and its history.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct LostWrite {
    /// Number of the record.
    pub record: u64,
    /// Its key.
    pub key: String,
    /// Number of the field.
    pub field: u16,
    /// Version that must be there.
    pub version: u32,
    /// Phase, group and number of the operation that wrote it, where it can be told.
    pub writer: Option<(u16, u16, u64)>,
    /// When it was acknowledged, since the phase that was disturbed began, to 1 ms; `None` where it is
    /// not known or was before that phase.
    pub acknowledged_ns: Option<u64>,
    /// That in relation to the faults, in words: `3.20 ms before kill node-1`, or `during kill node-1`.
    pub relation: String,
    /// Version that is there; `None`: nothing.
    pub found: Option<u32>,
    /// What reading it again gave.
    pub again: String,
}

/// Most examples of writes that are gone.
pub const LOST_SHOWN: usize = 10;

impl StaleAccount {
    /// Reads that found some version of this run, and how many versions it was behind is known.
    #[must_use]
    pub fn by_versions(&self) -> u64 {
        let others = [self.absent, self.outlived, self.earlier];
        others.iter().fold(self.examined, |left, others| left.saturating_sub(*others))
    }
}

impl SideAccount {
    /// Operations that did not succeed.
    #[must_use]
    pub fn errors(&self) -> u64 {
        self.failed.saturating_add(self.indeterminate)
    }
}

impl ThroughputRecovery {
    /// Returns when `share` of the throughput that was asked, or of the former one, was reached again:
    /// `Some(None)` if it was not, `None` if that is not told.
    #[must_use]
    pub fn of(&self, share: f64) -> Option<Option<u64>> {
        let found = self.shares.iter().find(|told| (told.share - share).abs() < 1e-9)?;
        Some(found.after_ns)
    }
}

impl FaultAccount {
    /// What was done and to whom.
    #[must_use]
    pub fn name(&self) -> String {
        [std::slice::from_ref(&self.what), &self.nodes].concat().join(" ").trim_end().to_owned()
    }

    /// Reads and writes, those that there are.
    pub fn sides(&self) -> impl Iterator<Item = (&'static str, &SideAccount)> {
        let sides = [("reads", &self.reads), ("writes", &self.writes)];
        sides.into_iter().filter_map(|(name, side)| Some((name, side.as_ref()?)))
    }
}

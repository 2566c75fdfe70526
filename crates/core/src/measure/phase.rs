//! What a phase measured in all: the load's answer, and the report's only source.

use std::time::{Duration, SystemTime};

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

use super::clock::Nanos;
use super::series::{KindTotal, Series};
use super::stalls::Stalls;
use super::timeline::Timeline;
use super::worker_use::WorkerUse;
use crate::store::{Certainty, ErrorClass, Figure, Profile};
use crate::verify::linearizability::Examined;
use crate::verify::{Anomaly, Behind, Tally};
use crate::workload::Kind;

/// Errors of one class.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ErrorSummary {
    /// What kind of trouble.
    pub class: ErrorClass,
    /// Whether these requests may have been applied.
    pub certainty: Certainty,
    /// How many.
    pub count: u64,
    /// Of these, time-outs while kvdyno itself stood still: not the store's.
    pub of_client: u64,
    /// What the first one said.
    pub first_message: String,
    /// When the first one ended.
    pub first_at: Nanos,
    /// When the last one ended.
    pub last_at: Nanos,
}

/// Records that were old or absent when they were read last, by what reading them again gave: all of them, each once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OldRecords {
    /// Still old or absent, in some field where fields are written apart.
    pub lost: u64,
    /// Of these, records that the phase before had inserted; 0 where the plan does not name them.
    pub lost_inserts: u64,
    /// Right.
    pub late: u64,
    /// They could not be read again: nobody knows whether what was acknowledged there is lost.
    pub unread: u64,
}

/// Why a phase ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StopReason {
    /// All requests were made.
    Requests,
    /// The time was over.
    Duration,
    /// The hard bound was reached with work left.
    TimeLimit,
    /// The user stopped it.
    Interrupted,
    /// No client could go on.
    StoreLost,
    /// A process that carried a part of the load was lost.
    AgentLost,
}

/// What a phase measured.
#[derive(Clone, Debug)]
pub struct PhaseMeasure {
    /// Begin, by the calendar.
    pub started_at: SystemTime,
    /// Begin, on [`super::now`]'s clock.
    pub start: Nanos,
    /// End, on the same clock: its deadline, or when it was stopped; where its requests were all made
    /// before, when the schedule would have gone on, or the last one's answer if that came later.
    pub end: Nanos,
    /// When the last answer came: after the end if there was a drain.
    pub last_end: Nanos,
    /// Why it ended.
    pub stopped: StopReason,
    /// Promises of the store when the phase began.
    pub profile: Profile,
    /// Totals of each series.
    pub series: Vec<(Series, KindTotal)>,
    /// How it went over its time.
    pub timeline: Timeline,
    /// Operations that fell due (open arrivals) or were started (closed).
    pub offered: u64,
    /// Operations started.
    pub started: u64,
    /// More fell due than there was time to count: `offered` and `unstarted` are estimates.
    pub offered_estimated: bool,
    /// Operations due by the stop and never started: lower bounds (stop − due) of their response
    /// times, ns; open arrivals only.
    pub unstarted: Option<Histogram<u64>>,
    /// How much later than due requests were sent although a client was free, ns; open only.
    pub send_lag: Option<Histogram<u64>>,
    /// When kvdyno itself stood still.
    pub stalls: Stalls,
    /// Errors by class, most frequent first.
    pub errors: Vec<ErrorSummary>,
    /// Each worker's use of time.
    pub workers: Vec<WorkerUse>,
    /// Operation ids that each group began: 0..n of it.
    pub issued: Vec<u64>,
    /// Records that exist from here on: operations of the next phase go to 0..records.
    pub records: u64,
    /// What verification saw.
    pub tally: Tally,
    /// Of a phase with faults: records not found where the ledger expects one, by the begin of the 20 ms
    /// in which that was answered.
    pub missed_at: Vec<(Nanos, u64)>,
    /// Examples of anomalies, at most [`crate::verify::ANOMALIES_KEPT`] of them; `tally` counts all.
    pub anomalies: Vec<Anomaly>,
    /// Histories of sampled records and what they say, if the phase asked for it.
    pub linearizability: Option<Examined>,
    /// What the store's driver noticed.
    pub figures: Vec<Figure>,
    /// How far what was old or absent was behind, of all reads as they were made.
    pub behind: Behind,
    /// What became of records that were old or absent when they were read last.
    pub old: OldRecords,
    /// Of a phase that reads all records back: those that were not answered, nor when asked again.
    pub unread: u64,
}

impl PhaseMeasure {
    /// How long it was.
    #[must_use]
    pub fn span(&self) -> Duration {
        Duration::from_nanos(self.end.saturating_sub(self.start))
    }

    /// From its begin until nothing was in flight any more.
    #[must_use]
    pub fn span_with_drain(&self) -> Duration {
        Duration::from_nanos(self.end.max(self.last_end).saturating_sub(self.start))
    }

    /// Operations a second that succeeded before its end; 0 if no time passed.
    #[must_use]
    pub fn rate(&self) -> f64 {
        let ok = self.series.iter().map(|(_, measure)| measure.ok - measure.drained.ok);
        self.a_second(ok.sum())
    }

    /// Records a second that operations of some kinds moved before its end; 0 if no time passed.
    #[must_use]
    pub fn record_rate(&self, kinds: &[Kind]) -> f64 {
        let of_kinds = self.series.iter().filter(|(series, _)| kinds.contains(&series.kind));
        let records = of_kinds.map(|(_, measure)| measure.records - measure.drained.records);
        self.a_second(records.sum())
    }

    fn a_second(&self, count: u64) -> f64 {
        match self.span().as_secs_f64() {
            0.0 => 0.0,
            seconds => count as f64 / seconds,
        }
    }
}

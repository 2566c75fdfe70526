//! Measurement of a whole phase: the answer of the load, and the only source of the report.

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
    /// Class of the errors.
    pub class: ErrorClass,
    /// Certainty about these requests: surely not applied, or perhaps.
    pub certainty: Certainty,
    /// Number of errors.
    pub count: u64,
    /// Number of them that are time-outs while kvdyno itself stood still: not the store's doing.
    pub of_client: u64,
    /// Message of the first one.
    pub first_message: String,
    /// Time at which the request of the first one ended, ns.
    pub first_at: Nanos,
    /// Time at which the request of the last one ended, ns.
    pub last_at: Nanos,
}

/// Numbers of records that were old or absent when they were read last, by the outcome of reading them again: all of
/// them, each once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OldRecords {
    /// Records that are still old or absent; where fields are written apart, in some field.
    pub lost: u64,
    /// Number of them that the phase before had inserted; 0 where the plan does not name them.
    pub lost_inserts: u64,
    /// Records that were right when they were read again.
    pub late: u64,
    /// Records that could not be read again: nobody knows whether what was acknowledged there is lost.
    pub unread: u64,
}

/// Reason for which a phase ended.
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

/// Measurement of a phase.
#[derive(Clone, Debug)]
pub struct PhaseMeasure {
    /// Begin, by the system's calendar clock.
    pub started_at: SystemTime,
    /// Begin, ns on the clock of [`super::now`].
    pub start: Nanos,
    /// End, ns on the same clock: the deadline of the phase, or the time at which it was stopped. Where all its
    /// requests were made before, the time at which the schedule would have gone on, or that of the last answer if it
    /// came later.
    pub end: Nanos,
    /// Time of the last answer, ns on the same clock: after the end if there was a drain.
    pub last_end: Nanos,
    /// Reason for which it ended.
    pub stopped: StopReason,
    /// Promises of the store when the phase began.
    pub profile: Profile,
    /// Totals of each series.
    pub series: Vec<(Series, KindTotal)>,
    /// Course of the phase over its time.
    pub timeline: Timeline,
    /// Operations that fell due (open arrivals) or were started (closed).
    pub offered: u64,
    /// Operations started.
    pub started: u64,
    /// True if more fell due than there was time to count: `offered` and `unstarted` are estimates then.
    pub offered_estimated: bool,
    /// Operations due by the stop and never started: lower bounds (stop − due) of their response
    /// times, ns; open arrivals only.
    pub unstarted: Option<Histogram<u64>>,
    /// Time by which requests were sent later than due although a client was free, ns; open arrivals only.
    pub send_lag: Option<Histogram<u64>>,
    /// Stretches in which kvdyno itself stood still.
    pub stalls: Stalls,
    /// Errors by class, most frequent first.
    pub errors: Vec<ErrorSummary>,
    /// Each worker's use of time.
    pub workers: Vec<WorkerUse>,
    /// Number n of operations that each group began: ids 0..n of the group.
    pub issued: Vec<u64>,
    /// Number of records that exist from here on: operations of the next phase go to 0..records.
    pub records: u64,
    /// Counts of what verification saw.
    pub tally: Tally,
    /// Number of records not found where the ledger expects one, by the begin (ns) of the 20 ms in which the read was
    /// answered; only in a phase with faults.
    pub missed_at: Vec<(Nanos, u64)>,
    /// Examples of anomalies, at most [`crate::verify::ANOMALIES_KEPT`] of them; `tally` counts all.
    pub anomalies: Vec<Anomaly>,
    /// Histories of sampled records with their verdict, if the phase asked for it.
    pub linearizability: Option<Examined>,
    /// Figures that the store's driver noticed.
    pub figures: Vec<Figure>,
    /// Staleness of all reads that found something old or absent, as they were made.
    pub behind: Behind,
    /// Fate of records that were old or absent when they were read last.
    pub old: OldRecords,
    /// Number of records whose read was not answered, nor was it when asked again; of a phase that reads all records
    /// back.
    pub unread: u64,
}

impl PhaseMeasure {
    /// Returns the time from its begin to its end.
    #[must_use]
    pub fn span(&self) -> Duration {
        Duration::from_nanos(self.end.saturating_sub(self.start))
    }

    /// Returns the time from its begin until nothing was in flight any more.
    #[must_use]
    pub fn span_with_drain(&self) -> Duration {
        Duration::from_nanos(self.end.max(self.last_end).saturating_sub(self.start))
    }

    /// Returns the operations a second that succeeded before its end; 0 if no time passed.
    #[must_use]
    pub fn rate(&self) -> f64 {
        let ok = self.series.iter().map(|(_, measure)| measure.ok - measure.drained.ok);
        self.a_second(ok.sum())
    }

    /// Returns the records a second that operations of some kinds moved before its end; 0 if no time passed.
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

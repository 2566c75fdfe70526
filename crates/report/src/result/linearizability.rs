//! Linearizability of the sampled records' histories, with the requests that refute it, if any.

use kvdyno_core::measure::Nanos;
use kvdyno_core::verify::linearizability::{Examined, Linearizability, Violation};
use kvdyno_core::verify::{Call, CallKind, Content, WriteEnd};
use serde::{Deserialize, Serialize};

/// Result for the histories.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct LinearizabilityResult {
    /// Answer for all histories.
    pub answer: LinearizabilityAnswer,
    /// Reason why not, or why it cannot be told; empty if they are linearizable.
    pub why: String,
    /// Records whose history was kept.
    pub records: u64,
    /// Number of these whose history reached its limit, and stopped.
    pub full: u64,
    /// Requests in the histories.
    pub requests: u64,
    /// Number of these that are writes with an unknown outcome.
    pub indeterminate: u64,
    /// Requests that no order explains, and of which none could be left out.
    pub violation: Option<ViolationResult>,
}

/// Three-valued answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum LinearizabilityAnswer {
    /// Some order explains each history.
    Ok,
    /// No order explains one of them.
    Violated,
    /// The question cannot be answered.
    Unknown,
}

/// Requests about one record that contradict each other.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ViolationResult {
    /// Number of the record.
    pub record: u64,
    /// Requests in order of their begin.
    pub requests: Vec<RequestResult>,
}

/// A read or a write.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct RequestResult {
    /// True if it wrote, false if it read.
    pub write: bool,
    /// Version that it wrote or found; negative for one of an earlier run; `None` if it found nothing.
    pub version: Option<i64>,
    /// Time at which it was sent, ns since the phase began.
    pub sent_ns: u64,
    /// Time at which it was answered, ns since the phase began; `None` if its outcome is unknown.
    pub answered_ns: Option<u64>,
    /// True if the write failed, and certainly was not applied.
    pub failed: bool,
}

impl LinearizabilityResult {
    /// Converts the result of the load. `start` is the begin of the phase, on core's clock.
    pub(crate) fn new(examined: &Examined, start: Nanos) -> LinearizabilityResult {
        let records = &examined.history.records;
        let calls = || records.iter().flat_map(|record| &record.calls);
        let in_doubt = |call: &&Call| call.end == WriteEnd::Indeterminate;
        let (answer, why, violation) = match &examined.answer {
            Linearizability::Ok => (LinearizabilityAnswer::Ok, String::new(), None),
            Linearizability::Unknown(why) => (LinearizabilityAnswer::Unknown, why.clone(), None),
            Linearizability::Violated(violation) => {
                let shown = ViolationResult::new(violation, start);
                (LinearizabilityAnswer::Violated, violation.why.to_owned(), Some(shown))
            }
        };
        LinearizabilityResult {
            answer,
            why,
            records: records.len() as u64,
            full: records.iter().filter(|record| record.cut.is_some()).count() as u64,
            requests: calls().count() as u64,
            indeterminate: calls().filter(in_doubt).count() as u64,
            violation,
        }
    }
}

impl ViolationResult {
    fn new(violation: &Violation, start: Nanos) -> ViolationResult {
        let requests = violation.calls.iter().map(|call| RequestResult::new(call, start));
        ViolationResult { record: violation.record, requests: requests.collect() }
    }
}

impl RequestResult {
    fn new(call: &Call, start: Nanos) -> RequestResult {
        let (write, content) = match call.action {
            CallKind::Write(content) => (true, content),
            CallKind::Read(content) => (false, content),
        };
        let version = match content {
            Content::Nothing => None,
            Content::Version(version) => Some(i64::from(version)),
            Content::Earlier(version) => Some(-i64::from(version)),
        };
        RequestResult {
            write,
            version,
            sent_ns: call.begun.saturating_sub(start),
            answered_ns: (call.ended < Nanos::MAX).then(|| call.ended.saturating_sub(start)),
            failed: call.end == WriteEnd::Failed,
        }
    }
}

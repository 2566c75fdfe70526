//! Whether the sampled records' histories are linearizable, and if not, the requests that show it.

use kvdyno_core::measure::Nanos;
use kvdyno_core::verify::linearizability::{Examined, Linearizability, Violation};
use kvdyno_core::verify::{Call, CallKind, Content, WriteEnd};
use serde::{Deserialize, Serialize};

/// What is said of the histories.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct LinearizabilityResult {
    /// Whether they are.
    pub answer: LinearizabilityAnswer,
    /// Why not, or why it cannot be told; empty if they are.
    pub why: String,
    /// Records whose history was kept.
    pub records: u64,
    /// Of these, records whose history came to its bound, and stopped.
    pub full: u64,
    /// Requests in the histories.
    pub requests: u64,
    /// Of these, writes of which it is not known whether they took effect.
    pub indeterminate: u64,
    /// The requests that no order explains, and of which none could be left out.
    pub violation: Option<ViolationResult>,
}

/// An answer of three.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum LinearizabilityAnswer {
    /// Some order explains each history.
    Ok,
    /// No order explains one of them.
    Violated,
    /// It cannot be told.
    Unknown,
}

/// Requests about one record that contradict each other.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ViolationResult {
    /// Number of the record.
    pub record: u64,
    /// The requests, by begin.
    pub requests: Vec<RequestResult>,
}

/// A read or a write.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct RequestResult {
    /// It wrote; else it read.
    pub write: bool,
    /// The version that it wrote or found; negative: one of an earlier run; none: it found nothing.
    pub version: Option<i64>,
    /// When it was sent, ns since the phase began.
    pub sent_ns: u64,
    /// When it was answered, ns since the phase began; none: it is not known how it ended.
    pub answered_ns: Option<u64>,
    /// The write failed: it surely was not applied.
    pub failed: bool,
}

impl LinearizabilityResult {
    /// What the load says. `start` is when the phase began, on core's clock.
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

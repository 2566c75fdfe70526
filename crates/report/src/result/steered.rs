//! Actions of manual control on a phase while it ran.

use kvdyno_core::workload::RateChange;
use serde::{Deserialize, Serialize};

/// Kind of a note.
const NOTE: &str = "note";

/// An action of a person at the live page, or one that is repeated from a run with such an action.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct SteeredResult {
    /// Kind of action: `rate`, `end` (of the phase), `stop` (of the run), `fault` or `repair` (of the testbed); `note`: nothing
    /// was done, somebody wrote it down.
    pub what: String,
    /// Time at which it took effect, ns since the phase began; approximate for arrivals at random.
    pub at_ns: u64,
    /// Number of the group whose rate was changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<usize>,
    /// Number of the first operation of that group that fell due at the new rate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from_operation: Option<u64>,
    /// New rate, requests a second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<f64>,
    /// Action on the testbed, with the nodes that it hit: `kill redis-1`; the text of a note.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub done: Option<String>,
    /// True if it was planned, because the run repeats another.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub repeated: bool,
    /// True if some worker received the change too late to make it with that operation.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub late: bool,
}

impl SteeredResult {
    /// Makes an action with its kind and time only.
    #[must_use]
    pub fn new(what: &str, at_ns: u64) -> SteeredResult {
        SteeredResult {
            what: what.to_owned(),
            at_ns,
            group: None,
            from_operation: None,
            rate: None,
            done: None,
            repeated: false,
            late: false,
        }
    }

    /// Makes a change of a group's rate.
    #[must_use]
    pub fn of_rate(group: usize, change: RateChange, at_ns: u64) -> SteeredResult {
        SteeredResult {
            group: Some(group),
            from_operation: Some(change.from),
            rate: Some(change.rate),
            ..SteeredResult::new("rate", at_ns)
        }
    }

    /// Makes an action on the testbed, described in words.
    #[must_use]
    pub fn of_testbed(what: &str, done: &str, at_ns: u64) -> SteeredResult {
        SteeredResult { done: Some(done.to_owned()), ..SteeredResult::new(what, at_ns) }
    }

    /// Makes a note.
    #[must_use]
    pub fn note(text: &str, at_ns: u64) -> SteeredResult {
        SteeredResult { done: Some(text.to_owned()), ..SteeredResult::new(NOTE, at_ns) }
    }

    /// Returns true if nothing was done: it is a note.
    #[must_use]
    pub fn is_note(&self) -> bool {
        self.what == NOTE
    }

    /// Returns the group and the change of its rate, if the action is one.
    #[must_use]
    pub fn change(&self) -> Option<(usize, RateChange)> {
        let change = RateChange { from: self.from_operation?, rate: self.rate? };
        Some((self.group?, change))
    }

    /// Describes the action in words.
    #[must_use]
    pub fn text(&self) -> String {
        if let Some((_, change)) = self.change() {
            let rate = kvdyno_core::ground::units::format_rate(change.rate);
            return format!("{rate} from operation {} on", change.from);
        }
        match (self.what.as_str(), &self.done) {
            (NOTE, Some(text)) => format!("“{text}”"),
            (_, Some(done)) => format!("{done}, by hand"),
            ("end", _) => "phase ended by hand".to_owned(),
            _ => "run stopped by hand".to_owned(),
        }
    }
}

//! What was done to a phase by hand while it ran.

use kvdyno_core::workload::RateChange;
use serde::{Deserialize, Serialize};

/// Something that somebody at the live page did to a phase, or that is repeated from a run where somebody did.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct SteeredResult {
    /// What: `rate`, `end` (of the phase), `stop` (of the run), `fault` or `repair` (of the testbed).
    pub what: String,
    /// When it took effect, ns since the phase began; of arrivals at random, about.
    pub at_ns: u64,
    /// Number of the group whose rate was changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<usize>,
    /// The first operation of that group that fell due at the new rate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from_operation: Option<u64>,
    /// The new rate, requests a second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<f64>,
    /// What was done to the testbed, and to which of its nodes: `kill redis-1`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub done: Option<String>,
    /// It was planned, for the run repeats another.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub repeated: bool,
    /// Some worker heard of a change of this phase too late to make it with that operation.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub late: bool,
}

impl SteeredResult {
    /// Nothing but what was done, and when.
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

    /// A change of a group's rate.
    #[must_use]
    pub fn of_rate(group: usize, change: RateChange, at_ns: u64) -> SteeredResult {
        SteeredResult {
            group: Some(group),
            from_operation: Some(change.from),
            rate: Some(change.rate),
            ..SteeredResult::new("rate", at_ns)
        }
    }

    /// Something that was done to the testbed, as words tell it.
    #[must_use]
    pub fn of_testbed(what: &str, done: &str, at_ns: u64) -> SteeredResult {
        SteeredResult { done: Some(done.to_owned()), ..SteeredResult::new(what, at_ns) }
    }

    /// The change of a group's rate that it is, if it is one.
    #[must_use]
    pub fn change(&self) -> Option<(usize, RateChange)> {
        let change = RateChange { from: self.from_operation?, rate: self.rate? };
        Some((self.group?, change))
    }

    /// In words.
    #[must_use]
    pub fn text(&self) -> String {
        if let Some((_, change)) = self.change() {
            let rate = kvdyno_core::ground::units::format_rate(change.rate);
            return format!("{rate} from operation {} on", change.from);
        }
        match (self.what.as_str(), &self.done) {
            (_, Some(done)) => format!("{done}, by hand"),
            ("end", _) => "phase ended by hand".to_owned(),
            _ => "run stopped by hand".to_owned(),
        }
    }
}

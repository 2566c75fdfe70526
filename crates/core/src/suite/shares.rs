//! Rates that are a share of what an earlier phase reached: `rate = "50% of load"`. With such a rate a fault meets a
//! store that has room left, whatever machine it runs on.

use serde::{Deserialize, Serialize};

use crate::workload::{Arrival, Curve, CurveError, CurveText, PhasePlan};

use super::document::Item;
use super::error::{Problem, SuiteError};
use super::reader::Value;
use crate::ground::units::{format_share, parse_share};

/// Rate that stands in a plan for one that is not known yet, requests a second. It bounds the records of phases that
/// insert until a time is over.
pub(super) const UNMEASURED: f64 = 100_000.0;

/// Value of the key `rate`.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Rate {
    /// Requests a second, over time.
    Said(Curve),
    /// A share of the throughput of phase `of`.
    Share { share: f64, of: String },
}

/// Reads `"50k/s"` or `"50% of load"`.
pub(super) fn rate(value: Value<'_>) -> Result<Rate, SuiteError> {
    let Item::Text(text) = value.item() else {
        return value.rate().map(|rate| Rate::Said(Curve::Constant { rate }));
    };
    let Some((share, of)) = text.split_once(" of ") else { return curve(value, text) };
    let share = parse_share(share).map_err(|error| {
        value.error(
            Problem::Quantity { key: value.key.to_owned(), error },
            "such as \"50% of load\"",
        )
    })?;
    if share <= 0.0 {
        return Err(value.out_of_range(format_share(share), "above 0 and at most 100%"));
    }
    Ok(Rate::Share { share, of: of.trim().to_owned() })
}

/// Reads `"50k/s"`, `"sine 1k/s to 9k/s every 1m"` or `"load.csv"`.
fn curve(value: Value<'_>, text: &str) -> Result<Rate, SuiteError> {
    let constant = !text.trim().contains(char::is_whitespace) && !text.contains(".csv");
    if constant {
        return value.rate().map(|rate| Rate::Said(Curve::Constant { rate }));
    }
    let read = |text: CurveText| text.read(&value.folder());
    text.parse().and_then(read).map(Rate::Said).map_err(|error: CurveError| {
        value.error(Problem::Conflict(error.to_string()), error.hint())
    })
}

/// A group whose rate is a share of what an earlier phase reached.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ShareOfCapacity {
    /// Name of the group's phase.
    pub phase: String,
    /// Name of the group.
    pub group: String,
    /// The share, above 0 and at most 1.
    pub share: f64,
    /// Name of the earlier phase whose throughput it is a share of.
    pub of: String,
}

impl ShareOfCapacity {
    /// Sets the group's rate in `plan`, a phase of this name. `reached` is the throughput of the phase that it is a
    /// share of, operations a second.
    pub fn apply(&self, plan: &mut PhasePlan, reached: f64) {
        // A schedule needs a rate above 0.
        let share = (self.share * reached).max(1e-3);
        for group in plan.groups.iter_mut().filter(|group| group.name == self.group) {
            match &mut group.arrival {
                Arrival::Constant { rate } | Arrival::Poisson { rate } => *rate = share,
                Arrival::Closed | Arrival::Ramp { .. } | Arrival::Curve { .. } => {}
            }
        }
    }

    /// Describes it in words, for the plan.
    #[must_use]
    pub fn describe(&self) -> String {
        let place =
            if self.group == self.phase { String::new() } else { format!("{}: ", self.group) };
        format!("{place}at {} of what {} reaches", format_share(self.share), self.of)
    }
}

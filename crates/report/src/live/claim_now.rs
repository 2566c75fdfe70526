//! Conditions of claims about the phase that goes on, as they stand so far.

use kvdyno_core::verdict::ClaimStatus;
use serde::Serialize;

use crate::result::ConditionResult;

/// A condition of a claim about the current phase, with its outcome so far.
#[derive(Clone, Serialize)]
pub(super) struct ClaimNow {
    says: String,
    condition: String,
    /// Present figure, or why there is none.
    measured: String,
    /// True if the condition holds, false if not; `None` while it cannot be told.
    holds: Option<bool>,
}

impl ClaimNow {
    /// Returns true if the condition is about the 99th percentile.
    pub(super) fn is_about_p99(&self) -> bool {
        self.condition.starts_with("p99") && !self.condition.starts_with("p99.")
    }

    pub(super) fn of((says, stands): (String, ConditionResult)) -> ClaimNow {
        let ConditionResult { condition, standing, measured, why, .. } = stands;
        let holds = match standing {
            ClaimStatus::Confirmed => Some(true),
            ClaimStatus::Refuted => Some(false),
            ClaimStatus::Inconclusive | ClaimStatus::NothingToShow => None,
        };
        let measured = if measured.is_empty() { why } else { measured };
        ClaimNow { says, condition, measured, holds }
    }
}

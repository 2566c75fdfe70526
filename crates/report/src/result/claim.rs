//! How a suite's claims stand against one store.

use kvdyno_core::verdict::ClaimStatus;
use serde::{Deserialize, Serialize};

/// A claim and how it stands.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ClaimResult {
    /// The sentence.
    pub says: String,
    /// `confirmed`, `nothing-to-show`, `inconclusive` or `refuted`: as the worst of its conditions.
    #[cfg_attr(test, schemars(with = "String"))]
    pub standing: ClaimStatus,
    /// Each condition in each phase that it is about.
    pub conditions: Vec<ConditionResult>,
    /// How far it reaches: what was done to the store meanwhile, and what that says nothing of.
    pub reach: String,
}

/// A condition in one phase.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ConditionResult {
    /// The condition.
    pub condition: String,
    /// Name of the phase; `None` if there was none that it is about.
    pub phase: Option<String>,
    /// `confirmed`, `nothing-to-show`, `inconclusive` or `refuted`.
    #[cfg_attr(test, schemars(with = "String"))]
    pub standing: ClaimStatus,
    /// What was measured, in the figure's own unit (ns, operations a second, a share of 1, a count), or the least that it
    /// can be; `None` where it is not known, or infinite.
    #[serde(default)]
    pub figure: Option<f64>,
    /// How much of what it is about there was: writes, reads, operations; 1 where it cannot be counted.
    #[serde(default)]
    pub stake: u64,
    /// What was measured, in words: `3.20 ms`, `at least 12`, `never`.
    pub measured: String,
    /// Why it is not decided; empty if it is.
    pub why: String,
}

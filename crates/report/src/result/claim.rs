//! Results of a suite's claims about one store.

use kvdyno_core::verdict::ClaimStatus;
use serde::{Deserialize, Serialize};

/// A claim with its outcome.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ClaimResult {
    /// Sentence of the claim.
    pub says: String,
    /// `confirmed`, `nothing-to-show`, `inconclusive` or `refuted`: that of its worst condition.
    #[cfg_attr(test, schemars(with = "String"))]
    pub standing: ClaimStatus,
    /// Results of each condition in each phase that it is about.
    pub conditions: Vec<ConditionResult>,
    /// Reach of the claim: the faults that were injected meanwhile, and those that it says nothing about.
    pub reach: String,
}

/// Result of a condition in one phase.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ConditionResult {
    /// Text of the condition.
    pub condition: String,
    /// Name of the phase; `None` if there was no phase that the condition is about.
    pub phase: Option<String>,
    /// `confirmed`, `nothing-to-show`, `inconclusive` or `refuted`.
    #[cfg_attr(test, schemars(with = "String"))]
    pub standing: ClaimStatus,
    /// Measured value, in the figure's own unit (ns, operations a second, a share of 1, a count), or the least that it
    /// can be; `None` where it is not known, or infinite.
    #[serde(default)]
    pub figure: Option<f64>,
    /// Amount of its subject that was at stake: writes, reads, operations; 1 where it cannot be counted.
    #[serde(default)]
    pub stake: u64,
    /// Measured value in words: `3.20 ms`, `at least 12`, `never`.
    pub measured: String,
    /// Reason why it is not decided; empty if it is.
    pub why: String,
}

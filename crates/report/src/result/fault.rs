//! What was done to the testbed while a phase ran: a fault, or its repair.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One thing done to one node. Times are ns since the phase began.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FaultResult {
    /// What was done: `kill`, `pause`, `rewrite`; `resume`, `start again`, `reconnect`, `network as before`
    /// and `disk freed` repair.
    pub what: String,
    /// Name of the node; empty if none was to be found.
    pub node: String,
    /// What the node was to the others just before, where that is known: `primary`.
    pub role: Option<String>,
    /// When it was begun.
    pub began_ns: u64,
    /// When it was done: the process gone, the rewrite over, the node serving again.
    pub ended_ns: u64,
    /// By which means: a signal, a tool of the system, a command of the store's or the user's.
    #[serde(default)]
    pub used: Option<String>,
    /// Why it could not be done.
    pub error: Option<String>,
}

/// What repairs a fault, as [`FaultResult::what`] tells it.
const REPAIRS: [&str; 5] =
    ["resume", "start again", "reconnect", "network as before", "disk freed"];

impl FaultResult {
    /// It puts right what a fault did.
    #[must_use]
    pub fn repairs(&self) -> bool {
        REPAIRS.contains(&self.what.as_str())
    }
}

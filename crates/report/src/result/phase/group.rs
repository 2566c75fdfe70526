//! Client groups in a result: the load that they were asked to send.

use kvdyno_core::workload::{GroupPlan, Kind, SizeModel};
use serde::{Deserialize, Serialize};

use super::super::latency::finite;

/// A client group of a phase.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct GroupResult {
    /// Name in reports.
    pub name: String,
    /// Request slots.
    pub clients: u32,
    /// Clients that share a connection.
    pub pipeline: u32,
    /// True if requests have a due time of their own.
    pub open: bool,
    /// Rate that was asked for, requests a second; `None` for closed arrivals and rates that change.
    pub rate: Option<f64>,
    /// Curve of a rate that changes, as a suite writes it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub curve: Option<String>,
    /// Seed of the value sizes, where they have one of their own.
    pub value_seed: Option<i64>,
}

impl GroupResult {
    pub(super) fn new(plan: &GroupPlan) -> GroupResult {
        let seed = match plan.values.size {
            SizeModel::JavaUniform { seed, .. } => Some(seed),
            _ => plan.values.seed.and_then(|seed| i64::try_from(seed).ok()),
        };
        // Operations that only read or delete have no sizes of values.
        let puts = |&(kind, _): &(Kind, u16)| !kind.read_only() && kind != Kind::Delete;
        GroupResult {
            name: plan.name.clone(),
            clients: plan.clients,
            pipeline: plan.pipeline,
            open: plan.arrival.is_open(),
            rate: plan.arrival.constant_rate().and_then(finite),
            curve: match plan.arrival.constant_rate() {
                Some(_) => None,
                None => plan.arrival.curve().map(|curve| curve.to_string()),
            },
            value_seed: seed.filter(|_| plan.mix.parts.iter().any(puts)),
        }
    }
}

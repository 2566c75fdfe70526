//! Phases that kvdyno adds to a plan: looking whether records exist, deleting them, reading them
//! back. They run through the same loop as all others.

use std::time::Duration;

use kvdyno_core::workload::{Distribution, GroupPlan, Kind, PhasePlan, SizeModel, ValueModel};

/// Bound of an added phase: a day, as for every phase that is bounded by count.
const LONGEST: Duration = Duration::from_secs(24 * 3_600);

/// An added phase: `requests` operations of one kind over records 0..`records`.
#[derive(Clone, Debug)]
pub struct Pass {
    /// Name and label of the phase.
    pub name: String,
    /// Kind of operation.
    pub kind: Kind,
    /// Order of the records.
    pub keys: Distribution,
    /// Number of records.
    pub records: u64,
    /// Number of operations.
    pub requests: u64,
    /// Number of clients.
    pub clients: u32,
}

impl Pass {
    /// Makes a pass over every record once, in order.
    pub fn over_all(name: &str, kind: Kind, records: u64, clients: u32) -> Pass {
        let keys = Distribution::Sequential;
        Pass { name: name.to_owned(), kind, keys, records, requests: records, clients }
    }

    /// Makes a pass that reads every record once after `phase`, with as many clients.
    pub fn reading_back(phase: &PhasePlan, records: u64) -> Pass {
        let name = format!("{}:read-back", phase.name);
        let clients = phase.groups.iter().map(|group| group.clients).max().unwrap_or(1);
        Pass::over_all(&name, Kind::Get, records, clients)
    }

    /// Returns the pass as phase number `index` of a run.
    pub fn phase(&self, label: &str, index: u16) -> PhasePlan {
        let values =
            ValueModel { size: SizeModel::Fixed { size: 32 }, seed: None, compressible: 0.0 };
        let group = GroupPlan {
            clients: self.clients,
            keys: self.keys,
            values,
            requests: Some(self.requests),
            seed: u64::from(index),
            ..GroupPlan::plain(&self.name, &[(self.kind, 1_000)], self.records)
        };
        PhasePlan {
            label: label.to_owned(),
            load: true,
            ..PhasePlan::plain(index, &self.name, vec![group], LONGEST)
        }
    }
}

//! Phases that kvdyno adds to a plan: looking whether records exist, deleting them, reading them
//! back. They run through the same loop as all others.

use std::time::Duration;

use kvdyno_core::workload::{
    Arrival, Distribution, GroupPlan, Kind, Mix, PhasePlan, SizeModel, ValueModel,
};

/// Bound of an added phase: a day, as for every phase that is bounded by count.
const LONGEST: Duration = Duration::from_secs(24 * 3_600);

/// `requests` operations of one kind over records 0..records.
#[derive(Clone, Debug)]
pub struct Pass {
    /// Name and label of the phase.
    pub name: String,
    /// What is done.
    pub kind: Kind,
    /// In which order.
    pub keys: Distribution,
    /// To which records.
    pub records: u64,
    /// How often.
    pub requests: u64,
    /// By how many clients.
    pub clients: u32,
}

impl Pass {
    /// Every record once, in order.
    pub fn over_all(name: &str, kind: Kind, records: u64, clients: u32) -> Pass {
        let keys = Distribution::Sequential;
        Pass { name: name.to_owned(), kind, keys, records, requests: records, clients }
    }

    /// Reads every record once after `phase`, with as many clients.
    pub fn reading_back(phase: &PhasePlan, records: u64) -> Pass {
        let name = format!("{}:read-back", phase.name);
        let clients = phase.groups.iter().map(|group| group.clients).max().unwrap_or(1);
        Pass::over_all(&name, Kind::Get, records, clients)
    }

    /// The pass as phase number `index` of a run.
    pub fn phase(&self, label: &str, index: u16) -> PhasePlan {
        let values =
            ValueModel { size: SizeModel::Fixed { size: 32 }, seed: None, compressible: 0.0 };
        let group = GroupPlan {
            name: self.name.clone(),
            clients: self.clients,
            pipeline: 1,
            mix: Mix { parts: vec![(self.kind, 1_000)] },
            keys: self.keys,
            values,
            arrival: Arrival::Closed,
            ttl: None,
            one_field: false,
            linearizability: false,
            scan_length: SizeModel::Fixed { size: 1 },
            batch: 1,
            requests: Some(self.requests),
            records: self.records,
            insert_first: self.records,
            insert_stride: 1,
            seed: u64::from(index),
        };
        PhasePlan {
            index,
            name: self.name.clone(),
            label: label.to_owned(),
            warmup: false,
            groups: vec![group],
            duration: None,
            time_limit: LONGEST,
            verify: true,
            read_back: false,
            faults: Vec::new(),
            load: true,
            from_empty: false,
        }
    }
}

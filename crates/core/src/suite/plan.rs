//! The plan: a suite with everything decided, as plain data. Results keep it, and `rerun` runs it
//! again.

use serde::{Deserialize, Serialize};

use crate::verdict::Claim;
use crate::workload::{Dataset, GroupPlan, Kind, Mix, PhasePlan, RateChange, SizeModel, Sizes};

use super::published::PublishedSetup;
use super::search::SearchPlan;
use super::shares::ShareOfCapacity;

/// Room for records that parts may insert further than their share of a phase, whatever its size.
const ROOM: u64 = 10_000;

/// A suite with everything decided.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// Name of the suite.
    pub suite: String,
    /// Description of the suite, in a line.
    pub title: String,
    /// Source of the suite: a citation, or empty.
    pub source: String,
    /// The records. Its `session` is 0 until the run begins.
    pub dataset: Dataset,
    /// The phases in order; `phases[i].index == i`.
    pub phases: Vec<PhasePlan>,
    /// Stores that the suite runs on where the user names none.
    pub stores: Vec<String>,
    /// Bytes of the random requests with which the device under the store's folder is measured, too; `None` if it is not.
    pub device_limit: Option<u32>,
    /// Phases that are searches for the highest rate, by number.
    pub searches: Vec<SearchPlan>,
    /// Phases that are left out where the store has no nodes for faults, by number.
    pub needs_nodes: Vec<u16>,
    /// Phases that are left out where the store does not say that it survives a loss of power, or where its nodes
    /// have no file systems of their own, by number.
    pub needs_survival: Vec<u16>,
    /// The result tells which criteria of a good benchmark the run met.
    pub scorecard: bool,
    /// Figures that were published for the suite.
    pub published: Vec<PublishedSetup>,
    /// Groups whose rate is a share of what an earlier phase will reach; the plan's arrival of such a group does not
    /// have the rate yet.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub shares: Vec<ShareOfCapacity>,
    /// Changes of rates that were made by manual control in the run that this one repeats.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub steered: Vec<PlannedChange>,
    /// Sentences that the run is to confirm or refute.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub claims: Vec<Claim>,
    /// Factor of the suite's records and requests; `None` at full scale.
    pub scale: Option<f64>,
    /// Seed of the run.
    pub seed: u64,
    /// Worker threads, where the user named a number.
    pub threads: Option<u32>,
    /// Options that made this plan differ from the suite, as typed; scale, seed and threads
    /// have fields of their own.
    pub changes: Vec<String>,
    /// Notes for the user on how the suite was read (YCSB properties without effect).
    pub notes: Vec<String>,
}

/// A change of a group's rate in one of a run's stores.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PlannedChange {
    /// Number of the store, from 0.
    pub store: usize,
    /// Name of the phase.
    pub phase: String,
    /// Number of the group.
    pub group: usize,
    /// The new rate, and the operation with which it begins.
    pub change: RateChange,
}

impl Plan {
    /// Enters into `phase` the changes that were made by manual control on this store.
    pub fn steer_as_before(&self, phase: &mut PhasePlan, store: usize) {
        for steered in self.steered.iter().filter(|s| s.store == store && s.phase == phase.name) {
            if let Some(group) = phase.groups.get_mut(steered.group) {
                group.changes.push(steered.change);
            }
        }
    }

    /// Returns true if nothing differs from the suite: published figures may stand beside the measured ones.
    #[must_use]
    pub fn as_published(&self) -> bool {
        self.scale.is_none() && self.changes.is_empty()
    }

    /// Returns the search that phase `index` is; `None` if it is none.
    #[must_use]
    pub fn search(&self, index: u16) -> Option<&SearchPlan> {
        self.searches.iter().find(|search| search.phase == index)
    }

    /// Prepares the plan for a load in so many parts: splits the batches of loads evenly or turns them into single
    /// inserts, and makes room for the records of all parts, since each inserts its own, and some reach a little
    /// further than one process would.
    pub fn divide_into(&mut self, parts: u32) {
        let loads = self.phases.iter_mut().filter(|phase| phase.load);
        loads.flat_map(|phase| &mut phase.groups).for_each(|group| group.in_even_shares(parts));
        let mut further = 0_u64;
        for phase in &self.phases {
            let reached = reached_by_parts(phase, parts);
            let room = reached.saturating_add(further);
            self.dataset.capacity = self.dataset.capacity.max(room);
            further = further.saturating_add(reached.saturating_sub(records_after(phase)));
        }
    }

    /// Makes room for the inserts of parts that are dealt out anew in the course of the run: each may reach further
    /// than it would alone.
    pub fn make_room_to_deal_anew(&mut self) {
        let capacity = self.dataset.capacity;
        self.dataset.capacity = capacity.saturating_add(capacity / 8).saturating_add(ROOM);
    }

    /// Returns phase `index` as it begins when `records` records exist. The plan knows only an upper bound of them
    /// where an earlier phase inserts until a time is over.
    #[must_use]
    pub fn phase_with(&self, index: usize, records: u64) -> PhasePlan {
        let mut phase = self.phases[index].clone();
        if !phase.from_empty {
            let planned = phase.groups.first().map_or(0, |group| group.records);
            for group in &mut phase.groups {
                group.insert_first = records + group.insert_first.saturating_sub(planned);
                group.records = records;
            }
        }
        phase
    }
}

/// Returns the number of records that exist after `phase` if all of its requests are made: exact where the mix only
/// inserts, or the requests are whole thousands and the groups insert alike; else an upper bound.
#[must_use]
pub fn records_after(phase: &PhasePlan) -> u64 {
    let end = |group: &GroupPlan| {
        let made = inserted(group);
        if made == 0 { 0 } else { group.insert_first + (made - 1) * group.insert_stride + 1 }
    };
    let before = phase.groups.iter().map(|group| group.records).max().unwrap_or(0);
    phase.groups.iter().map(end).max().unwrap_or(0).max(before)
}

/// Returns n such that records 0..n may exist after `phase`, if each of so many parts makes all of its requests: an
/// upper bound.
fn reached_by_parts(phase: &PhasePlan, parts: u32) -> u64 {
    let parts = u64::from(parts.max(1));
    let end = |group: &GroupPlan| {
        let made = inserted_by(group, group.requests.unwrap_or(0).div_ceil(parts));
        let step = group.insert_stride.saturating_mul(parts);
        if made == 0 { 0 } else { group.insert_first.saturating_add(made.saturating_mul(step)) }
    };
    phase.groups.iter().map(end).max().unwrap_or(0).max(records_after(phase))
}

/// Returns the most records that a group inserts.
pub(super) fn inserted(group: &GroupPlan) -> u64 {
    inserted_by(group, group.requests.unwrap_or(0))
}

/// Returns the most records that so many requests of a group insert.
fn inserted_by(group: &GroupPlan, requests: u64) -> u64 {
    group
        .mix
        .parts
        .iter()
        .map(|(kind, part)| {
            let part = u64::from(*part);
            let rest = requests % 1_000;
            let operations = requests / 1_000 * part + part.min(rest);
            match kind {
                Kind::Insert => operations,
                Kind::InsertBatch => operations.saturating_mul(group.batch.into()),
                _ => 0,
            }
        })
        .sum()
}

/// Returns true if the mix does nothing but insert.
pub(super) fn only_inserts(mix: &Mix) -> bool {
    !mix.has(|kind| !kind.inserts())
}

/// Returns the mean of a size model; for a log-normal one the mean without its bounds, kept within them.
pub(super) fn mean_size(model: &SizeModel) -> f64 {
    match model {
        SizeModel::Fixed { size } => f64::from(*size),
        SizeModel::Uniform { min, max } | SizeModel::JavaUniform { min, max, .. } => {
            (f64::from(*min) + f64::from(*max)) / 2.0
        }
        SizeModel::Zipfian { min, .. } => {
            let sizes = Sizes::new("the size", model, 0, 0);
            sizes.map_or(f64::from(*min), |sizes| sizes.mean())
        }
        SizeModel::LogNormal { median, sigma, min, max } => {
            (median * (sigma * sigma / 2.0).exp()).clamp(f64::from(*min), f64::from(*max))
        }
        SizeModel::Weighted { choices } => {
            let sum: f64 = choices.iter().map(|(_, weight)| weight).sum();
            choices.iter().map(|(size, weight)| f64::from(*size) * weight).sum::<f64>() / sum
        }
    }
}

//! Abilities that a phase needs and that some stores lack. They are checked before a store is opened, as far as no
//! store of its kind has them, and before anything is loaded.

use super::error::LoadError;
use crate::store::{Capabilities, Profile};
use crate::workload::{Dataset, GroupPlan, Kind, PhasePlan};

/// Name of the ability that stores lack which write fields apart.
pub const FIELDS_IN_BATCHES: &str = "batches of records with several fields";

/// An ability that some stores lack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// Ordered scans.
    Scan,
    /// Several reads in one request.
    BatchGet,
    /// Several writes in one request.
    BatchPut,
    /// A time to live.
    Ttl,
    /// Several clients on a connection.
    Pipeline,
    /// Records that stay what was written: a store that makes values up has none.
    Storage,
}

impl Need {
    /// All abilities.
    pub const ALL: [Need; 6] =
        [Need::Scan, Need::BatchGet, Need::BatchPut, Need::Ttl, Need::Pipeline, Need::Storage];

    /// Returns its name in words, as in "redis has no scan".
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Need::Scan => "scan",
            Need::BatchGet => "batches of gets",
            Need::BatchPut => "batches of writes",
            Need::Ttl => "time to live",
            Need::Pipeline => "pipelining",
            Need::Storage => "records that a get could see",
        }
    }

    /// Returns true if a store with these capabilities has it.
    #[must_use]
    pub fn is_met_by(self, capabilities: &Capabilities) -> bool {
        match self {
            Need::Scan => capabilities.scan,
            Need::BatchGet => capabilities.batch_get,
            Need::BatchPut => capabilities.batch_put,
            Need::Ttl => capabilities.ttl,
            Need::Pipeline => capabilities.pipeline,
            Need::Storage => !capabilities.fabricates,
        }
    }

    /// Returns the abilities that clients of this group need.
    #[must_use]
    pub fn of(group: &GroupPlan) -> Vec<Need> {
        let has = |kinds: &[Kind]| group.mix.has(|kind| kinds.contains(&kind));
        let needed = |need: &Need| match need {
            Need::Scan => has(&[Kind::Scan]),
            Need::BatchGet => has(&[Kind::GetBatch]),
            Need::BatchPut => has(&[Kind::PutBatch, Kind::InsertBatch]),
            Need::Ttl => group.ttl.is_some(),
            Need::Pipeline => group.pipeline > 1,
            Need::Storage => has(&[Kind::PutSeen]),
        };
        Need::ALL.into_iter().filter(needed).collect()
    }
}

/// Checks that a phase with `put-seen` can see what it puts.
///
/// # Errors
/// [`LoadError::Unseen`] if it verifies nothing, or if a delete or the end of a time to live may come before the get.
pub fn sees_what_it_puts(phase: &PhasePlan) -> Result<(), LoadError> {
    let has = |wanted: Kind| phase.groups.iter().any(|group| group.mix.has(|kind| kind == wanted));
    let why = match () {
        () if !has(Kind::PutSeen) => return Ok(()),
        () if !phase.verify => {
            "knows what it put by the versions of verification: leave --no-verify (`verify = false`) out"
        }
        () if has(Kind::Delete) => {
            "may not see what it put where others delete: leave `delete` out"
        }
        () if phase.groups.iter().any(|group| group.ttl.is_some()) => {
            "may not see what it put where records expire: leave `ttl` out"
        }
        () => return Ok(()),
    };
    Err(LoadError::Unseen { phase: phase.name.clone(), why })
}

/// Checks that the store with this `profile` has what a phase needs.
///
/// # Errors
/// [`LoadError::Unsupported`] with the first thing that it lacks; [`LoadError::Unseen`] as [`sees_what_it_puts`].
pub fn supports(profile: &Profile, phase: &PhasePlan, dataset: &Dataset) -> Result<(), LoadError> {
    let capabilities = &profile.capabilities;
    sees_what_it_puts(phase)?;
    let lacks = |group| Need::of(group).into_iter().find(|need| !need.is_met_by(capabilities));
    let apart = capabilities.fields && dataset.fields > 1;
    let batches = |group: &GroupPlan| {
        let batch = [Kind::GetBatch, Kind::PutBatch, Kind::InsertBatch];
        group.mix.has(|kind| batch.contains(&kind))
    };
    let of_fields = || {
        let some = apart && phase.groups.iter().any(batches);
        some.then_some(FIELDS_IN_BATCHES)
    };
    match phase.groups.iter().find_map(lacks).map(Need::name).or_else(of_fields) {
        Some(operation) => {
            let (phase, store) = (phase.name.clone(), profile.store.clone());
            Err(LoadError::Unsupported { phase, store, operation })
        }
        None => Ok(()),
    }
}

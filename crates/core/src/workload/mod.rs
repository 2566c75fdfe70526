//! The operations that are asked of a store: keys, distributions, values, operation mixes. Everything here is a pure
//! function of (seed, operation id), so that a run can be repeated and traced.

mod batch;
mod curve;
mod distribution;
pub mod fault;
mod filler;
mod invalid;
mod java_random;
mod key;
mod marks;
mod mix;
mod operation;
mod ownership;
mod plan;
mod reach;
mod sampled;
mod size;
mod ycsb;

pub(crate) use crate::ground::random::derive_seed;
pub use crate::ground::random::{Permutation, Random, mix64, unmix64};
pub use curve::{Course, Curve, CurveError, CurveText, MOST_POINTS};
pub use distribution::Chooser;
pub use fault::FaultPlan;
pub use filler::Filler;
pub use invalid::PlanError;
pub use java_random::{JavaCursor, JavaSequence};
pub use key::KeyWriter;
pub(crate) use marks::{Marked, Marks};
pub use mix::{MixCursor, Mixer};
pub use operation::{Drawer, Operation, Workload};
pub use ownership::{LostOwner, Ownership};
pub use plan::{
    Arrival, Dataset, Distribution, EXPECTED_HITS, GroupPlan, KeyForm, KeyModel, Kind, Mix, Part,
    PhasePlan, RateChange, SizeModel, ValueModel, YcsbLaw,
};
pub use sampled::{OPERATIONS_KEPT, SAMPLED_RECORDS, Sampled};
pub use size::Sizes;

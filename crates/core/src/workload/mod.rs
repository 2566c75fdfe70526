//! What is asked of a store: keys, distributions, values, operation mixes. Everything here is a
//! pure function of (seed, operation id), so that a run can be repeated and traced.

mod plan;

pub use plan::{
    Arrival, Dataset, Distribution, GroupPlan, KeyForm, KeyModel, Kind, Mix, Part, PhasePlan,
    SizeModel, ValueModel,
};

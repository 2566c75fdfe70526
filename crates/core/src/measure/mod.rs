//! How the asking is timed: the clock, histograms by operation kind and interval, and what a phase
//! measured in all; and what the machine it ran on is and gave.

mod clock;
mod phase;
mod procfs;
mod resources;
mod series;

pub use clock::{Nanos, now};
pub use phase::{ErrorSummary, Interval, PhaseMeasure, StopReason, WorkerUse};
pub use procfs::{MachineTimes, NotSampled, ProcessCounters};
pub use resources::{
    ProcessUse, ResourceSummary, Resources, Sample, Sampler, ServerUse, thread_cpu,
};
pub use series::{Ending, KindMeasure, Series, latency_histogram};

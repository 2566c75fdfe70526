//! How the asking is timed: the clock, histograms by operation kind and interval, and what a phase
//! measured in all.

mod clock;
mod phase;
mod series;

pub use clock::{Nanos, now};
pub use phase::{ErrorSummary, Interval, PhaseMeasure, StopReason, WorkerUse};
pub use series::{Ending, KindMeasure, Series, latency_histogram};

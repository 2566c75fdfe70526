//! How the asking is timed: the clock, histograms by operation kind and interval, and what a phase
//! measured in all; and what the machine it ran on is and gave.

mod bottleneck;
mod changes;
mod clock;
mod collector;
mod course;
mod machine;
mod neighbours;
mod phase;
mod probes;
mod procfs;
mod queues;
mod recorder;
mod resources;
mod series;
mod steady;

pub use bottleneck::Limit;
pub use changes::{Segment, median, segments};
pub use clock::{Nanos, departure, now};
pub use collector::Collector;
pub(crate) use course::Chronicle;
pub use course::{Calm, Course, Side, Silences, Slot, Stretch, percentile};
pub use machine::{Machine, allowed_cpus, pin_current_thread};
pub use neighbours::ThreadTime;
pub use phase::{ErrorSummary, Interval, PhaseMeasure, StopReason, WorkerUse};
pub use probes::{FitWarning, Fitness, Loopback, OpenFiles, Probes, Spread, check_machine};
pub use procfs::{MachineTimes, NotSampled, ProcessCounters};
pub use queues::{NetworkDevice, network_devices};
pub use recorder::{Batch, Recorder, Timing};
pub use resources::{
    Follow, Offspring, ProcessUse, ResourceSummary, Resources, Sample, Sampler, ServerUse,
    thread_cpu,
};
pub use series::{Ending, KindMeasure, LONGEST, Series, latency_histogram};
pub use steady::Settling;

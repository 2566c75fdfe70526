//! Measurement of requests: the clock, histograms by operation kind and interval, and the totals of
//! a phase. Also the facts of the machine it ran on, and what the phase took from it.

mod bottleneck;
mod busy;
mod cgroup;
mod changes;
mod clock;
mod collector;
mod histogram;
mod histogram_text;
mod interval;
mod latencies;
mod listeners;
mod machine;
mod neighbours;
mod phase;
mod probes;
mod procfs;
mod queues;
mod recorder;
mod resources;
mod series;
mod silence;
mod slots;
mod stalls;
mod steady;
mod thread_time;
mod timeline;
mod troubles;
mod worker_use;

pub use bottleneck::{LEAST_TICKS, LEAST_TIME, Limit};
pub use changes::{Segment, segments};
pub use clock::{Nanos, departure, now, system_time};
pub use collector::Collector;
pub use histogram::{
    LONGEST, add_latencies, five_figures, latency_histogram, least_for, no_latencies,
};
pub(crate) use histogram_text::as_text;
pub use histogram_text::{
    HistogramError, HistogramReader, WrittenHistogram, histogram_from_text, histogram_to_text,
};
pub use interval::{Batch, Interval};
pub use latencies::{BatchLatencies, Latencies};
pub use listeners::servers_at;
pub use machine::{BUILD_PROFILE, Machine, allowed_cpus, pin_current_thread};
pub use phase::{ErrorSummary, OldRecords, PhaseMeasure, StopReason};
pub use probes::{
    FitWarning, Fitness, IDLE_OTHER_LOAD, IDLE_STEAL, Loopback, OpenFiles, Probes, Spread,
    check_machine, raise_open_files,
};
pub use procfs::{MachineTimes, NotSampled, ProcessCounters};
pub use queues::{NetworkDevice, network_devices};
pub use recorder::{Recorder, Timing};
pub use resources::{
    Follow, Offspring, ProcessUse, ResourceSummary, Resources, Sample, SampleSink, Sampler,
    ServerUse,
};
pub use series::{Drained, Ending, KindMeasure, KindTotal, Series};
pub use silence::{Silences, Stretch};
pub use slots::{SLOT, Side, Slot};
pub use stalls::{LEAST_GAP, LEAST_IN_ALL, Stalls, Standstill, Watchdog};
pub use steady::Settling;
pub use thread_time::{ThreadTime, thread_cpu};
pub use timeline::{Slow, Timeline, TimelineBuilder, TimelinePoint, percentile};
pub(crate) use troubles::FreshlyWrong;
pub use troubles::Troubles;
pub use worker_use::WorkerUse;

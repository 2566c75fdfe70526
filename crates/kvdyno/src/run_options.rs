//! Options that all stores of a run share: the plan, how it is carried, and over which data.

use std::sync::Arc;
use std::time::Duration;

use kvdyno_core::load::{Interrupt, LoadOptions};
use kvdyno_core::measure;
use kvdyno_core::suite::Plan;
use kvdyno_core::workload::{Ownership, Part};

use crate::args::DataPolicy;
use crate::console::Console;
use crate::fleet::{Fleets, TakesOver};
use crate::metrics::Metering;
use crate::run_config::Carrying;

/// Options that all stores of a run share.
pub struct RunOptions<'a> {
    /// Plan of the run.
    pub plan: &'a Plan,
    /// Options of the load loop.
    pub load: LoadOptions,
    /// Signal that the user wants to stop.
    pub interrupt: Arc<Interrupt>,
    /// Treatment of records that a store holds already.
    pub data: DataPolicy,
    /// True if values that are read are checked.
    pub verify: bool,
    /// Session number of this run, by which its writes are told from those of earlier runs.
    pub session: u32,
    /// Sentences, one for each gap that values too short for a full stamp leave in the checks; empty if there is none.
    pub unseen: Vec<String>,
    /// Records of other agents that this process may have to judge.
    pub takes_over: TakesOver,
    /// Agents that carry the load; `None` if this process does.
    pub fleets: Option<Fleets>,
    /// Page that shows the run while it lasts.
    pub console: Option<Console>,
    /// Metrics of the run for monitoring systems.
    pub metering: Option<Metering>,
}

/// Returns the options of the load loop for a plan.
pub fn load_options(plan: &Plan, carrying: Carrying) -> LoadOptions {
    let processors = measure::allowed_cpus().len();
    let threads = plan.threads.map_or((processors / 2).max(1), |threads| threads as usize);
    LoadOptions {
        threads,
        interval: Duration::from_secs(1),
        part: Part::WHOLE,
        ownership: Ownership::ALL,
        give_up: carrying.give_up,
        pace: carrying.pace,
        settle: carrying.settle,
    }
}

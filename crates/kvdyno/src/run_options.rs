//! What the stores of a run have in common: what is run, how, and over which data.

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

/// What all stores of a run have in common.
pub struct RunOptions<'a> {
    /// What is run.
    pub plan: &'a Plan,
    /// How it is carried.
    pub load: LoadOptions,
    /// The user's wish to stop.
    pub interrupt: Arc<Interrupt>,
    /// What becomes of existing records.
    pub data: DataPolicy,
    /// Check what is read.
    pub verify: bool,
    /// Tells this run's writes from those of earlier ones.
    pub session: u32,
    /// What its values are too short to show.
    pub unseen: Vec<String>,
    /// Records of other agents that this process may have to judge.
    pub takes_over: TakesOver,
    /// Who carries the load, if not this process.
    pub fleets: Option<Fleets>,
    /// The page that shows it while it lasts.
    pub console: Option<Console>,
    /// What monitoring systems are told of it.
    pub metering: Option<Metering>,
}

/// How a plan is carried.
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

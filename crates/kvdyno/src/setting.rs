//! What the stores of a run have in common: what is run, how, and over which data.

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use kvdyno_core::load::{Conduct, Interrupt};
use kvdyno_core::measure;
use kvdyno_core::suite::Plan;

use crate::args::{CarryingArguments, DataPolicy};

/// What all stores of a run have in common.
pub struct Setting<'a> {
    /// What is run.
    pub plan: &'a Plan,
    /// How it is carried.
    pub conduct: Conduct,
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
}

/// How a plan is carried.
pub fn conduct(plan: &Plan, arguments: &CarryingArguments, start_at: Option<f64>) -> Conduct {
    let processors = measure::allowed_cpus().len();
    let threads = plan.threads.map_or((processors / 2).max(1), |threads| threads as usize);
    Conduct {
        threads,
        interval: Duration::from_secs(1),
        part: plan.part,
        start_at: start_at.map(|at| UNIX_EPOCH + Duration::from_secs_f64(at)),
        give_up: arguments.give_up,
        pace: arguments.pace.into(),
        settle: arguments.settle,
    }
}

/// Differs from run to run, so that this run's writes can be told from earlier ones'.
pub fn session_number() -> u32 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    (now.as_nanos() as u64 ^ u64::from(std::process::id()).rotate_left(32)) as u32
}

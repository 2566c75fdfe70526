//! What the stores of a run have in common: what is run, how, and over which data.

use std::sync::Arc;

use kvdyno_core::load::{Conduct, Interrupt};
use kvdyno_core::suite::Plan;

use crate::args::DataPolicy;

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

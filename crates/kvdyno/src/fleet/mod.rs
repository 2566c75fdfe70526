//! One load from several machines. The conductor plans, keeps phases together, gathers and judges; agents carry a
//! part of the load, and do nothing by themselves. docs/FLEET.md says how to use it.

mod agent;
mod agent_store;
mod beginning;
mod clocks;
mod coming;
mod course;
mod dealer;
mod described;
mod end_line;
mod engines;
mod floor_talk;
mod gathering;
mod identity;
mod latest_use;
mod local;
mod loss;
mod machine_use;
mod member;
mod messages;
mod options;
mod outlier;
mod phase;
mod reads;
mod refusals;
mod share;
mod shares;
#[cfg(feature = "simulated-agents")]
mod simulated;
mod staying;
mod taking_over;
mod timing;
mod token;
mod under_way;
mod wire;

use std::time::Duration;

pub use agent::{agent, agent_of_engine};
pub use identity::hash;
pub use latest_use::LatestUse;
pub use loss::{OnAgentLost, TakesOver};
pub use messages::Opening;
pub use options::{
    FleetInUse, FleetOptions, Fleets, conductor_to_join, refuse, refuse_engine_agents,
};
pub use reads::{ReadsFrom, longest_pipeline};
#[cfg(feature = "simulated-agents")]
pub use simulated::simulated_agents;
pub use staying::stay;

/// Time that processes started by an engine wait for each other: machines come one by one, images are fetched.
const PATIENCE: Duration = Duration::from_secs(600);
/// Time that a conductor whose run does not begin waits for the processes that an engine has started, to tell them.
const REFUSING: Duration = Duration::from_secs(60);

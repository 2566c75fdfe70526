//! One load from several machines: a conductor, which plans, keeps phases together, gathers and judges, and
//! agents, which carry a part of the load and do nothing by themselves. docs/FLEET.md says how to use it.

mod agent;
mod asked;
mod carried;
mod clocks;
mod gathering;
mod identity;
mod local;
mod member;
mod messages;
mod phase;
mod share;
mod token;
mod under_way;
mod wire;

pub use agent::agent;
pub use asked::{AgentsAsked, FleetInUse, Fleets, refuse};
pub use identity::hash;
pub use messages::Opening;

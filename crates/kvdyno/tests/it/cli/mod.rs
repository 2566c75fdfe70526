//! The command as its users meet it: the real binary, its lines, exit codes and result folders.

mod advice;
#[cfg(feature = "server-tests")]
mod agents;
mod agents_dealt;
mod agents_going_on;
#[cfg(feature = "server-tests")]
mod agents_staying;
mod beginning;
mod capacity;
#[cfg(feature = "server-tests")]
mod clocks;
mod comparing;
mod deployments;
mod documented;
mod elsewhere;
#[cfg(feature = "server-tests")]
mod engines;
mod errors;
mod events;
#[cfg(feature = "server-tests")]
mod first_minutes;
mod folders;
#[cfg(feature = "server-tests")]
mod harm;
mod heartbeats;
mod hostile;
mod inputs;
mod lengths;
#[cfg(feature = "server-tests")]
mod lost_agents;
#[cfg(feature = "server-tests")]
mod misses;
mod options;
mod reasons;
#[cfg(feature = "server-tests")]
mod relay;
#[cfg(feature = "server-tests")]
mod restricted;
#[cfg(feature = "server-tests")]
mod servers;
mod signals;
mod stalls;
#[cfg(feature = "server-tests")]
mod standard;
#[cfg(feature = "server-tests")]
mod steering;
#[cfg(feature = "server-tests")]
mod testbeds;

//! The command as its users meet it: the real binary, its lines, exit codes and result folders.

mod support;

mod capacity;
mod comparing;
mod folders;
#[cfg(feature = "server-tests")]
mod harm;
mod inputs;
mod options;
#[cfg(feature = "server-tests")]
mod servers;
mod signals;
#[cfg(feature = "server-tests")]
mod testbeds;

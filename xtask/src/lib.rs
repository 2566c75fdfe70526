//! What `cargo xtask` does, as a library so that tests can hold it to what it says.

pub mod alarms;
pub mod bench;
pub mod checks;
pub mod fuzz;
pub mod house_rules;
pub mod readme;
pub mod real;
pub mod servers;
pub mod steps;
pub mod testing;

pub use steps::StepFailure;

//! What `cargo xtask` does, as a library so that tests can hold it to what it says.

// The chores: each is one command of `cargo xtask`.
pub mod alarms;
pub mod bench;
pub mod crates;
pub mod deny;
pub mod dist;
pub mod durability;
pub mod fuzz;
pub mod mutants;
pub mod readme;
pub mod real;
pub mod testing;
pub mod truth;

// What lint and tests check beside the compiler.
pub mod checks;
pub mod house_rules;

// What chores are made of: programs run to their end, servers installed.
pub mod servers;
pub mod steps;
pub use steps::StepFailure;

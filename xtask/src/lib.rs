//! The chores of `cargo xtask`, as a library so that tests can check that they do what they say.

// The chores: each is one command of `cargo xtask`.
pub mod alarms;
pub mod bench;
pub mod crates;
pub mod deny;
pub mod dist;
pub mod durability;
pub mod fuzz;
pub mod lines;
pub mod mutants;
pub mod readme;
pub mod real;
pub mod testing;
pub mod truth;

// Checks of lint and tests, beside the compiler's.
pub mod checks;
pub mod house_rules;

// Parts of chores: programs run to their end, servers installed.
pub mod servers;
pub mod steps;
pub use steps::StepFailure;

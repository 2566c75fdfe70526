//! `cargo xtask fuzz`: mutated inputs for every parser, on stable Rust. The same target bodies run
//! under libFuzzer; see fuzz/README.md.

use clap::Args;

use crate::steps::{self, StepFailure};

/// Options of `cargo xtask fuzz`.
#[derive(Debug, Args)]
pub struct Options {
    /// Inputs for each target
    #[arg(long, default_value_t = 1_000_000)]
    inputs: u64,
    /// Seed of the mutations; a failure prints the one that it had
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

/// Runs every target with mutations of its corpus.
///
/// # Errors
/// If a parser panics.
pub fn fuzz(options: &Options) -> Result<(), StepFailure> {
    let mut tests = steps::cargo();
    tests.args(["test", "--package", "kvdyno-fuzz"]);
    tests.env("KVDYNO_FUZZ_INPUTS", options.inputs.to_string());
    tests.env("KVDYNO_FUZZ_SEED", options.seed.to_string());
    steps::run(&mut tests)
}

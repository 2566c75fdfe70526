//! `cargo xtask CHORE`: what a developer and CI do to this project, the same on both sides.

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use xtask::{
    StepFailure, alarms, bench, checks, crates, deny, dist, durability, fuzz, lines, mutants,
    readme, real, testing, truth,
};

/// Developer chores.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Arguments {
    #[command(subcommand)]
    chore: Chore,
}

#[derive(Debug, Subcommand)]
enum Chore {
    /// Run every test in stages, first those without servers; install what the others need
    Test(testing::Options),
    /// Formatting, clippy, house rules
    Lint,
    /// Run benchmarks and write docs/PERFORMANCE.md
    Bench(bench::Options),
    /// Count the instructions of an operation and compare with the accepted figures
    Instructions(bench::instructions::Options),
    /// Run kvdyno and its peers in turns and write their table into docs/PERFORMANCE.md
    BenchPeers(bench::peers::Options),
    /// Build the portable binary with every store, and pack it for those who install kvdyno
    Dist(dist::Options),
    /// Pack the crates that a store outside of this repository needs, and build the example against them
    Crates,
    /// Check licences, sources and advisories of all dependencies
    Deny,
    /// Feed mutated inputs to every parser
    Fuzz(fuzz::Options),
    /// Count the lines of production code by folder
    Lines,
    /// Change the code that judges, place by place, and print the changes that no test notices
    Mutants(mutants::Options),
    /// Run the commands that README.md shows
    Readme,
    /// Repeat runs on healthy testbeds and count what is said against them
    Alarms(alarms::Options),
    /// Cut the power of stores under load and write what that took into docs/DURABILITY.md
    Durability(durability::Options),
    /// Run conformance, all suites and failovers against a real server that a variable names
    Real(real::Options),
    /// Run engines with a lie planted in each, and honest ones, and hold what kvdyno says against what is known
    Truth(truth::Options),
}

fn main() -> ExitCode {
    let done: Result<(), StepFailure> = match Arguments::parse().chore {
        Chore::Test(options) => testing::test(&options),
        Chore::Lint => checks::lint(),
        Chore::Bench(options) => bench::bench(&options),
        Chore::Instructions(options) => bench::instructions::instructions(options),
        Chore::BenchPeers(options) => bench::peers::bench_peers(&options),
        Chore::Dist(options) => dist::dist(&options),
        Chore::Crates => crates::crates(),
        Chore::Deny => deny::deny(),
        Chore::Fuzz(options) => fuzz::fuzz(&options),
        Chore::Lines => lines::lines(),
        Chore::Mutants(options) => mutants::mutants(&options),
        Chore::Readme => readme::run(),
        Chore::Alarms(options) => alarms::alarms(&options),
        Chore::Durability(options) => durability::durability(&options),
        Chore::Real(options) => real::real(&options),
        Chore::Truth(options) => truth::truth(&options),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("xtask: {failure}");
            ExitCode::FAILURE
        }
    }
}

//! `cargo xtask test`: every test, in stages. The first needs nothing but Rust and says soon whether a
//! change holds; the last needs every driver and server.

pub mod features;
pub mod programs;
pub mod running;
pub mod stages;

use std::collections::BTreeSet;
use std::time::Instant;

use clap::Args;

use crate::servers;
use crate::steps::{self, StepFailure};
use programs::{Program, ProgramBuild};
use running::ProgramRun;
use stages::{Done, STAGES, Stage};

/// How many stages.
#[derive(Debug, Args)]
pub struct Options {
    /// End after the first stage, which needs no server and installs nothing
    #[arg(long)]
    quick: bool,
}

/// Runs the stages. Each tells its result at once; one that fails does not keep the others from running.
///
/// # Errors
/// If something is missing, does not build, or a test fails.
pub fn test(options: &Options) -> Result<(), StepFailure> {
    let mut ran = BTreeSet::new();
    let each = |stage: Stage| match stage {
        Stage::WithoutServers => without_servers(&mut ran),
        Stage::MutatedInputs => carry(&programs::build(&ProgramBuild::fuzz())?, |_, _| true),
        Stage::Servers => with_servers(&ran),
    };
    stages::run(&STAGES, options.quick, each, |line| println!("\n{line}"))
}

/// A test: package, program, name.
type Test = (String, String, String);

fn named(program: &Program, test: &str) -> Test {
    (program.package.clone(), program.name.clone(), test.to_owned())
}

/// Runs what needs nothing but Rust, and little time; `ran` gets its tests.
fn without_servers(ran: &mut BTreeSet<Test>) -> Result<Done, StepFailure> {
    let programs = programs::build(&ProgramBuild::default())?;
    let short = |program: &Program, test: &str| {
        let short = !program.is_long(test);
        if short {
            ran.insert(named(program, test));
        }
        short
    };
    let mut done = carry(&programs, short)?;
    let mut examples = steps::cargo();
    examples.args(["test", "--quiet", "--workspace", "--doc"]);
    if steps::run(&mut examples).is_err() {
        done.failed.push("examples in documentation".to_owned());
    }
    Ok(done)
}

/// Runs the rest, and again what every driver may change.
fn with_servers(ran: &BTreeSet<Test>) -> Result<Done, StepFailure> {
    servers::ensure_all()?;
    carry(&programs::build(&ProgramBuild::everything()?)?, |program, test| {
        program.depends_on_drivers(test) || !ran.contains(&named(program, test))
    })
}

/// Runs those tests of `programs` that are `wanted`: two programs at a time, and then alone what measures.
fn carry(
    programs: &[Program],
    mut wanted: impl FnMut(&Program, &str) -> bool,
) -> Result<Done, StepFailure> {
    let (mut beside, mut alone) = (Vec::new(), Vec::new());
    for program in programs {
        let all = program.tests()?;
        let count = all.len();
        let wanted = all.into_iter().filter(|test| wanted(program, test));
        let (measuring, others): (Vec<String>, Vec<String>) =
            wanted.partition(|test| program.measures(test));
        for (tests, parts) in [(others, &mut beside), (measuring, &mut alone)] {
            // None named is all of them.
            if !tests.is_empty() {
                parts.push((program, if tests.len() == count { Vec::new() } else { tests }));
            }
        }
    }
    let begun = Instant::now();
    let mut tell = |line: &str| println!("{line}");
    let mut ran = running::run(beside, 2, &mut tell);
    ran.extend(running::run(alone, 1, &mut tell));
    println!("\n{} runs of test programs took {} s", ran.len(), begun.elapsed().as_secs());
    Ok(told(&ran))
}

/// What is told of a stage.
fn told(ran: &[ProgramRun]) -> Done {
    let failed = ran.iter().filter(|ran| !ran.passed);
    Done {
        tests: ran.iter().map(|ran| ran.tests).sum(),
        failed: failed.map(|ran| ran.title.clone()).collect(),
    }
}

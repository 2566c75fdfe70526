//! `cargo xtask test`: every test, built once with every feature, then run in stages: tests that wait for servers and
//! clients six at a time, tests that measure alone, mutated inputs. `--quick` builds what a user builds and needs no server.

pub mod features;
pub mod groups;
pub mod privileges;
pub mod programs;
pub mod running;
pub mod stages;
pub mod times;

use std::time::Instant;

use clap::Args;

use crate::servers;
use crate::steps::{self, StepFailure};
use groups::Group;
use privileges::Privileges;
use programs::{Program, ProgramBuild};
use running::{Concurrency, ProgramRun};
use stages::{Done, Stage};

/// Most failed tests of a stage that are run again alone.
const MOST_ALONE: usize = 3;

/// Options of `cargo xtask test`.
#[derive(Debug, Args)]
pub struct Options {
    /// Only short tests, which need no server; installs nothing
    #[arg(long)]
    quick: bool,

    /// Install and build what the tests need, and run none
    #[arg(long)]
    no_run: bool,

    /// List the 30 slowest tests at the end (by an option of the test harness that Rust has not made stable)
    #[arg(long)]
    times: bool,
}

/// Runs the stages. Each tells its result at once; one that fails does not keep the others from running.
///
/// # Errors
/// If something is missing, does not build, or a test fails.
pub fn test(options: &Options) -> Result<(), StepFailure> {
    let build = if options.quick {
        ProgramBuild::default()
    } else {
        servers::ensure_all()?;
        ProgramBuild::everything()?
    };
    let programs = programs::build(&build)?;
    if options.no_run {
        return Ok(());
    }
    let chosen = Chosen::of(&programs, options.quick)?;
    for line in &chosen.left_out {
        println!("{line}");
    }
    let mut times = Vec::new();
    let each = |stage: Stage| match stage {
        Stage::Waiting => {
            let mut done = carry(&chosen.programs, Group::Waiting, options.times, &mut times);
            if steps::run(&mut examples(&build)).is_err() {
                done.failed.push("examples in documentation".to_owned());
            }
            Ok(done)
        }
        Stage::Measuring => {
            Ok(carry(&chosen.programs, Group::Measuring, options.times, &mut times))
        }
        Stage::MutatedInputs => {
            Ok(carry(&chosen.programs, Group::MutatedInputs, options.times, &mut times))
        }
    };
    let result = stages::run(options.quick, each, |line| println!("\n{line}"));
    if options.times {
        println!("\n{}", times::slowest(times, 30));
    }
    result
}

/// Makes the command that tests the examples in documentation, which cargo alone can run.
fn examples(build: &ProgramBuild) -> std::process::Command {
    let mut cargo = steps::cargo();
    cargo.args(["test", "--quiet", "--workspace", "--doc"]).args(build.arguments());
    cargo
}

/// The tests that are to run.
struct Chosen<'a> {
    programs: Vec<(&'a Program, Vec<String>)>,
    /// A line for each reason that leaves tests out: how many, and what they need.
    left_out: Vec<String>,
}

impl Chosen<'_> {
    /// Chooses from all tests of `programs`: the short ones if `quick`, and those that this process has the privileges for.
    fn of(programs: &[Program], quick: bool) -> Result<Chosen<'_>, StepFailure> {
        let privileges = Privileges::of_this_process();
        let mut chosen = Chosen { programs: Vec::new(), left_out: Vec::new() };
        let (mut long, mut privileged) = (0, 0);
        for program in programs {
            let title = program.title();
            let mut tests = program.tests()?;
            let all = tests.len();
            tests.retain(|test| !quick || !groups::is_long(&title, test));
            let left = tests.len();
            if !privileges.suffice() {
                let need = program.privileged_tests()?;
                tests.retain(|test| !need.contains(test));
            }
            (long, privileged) = (long + all - left, privileged + left - tests.len());
            chosen.programs.push((program, tests));
        }
        if long > 0 {
            chosen
                .left_out
                .push(format!("left out: {long} long tests; `cargo xtask test` runs them"));
        }
        if privileged > 0 {
            chosen.left_out.push(privileges.left_out(privileged));
        }
        Ok(chosen)
    }
}

/// Runs the tests of this group. Tests that wait run six at a time: fewer leave the processors idle.
fn carry(
    programs: &[(&Program, Vec<String>)],
    group: Group,
    with_times: bool,
    times: &mut Vec<times::TestTime>,
) -> Done {
    let of_group = |(program, tests): &(&'_ Program, Vec<String>)| {
        let title = program.title();
        tests.iter().filter(|test| groups::of(&title, test) == group).cloned().collect::<Vec<_>>()
    };
    let parts = programs.iter().map(|part| (part.0, of_group(part)));
    let parts: Vec<_> = parts.filter(|(_, tests)| !tests.is_empty()).collect();
    let (programs, tests) = match group {
        Group::Waiting => (2, 3),
        Group::MutatedInputs => (1, 2),
        Group::Measuring => (1, 1),
    };
    let begun = Instant::now();
    let concurrency = Concurrency { programs, tests, times: with_times };
    let ran = running::run(parts.clone(), concurrency, &mut |line: &str| println!("{line}"));
    println!("\n{} runs of test programs took {} s", ran.len(), begun.elapsed().as_secs());
    times.extend(ran.iter().flat_map(|ran| ran.times.iter().cloned()));
    let again = if group == Group::Waiting { alone(&parts, &ran) } else { Vec::new() };
    sum_up(&ran, &again)
}

/// Runs tests that failed beside others once more, each alone: servers and clients that wait for a processor for seconds
/// fail tests that say nothing of speed. Runs none if a program ended before it named its failures, or if too many failed to
/// blame the others.
fn alone(parts: &[(&Program, Vec<String>)], ran: &[ProgramRun]) -> Vec<ProgramRun> {
    let failed = || ran.iter().filter(|ran| !ran.passed);
    let count: usize = failed().map(|ran| ran.failed.len()).sum();
    if count > MOST_ALONE || failed().any(|ran| ran.failed.is_empty()) {
        return Vec::new();
    }
    let concurrency = Concurrency { programs: 1, tests: 1, times: false };
    let again = failed().flat_map(|ran| {
        let program = parts.iter().find(|(program, _)| program.title() == ran.title)?.0;
        Some((program, ran.failed.clone()))
    });
    running::run(again.collect(), concurrency, &mut |line: &str| println!("again, alone: {line}"))
}

/// Sums up the programs of a stage; `again` are those of its tests that failed and ran once more.
fn sum_up(ran: &[ProgramRun], again: &[ProgramRun]) -> Done {
    let failed = || ran.iter().filter(|ran| !ran.passed);
    let is_mended = !again.is_empty() && again.iter().all(|ran| ran.passed);
    let names = failed().flat_map(|ran| ran.failed.iter().cloned());
    Done {
        tests: ran.iter().chain(again).map(|ran| ran.tests).sum(),
        passed_alone: if is_mended { names.collect() } else { Vec::new() },
        failed: failed().filter(|_| !is_mended).map(|ran| ran.title.clone()).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ran(passed: bool, tests: usize, failed: &[&str]) -> ProgramRun {
        let failed = failed.iter().map(|&name| name.to_owned()).collect();
        ProgramRun { title: "p test a".to_owned(), passed, tests, failed, times: Vec::new() }
    }

    #[test]
    fn what_passes_alone_passes_and_is_named() {
        let (beside, other) = (ran(false, 5, &["x"]), ran(true, 2, &[]));
        let done = sum_up(&[ran(false, 5, &["x"]), other], &[ran(true, 1, &[])]);
        assert_eq!((done.tests, &done.passed_alone[..]), (8, &["x".to_owned()][..]));
        assert!(done.failed.is_empty());
        for again in [&[][..], &[ran(false, 0, &["x"])]] {
            let done = sum_up(std::slice::from_ref(&beside), again);
            assert!(done.passed_alone.is_empty() && done.failed == ["p test a"]);
        }
    }

    #[test]
    fn a_program_that_named_no_failure_and_many_failures_are_not_tried_again() {
        let many: Vec<String> = (0..=MOST_ALONE).map(|n| n.to_string()).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        for failed in [&[][..], &many] {
            assert!(alone(&[], &[ran(false, 1, failed)]).is_empty());
        }
    }
}

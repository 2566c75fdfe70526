//! The stages of the tests: their order, the effect of a failure, and the lines about each.

use std::time::Instant;

use crate::steps::StepFailure;

/// A part of the tests that tells its own result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// Tests that mostly wait, several at a time.
    Waiting,
    /// Tests that measure, one at a time.
    Measuring,
    /// Every parser, fed with mutated inputs.
    MutatedInputs,
}

/// All stages, in order.
pub const STAGES: [Stage; 3] = [Stage::Waiting, Stage::Measuring, Stage::MutatedInputs];

/// Result of a stage.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Done {
    /// Tests that passed.
    pub tests: usize,
    /// Tests that failed beside others, and passed when they ran alone.
    pub passed_alone: Vec<String>,
    /// Test programs of which a test failed.
    pub failed: Vec<String>,
}

impl Stage {
    fn title(self) -> &'static str {
        match self {
            Stage::Waiting => "tests that wait, six at a time",
            Stage::Measuring => "tests that measure, alone",
            Stage::MutatedInputs => "mutated inputs for every parser",
        }
    }
}

/// Runs the stages one after the other; if `quick`, those before the last. `print` gets each result when it is known. A stage
/// whose tests fail does not end the others, so that one look at CI shows all.
///
/// # Errors
/// If a stage could not be carried out or one of its tests failed.
pub fn run(
    quick: bool,
    mut carry: impl FnMut(Stage) -> Result<Done, StepFailure>,
    print: impl Fn(&str),
) -> Result<(), StepFailure> {
    let stages = STAGES;
    let ends = if quick { stages.len() - 1 } else { stages.len() };
    let count = stages.len();
    let head = |at: usize| format!("stage {} of {count}, {}", at + 1, stages[at].title());
    let mut results: Vec<(String, bool)> = Vec::new();
    for (at, stage) in stages[..ends].iter().enumerate() {
        print(&format!("{}: begins", head(at)));
        let begun = Instant::now();
        let done = carry(*stage);
        let seconds = begun.elapsed().as_secs();
        let result = match &done {
            Ok(done) if done.failed.is_empty() => {
                let alone = match &done.passed_alone[..] {
                    [] => String::new(),
                    names => format!("; only when alone: {}", names.join(", ")),
                };
                format!("passed, {} tests in {seconds} s{alone}", done.tests)
            }
            Ok(done) => format!("FAILED after {seconds} s: {}", done.failed.join("; ")),
            Err(failure) => format!("COULD NOT RUN, after {seconds} s: {failure}"),
        };
        let passed = done.as_ref().is_ok_and(|done| done.failed.is_empty());
        let line = format!("{}: {result}", head(at));
        print(&line);
        results.push((line, passed));
    }
    if results.len() > 1 {
        let lines: Vec<&str> = results.iter().map(|(line, _)| line.as_str()).collect();
        print(&lines.join("\n"));
    }
    for at in ends..count {
        print(&format!("{}: left out; `cargo xtask test` runs it", head(at)));
    }
    match results.iter().filter(|(_, passed)| !passed).count() {
        0 => Ok(()),
        failed => Err(StepFailure::Found(format!("{failed} of {count} stages failed"))),
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    /// Runs the stages, the `at`th of which comes out as `result`, the others well. Returns the stages that ran, what was
    /// told, and true if all passed.
    fn staged(
        quick: bool,
        at: usize,
        result: fn() -> Result<Done, StepFailure>,
    ) -> (Vec<Stage>, String, bool) {
        let printed = RefCell::new(String::new());
        let mut ran = Vec::new();
        let carry = |stage| {
            ran.push(stage);
            if ran.len() == at + 1 { result() } else { Ok(Done { tests: 7, ..Done::default() }) }
        };
        let print = |line: &str| *printed.borrow_mut() += &format!("{line}\n");
        let ok = run(quick, carry, print).is_ok();
        (ran, printed.into_inner(), ok)
    }

    fn fails() -> Result<Done, StepFailure> {
        Ok(Done {
            tests: 3,
            failed: vec!["core tests/load".to_owned(), "core lib".to_owned()],
            ..Done::default()
        })
    }

    fn breaks() -> Result<Done, StepFailure> {
        Err(StepFailure::Found("it does not build".to_owned()))
    }

    #[test]
    fn all_stages_run_and_each_tells_its_result_before_the_next_begins() {
        let (ran, printed, ok) = staged(false, 9, fails);
        assert!(ok && ran == STAGES, "{printed}");
        let (before, _) = printed.split_once("stage 2 of 3").unwrap();
        assert!(
            before.contains(": passed, 7 tests in 0 s\n") && !printed.contains("left out"),
            "{printed}"
        );
    }

    #[test]
    fn quick_leaves_out_the_last_stage_and_says_so() {
        for at in [9, 0] {
            let (ran, printed, ok) = staged(true, at, fails);
            assert!(ok == (at == 9) && ran == STAGES[..2], "{printed}");
            let left = |line: &str| line.contains("mutated inputs") && line.contains("left out");
            assert_eq!(printed.lines().filter(|line| left(line)).count(), 1, "{printed}");
        }
    }

    #[test]
    fn tests_that_fail_hide_no_later_stage_and_cost_the_exit_status() {
        for (result, ended) in [
            (fails as fn() -> _, "FAILED after 0 s: core tests/load; core lib"),
            (breaks, "COULD NOT RUN, after 0 s: it does not build"),
        ] {
            for at in 0..STAGES.len() {
                let (ran, printed, ok) = staged(false, at, result);
                assert!(!ok && ran == STAGES, "{printed}");
                let line = format!("stage {} of 3", at + 1);
                assert!(
                    printed.lines().any(|l| l.starts_with(&line) && l.ends_with(ended)),
                    "{printed}"
                );
                assert_eq!(
                    printed.matches("passed, 7 tests").count(),
                    2 * (STAGES.len() - 1),
                    "{printed}"
                );
            }
        }
    }
}

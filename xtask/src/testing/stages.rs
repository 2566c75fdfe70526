//! The stages of the tests: what runs when, what a failure ends, what is said of it.

use std::time::Instant;

use crate::steps::StepFailure;

/// A part of the tests that tells its own result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// What takes little time and needs nothing but Rust and a C compiler.
    WithoutServers,
    /// Every parser, fed with mutated inputs.
    MutatedInputs,
    /// What takes long, all drivers, real servers, browsers, other languages.
    Servers,
}

/// All of them, in order: what costs least and finds most comes first.
pub const STAGES: [Stage; 3] = [Stage::WithoutServers, Stage::MutatedInputs, Stage::Servers];

/// What came of a stage.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Done {
    /// Tests that passed.
    pub tests: usize,
    /// Test programs of which a test failed.
    pub failed: Vec<String>,
}

impl Stage {
    fn title(self) -> &'static str {
        match self {
            Stage::WithoutServers => "short tests without servers",
            Stage::MutatedInputs => "mutated inputs for every parser",
            Stage::Servers => "long tests, every driver, servers",
        }
    }
}

/// Carries the stages out one after the other; only the first if `quick`. `tell` gets each result when it
/// is known. A stage whose tests fail does not end the others, so that one look at CI shows all. If the first
/// one does not even build, no other would.
///
/// # Errors
/// If a stage could not be carried out or one of its tests failed.
pub fn run(
    stages: &[Stage],
    quick: bool,
    mut carry: impl FnMut(Stage) -> Result<Done, StepFailure>,
    tell: impl Fn(&str),
) -> Result<(), StepFailure> {
    let count = stages.len();
    let head = |at: usize| format!("stage {} of {count}, {}", at + 1, stages[at].title());
    let mut results: Vec<(String, bool)> = Vec::new();
    let mut left = 0..0;
    for (at, stage) in stages.iter().enumerate() {
        if quick && at > 0 {
            left = at..count;
            break;
        }
        tell(&format!("{}: begins", head(at)));
        let begun = Instant::now();
        let done = carry(*stage);
        let seconds = begun.elapsed().as_secs();
        let result = match &done {
            Ok(done) if done.failed.is_empty() => {
                format!("passed, {} tests in {seconds} s", done.tests)
            }
            Ok(done) => format!("FAILED after {seconds} s: {}", done.failed.join("; ")),
            Err(failure) => format!("COULD NOT RUN, after {seconds} s: {failure}"),
        };
        let passed = done.as_ref().is_ok_and(|done| done.failed.is_empty());
        let line = format!("{}: {result}", head(at));
        tell(&line);
        results.push((line, passed));
        if at == 0 && done.is_err() {
            left = 1..count;
            break;
        }
    }
    if results.len() > 1 {
        let lines: Vec<&str> = results.iter().map(|(line, _)| line.as_str()).collect();
        tell(&lines.join("\n"));
    }
    for at in left {
        tell(&format!("{}: left out; `cargo xtask test` runs it", head(at)));
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

    /// Runs all stages, the `at`th of which comes out as `result`, the others well. What ran, what was told,
    /// whether it succeeded.
    fn staged(
        quick: bool,
        at: usize,
        result: fn() -> Result<Done, StepFailure>,
    ) -> (Vec<Stage>, String, bool) {
        let told = RefCell::new(String::new());
        let mut ran = Vec::new();
        let carry = |stage| {
            ran.push(stage);
            if ran.len() == at + 1 { result() } else { Ok(Done { tests: 7, failed: Vec::new() }) }
        };
        let tell = |line: &str| *told.borrow_mut() += &format!("{line}\n");
        let ok = run(&STAGES, quick, carry, tell).is_ok();
        (ran, told.into_inner(), ok)
    }

    fn fails() -> Result<Done, StepFailure> {
        Ok(Done { tests: 3, failed: vec!["core tests/load".to_owned(), "core lib".to_owned()] })
    }

    fn breaks() -> Result<Done, StepFailure> {
        Err(StepFailure::Found("it does not build".to_owned()))
    }

    #[test]
    fn all_stages_run_and_each_tells_its_result_before_the_next_begins() {
        let (ran, told, ok) = staged(false, 9, fails);
        assert!(ok && ran == STAGES, "{told}");
        let passed = "stage 1 of 3, short tests without servers: passed, 7 tests in 0 s\n";
        let (before, _) = told.split_once("stage 2 of 3").unwrap();
        assert!(before.contains(passed) && !told.contains("left out"), "{told}");
    }

    #[test]
    fn quick_ends_after_the_first_and_names_what_it_left_out() {
        let (ran, told, ok) = staged(true, 9, fails);
        assert!(ok && ran == [Stage::WithoutServers], "{told}");
        for left in ["2 of 3, mutated inputs for every parser", "3 of 3, long tests, every driver"]
        {
            assert!(told.lines().any(|l| l.contains(left) && l.contains("left out")), "{told}");
        }
        let (ran, told, ok) = staged(true, 0, fails);
        assert!(!ok && ran == [Stage::WithoutServers], "{told}");
    }

    #[test]
    fn tests_that_fail_hide_no_later_stage_and_cost_the_exit_status() {
        for at in 0..STAGES.len() {
            let (ran, told, ok) = staged(false, at, fails);
            assert!(!ok && ran == STAGES, "{told}");
            let line = format!("stage {} of 3", at + 1);
            let failed = "FAILED after 0 s: core tests/load; core lib";
            assert!(told.lines().any(|l| l.starts_with(&line) && l.ends_with(failed)), "{told}");
            assert_eq!(told.matches("passed, 7 tests").count(), 2 * (STAGES.len() - 1), "{told}");
        }
    }

    #[test]
    fn what_does_not_build_at_first_ends_it_and_later_only_itself() {
        let (ran, told, ok) = staged(false, 0, breaks);
        assert!(!ok && ran == [Stage::WithoutServers], "{told}");
        assert_eq!(told.matches("left out").count(), 2, "{told}");
        let (ran, told, ok) = staged(false, 1, breaks);
        assert!(!ok && ran == STAGES, "{told}");
        assert!(told.contains("COULD NOT RUN, after 0 s: it does not build"), "{told}");
    }
}

//! Runs programs of tests side by side: most of them wait for what they have started, and one alone leaves processors
//! idle.

use std::io::{self, Read, Seek};
use std::process::Stdio;
use std::sync::{Mutex, mpsc};
use std::time::Instant;

use super::programs::Program;
use super::times::{self, TestTime};

/// The program with the most to wait for. It is run in as many pieces as programs run at a time, which begin first:
/// the others fit in behind them, so that no program waits alone at the end.
const LONGEST: &str = "kvdyno test it";

/// Numbers of programs and tests that run at a time.
#[derive(Clone, Copy, Debug)]
pub struct Concurrency {
    /// Programs that run at a time.
    pub programs: usize,
    /// Tests of each that run at a time.
    pub tests: usize,
    /// True if each test's time is asked for.
    pub times: bool,
}

/// A program of tests that ended.
#[derive(Debug)]
pub struct ProgramRun {
    /// Package, kind and name.
    pub title: String,
    /// True if all tests passed.
    pub passed: bool,
    /// Tests that passed.
    pub tests: usize,
    /// Names of the tests that failed; empty if the program ended before it named them.
    pub failed: Vec<String>,
    /// Time of each test; empty if times were not asked for.
    pub times: Vec<TestTime>,
}

/// Runs each program with the named tests. `print` gets the output of each when it ends.
pub fn run(
    parts: Vec<(&Program, Vec<String>)>,
    concurrency: Concurrency,
    print: &mut dyn FnMut(&str),
) -> Vec<ProgramRun> {
    let mut waiting = pieces(parts, concurrency.programs);
    // Pieces are taken from the end.
    waiting.reverse();
    waiting.sort_by_key(|(program, _)| program.title() == LONGEST);
    let waiting = Mutex::new(waiting);
    let (ended, results) = mpsc::channel();
    std::thread::scope(|scope| {
        for _ in 0..concurrency.programs {
            let (ended, waiting) = (ended.clone(), &waiting);
            scope.spawn(move || {
                loop {
                    let next = waiting.lock().expect("no holder panics").pop();
                    let Some((program, tests)) = next else { break };
                    let _ = ended.send(run_one(program, &tests, concurrency));
                }
            });
        }
        drop(ended);
        let each = results.iter().map(|(output, ran)| {
            print(&output);
            ran
        });
        each.collect()
    })
}

/// Cuts the longest program into `count` pieces of about as many tests; the others stay whole, for their tests share
/// servers.
fn pieces(parts: Vec<(&Program, Vec<String>)>, count: usize) -> Vec<(&Program, Vec<String>)> {
    let cut = |(program, tests): (_, Vec<String>)| {
        let is_longest = Program::title(program) == LONGEST && !tests.is_empty();
        let size = if is_longest { tests.len().div_ceil(count) } else { tests.len().max(1) };
        let mut cut: Vec<_> = tests.chunks(size).map(|piece| (program, piece.to_vec())).collect();
        if cut.is_empty() {
            cut.push((program, tests));
        }
        cut
    };
    parts.into_iter().flat_map(cut).collect()
}

/// Runs one program to its end. Returns its output under a heading such as cargo's, and its result.
fn run_one(program: &Program, tests: &[String], concurrency: Concurrency) -> (String, ProgramRun) {
    let begun = Instant::now();
    let (said, passed) = match output(program, tests, concurrency) {
        Ok(ended) => ended,
        Err(error) => (format!("cannot run {}: {error}\n", program.path.display()), false),
    };
    let took = begun.elapsed().as_secs_f64();
    let title = program.title();
    let end = if passed { "" } else { "FAILED: " };
    let text = format!("\n     Running {title}\n{said}{end}{title} took {took:.1} s");
    let (tests, failed) = (tests_passed(&said), tests_failed(&said));
    let times = times::read(&title, &said);
    (text, ProgramRun { title, passed, tests, failed, times })
}

/// Runs a program. Returns its output, errors in their place among the rest, and true if it succeeds. A file takes
/// the output: the end of a pipe comes only when all that the tests started is gone.
fn output(
    program: &Program,
    tests: &[String],
    concurrency: Concurrency,
) -> io::Result<(String, bool)> {
    let mut file = tempfile::tempfile()?;
    let mut command = program.command();
    command.args(["--include-ignored", &format!("--test-threads={}", concurrency.tests)]);
    if concurrency.times {
        command.env("RUSTC_BOOTSTRAP", "1").args(["-Zunstable-options", "--report-time"]);
    }
    command.arg("--exact").args(tests);
    command.stdin(Stdio::null()).stdout(file.try_clone()?).stderr(file.try_clone()?);
    let status = command.status()?;
    let mut said = Vec::new();
    file.rewind()?;
    file.read_to_end(&mut said)?;
    Ok((String::from_utf8_lossy(&said).into_owned(), status.success()))
}

/// Returns the sum of `test result: ok. 12 passed; …`.
fn tests_passed(said: &str) -> usize {
    let passed = |line: &str| {
        let (before, _) = line.strip_prefix("test result: ")?.split_once(" passed")?;
        before.rsplit(' ').next()?.parse::<usize>().ok()
    };
    said.lines().filter_map(passed).sum()
}

/// Returns the names in the list of failures that stands before `test result: FAILED`.
fn tests_failed(said: &str) -> Vec<String> {
    let Some((before, _)) = said.rsplit_once("\ntest result: FAILED") else { return Vec::new() };
    let Some((_, list)) = before.rsplit_once("\nfailures:\n") else { return Vec::new() };
    list.lines().filter_map(|line| line.strip_prefix("    ")).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;
    use std::path::Path;

    use super::*;

    /// Makes a script in the place of a program of tests.
    fn program(folder: &Path, name: &str, script: &str) -> Program {
        let path = folder.join(name);
        std::fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).unwrap();
        Program { package: "p".to_owned(), name: name.to_owned(), folder: folder.to_owned(), path }
    }

    #[test]
    fn programs_run_side_by_side_the_longest_first_and_what_fails_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str, script: &str| program(folder.path(), name, script);
        // Each of the two waits for the other: one after the other they would fail.
        let wait = "for i in 1 2 3 4 5 6 7 8 9; do test -e there && break; sleep 1; done";
        let mut programs = [
            at("test a", &format!("{wait}; rm there; echo after >&2; exit 3")),
            at("test b", "echo \"test $*\"; echo 'test result: ok. 2 passed; 0 failed'"),
            at("test it", "touch there; sleep 9 & while test -e there; do sleep 0.1; done"),
        ];
        "kvdyno".clone_into(&mut programs[2].package);
        let mut parts: Vec<_> = programs.iter().map(|program| (program, Vec::new())).collect();
        parts[1].1 = vec!["one".to_owned(), "two".to_owned()];
        let (mut printed, begun) = (String::new(), Instant::now());
        let concurrency = Concurrency { programs: 2, tests: 3, times: false };
        let ran = run(parts, concurrency, &mut |text| printed += text);
        assert!(begun.elapsed().as_secs() < 8, "it waited for what a test had left behind");
        let mut passed: Vec<_> = ran.iter().map(|r| (&r.title[..], r.passed, r.tests)).collect();
        passed.sort_unstable();
        assert_eq!(
            passed,
            [("kvdyno test it", true, 0), ("p test a", false, 0), ("p test b", true, 2)]
        );
        assert!(printed.contains("Running p test a\nafter\nFAILED: p test a took "), "{printed}");
        assert!(
            printed.contains(
                "Running p test b\ntest --include-ignored --test-threads=3 --exact one two\n"
            ),
            "{printed}"
        );
    }

    #[test]
    fn the_longest_program_is_run_in_pieces_and_no_test_is_left_out_or_run_twice() {
        let folder = tempfile::tempdir().unwrap();
        let mut longest = program(folder.path(), "test it", "");
        "kvdyno".clone_into(&mut longest.package);
        let other = program(folder.path(), "test a", "");
        let names = |count: u32| (0..count).map(|n| format!("t{n}")).collect::<Vec<_>>();
        let cut = pieces(vec![(&longest, names(7)), (&other, names(3))], 2);
        let sizes: Vec<_> = cut.iter().map(|(of, tests)| (of.title(), tests.len())).collect();
        let sizes: Vec<_> = sizes.iter().map(|(title, tests)| (&title[..], *tests)).collect();
        assert_eq!(sizes, [("kvdyno test it", 4), ("kvdyno test it", 3), ("p test a", 3)]);
        assert_eq!([&cut[0].1[..], &cut[1].1[..]].concat(), names(7));
    }

    #[test]
    fn failures_are_those_that_the_program_lists() {
        let said = "test a::b ... FAILED\n\nfailures:\n\n---- a::b stdout ----\n    no::name\n\n\nfailures:\n    a::b\n    \
                    c\n\ntest result: FAILED. 1 passed; 2 failed\n";
        assert_eq!(tests_failed(said), ["a::b", "c"]);
        assert!(tests_failed("failures:\n    a\n").is_empty(), "it did not come to its end");
    }

    #[test]
    fn a_program_that_cannot_be_run_is_a_failure() {
        let folder = tempfile::tempdir().unwrap();
        let mut none = program(folder.path(), "none", "");
        none.path = folder.path().join("missing");
        let concurrency = Concurrency { programs: 2, tests: 3, times: false };
        let ran = run(vec![(&none, Vec::new())], concurrency, &mut |text| {
            assert!(text.contains("cannot run ") && text.contains("missing"), "{text}");
        });
        assert!(ran.len() == 1 && !ran[0].passed);
    }
}

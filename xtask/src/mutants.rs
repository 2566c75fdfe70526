//! `cargo xtask mutants`: changes the code that judges, in one place after the other, and prints the changes that no
//! test has noticed: each is a hole of the tests, or a change that changes nothing. Not in CI: all of it takes hours.

use std::fmt;
use std::io;
use std::path::Path;
use std::process::Command;

use clap::Args;
use kvdyno_testbed::install::{self, Software, SoftwareSource};

use crate::steps::{self, StepFailure, root};

static CARGO_MUTANTS: Software = Software {
    name: "cargo-mutants",
    version: "27.1.0",
    source: SoftwareSource::CratesIo { package: "cargo-mutants" },
};

/// Files that are changed if no argument names others.
const FILES: [&str; 2] = ["crates/core/src/verify/**", "crates/core/src/verdict/**"];

/// Exit codes of cargo-mutants when it has done its work: all changes noticed, some missed, some that ended by time.
const DONE: [i32; 3] = [0, 2, 3];

/// Options of `cargo xtask mutants`.
#[derive(Debug, Args)]
pub struct Options {
    /// Arguments of cargo-mutants, such as `--shard 1/20` or `--file crates/core/src/verify/overlap.rs`; tests are
    /// core's unit tests unless `--cargo-test-arg` names others
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "ARGUMENTS")]
    arguments: Vec<String>,
}

/// Installs cargo-mutants where it is missing, runs it, and prints the changes that no test has noticed.
///
/// # Errors
/// If it cannot be installed or run, or if tests fail without any change. A change that no test has noticed is no error.
pub fn mutants(options: &Options) -> Result<(), StepFailure> {
    install::install(&[&CARGO_MUTANTS], &|line| println!("\n$ {line} into the cache folder"))?;
    let program = CARGO_MUTANTS.find().ok_or_else(|| {
        StepFailure::Found("cargo-mutants is not where it was installed".to_owned())
    })?;
    let folder = root().join("target/mutants");
    std::fs::create_dir_all(&folder).map_err(StepFailure::file(&folder))?;
    let mut command = Command::new(program);
    command.current_dir(root()).arg("mutants").args(arguments(&options.arguments));
    command.arg("--output").arg(&folder);
    println!("\n$ {}", steps::shown(&command));
    let status = command.status().map_err(|source| steps::start_failure(&command, source))?;
    if !status.code().is_some_and(|code| DONE.contains(&code)) {
        return Err(steps::failure(&command, &status.to_string()));
    }
    // A list alone leaves what the last run has written.
    if !has(&options.arguments, &["--list", "--list-files"]) {
        println!("\n{}", Outcome::read(&folder.join("mutants.out"))?);
    }
    Ok(())
}

/// Returns the arguments of cargo-mutants: `given`, and what they leave open.
fn arguments(given: &[String]) -> Vec<String> {
    let mut all = vec!["--package=kvdyno-core".to_owned(), "--no-times".to_owned()];
    if !has(given, &["--file", "-f"]) {
        all.extend(FILES.map(|file| format!("--file={file}")));
    }
    if !has(given, &["--cargo-test-arg"]) {
        all.push("--cargo-test-arg=--lib".to_owned());
    }
    all.extend(given.iter().cloned());
    all
}

/// Returns true if one of `arguments` is an option of one of these names.
fn has(arguments: &[String], names: &[&str]) -> bool {
    let name = |argument: &String| argument.split('=').next().map(str::to_owned);
    arguments.iter().filter_map(name).any(|name| names.contains(&&*name))
}

/// Changes by their outcome, a line each.
#[derive(Debug, Default, PartialEq, Eq)]
struct Outcome {
    noticed: Vec<String>,
    missed: Vec<String>,
    timed_out: Vec<String>,
    not_compiled: Vec<String>,
}

impl Outcome {
    /// Reads the lists that cargo-mutants has written into `folder`.
    fn read(folder: &Path) -> Result<Outcome, StepFailure> {
        let lines = |name: &str| {
            let path = folder.join(name);
            match std::fs::read_to_string(&path) {
                Ok(text) => Ok(text.lines().map(str::to_owned).collect()),
                // `--list` writes none.
                Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
                Err(error) => Err(StepFailure::file(path)(error)),
            }
        };
        Ok(Outcome {
            noticed: lines("caught.txt")?,
            missed: lines("missed.txt")?,
            timed_out: lines("timeout.txt")?,
            not_compiled: lines("unviable.txt")?,
        })
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Outcome { noticed, missed, timed_out, not_compiled } = self;
        for line in missed {
            writeln!(f, "survives: {line}")?;
        }
        let all = [noticed, missed, timed_out, not_compiled].map(Vec::len);
        write!(
            f,
            "{} changes: {} noticed, {} survive, {} ended by time, {} do not compile",
            all.iter().sum::<usize>(),
            all[0],
            all[1],
            all[2],
            all[3]
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_given_replaces_what_is_usual() {
        let of = |given: &[&str]| {
            arguments(&given.iter().map(|argument| (*argument).to_owned()).collect::<Vec<_>>())
        };
        let usual = of(&["--shard", "1/20"]);
        assert!(usual.contains(&"--file=crates/core/src/verdict/**".to_owned()), "{usual:?}");
        assert!(usual.contains(&"--cargo-test-arg=--lib".to_owned()), "{usual:?}");
        assert_eq!(usual[usual.len() - 2..], ["--shard", "1/20"]);
        let files = |all: Vec<String>| all.iter().filter(|a| a.starts_with("--file")).count();
        assert_eq!(files(of(&["--file", "a.rs"])), 1);
        assert_eq!(files(of(&["-f", "a.rs"])), 0);
        let tests = of(&["--cargo-test-arg=--test=ledger_reference"]);
        assert!(!tests.contains(&"--cargo-test-arg=--lib".to_owned()), "{tests:?}");
    }

    #[test]
    fn what_survives_is_printed_and_all_are_counted() {
        let folder = tempfile::tempdir().unwrap();
        let write =
            |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
        write("caught.txt", "a\nb\nc\n");
        write("missed.txt", "d\n");
        write("unviable.txt", "e\nf\n");
        let outcome = Outcome::read(folder.path()).unwrap();
        let text = outcome.to_string();
        assert!(text.starts_with("survives: d\n6 changes: 3 noticed, 1 survive,"), "{text}");
        assert_eq!(Outcome::read(&folder.path().join("none")).unwrap(), Outcome::default());
    }
}

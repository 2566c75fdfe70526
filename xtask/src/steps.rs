//! One step of a chore: a command that is shown, run, and must succeed.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Reason why a chore ended early.
#[derive(Debug, thiserror::Error)]
pub enum StepFailure {
    /// A command ended with an error; its own words are above.
    #[error("`{command}` failed ({status})")]
    Command {
        /// Command line that was run.
        command: String,
        /// Exit status in words.
        status: String,
    },
    /// A command could not be started.
    #[error("cannot run `{command}`: {source}")]
    Start {
        /// Command line that was to be run.
        command: String,
        /// Error of the system.
        source: io::Error,
    },
    /// A file could not be read or written.
    #[error("{}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Error of the system.
        source: io::Error,
    },
    /// A server could not be started.
    #[error(transparent)]
    Server(#[from] kvdyno_testbed::TestbedError),
    /// A finding is not as it must be.
    #[error("{0}")]
    Found(String),
}

impl StepFailure {
    /// Makes a function for `map_err` on anything done to a file.
    pub fn file(path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> StepFailure {
        let path = path.into();
        move |source| StepFailure::File { path, source }
    }
}

/// Returns the workspace's folder.
///
/// # Panics
/// Never: xtask's own manifest lies one folder below it.
#[must_use]
pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask lies in the workspace")
}

/// The folder that cargo builds in.
#[must_use]
pub fn target_folder() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR")
        .map_or_else(|| root().join("target"), |named| root().join(named))
}

/// Makes the cargo that runs this, or else the one on the path; in the workspace's folder, with the environment of
/// [`by_developer`].
#[must_use]
pub fn cargo() -> Command {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    by_developer(&mut cargo);
    cargo.current_dir(root());
    cargo
}

/// Gives a command the environment that a developer's own has, whatever cargo it runs. With the variables that `cargo
/// run` adds for xtask, build scripts that look at these (ring's among them) would run again at each chore, and all
/// that depends on them would be built again.
pub fn by_developer(command: &mut Command) {
    let variables = std::env::vars_os().map(|(name, _)| name);
    let of_package = |name: &OsString| {
        let name = name.to_string_lossy();
        name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_")
    };
    variables.filter(of_package).for_each(|name| {
        command.env_remove(name);
    });
}

/// Arguments that build by the profile with every optimisation, which benchmarks measure and packages hold.
pub const BY_DIST: [&str; 2] = ["--profile", "dist"];

/// Returns the path of the command that [`BY_DIST`] builds.
#[must_use]
pub fn dist_binary() -> PathBuf {
    root().join("target/dist/kvdyno")
}

/// Returns the command as a user would type it.
#[must_use]
pub fn shown(command: &Command) -> String {
    let program = Path::new(command.get_program());
    let name = program.file_name().unwrap_or(program.as_os_str());
    let words = std::iter::once(name).chain(command.get_args());
    words.map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
}

/// Shows the command and runs it with this process's output.
///
/// # Errors
/// If it cannot be started or does not succeed.
pub fn run(command: &mut Command) -> Result<(), StepFailure> {
    println!("\n$ {}", shown(command));
    let status = command.status().map_err(|source| start_failure(command, source))?;
    if status.success() { Ok(()) } else { Err(failure(command, &status.to_string())) }
}

/// Runs the command and returns what it prints.
///
/// # Errors
/// If it cannot be started or does not succeed; its standard error goes to this process's.
pub fn output(command: &mut Command) -> Result<String, StepFailure> {
    let output = command
        .stderr(Stdio::inherit())
        .output()
        .map_err(|source| start_failure(command, source))?;
    if output.status.success() {
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    } else {
        Err(failure(command, &output.status.to_string()))
    }
}

/// Runs a measurement. An invalid one (exit code 2) is no failure, for that tells of this machine, and its figures
/// are there all the same.
///
/// # Errors
/// If it cannot be started or fails otherwise; its standard error goes to this process's.
pub fn measure(command: &mut Command) -> Result<(), StepFailure> {
    let status =
        command.stdout(Stdio::null()).status().map_err(|source| start_failure(command, source))?;
    match status.code() {
        Some(0 | 2) => Ok(()),
        _ => Err(failure(command, &status.to_string())),
    }
}

/// Runs the command silently. Returns true if it could be run and succeeded.
#[must_use]
pub fn succeeds(command: &mut Command) -> bool {
    let quiet = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    quiet.status().is_ok_and(|status| status.success())
}

/// Makes a failure of this command.
#[must_use]
pub fn failure(command: &Command, status: &str) -> StepFailure {
    StepFailure::Command { command: shown(command), status: status.to_owned() }
}

/// Makes the failure of a command that could not be started.
#[must_use]
pub fn start_failure(command: &Command, source: io::Error) -> StepFailure {
    StepFailure::Start { command: shown(command), source }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_that_fails_says_which() {
        let error = run(Command::new("sh").args(["-c", "exit 3"])).unwrap_err();
        assert_eq!(error.to_string(), "`sh -c exit 3` failed (exit status: 3)");
        let error = run(&mut Command::new("no-such-program")).unwrap_err();
        assert!(error.to_string().starts_with("cannot run `no-such-program`: "), "{error}");
        assert_eq!(output(Command::new("echo").arg("hello")).unwrap(), "hello\n");
        assert!(!succeeds(&mut Command::new("false")));
    }

    /// Cargo runs the tests of xtask, and sets the variables of their package, as it does for `cargo xtask`.
    #[test]
    fn cargo_is_not_told_of_the_package_that_runs_it() {
        assert!(std::env::var_os("CARGO_MANIFEST_DIR").is_some());
        let taken: Vec<_> = cargo()
            .get_envs()
            .filter(|(_, value)| value.is_none())
            .map(|(name, _)| name.to_owned())
            .collect();
        assert!(taken.contains(&"CARGO_MANIFEST_DIR".into()), "{taken:?}");
    }

    #[test]
    fn the_root_holds_the_workspace() {
        assert!(root().join("Cargo.lock").exists());
    }
}

//! The portable binary: every store, linked against an old glibc by zig, which brings the symbols of each version of it.
//! Both tools come from PyPI into an environment of their own.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::{Architecture, OLDEST_GLIBC};
use crate::steps::{self, StepFailure};

/// Features of the portable binary: every store, and Parquet.
pub const FEATURES: &str = "full";

/// Versions of the tools.
const TOOLS: [&str; 2] = ["cargo-zigbuild==0.24.1", "ziglang==0.17.1"];

/// Builds the binary by the profile `dist`, stripped, and returns where it is.
///
/// # Errors
/// If a tool cannot be had, or the build fails.
pub fn build(architecture: Architecture) -> Result<PathBuf, StepFailure> {
    let tools = tools()?;
    let target = architecture.target();
    // No more than is asked for: a toolchain that was not installed by rustup has its targets otherwise.
    let installed = steps::output(Command::new("rustup").args(["target", "list", "--installed"]));
    if installed.is_ok_and(|installed| !installed.lines().any(|line| line == target)) {
        steps::run(Command::new("rustup").args(["target", "add", &target]))?;
    }
    let (major, minor) = OLDEST_GLIBC;
    let mut cargo = steps::cargo();
    cargo.args(["zigbuild", "--locked", "--package", "kvdyno", "--features", FEATURES]);
    cargo.args(steps::BY_DIST).arg(format!("--target={target}.{major}.{minor}"));
    cargo.env("PATH", before_path(&tools)?);
    // Nobody debugs it where it is installed: a developer's build of the same profile has the lines.
    cargo.env("CARGO_PROFILE_DIST_DEBUG", "false").env("CARGO_PROFILE_DIST_STRIP", "symbols");
    steps::run(&mut cargo)?;
    Ok(path(architecture))
}

fn path(architecture: Architecture) -> PathBuf {
    steps::target_folder().join(architecture.target()).join("dist/kvdyno")
}

/// The portable binary that runs here: it writes manual pages and completions for one that does not.
///
/// # Errors
/// If it was not built.
pub fn built_for_this_machine() -> Result<PathBuf, StepFailure> {
    let built = Architecture::of_this_machine().map(path).filter(|path| path.exists());
    built.ok_or_else(|| {
        let advice = "run `cargo xtask dist` without --architecture first: it writes manual pages";
        StepFailure::Found(advice.to_owned())
    })
}

/// Installs the tools once; the folder of their commands.
fn tools() -> Result<PathBuf, StepFailure> {
    let environment = steps::target_folder().join("tools/zig");
    let ready = environment.join(TOOLS.join("+"));
    if !ready.exists() {
        steps::run(Command::new("python3").args(["-m", "venv", "--clear"]).arg(&environment))?;
        let pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check"];
        steps::run(Command::new(environment.join("bin/python")).args(pip).args(TOOLS))?;
        std::fs::write(&ready, "").map_err(StepFailure::file(&ready))?;
    }
    Ok(environment.join("bin"))
}

fn before_path(folder: &Path) -> Result<std::ffi::OsString, StepFailure> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let all = std::iter::once(folder.to_path_buf()).chain(std::env::split_paths(&path));
    std::env::join_paths(all).map_err(|error| StepFailure::Found(error.to_string()))
}

//! `cargo xtask deny`: licences, sources, advisories and duplicates of all dependencies, by cargo-deny and `deny.toml`. It is no
//! part of lint: the tool takes minutes to build, and advisories change while this project does not.

use crate::steps::{self, StepFailure};

/// The tool, from crates.io.
const CARGO_DENY: (&str, &str) = ("cargo-deny", "0.20.2");

/// Installs the tool once, and runs it.
///
/// # Errors
/// If it finds something, or cannot be had.
pub fn deny() -> Result<(), StepFailure> {
    let (name, version) = CARGO_DENY;
    let folder = steps::target_folder().join("tools").join(format!("{name}-{version}"));
    let program = folder.join("bin").join(name);
    if !program.exists() {
        let mut install = steps::cargo();
        install.args(["install", "--locked", "--version", version, "--root"]).arg(&folder);
        steps::run(install.arg(name))?;
    }
    let mut check = std::process::Command::new(&program);
    check.args(["--workspace", "check", "--hide-inclusion-graph"]).current_dir(steps::root());
    steps::run(&mut check)
}

//! Programs of crates.io: cargo fetches the source of a pinned version, whose checksums it verifies,
//! and builds it here with the versions that its authors locked.

use std::path::Path;
use std::process::Command;

use super::Software;
use crate::error::TestbedError;
use crate::process;

/// Tool that fetches and builds.
pub static CARGO: Software = Software::of_debian("cargo", &["cargo"]);

/// Builds the programs of `package` into `folder/bin`.
///
/// # Errors
/// Cargo's error.
pub fn fetch(package: &str, version: &str, folder: &Path) -> Result<(), TestbedError> {
    let cargo = process::look_up("cargo").ok_or_else(|| CARGO.missing(package))?;
    let mut command = Command::new(cargo);
    command.args(["install", "--quiet", "--locked", "--no-track", "--version", version, "--root"]);
    // Outside of any workspace, so that no settings of one decide.
    process::run_command(command.arg(folder).arg(package).current_dir(folder)).map(drop)
}

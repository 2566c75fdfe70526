//! Commands of Go modules: the source comes from the module proxy, whose checksums Go verifies, and
//! is built here.

use std::path::Path;
use std::process::Command;

use super::{Prepare, Software};
use crate::error::TestbedError;
use crate::process;

/// What fetches and builds.
pub static GO: Software = Software::of_debian("go", &["golang-go"]);

/// Which command of which module.
pub struct Module<'a> {
    /// Path of the module.
    pub path: &'a str,
    /// Its version: `v1.24.0`.
    pub version: &'a str,
    /// Package of the command, from the module's folder: `./cmd/ferretdb`.
    pub package: &'a str,
    /// Its checksum: `h1:…`.
    pub sum: &'a str,
}

/// Builds the command as `folder/program`.
///
/// # Errors
/// What Go or the system says.
pub fn fetch(
    module: &Module<'_>,
    prepare: Option<Prepare>,
    folder: &Path,
    program: &str,
) -> Result<(), TestbedError> {
    let go = process::look_up("go").ok_or_else(|| GO.missing(program))?;
    let failed = |error| TestbedError::System { what: module.path.into(), action: "unpack", error };
    let pinned = format!("{}@{}", module.path, module.version);
    // Outside of any module, so that nothing but the pinned version decides.
    let mut command = Command::new(&go);
    let told = process::run_command(
        command.args(["mod", "download", "-json", &pinned]).current_dir(folder),
    )?;
    let told: serde_json::Value = serde_json::from_str(&told).unwrap_or_default();
    let refused =
        |problem: String| TestbedError::Refused { node: "go mod download".to_owned(), problem };
    let sum = told["Sum"].as_str().unwrap_or("none");
    if sum != module.sum {
        return Err(refused(format!(
            "{pinned} has the checksum {sum}, and {} is wanted",
            module.sum
        )));
    }
    let dir = told["Dir"].as_str().ok_or_else(|| refused("it names no folder".to_owned()))?;
    // The module cache is read-only: build in a copy.
    let source = folder.with_extension("source");
    let copy = look_up_cp()?;
    process::run(&copy, ["-r", "--no-preserve=mode", dir, &source.display().to_string()])?;
    prepare.map_or(Ok(()), |prepare| prepare(&source)).map_err(failed)?;
    let out = folder.join(program).display().to_string();
    let mut command = Command::new(&go);
    command.args(["build", "-o", &out, module.package]).current_dir(&source);
    process::run_command(&mut command).map(drop)
}

fn look_up_cp() -> Result<std::path::PathBuf, TestbedError> {
    process::look_up("cp").ok_or_else(|| TestbedError::NotInstalled {
        what: "cp".to_owned(),
        install: "apt-get install coreutils".to_owned(),
    })
}

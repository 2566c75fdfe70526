//! Commands of Go modules: the source comes from the module proxy, whose checksums Go verifies, and
//! is built here.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::{Prepare, Software};
use crate::error::TestbedError;
use crate::process;

/// Tool that fetches and builds.
pub static GO: Software = Software::of_debian("go", &["golang-go"]);

/// Command of a module.
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

/// The first version that fetches a newer Go by itself where a module asks for one.
const SELF_RENEWING: (u32, u32) = (1, 21);

/// Toolchain that an older one fetches instead (Debian 12 has 1.19): Go's own build, for this kind of machine only.
const NEWER: (&str, &str) = (
    "golang.org/toolchain@v0.0.1-go1.22.12.linux-amd64",
    "h1:Hdh4VJAlDWzMnhKpqDwqJJr+sE7NgsJ86dyR4wrv2oY=",
);

/// Builds the command as `folder/program`.
///
/// # Errors
/// The error of Go or of the system.
pub fn fetch(
    module: &Module<'_>,
    prepare: Option<Prepare>,
    folder: &Path,
    program: &str,
) -> Result<(), TestbedError> {
    let go = process::look_up("go").ok_or_else(|| GO.missing(program))?;
    let failed = |error| TestbedError::System { what: module.path.into(), action: "unpack", error };
    let go = new_enough(go, folder)?;
    let dir = download(&go, &format!("{}@{}", module.path, module.version), module.sum, folder)?;
    // The module cache is read-only: build in a copy.
    let source = folder.with_extension("source");
    let copy = look_up_cp()?;
    process::run(&copy, ["-r", "--no-preserve=mode", &dir, &source.display().to_string()])?;
    prepare.map_or(Ok(()), |prepare| prepare(&source)).map_err(failed)?;
    let out = folder.join(program).display().to_string();
    let mut command = Command::new(&go);
    command.args(["build", "-o", &out, module.package]).current_dir(&source);
    process::run_command(&mut command).map(drop)
}

/// Fetches a module of this checksum into Go's cache, and says where it lies there.
fn download(go: &Path, pinned: &str, wanted: &str, folder: &Path) -> Result<String, TestbedError> {
    // Outside of any module, so that nothing but the pinned version decides.
    let mut command = Command::new(go);
    let told = process::run_command(
        command.args(["mod", "download", "-json", pinned]).current_dir(folder),
    )?;
    let told: serde_json::Value = serde_json::from_str(&told).unwrap_or_default();
    let sum = told["Sum"].as_str().unwrap_or("none");
    if sum != wanted {
        return Err(refused(format!("{pinned} has the checksum {sum}, and {wanted} is wanted")));
    }
    let dir = told["Dir"].as_str().ok_or_else(|| refused("it names no folder".to_owned()))?;
    Ok(dir.to_owned())
}

/// Returns this Go, or the newer one that it fetches, if modules may ask for more than it can read.
fn new_enough(go: PathBuf, folder: &Path) -> Result<PathBuf, TestbedError> {
    let told = process::run(&go, ["env", "GOVERSION"])?;
    if version(&told).is_none_or(|version| version >= SELF_RENEWING) {
        return Ok(go);
    }
    if !cfg!(target_arch = "x86_64") {
        let told = told.trim();
        return Err(refused(format!(
            "{told} is too old for this module; install Go 1.22 or newer"
        )));
    }
    let newer = PathBuf::from(download(&go, NEWER.0, NEWER.1, folder)?);
    make_executable(&newer).map_err(TestbedError::system("make executable", "Go"))?;
    Ok(newer.join("bin/go"))
}

/// Reads `go1.19.8` as numbers; `None` of a version that has none, as one between two releases.
fn version(told: &str) -> Option<(u32, u32)> {
    let mut numbers = told.trim().strip_prefix("go")?.split('.');
    let major = numbers.next()?.parse().ok()?;
    let minor = numbers.next()?;
    let digits = minor.find(|c: char| !c.is_ascii_digit()).unwrap_or(minor.len());
    Some((major, minor[..digits].parse().ok()?))
}

/// Makes the tools executable. Modules have no executable files: Go does the same with what it fetches for itself
/// (`cmd/go/internal/toolchain`).
fn make_executable(toolchain: &Path) -> io::Result<()> {
    for folder in ["bin", "pkg/tool/linux_amd64"] {
        for file in fs::read_dir(toolchain.join(folder))? {
            fs::set_permissions(file?.path(), fs::Permissions::from_mode(0o755))?;
        }
    }
    Ok(())
}

fn refused(problem: String) -> TestbedError {
    TestbedError::Refused { node: "go mod download".to_owned(), problem }
}

fn look_up_cp() -> Result<PathBuf, TestbedError> {
    process::look_up("cp").ok_or_else(|| TestbedError::NotInstalled {
        what: "cp".to_owned(),
        install: "apt-get install coreutils".to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_older_go_is_told_from_one_that_renews_itself() {
        for (told, known) in [
            ("go1.19.8\n", (1, 19)),
            ("go1.21rc2", (1, 21)),
            ("go1.26.8", (1, 26)),
            ("go2.0", (2, 0)),
        ] {
            assert_eq!(version(told), Some(known), "{told}");
        }
        assert_eq!(version("devel +5b9613e"), None);
        let renews = |told: &str| version(told).is_none_or(|version| version >= SELF_RENEWING);
        assert_eq!(
            ["go1.19.8", "go1.20", "go1.21.0", "devel"].map(renews),
            [false, false, true, true]
        );
    }
}

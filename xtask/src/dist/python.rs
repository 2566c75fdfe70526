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

#[cfg(test)]
mod tests {
    use super::super::VERSION;
    use crate::steps::root;

    fn read(path: &str) -> String {
        std::fs::read_to_string(root().join(path)).unwrap()
    }

    /// One version, wherever it stands.
    #[test]
    fn package_and_image_have_the_version_of_the_crates() {
        let project: toml::Value = toml::from_str(&read("python/pyproject.toml")).unwrap();
        assert_eq!(project["project"]["version"].as_str(), Some(VERSION));
        let job = read("fleet/kubernetes/job.yaml");
        assert!(job.contains(&format!("/kvdyno:{VERSION}\n")));
        let manifest: toml::Value = toml::from_str(&read("Cargo.toml")).unwrap();
        for name in ["kvdyno-core", "kvdyno-stores"] {
            let named = &manifest["workspace"]["dependencies"][name]["version"];
            assert_eq!(named.as_str(), Some(VERSION), "{name}");
        }
        let page = read("docs/INSTALL.md");
        assert!(page.contains(&format!("kvdyno_{VERSION}_amd64.deb")));
    }
}

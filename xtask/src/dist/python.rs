//! The Python wheel: the binary as a script, and the package of `python/`. A wheel is a zip file, and Python writes it.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::contents::PackageContents;
use super::{Binary, OLDEST_GLIBC};
use crate::steps::{self, StepFailure};

/// Writes a wheel.
const WRITER: &str = include_str!("wheel.py");

/// Packs binary and package.
///
/// # Errors
/// If Python fails.
pub fn wheel(
    contents: &PackageContents,
    binary: &Binary,
    folder: &Path,
) -> Result<PathBuf, StepFailure> {
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
    use super::*;
    use crate::steps::root;

    /// Installed by pip, its command is the binary, and its package can be imported.
    #[test]
    fn a_wheel_installs_binary_and_package() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        std::fs::write(path("kvdyno"), "#!/bin/sh\necho the binary: $*\n").unwrap();
        std::fs::write(path("LICENSE"), "a licence").unwrap();
        std::fs::write(path("bill.json"), "{}").unwrap();
        let mut python = Command::new("python3");
        python.args(["-c", WRITER]).arg(root().join("python")).arg(path("kvdyno"));
        python.arg(format!("manylinux_2_17_{}", std::env::consts::ARCH)).arg(folder.path());
        let written = steps::output(python.arg(path("LICENSE")).arg(path("bill.json"))).unwrap();
        let mut pip = Command::new("python3");
        pip.args(["-m", "pip", "install", "--quiet", "--no-index", "--no-deps", "--target"]);
        steps::run(pip.arg(path("site")).arg(written.trim())).unwrap();
        let said = steps::output(Command::new(path("site/bin/kvdyno")).arg("run")).unwrap();
        assert_eq!(said, "the binary: run\n");
        let mut import = Command::new("python3");
        import.args(["-c", "import kvdyno; print(kvdyno.Histogram().count)"]);
        let count = steps::output(import.env("PYTHONPATH", path("site"))).unwrap();
        assert_eq!(count, "0\n");
        let information = path(&format!("site/kvdyno-{VERSION}.dist-info"));
        assert!(information.join("licenses/LICENSE").exists());
        let metadata = std::fs::read_to_string(information.join("METADATA")).unwrap();
        assert!(metadata.contains("Requires-Dist: pandas>=1.5 ; extra == 'pandas'"), "{metadata}");
    }

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

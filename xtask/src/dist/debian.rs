//! The Debian package.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::contents::PackageContents;
use super::{Binary, VERSION, write};
use crate::steps::{self, StepFailure};

/// Packs the contents by `dpkg-deb`.
///
/// # Errors
/// If it fails.
pub fn package(
    contents: &PackageContents,
    binary: &Binary,
    folder: &Path,
) -> Result<PathBuf, StepFailure> {
    let root = folder.join("debian");
    contents.install_into(&root, "copyright")?;
    write(&root.join("DEBIAN/control"), &control(binary))?;
    let path = folder.join(format!("kvdyno_{VERSION}_{}.deb", binary.architecture.debian()));
    let mut dpkg = Command::new("dpkg-deb");
    dpkg.args(["--root-owner-group", "-Zxz", "--build"]).arg(&root).arg(&path);
    // The time of files in it: that of no machine.
    steps::run(dpkg.env("SOURCE_DATE_EPOCH", "0"))?;
    Ok(path)
}

fn control(binary: &Binary) -> String {
    let (major, minor) = binary.code.newest_glibc.unwrap_or(super::OLDEST_GLIBC);
    let needs_gcc = binary.code.libraries.iter().any(|library| library == "libgcc_s.so.1");
    let gcc = if needs_gcc { ", libgcc-s1 | libgcc1" } else { "" };
    format!(
        "Package: kvdyno
Version: {VERSION}
Architecture: {}
Maintainer: The maintainers of kvdyno <maintainers@kvdyno.invalid>
Section: utils
Priority: optional
Depends: libc6 (>= {major}.{minor}){gcc}
Suggests: librocksdb7.8 | librocksdb-dev
Description: benchmark of key-value stores that verifies every read
 kvdyno measures key-value stores as a dynamometer measures engines: how fast
 and how predictable they are, what happens when a node dies, and what it
 costs. Every read is checked.
",
        binary.architecture.debian()
    )
}

#[cfg(test)]
mod tests {
    use super::super::machine_code::MachineCode;
    use super::super::{Architecture, Binary};
    use super::*;

    #[test]
    fn the_package_depends_on_what_the_binary_needs() {
        let needing = |libraries: &[&str], newest_glibc| {
            let libraries = libraries.iter().map(|name| (*name).to_owned()).collect();
            control(&Binary {
                path: PathBuf::new(),
                architecture: Architecture::Aarch64,
                code: MachineCode { libraries, newest_glibc },
            })
        };
        let text = needing(&["libc.so.6"], Some((2, 17)));
        assert!(text.contains("\nDepends: libc6 (>= 2.17)\n"), "{text}");
        assert!(text.contains("\nArchitecture: arm64\n"), "{text}");
        let text = needing(&["libc.so.6", "libgcc_s.so.1"], Some((2, 36)));
        assert!(text.contains("\nDepends: libc6 (>= 2.36), libgcc-s1 | libgcc1\n"), "{text}");
    }
}

//! The tarball, which `cargo binstall` finds by the metadata of `crates/kvdyno/Cargo.toml`, and the sums of all packages.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::contents::PackageContents;
use super::{Binary, VERSION, write};
use crate::steps::{self, StepFailure};

/// Packs the contents.
///
/// # Errors
/// If `tar` fails.
pub fn tarball(
    contents: &PackageContents,
    binary: &Binary,
    folder: &Path,
) -> Result<PathBuf, StepFailure> {
    let name = name(&binary.architecture.target());
    let path = folder.join(format!("{name}.tar.gz"));
    let mut tar = Command::new("tar");
    tar.arg("--create").arg("--file").arg(&path).arg("--directory").arg(contents.folder());
    // The same contents make the same archive, whoever packs them when.
    tar.args(["--sort=name", "--mtime=@0", "--owner=0", "--group=0", "--numeric-owner"]);
    tar.args(["--use-compress-program=gzip --best --no-name", "--mode=go=rX,u+rw"]);
    tar.arg(format!("--transform=s,^\\.,{name},")).arg(".");
    steps::run(&mut tar)?;
    Ok(path)
}

/// Name of the tarball, and of the folder in it.
fn name(target: &str) -> String {
    format!("kvdyno-{VERSION}-{target}")
}

/// Writes `SHA256SUMS`, which `sha256sum --check` reads.
///
/// # Errors
/// If a file cannot be read or written.
pub fn sums(folder: &Path, files: &[PathBuf]) -> Result<(), StepFailure> {
    let names = files.iter().filter_map(|file| file.file_name());
    let listed =
        steps::output(Command::new("sha256sum").arg("--").args(names).current_dir(folder))?;
    write(&folder.join("SHA256SUMS"), &listed)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Compares what `cargo binstall` makes of its metadata with what is packed here.
    #[test]
    fn the_metadata_of_binstall_leads_to_the_tarball() {
        let path = steps::root().join("crates/kvdyno/Cargo.toml");
        let manifest: toml::Value =
            toml::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
        let binstall = &manifest["package"]["metadata"]["binstall"];
        let filled = |key: &str| {
            let text = binstall[key].as_str().unwrap();
            let text = text.replace("{ version }", VERSION).replace("{ target }", "T");
            text.replace("{ bin }", "kvdyno").replace("{ binary-ext }", "")
        };
        assert!(filled("pkg-url").ends_with(&format!("/v{VERSION}/{}.tar.gz", name("T"))));
        assert_eq!(filled("bin-dir"), format!("{}/kvdyno", name("T")));
        assert_eq!(filled("pkg-fmt"), "tgz");
    }
}

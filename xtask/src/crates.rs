//! `cargo xtask crates`: packs the crates that somebody needs to write a store outside of this repository, as crates.io would
//! have them, and builds the example store against the packages.

use std::path::Path;

use crate::steps::{self, StepFailure};

/// Crates that can be packed. Nothing is published from here.
const PACKED: [&str; 2] = ["kvdyno-core", "kvdyno-stores"];

/// Packs them, builds each by itself, and the example against both.
///
/// # Errors
/// If one does not build.
pub fn crates() -> Result<(), StepFailure> {
    let mut package = steps::cargo();
    package.args(["package", "--locked"]);
    package.args(PACKED.iter().flat_map(|name| ["--package", name]));
    steps::run(&mut package)?;
    let folder = steps::target_folder().join("package");
    let outsider = folder.join("outsider");
    let write = |name: &str, text: &str| {
        let path = outsider.join(name);
        std::fs::write(&path, text).map_err(StepFailure::file(path))
    };
    std::fs::create_dir_all(outsider.join("src")).map_err(StepFailure::file(&outsider))?;
    let example = steps::root().join("crates/stores/examples/files.rs");
    let text = std::fs::read_to_string(&example).map_err(StepFailure::file(&example))?;
    write("Cargo.toml", &manifest(&folder))?;
    write("src/main.rs", &text)?;
    // Versions as they are here, so that nothing else is downloaded.
    let lock = steps::root().join("Cargo.lock");
    std::fs::copy(&lock, outsider.join("Cargo.lock")).map_err(StepFailure::file(&lock))?;
    steps::run(steps::cargo().arg("run").current_dir(&outsider))
}

/// The manifest of a store that is written elsewhere.
fn manifest(folder: &Path) -> String {
    let version = env!("CARGO_PKG_VERSION");
    let mut manifest =
        "[workspace]\n[package]\nname = \"outsider\"\nedition = \"2024\"\n".to_owned();
    manifest += "[dependencies]\ntempfile = \"3\"\n";
    for name in PACKED {
        manifest += &format!("{name} = \"{version}\"\n");
    }
    manifest += "[patch.crates-io]\n";
    for name in PACKED {
        let path = folder.join(format!("{name}-{version}"));
        manifest += &format!("{name} = {{ path = {:?} }}\n", path.display().to_string());
    }
    manifest
}

//! Crates that can be packed: what they include lies in their own folder, as a package has nothing else.

use std::path::{Component, Path, PathBuf};

use super::{Breach, breach};

/// Folders of the crates that `cargo package` is to pass for.
const PACKED: [&str; 2] = ["crates/core", "crates/stores"];
/// Macros that include a file.
const INCLUDING: [&str; 3] =
    [concat!("include_", "str!("), concat!("include_", "bytes!("), concat!("include", "!(")];

/// Files from outside that a source file of such a crate includes. Tests may: no package runs them.
pub(super) fn in_source(file: &Path, text: &str) -> Vec<Breach> {
    let Some(home) = PACKED.iter().find(|home| file.starts_with(Path::new(home).join("src")))
    else {
        return Vec::new();
    };
    if file.with_extension("").iter().any(|part| part == "tests") {
        return Vec::new();
    }
    let mut breaches = Vec::new();
    for (index, line) in text.lines().take_while(|line| line.trim() != "#[cfg(test)]").enumerate() {
        for after in INCLUDING.iter().filter_map(|name| Some(line.split_once(name)?.1)) {
            let Some(path) = after.split('"').find(|part| part.contains('/')) else { continue };
            let folder = file.parent().unwrap_or(file);
            if !joined(folder, Path::new(path)).starts_with(home) {
                let what = format!("includes {path}, which no package of the crate has");
                breaches.push(breach(file, index + 1, what));
            }
        }
    }
    breaches
}

/// A path from the workspace's folder, without `..`.
fn joined(folder: &Path, path: &Path) -> PathBuf {
    let mut joined = folder.to_path_buf();
    for part in path.components() {
        match part {
            Component::ParentDir => drop(joined.pop()),
            part => joined.push(part),
        }
    }
    joined
}

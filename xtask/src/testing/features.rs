//! The features that bring tests and drivers.

use std::path::Path;

use crate::servers;
use crate::steps::{self, StepFailure};

/// Feature of each crate whose tests need programs from outside.
const SERVER_TESTS: &str = "server-tests";

/// Every feature that brings tests or a driver, as cargo's `--features` takes them.
///
/// # Errors
/// If a crate's manifest cannot be read.
pub fn all() -> Result<String, StepFailure> {
    let mut features = server_test_features(&steps::root().join("crates"))?;
    features.extend(servers::DRIVER_FEATURES.map(str::to_owned));
    Ok(features.join(","))
}

/// `CRATE/server-tests` for each crate that has the feature.
fn server_test_features(crates: &Path) -> Result<Vec<String>, StepFailure> {
    let mut features = Vec::new();
    for entry in std::fs::read_dir(crates).map_err(StepFailure::file(crates))? {
        let manifest = entry.map_err(StepFailure::file(crates))?.path().join("Cargo.toml");
        if !manifest.exists() {
            continue;
        }
        let text = std::fs::read_to_string(&manifest).map_err(StepFailure::file(&manifest))?;
        let value = |key: &str| {
            let of_key = |line: &str| {
                Some(line.strip_prefix(key)?.trim_start().strip_prefix('=')?.trim().to_owned())
            };
            text.lines().find_map(of_key)
        };
        if let (Some(name), Some(_)) = (value("name"), value(SERVER_TESTS)) {
            features.push(format!("{}/{SERVER_TESTS}", name.trim_matches('"')));
        }
    }
    features.sort();
    Ok(features)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn crates_with_server_tests_are_found() {
        let folder = tempfile::tempdir().unwrap();
        let krate = |name: &str, features: &str| {
            let path = folder.path().join(name);
            std::fs::create_dir(&path).unwrap();
            let text = format!("[package]\nname = \"kvdyno-{name}\"\n[features]\n{features}\n");
            std::fs::write(path.join("Cargo.toml"), text).unwrap();
        };
        krate("b", "server-tests = []");
        krate("a", "default = []\nserver-tests=[\"x\"]");
        krate("c", "default = []\nserver-tests-of-another-kind = []");
        let found = server_test_features(folder.path()).unwrap();
        assert_eq!(found, ["kvdyno-a/server-tests", "kvdyno-b/server-tests"]);
    }
}

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
    use std::collections::{BTreeMap, BTreeSet};

    use super::*;

    /// Libraries that are built once more for the drivers: what these ask of them brings others that take long to build.
    const OF_DRIVERS: [&str; 9] = [
        "futures-task",
        "futures-util",
        "hyper",
        "hyper-util",
        "rustls",
        "rustls-webpki",
        "tokio-rustls",
        "tokio-util",
        "tower",
    ];

    /// Name and version of each library that a build with these arguments takes, and the sets of features asked for: one,
    /// or another one of what runs while others are built.
    fn libraries(arguments: &[&str]) -> BTreeMap<String, BTreeSet<String>> {
        let mut tree = steps::cargo();
        tree.args(["tree", "--prefix", "none", "--format", "{p} [{f}]"]).args(arguments);
        let told = steps::output(&mut tree).expect("cargo tells what it would build");
        let mut libraries = BTreeMap::<String, BTreeSet<String>>::new();
        for line in told.lines().filter(|line| !line.contains('/')) {
            let Some((package, features)) = line.split_once(" [") else { continue };
            let package = package.trim_end_matches(" (proc-macro)").to_owned();
            let features = features.trim_end_matches(" (*)").to_owned();
            libraries.entry(package).or_default().insert(features);
        }
        assert!(libraries.len() > 50, "{told}");
        libraries
    }

    /// Cargo builds what the chores consist of, then the short tests, then all tests: a library of which a later build
    /// asks more is built again, with all that it is part of.
    #[test]
    fn what_chores_and_tests_have_in_common_is_built_once() {
        let chores = libraries(&["--package=xtask", "--edges=normal,build"]);
        let tests = ["--workspace", "--edges=normal,build,dev"];
        let (short, all) = (libraries(&tests), all().unwrap());
        let all = libraries(&[&tests[..], &["--features", &all]].concat());
        let again = |first: &BTreeMap<String, BTreeSet<String>>, then: &BTreeMap<_, _>| {
            let common =
                first.iter().filter_map(|(name, asked)| Some((name, asked, then.get(name)?)));
            let again = common
                .filter(|(_, first, then): &(_, _, &BTreeSet<String>)| !first.is_subset(then));
            again
                .map(|(name, first, then)| format!("{name}: {first:?} and then {then:?}"))
                .collect()
        };
        let mut found: Vec<String> = again(&chores, &short);
        found.extend(again(&short, &all));
        found.retain(|line| !OF_DRIVERS.iter().any(|name| line.starts_with(&format!("{name} "))));
        assert!(found.is_empty(), "name their features in xtask/Cargo.toml: {found:#?}");
    }

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

//! Profiles of the build: a profile that inherits from another takes over the other's settings of single packages,
//! though its own first lines say otherwise. A profile that is meant to optimise everything would not, and only
//! slowness would show it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use toml::{Table, Value};

use super::{Breach, breach};

/// Engines that live in the process in every build.
const ENGINES: [&str; 3] = ["fjall", "heed", "redb"];

/// Package whose dependencies only build it.
const BUILT_BY_OTHERS: &str = "lmdb-master-sys";

/// Crates of the workspace that an operation passes through.
const LOOP: [&str; 2] = ["kvdyno-core", "kvdyno-stores"];

/// Most packages that `release` may leave without optimisation.
const MOST_COLD: usize = 15;

/// Packages that engines name and that no read or write passes through: declarations and macros, other systems, and
/// what engines do once.
const ASIDE: [&str; 11] = [
    "bitflags",
    "cfg-if",
    "enum_dispatch",
    "libc",
    "redox_syscall",
    "serde",
    "serde_core",
    "tempfile",
    "url",
    "winapi",
    "windows-link",
];

/// Key of the level of optimisation.
const LEVEL: &str = "opt-level";

/// Finds packages that a profile of a workspace's manifest optimises differently from the rest, without saying so
/// itself.
pub(super) fn in_manifest(file: &Path, text: &str) -> Vec<Breach> {
    let manifest: Table = match text.parse() {
        Ok(manifest) => manifest,
        Err(error) => return vec![breach(file, 0, format!("no manifest: {error}"))],
    };
    let Some(profiles) = manifest.get("profile").and_then(Value::as_table) else {
        return Vec::new();
    };
    let mut breaches = Vec::new();
    for (name, profile) in profiles {
        let from = profile.get("inherits").and_then(Value::as_str);
        let inherited = from.and_then(|from| profiles.get(from)).map(packages).unwrap_or_default();
        let (level, own) = (profile.get(LEVEL), packages(profile));
        for (package, inherited) in inherited {
            let said = own.get(&package).and_then(|own| own.get(LEVEL));
            if said.is_none()
                && level.is_some()
                && inherited.get(LEVEL).is_some_and(|inherited| Some(inherited) != level)
            {
                let from = from.unwrap_or_default();
                let what = format!(
                    "the profile {name} optimises {package} as {from} does: say its {LEVEL}"
                );
                breaches.push(breach(file, 0, what));
            }
        }
    }
    breaches
}

/// Finds packages that the profile `release` leaves without optimisation and that a load passes through: engines in the
/// process, their libraries, the load loop. A longer list than [`MOST_COLD`] is a breach, too. `lock` is the workspace's
/// `Cargo.lock`.
pub(super) fn of_engines(file: &Path, manifest: &str, lock: &str) -> Vec<Breach> {
    let (Ok(manifest), Ok(lock)) = (manifest.parse::<Table>(), lock.parse::<Table>()) else {
        return vec![breach(file, 0, "no manifest, or no lock file")];
    };
    let profile = manifest.get("profile").and_then(|profiles| profiles.get("release"));
    let named = profile.map(packages).unwrap_or_default();
    let level = |own: &Value| own.get(LEVEL).and_then(Value::as_integer);
    let cold = named.iter().filter(|(_, own)| level(own).is_some_and(|level| level < 3));
    let cold: BTreeSet<&str> = cold.map(|(package, _)| package.as_str()).collect();
    let needs = needs(&lock);
    let mut open: Vec<&str> = ENGINES.to_vec();
    let mut seen = BTreeSet::from(LOOP);
    while let Some(package) = open.pop() {
        if ASIDE.contains(&package) || !seen.insert(package) || package == BUILT_BY_OTHERS {
            continue;
        }
        open.extend(needs.get(package).into_iter().flatten());
    }
    let passed = cold.intersection(&seen).map(|package| {
        format!("a load passes through {package}: the profile release says no `{LEVEL}` of it")
    });
    let long = (cold.len() > MOST_COLD).then(|| {
        format!("the profile release names {} packages; {MOST_COLD} are the most", cold.len())
    });
    passed.chain(long).map(|what| breach(file, 0, what)).collect()
}

/// Returns the dependencies of each package of a lock file, all versions of it together.
fn needs(lock: &Table) -> BTreeMap<&str, Vec<&str>> {
    let mut needs = BTreeMap::<&str, Vec<&str>>::new();
    for package in lock.get("package").and_then(Value::as_array).into_iter().flatten() {
        let Some(name) = package.get("name").and_then(Value::as_str) else { continue };
        let named = package.get("dependencies").and_then(Value::as_array).into_iter().flatten();
        let named = named.filter_map(Value::as_str).filter_map(|one| one.split(' ').next());
        needs.entry(name).or_default().extend(named);
    }
    needs
}

/// Returns a profile's settings of single packages.
fn packages(profile: &Value) -> Table {
    profile.get("package").and_then(Value::as_table).cloned().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MANIFEST: &str = "[profile.release]\nopt-level = 1\n[profile.release.package]\nhot = { opt-level = 3 }\n\
                            cold = { opt-level = 0 }\nother = { debug = true }\n\
                            [profile.dist]\ninherits = \"release\"\nopt-level = 3\n";

    #[test]
    fn a_package_that_is_optimised_as_the_profile_before_is_named() {
        let check = |text: &str| in_manifest(Path::new("Cargo.toml"), text);
        let found = check(MANIFEST);
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!(
            found[0].what,
            "the profile dist optimises cold as release does: say its opt-level"
        );
        assert_eq!(
            check(&format!("{MANIFEST}[profile.dist.package]\ncold = {{ opt-level = 3 }}\n")),
            []
        );
        assert_eq!(check(&MANIFEST.replace("opt-level = 3\n[profile", "[profile")).len(), 1);
        assert_eq!(check("[package]\nname = \"a\"\n"), []);
    }

    #[test]
    fn what_a_load_passes_through_is_optimised_down_to_the_last_library() {
        let lock = "[[package]]\nname = \"redb\"\ndependencies = [\"libc\", \"bytes 1.0.0\"]\n\
                    [[package]]\nname = \"bytes\"\ndependencies = [\"hashes\"]\n";
        let check = |levels: &str| {
            let manifest =
                format!("[profile.release.package]\nfjall = {{ opt-level = 3 }}\n{levels}");
            let found = of_engines(Path::new("Cargo.toml"), &manifest, lock);
            found.into_iter().map(|breach| breach.what).collect::<Vec<_>>()
        };
        assert_eq!(
            check("clap = { opt-level = 0 }\nlibc = { opt-level = 0 }\n"),
            Vec::<String>::new()
        );
        for package in ["hashes", "redb", "kvdyno-core"] {
            let found = check(&format!("{package} = {{ opt-level = 1 }}\n"));
            assert!(found.len() == 1 && found[0].contains(package), "{found:?}");
        }
        let many: String = (0..16).map(|n| format!("cold{n} = {{ opt-level = 0 }}\n")).collect();
        assert_eq!(check(&many), ["the profile release names 16 packages; 15 are the most"]);
    }
}

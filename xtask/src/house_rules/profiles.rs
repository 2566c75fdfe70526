//! Profiles of the build: one that inherits from another takes over what that one says of single packages, though its own
//! first lines say otherwise. A profile that is to optimise everything would not, and nothing shows it but slowness.

use std::path::Path;

use toml::{Table, Value};

use super::{Breach, breach};

/// How much something is optimised.
const LEVEL: &str = "opt-level";

/// Packages that a profile of a workspace's manifest optimises otherwise than it says of all, without saying so itself.
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

/// What a profile says of single packages.
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
}

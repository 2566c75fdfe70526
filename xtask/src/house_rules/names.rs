//! A public type's name is its own in the whole workspace: who reads or searches it finds one thing.

use std::collections::BTreeMap;
use std::path::Path;

use super::Breach;
use super::modules::Crate;

/// Names that several files may give.
const SHARED: &[&str] = &[
    "Build",
    "Condition",
    "Ending",
    "Kind",
    "LoadError",
    "Options",
    "Progress",
    "Ran",
    "Reason",
    "Reply",
    "Rows",
    "Setting",
    "Side",
    "Slot",
    "Source",
    "Span",
    "Spread",
    "Suite",
    "Target",
    "Token",
    "Tokens",
    "Unit",
    "Verdict",
    "Way",
];

/// One breach for each name that was given before.
pub(super) fn given_twice<'a>(crates: impl IntoIterator<Item = &'a Crate>) -> Vec<Breach> {
    let mut given: BTreeMap<&str, &Path> = BTreeMap::new();
    let mut breaches = Vec::new();
    for module in crates.into_iter().flat_map(|read| &read.modules) {
        for name in &module.types {
            if SHARED.contains(&name.as_str()) {
                continue;
            }
            if let Some(first) = given.insert(name, &module.file) {
                let what = format!("`{name}` is a public type of {}, too", first.display());
                breaches.push(Breach { file: module.file.clone(), line: 0, what });
            }
        }
    }
    breaches
}

//! A public type's name is its own in the whole workspace: who reads or searches it finds one thing.

use std::collections::BTreeMap;
use std::path::Path;

use super::Breach;
use super::modules::Crate;

/// Names that several files may give. The first six are read with their module, which says whose protocol or
/// chore is meant (`codec::Token`); two are the result's form of what the core has, by the names of its schema;
/// a claim's condition and the one that a fault waits for go by the word that suites have for both. Evidence is what a
/// phase's measurement is judged by (`verdict`), and what a run has to say of a claim (`evidence`).
const SHARED: &[&str] = &[
    "Options",
    "Progress",
    "Reply",
    "Token",
    "Tokens",
    "Span",
    "Reason",
    "Verdict",
    "Condition",
    "Evidence",
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

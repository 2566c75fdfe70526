//! The crates that a binary is made of, as cargo knows them: what notices and the bill of materials list.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use serde::Deserialize;

use crate::steps::{self, StepFailure};

/// A crate in the binary.
#[derive(Debug, Clone, Deserialize)]
pub struct ShippedCrate {
    pub id: String,
    pub name: String,
    pub version: String,
    /// SPDX expression.
    pub license: Option<String>,
    manifest_path: PathBuf,
    /// Registry that it comes from; none of crates of this workspace.
    source: Option<String>,
    pub repository: Option<String>,
}

impl ShippedCrate {
    /// The folder of its sources.
    pub fn folder(&self) -> PathBuf {
        self.manifest_path.parent().map(PathBuf::from).unwrap_or_default()
    }

    /// Returns true if it is not of this workspace.
    pub fn is_of_others(&self) -> bool {
        self.source.is_some()
    }
}

/// All crates in a binary.
#[derive(Debug)]
pub struct Shipped {
    /// By name and version.
    pub crates: Vec<ShippedCrate>,
    /// Names of those that a C compiler builds a part of.
    in_c: BTreeSet<String>,
    /// Dependencies of each, by id.
    pub dependencies: BTreeMap<String, Vec<String>>,
    /// SHA-256 of each crate as it was downloaded, by name and version.
    pub checksums: BTreeMap<(String, String), String>,
}

#[derive(Deserialize)]
struct Metadata {
    packages: Vec<ShippedCrate>,
    resolve: Resolve,
}

#[derive(Deserialize)]
struct Resolve {
    nodes: Vec<Node>,
}

#[derive(Deserialize)]
struct Node {
    id: String,
    dependencies: Vec<String>,
}

#[derive(Deserialize)]
struct Lock {
    package: Vec<Locked>,
}

#[derive(Deserialize)]
struct Locked {
    name: String,
    version: String,
    checksum: Option<String>,
}

impl Shipped {
    /// Reads what the command is made of with these features, beside the default ones, on this target.
    ///
    /// # Errors
    /// If cargo fails.
    pub fn read(features: &str, target: &str) -> Result<Shipped, StepFailure> {
        let of_command = |more: &[&str]| {
            let mut cargo = steps::cargo();
            cargo.args(["tree", "--locked", "--package", "kvdyno", "--features", features]);
            cargo.args(["--target", target, "--prefix", "none", "--format", "{p}"]).args(more);
            steps::output(&mut cargo)
        };
        let named = names(&of_command(&["--edges", "normal,no-proc-macro"])?);
        let built_by = names(&of_command(&["--edges", "normal,build"])?);
        let mut in_c = BTreeSet::new();
        for compiler in ["cc", "cmake"] {
            if built_by.iter().any(|(name, _)| name == compiler) {
                let more = ["--edges", "normal,build", "--depth", "1", "--invert", compiler];
                in_c.extend(names(&of_command(&more)?).into_iter().map(|(name, _)| name));
            }
        }
        let mut cargo = steps::cargo();
        cargo.args(["metadata", "--locked", "--format-version=1", "--filter-platform", target]);
        cargo.args(["--features", "kvdyno/full"]);
        let metadata: Metadata = serde_json::from_str(&steps::output(&mut cargo)?)
            .map_err(|error| StepFailure::Found(format!("cargo metadata: {error}")))?;
        let is_in = |one: &ShippedCrate| named.contains(&(one.name.clone(), one.version.clone()));
        let mut crates: Vec<ShippedCrate> = metadata.packages.into_iter().filter(is_in).collect();
        crates.sort_by(|a, b| (&a.name, &a.version).cmp(&(&b.name, &b.version)));
        let ids: BTreeSet<&String> = crates.iter().map(|one| &one.id).collect();
        let nodes = metadata.resolve.nodes.into_iter().filter(|node| ids.contains(&node.id));
        let kept = |node: Node| {
            let all = node.dependencies.into_iter().filter(|id| ids.contains(id));
            (node.id, all.collect())
        };
        let dependencies = nodes.map(kept).collect();
        Ok(Shipped { dependencies, crates, in_c, checksums: checksums()? })
    }

    /// Crates that are not of this workspace.
    pub fn others(&self) -> impl Iterator<Item = &ShippedCrate> {
        self.crates.iter().filter(|one| one.is_of_others())
    }

    /// Crates with parts in C or assembler.
    pub fn parts_in_c(&self) -> impl Iterator<Item = &ShippedCrate> {
        self.others().filter(|one| self.in_c.contains(&one.name))
    }
}

/// Names and versions that lines of `cargo tree` begin with.
fn names(listed: &str) -> BTreeSet<(String, String)> {
    let name = |line: &str| {
        let mut words = line.split(' ');
        let name = words.next()?.to_owned();
        Some((name, words.next()?.strip_prefix('v')?.to_owned()))
    };
    listed.lines().filter_map(name).collect()
}

fn checksums() -> Result<BTreeMap<(String, String), String>, StepFailure> {
    let path = steps::root().join("Cargo.lock");
    let text = std::fs::read_to_string(&path).map_err(StepFailure::file(&path))?;
    let lock: Lock = toml::from_str(&text)
        .map_err(|error| StepFailure::Found(format!("Cargo.lock: {error}")))?;
    let each = |one: Locked| Some(((one.name, one.version), one.checksum?));
    Ok(lock.package.into_iter().filter_map(each).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_binary_is_made_of_its_own_crates_and_those_of_others() {
        let shipped = Shipped::read("", "x86_64-unknown-linux-gnu").unwrap();
        let has = |name: &str| shipped.crates.iter().any(|one| one.name == name);
        assert!(has("kvdyno") && has("kvdyno-core") && has("fjall") && has("tokio"));
        // A store that is a feature, a crate of tests alone, one of builds alone.
        assert!(!has("mongodb") && !has("shlex") && !has("cc"));
        assert!(shipped.others().all(|one| !one.name.starts_with("kvdyno")));
        let in_c: Vec<&str> = shipped.parts_in_c().map(|one| one.name.as_str()).collect();
        assert_eq!(in_c, ["lmdb-master-sys", "ring"]);
        let others = shipped.others().map(|one| (one.name.clone(), one.version.clone()));
        for one in others {
            assert!(shipped.checksums.contains_key(&one), "{one:?} has no checksum");
        }
        let tokio = &shipped.crates.iter().find(|one| one.name == "tokio").unwrap().id;
        let needed = shipped.dependencies.values().filter(|all| all.contains(tokio)).count();
        assert!(needed > 3, "{needed}");
    }
}

//! Random gets from an engine in this process beside a bare loop over the same files: what kvdyno
//! adds to an engine that answers within microseconds.

use std::path::Path;

use super::pairs::{Median, Pairs};
use super::{Options, Section, kvdyno};
use crate::servers;
use crate::steps::{self, StepFailure, root};

/// Records of the database, and bytes of each value.
const RECORDS: u64 = 1_000_000;

/// An engine to read from.
pub(super) struct Engine {
    /// Its scheme, the bare loop's word for it, and the section's name.
    name: &'static str,
    /// It is a library of the system's.
    is_system: bool,
    /// Gets of each run.
    gets: u64,
}

pub(super) const LMDB: Engine = Engine { name: "lmdb", is_system: false, gets: 5_000_000 };
pub(super) const ROCKSDB: Engine = Engine { name: "rocksdb", is_system: true, gets: 2_000_000 };

/// Most times the bare loop's processor time that is asked for.
const ASKED: f64 = 1.05;

impl Engine {
    pub(super) fn run(&self, options: &Options) -> Result<Section, StepFailure> {
        if self.is_system {
            servers::ensure_libraries()?;
        }
        let folder = root().join("target/bench").join(self.name);
        if folder.exists() {
            std::fs::remove_dir_all(&folder).map_err(StepFailure::file(&folder))?;
        }
        let (data, out) = (folder.join("data"), folder.join("result"));
        std::fs::create_dir_all(&data).map_err(StepFailure::file(&data))?;
        let gets = options.scaled(self.gets).to_string();
        let records = options.scaled(RECORDS).to_string();
        let store = format!("{}:{}?durability=none", self.name, data.display());
        let run = |policy: &str| {
            let mut command = kvdyno::command(&out, &[]);
            command.args(["--store", &store, "--records", &records, "--value", "200B"]);
            command.args(["--mix", "get=100", "--clients", "1", "--requests", &gets]);
            command.args(["--set", "key.form=decimal", "--set", "read-back=false"]);
            kvdyno::run(&out, command.args(["--data", policy]))
        };
        run("fresh")?;
        let bare = || self.bare(&data, &records, &gets);
        let pairs = Pairs::measure(options.pairs, || Ok(run("reuse")?.cpu_ns()), bare)?;
        let (ours, theirs) = (Median::of(&pairs.ours), Median::of(&pairs.theirs));
        let text = format!(
            "| loop | CPU ns for each get |\n| --- | --- |\n| kvdyno, verification on | {ours} |\n\
             | bare loop | {theirs} |\n\nkvdyno over the bare loop, pair by pair: {}; at most {ASKED:.2} \
             is asked for.\n",
            pairs.ratio(),
        );
        Ok(Section { name: self.name, text })
    }

    /// One run of the bare loop: processor time for each get, ns.
    fn bare(&self, data: &Path, records: &str, gets: &str) -> Result<f64, StepFailure> {
        let mut cargo = steps::cargo();
        cargo.args(["bench", "--profile", "dist", "--quiet", "--package", "kvdyno-stores"]);
        cargo.args(["--bench", "engine_bare", "--", self.name]).arg(data);
        let said = steps::output(cargo.args([records, gets]))?;
        let found =
            said.lines().find_map(|line| line.strip_prefix("CPU ns per get: ")?.parse().ok());
        found.ok_or_else(|| StepFailure::Found("the bare loop did not tell its time".to_owned()))
    }
}

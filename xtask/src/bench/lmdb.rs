//! Random gets from LMDB beside a bare loop over the same files: what kvdyno adds to an engine that
//! answers within a microsecond or two.

use super::pairs::{Median, Pairs};
use super::{Options, Section, kvdyno};
use crate::steps::{self, Failure, root};

/// Records of the environment, and bytes of each value.
const RECORDS: u64 = 1_000_000;
/// Gets of each run.
const REQUESTS: u64 = 5_000_000;

pub(super) fn run(options: &Options) -> Result<Section, Failure> {
    let folder = root().join("target/bench/lmdb");
    if folder.exists() {
        std::fs::remove_dir_all(&folder).map_err(Failure::file(&folder))?;
    }
    let (data, out) = (folder.join("data"), folder.join("result"));
    std::fs::create_dir_all(&data).map_err(Failure::file(&data))?;
    let requests = options.scaled(REQUESTS).to_string();
    let records = options.scaled(RECORDS).to_string();
    let store = format!("lmdb:{}?durability=none", data.display());
    let run = |policy: &str| {
        let mut command = kvdyno::command(&out, &[]);
        command.args(["--store", &store, "--records", &records, "--value", "200B"]);
        command.args(["--mix", "get=100", "--clients", "1", "--requests", &requests]);
        command.args(["--set", "key.form=decimal"]);
        kvdyno::run(&out, command.args(["--data", policy]))
    };
    run("fresh")?;
    let bare = || {
        let mut cargo = steps::cargo();
        cargo.args([
            "bench",
            "--quiet",
            "--package",
            "kvdyno-stores",
            "--bench",
            "lmdb_bare",
            "--",
        ]);
        let said = steps::output(cargo.arg(&data).arg(&requests))?;
        let found =
            said.lines().find_map(|line| line.strip_prefix("CPU ns per get: ")?.parse().ok());
        found.ok_or_else(|| Failure::Found("the bare loop did not tell its time".to_owned()))
    };
    let pairs = Pairs::measure(options.pairs, || Ok(run("reuse")?.cpu_ns()), bare)?;
    let (ours, theirs) = (Median::of(&pairs.ours), Median::of(&pairs.theirs));
    let text = format!(
        "| loop | CPU ns for each get |\n| --- | --- |\n| kvdyno, verification on | {ours} |\n\
         | bare loop | {theirs} |\n\nkvdyno over the bare loop, pair by pair: {}; at most 1.10 is \
         asked for.\n",
        pairs.ratio()
    );
    Ok(Section { name: "lmdb", text })
}

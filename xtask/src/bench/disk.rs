//! Writes to stores whose nodes have file systems of their own, compared with the same stores on the machine's own
//! file system.

use rustix::fs::statfs;

use super::pairs::{Median, Pairs};
use super::{Options, Section, kvdyno};
use crate::steps::{StepFailure, root};

/// Testbeds without a disk: stores that sync each write, and stores that leave that to the system.
const STORES: [&str; 4] = [
    "redis?persistence=aof-always",
    "redis?persistence=aof-everysec",
    "engine:lmdb?durability=power",
    "engine:fjall?durability=power",
];
/// Setting of the disk that is measured.
const DISK: &str = "disk=ext4";
/// Duration of a run, seconds.
const SECONDS: f64 = 5.0;
/// Asked bound: writes a second with a disk of its own over those without.
const LEAST: f64 = 0.8;
/// Number of ext4 in the answer of `statfs`.
const EXT4: i64 = 0xEF53;

pub(super) fn run(options: &Options) -> Result<Section, StepFailure> {
    // A testbed's folder is there, and so are the images of its disks.
    let folder = std::env::temp_dir();
    let below = statfs(&folder).map_err(|error| StepFailure::file(&folder)(error.into()))?;
    if below.f_type != EXT4 {
        let folder = folder.display();
        let message = format!("{folder} is not on ext4: set TMPDIR to a folder that is");
        return Err(StepFailure::Found(message));
    }
    let mut text = String::from(
        "| testbed | thousand writes a second, `disk=ext4` | without it | over that, pair by pair | asked for |\n\
         | --- | --- | --- | --- | --- |\n",
    );
    for store in STORES {
        println!("{store}");
        let pairs = Pairs::measure(
            options.pairs,
            || writes(&format!("{store}&{DISK}"), options),
            || writes(store, options),
        )?;
        let (own, machine) = (Median::of(&pairs.ours), Median::of(&pairs.theirs));
        text +=
            &format!("| `{store}` | {own} | {machine} | {} | at least {LEAST} |\n", pairs.ratio());
    }
    let seconds = SECONDS * options.scale;
    text += &format!(
        "\nInserts of 100 bytes by 20 clients for {seconds} s, each run on a testbed of its own; by the clock. The \
         machine's own file system is ext4, too, and the images of the disks lie on it.\n"
    );
    Ok(Section { name: "disk", text })
}

/// Measures inserts, thousands a second.
fn writes(testbed: &str, options: &Options) -> Result<f64, StepFailure> {
    let out = root().join("target/bench/disk");
    let mut command = kvdyno::command(&out, &[]);
    command.args(["--testbed", testbed, "--records", "1000", "--value", "100B"]);
    command.args(["--mix", "insert=100", "--clients", "20"]);
    command.args(["--duration", &format!("{}ms", (SECONDS * options.scale * 1e3) as u64)]);
    let ran = kvdyno::run(&out, &mut command)?;
    Ok(ran.operations as f64 / ran.wall.as_secs_f64() / 1e3)
}

//! Memory of the client over runs of different lengths: flat, and little.

use super::{Options, Section, kvdyno};
use crate::steps::{StepFailure, root};

/// Seconds of the runs.
const SECONDS: [u32; 3] = [5, 20, 60];
/// Asked for, MiB.
const MOST: f64 = 64.0;

pub(super) fn run(options: &Options) -> Result<Section, StepFailure> {
    let out = root().join("target/bench/memory");
    let mut text = String::from(
        "| store | clients | length | operations | most memory held, MiB |\n\
         | --- | --- | --- | --- | --- |\n",
    );
    for (store, clients, rate) in
        [("null:", "2", None), ("sim:?service=100us", "2", None), ("null:", "2", Some("50k/s"))]
    {
        for seconds in SECONDS {
            let seconds = ((f64::from(seconds) * options.scale) as u32).max(1);
            let mut command = kvdyno::command(&out, &[]);
            command.args(["--store", store, "--records", "1M", "--value", "100B"]);
            command.args(["--mix", "get=50,update=50", "--clients", clients]);
            command.args(["--duration", &format!("{seconds}s")]);
            command.args(rate.map(|rate| ["--rate", rate]).into_iter().flatten());
            let phase = kvdyno::phase(&out, &mut command)?;
            let held = phase["resources"]["own"]["peak_rss"].as_f64().unwrap_or(f64::NAN);
            let held = held / f64::from(1 << 20);
            let name = match rate {
                Some(rate) => format!("`{store}` at {rate}"),
                None => format!("`{store}`"),
            };
            let operations = phase["started_operations"].as_u64().unwrap_or_default();
            text += &format!("| {name} | {clients} | {seconds} s | {operations} | {held:.1} |\n");
        }
    }
    text += &format!(
        "\nResident memory of the whole process at its highest, over 1 million records, of which the \
         ledger takes 8 MB; each client is a worker thread. Asked for is less than {MOST:.0} MiB for \
         a run of any length. `sim:` is a store in the same process, whose records lie there too: its \
         runs show only that nothing grows.\n"
    );
    Ok(Section { name: "memory", text })
}

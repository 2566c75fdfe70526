//! `kvdyno check`: is this machine, is this store fit to measure? A smoke test before the real one.

use std::time::Duration;

use kvdyno_core::measure::{FitWarning, Fitness, Spread, check_machine};
use kvdyno_core::suite::units;

use crate::args::CheckArguments;
use crate::exit::{Exit, Failure};
use crate::target::OpenStore;

/// Probes the machine, and the store if one is named.
///
/// # Errors
/// [`Failure`] if the store cannot be opened or reached.
pub fn check(arguments: &CheckArguments) -> Result<Exit, Failure> {
    // First, so that a mistake in the URL is all that is said.
    let store = arguments.store.as_deref().map(OpenStore::open).transpose()?;
    let fitness = check_machine(&arguments.folder);
    print_machine(&fitness);
    for warning in &fitness.warnings {
        say!("suspect: {}; {}", FitWarning::text(warning), warning.advice());
    }
    if fitness.warnings.is_empty() {
        say!("This machine is fit to measure.");
    }
    if let Some(store) = store {
        check_store(store)?;
    }
    Ok(Exit::Done)
}

fn print_machine(fitness: &Fitness) {
    let (machine, probes) = (&fitness.machine, &fitness.probes);
    let cpu = machine.cpu_model.as_deref().unwrap_or("unknown processor");
    say!("machine       {}, {} × {cpu}", machine.os, machine.allowed_processors);
    say!("build         {}", machine.build);
    say!("clock         {:.0} ns for a pair of readings", probes.clock_pair_ns);
    let spread = |what: &str, spread: Option<Spread>| {
        if let Some(Spread { p50, p99 }) = spread {
            let text = |time: Duration| units::format_latency(time.as_nanos() as u64);
            say!("{what:13} {} (median), {} (99 %)", text(p50), text(p99));
        }
    };
    spread("oversleep", probes.oversleep);
    spread("loopback", probes.loopback.map(|loopback| loopback.round_trip));
    spread("disk sync", probes.sync);
    if let Some(files) = probes.open_files {
        say!("open files    {} allowed, {} at most", files.soft, files.hard);
    }
    if let Some(steal) = probes.steal {
        say!("steal         {:.1} % of the machine's time", steal * 100.0);
    }
}

fn check_store(OpenStore { url: shown, store }: OpenStore) -> Result<(), Failure> {
    let profile = store.profile().map_err(|error| Failure::of_load(&shown, &error))?;
    let version = profile.version.as_deref().unwrap_or("of unknown version");
    say!("store         {} {version} at {shown}", profile.store);
    say!(
        "durability    {}",
        promise(profile.durability.level.describe(), profile.durability.checked)
    );
    say!(
        "consistency   {}",
        promise(&profile.consistency.level.describe(), profile.consistency.checked)
    );
    for (name, value) in &profile.settings {
        say!("  {name} = {value}");
    }
    say!("The store answers.");
    Ok(())
}

fn promise(level: &str, checked: bool) -> String {
    let unchecked = if checked { "" } else { " (declared, unchecked)" };
    format!("{level}{unchecked}")
}

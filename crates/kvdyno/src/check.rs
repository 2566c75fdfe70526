//! `kvdyno check`: checks that this machine and a store are fit to measure. A smoke test before the real one.

mod machines;

use std::time::Duration;

use kvdyno_core::ground::numbers;
use kvdyno_core::measure::{
    FitWarning, Fitness, IDLE_OTHER_LOAD, IDLE_STEAL, NetworkDevice, Spread, allowed_cpus,
    check_machine,
};
use kvdyno_core::store::Profile;
use kvdyno_stores::bare_load::{BareLoad, LoopError, Unobserved};

use self::machines::MachinesFor;
use crate::args::CheckArguments;
use crate::exit::{Exit, Failure};
use crate::open_store::OpenStore;

/// Time for which kvdyno's own ceiling is measured, seconds.
const CEILING_FOR: f64 = 0.2;
/// Operations of a first run, which tells how many fill that time.
const FIRST_OPERATIONS: u64 = 50_000;

/// Probes the machine, and the store if one is named.
///
/// # Errors
/// [`Failure`] if the store cannot be opened or reached.
pub fn check(arguments: &CheckArguments) -> Result<Exit, Failure> {
    // First of all, so that a mistake in the URL or the suite, or a server that does not answer, is the only output.
    let store = arguments.store.as_deref().map(asked).transpose()?;
    let need = arguments.suite.as_deref().map(|suite| MachinesFor::of(suite, arguments.rate));
    let need = need.transpose()?;
    let fitness = check_machine(&arguments.folder);
    print_machine(&fitness);
    print_client(&fitness);
    for warning in &fitness.warnings {
        say!("suspect: {}; {}", FitWarning::text(warning), warning.advice());
    }
    if fitness.warnings.is_empty() {
        say!("This machine is fit to measure.");
    }
    if let Some((url, profile)) = store {
        print_store(&url, &profile);
    }
    if let Some(need) = need {
        need.print()?;
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
            let text = |time: Duration| numbers::duration_text(time.as_nanos() as f64);
            say!("{what:13} {} (median), {} (99 %)", text(p50), text(p99));
        }
    };
    spread("oversleep", probes.oversleep);
    spread("loopback", probes.loopback.map(|loopback| loopback.round_trip));
    spread("disk sync", probes.sync);
    if let Some(files) = probes.open_files {
        say!("open files    {} allowed, {} at most", files.soft, files.hard);
    }
    for (what, share, most) in
        [("steal", probes.steal, IDLE_STEAL), ("other load", probes.other_load, IDLE_OTHER_LOAD)]
    {
        if let Some(share) = share {
            let [share, most] = [share, most].map(|share| share * 100.0);
            say!("{what:13} {share:.1} % of the machine's time (idle: at most {most:.0} %)");
        }
    }
}

/// Prints the limits of the client itself: its own loop, the processors that it may use, and those of the network
/// device.
fn print_client(fitness: &Fitness) {
    match ceiling() {
        Ok(rate) => {
            let rate = numbers::approximate_count(rate);
            say!(
                "ceiling       {rate}/s on one thread against a store that answers at once (null:)"
            );
        }
        Err(error) => say!("ceiling       not measured: {error}"),
    }
    let allowed = allowed_cpus();
    let workers: Vec<_> = allowed.iter().rev().take((allowed.len() / 2).max(1)).collect();
    say!(
        "processors    kvdyno may use {}; its worker threads are kept on {}",
        listed(&allowed),
        listed(workers.into_iter().rev())
    );
    for NetworkDevice { name, receive, transmit, processors } in &fitness.network {
        let to = match &processors[..] {
            [] => "not told".to_owned(),
            processors => listed(processors),
        };
        say!(
            "network       {name}: queues {receive} in, {transmit} out; processors of its \
             interrupts: {to}"
        );
    }
}

/// Measures the operations a second that kvdyno itself can start on one thread.
fn ceiling() -> Result<f64, LoopError> {
    let rate = |operations: u64| {
        let interval = Duration::from_secs(1);
        let load =
            BareLoad { url: "null:", clients: 1, updates: 0, verify: true, operations, interval };
        let measure = load.run(&mut Unobserved)?;
        Ok(measure.started as f64 / measure.span().as_secs_f64())
    };
    let first: f64 = rate(FIRST_OPERATIONS)?;
    rate((first * CEILING_FOR) as u64)
}

fn listed<'a>(numbers: impl IntoIterator<Item = &'a usize>) -> String {
    numbers.into_iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

/// Returns the profile that the store states, after its URL as it may be shown.
fn asked(url: &str) -> Result<(String, Profile), Failure> {
    let OpenStore { url: shown, store, .. } = OpenStore::open(url)?;
    let profile = store.ask_profile().map_err(|error| Failure::of_load(&shown, &error))?;
    Ok((shown, profile))
}

fn print_store(url: &str, profile: &Profile) {
    let version = profile.version.as_deref().unwrap_or("of unknown version");
    say!("store         {} {version} at {url}", profile.store);
    let (durability, consistency) = (&profile.durability, &profile.consistency);
    say!("durability    {} ({})", durability.level.describe(), durability.origin_text());
    say!("consistency   {} ({})", consistency.level.describe(), consistency.origin_text());
    for (name, value) in &profile.settings {
        say!("  {name} = {value}");
    }
    say!("The store answers.");
}

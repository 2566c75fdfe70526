//! Client CPU for each operation over loopback, beside a bare epoll loop that keeps no statistics:
//! server on one processor, client on another, in turns.

use std::process::Command;

use super::bare::Bare;
use super::kvdyno::{self, Ran};
use super::load::{CONNECTIONS, LOADS, Load, Mix, RECORDS};
use super::pairs::{Median, Pairs};
use super::target::Target;
use super::{Options, Section};
use crate::steps::{StepFailure, root};

/// Clients that load the records. A Cassandra node on one processor that is given 50 batches of 100
/// records at once stands still beyond its own timeout, and the load ends there.
const LOADERS: u64 = 8;

/// Most times the bare loop's processor time that is asked for.
fn asked(load: &Load) -> f64 {
    if load.pipeline == 1 { 1.15 } else { 1.5 }
}

/// `name` is the bare loop's protocol and the section's name; `words` ask for the testbed.
pub(super) fn run(
    name: &'static str,
    words: &str,
    options: &Options,
) -> Result<Section, StepFailure> {
    let bare = Bare::build()?;
    let target = Target::start(words, RECORDS)?;
    load_records(&target, name)?;
    bare.fill(&target, name)?;
    let mut text = String::from(
        "| operations | pipeline | kvdyno, client CPU µs each | bare loop, client CPU µs each | \
         kvdyno over the bare loop, pair by pair | asked for |\n\
         | --- | --- | --- | --- | --- | --- |\n",
    );
    for load in &LOADS {
        let load = Load { requests: options.scaled(load.requests), ..*load };
        let ours = || Ok(carry(&target, name, &load)?.cpu_ns() / 1e3);
        let pairs = Pairs::measure(options.pairs, ours, || bare.cpu_us(&target, name, &load))?;
        let (our, their) = (Median::of(&pairs.ours), Median::of(&pairs.theirs));
        let (mix, asked) = (load.mix.name(), asked(&load));
        let Load { pipeline, .. } = load;
        let ratio = pairs.ratio();
        text += &format!("| {mix} | {pipeline} | {our} | {their} | {ratio} | {asked} |\n");
    }
    text += &format!(
        "\n{}, {CONNECTIONS} connections, {RECORDS} records of 100 bytes, {} requests in each run \
         ({} with the pipeline). CPU is user and system time of every thread of the client, of \
         kvdyno during the measured phase, with verification, histograms and intervals on.\n",
        target.describe(),
        options.scaled(LOADS[0].requests),
        options.scaled(LOADS[2].requests),
    );
    Ok(Section { name, text })
}

/// Writes kvdyno's records, with patience: a server of one processor that has just begun takes its time.
pub(super) fn load_records(target: &Target, folder: &str) -> Result<(), StepFailure> {
    let load = Load { requests: 1_000, ..LOADS[0] };
    let out = root().join("target/bench").join(folder);
    let separator = if target.url().contains('?') { '&' } else { '?' };
    let store = format!("{}{separator}timeout=60s", target.url());
    let mut command = command(target, &store, folder, &load, LOADERS);
    kvdyno::run(&out, command.args(["--data", "fresh"])).map(drop)
}

/// Carries the load with kvdyno, over the records that are there.
pub(super) fn carry(target: &Target, folder: &str, load: &Load) -> Result<Ran, StepFailure> {
    carry_with(target, folder, load, 1)
}

/// The same with so many worker threads.
pub(super) fn carry_with(
    target: &Target,
    folder: &str,
    load: &Load,
    threads: u32,
) -> Result<Ran, StepFailure> {
    let out = root().join("target/bench").join(folder);
    let clients = CONNECTIONS * load.pipeline;
    let mut command = command(target, target.url(), folder, load, clients);
    kvdyno::run(&out, command.args(["--data", "reuse", "--threads", &threads.to_string()]))
}

/// kvdyno on the clients' processors, over the store of this URL. What comes after the measured phase
/// is left out, and its warm-up is short: the figures are of that phase alone.
fn command(target: &Target, store: &str, folder: &str, load: &Load, clients: u64) -> Command {
    let out = root().join("target/bench").join(folder);
    let mut command = kvdyno::command(&out, &["taskset", "-c", &target.client_cpus()]);
    let mix = match load.mix {
        Mix::Get => "get=100",
        Mix::Half => "get=50,update=50",
    };
    command.args(["--store", store, "--value", "100B", "--mix", mix]);
    command.args(["--set", "read-back=false", "--set", "warmup=500ms"]);
    for (option, number) in [
        ("--records", target.records()),
        ("--requests", load.requests),
        ("--clients", clients),
        ("--pipeline", load.pipeline),
    ] {
        command.arg(option).arg(number.to_string());
    }
    command
}

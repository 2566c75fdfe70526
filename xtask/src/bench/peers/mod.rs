//! `cargo xtask bench-peers`: kvdyno and the load generators that people know, in turns on the same servers; writes
//! the table into docs/PERFORMANCE.md.
//!
//! A peer is one file: how it is installed, run and read.

mod go_ycsb;
mod latte;
mod memaslap;
mod memtier;
mod redis_benchmark;
mod table;
mod ycsb;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use clap::{Args, ValueEnum};
use kvdyno_testbed::install::{self, Software, SoftwareSource};

use self::table::Row;
use super::load::{CONNECTIONS, LOADS, Load, RECORDS};
use super::target::Target;
use super::wire;
use super::{Options as Extent, Section, child, machine, page};
use crate::steps::{self, StepFailure, root};

/// Options of `cargo xtask bench-peers`.
#[derive(Debug, Args)]
pub struct Options {
    /// Servers to load; all if none is named
    #[arg(value_enum)]
    only: Vec<System>,
    /// Turns, in each of which every program runs once; 15 or more for the page
    #[arg(long, default_value_t = 15)]
    pairs: usize,
    /// Share of the full number of requests; below 1 for a quick look that leaves the page alone
    #[arg(long, default_value_t = 1.0)]
    scale: f64,
}

/// A server that peers can load as well.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum System {
    /// Beside redis-benchmark, memtier_benchmark, go-ycsb, YCSB
    Redis,
    /// Beside memtier_benchmark and memaslap
    Memcached,
    /// Beside latte
    Cassandra,
    /// FerretDB, beside go-ycsb
    Mongodb,
}

impl System {
    fn words(self) -> &'static str {
        match self {
            System::Redis => super::REDIS,
            System::Memcached => super::MEMCACHED,
            System::Cassandra => "cassandra?memory=2GiB",
            System::Mongodb => "mongodb",
        }
    }

    fn section(self) -> &'static str {
        match self {
            System::Redis => "peers-redis",
            System::Memcached => "peers-memcached",
            System::Cassandra => "peers-cassandra",
            System::Mongodb => "peers-mongodb",
        }
    }

    /// Returns the feature of kvdyno's driver for it; `None` for a driver in every build.
    fn feature(self) -> Option<&'static str> {
        match self {
            System::Redis | System::Memcached => None,
            System::Cassandra => Some("cassandra"),
            System::Mongodb => Some("mongodb"),
        }
    }

    fn records(self) -> u64 {
        match self {
            // FerretDB reads all of them for each that is asked for (docs/stores/mongodb.md).
            System::Mongodb => 1_000,
            System::Redis | System::Memcached | System::Cassandra => RECORDS,
        }
    }

    fn peers(self) -> Vec<&'static dyn Peer> {
        match self {
            System::Redis => vec![
                &redis_benchmark::RedisBenchmark,
                &memtier::Memtier { protocol: "redis" },
                &go_ycsb::GoYcsb::Redis,
                &ycsb::Ycsb,
            ],
            System::Memcached => {
                vec![&memtier::Memtier { protocol: "memcache_text" }, &memaslap::Memaslap]
            }
            System::Cassandra => vec![&latte::Latte],
            System::Mongodb => vec![&go_ycsb::GoYcsb::Mongodb],
        }
    }

    /// Returns the loads that are carried, at the scale asked for.
    fn loads(self, scale: &Extent) -> Vec<Load> {
        // Cassandra answers a tenth of what the others do, and its protocol has pipelines always; FerretDB
        // answers a hundredth, and MongoDB's protocol has none.
        let (pipelines, share): (&[u64], u64) = match self {
            System::Cassandra => (&[1], 3),
            System::Mongodb => (&[1], 60),
            System::Redis | System::Memcached => (&[1, 16], 1),
        };
        let carried = LOADS.iter().filter(|load| pipelines.contains(&load.pipeline));
        let scaled = |load: &Load| Load { requests: scale.scaled(load.requests / share), ..*load };
        carried.map(scaled).collect()
    }
}

/// Figures that a program reports of a load that it has carried.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct PeerFigures {
    /// Operations a second.
    rate: f64,
    /// Number of operations that it did, if that may be more than it was asked for.
    operations: Option<u64>,
    /// Its processor time while it carried the load, if it reports that apart from what went before.
    cpu: Option<Duration>,
    /// Median and 99th percentile of the gets' latency, if it reports them.
    gets: Option<(Duration, Duration)>,
}

/// A load generator.
trait Peer {
    /// Returns the software that brings it.
    fn software(&self) -> &'static Software;

    /// Returns the software that builds it, beside the one that fetches it.
    fn builder(&self) -> Option<&'static Software> {
        None
    }

    /// Returns the path of its program, for a peer that is installed as a folder.
    fn program(&self, found: PathBuf) -> PathBuf {
        found
    }

    /// Describes in a sentence what it does differently from the others; may be empty.
    fn remark(&self) -> &'static str {
        ""
    }

    /// Returns the option that prints its version, if no pinned one is installed.
    fn version_option(&self) -> &'static str {
        "--version"
    }

    /// Returns true if it can carry the load at all.
    fn can(&self, _load: &Load) -> bool {
        true
    }

    /// Makes the commands that write the records that it will read; `tool` is the peer on the clients' processors.
    fn fill(
        &self,
        _target: &Target,
        _tool: &dyn Fn() -> Command,
    ) -> Result<Vec<Command>, StepFailure> {
        Ok(Vec::new())
    }

    /// Makes the command that carries the load.
    fn carry(&self, target: &Target, tool: Command, load: &Load) -> Result<Command, StepFailure>;

    /// Reads its figures out of its output; `None` if they are not there.
    fn figures(&self, said: &str, load: &Load) -> Option<PeerFigures>;
}

/// A program of the table that is installed.
struct Present {
    peer: &'static dyn Peer,
    program: PathBuf,
    version: String,
}

/// Builds kvdyno, installs the peers, runs all in turns and writes the tables.
///
/// # Errors
/// If a build, a run, or a server fails. A peer that cannot be installed is no error: the page says so.
pub fn bench_peers(options: &Options) -> Result<(), StepFailure> {
    let Options { only, pairs, scale } = options;
    let extent = Extent { only: Vec::new(), pairs: *pairs, scale: *scale };
    extent.check()?;
    let all = System::value_variants();
    let systems = if only.is_empty() { all } else { &only[..] };
    let mut sections = Vec::new();
    for &system in systems {
        let text = one_server(system, &extent)?;
        println!("\n{text}");
        sections.push(Section { name: system.section(), text });
    }
    if extent.scale < 1.0 {
        println!("a scaled run: docs/PERFORMANCE.md stays as it is");
        return Ok(());
    }
    page::write(&root().join("docs/PERFORMANCE.md"), &sections)
}

fn one_server(system: System, extent: &Extent) -> Result<String, StepFailure> {
    let mut build = steps::cargo();
    build.args(["build", "--package", "kvdyno"]).args(steps::BY_DIST);
    if let Some(feature) = system.feature() {
        build.args(["--features", feature]);
    }
    steps::run(&mut build)?;
    let (mut present, mut absent) = (Vec::new(), Vec::new());
    for peer in system.peers() {
        match installed(peer) {
            Ok(peer) => present.push(peer),
            Err(why) => absent.push(format!("{} is absent: {why}", peer.software().name)),
        }
    }
    let target = Target::start(system.words(), system.records())?;
    wire::load_records(&target, system.section())?;
    for present in &present {
        let tool = || target.client(&present.program);
        for mut command in present.peer.fill(&target, &tool)? {
            child::run(&mut command)?;
        }
    }
    let mut text = table::HEAD.to_owned();
    for load in &system.loads(extent) {
        let rows = in_turns(system, &target, &present, load, extent.pairs)?;
        text += &table::rows(load, &rows);
    }
    text += &format!(
        "\n{}, {CONNECTIONS} connections, {} records of 100 bytes.",
        target.describe(),
        target.records()
    );
    let two_workers = peak_with_two_workers(system, &target, extent)?;
    text += &format!(
        " kvdyno with two workers on all processors has at most {two_workers:.1} MiB with these \
         records. {}\n\n",
        machine::describe()
    );
    for Present { peer, version, .. } in &present {
        text += &format!("{}: {version}. {}\n", peer.software().name, peer.remark());
    }
    for why in &absent {
        text += &format!("{why}\n");
    }
    Ok(text)
}

/// Installs the peer if it is not there. Returns why it cannot, in one line.
fn installed(peer: &'static dyn Peer) -> Result<Present, String> {
    let software = peer.software();
    let one_line = |error: &dyn std::fmt::Display| {
        let text = error.to_string();
        text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default().to_owned()
    };
    let report = |line: &str| println!("\n$ {line}");
    let wanted: Vec<_> = [software].into_iter().chain(peer.builder()).collect();
    let got = install::install(&wanted, &report).map_err(|error| one_line(&error));
    // A peer that was found needs no installing.
    let found = software.find().ok_or_else(|| match (got, &software.source) {
        (Err(why), SoftwareSource::Debian { .. }) => {
            format!("it is not in the search path, and {why}")
        }
        (Err(why), _) => why,
        (Ok(()), _) => "it is not where it was installed".to_owned(),
    })?;
    let program = peer.program(found);
    let version = match software.version {
        "" => {
            let mut ask = Command::new(&program);
            let said = ask.arg(peer.version_option()).output().map_err(|error| one_line(&error))?;
            let line = one_line(&String::from_utf8_lossy(&said.stdout));
            line.trim_start_matches(software.name).trim_start().to_owned()
        }
        pinned => pinned.to_owned(),
    };
    Ok(Present { peer, program, version })
}

/// Runs every program once in each turn, the order changed from turn to turn, after an uncounted one.
fn in_turns(
    system: System,
    target: &Target,
    present: &[Present],
    load: &Load,
    turns: usize,
) -> Result<Vec<Row>, StepFailure> {
    let able: Vec<&Present> = present.iter().filter(|present| present.peer.can(load)).collect();
    let mut rows = vec![Row::new("kvdyno")];
    rows.extend(able.iter().map(|present| Row::new(present.peer.software().name)));
    for turn in 0..=turns {
        for place in 0..rows.len() {
            let number = (place + turn) % rows.len();
            let figures = match number.checked_sub(1) {
                None => table::of_kvdyno(&wire::carry(target, system.section(), load)?),
                Some(peer) => of_peer(able[peer], target, load)?,
            };
            println!("turn {turn} of {turns}: {} {figures}", rows[number].name);
            if turn > 0 {
                rows[number].add(figures);
            }
        }
    }
    Ok(rows)
}

fn of_peer(present: &Present, target: &Target, load: &Load) -> Result<table::Figures, StepFailure> {
    let Present { peer, program, .. } = present;
    let mut command = peer.carry(target, target.client(program), load)?;
    let used = child::run(&mut command)?;
    let figures = peer.figures(&used.said, load).ok_or_else(|| {
        StepFailure::Found(format!(
            "{} does not tell what it did: {}",
            program.display(),
            used.said
        ))
    })?;
    let (operations, cpu) =
        (figures.operations.unwrap_or(load.requests), figures.cpu.unwrap_or(used.cpu));
    Ok(table::Figures {
        cpu_us: cpu.as_secs_f64() * 1e6 / operations as f64,
        rate: figures.rate,
        memory_mib: used.peak_rss as f64 / f64::from(1 << 20),
        gets: figures.gets,
    })
}

/// Returns the most memory of a run with two worker threads, MiB.
fn peak_with_two_workers(
    system: System,
    target: &Target,
    extent: &Extent,
) -> Result<f64, StepFailure> {
    let load = system.loads(extent)[0];
    let ran = wire::carry_with(target, system.section(), &load, 2)?;
    Ok(ran.peak_rss as f64 / f64::from(1 << 20))
}

/// Returns the folder for files that a peer reads.
fn folder(peer: &str) -> Result<PathBuf, StepFailure> {
    let folder = root().join("target/bench/peers").join(peer);
    std::fs::create_dir_all(&folder).map_err(StepFailure::file(&folder))?;
    Ok(folder)
}

/// Writes a file that a peer reads.
fn write(path: &Path, text: &str) -> Result<(), StepFailure> {
    std::fs::write(path, text).map_err(StepFailure::file(path))
}

/// Reads so many milliseconds, as most programs print latencies.
fn milliseconds(text: &str) -> Option<Duration> {
    let ms: f64 = text.trim_matches('"').parse().ok()?;
    Duration::try_from_secs_f64(ms / 1e3).ok()
}

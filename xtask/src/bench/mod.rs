//! `cargo xtask bench`: kvdyno alone, and compared with bare loops over the same engines and servers, in turns on
//! this machine; writes the figures into docs/PERFORMANCE.md.

mod account;
mod bare;
mod board;
mod child;
mod conductor;
mod disk;
mod engine;
pub mod instructions;
mod kvdyno;
mod load;
mod machine;
mod memory;
mod null;
mod open;
mod ownership;
pub(crate) mod page;
mod pairs;
pub mod peers;
mod target;
mod view;
mod wire;

use clap::{Args, ValueEnum};

use crate::servers;
use crate::steps::{self, StepFailure};

/// Options of `cargo xtask bench`.
#[derive(Debug, Args)]
pub struct Options {
    /// Benchmarks to run; all if none is named
    #[arg(value_enum)]
    only: Vec<Subject>,
    /// Pairs of runs, in turns; 15 or more for the page
    #[arg(long, default_value_t = 15)]
    pairs: usize,
    /// Share of the full number of requests; below 1 for a quick look that leaves the page alone
    #[arg(long, default_value_t = 1.0)]
    scale: f64,
}

/// A benchmark.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Subject {
    /// The load loop alone
    Null,
    /// Random gets, beside a bare loop over the same engine
    Lmdb,
    /// Client CPU for each operation, beside a bare loop over the same server
    Redis,
    /// The same for Memcached
    Memcached,
    /// Lateness of requests with open arrivals
    Open,
    /// The client's memory over runs of different lengths
    Memory,
    /// Inserts with every write accounted for, and reading them back
    Account,
    /// Writes to stores on disks of their own, beside the machine's own file system; as root
    Disk,
    /// Cost of drawing operations of other agents' records
    Ownership,
    /// Resources of a conductor of many agents, and time between the begins of agents
    Conductor,
    /// Time until the page of a run of 24 hours is there, and size of what a browser gets
    View,
    /// Time to make a board of 1,000 results, and size of its pages
    Board,
    /// Random gets from RocksDB, the system's library
    Rocksdb,
}

/// Testbed of Redis: its server uses the memory that all programs' records take.
const REDIS: &str = "redis";
/// Testbed of Memcached, with room for records of several programs, so that nothing is evicted.
const MEMCACHED: &str = "memcached?memory=4GiB";

/// Findings of a benchmark, ready for the page.
#[derive(Clone)]
pub(crate) struct Section {
    /// Name of its place on the page.
    pub name: &'static str,
    /// Text as Markdown.
    pub text: String,
}

/// Builds kvdyno, runs the benchmarks and writes their sections of the page.
///
/// # Errors
/// If a build, a run, or a server fails.
pub fn bench(options: &Options) -> Result<(), StepFailure> {
    options.check()?;
    let mut build = steps::cargo();
    build.args(["build", "--package", "kvdyno", "--features", "simulated-agents"]);
    steps::run(build.args(steps::BY_DIST))?;
    let all = Subject::value_variants();
    let subjects = if options.only.is_empty() { all } else { &options.only[..] };
    if subjects.iter().any(|subject| subject.needs_servers()) {
        servers::ensure_all()?;
    }
    let machine = Section { name: "machine", text: machine::describe() };
    println!("\n{}", machine.text);
    for subject in subjects {
        let section = match subject {
            Subject::Null => null::run(options)?,
            Subject::Lmdb => engine::LMDB.run(options)?,
            Subject::Open => open::run(options)?,
            Subject::Memory => memory::run(options)?,
            Subject::Account => account::run(options)?,
            Subject::Disk => disk::run(options)?,
            Subject::Ownership => ownership::run(options)?,
            Subject::Conductor => conductor::run(options)?,
            Subject::Board => board::run(options)?,
            Subject::View => view::run(options)?,
            Subject::Redis => wire::run("redis", REDIS, options)?,
            Subject::Memcached => wire::run("memcached", MEMCACHED, options)?,
            Subject::Rocksdb => engine::ROCKSDB.run(options)?,
        };
        println!("\n{}", section.text);
        if options.scale == 1.0 {
            // The page is written at once: a later benchmark that fails loses nothing of this one.
            page::write(&steps::root().join("docs/PERFORMANCE.md"), &[machine.clone(), section])?;
        }
    }
    if options.scale < 1.0 {
        println!("a scaled run: docs/PERFORMANCE.md stays as it is");
    }
    Ok(())
}

impl Subject {
    /// Returns true if the benchmark measures servers of other projects, which may have to be installed.
    fn needs_servers(self) -> bool {
        use Subject::{Conductor, Disk, Memcached, Ownership, Redis};
        matches!(self, Conductor | Disk | Memcached | Ownership | Redis)
    }
}

impl Options {
    fn check(&self) -> Result<(), StepFailure> {
        if self.pairs == 0 || !(self.scale > 0.0 && self.scale <= 1.0) {
            return Err(StepFailure::Found(
                "--pairs is from 1, --scale from above 0 to 1".to_owned(),
            ));
        }
        Ok(())
    }

    /// Returns this many requests at the scale asked for.
    fn scaled(&self, requests: u64) -> u64 {
        ((requests as f64 * self.scale) as u64).max(1)
    }
}

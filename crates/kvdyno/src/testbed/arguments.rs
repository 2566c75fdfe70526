//! The command line of `kvdyno testbed`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};
use kvdyno_core::ground::units;

use crate::quantity::hinted;

/// `kvdyno testbed`.
#[derive(Args, Debug)]
pub struct TestbedArguments {
    /// What to do.
    #[command(subcommand)]
    pub command: TestbedCommand,
}

/// The verbs.
#[derive(Subcommand, Debug)]
pub enum TestbedCommand {
    /// Start a testbed: redis, redis-sharded:8, 'redis?persistence=aof-always', FILE.toml.
    Up {
        /// Kind, number of nodes and settings, as `kvdyno testbed kinds` lists them, or a file that
        /// describes a deployment of your own.
        #[arg(value_name = "NAME[:NODES][?SETTING=VALUE&…]")]
        testbed: String,
        /// Come back once it is up; `kvdyno testbed down` ends it.
        #[arg(long)]
        detach: bool,
    },
    /// End testbeds that are up.
    Down {
        /// As `kvdyno testbed list` names them; a kind's name means all of that kind [default: the
        /// only one].
        #[arg(value_name = "NAME")]
        testbeds: Vec<String>,
        /// All of them.
        #[arg(long)]
        all: bool,
    },
    /// Do something to nodes of a testbed that is up.
    Fault(FaultArguments),
    /// List the testbeds that are up.
    List,
    /// List the kinds of testbeds with their settings.
    Kinds,
    /// Install what a kind of testbed needs, from Debian's packages or into the cache folder.
    Install {
        /// Names of kinds.
        #[arg(required = true, value_name = "NAME")]
        kinds: Vec<String>,
    },
    /// Hold a testbed up: what kvdyno starts itself as.
    #[command(hide = true)]
    Keep,
    /// Be a node of the testbed `sim`: what its keeper starts.
    #[command(hide = true)]
    SimNode {
        /// File that tells it which.
        settings: PathBuf,
    },
}

/// `kvdyno testbed fault`.
#[derive(Args, Debug)]
pub struct FaultArguments {
    /// What to do.
    #[arg(value_enum)]
    pub fault: Word,
    /// Names of nodes, to all of which it is done at one moment; none for `add`.
    pub nodes: Vec<String>,
    /// partition: from whom they are cut off.
    #[arg(long, value_enum, default_value_t)]
    pub from: From,
    /// partition: which packets are dropped, as the nodes see it.
    #[arg(long, value_enum, default_value_t)]
    pub way: Way,
    /// lossy: share of packets lost, such as 10%.
    #[arg(long, value_name = "SHARE", value_parser = hinted(units::parse_share))]
    pub loss: Option<f64>,
    /// slow: bytes a second each way, such as 1MB/s.
    #[arg(long, value_name = "BYTES/s", value_parser = hinted(units::parse_bandwidth))]
    pub bandwidth: Option<u64>,
    /// slow: how much longer each packet takes that they send, such as 20ms.
    #[arg(long, value_name = "TIME", value_parser = hinted(units::parse_duration))]
    pub delay: Option<Duration>,
    /// Which testbed, as `kvdyno testbed list` names it [default: the only one].
    #[arg(long, value_name = "NAME")]
    pub testbed: Option<String>,
    /// Also on a deployment that a file describes, without asking.
    #[arg(long)]
    pub yes: bool,
}

/// What can be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Word {
    /// End it with SIGKILL.
    Kill,
    /// End it cleanly.
    Stop,
    /// SIGSTOP.
    Pause,
    /// SIGCONT.
    Resume,
    /// Start it again over its data.
    Restart,
    /// Cut it off from others.
    Partition,
    /// Lose some of its packets.
    Lossy,
    /// Give it less bandwidth, more delay, or both.
    Slow,
    /// Undo what was done to its network.
    Heal,
    /// Fill its disk.
    DiskFull,
    /// Free its disk.
    DiskFree,
    /// Let it rewrite its log of writes.
    Rewrite,
    /// Let it merge its files.
    Compact,
    /// Take it out of the cluster.
    Remove,
    /// Add one more node.
    Add,
}

/// From whom nodes are cut off.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum From {
    /// Other nodes and clients.
    #[default]
    All,
    /// Other nodes; clients still reach them.
    Nodes,
    /// Clients; other nodes still reach them.
    Clients,
}

/// Which packets are dropped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Way {
    /// All.
    #[default]
    Both,
    /// Those that they are sent.
    In,
    /// Those that they send.
    Out,
}

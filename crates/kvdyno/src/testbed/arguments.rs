//! The command line of `kvdyno testbed`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::wanted_action::FaultArguments;

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
        /// Return once it is up; `kvdyno testbed down` ends it.
        #[arg(long)]
        detach: bool,
    },
    /// End testbeds that are up.
    Down {
        /// Names as `kvdyno testbed list` shows them, or a kind, for all of that kind [default: the
        /// only testbed].
        #[arg(value_name = "NAME")]
        testbeds: Vec<String>,
        /// End all testbeds but those of commands that still run.
        #[arg(long)]
        all: bool,
        /// With --all: end also those of commands that still run.
        #[arg(long, requires = "all")]
        force: bool,
    },
    /// Do a fault, or its repair, to nodes of a testbed that is up: `kvdyno testbed fault FAULT --help` tells its options.
    Fault(FaultArguments),
    /// List the testbeds that are up.
    List,
    /// List the kinds of testbeds with their settings.
    Kinds,
    /// Install what a kind of testbed needs, from Debian's packages or into the cache folder.
    Install {
        /// Kinds of testbeds; `network` and `disk` stand for the tools of `network=own` and `disk=…`.
        #[arg(required = true, value_name = "NAME")]
        kinds: Vec<String>,
    },
    /// Hold a testbed up: what kvdyno starts itself as.
    #[command(hide = true)]
    Keep,
    /// Be the device below a node's file system: what a testbed's keeper starts.
    #[command(hide = true)]
    DiskDevice,
    /// Be the node of the testbed `engine`: what its keeper starts.
    #[command(hide = true)]
    EngineNode {
        /// File that tells it which.
        settings: PathBuf,
    },
    /// Be a node of the testbed `sim`: what its keeper starts.
    #[command(hide = true)]
    SimNode {
        /// File that tells it which.
        settings: PathBuf,
    },
}

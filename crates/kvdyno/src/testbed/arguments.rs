//! The command line of `kvdyno testbed`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::wanted_action::FaultArguments;

/// `kvdyno testbed`.
#[derive(Args, Debug)]
pub struct TestbedArguments {
    /// Command to run.
    #[command(subcommand)]
    pub command: TestbedCommand,
}

/// Commands of `kvdyno testbed`.
#[derive(Subcommand, Debug)]
pub enum TestbedCommand {
    /// Start a testbed: redis, redis-sharded:8, 'redis?persistence=aof-always', FILE.toml.
    Up {
        /// Kind, number of nodes and settings, as `kvdyno testbed kinds` lists them, or a file that describes a
        /// deployment of your own.
        #[arg(value_name = "NAME[:NODES][?SETTING=VALUE&…]")]
        testbed: String,
        /// Return once the testbed is up; `kvdyno testbed down` ends it.
        #[arg(long)]
        detach: bool,
    },
    /// End testbeds that are up.
    Down {
        /// Names as `kvdyno testbed list` shows them, or a kind: all testbeds of that kind [default: the only testbed].
        #[arg(value_name = "NAME")]
        testbeds: Vec<String>,
        /// End all testbeds but those of commands that still run.
        #[arg(long)]
        all: bool,
        /// With --all: end also those of commands that still run.
        #[arg(long, requires = "all")]
        force: bool,
    },
    /// Inject a fault into nodes of a testbed that is up, or repair one: `kvdyno testbed fault FAULT --help` shows
    /// its options.
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
    /// Hold a testbed up: kvdyno starts itself with this command.
    #[command(hide = true)]
    Keep,
    /// Be the device below a node's file system: a testbed's keeper starts this.
    #[command(hide = true)]
    DiskDevice,
    /// Be the node of the testbed `engine`: its keeper starts this.
    #[command(hide = true)]
    EngineNode {
        /// File that says which node.
        settings: PathBuf,
    },
    /// Be a node of the testbed `sim`: its keeper starts this.
    #[command(hide = true)]
    SimNode {
        /// File that says which node.
        settings: PathBuf,
    },
}

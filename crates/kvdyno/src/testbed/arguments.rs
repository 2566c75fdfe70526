//! The command line of `kvdyno testbed`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::wanted_action::WantedAction;

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

/// `kvdyno testbed fault`.
#[derive(Args, Debug)]
pub struct FaultArguments {
    /// What to do.
    #[command(flatten)]
    pub wanted: WantedAction,
    /// Names of nodes, to all of which it is done at one moment; none for `add`.
    pub nodes: Vec<String>,
    /// Which testbed, as `kvdyno testbed list` names it [default: the only one].
    #[arg(long, value_name = "NAME")]
    pub testbed: Option<String>,
    /// Also on a deployment that a file describes, without asking.
    #[arg(long)]
    pub yes: bool,
}

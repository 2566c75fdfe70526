//! The command line of `kvdyno deployment`, and of a run with a deployment around it.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};
use kvdyno_core::ground::units;

use crate::quantity::hinted;

/// `kvdyno deployment`.
#[derive(Args, Debug)]
pub struct DeploymentArguments {
    /// Command to run.
    #[command(subcommand)]
    pub command: DeploymentCommand,
}

/// Commands of `kvdyno deployment`.
#[derive(Subcommand, Debug)]
pub enum DeploymentCommand {
    /// Show the steps of a deployment file, its variables, and what its machines cost; run nothing.
    Plan(DeploymentFileArguments),
    /// Create the machines of a deployment file and prepare them; they stay until `kvdyno deployment down`, or until they
    /// expire.
    Up {
        /// File and variables.
        #[command(flatten)]
        file: DeploymentFileArguments,
        /// Create without asking first.
        #[arg(long)]
        yes: bool,
    },
    /// Show what of a deployment file is up: its machines, when they end, and what its `list` finds.
    Status {
        /// Deployment file.
        #[arg(value_name = "FILE")]
        file: PathBuf,
    },
    /// Let a deployment live longer, by the file's command `extend`.
    Extend {
        /// Deployment file.
        #[arg(value_name = "FILE")]
        file: PathBuf,
        /// Time from now after which it expires.
        #[arg(long = "by", value_name = "TIME", value_parser = hinted(units::parse_duration))]
        by: Duration,
    },
    /// Destroy what is up of a deployment file, and look that nothing is left.
    Down {
        /// Deployment file.
        #[arg(value_name = "FILE")]
        file: PathBuf,
    },
    /// Destroy what a kvdyno that was killed has left behind, of one file or of all.
    Sweep {
        /// Deployment file [default: all that were left behind].
        #[arg(value_name = "FILE")]
        file: Option<PathBuf>,
    },
}

/// A deployment file with its variables.
#[derive(Args, Debug)]
pub struct DeploymentFileArguments {
    /// Deployment file (docs/DEPLOYMENTS.md).
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// Value of a variable of the file; may be given several times.
    #[arg(long = "var", value_name = "NAME=VALUE")]
    pub variables: Vec<String>,
}

/// Options of a run with a deployment around it.
#[derive(Args, Debug, Default)]
#[command(next_help_heading = "Deployment")]
pub struct DeploymentOptions {
    /// Deployment file: its machines are created before the run, and destroyed after it (docs/DEPLOYMENTS.md).
    #[arg(long = "deployment", value_name = "FILE", group = "carriers", conflicts_with_all = ["store", "testbed"])]
    pub deployment: Option<PathBuf>,
    /// Value of a variable of the deployment file; may be given several times.
    #[arg(long = "var", value_name = "NAME=VALUE", requires = "deployment")]
    pub variables: Vec<String>,
}

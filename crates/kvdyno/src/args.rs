//! The command line. What is typed here is stored in the result.

mod deployment;
mod results;

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
use kvdyno_core::ground::units;
use kvdyno_core::load::Pacing;
use kvdyno_core::suite::option_help;
use kvdyno_core::workload::CurveText;
use serde::{Deserialize, Serialize};

use crate::fleet::{OnAgentLost, ReadsFrom};
use crate::listen_address;
use crate::quantity::{curve, duration, hinted};
use crate::testbed::TestbedArguments;

pub use deployment::{
    DeploymentArguments, DeploymentCommand, DeploymentFileArguments, DeploymentOptions,
};
pub use results::{
    BoardArguments, CompareArguments, ExportArguments, ExportFormat, ExportTable, ReportArguments,
    ViewArguments,
};

/// Measures key-value stores: how fast, how predictable, with every read checked.
#[derive(Parser, Debug)]
#[command(name = "kvdyno", version, about, max_term_width = 100)]
pub struct Arguments {
    /// Command to run.
    #[command(subcommand)]
    pub command: Command,
}

/// Returns what was typed, as a result stores it. Paths need not be UTF-8: bytes that are not stand there as U+FFFD.
pub fn command_line() -> Vec<String> {
    std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect()
}

/// End of `kvdyno capacity --help`.
const CAPACITY_EXAMPLES: &str = "\
Examples:
  kvdyno capacity --store redis://127.0.0.1:6379 --slo 'p99<10ms,errors==0'
  kvdyno capacity --testbed memcached:2 --records 100k --mix get=90,update=10 --slo 'p99(get)<5ms'";

/// The verbs.
#[derive(Subcommand, Debug)]
pub enum Command {
    /// Run a suite, or a load that options describe, against one store or several.
    Run(Box<RunArguments>),
    /// Search for the highest rate at which a store meets conditions, and tell how it scales with its clients
    /// (docs/CAPACITY.md).
    // A probe stops by time: `--requests` is refused, and its help would promise otherwise.
    #[command(after_help = CAPACITY_EXAMPLES, mut_arg("requests", |option| option.hide(true)))]
    Capacity(Box<MeasureArguments>),
    /// Compare two results, two folders of trials, or the stores of one run: which is
    /// faster, and how sure that is.
    Compare(CompareArguments),
    /// Show a result, and write its report again.
    Report(ReportArguments),
    /// Serve the page of a result for a browser, also of a run that still goes on.
    View(ViewArguments),
    /// Make a static site of many results: rankings by suite, histories by store.
    Board(BoardArguments),
    /// Write a result's figures for another tool.
    Export(ExportArguments),
    /// Compute what servers cost, how many operations that price buys, and how many servers a load needs.
    Cost(CostArguments),
    /// Repeat the run of a result.
    Rerun(RerunArguments),
    /// List the stores: what each can do, and what it promises.
    Stores,
    /// List the built-in suites, or show one.
    Suites(SuitesArguments),
    /// Write a suite with comments, to start from.
    #[command(visible_alias = "init")]
    New(NewArguments),
    /// Check whether this machine and a store are fit for measuring.
    Check(CheckArguments),
    /// Find out which stores meet a file of requirements.
    Winnow(WinnowArguments),
    /// Start and end throwaway deployments of real servers.
    Testbed(TestbedArguments),
    /// Create, prepare and destroy machines by the command lines of a deployment file (docs/DEPLOYMENTS.md).
    Deployment(DeploymentArguments),
    /// Carry a part of the load of a `kvdyno run --agents`, its conductor (docs/FLEET.md).
    Agent(AgentArguments),
    /// Speak as so many agents do, and carry no load.
    #[cfg(feature = "simulated-agents")]
    #[command(hide = true)]
    SimulatedAgents(SimulatedAgentsArguments),
    /// Print the completions for a shell: `kvdyno completions bash > /etc/bash_completion.d/kvdyno`.
    Completions(CompletionsArguments),
    /// Write manual pages: `kvdyno man /usr/local/share/man/man1`.
    Man(ManArguments),
}

impl Command {
    /// Returns true for a command before which a user is told of deployments that were left behind.
    pub fn may_tell(&self) -> bool {
        match self {
            Command::Run(_) | Command::Capacity(_) | Command::Rerun(_) | Command::Winnow(_) => true,
            Command::Deployment(arguments) => !matches!(
                arguments.command,
                DeploymentCommand::Sweep { .. }
                    | DeploymentCommand::Down { .. }
                    | DeploymentCommand::Status { .. }
            ),
            _ => false,
        }
    }
}

/// `kvdyno agent`.
#[derive(Args, Debug)]
pub struct AgentArguments {
    /// Address at which the conductor listens.
    #[arg(long, value_name = "HOST:PORT")]
    pub conductor: String,
    /// Time to keep trying while the conductor does not answer yet.
    #[arg(long, value_name = "TIME", default_value = "1m", value_parser = hinted(units::parse_duration))]
    pub wait: Duration,
    /// Name of this machine in the table of agents [default: its host name].
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
    /// Serve one run after the other, with the same KVDYNO_TOKEN, until Ctrl-C or SIGTERM.
    #[arg(long, conflicts_with = "wait")]
    pub stay: bool,
}

/// `kvdyno simulated-agents`.
#[cfg(feature = "simulated-agents")]
#[derive(Args, Debug)]
pub struct SimulatedAgentsArguments {
    /// Address at which the conductor listens.
    #[arg(long, value_name = "HOST:PORT")]
    pub conductor: String,
    /// Number of agents to simulate.
    #[arg(long)]
    pub count: u32,
}

/// `kvdyno suites`.
#[derive(Args, Debug)]
pub struct SuitesArguments {
    /// Command; without one all built-in suites are listed.
    #[command(subcommand)]
    pub command: Option<SuitesCommand>,
}

/// Commands of `kvdyno suites`.
#[derive(Subcommand, Debug)]
pub enum SuitesCommand {
    /// Print the file of a built-in suite, to read or to change.
    Show {
        /// Name of the suite, as `kvdyno suites` lists it.
        name: String,
    },
}

/// `kvdyno new`.
#[derive(Args, Debug)]
pub struct NewArguments {
    /// File to write, such as mine.toml; an existing file is not overwritten.
    pub file: PathBuf,
}

/// Time for which the page of a run is served, and rights of the page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ConsoleArgument {
    /// Serve the page while the run lasts.
    Run,
    /// Serve the page until Ctrl-C.
    Stay,
    /// Let the page change the rate, end the phase, stop the run, and break and repair a testbed that kvdyno has set
    /// up.
    Control,
}

/// `kvdyno completions`.
#[derive(Args, Debug)]
pub struct CompletionsArguments {
    /// Shell for which completions are printed.
    #[arg(value_enum)]
    pub shell: Shell,
}

/// `kvdyno man`.
#[derive(Args, Debug)]
pub struct ManArguments {
    /// Folder that the pages are written to: one of kvdyno, and one of each command.
    pub folder: PathBuf,
}

/// Treatment of records of the dataset that the store holds already.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DataPolicy {
    /// Refuse to run if the store holds any.
    #[default]
    Fresh,
    /// Measure over them; until the first read or write of such a record, reads of it are checked by their stamps only.
    Reuse,
    /// Delete the records whose keys kvdyno writes, and no others.
    Wipe,
}

/// `kvdyno run`.
#[derive(Args, Debug)]
pub struct RunArguments {
    /// A built-in suite, a suite file, or `ycsb:FILE` [default: quick, or the load that --records, --value, --mix or
    /// --keys describe].
    pub suite: Option<String>,
    /// Targets, load and options of the run.
    #[command(flatten)]
    pub measure: MeasureArguments,
}

/// Targets, load and options of a run of any suite.
#[derive(Args, Debug)]
pub struct MeasureArguments {
    /// Store to measure, such as redis://127.0.0.1:6379; may be given several times.
    #[arg(long, value_name = "URL")]
    pub store: Vec<String>,
    /// Throwaway deployment to set up, measure and take down, such as redis-sharded:4; may be given
    /// several times (`kvdyno testbed kinds` lists them).
    #[arg(long, value_name = "NAME[:NODES][?SETTING=VALUE&…]")]
    pub testbed: Vec<String>,
    /// Deployment around the run.
    #[command(flatten)]
    pub deployment: DeploymentOptions,
    /// Changes to the suite.
    #[command(flatten)]
    pub shape: ShapeArguments,
    /// Load, by options.
    #[command(flatten)]
    pub load: LoadArguments,
    /// Execution and output of the run.
    #[command(flatten)]
    pub execution: ExecutionArguments,
}

/// Changes that options make to a suite.
#[derive(Args, Debug, Default)]
#[command(next_help_heading = "Changes to the suite")]
pub struct ShapeArguments {
    /// Run with this share of the records and requests of the suite, such as 0.01 for 1 %.
    #[arg(long, value_name = "SHARE")]
    pub scale: Option<f64>,
    /// Value of the suite's key `clients`.
    #[arg(short = 'c', long, value_name = "N", help = option_help("clients"))]
    pub clients: Option<u32>,
    /// Value of the suite's key `rate`.
    #[arg(short = 'r', long, value_name = "RATE", value_parser = curve, help = option_help("rate"))]
    pub rate: Option<CurveText>,
    /// Value of the suite's key `slo`.
    #[arg(long, value_name = "CONDITIONS", help = option_help("slo"))]
    pub slo: Option<String>,
    /// Value of the suite's key `duration`.
    #[arg(short = 'd', long, value_name = "TIME", value_parser = duration, help = option_help("duration"))]
    pub duration: Option<Duration>,
    /// Value of the suite's key `requests`.
    #[arg(short = 'n', long, value_name = "COUNT", value_parser = hinted(units::parse_count), help = option_help("requests"))]
    pub requests: Option<u64>,
    /// Value of the suite's key `seed`.
    #[arg(long, value_name = "N", help = option_help("seed"))]
    pub seed: Option<u64>,
    /// Value of the suite's key `linearizability`.
    #[arg(long, help = option_help("linearizability"))]
    pub linearizability: bool,
    /// Change any key of the suite: --set records=1M, --set get.clients=50; may be given several times.
    #[arg(long, value_name = "[PHASE.]KEY=VALUE")]
    pub set: Vec<String>,
}

/// Options of the load: changes to that of the suite, or a load without a suite.
#[derive(Args, Debug, Default)]
#[command(next_help_heading = "Load (with a suite: instead of what it says; with none: all of it)")]
pub struct LoadArguments {
    /// Value of the suite's key `records`.
    #[arg(long, value_name = "COUNT", value_parser = hinted(units::parse_count), help = option_help("records"))]
    pub records: Option<u64>,
    /// Value of the suite's key `value`.
    #[arg(long, value_name = "SIZE", help = option_help("value"))]
    pub value: Option<String>,
    /// Value of the suite's key `mix`.
    #[arg(long, value_name = "MIX", help = option_help("mix"))]
    pub mix: Option<String>,
    /// Value of the suite's key `keys`.
    #[arg(long, value_name = "NAME", help = option_help("keys"))]
    pub keys: Option<String>,
    /// Value of the suite's key `pipeline`.
    #[arg(long, value_name = "N", help = option_help("pipeline"))]
    pub pipeline: Option<u32>,
}

impl LoadArguments {
    /// Returns true if the options describe a load without a suite.
    pub fn describe_a_load(&self) -> bool {
        let LoadArguments { records, value, mix, keys, pipeline: _ } = self;
        records.is_some() || value.is_some() || mix.is_some() || keys.is_some()
    }
}

/// Options of a run: its conduct, and its output.
#[derive(Args, Debug)]
pub struct ExecutionArguments {
    /// Execution of the run.
    #[command(flatten)]
    pub conduct: ConductArguments,
    /// Output of the run.
    #[command(flatten)]
    pub output: OutputArguments,
}

/// Conduct of a run, as typed; [`RunConfig`](crate::run_config::RunConfig) is made from it.
#[derive(Args, Debug)]
#[command(next_help_heading = "Execution")]
pub struct ConductArguments {
    /// Treatment of records of the dataset that the store holds already.
    #[arg(long, value_enum, default_value_t)]
    pub data: DataPolicy,
    /// Do not check the values that are read.
    #[arg(long)]
    pub no_verify: bool,
    /// Repeat the run N times, the stores in turns (A B B A …), each time from the same wiped state.
    #[arg(long, value_name = "N", default_value_t = 1,
          value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub trials: u32,
    /// Let agents carry the load together. local:N starts N processes on this machine, each with its share of the
    /// processors; N waits for N agents that join at --listen; auto is for Slurm, MPI, Kubernetes or SkyPilot, which
    /// start this same command on every machine (auto:all: the conductor's machine carries load, too); FILE.toml
    /// starts one on each [[load]] machine of a deployment file.
    #[arg(long, value_name = "N", group = "carriers")]
    pub agents: Option<String>,
    /// Address at which the conductor listens for agents; it prints the line that starts one. A port alone is of this
    /// machine only, a host alone takes a free port.
    #[arg(long, value_name = listen_address::FORM, value_parser = listen_address::parse, requires = "carriers")]
    pub listen: Option<String>,
    /// Time to wait for agents [default: without limit for agents that join by hand, else 10m].
    #[arg(long, value_name = "TIME", requires = "carriers", value_parser = hinted(units::parse_duration))]
    pub wait: Option<Duration>,
    /// Records that agents read [default: own; anywhere with more than 16 agents, and with fewer where connections
    /// have pipelines].
    #[arg(long, value_name = "WHERE", value_enum, requires = "carriers")]
    pub reads: Option<ReadsFrom>,
    /// Fate of the run when an agent is lost: it ends with the phase, or goes on. If it goes on, that phase is
    /// invalid, and from the next phase on the other agents carry all of the load.
    #[arg(long, value_name = "WHAT", value_enum, default_value_t, requires = "carriers")]
    pub on_agent_lost: OnAgentLost,
    /// Address of rank 0, for --agents auto where the engine does not tell it.
    #[arg(long, value_name = "HOST:PORT", requires = "agents")]
    pub conductor: Option<String>,
    /// Carrying of the load.
    #[command(flatten)]
    pub carrying: CarryingArguments,
    /// End with exit code 2 for a suspect measurement, too, not only for an invalid one.
    #[arg(long)]
    pub strict: bool,
    /// Inject a suite's faults into a deployment that a file describes, and create one, without asking first.
    #[arg(long)]
    pub yes: bool,
    /// Compare stores although their durability or consistency differ.
    #[arg(long)]
    pub allow_unequal: bool,
    /// Cost of the servers.
    #[command(flatten)]
    pub price: PriceArguments,
}

/// Options of the output of a run.
#[derive(Args, Debug, Default)]
#[command(next_help_heading = "Output")]
pub struct OutputArguments {
    /// Folder for the result [default: a new one under kvdyno-results/].
    #[arg(short, long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Show the plan, the first operations with their requests, and what the run needs; run nothing.
    #[arg(long)]
    pub dry_run: bool,
    /// Show no progress line.
    #[arg(long)]
    pub quiet: bool,
    /// Print more: remarks, what limited each phase, and what else happened in it.
    #[arg(long, short)]
    pub verbose: bool,
    /// Print the result as JSON instead of tables.
    #[arg(long)]
    pub json: bool,
    /// Keep every event of the run in events.jsonl, beside the result (docs/RESULTS.md).
    #[arg(long)]
    pub events: bool,
    /// Serve a page that shows the run while it lasts, to browsers of this machine only; with =stay the page is
    /// served until Ctrl-C, with =control it may steer the run (docs/CONSOLE.md).
    #[arg(long, value_enum, value_name = "HOW", num_args = 0..=1, require_equals = true,
          value_delimiter = ',', default_missing_value = "run")]
    pub console: Vec<ConsoleArgument>,
    /// Serve that page at this address of this machine, with TLS, for browsers of other machines. A port alone is of this
    /// machine only, without TLS, as without this option; a host alone takes a free port.
    #[arg(long, value_name = listen_address::FORM, value_parser = listen_address::parse, requires = "console")]
    pub console_on: Option<String>,
    /// Metrics for monitoring systems.
    #[command(flatten)]
    pub metrics: MetricsArguments,
}

/// Options of metrics for monitoring systems (docs/METRICS.md).
#[derive(Args, Debug, Default)]
pub struct MetricsArguments {
    /// Serve metrics for Prometheus at http://HOST:PORT/metrics while the run lasts (docs/METRICS.md). A port alone is of
    /// this machine only, a host alone takes a free port.
    #[arg(long, value_name = listen_address::FORM, value_parser = listen_address::parse)]
    pub metrics: Option<String>,
    /// Push metrics to the OpenTelemetry collector at this URL, such as http://127.0.0.1:4318.
    #[arg(long, value_name = "URL")]
    pub otlp: Option<String>,
}

/// Options of how a load is carried; every command that carries one has them.
#[derive(Args, Debug)]
pub struct CarryingArguments {
    /// Worker threads for stores behind a network [default: half of the processors].
    #[arg(short = 't', long, value_name = "N")]
    pub threads: Option<u32>,
    /// Means by which clients wait until a request is due (open arrivals).
    #[arg(long, value_enum, default_value_t)]
    pub pace: PaceArgument,
    /// Give a phase up when requests fail and none has succeeded for this long.
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = hinted(units::parse_duration))]
    pub give_up: Duration,
    /// Time after the load that an eventually consistent store may take until its reads come right and its copies
    /// agree.
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = hinted(units::parse_duration))]
    pub settle: Duration,
}

/// Means by which clients wait until a request is due.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum PaceArgument {
    /// Sleep until 60 µs before the request is due, then poll the clock.
    #[default]
    Both,
    /// Poll the clock all the time; this takes a whole processor for each worker.
    Spin,
    /// Only sleep; requests leave as late as the system wakes clients up.
    Timer,
}

impl From<PaceArgument> for Pacing {
    fn from(argument: PaceArgument) -> Pacing {
        match argument {
            PaceArgument::Both => Pacing::Both,
            PaceArgument::Spin => Pacing::Spin,
            PaceArgument::Timer => Pacing::Timer,
        }
    }
}

/// Options of the cost of servers.
#[derive(Args, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[command(next_help_heading = "Cost")]
pub struct PriceArguments {
    /// File of prices of servers and disks [default: the example that comes with kvdyno, docs/COST.md].
    #[arg(long, value_name = "FILE")]
    pub prices: Option<String>,
    /// Servers and disks that the store ran on, by kind and number: n1-standard-8=20,local-ssd-375=4.
    #[arg(long, value_name = "KIND=N,…")]
    pub servers: Option<String>,
    /// Hours of a month [default: what the prices say].
    #[arg(long, value_name = "HOURS", requires = "servers")]
    pub hours_month: Option<f64>,
}

/// `kvdyno cost`.
#[derive(Args, Debug)]
pub struct CostArguments {
    /// Result folders or their result.json. Without any: the cost of --servers; without that, too: whether the
    /// published costs of the prices add up.
    #[arg(value_name = "RESULT")]
    pub results: Vec<PathBuf>,
    /// Cost of the servers.
    #[command(flatten)]
    pub price: PriceArguments,
    /// Tell how many servers carry this load, such as 1M/s.
    #[arg(long, value_name = "RATE", requires = "results", value_parser = hinted(units::parse_rate))]
    pub load: Option<f64>,
}

/// `kvdyno winnow`.
#[derive(Args, Debug)]
pub struct WinnowArguments {
    /// File of requirements (docs/WINNOW.md).
    #[arg(value_name = "REQUIREMENTS")]
    pub requirements: PathBuf,
    /// Store to winnow; may be given several times.
    #[arg(long, value_name = "URL")]
    pub store: Vec<String>,
    /// Throwaway deployment to set up, winnow and take down; may be given several times.
    #[arg(long, value_name = "NAME[:NODES][?SETTING=VALUE&…]")]
    pub testbed: Vec<String>,
    /// Treatment of records of the dataset that a store holds already.
    #[arg(long, value_enum, value_name = "POLICY", default_value_t)]
    pub data: DataPolicy,
    /// Carrying of each run.
    #[command(flatten)]
    pub carrying: CarryingArguments,
    /// Folder for the table and the runs [default: a new one under kvdyno-results/].
    #[arg(short, long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Show no progress line.
    #[arg(long)]
    pub quiet: bool,
}

/// `kvdyno rerun`.
#[derive(Args, Debug)]
pub struct RerunArguments {
    /// Result folder or its result.json.
    #[arg(value_name = "RESULT")]
    pub result: PathBuf,
    /// Folder for the new result [default: a new one under kvdyno-results/].
    #[arg(short, long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Treatment of records of the dataset that the store holds already [default: that of the run].
    #[arg(long, value_enum)]
    pub data: Option<DataPolicy>,
}

/// `kvdyno check`.
#[derive(Args, Debug)]
pub struct CheckArguments {
    /// Store to check, beside the machine.
    #[arg(long, value_name = "URL")]
    pub store: Option<String>,
    /// Tell how many machines like this one a suite needs to send its load.
    #[arg(long = "for", value_name = "SUITE")]
    pub suite: Option<String>,
    /// Rate that these machines are to send, where the suite names none: 100k/s.
    #[arg(long, value_name = "RATE", requires = "suite", value_parser = hinted(units::parse_rate))]
    pub rate: Option<f64>,
    /// Folder on the disk to check.
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub folder: PathBuf,
}

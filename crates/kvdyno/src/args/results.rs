//! The command line of commands that read results.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use kvdyno_core::verdict::Condition;

use super::PriceArguments;
use crate::listen_address;

/// `kvdyno view`.
#[derive(Args, Debug)]
pub struct ViewArguments {
    /// Result folder or its result.json, also of a run that still goes on.
    #[arg(value_name = "RESULT")]
    pub result: PathBuf,
    /// Serve the page at this address of this machine, with TLS, for browsers of other machines. A port alone is of this
    /// machine only, without TLS, as without this option; a host alone takes a free port.
    #[arg(long, value_name = listen_address::FORM, value_parser = listen_address::parse)]
    pub console_on: Option<String>,
}

/// `kvdyno board`.
#[derive(Args, Debug)]
pub struct BoardArguments {
    /// Result folders, folders of trials, result files, or folders that hold any of them (docs/BOARD.md).
    #[arg(required = true, value_name = "RESULT")]
    pub results: Vec<PathBuf>,
    /// Folder of the site; an earlier site there is overwritten.
    #[arg(short, long, value_name = "DIR")]
    pub out: PathBuf,
}

/// `kvdyno export`.
#[derive(Args, Debug)]
pub struct ExportArguments {
    /// Result folder or its result.json.
    #[arg(value_name = "RESULT")]
    pub result: PathBuf,
    /// Format of the export (docs/BOARD.md).
    #[arg(long = "as", value_enum, value_name = "FORMAT")]
    pub format: ExportFormat,
    /// Table to export, for `csv` and `parquet` [default: kinds].
    #[arg(long, value_enum, value_name = "TABLE")]
    pub table: Option<ExportTable>,
    /// Export figures of phases whose verdict is INVALID, too, marked in their names.
    #[arg(long)]
    pub include_invalid: bool,
    /// File to write [default: standard output].
    #[arg(short, long, value_name = "FILE")]
    pub out: Option<PathBuf>,
}

/// Format of an export, by the tool that reads it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ExportFormat {
    /// Bencher Metric Format.
    Bencher,
    /// Input of the action github-action-benchmark: figures of which less is better.
    GithubActionBenchmark,
    /// A table as comma-separated values.
    Csv,
    /// A table as a Parquet file, for DuckDB and pandas.
    Parquet,
}

/// Table of an export.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ExportTable {
    /// A row for each phase, clock and kind of operation.
    Kinds,
    /// A row for each interval and kind of operation.
    Intervals,
}

/// `kvdyno compare`.
#[derive(Args, Debug)]
pub struct CompareArguments {
    /// Results or folders of trials: each of the others is compared with the first. With one result only, its other
    /// stores are compared with its first store.
    #[arg(required = true, value_name = "RESULT")]
    pub results: Vec<PathBuf>,
    /// End with exit code 1 if the comparison shows this of the second side: 'p99(get) > +5%', 'rate < -5%', 'cost >
    /// +5%'; may be given several times.
    #[arg(long, value_name = "CONDITION", value_parser = conditions)]
    pub fail_on: Vec<Conditions>,
    /// Say whether both sides meet this condition, and so whether a difference matters: 'p99(get) < 10ms'; may be
    /// given several times.
    #[arg(long, value_name = "CONDITION", value_parser = conditions)]
    pub needs: Vec<Conditions>,
    /// Compare although durability, consistency, data, load or client differ.
    #[arg(long)]
    pub allow_unequal: bool,
    /// End with exit code 2 for suspect figures, too, and for a gate that the noise of the figures leaves undecided.
    #[arg(long)]
    pub strict: bool,
    /// Write a page with the sides laid over each other: charts, differences, and what differs in their setup; its name
    /// ends in .html.
    #[arg(short, long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Write a summary as Markdown, for a comment on a pull request.
    #[arg(long, value_name = "FILE")]
    pub markdown: Option<PathBuf>,
    /// Write the gates as JUnit XML, for a CI server.
    #[arg(long, value_name = "FILE")]
    pub junit: Option<PathBuf>,
    /// Print the comparison as JSON instead of tables.
    #[arg(long)]
    pub json: bool,
    /// Cost of the servers of each side; without it the results say.
    #[command(flatten)]
    pub price: PriceArguments,
}

/// Conditions of one option, separated by commas.
#[derive(Clone, Debug)]
pub struct Conditions(pub Vec<Condition>);

/// `kvdyno report`.
#[derive(Args, Debug)]
pub struct ReportArguments {
    /// Result folders or their result.json; folders of trials.
    #[arg(required = true, value_name = "RESULT")]
    pub results: Vec<PathBuf>,
    /// File to write, whose name ends in .html, .md or .xml (JUnit) [default: report.html beside the result].
    #[arg(short, long, value_name = "FILE")]
    pub out: Option<PathBuf>,
}

/// Reads conditions.
fn conditions(text: &str) -> Result<Conditions, String> {
    Condition::parse_list(text).map(Conditions).map_err(|error| error.to_string())
}

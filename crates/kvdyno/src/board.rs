//! `kvdyno board` and `kvdyno export`: a site of results, and figures for other tools.

use kvdyno_report::board::Board;
use kvdyno_report::export::{self, Format, Invalid, Table};
use kvdyno_report::result::RunResult;

use crate::args::{BoardArguments, ExportArguments, ExportFormat, ExportTable};
use crate::exit::{Exit, Failure};

/// Makes the site, and names the results that are not in it.
///
/// # Errors
/// [`Failure`] if no result can be read or the site cannot be written.
pub fn board(arguments: &BoardArguments) -> Result<Exit, Failure> {
    let site = &arguments.out;
    let board = Board::read(&arguments.results, site).map_err(Failure::internal)?;
    for skipped in board.skipped() {
        warn_user!("kvdyno: skipped {}: {}", skipped.path, skipped.why);
    }
    if board.results() == 0 {
        return Err(Failure::usage("there is no result to show; name folders of results"));
    }
    board.write(site).map_err(Failure::internal)?;
    say!("Board of {} results: {}", board.results(), site.join("index.html").display());
    Ok(Exit::Done)
}

/// Writes the figures of a result; none if no phase of it may be believed.
///
/// # Errors
/// [`Failure`] if it cannot be read or written.
pub fn export(arguments: &ExportArguments) -> Result<Exit, Failure> {
    let path = &arguments.result;
    let result = RunResult::load(path).map_err(Failure::usage)?;
    let format = format(arguments)?;
    let invalid = if arguments.include_invalid { Invalid::Mark } else { Invalid::LeaveOut };
    let told = export::export(&result, path, format, invalid).map_err(Failure::usage)?;
    for name in &told.left_out {
        warn_user!("kvdyno: left out {name}; --include-invalid exports it with this mark");
    }
    if told.benchmarks == 0 && matches!(format, Format::Bencher | Format::GithubActionBenchmark) {
        if told.left_out.is_empty() {
            warn_user!("kvdyno: {} holds no measured phase; run its suite again", path.display());
        }
        return Ok(Exit::Undecided);
    }
    match &arguments.out {
        None => say!("{}", String::from_utf8_lossy(&told.bytes).trim_end()),
        Some(to) => std::fs::write(to, told.bytes).map_err(|error| {
            Failure::internal(format!("cannot write {}: {error}; name another file", to.display()))
        })?,
    }
    Ok(Exit::Done)
}

/// Returns the format that the options ask for.
fn format(arguments: &ExportArguments) -> Result<Format, Failure> {
    let table = match arguments.table {
        None | Some(ExportTable::Kinds) => Table::Kinds,
        Some(ExportTable::Intervals) => Table::Intervals,
    };
    match arguments.format {
        ExportFormat::Csv | ExportFormat::Parquet if arguments.include_invalid => {
            Err(Failure::usage(
                "--include-invalid is not for tables, which always have every phase, with its verdict; leave it out",
            ))
        }
        ExportFormat::Csv => Ok(Format::Csv(table)),
        ExportFormat::Parquet if arguments.out.is_none() => Err(Failure::usage(
            "a Parquet file is binary and cannot go to standard output; name a file with -o",
        )),
        ExportFormat::Parquet => Ok(Format::Parquet(table)),
        ExportFormat::Bencher | ExportFormat::GithubActionBenchmark
            if arguments.table.is_some() =>
        {
            Err(Failure::usage(
                "--table is only for csv and parquet; leave it out, or use --as csv or parquet",
            ))
        }
        ExportFormat::Bencher => Ok(Format::Bencher),
        ExportFormat::GithubActionBenchmark => Ok(Format::GithubActionBenchmark),
    }
}

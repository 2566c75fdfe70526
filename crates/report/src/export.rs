//! Exports a result's figures for other tools: Bencher, github-action-benchmark, and readers of tables.

mod intervals;
mod kinds;
#[cfg(feature = "parquet")]
mod parquet;
mod table;

use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

use crate::board::{BoardFigure, NamedFigures, figures_of};
use crate::result::{HistogramError, RESULT_FILE, RunResult};
use table::{CsvTable, TableWriter};

/// Format of an export.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Bencher Metric Format: latencies in ns, throughput in operations a second, with intervals of 95 % where the run's
    /// intervals give them.
    Bencher,
    /// List of figures for the action github-action-benchmark, with `customSmallerIsBetter`: latencies, and the mean time
    /// of an operation (1 / rate).
    GithubActionBenchmark,
    /// Table as comma-separated values.
    Csv(Table),
    /// Table as a Parquet file.
    Parquet(Table),
}

/// Kind of table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Table {
    /// A row for each phase, clock and kind of operation; latencies in ns.
    Kinds,
    /// A row for each interval and kind of operation, from the files beside the result.
    Intervals,
}

/// Errors of an export.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// A histogram cannot be decoded.
    #[error(transparent)]
    Histogram(#[from] HistogramError),
    /// This program was built without Parquet.
    #[cfg(not(feature = "parquet"))]
    #[error(
        "this kvdyno was built without Parquet: build it with `--features parquet`, or take --as csv"
    )]
    WithoutParquet,
    /// The library cannot write the table.
    #[cfg(feature = "parquet")]
    #[error("the Parquet file cannot be made: {0}; take --as csv")]
    Parquet(#[from] ::parquet::errors::ParquetError),
    /// The result has no timeline beside it.
    #[error(
        "{0} has no intervals: they are in the file timeline.csv beside {RESULT_FILE}; name a whole result folder"
    )]
    NoIntervals(PathBuf),
    /// The file of intervals is broken.
    #[error("{path}: {source}; use the original result")]
    Intervals {
        /// Path of the file.
        path: PathBuf,
        /// Error of the reader, with its place.
        source: csv::Error,
    },
}

/// Result of an export.
#[derive(Clone, Debug, PartialEq)]
pub struct Exported {
    /// Text in UTF-8, or a Parquet file.
    pub bytes: Vec<u8>,
    /// Number of measured phases in it.
    pub benchmarks: usize,
    /// Measured phases that are left out because of their verdict, each with its verdict.
    pub left_out: Vec<String>,
}

/// Treatment of phases in a list of benchmarks whose verdict is invalid, or that did not come to their end: a tool that
/// keeps their figures would take them for a baseline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Invalid {
    /// The phase is left out.
    LeaveOut,
    /// The phase is in the list, and its name has the verdict.
    Mark,
}

/// Exports the figures of a result that is at `path`. Tables have all phases, and a column with the verdict.
///
/// # Errors
/// [`ExportError`] if a histogram cannot be decoded or there are no intervals.
pub fn export(
    result: &RunResult,
    path: &Path,
    format: Format,
    invalid: Invalid,
) -> Result<Exported, ExportError> {
    let table = |bytes| Exported { bytes, benchmarks: 0, left_out: Vec::new() };
    match format {
        Format::Bencher => Ok(benchmarks(figures_of(result, path)?, invalid, bencher)),
        Format::GithubActionBenchmark => Ok(benchmarks(figures_of(result, path)?, invalid, action)),
        Format::Csv(kind) => {
            let mut to = CsvTable::new(kind.columns());
            kind.write(result, path, &mut to)?;
            Ok(table(to.end()))
        }
        #[cfg(feature = "parquet")]
        Format::Parquet(kind) => {
            let mut to = parquet::ParquetTable::new(kind.columns())?;
            kind.write(result, path, &mut to)?;
            Ok(table(to.end()?))
        }
        #[cfg(not(feature = "parquet"))]
        Format::Parquet(_) => Err(ExportError::WithoutParquet),
    }
}

/// Writes the phases that may be believed, or all with a mark.
fn benchmarks(
    all: Vec<NamedFigures>,
    invalid: Invalid,
    write: fn(&[NamedFigures]) -> String,
) -> Exported {
    let (mut benchmarks_of_run, mut left_out) = (Vec::new(), Vec::new());
    for mut named in all {
        if let Some(verdict) = named.invalid {
            named.name = format!("{} ({verdict})", named.name);
        }
        match (named.invalid, invalid) {
            (Some(_), Invalid::LeaveOut) => left_out.push(named.name),
            _ => benchmarks_of_run.push(named),
        }
    }
    Exported {
        bytes: write(&benchmarks_of_run).into_bytes(),
        benchmarks: benchmarks_of_run.len(),
        left_out,
    }
}

impl Table {
    fn columns(self) -> &'static [table::Column] {
        match self {
            Table::Kinds => &kinds::COLUMNS,
            Table::Intervals => &intervals::COLUMNS,
        }
    }

    fn write(
        self,
        result: &RunResult,
        path: &Path,
        to: &mut impl TableWriter,
    ) -> Result<(), ExportError> {
        match self {
            Table::Kinds => Ok(kinds::write(result, to)?),
            Table::Intervals => intervals::write(result, path, to),
        }
    }
}

fn bencher(all: &[NamedFigures]) -> String {
    let mut benchmarks = Map::new();
    for NamedFigures { name, is_at_least, figures: [rate, p50, p99, p99_9], .. } in all {
        let measures = [
            ("throughput", rate, false),
            ("latency", p50, *is_at_least),
            ("latency-p99", p99, *is_at_least),
            ("latency-p99-9", p99_9, *is_at_least),
        ];
        let measured = measures.into_iter().filter_map(|(measure, figure, is_at_least)| {
            let BoardFigure { value, interval } = (*figure)?;
            let mut metric = json!({ "value": value });
            if let Some((low, high)) = interval {
                metric["lower_value"] = json!(low);
                metric["upper_value"] = json!(high);
            }
            // A lower bound has no upper value.
            if is_at_least {
                metric = json!({ "value": value, "lower_value": value });
            }
            Some((measure.to_owned(), metric))
        });
        benchmarks.insert(name.clone(), Value::Object(measured.collect()));
    }
    pretty(&Value::Object(benchmarks))
}

fn action(all: &[NamedFigures]) -> String {
    let mut list = Vec::new();
    for NamedFigures { name, is_at_least, figures: [rate, p50, p99, p99_9], .. } in all {
        let inverse = |figure: BoardFigure| BoardFigure {
            value: 1e9 / figure.value,
            interval: figure.interval.map(|(low, high)| (1e9 / high, 1e9 / low)),
        };
        let all = [
            ("time of an operation of all", rate.map(inverse), false),
            ("p50", *p50, *is_at_least),
            ("p99", *p99, *is_at_least),
            ("p99.9", *p99_9, *is_at_least),
        ];
        for (what, figure, is_at_least) in all {
            let Some(BoardFigure { value, interval }) = figure else { continue };
            let mut entry =
                json!({ "name": format!("{name} {what}"), "unit": "ns", "value": value });
            if is_at_least {
                entry["range"] = json!(format!("≥ {value:.0}"));
            } else if let Some((low, high)) = interval {
                entry["range"] = json!(format!("{low:.0} to {high:.0}"));
            }
            list.push(entry);
        }
    }
    pretty(&Value::Array(list))
}

fn pretty(value: &Value) -> String {
    serde_json::to_string_pretty(value).expect("figures are plain JSON") + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ranking::store_labels;
    use crate::result::{Latency, Level, Status};
    use crate::sample;

    fn exported(format: Format) -> (RunResult, String) {
        let folder = tempfile::tempdir().unwrap();
        let mut result = sample::written(folder.path());
        judge(&mut result, Level::Valid);
        let file =
            export(&result, &folder.path().join("result.json"), format, Invalid::Mark).unwrap();
        (result, String::from_utf8(file.bytes).unwrap())
    }

    /// Makes a list of benchmarks of the sample, with verdicts and numbers of operations as `change` sets them.
    fn listed(
        format: Format,
        invalid: Invalid,
        change: impl Fn(&mut RunResult),
    ) -> (Exported, Value) {
        let folder = tempfile::tempdir().unwrap();
        let mut result = sample::written(folder.path());
        change(&mut result);
        let exported_list =
            export(&result, &folder.path().join("result.json"), format, invalid).unwrap();
        let list = serde_json::from_slice(&exported_list.bytes).unwrap();
        (exported_list, list)
    }

    fn judge(result: &mut RunResult, level: Level) {
        for run in &mut result.runs {
            run.status = Status::Complete;
            run.verdict.as_mut().unwrap().level = level;
        }
    }

    #[test]
    fn what_is_not_valid_is_no_baseline() {
        for format in [Format::Bencher, Format::GithubActionBenchmark] {
            let of = |level, invalid| listed(format, invalid, |result| judge(result, level));
            let (valid, _) = of(Level::Valid, Invalid::LeaveOut);
            assert!(valid.benchmarks > 0 && valid.left_out.is_empty());
            assert_eq!(of(Level::Suspect, Invalid::LeaveOut).0, valid);
            let (none, list) = of(Level::Invalid, Invalid::LeaveOut);
            assert_eq!((none.benchmarks, none.left_out.len()), (0, valid.benchmarks));
            assert!(
                list.as_array().is_none_or(Vec::is_empty)
                    && list.as_object().is_none_or(Map::is_empty)
            );
            let (marked, list) = of(Level::Invalid, Invalid::Mark);
            assert_eq!(marked.benchmarks, valid.benchmarks);
            assert!(list.to_string().contains("(invalid)"), "{list}");
        }
    }

    #[test]
    fn a_lower_bound_is_told_as_one_and_a_percentile_of_few_not_at_all() {
        let backlog = |result: &mut RunResult| {
            judge(result, Level::Valid);
            for phase in result.runs.iter_mut().flat_map(|run| &mut run.phases) {
                phase.groups.iter_mut().for_each(|group| group.open = true);
                for series in &mut phase.series {
                    series.response.clone_from(&series.service);
                    phase.unstarted.clone_from(&series.service);
                }
            }
        };
        let (_, list) = listed(Format::Bencher, Invalid::LeaveOut, backlog);
        for metrics in list.as_object().unwrap().values().map(|m| m["latency-p99"].clone()) {
            assert_eq!(metrics["lower_value"], metrics["value"], "{list}");
            assert!(metrics["upper_value"].is_null(), "{list}");
        }
        let (_, list) = listed(Format::GithubActionBenchmark, Invalid::LeaveOut, backlog);
        let latencies = list.as_array().unwrap().iter();
        let mut latencies =
            latencies.filter(|entry| entry["name"].as_str().unwrap().ends_with(" p99"));
        assert!(latencies.all(|entry| entry["range"].as_str().unwrap().starts_with('≥')), "{list}");

        let few = |result: &mut RunResult| {
            judge(result, Level::Valid);
            for phase in result.runs.iter_mut().flat_map(|run| &mut run.phases) {
                let mut twenty = kvdyno_core::measure::no_latencies();
                twenty.record_n(1_000, 20).unwrap();
                phase.series.truncate(1);
                phase.series.iter_mut().for_each(|series| {
                    series.service = Latency::of(&twenty);
                    series.response = None;
                });
            }
        };
        let (_, list) = listed(Format::Bencher, Invalid::LeaveOut, few);
        for metrics in list.as_object().unwrap().values().filter(|m| !m["latency"].is_null()) {
            assert!(
                metrics["latency-p99"].is_null() && metrics["latency-p99-9"].is_null(),
                "{list}"
            );
        }
    }

    #[test]
    fn bencher_gets_the_figures_of_the_report_inside_their_intervals() {
        let (result, text) = exported(Format::Bencher);
        let bencher: Value = serde_json::from_str(&text).unwrap();
        let mut intervals = 0;
        for (store, run) in store_labels(&result).iter().zip(&result.runs) {
            for phase in run.phases.iter().filter(|phase| !phase.prepares()) {
                let row = crate::view::main_row(phase).unwrap();
                let name = format!("{}/{store}/{}", result.suite.name, phase.name);
                let metrics = &bencher[&name];
                assert_eq!(metrics["throughput"]["value"].as_f64(), row.rate, "{name} in {text}");
                assert_eq!(metrics["latency-p99"]["value"].as_f64(), row.latency.p99, "{name}");
                for metric in metrics.as_object().unwrap().values() {
                    let [low, value, high] =
                        ["lower_value", "value", "upper_value"].map(|name| metric[name].as_f64());
                    // A lower bound has no upper value.
                    if let (Some(low), Some(value), Some(high)) = (low, value, high) {
                        assert!(low <= value && value <= high);
                        intervals += 1;
                    }
                }
            }
        }
        assert!(intervals > 0, "{text}");
    }

    #[test]
    fn the_action_gets_a_list_of_which_less_is_better() {
        let (_, text) = exported(Format::GithubActionBenchmark);
        let list: Vec<Value> = serde_json::from_str(&text).unwrap();
        assert!(list.len() >= 8);
        for entry in &list {
            assert!(
                entry["name"].is_string()
                    && entry["value"].as_f64() > Some(0.0)
                    && entry["unit"] == "ns"
            );
        }
    }

    #[test]
    fn the_table_has_a_row_for_each_phase_and_kind() {
        let (result, text) = exported(Format::Csv(Table::Kinds));
        let mut reader = csv::Reader::from_reader(text.as_bytes());
        let rows: Vec<csv::StringRecord> = reader.records().map(Result::unwrap).collect();
        let phases: usize = result.runs.iter().map(|run| run.phases.len()).sum();
        assert!(rows.len() >= phases && rows.iter().any(|row| &row[6] != "all"), "{text}");
        assert!(rows.iter().all(|row| row[12].is_empty() || row[12].parse::<f64>().is_ok()));
    }
}

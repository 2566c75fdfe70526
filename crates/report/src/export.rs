//! A result's figures for other tools: Bencher, github-action-benchmark, and whoever reads tables.

mod intervals;
mod kinds;
#[cfg(feature = "parquet")]
mod parquet;
mod table;

use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

use crate::board::{Figure, figures_of};
use crate::result::{HistogramError, RESULT_FILE, RunResult};
use table::{CsvTable, TableWriter};

/// Who reads it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Bencher Metric Format: latencies in ns, throughput in operations a second, with intervals of 95 % where the run's
    /// intervals tell them.
    Bencher,
    /// The list of figures of the action github-action-benchmark, with `customSmallerIsBetter`: latencies, and the time that
    /// an operation takes of the whole (1 / rate).
    GithubActionBenchmark,
    /// Comma-separated values.
    Csv(Table),
    /// Parquet.
    Parquet(Table),
}

/// What a table has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Table {
    /// A row for each phase, clock and kind of operation; latencies in ns.
    Kinds,
    /// A row for each interval and kind of operation, from the files beside the result.
    Intervals,
}

/// Figures that cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// A histogram cannot be decoded.
    #[error(transparent)]
    Histogram(#[from] HistogramError),
    /// This program was built without it.
    #[cfg(not(feature = "parquet"))]
    #[error(
        "this kvdyno was built without Parquet: build it with `--features parquet`, or take --as csv"
    )]
    WithoutParquet,
    /// The library cannot write the table.
    #[cfg(feature = "parquet")]
    #[error("the Parquet file cannot be made: {0}; take --as csv")]
    Parquet(#[from] ::parquet::errors::ParquetError),
    /// The result has no files beside it.
    #[error(
        "{0} has no intervals: they are in the file timeline.csv beside {RESULT_FILE}; name a whole result folder"
    )]
    NoIntervals(PathBuf),
    /// The file of intervals is broken.
    #[error("{path}: {source}; name a result as kvdyno wrote it")]
    Intervals {
        /// The file.
        path: PathBuf,
        /// What is wrong, and where.
        source: csv::Error,
    },
}

/// The figures of a result that is at `path`: text in UTF-8, or a Parquet file.
///
/// # Errors
/// [`ExportError`] if a histogram cannot be decoded or there are no intervals.
pub fn bytes(result: &RunResult, path: &Path, format: Format) -> Result<Vec<u8>, ExportError> {
    match format {
        Format::Bencher => Ok(bencher(result, path)?.into_bytes()),
        Format::GithubActionBenchmark => Ok(action(result, path)?.into_bytes()),
        Format::Csv(table) => {
            let mut to = CsvTable::new(table.columns());
            table.write(result, path, &mut to)?;
            Ok(to.end())
        }
        #[cfg(feature = "parquet")]
        Format::Parquet(table) => {
            let mut to = parquet::ParquetTable::new(table.columns())?;
            table.write(result, path, &mut to)?;
            Ok(to.end()?)
        }
        #[cfg(not(feature = "parquet"))]
        Format::Parquet(_) => Err(ExportError::WithoutParquet),
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

fn bencher(result: &RunResult, path: &Path) -> Result<String, HistogramError> {
    let mut benchmarks = Map::new();
    for (name, [rate, p50, p99, p99_9]) in figures_of(result, path)? {
        let measures = [
            ("throughput", rate),
            ("latency", p50),
            ("latency-p99", p99),
            ("latency-p99-9", p99_9),
        ];
        let told = measures.into_iter().filter_map(|(measure, figure)| {
            let Figure { value, interval } = figure?;
            let mut metric = json!({ "value": value });
            if let Some((low, high)) = interval {
                metric["lower_value"] = json!(low);
                metric["upper_value"] = json!(high);
            }
            Some((measure.to_owned(), metric))
        });
        benchmarks.insert(name, Value::Object(told.collect()));
    }
    Ok(pretty(&Value::Object(benchmarks)))
}

fn action(result: &RunResult, path: &Path) -> Result<String, HistogramError> {
    let mut list = Vec::new();
    for (name, [rate, p50, p99, p99_9]) in figures_of(result, path)? {
        let inverse = |figure: Figure| Figure {
            value: 1e9 / figure.value,
            interval: figure.interval.map(|(low, high)| (1e9 / high, 1e9 / low)),
        };
        let all = [
            ("time of an operation of all", rate.map(inverse)),
            ("p50", p50),
            ("p99", p99),
            ("p99.9", p99_9),
        ];
        for (what, figure) in all {
            let Some(Figure { value, interval }) = figure else { continue };
            let mut entry =
                json!({ "name": format!("{name} {what}"), "unit": "ns", "value": value });
            if let Some((low, high)) = interval {
                entry["range"] = json!(format!("{low:.0} to {high:.0}"));
            }
            list.push(entry);
        }
    }
    Ok(pretty(&Value::Array(list)))
}

fn pretty(value: &Value) -> String {
    serde_json::to_string_pretty(value).expect("figures are plain JSON") + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ranking::store_labels;
    use crate::sample;

    fn told(format: Format) -> (RunResult, String) {
        let folder = tempfile::tempdir().unwrap();
        let result = sample::written(folder.path());
        let bytes = bytes(&result, &folder.path().join("result.json"), format).unwrap();
        (result, String::from_utf8(bytes).unwrap())
    }

    #[test]
    fn bencher_gets_the_figures_of_the_report_inside_their_intervals() {
        let (result, text) = told(Format::Bencher);
        let told: Value = serde_json::from_str(&text).unwrap();
        let mut intervals = 0;
        for (store, run) in store_labels(&result).iter().zip(&result.runs) {
            for phase in run.phases.iter().filter(|phase| !phase.prepares()) {
                let row = crate::view::main_row(phase).unwrap();
                let name = format!("{}/{store}/{}", result.suite.name, phase.name);
                let metrics = &told[&name];
                assert_eq!(metrics["throughput"]["value"].as_f64(), row.rate, "{name} in {text}");
                assert_eq!(metrics["latency-p99"]["value"].as_f64(), row.latency.p99, "{name}");
                for metric in metrics.as_object().unwrap().values() {
                    if let Some(low) = metric["lower_value"].as_f64() {
                        let value = metric["value"].as_f64().unwrap();
                        assert!(low <= value && value <= metric["upper_value"].as_f64().unwrap());
                        intervals += 1;
                    }
                }
            }
        }
        assert!(intervals > 0, "{text}");
    }

    #[test]
    fn the_action_gets_a_list_of_which_less_is_better() {
        let (_, text) = told(Format::GithubActionBenchmark);
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
        let (result, text) = told(Format::Csv(Table::Kinds));
        let mut reader = csv::Reader::from_reader(text.as_bytes());
        let rows: Vec<csv::StringRecord> = reader.records().map(Result::unwrap).collect();
        let phases: usize = result.runs.iter().map(|run| run.phases.len()).sum();
        assert!(rows.len() >= phases && rows.iter().any(|row| &row[6] != "all"), "{text}");
        assert!(rows.iter().all(|row| row[12].is_empty() || row[12].parse::<f64>().is_ok()));
    }
}

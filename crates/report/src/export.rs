//! A result's figures for other tools: Bencher, github-action-benchmark, and whoever reads tables.

use std::path::Path;

use serde_json::{Map, Value, json};

use crate::board::{Figure, figures_of};
use crate::ranking::store_labels;
use crate::result::{HistogramError, RunResult};
use crate::view::{Scope, rows};

/// Who reads it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Bencher Metric Format: latencies in ns, throughput in operations a second, with intervals of 95 % where the run's
    /// intervals tell them.
    Bencher,
    /// The list of figures of the action github-action-benchmark, with `customSmallerIsBetter`: latencies, and the time that
    /// an operation takes of the whole (1 / rate).
    GithubActionBenchmark,
    /// A row for each phase, clock and kind of operation; latencies in ns.
    Csv,
}

/// The figures of a result that is at `path`.
///
/// # Errors
/// [`HistogramError`] if a histogram cannot be decoded.
pub fn text(result: &RunResult, path: &Path, format: Format) -> Result<String, HistogramError> {
    match format {
        Format::Bencher => bencher(result, path),
        Format::GithubActionBenchmark => action(result, path),
        Format::Csv => table(result),
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

fn table(result: &RunResult) -> Result<String, HistogramError> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    let head = [
        "run",
        "suite",
        "store",
        "version",
        "verdict",
        "phase",
        "row",
        "clock",
        "prepares",
        "rate",
        "operations",
        "errors",
        "p50_ns",
        "p90_ns",
        "p99_ns",
        "p99_9_ns",
        "max_ns",
        "mean_ns",
    ];
    let mut lines = vec![head.map(str::to_owned)];
    for (store, run) in store_labels(result).into_iter().zip(&result.runs) {
        let verdict = run.verdict.as_ref().map_or("", |verdict| verdict.level.name());
        for phase in &run.phases {
            for row in rows(phase, false)? {
                let number =
                    |value: Option<f64>| value.map_or(String::new(), |value| value.to_string());
                let count =
                    |value: Option<u64>| value.map_or(String::new(), |value| value.to_string());
                let kind = match row.scope {
                    Scope::Phase => "all",
                    Scope::Series | Scope::Missed | Scope::Published => row.test.trim(),
                };
                let latency = &row.latency;
                lines.push([
                    result.started.clone(),
                    result.suite.name.clone(),
                    store.clone(),
                    run.store.version.clone().unwrap_or_default(),
                    verdict.to_owned(),
                    phase.name.clone(),
                    kind.to_owned(),
                    format!("{:?}", row.clock).to_lowercase(),
                    row.prepares.to_string(),
                    number(row.rate),
                    count(latency.samples),
                    count(row.errors),
                    number(latency.p50),
                    number(latency.p90),
                    number(latency.p99),
                    number(latency.p99_9),
                    number(latency.max),
                    number(latency.mean),
                ]);
            }
        }
    }
    for line in lines {
        writer.write_record(&line).expect("memory takes it");
    }
    let bytes = writer.into_inner().expect("memory takes it");
    Ok(String::from_utf8(bytes).expect("what went in was text"))
}

fn pretty(value: &Value) -> String {
    serde_json::to_string_pretty(value).expect("figures are plain JSON") + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;

    fn told(format: Format) -> (RunResult, String) {
        let folder = tempfile::tempdir().unwrap();
        let result = sample::written(folder.path());
        let text = text(&result, &folder.path().join("result.json"), format).unwrap();
        (result, text)
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
        let (result, text) = told(Format::Csv);
        let mut reader = csv::Reader::from_reader(text.as_bytes());
        let rows: Vec<csv::StringRecord> = reader.records().map(Result::unwrap).collect();
        let phases: usize = result.runs.iter().map(|run| run.phases.len()).sum();
        assert!(rows.len() >= phases && rows.iter().any(|row| &row[6] != "all"), "{text}");
        assert!(rows.iter().all(|row| row[12].is_empty() || row[12].parse::<f64>().is_ok()));
    }
}

//! Reads a result back. The file may come from anyone: size, depth and every histogram are checked before the result is
//! used, and each error is one line.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use kvdyno_core::verify::Tally;
use kvdyno_core::workload::Part;
use kvdyno_core::workload::fault::ActionFailure;
use serde::Deserialize;
use serde_json::error::Category;

use super::{
    FaultResult, HistogramError, Latency, PhaseResult, RunResult, SCHEMA_VERSION, mark_dark,
};

/// Name of the result's file in its folder.
pub const RESULT_FILE: &str = "result.json";
/// Name of the summary of several trials in their folder.
pub(crate) const TRIALS_FILE: &str = "trials.json";
/// Option of earlier versions for a part of a load; the part's number and the number of parts follow.
pub(crate) const PART: &str = "--part ";
/// Largest `result.json` that is read, bytes. A histogram takes a few KiB, so this is room for some
/// ten thousand series.
const LARGEST: u64 = 256 << 20;
/// Largest count of verification that is read: the sum of some thousands of them still fits in 64 bits.
const MOST_COUNTED: u64 = 1 << 53;

/// A result that cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ResultFileError {
    /// The file cannot be opened or read.
    #[error("cannot read {path}: {source}; name a result folder or its result.json")]
    Unreadable {
        /// Path of the file.
        path: PathBuf,
        /// Error of the system.
        source: io::Error,
    },
    /// The file is larger than any result.
    #[error("{path} is larger than {} MiB; name a result folder or its result.json", LARGEST >> 20)]
    TooLarge {
        /// Path of the file.
        path: PathBuf,
    },
    /// The folder is of several trials, each with a result of its own.
    #[error("{path} is of several trials; name one of them, such as {first}")]
    SeveralTrials {
        /// The folder.
        path: PathBuf,
        /// The result folder of its first trial.
        first: PathBuf,
    },
    /// The file ends before the result does.
    #[error(
        "{path} is cut short: it ends in line {line}, before the result does; use a whole copy, or run again"
    )]
    CutShort {
        /// Path of the file.
        path: PathBuf,
        /// Number of its last line, from 1.
        line: usize,
    },
    /// The file is not JSON.
    #[error(
        "{path} is no JSON (line {line}, column {column}: {problem}); use the result.json that kvdyno wrote"
    )]
    NotJson {
        /// Path of the file.
        path: PathBuf,
        /// Line of the mistake, from 1.
        line: usize,
        /// Column of the mistake, from 1.
        column: usize,
        /// Problem at that place.
        problem: String,
    },
    /// The file is JSON, but not a result.
    #[error(
        "{path}, line {line}, column {column}: {problem}; name a result folder or its result.json"
    )]
    Malformed {
        /// Path of the file.
        path: PathBuf,
        /// Line, from 1.
        line: usize,
        /// Column, from 1.
        column: usize,
        /// Problem at that place.
        problem: String,
    },
    /// The file has another shape.
    #[error(
        "{path} has result version {found}, this kvdyno reads {SCHEMA_VERSION}; \
         read it with the kvdyno that wrote it"
    )]
    OtherVersion {
        /// Path of the file.
        path: PathBuf,
        /// Version of its shape.
        found: u64,
    },
    /// A count in the file is above 2^53.
    #[error(
        "{path}: phase {phase}: a verification count is above 2^53, so the file was changed; use the original result"
    )]
    Count {
        /// Path of the file.
        path: PathBuf,
        /// Name of the phase.
        phase: String,
    },
    /// A histogram in the file is broken.
    #[error("{path}: phase {phase}: {source}; use the original result")]
    Histogram {
        /// Path of the file.
        path: PathBuf,
        /// Name of the phase.
        phase: String,
        /// Problem with the histogram.
        source: HistogramError,
    },
}

/// Returns the result folder of the first trial, if `folder` is of several trials and is no result itself.
fn first_trial(folder: &Path) -> Option<PathBuf> {
    if folder.join(RESULT_FILE).exists() || !folder.join(TRIALS_FILE).exists() {
        return None;
    }
    let inside = fs::read_dir(folder).ok()?.filter_map(|entry| Some(entry.ok()?.path()));
    inside.filter(|path| path.join(RESULT_FILE).exists()).min()
}

/// Members that are parsed before the rest, or apart from it.
#[derive(Deserialize)]
struct Versioned {
    schema_version: u64,
    /// Part of a load that the result is of; earlier versions wrote it.
    part: Option<serde_json::Value>,
}

impl RunResult {
    /// Reads a result from its folder or its file.
    ///
    /// # Errors
    /// [`ResultFileError`] if it is not a whole result of this version.
    pub fn load(path: impl AsRef<Path>) -> Result<RunResult, ResultFileError> {
        let mut path = path.as_ref().to_owned();
        if path.is_dir() {
            if let Some(first) = first_trial(&path) {
                return Err(ResultFileError::SeveralTrials { path, first });
            }
            path.push(RESULT_FILE);
        }
        let bytes = read_bounded(&path)?;
        RunResult::parse(&bytes, &path)
    }

    /// Reads a result from memory; `path` is named in errors.
    ///
    /// # Errors
    /// [`ResultFileError`] as for [`RunResult::load`].
    pub fn parse(bytes: &[u8], path: &Path) -> Result<RunResult, ResultFileError> {
        let malformed = |error: serde_json::Error| malformed(path.to_owned(), bytes, &error);
        let version: Versioned = serde_json::from_slice(bytes).map_err(malformed)?;
        if version.schema_version != u64::from(SCHEMA_VERSION) {
            return Err(ResultFileError::OtherVersion {
                path: path.to_owned(),
                found: version.schema_version,
            });
        }
        let mut result: RunResult = serde_json::from_slice(bytes).map_err(malformed)?;
        result.suite.changes.extend(version.part.and_then(part_of_earlier_version));
        for phase in result.runs.iter_mut().flat_map(|run| &mut run.phases) {
            complete_faults(&mut phase.faults);
        }
        for phase in result.runs.iter().flat_map(|run| &run.phases) {
            if phase.tally.as_ref().is_some_and(|tally| largest_count(tally) > MOST_COUNTED) {
                return Err(ResultFileError::Count {
                    path: path.to_owned(),
                    phase: phase.name.clone(),
                });
            }
            check_histograms(phase).map_err(|source| ResultFileError::Histogram {
                path: path.to_owned(),
                phase: phase.name.clone(),
                source,
            })?;
        }
        Ok(result)
    }
}

/// Completes faults of the last version, which told the kind of a failure in words alone, and did not tell when a node
/// was dark.
fn complete_faults(faults: &mut [FaultResult]) {
    for fault in faults.iter_mut().filter(|fault| fault.failure.is_none()) {
        let said = fault.error.as_ref();
        fault.failure = said.map(|said| match said.contains(" ended at once (") {
            true => ActionFailure::ProcessEnded,
            false => ActionFailure::Other,
        });
    }
    mark_dark(faults);
}

/// Returns the option by which an earlier version carried only a part of a load, if it did: such a result is shown, and
/// compared, as one of a suite that was changed so.
fn part_of_earlier_version(part: serde_json::Value) -> Option<String> {
    let Part { index, count } = serde_json::from_value(part).ok()?;
    (count > 1).then(|| format!("{PART}{}/{count}", u64::from(index) + 1))
}

fn read_bounded(path: &Path) -> Result<Vec<u8>, ResultFileError> {
    let unreadable = |source| ResultFileError::Unreadable { path: path.to_owned(), source };
    let file = File::open(path).map_err(unreadable)?;
    let mut bytes = Vec::new();
    file.take(LARGEST + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    if bytes.len() as u64 > LARGEST {
        return Err(ResultFileError::TooLarge { path: path.to_owned() });
    }
    Ok(bytes)
}

fn largest_count(tally: &Tally) -> u64 {
    let reads = [tally.reads, tally.records, tally.bytes_checked, tally.judged];
    let unjudged = [tally.stamp_only, tally.unknown, tally.not_read_again];
    let misses = [
        tally.early,
        tally.legal_misses,
        tally.legal_stale,
        tally.unexpected_misses,
        tally.wrong_misses,
        tally.of_other_runs(),
        tally.of_no_other,
    ];
    let writes = [tally.writes_acknowledged, tally.writes_failed, tally.writes_indeterminate];
    let all = reads.iter().chain(&unjudged).chain(&misses).chain(&writes).chain(&tally.anomalies);
    all.copied().max().unwrap_or(0)
}

/// Makes the error of a text that is no result: it says how far the text got.
fn malformed(path: PathBuf, bytes: &[u8], error: &serde_json::Error) -> ResultFileError {
    let (line, column, problem) = (error.line(), error.column(), what_only(error));
    // A number that ends in its middle is a wrong one, where nothing follows: `1.`.
    let ends_there = bytes.split(|byte| *byte == b'\n').enumerate().last();
    let ends_there = ends_there.is_some_and(|(at, last)| (at + 1, last.len()) == (line, column));
    match error.classify() {
        Category::Syntax if ends_there => ResultFileError::CutShort { path, line },
        Category::Eof => ResultFileError::CutShort { path, line },
        Category::Syntax => ResultFileError::NotJson { path, line, column, problem },
        Category::Data | Category::Io => ResultFileError::Malformed { path, line, column, problem },
    }
}

/// Returns the message without the position, which is told separately.
fn what_only(error: &serde_json::Error) -> String {
    let text = error.to_string();
    match text.rsplit_once(" at line ") {
        Some((what, _)) => what.to_owned(),
        None => text,
    }
}

fn check_histograms(phase: &PhaseResult) -> Result<(), HistogramError> {
    let of_series = phase.series.iter().flat_map(|s| {
        let answered = [&s.service, &s.response, &s.missed_service, &s.missed_response];
        answered.into_iter().chain([&s.unsuccessful_service, &s.unsuccessful_response])
    });
    let all = of_series.chain([&phase.unstarted, &phase.send_lag]);
    all.flatten().try_for_each(|latency: &Latency| latency.decode().map(|_| ()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::result::DarkSpan;
    use crate::sample;

    fn parse(text: &str) -> Result<RunResult, ResultFileError> {
        RunResult::parse(text.as_bytes(), Path::new("r/result.json"))
    }

    #[test]
    fn a_result_comes_back_as_it_went() {
        let result = sample::two_stores();
        let text = serde_json::to_string_pretty(&result).unwrap();
        assert_eq!(parse(&text).unwrap(), result);
    }

    #[test]
    fn a_part_of_a_load_by_an_earlier_version_is_not_taken_for_the_whole() {
        let result = sample::two_stores();
        let mut earlier = serde_json::to_value(&result).unwrap();
        earlier["part"] = serde_json::json!({ "index": 0, "count": 1 });
        earlier["merged_from"] = serde_json::json!([]);
        assert_eq!(parse(&earlier.to_string()).unwrap(), result);
        earlier["part"] = serde_json::json!({ "index": 1, "count": 3 });
        let part = parse(&earlier.to_string()).unwrap();
        assert_eq!(part.suite.changes, ["--part 2/3"]);
    }

    /// The last version told in words how a repair failed, and did not tell when nodes were dark.
    #[test]
    fn faults_of_the_last_version_are_understood() {
        let mut result = sample::two_stores();
        let fault = |what: &str, began_ns, error: Option<&str>| FaultResult {
            what: what.to_owned(),
            node: "n-1".to_owned(),
            began_ns,
            ended_ns: began_ns,
            error: error.map(str::to_owned),
            ..FaultResult::default()
        };
        let ended = Some("n-1 ended at once (exit status: 2); look at the end of its log: panic");
        result.runs[0].phases[0].faults = vec![
            fault("kill", 1, None),
            fault("start again", 5, None),
            fault("power", 7, None),
            fault("start again", 9, ended),
            fault("start again", 11, Some("n-1: not ready after 60s")),
        ];
        let again = parse(&serde_json::to_string(&result).unwrap()).unwrap();
        let faults = &again.runs[0].phases[0].faults;
        let dark = |from_ns, to_ns| Some(DarkSpan { from_ns, to_ns });
        assert_eq!((faults[0].dark, faults[2].dark), (dark(1, Some(5)), dark(7, None)));
        let failures: Vec<_> = faults.iter().filter_map(|fault| fault.failure).collect();
        assert_eq!(failures, [ActionFailure::ProcessEnded, ActionFailure::Other]);
    }

    #[test]
    fn every_cut_is_one_line_with_a_position() {
        let text = serde_json::to_string_pretty(&sample::two_stores()).unwrap();
        for cut in (0..text.len() - 1).step_by(997) {
            let error = parse(&text[..cut]).unwrap_err();
            let ResultFileError::CutShort { line, .. } = &error else { panic!("{error}") };
            assert!(*line >= 1 || cut == 0);
            let told = error.to_string();
            assert!(told.contains("is cut short") && !told.contains('\n'), "{told}");
        }
    }

    #[test]
    fn other_versions_and_other_files_are_refused() {
        let error = parse(r#"{"schema_version": 7, "whatever": 1}"#).unwrap_err();
        assert!(error.to_string().contains("version 7, this kvdyno reads 1"), "{error}");
        let error = parse("ops: 12").unwrap_err();
        assert!(error.to_string().contains("is no JSON (line 1, column 1:"), "{error}");
        let error = parse("{}").unwrap_err();
        assert!(matches!(error, ResultFileError::Malformed { .. }), "{error}");
        let deep = format!("{{\"schema_version\":1,\"x\":{}", "[".repeat(100_000));
        assert!(matches!(parse(&deep), Err(ResultFileError::CutShort { .. })));
    }

    #[test]
    fn a_broken_histogram_names_its_phase() {
        let mut result = sample::two_stores();
        let phase = &mut result.runs[0].phases[0];
        phase.name = "fill".into();
        phase.series[0].service.as_mut().unwrap().histogram.truncate(40);
        let error = parse(&serde_json::to_string(&result).unwrap()).unwrap_err();
        assert!(error.to_string().contains("phase fill: histogram cannot be decoded"), "{error}");
    }

    #[test]
    fn counts_that_would_overflow_are_refused() {
        let mut result = sample::two_stores();
        result.runs[0].phases[0].tally.as_mut().unwrap().reads = u64::MAX;
        let error = parse(&serde_json::to_string(&result).unwrap()).unwrap_err();
        assert!(error.to_string().contains("above 2^53"), "{error}");
    }

    #[test]
    fn a_missing_file_is_named() {
        let error = RunResult::load("no/such/folder").unwrap_err();
        assert!(error.to_string().starts_with("cannot read no/such/folder"), "{error}");
    }

    #[test]
    fn no_figure_is_ever_nan_in_the_file() {
        let mut result = sample::two_stores();
        let verdict = result.runs[0].verdict.as_mut().unwrap();
        verdict.reasons.push(sample::reason(f64::NAN, f64::INFINITY));
        let phase = &mut result.runs[0].phases[0];
        phase.wall_ns = 0;
        assert_eq!(phase.rate(), None);
        let text = serde_json::to_string(&result).unwrap();
        assert!(!text.contains("NaN") && !text.contains("inf,"));
        let back = parse(&text).unwrap();
        let reason = back.runs[0].verdict.as_ref().unwrap().reasons.last().unwrap();
        assert_eq!((reason.figure, reason.threshold), (None, None));
    }
}

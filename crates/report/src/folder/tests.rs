//! Tests of the files that a run leaves in its folder, also when the disk is full.

use super::*;
use crate::files::timeline_csv::TimelineRow;
use crate::sample;
use hdrhistogram::serialization::interval_log::{IntervalLogIterator, LogEntry};
use std::time::Duration;

#[test]
fn the_log_holds_every_histogram_with_its_tag() {
    let folder = tempfile::tempdir().unwrap();
    let result = sample::written(folder.path());
    let bytes = fs::read(folder.path().join(INTERVALS_FILE)).unwrap();
    let (mut starts, mut total) = (0, 0);
    for entry in IntervalLogIterator::new(&bytes) {
        match entry.unwrap() {
            LogEntry::StartTime(at) | LogEntry::BaseTime(at) => {
                assert_eq!(at, Duration::from_secs(1_772_366_400));
                starts += 1;
            }
            LogEntry::Interval(entry) => {
                if entry.tag().unwrap().as_str() == "0-lmdb/1-mixed/0/get/service" {
                    let histogram =
                        kvdyno_core::measure::histogram_from_text::<u64>(entry.encoded_histogram())
                            .unwrap();
                    total += histogram.len();
                }
            }
        }
    }
    assert_eq!(starts, 2);
    assert_eq!(total, result.runs[0].phases[1].series[0].ok);
}

#[test]
fn the_timeline_has_a_row_for_each_interval_and_series() {
    let folder = tempfile::tempdir().unwrap();
    let result = sample::written(folder.path());
    let mut reader = csv::Reader::from_path(folder.path().join(TIMELINE_FILE)).unwrap();
    let rows: Vec<TimelineRow> = reader.deserialize().map(Result::unwrap).collect();
    let mixed = |row: &&TimelineRow| row.run == 1 && row.phase_name == "mixed";
    let stalled: Vec<_> = rows.iter().filter(mixed).filter(|row| row.kind.is_empty()).collect();
    assert_eq!(stalled.len(), 1);
    assert_eq!(stalled[0].group, None);
    let ok: u64 = rows.iter().filter(mixed).map(|row| row.ok).sum();
    assert_eq!(ok, result.runs[1].phases[1].ok());
}

#[test]
fn anomalies_are_one_object_a_line() {
    let folder = tempfile::tempdir().unwrap();
    let _ = sample::written(folder.path());
    let text = fs::read_to_string(folder.path().join(ANOMALIES_FILE)).unwrap();
    let lines: Vec<serde_json::Value> =
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), 1);
    assert_eq!(lines[0]["kind"], "stale");
    assert_eq!(lines[0]["store"], "fjall");
    assert_eq!(lines[0]["operation"], 1_234);
}

#[test]
fn a_result_is_replaced_whole_and_nothing_is_left_beside_it() {
    let folder = tempfile::tempdir().unwrap();
    let mut result = sample::written(folder.path());
    result.seed = 43;
    save_result(folder.path(), &result).unwrap();
    assert_eq!(RunResult::load(folder.path()).unwrap(), result);
    let names: Vec<_> =
        fs::read_dir(folder.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(names.len(), 5, "{names:?}");
}

#[test]
fn a_result_that_cannot_be_written_leaves_the_former_one() {
    let folder = tempfile::tempdir().unwrap();
    let result = sample::written(folder.path());
    let gone = folder.path().join("gone");
    let error = save_result(&gone, &result).unwrap_err();
    let said = "gone/result.json: No such file or directory (os error 2);";
    assert!(error.to_string().starts_with("cannot write"), "{error}");
    assert!(error.to_string().contains(said) && !error.to_string().contains('\n'), "{error}");
    // No user knows the temporary file.
    assert!(!error.to_string().contains(".kvdyno-"), "{error}");
    assert_eq!(RunResult::load(folder.path()).unwrap(), result);
}

#[test]
fn a_full_disk_is_told_once_and_the_rest_goes_on() {
    let mut full = AppendedFile {
        path: "/dev/full".into(),
        file: Some(OpenOptions::new().write(true).open("/dev/full").unwrap()),
        length: 0,
    };
    let error = full.append(b"line\n").unwrap_err().to_string();
    assert!(error.contains("No space left") && error.contains("/dev/full"), "{error}");
    assert!(full.append(b"line\n").is_ok());
    assert!(full.file.is_none());

    let path = tempfile::tempdir().unwrap();
    let events = sample::events();
    let begin = events.iter().position(|event| matches!(event, Event::Interval(_))).unwrap();
    let mut folder = ResultFolder::create(Some(path.path()), "quick", sample::started()).unwrap();
    events[..begin].iter().for_each(|event| folder.keep(event).unwrap());
    folder.intervals = AppendedFile {
        path: "/dev/full".into(),
        file: Some(OpenOptions::new().write(true).open("/dev/full").unwrap()),
        length: 0,
    };
    assert!(folder.keep(&events[begin]).is_err());
    assert!(folder.keep(&events[begin + 1]).is_ok());
    let timeline = fs::read_to_string(path.path().join(TIMELINE_FILE)).unwrap();
    assert_eq!(timeline.lines().count(), 3, "both intervals are in the other file");
}

#[test]
fn a_folder_is_never_taken_twice() {
    let parent = tempfile::tempdir().unwrap();
    let first = new_folder(parent.path(), "my suite/1", sample::started()).unwrap();
    let second = new_folder(parent.path(), "my suite/1", sample::started()).unwrap();
    assert!(first.ends_with("2026-03-01T12-00-00-my-suite-1"), "{first:?}");
    assert!(second.ends_with("2026-03-01T12-00-00-my-suite-1-2"), "{second:?}");
    save_result(&first, &sample::two_stores()).unwrap();
    let error = ResultFolder::create(Some(&first), "x", sample::started()).unwrap_err();
    assert!(error.to_string().contains("holds a result already"), "{error}");
}

#[test]
fn names_become_harmless_in_tags_and_paths() {
    assert_eq!(plain_name("a b,c/d\n"), "a-b-c-d-");
    assert_eq!(plain_name(""), "-");
}

//! Reads RocksDB's work in the background off the events in its own log file (`LOG`): flushes and compactions, and where it
//! slowed down or stopped writes until they had caught up. Format: <https://github.com/facebook/rocksdb/wiki/Logger>.

use std::collections::HashMap;
use std::io::Read;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use kvdyno_core::store::{Work, end_of_log};
use serde_json::Value;

/// Bytes at the beginning of the log that name the version.
const HEAD: u64 = 4096;
/// Text before an event.
const EVENT: &str = "EVENT_LOG_v1 ";

/// Reads which version of RocksDB has opened a folder: its log begins with that. The C interface does not tell it.
pub(super) fn version(folder: &Path) -> Option<String> {
    let mut head = Vec::new();
    std::fs::File::open(folder.join("LOG")).ok()?.take(HEAD).read_to_end(&mut head).ok()?;
    let head = String::from_utf8_lossy(&head);
    let rest = head.lines().find_map(|line| Some(line.split_once("RocksDB version: ")?.1))?;
    rest.split_whitespace().next().map(str::to_owned)
}

/// Returns work that ended or was told since a moment. A log that cannot be read tells nothing.
pub(super) fn work_since(folder: &Path, since: SystemTime) -> Vec<Work> {
    let mut work = work_in(&end_of_log(&folder.join("LOG")).unwrap_or_default(), SystemTime::now());
    work.retain(|work| work.to >= since);
    work
}

/// Returns the work of a log. `now`: work under way still goes on until then.
fn work_in(log: &str, now: SystemTime) -> Vec<Work> {
    let mut work = Vec::new();
    let mut begun: HashMap<(u64, &'static str), SystemTime> = HashMap::new();
    // Lines without an event have a local time only: their event is the last one before them.
    let mut last = None;
    for line in log.lines() {
        if let Some((_, event)) = line.split_once(EVENT) {
            let Ok(event) = serde_json::from_str::<Value>(event) else { continue };
            let Some(at) = event["time_micros"].as_u64() else { continue };
            let at = UNIX_EPOCH + Duration::from_micros(at);
            last = Some(at);
            let Some((what, ends)) = event["event"].as_str().and_then(known) else { continue };
            let job = (event["job"].as_u64().unwrap_or_default(), what);
            match ends {
                false => drop(begun.insert(job, at)),
                true => {
                    let from = begun.remove(&job).unwrap_or(at);
                    work.push(Work { what: what.to_owned(), from, to: at });
                }
            }
        } else if let (Some(what), Some(at)) = (held_up(line), last) {
            work.push(Work { what, from: at, to: at });
        }
    }
    let open = begun.into_iter();
    work.extend(open.map(|((_, what), from)| Work { what: what.to_owned(), from, to: now }));
    work.sort_by_key(|work| work.from);
    work
}

/// Returns the work that an event is of, and `true` if it ends with the event, `false` if it begins.
fn known(event: &str) -> Option<(&'static str, bool)> {
    Some(match event {
        "compaction_started" => ("compaction", false),
        "compaction_finished" => ("compaction", true),
        "flush_started" => ("flush of a memtable", false),
        "flush_finished" => ("flush of a memtable", true),
        _ => return None,
    })
}

/// Reads `Stalling writes because …`, `Stopping writes because …`.
fn held_up(line: &str) -> Option<String> {
    for (words, what) in
        [("Stalling writes", "writes slowed down"), ("Stopping writes", "writes stopped")]
    {
        if let Some((_, why)) = line.split_once(&format!("{words} because ")) {
            let why = why.split(['(', ',']).next().unwrap_or(why).trim();
            return Some(format!("{what} because {why}"));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOG: &str = r#"
2024/05/01-10:00:00.000100 140 [db/db_impl/db_impl_write.cc:2062] [default] New memtable created
2024/05/01-10:00:00.000200 141 EVENT_LOG_v1 {"time_micros": 1000000, "job": 4, "event": "flush_started", "num_memtables": 1}
2024/05/01-10:00:00.300000 141 (Original Log Time 2024/05/01-10:00:00.300000) EVENT_LOG_v1 {"time_micros": 1300000, "job": 4, "event": "flush_finished"}
2024/05/01-10:00:00.300100 141 [WARN] [db/column_family.cc:991] [default] Stalling writes because we have 21 level-0 files rate 16777216
2024/05/01-10:00:00.400000 142 EVENT_LOG_v1 {"time_micros": 1400000, "job": 5, "event": "compaction_started", "compaction_reason": "LevelL0FilesNum"}
2024/05/01-10:00:02.000000 142 EVENT_LOG_v1 {"time_micros": 3000000, "job": 5, "event": "compaction_finished"}
2024/05/01-10:00:02.000000 142 EVENT_LOG_v1 {"time_micros": 3100000, "job": 6, "event": "compaction_started"}
2024/05/01-10:00:02.100000 142 EVENT_LOG_v1 {"time_micros": 3200000, "cf_name": "default", "event": "table_file_creation"}
2024/05/01-10:00:02.100000 142 EVENT_LOG_v1 {"time_micros": 3
"#;

    fn at(millis: u64) -> SystemTime {
        UNIX_EPOCH + Duration::from_millis(millis)
    }

    fn piece(what: &str, from: u64, to: u64) -> Work {
        Work { what: what.to_owned(), from: at(from), to: at(to) }
    }

    #[test]
    fn flushes_compactions_and_stalls_are_read_off_the_log() {
        let expected = [
            piece("flush of a memtable", 1_000, 1_300),
            piece(
                "writes slowed down because we have 21 level-0 files rate 16777216",
                1_300,
                1_300,
            ),
            piece("compaction", 1_400, 3_000),
            piece("compaction", 3_100, 5_000),
        ];
        assert_eq!(work_in(LOG, at(5_000)), expected);
        for nothing in ["", "EVENT_LOG_v1 {}\nnonsense"] {
            assert!(work_in(nothing, at(0)).is_empty());
        }
    }

    #[test]
    fn the_version_is_read_off_the_beginning_of_the_log() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(version(folder.path()), None, "no log");
        let log = "2024/05/01-10:00:00.000100 140 RocksDB version: 7.8.3\n2024/05/01 Git sha 0\n";
        std::fs::write(folder.path().join("LOG"), log).unwrap();
        assert_eq!(version(folder.path()).as_deref(), Some("7.8.3"));
    }

    #[test]
    fn what_was_over_before_is_left_out() {
        let folder = tempfile::tempdir().unwrap();
        assert!(work_since(folder.path(), UNIX_EPOCH).is_empty(), "no log");
        std::fs::write(folder.path().join("LOG"), LOG).unwrap();
        let begins: Vec<SystemTime> =
            work_since(folder.path(), at(2_000)).iter().map(|work| work.from).collect();
        assert_eq!(begins, [at(1_400), at(3_100)], "the second is under way still");
    }
}

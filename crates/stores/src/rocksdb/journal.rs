//! What RocksDB did in the background, from the events in its own log file (`LOG`): flushes and
//! compactions, and where it slowed down or stopped writes until they had caught up.
//! Format: <https://github.com/facebook/rocksdb/wiki/Logger>.

use std::collections::HashMap;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use kvdyno_core::store::Work;
use serde_json::Value;

/// Bytes of the log's end that are read.
const MOST: u64 = 32 << 20;
/// What stands before an event.
const EVENT: &str = "EVENT_LOG_v1 ";

/// Work that ended or was told since a moment. A log that cannot be read tells nothing.
pub(super) fn work_since(folder: &Path, since: SystemTime) -> Vec<Work> {
    let mut work = work_in(&end_of(&folder.join("LOG")).unwrap_or_default());
    work.retain(|work| work.to >= since);
    work
}

fn end_of(path: &Path) -> std::io::Result<String> {
    let mut file = File::open(path)?;
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(MOST)))?;
    let mut bytes = Vec::new();
    file.take(MOST).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn work_in(log: &str) -> Vec<Work> {
    let mut work = Vec::new();
    let mut begun: HashMap<(u64, &'static str), SystemTime> = HashMap::new();
    // Lines without an event have a local time only: their event is the last one before them.
    let mut now = None;
    for line in log.lines() {
        if let Some((_, event)) = line.split_once(EVENT) {
            let Ok(event) = serde_json::from_str::<Value>(event) else { continue };
            let Some(at) = event["time_micros"].as_u64() else { continue };
            let at = UNIX_EPOCH + Duration::from_micros(at);
            now = Some(at);
            let Some((what, ends)) = event["event"].as_str().and_then(known) else { continue };
            let job = (event["job"].as_u64().unwrap_or_default(), what);
            match ends {
                false => drop(begun.insert(job, at)),
                true => {
                    let from = begun.remove(&job).unwrap_or(at);
                    work.push(Work { what: what.to_owned(), from, to: at });
                }
            }
        } else if let (Some(what), Some(at)) = (held_up(line), now) {
            work.push(Work { what, from: at, to: at });
        }
    }
    // What is under way still has no end yet.
    let last = now.unwrap_or(UNIX_EPOCH);
    let open = begun.into_iter();
    work.extend(open.map(|((_, what), from)| Work { what: what.to_owned(), from, to: last }));
    work.sort_by_key(|work| work.from);
    work
}

/// What begins or ends (`true`) with an event.
fn known(event: &str) -> Option<(&'static str, bool)> {
    Some(match event {
        "compaction_started" => ("compaction", false),
        "compaction_finished" => ("compaction", true),
        "flush_started" => ("flush of a memtable", false),
        "flush_finished" => ("flush of a memtable", true),
        _ => return None,
    })
}

/// `Stalling writes because …`, `Stopping writes because …`.
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

    fn piece(what: &str, from: u64, to: u64) -> Work {
        let at = |millis| UNIX_EPOCH + Duration::from_millis(millis);
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
            piece("compaction", 3_100, 3_200),
        ];
        assert_eq!(work_in(LOG), expected);
        assert!(work_in("").is_empty() && work_in("EVENT_LOG_v1 {}\nnonsense").is_empty());
    }

    #[test]
    fn what_was_over_before_is_left_out() {
        let folder = tempfile::tempdir().unwrap();
        assert!(work_since(folder.path(), UNIX_EPOCH).is_empty(), "no log");
        std::fs::write(folder.path().join("LOG"), LOG).unwrap();
        let since = UNIX_EPOCH + Duration::from_millis(2_000);
        let expected = [piece("compaction", 1_400, 3_000), piece("compaction", 3_100, 3_200)];
        assert_eq!(work_since(folder.path(), since), expected);
    }
}

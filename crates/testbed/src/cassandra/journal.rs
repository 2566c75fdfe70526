//! Reads Cassandra's work beside requests off its log: compactions, and pauses of the garbage collector that are long enough
//! for it to mention.

use std::time::{Duration, SystemTime};

use kvdyno_core::store::Work;

/// Length of a date in UTC, which stands after the level in a line, as [`super::LOG`] has it.
const DATE: usize = "2024-05-01T10:00:00.000".len();

/// Reads the work that a line of the log tells; most tell nothing.
pub(super) fn work(line: &str) -> Option<Work> {
    let (_, rest) = line.split_at_checked(6)?;
    let to = humantime::parse_rfc3339(&format!("{}Z", rest.get(..DATE)?)).ok()?;
    // Of its own tables it merges a few bytes all the time.
    let (what, took) = if rest.contains("Compacted (") && !rest.contains("/data/system") {
        ("compaction", rest.split("of original) in ").nth(1)?)
    } else if rest.contains("GCInspector") {
        ("pause of the garbage collector", rest.split(" GC in ").nth(1)?)
    } else {
        return None;
    };
    let took: String = took.split("ms").next()?.chars().filter(char::is_ascii_digit).collect();
    let from: SystemTime = to.checked_sub(Duration::from_millis(took.parse().ok()?))?;
    Some(Work { what: what.to_owned(), from, to })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compactions_and_long_collections_are_told_with_their_time() {
        let compacted = "INFO  2024-05-01T10:00:03.000 [CompactionExecutor:3] o.a.c.db.c.CompactionTask \
                         Compacted (9e1) 4 sstables to [/x/data/kvdyno/r-1/nb-5-big,] to level=0.  \
                         9.1MiB to 8.0MiB (~88% of original) in 1,234ms.  Read Throughput = 7.3MiB/s";
        let paused = "WARN  2024-05-01T10:00:03.500 [Service Thread] o.a.c.s.GCInspector G1 Young \
                      Generation GC in 210ms.  G1 Eden Space: 1 -> 0";
        let found = [compacted, paused].map(|line| work(line).unwrap());
        let took = |work: &Work| work.to.duration_since(work.from).unwrap();
        assert_eq!(found[0].what, "compaction");
        assert_eq!(took(&found[0]), Duration::from_millis(1_234));
        assert_eq!(found[1].what, "pause of the garbage collector");
        assert_eq!(took(&found[1]), Duration::from_millis(210));
        let since = found[1].to.duration_since(found[0].to).unwrap();
        assert_eq!(since, Duration::from_millis(500));
        let own = compacted.replace("/data/kvdyno/", "/data/system/");
        for other in [
            own.as_str(),
            "",
            "INFO",
            "INFO  2024-05-01T10:00:03.000 [main] Startup complete",
            "äöüäöü",
        ] {
            assert_eq!(work(other), None, "{other}");
        }
    }
}

//! Quantities on the command line: what is wrong with one comes with an example of what is right.

use std::time::Duration;

use kvdyno_core::ground::units::{self, UnitError};
use kvdyno_core::workload::{CurveError, CurveText};

/// Reads a quantity; what is wrong with it comes with an example of what is right.
pub fn hinted<T>(
    read: fn(&str) -> Result<T, UnitError>,
) -> impl Fn(&str) -> Result<T, String> + Clone + Send + Sync {
    move |text| read(text).map_err(|error| format!("{error}; {}", error.hint()))
}

/// Reads how long a phase lasts, as [`hinted`] does.
pub fn duration(text: &str) -> Result<Duration, String> {
    units::parse_duration(text).map_err(|error| {
        let is_bare = text.trim().parse::<u64>().is_ok();
        let sizes = format!(
            "; the size of values, -d of redis-benchmark and memtier_benchmark, is --value {}B",
            text.trim()
        );
        format!("{error}; {}{}", error.hint(), if is_bare { &sizes } else { "" })
    })
}

/// As [`hinted`], of a rate over time.
pub fn curve(text: &str) -> Result<CurveText, String> {
    let is_bare = !text.contains('/') && units::parse_rate(text).is_ok();
    if is_bare {
        let text = text.trim();
        return Err(format!(
            "a rate has a unit: write {text}/s for so many operations a second; the number of keys, redis-benchmark's -r, \
             is --records {text}"
        ));
    }
    text.parse().map_err(|error: CurveError| format!("{error}; {}", error.hint()))
}

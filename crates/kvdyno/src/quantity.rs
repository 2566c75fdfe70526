//! Quantities on the command line; an error comes with an example of a right value.

use std::time::Duration;

use kvdyno_core::ground::units::{self, UnitError};
use kvdyno_core::workload::{CurveError, CurveText};

/// Returns a reader of a quantity whose error comes with an example of a right value.
pub fn hinted<T>(
    read: fn(&str) -> Result<T, UnitError>,
) -> impl Fn(&str) -> Result<T, String> + Clone + Send + Sync {
    move |text| read(text).map_err(|error| format!("{error}; {}", error.hint()))
}

/// Reads the duration of a phase, with errors as those of [`hinted`].
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

/// Reads a rate over time, with errors as those of [`hinted`].
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

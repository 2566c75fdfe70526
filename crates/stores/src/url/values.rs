//! Values of options that have a unit: times and sizes.

use std::time::Duration;

/// Splits `1.5ms` into 1.5 and `ms`.
fn split_unit(text: &str) -> Option<(f64, &str)> {
    let at = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let number: f64 = text[..at].parse().ok()?;
    Some((number, &text[at..]))
}

/// Reads `100us`, `1.5s`, `2m`.
pub(super) fn parse_duration(text: &str) -> Option<Duration> {
    let (number, unit) = split_unit(text)?;
    let nanos = match unit {
        "ns" => 1.0,
        "us" | "µs" => 1e3,
        "ms" => 1e6,
        "s" => 1e9,
        "m" | "min" => 60e9,
        "h" => 3600e9,
        "" if number == 0.0 => 1.0,
        _ => return None,
    };
    let total = number * nanos;
    // A century: above it a value is a slip, and sums of times could overflow.
    (total.is_finite() && total <= 3.2e18).then(|| Duration::from_nanos(total.round() as u64))
}

/// Reads `64MiB`, `10M`, `100B`.
pub(super) fn parse_bytes(text: &str) -> Option<u64> {
    let (number, unit) = split_unit(text)?;
    let scale = match unit.strip_suffix('B').unwrap_or(unit) {
        "" => 1.0,
        "k" | "K" => 1e3,
        "M" => 1e6,
        "G" => 1e9,
        "T" => 1e12,
        "Ki" => 1024.0,
        "Mi" => 1024.0 * 1024.0,
        "Gi" => 1024.0 * 1024.0 * 1024.0,
        "Ti" => 1024.0 * 1024.0 * 1024.0 * 1024.0,
        _ => return None,
    };
    let total = number * scale;
    // Above 2^53 a double no longer counts single bytes.
    (total <= 9e15 && total.fract() == 0.0).then_some(total as u64)
}

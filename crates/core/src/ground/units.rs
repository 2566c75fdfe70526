//! Quantities as people write them: counts, bytes, durations, rates, shares. One place reads and
//! prints them, so that what a report prints can be pasted back into a suite or a command line.
//!
//! Reading is exact: decimal digits times a whole factor, no floating point in between (rates and
//! shares apart, which are `f64` by nature). Printing gives the shortest text that reads back to
//! the same quantity; what rounds is in [`super::numbers`].

use std::fmt;
use std::time::Duration;

/// Kind of quantity that a text is to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quantity {
    /// A number of things, such as `10M`.
    Count,
    /// A number of bytes, such as `4KiB`.
    Bytes,
    /// A stretch of time, such as `30s`.
    Duration,
    /// Requests a second, such as `50k/s`.
    Rate,
    /// A part of the whole, such as `20%`.
    Share,
}

impl Quantity {
    fn example(self) -> &'static str {
        match self {
            Quantity::Count => "10M, 1k, 2.5M or 1_000",
            Quantity::Bytes => "100B, 4KiB or 1MB",
            Quantity::Duration => "30s, 500ms, 2m or 1h",
            Quantity::Rate => "50k/s or 1M/s",
            Quantity::Share => "20% or 0.2",
        }
    }
}

impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Quantity::Count => "a count",
            Quantity::Bytes => "a number of bytes",
            Quantity::Duration => "a duration",
            Quantity::Rate => "a rate",
            Quantity::Share => "a share",
        })
    }
}

/// Error of a text that is not the quantity that it should be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not {quantity}: {reason}")]
pub struct UnitError {
    /// Quantity that was expected.
    pub quantity: Quantity,
    /// Text that was written.
    pub text: String,
    /// Fault of the text.
    pub reason: UnitFault,
}

/// Fault of a quantity's text.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UnitFault {
    /// It does not begin with a number.
    #[error("it does not begin with a number")]
    NoNumber,
    /// The unit is not known.
    #[error("unknown unit `{0}`")]
    UnknownUnit(String),
    /// A number of bytes or a duration without a unit.
    #[error("it lacks a unit")]
    NoUnit,
    /// A fraction finer than the smallest unit.
    #[error("it is not a whole number of {0}")]
    NotWhole(&'static str),
    /// A quantity beyond what can be represented.
    #[error("it is too large")]
    TooLarge,
    /// A share outside 0 to 100 %.
    #[error("it is not between 0 and 100 %")]
    NotAShare,
}

impl UnitError {
    /// Returns a hint at what to write instead.
    #[must_use]
    pub fn hint(&self) -> String {
        if let UnitFault::UnknownUnit(unit) = &self.reason
            && let Some(better) = self.better_unit(unit)
        {
            let number = &self.text[..self.text.len() - unit.len()];
            return format!("did you mean `{}{better}`?", number.trim());
        }
        format!("write for example {}", self.quantity.example())
    }

    /// Returns the unit that is meant by one of other tools, or by one in another case; `None` if none is known.
    fn better_unit(&self, unit: &str) -> Option<&'static str> {
        let lower = unit.to_lowercase();
        let table: &[(&str, &str)] = match self.quantity {
            Quantity::Count => &[("mio", "M"), ("m", "M"), ("b", "G"), ("bn", "G"), ("g", "G")],
            Quantity::Bytes => &[
                ("k", "KiB"),
                ("m", "MiB"),
                ("g", "GiB"),
                ("b", "B"),
                ("byte", "B"),
                ("bytes", "B"),
                ("kb", "kB"),
                ("mb", "MB"),
                ("gb", "GB"),
                ("kib", "KiB"),
                ("mib", "MiB"),
                ("gib", "GiB"),
            ],
            Quantity::Duration => &[
                ("sec", "s"),
                ("secs", "s"),
                ("second", "s"),
                ("seconds", "s"),
                ("mins", "m"),
                ("minute", "m"),
                ("minutes", "m"),
                ("hour", "h"),
                ("hours", "h"),
                ("hr", "h"),
                ("msec", "ms"),
                ("millis", "ms"),
                ("usec", "us"),
                ("micros", "us"),
                ("day", "d"),
                ("days", "d"),
                ("s", "s"),
                ("h", "h"),
            ],
            Quantity::Rate => &[
                ("k/sec", "k/s"),
                ("ops", "/s"),
                ("ops/s", "/s"),
                ("rps", "/s"),
                ("kops", "k/s"),
                ("kops/s", "k/s"),
                ("/sec", "/s"),
                ("/second", "/s"),
                ("m/s", "M/s"),
                ("m", "M"),
            ],
            Quantity::Share => &[("percent", "%"), ("pct", "%")],
        };
        table.iter().find(|(word, _)| *word == lower).map(|(_, better)| *better)
    }
}

pub(super) const SI: [(&str, u64); 6] = [
    ("", 1),
    ("k", 1_000),
    ("K", 1_000),
    ("M", 1_000_000),
    ("G", 1_000_000_000),
    ("T", 1_000_000_000_000),
];

pub(super) const BYTES: [(&str, u64); 10] = [
    ("B", 1),
    ("kB", 1_000),
    ("KB", 1_000),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
    ("TB", 1_000_000_000_000),
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
    ("TiB", 1 << 40),
];

/// Units of time, in nanoseconds.
const TIMES: [(&str, u64); 9] = [
    ("ns", 1),
    ("µs", 1_000),
    ("us", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("min", 60_000_000_000),
    ("m", 60_000_000_000),
    ("h", 3_600_000_000_000),
    ("d", 86_400_000_000_000),
];

/// A decimal number as written: `digits / 10^places`.
struct Decimal {
    digits: u128,
    places: u32,
}

impl Decimal {
    /// Returns the number times `factor`, if that is whole and fits.
    fn times(&self, factor: u64, smallest: &'static str) -> Result<u64, UnitFault> {
        let product = self.digits.checked_mul(u128::from(factor)).ok_or(UnitFault::TooLarge)?;
        let divisor = 10u128.checked_pow(self.places).ok_or(UnitFault::TooLarge)?;
        if !product.is_multiple_of(divisor) {
            return Err(UnitFault::NotWhole(smallest));
        }
        u64::try_from(product / divisor).map_err(|_| UnitFault::TooLarge)
    }
}

/// Splits `2.5M` into 2.5 and `M`. `1e6` has no unit.
fn split(text: &str) -> Result<(Decimal, &str), UnitFault> {
    let mut number = Decimal { digits: 0, places: 0 };
    let (mut seen, mut fraction, mut end) = (false, false, 0);
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'0'..=b'9' => {
                seen = true;
                let digit = u128::from(byte - b'0');
                number.digits = number
                    .digits
                    .checked_mul(10)
                    .and_then(|d| d.checked_add(digit))
                    .ok_or(UnitFault::TooLarge)?;
                number.places += u32::from(fraction);
            }
            b'_' if seen => {}
            b'.' if !fraction => fraction = true,
            _ => break,
        }
        end = at + 1;
    }
    if !seen {
        return Err(UnitFault::NoNumber);
    }
    let rest = &text[end..];
    if let Some(power) = rest.strip_prefix(['e', 'E'])
        && !power.is_empty()
        && power.bytes().all(|b| b.is_ascii_digit())
    {
        let power: u32 = power.parse().map_err(|_| UnitFault::TooLarge)?;
        let factor = 10u128.checked_pow(power).ok_or(UnitFault::TooLarge)?;
        number.digits = number.digits.checked_mul(factor).ok_or(UnitFault::TooLarge)?;
        return Ok((number, ""));
    }
    Ok((number, rest.trim_start()))
}

fn factor(unit: &str, table: &[(&str, u64)]) -> Result<u64, UnitFault> {
    table
        .iter()
        .find(|(name, _)| *name == unit)
        .map(|(_, factor)| *factor)
        .ok_or_else(|| UnitFault::UnknownUnit(unit.to_owned()))
}

fn read<T>(
    quantity: Quantity,
    text: &str,
    parse: impl FnOnce(&str) -> Result<T, UnitFault>,
) -> Result<T, UnitError> {
    let text = text.trim();
    parse(text).map_err(|reason| UnitError { quantity, text: text.to_owned(), reason })
}

/// Reads a count: `10M`, `1k`, `2.5M`, `1_000`, `1e6`. Suffixes are powers of 1,000.
///
/// # Errors
/// [`UnitError`] if it is not a whole number from 0.
pub fn parse_count(text: &str) -> Result<u64, UnitError> {
    read(Quantity::Count, text, |text| {
        let (number, unit) = split(text)?;
        number.times(factor(unit, &SI)?, "things")
    })
}

/// Reads a number of bytes: `100B`, `4KiB`, `1MB`, `1.5GB`. k, M, G are powers of 1,000; Ki, Mi,
/// Gi of 1,024. A unit is asked for.
///
/// # Errors
/// [`UnitError`] if it is not a whole number of bytes with a unit.
pub fn parse_bytes(text: &str) -> Result<u64, UnitError> {
    read(Quantity::Bytes, text, |text| {
        let (number, unit) = split(text)?;
        if unit.is_empty() {
            return Err(UnitFault::NoUnit);
        }
        number.times(factor(unit, &BYTES)?, "bytes")
    })
}

/// Reads bytes a second: `1MB/s`; without `/s` a second is meant.
///
/// # Errors
/// The errors of [`parse_bytes`].
pub fn parse_bandwidth(text: &str) -> Result<u64, UnitError> {
    let text = text.trim();
    parse_bytes(text.strip_suffix("/s").unwrap_or(text))
}

/// Reads a duration: `30s`, `500ms`, `2m`, `1h`, `50us`, `1.5s`. A unit is asked for.
///
/// # Errors
/// [`UnitError`] if it is not a whole number of nanoseconds with a unit.
pub fn parse_duration(text: &str) -> Result<Duration, UnitError> {
    read(Quantity::Duration, text, |text| {
        let (number, unit) = split(text)?;
        if unit.is_empty() && number.digits > 0 {
            return Err(UnitFault::NoUnit);
        }
        let unit = if unit.is_empty() { "s" } else { unit };
        number.times(factor(unit, &TIMES)?, "nanoseconds").map(Duration::from_nanos)
    })
}

/// Reads a rate in requests a second: `50k/s`, `1M/s`, `3000/min`; without `/s` a second is meant.
///
/// # Errors
/// [`UnitError`] if it is not a number with a known unit.
pub fn parse_rate(text: &str) -> Result<f64, UnitError> {
    read(Quantity::Rate, text, |text| {
        let (_, unit) = split(text)?;
        let unknown = || UnitFault::UnknownUnit(unit.to_owned());
        let (suffix, per) = match unit.split_once('/') {
            None => (unit, 1.0),
            Some((suffix, "s")) => (suffix, 1.0),
            Some((suffix, "min" | "m")) => (suffix, 60.0),
            Some((suffix, "h")) => (suffix, 3600.0),
            Some(_) => return Err(unknown()),
        };
        let digits = text[..text.len() - unit.len()].trim().replace('_', "");
        let number: f64 = digits.parse().map_err(|_| UnitFault::NoNumber)?;
        let rate = number * factor(suffix, &SI).map_err(|_| unknown())? as f64 / per;
        if rate.is_finite() { Ok(rate) } else { Err(UnitFault::TooLarge) }
    })
}

/// Reads a share as a number from 0 to 1: `20%`, `0.2`.
///
/// # Errors
/// [`UnitError`] if it is not between 0 and 100 %.
pub fn parse_share(text: &str) -> Result<f64, UnitError> {
    read(Quantity::Share, text, |text| {
        let (_, unit) = split(text)?;
        let digits = text[..text.len() - unit.len()].trim().replace('_', "");
        let number: f64 = digits.parse().map_err(|_| UnitFault::NoNumber)?;
        let share = match unit {
            // The number nearest to 0.999 is not that of 99.9, divided.
            "%" => format!("{digits}e-2").parse().unwrap_or(number / 100.0),
            "" => number,
            _ => return Err(UnitFault::UnknownUnit(unit.to_owned())),
        };
        if (0.0..=1.0).contains(&share) { Ok(share) } else { Err(UnitFault::NotAShare) }
    })
}

/// Writes `amount / factor` without loss, such as `2.5`; `None` if the amount is smaller than the factor, or the
/// quotient has more than six places.
fn exact_quotient(amount: u64, factor: u64) -> Option<String> {
    if factor == 1 {
        return Some(amount.to_string());
    }
    let whole = amount / factor;
    if whole == 0 {
        return None;
    }
    let (mut digits, mut rest) = (String::new(), u128::from(amount % factor));
    while rest > 0 && digits.len() < 6 {
        rest *= 10;
        digits.push(char::from(b'0' + (rest / u128::from(factor)) as u8));
        rest %= u128::from(factor);
    }
    match (rest, digits.is_empty()) {
        (0, true) => Some(whole.to_string()),
        (0, false) => Some(format!("{whole}.{digits}")),
        _ => None,
    }
}

/// Returns the shortest text without loss; of two of one length the one with the larger unit.
fn shortest(amount: u64, table: &[(&str, u64)]) -> String {
    let mut best = format!("{amount}{}", table[0].0);
    for (unit, factor) in table {
        if let Some(number) = exact_quotient(amount, *factor) {
            let text = format!("{number}{unit}");
            if text.chars().count() <= best.chars().count() {
                best = text;
            }
        }
    }
    best
}

/// Prints a count: `10M`, `1.5k`, `1234`.
#[must_use]
pub fn format_count(count: u64) -> String {
    let table = [SI[0], SI[1], SI[3], SI[4], SI[5]];
    shortest(count, &table)
}

/// Prints a number of bytes: `100B`, `4KiB`, `1MB`.
#[must_use]
pub fn format_bytes(bytes: u64) -> String {
    let mut table = BYTES.to_vec();
    table.remove(2);
    shortest(bytes, &table)
}

/// Prints a duration: `30s`, `500ms`, `2m`. Beyond 584 years it prints the longest that it can.
#[must_use]
pub fn format_duration(duration: Duration) -> String {
    let nanos = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
    if nanos == 0 {
        return "0s".to_owned();
    }
    let table = [TIMES[0], TIMES[2], TIMES[3], TIMES[4], TIMES[6], TIMES[7], TIMES[8]];
    shortest(nanos, &table)
}

/// Prints a rate in requests a second: `50k/s`, `2.5/s`.
#[must_use]
pub fn format_rate(rate: f64) -> String {
    if rate.fract() == 0.0 && (0.0..1e15).contains(&rate) {
        format!("{}/s", format_count(rate as u64))
    } else {
        format!("{rate}/s")
    }
}

/// Prints a share in per cent: `20%`, `0.1%`.
#[must_use]
pub fn format_share(share: f64) -> String {
    let text = format!("{}%", (share * 1e12).round() / 1e10);
    if parse_share(&text) == Ok(share) { text } else { format!("{share}") }
}

#[cfg(test)]
mod tests;

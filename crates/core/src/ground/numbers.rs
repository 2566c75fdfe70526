//! Formats of numbers in every output: significant digits, and units that suit them.

use super::units::{BYTES, SI};

/// Prints a latency, ns, in the unit that suits it, such as `8.19 µs`.
#[must_use]
pub fn duration_text(nanos: f64) -> String {
    let (value, unit) = match nanos {
        n if n < 1e3 => (n, "ns"),
        n if n < 1e6 => (n / 1e3, "µs"),
        n if n < 1e9 => (n / 1e6, "ms"),
        n => (n / 1e9, "s"),
    };
    format!("{} {unit}", significant(value))
}

/// Least number that is printed with a power of ten: from here on 53 bits do not hold all digits.
const MOST_EXACT: f64 = 1e15;

/// Prints three significant digits or all digits before the point, in groups of three: `0.0123`, `1.23`, `12.3`,
/// `123`, `12,345`; at most five places after the point. A number whose digits are not all exact has a power of ten:
/// `1.23e17`.
#[must_use]
pub fn significant(value: f64) -> String {
    match value.abs() {
        0.0 => "0".to_owned(),
        v if v >= MOST_EXACT => format!("{value:.2e}"),
        v if v >= 99.95 => grouped(value.round()),
        v if v >= 9.995 => format!("{value:.1}"),
        v if v >= 0.9995 => format!("{value:.2}"),
        v if v >= 0.09995 => format!("{value:.3}"),
        v if v >= 0.009_995 => format!("{value:.4}"),
        _ => format!("{value:.5}"),
    }
}

/// Prints a whole number in groups of three digits; one whose digits are not all exact as [`significant`] does.
#[must_use]
pub fn grouped(value: f64) -> String {
    if value.abs() >= MOST_EXACT {
        return format!("{value:.2e}");
    }
    let digits = format!("{:.0}", value.abs());
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    if value < 0.0 { format!("-{text}") } else { text }
}

/// Prints an amount of money: with two places, and more where these show nothing.
pub fn money(amount: f64) -> String {
    match amount {
        large if large >= 1_000.0 => {
            let cents = (large * 100.0).round();
            format!("{}.{:02.0}", grouped((cents / 100.0).trunc()), cents % 100.0)
        }
        fine if fine >= 1.0 => format!("{fine:.2}"),
        fine => small(fine),
    }
}

/// Prints three significant digits of a number below 1.
pub fn small(amount: f64) -> String {
    match amount {
        tiny if tiny > 0.0 && tiny < 0.001 => format!("{tiny:.2e}"),
        other => significant(other),
    }
}

/// Prints three significant digits: `1.23`, `12.3`, `123`.
fn three_digits(number: f64) -> String {
    let places = match number.abs() {
        n if n < 9.995 => 2,
        n if n < 99.95 => 1,
        _ => 0,
    };
    format!("{number:.places$}")
}

/// Divides by the largest factor of `table` that leaves at least 1 after rounding to three digits; returns the number
/// and the unit.
fn rounded<'a>(number: f64, table: &[(&'a str, u64)]) -> (String, &'a str) {
    let mut best = table[0];
    for step in table {
        if number >= step.1 as f64 * 0.9995 {
            best = *step;
        }
    }
    (three_digits(number / best.1 as f64), best.0)
}

/// Prints a measured number of things to three significant digits: `123k`, `4.56M`.
#[must_use]
pub fn approximate_count(number: f64) -> String {
    if !number.is_finite() || number < 999.5 {
        return three_digits(number).trim_end_matches(".00").to_owned();
    }
    let (number, unit) = rounded(number, &[SI[0], SI[1], SI[3], SI[4], SI[5]]);
    format!("{number}{unit}")
}

/// Prints a measured number of bytes to three significant digits: `10.3 GB`.
#[must_use]
pub fn bytes_text(bytes: f64) -> String {
    if !bytes.is_finite() || bytes < 999.5 {
        return format!("{bytes:.0} B");
    }
    let (number, unit) = rounded(bytes, &[BYTES[0], BYTES[1], BYTES[3], BYTES[4], BYTES[5]]);
    format!("{number} {unit}")
}

/// Prints a long stretch of time to about a tenth: `12 s`, `4.5 min`, `13.3 h`.
#[must_use]
pub fn approximate_duration(seconds: f64) -> String {
    match seconds {
        s if s < 1.0 => format!("{:.0} ms", s * 1e3),
        s if s < 120.0 => format!("{s:.0} s"),
        s if s < 7_200.0 => format!("{:.1} min", s / 60.0),
        s if s < 172_800.0 => format!("{:.1} h", s / 3_600.0),
        s => format!("{:.1} days", s / 86_400.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_sensible_digits() {
        let cases = [
            (0.0, "0"),
            (0.012_34, "0.0123"),
            (0.5, "0.500"),
            (1.234, "1.23"),
            (9.999, "10.0"),
            (12.34, "12.3"),
            (99.99, "100"),
            (1234.4, "1,234"),
            (5_706_060.0, "5,706,060"),
            (999_999_999_999_999.0, "999,999,999,999,999"),
            (-1.234e17, "-1.23e17"),
            (4.2e49, "4.20e49"),
        ];
        for (value, text) in cases {
            assert_eq!(significant(value), text);
        }
        assert_eq!((grouped(0.0), grouped(999.0)), ("0".into(), "999".into()));
        assert_eq!(grouped(12_345_678.0), "12,345,678");
        assert_eq!(grouped(-1_000.0), "-1,000");
        assert_eq!((grouped(4.2e49), grouped(f64::MAX)), ("4.20e49".into(), "1.80e308".into()));
        assert_eq!(duration_text(8_190.0), "8.19 µs");
        assert_eq!(duration_text(2.5e9), "2.50 s");
        assert_eq!(approximate_count(123_456.0), "123k");
        assert_eq!(approximate_count(4_561_000.0), "4.56M");
        assert_eq!(approximate_count(12.0), "12.0");
        assert_eq!(bytes_text(10.34e9), "10.3 GB");
        assert_eq!(approximate_duration(47_730.0), "13.3 h");
    }
}

//! How numbers are written in every output: significant digits, and units that suit them.

/// A latency in the unit that suits it, such as `8.19 µs`.
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

/// From here on a number of 53 bits does not have all of its digits.
const MOST_EXACT: f64 = 1e15;

/// Three significant digits or all digits before the point, in groups of three: `0.0123`, `1.23`,
/// `12.3`, `123`, `12,345`; at most five places after the point. What is larger than its digits can tell
/// has a power of ten: `1.23e17`.
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

/// A whole number in groups of three digits; one that is larger than its digits can tell as
/// [`significant`] has it.
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

/// Bytes with a decimal prefix, such as `12.3 MB`.
pub(crate) fn bytes_text(bytes: u64) -> String {
    let bytes = bytes as f64;
    let (value, unit) = match bytes {
        b if b < 1e3 => return format!("{b:.0} B"),
        b if b < 1e6 => (b / 1e3, "kB"),
        b if b < 1e9 => (b / 1e6, "MB"),
        b if b < 1e12 => (b / 1e9, "GB"),
        b => (b / 1e12, "TB"),
    };
    format!("{} {unit}", significant(value))
}

/// An amount of money: two places, more where that shows nothing.
pub(crate) fn money(amount: f64) -> String {
    match amount {
        large if large >= 1_000.0 => {
            let cents = (large * 100.0).round();
            format!("{}.{:02.0}", grouped((cents / 100.0).trunc()), cents % 100.0)
        }
        fine if fine >= 1.0 => format!("{fine:.2}"),
        fine => small(fine),
    }
}

/// Three significant digits of something below 1.
pub(crate) fn small(amount: f64) -> String {
    match amount {
        tiny if tiny > 0.0 && tiny < 0.001 => format!("{tiny:.2e}"),
        other => significant(other),
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
        assert_eq!(grouped(-1_000.0), "-1,000");
        assert_eq!((grouped(4.2e49), grouped(f64::MAX)), ("4.20e49".into(), "1.80e308".into()));
        assert_eq!(duration_text(8_190.0), "8.19 µs");
        assert_eq!(duration_text(2.5e9), "2.50 s");
    }
}

//! Decimal numbers on the wire, without the formatting machinery, for every request has some.

/// Appends `number` in decimal.
pub(crate) fn push_decimal(out: &mut Vec<u8>, number: u64) {
    // Most are the lengths of keys and small values.
    if number < 100 {
        let (tens, ones) = (b'0' + (number / 10) as u8, b'0' + (number % 10) as u8);
        let digits = [tens, ones];
        out.extend_from_slice(&digits[usize::from(number < 10)..]);
        return;
    }
    // 20 digits hold the largest u64.
    let mut digits = [0u8; 20];
    let mut at = digits.len();
    let mut rest = number;
    while rest > 0 {
        at -= 1;
        digits[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
    }
    out.extend_from_slice(&digits[at..]);
}

/// Reads an unsigned decimal number of at most 18 digits; nothing else may stand in `text`.
pub(crate) fn parse_decimal(text: &[u8]) -> Option<u64> {
    if text.is_empty() || text.len() > 18 {
        return None;
    }
    let mut number = 0u64;
    for byte in text {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        number = number * 10 + u64::from(digit);
    }
    Some(number)
}

/// Reads the digits at the start of `text` that end with CR LF, as far as these are 18 at most: the number
/// and how many bytes it took, line end included. `None` says only that this was not the case.
#[inline]
pub(crate) fn parse_short_line(text: &[u8]) -> Option<(u64, usize)> {
    let mut number = 0;
    for (at, byte) in text.iter().enumerate().take(19) {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            let ends = at > 0 && *byte == b'\r' && text.get(at + 1) == Some(&b'\n');
            return ends.then_some((number, at + 2));
        }
        number = number * 10 + u64::from(digit);
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_and_read_back() {
        for number in [0, 7, 9, 10, 99, 100, 12_345, 999_999_999_999_999_999] {
            let mut out = Vec::new();
            push_decimal(&mut out, number);
            assert_eq!(out, number.to_string().as_bytes());
            assert_eq!(parse_decimal(&out), Some(number));
        }
        let mut out = Vec::new();
        push_decimal(&mut out, u64::MAX);
        assert_eq!(out, u64::MAX.to_string().as_bytes());
    }

    #[test]
    fn a_short_line_is_read_at_once() {
        let cases: [(&str, Option<(u64, usize)>); 9] = [
            ("0\r\n", Some((0, 3))),
            ("100\r\nabc", Some((100, 5))),
            ("999999999999999999\r\n", Some((999_999_999_999_999_999, 20))),
            ("9999999999999999999\r\n", None),
            ("\r\n", None),
            ("-1\r\n", None),
            ("12\r", None),
            ("12", None),
            ("12\rx", None),
        ];
        for (text, expected) in cases {
            assert_eq!(parse_short_line(text.as_bytes()), expected, "{text:?}");
        }
    }

    #[test]
    fn other_text_is_not_a_number() {
        for text in ["", "-1", "+1", "1a", " 1", "1234567890123456789"] {
            assert_eq!(parse_decimal(text.as_bytes()), None, "{text}");
        }
    }
}

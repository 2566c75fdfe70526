//! Quantities read and print alike.

use super::*;

#[test]
fn counts_read_and_print_alike() {
    for (text, count) in [
        ("0", 0),
        ("7", 7),
        ("1k", 1_000),
        ("1.5k", 1_500),
        ("2.5M", 2_500_000),
        ("10M", 10_000_000),
        ("3G", 3_000_000_000),
        ("1234", 1_234),
        ("123456", 123_456),
    ] {
        assert_eq!(parse_count(text), Ok(count));
        assert_eq!(format_count(count), text);
    }
    assert_eq!(parse_count("1_000"), Ok(1_000));
    assert_eq!(parse_count("1e6"), Ok(1_000_000));
    assert_eq!(parse_count(" 10 M "), Ok(10_000_000));
    assert_eq!(parse_count("1K"), Ok(1_000));
}

#[test]
fn bytes_read_and_print_alike() {
    for (text, bytes) in [
        ("100B", 100),
        ("1899B", 1_899),
        ("4KiB", 4_096),
        ("1MB", 1_000_000),
        ("1.5GB", 1_500_000_000),
        ("2GiB", 2 << 30),
    ] {
        assert_eq!(parse_bytes(text), Ok(bytes));
        assert_eq!(format_bytes(bytes), text);
    }
}

#[test]
fn durations_read_and_print_alike() {
    for (text, nanos) in [
        ("0s", 0),
        ("30s", 30_000_000_000),
        ("500ms", 500_000_000),
        ("1.5s", 1_500_000_000),
        ("2m", 120_000_000_000),
        ("90s", 90_000_000_000),
        ("1h", 3_600_000_000_000),
        ("1d", 86_400_000_000_000),
        ("50us", 50_000),
        ("7ns", 7),
    ] {
        assert_eq!(parse_duration(text), Ok(Duration::from_nanos(nanos)));
        assert_eq!(format_duration(Duration::from_nanos(nanos)), text);
    }
    assert_eq!(parse_duration("50µs"), Ok(Duration::from_micros(50)));
    assert_eq!(parse_duration("2min"), Ok(Duration::from_secs(120)));
}

#[test]
fn rates_and_shares_read_and_print_alike() {
    for (text, rate) in [("50k/s", 50_000.0), ("1M/s", 1e6), ("2.5/s", 2.5), ("999/s", 999.0)] {
        assert_eq!(parse_rate(text), Ok(rate));
        assert_eq!(format_rate(rate), text);
    }
    assert_eq!(parse_rate("50k"), Ok(50_000.0));
    assert_eq!(parse_rate("3000/min"), Ok(50.0));
    let odd = 100_000.0 / 3.0;
    assert_eq!(parse_rate(&format_rate(odd)), Ok(odd));
    for (text, share) in [("20%", 0.2), ("0.1%", 0.001), ("100%", 1.0), ("0%", 0.0)] {
        assert_eq!(parse_share(text), Ok(share));
        assert_eq!(format_share(share), text);
    }
    for thousandths in 0..=1_000_u32 {
        let share = f64::from(thousandths) / 1e3;
        let text = format_share(share);
        assert!(text.ends_with('%') && parse_share(&text) == Ok(share), "{share}: {text}");
    }
    assert_eq!(parse_share("0.2"), Ok(0.2));
    let odd = 0.857_142_857_1;
    assert_eq!(parse_share(&format_share(odd)), Ok(odd));
}

#[test]
fn every_printed_quantity_reads_back() {
    let mut state = 1u64;
    for _ in 0..20_000 {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let amount = state >> (state % 60);
        assert_eq!(parse_count(&format_count(amount)), Ok(amount));
        assert_eq!(parse_bytes(&format_bytes(amount)), Ok(amount));
        let time = Duration::from_nanos(amount);
        assert_eq!(parse_duration(&format_duration(time)), Ok(time));
    }
}

#[test]
fn errors_say_what_to_write() {
    let said = |error: UnitError| format!("{error}; {}", error.hint());
    assert_eq!(
        said(parse_duration("30 sec").unwrap_err()),
        "`30 sec` is not a duration: unknown unit `sec`; did you mean `30s`?"
    );
    assert_eq!(
        said(parse_bytes("4K").unwrap_err()),
        "`4K` is not a number of bytes: unknown unit `K`; did you mean `4KiB`?"
    );
    assert_eq!(
        said(parse_bytes("100").unwrap_err()),
        "`100` is not a number of bytes: it lacks a unit; write for example 100B, 4KiB or 1MB"
    );
    assert_eq!(parse_count("1.5").unwrap_err().reason, UnitFault::NotWhole("things"));
    assert_eq!(parse_count("many").unwrap_err().reason, UnitFault::NoNumber);
    assert_eq!(parse_count("").unwrap_err().reason, UnitFault::NoNumber);
    assert_eq!(parse_count("-1").unwrap_err().reason, UnitFault::NoNumber);
    assert_eq!(parse_count("99999999999T").unwrap_err().reason, UnitFault::TooLarge);
    assert_eq!(parse_count("1e99").unwrap_err().reason, UnitFault::TooLarge);
    assert_eq!(parse_share("120%").unwrap_err().reason, UnitFault::NotAShare);
    assert_eq!(parse_rate("5 kops").unwrap_err().hint(), "did you mean `5k/s`?");
}

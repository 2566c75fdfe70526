//! Reads the part of Redis and Valkey in a fail-over off their logs: which server became a primary, and when.
//! Two promotions after one fault are two servers that may both have taken writes.

use kvdyno_core::store::Work;

const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/// Reads the work that a line of the log tells; most tell nothing. Its time is UTC: [`super::in_utc`].
pub(crate) fn work(line: &str) -> Option<Work> {
    // `1234:M 25 Nov 2026 02:45:24.123 * MASTER MODE enabled (user request from 'id=…')`
    let mut words = line.splitn(7, ' ').skip(1);
    let (day, month, year, time) = (words.next()?, words.next()?, words.next()?, words.next()?);
    let says = words.nth(1)?;
    // By a sentinel's order, or by the votes of a cluster's primaries; Valkey has another word for these.
    if !["MASTER MODE enabled", "PRIMARY MODE enabled", "Failover election won"]
        .iter()
        .any(|begin| says.starts_with(begin))
    {
        return None;
    }
    let month = 1 + MONTHS.iter().position(|name| *name == month)?;
    let at = humantime::parse_rfc3339(&format!("{year}-{month:02}-{day:0>2}T{time}Z")).ok()?;
    Some(Work { what: "promotion".to_owned(), from: at, to: at })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn promotions_are_told_with_their_time() {
        let lines = [
            "77:M 05 Nov 2026 02:45:24.123 * MASTER MODE enabled (user request from 'id=5 addr=127.0.0.1:1 cmd=exec')",
            "77:M 05 Nov 2026 02:45:24.123 * PRIMARY MODE enabled (user request from 'id=5 cmd=exec')",
            "77:S 05 Nov 2026 02:45:24.123 * Failover election won: I'm the new master.",
            "77:S 05 Nov 2026 02:45:24.123 # Failover election won: I'm the new primary.",
        ];
        for line in lines {
            let told = work(line).unwrap();
            assert_eq!((told.what.as_str(), told.from), ("promotion", told.to), "{line}");
            let at = humantime::format_rfc3339_millis(told.to).to_string();
            assert_eq!(at, "2026-11-05T02:45:24.123Z", "{line}");
        }
        for other in [
            "",
            "77:M",
            "77:M 05 Nov 2026 02:45:24.123",
            "77:M 05 Nov 2026 02:45:24.123 * Ready to accept connections",
            "77:S 05 Nov 2026 02:45:24.123 * Connecting to MASTER 127.0.0.1:6379",
            "77:M 05 Brumaire 2026 02:45:24.123 * MASTER MODE enabled",
            "77:M 05 Nov 2026 2:4 * MASTER MODE enabled",
            "äöü äöü äöü äöü äöü äöü äöü",
        ] {
            assert_eq!(work(other), None, "{other}");
        }
    }
}

//! Reads `MOVED` and `ASK`: a node says that another one has the slot. Nothing was applied, so going there is no second try.

use kvdyno_core::store::{Certainty, RequestError};

/// Node to which another one sends us.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Redirect {
    /// True for this request only (`ASK`), false for good (`MOVED`).
    pub(super) ask: bool,
    /// Name of the host; empty if it is the one that says so.
    pub(super) host: String,
    pub(super) port: u16,
}

impl Redirect {
    /// Returns where the refusal of a request sends us; `None` unless nothing of the request was applied.
    pub(super) fn of(error: &RequestError) -> Option<Redirect> {
        if error.certainty != Certainty::Failed {
            return None;
        }
        // What the server said stands before our advice.
        Redirect::parse(error.message.split("; ").next()?.as_bytes())
    }

    /// Reads `MOVED slot host:port` or `ASK slot host:port`. IPv6 addresses stand without brackets.
    pub(super) fn parse(text: &[u8]) -> Option<Redirect> {
        let text = std::str::from_utf8(text).ok()?;
        let mut words = text.split_ascii_whitespace();
        let ask = match words.next()? {
            "MOVED" => false,
            "ASK" => true,
            _ => return None,
        };
        let (host, port) = words.nth(1)?.rsplit_once(':')?;
        let host = if host == "?" { "" } else { host };
        Some(Redirect { ask, host: host.to_owned(), port: port.parse().ok()? })
    }
}

#[cfg(test)]
mod tests {
    use kvdyno_core::store::ErrorClass;

    use super::*;
    use crate::redis::commands::read_transaction;
    use crate::redis::errors;

    #[test]
    fn both_kinds_are_read_wherever_they_stand() {
        let redirect = |ask, host: &str, port| Some(Redirect { ask, host: host.to_owned(), port });
        assert_eq!(
            Redirect::parse(b"MOVED 3999 127.0.0.1:6381"),
            redirect(false, "127.0.0.1", 6381)
        );
        assert_eq!(Redirect::parse(b"ASK 0 ::1:7000"), redirect(true, "::1", 7000));
        assert_eq!(Redirect::parse(b"MOVED 3999 :6381"), redirect(false, "", 6381));
        assert_eq!(Redirect::parse(b"MOVED 3999 ?:6381"), redirect(false, "", 6381));
        let refusal = errors::request_error(b"MOVED 1 h:2");
        assert!(refusal.message.len() > "MOVED 1 h:2".len(), "advice stands after it");
        assert_eq!(Redirect::of(&refusal), redirect(false, "h", 2));
        let transaction = b"+OK\r\n-MOVED 1 h:2\r\n-EXECABORT Transaction discarded\r\n";
        let refusal = read_transaction(transaction).unwrap_err();
        assert_eq!(Redirect::of(&refusal), redirect(false, "h", 2));
    }

    #[test]
    fn other_errors_are_none() {
        for text in [&b"ERR MOVED 1 h:2"[..], b"MOVED", b"MOVED 1", b"MOVED 1 h", b"ASK 1 h:99999"]
        {
            assert_eq!(Redirect::parse(text), None, "{}", String::from_utf8_lossy(text));
        }
        let perhaps_applied = RequestError::indeterminate(ErrorClass::Rejected, "MOVED 1 h:2");
        assert_eq!(Redirect::of(&perhaps_applied), None);
    }
}

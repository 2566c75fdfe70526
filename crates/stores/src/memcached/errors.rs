//! Turns an error reply of Memcached into an error (doc/protocol.txt, "Error strings").

use kvdyno_core::store::{ErrorClass, RequestError};

use crate::wire::Effect;

/// Returns the error of a request that got an error reply; `line` is the whole line.
pub(super) fn request_error(effect: Effect, line: &[u8]) -> RequestError {
    let text = String::from_utf8_lossy(line).into_owned();
    if text.starts_with("ERROR Too many") {
        return RequestError::failed(ErrorClass::Overloaded, text);
    }
    let Some(problem) = text.strip_prefix("SERVER_ERROR") else {
        // The server did not understand the line. It may take a value for commands, so nothing
        // that follows on this connection can be relied on.
        let advice = match &*text {
            "ERROR" => {
                "; a server without meta commands (before Memcached 1.6, Infinispan) needs \
                 `?protocol=text`"
            }
            text if text.contains("unauthenticated") => {
                "; give user and password in the URL: memcached://user:password@host"
            }
            _ => "",
        };
        let error = RequestError::failed(ErrorClass::Rejected, format!("{text}{advice}"));
        return if effect == Effect::Write { error.losing_connection() } else { error };
    };
    if problem.contains("out of memory") {
        return RequestError::failed(ErrorClass::Full, text);
    }
    if problem.contains("object too large") {
        let advice = "; start the server with a larger -I";
        return RequestError::failed(ErrorClass::Rejected, format!("{text}{advice}"));
    }
    // A proxy in front answers so too, and cannot tell what became of a write.
    match effect {
        Effect::Read => RequestError::failed(ErrorClass::Unavailable, text),
        Effect::Write => RequestError::indeterminate(ErrorClass::Unavailable, text),
    }
}

#[cfg(test)]
mod tests {
    use kvdyno_core::store::Certainty::{Failed, Indeterminate};

    use super::*;

    #[test]
    fn each_reply_has_its_class() {
        let cases = [
            ("SERVER_ERROR out of memory storing object", ErrorClass::Full, Failed, false),
            ("SERVER_ERROR object too large for cache", ErrorClass::Rejected, Failed, false),
            ("SERVER_ERROR backend failure", ErrorClass::Unavailable, Indeterminate, false),
            ("CLIENT_ERROR unauthenticated", ErrorClass::Rejected, Failed, true),
            ("CLIENT_ERROR bad data chunk", ErrorClass::Rejected, Failed, true),
            ("ERROR", ErrorClass::Rejected, Failed, true),
            ("ERROR Too many open connections", ErrorClass::Overloaded, Failed, false),
        ];
        for (line, class, certainty, lost) in cases {
            let error = request_error(Effect::Write, line.as_bytes());
            let found = (error.class, error.certainty, error.connection_lost);
            assert_eq!(found, (class, certainty, lost), "{line}");
            assert!(error.message.starts_with(line));
        }
        let read = request_error(Effect::Read, b"SERVER_ERROR backend failure");
        assert_eq!(read.certainty, Failed);
    }
}

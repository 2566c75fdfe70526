//! Turns an error answer of Redis into an error: `-CODE text`.
//!
//! Redis refuses a command before it carries it out (processCommand in its server.c checks
//! authentication, cluster slot, memory, persistence errors, replicas and script state first), so an
//! error answer means that nothing was applied. A transaction that was refused while it was
//! queued answers EXECABORT and applies nothing either.

use std::borrow::Cow;

use kvdyno_core::store::{ErrorClass, RequestError};

/// Returns the error of a request that got an error answer; `text` without the leading `-`.
pub(super) fn request_error(text: &[u8]) -> RequestError {
    let text = String::from_utf8_lossy(text);
    let code = text.split_ascii_whitespace().next().unwrap_or("");
    let class = match code {
        "LOADING" | "MASTERDOWN" | "CLUSTERDOWN" | "TRYAGAIN" | "NOREPLICAS" => {
            ErrorClass::Unavailable
        }
        "OOM" => ErrorClass::Full,
        "MISCONF" if text.contains("No space left") => ErrorClass::Full,
        "BUSY" => ErrorClass::Overloaded,
        "ERR" if text.contains("max number of clients") => ErrorClass::Overloaded,
        _ => ErrorClass::Rejected,
    };
    let advice = match code {
        "NOAUTH" => "; give user and password in the URL: redis://user:password@host",
        "WRONGPASS" => "; check user and password in the URL",
        "MOVED" | "ASK" => {
            "; this server is part of a Redis Cluster: write the URL with `redis+cluster://`"
        }
        "READONLY" => "; this server is a replica: name its primary",
        "WRONGTYPE" => {
            "; another kind of data lies under this key: wipe it, or use another \
                        database number"
        }
        _ => "",
    };
    let message: Cow<'static, str> = format!("{text}{advice}").into();
    RequestError::failed(class, message)
}

/// Returns true if the key holds another type of value than the command reads.
pub(super) fn is_wrong_type(error: &RequestError) -> bool {
    error.message.starts_with("WRONGTYPE")
}

/// Returns the error for a key that holds none of the types that records are kept as.
pub(super) fn of_no_type(error: RequestError) -> RequestError {
    if !is_wrong_type(&error) {
        return error;
    }
    self::request_error(b"WRONGTYPE neither a string nor a hash lies under this key")
}

#[cfg(test)]
mod tests {
    use kvdyno_core::store::Certainty;

    use super::*;

    #[test]
    fn each_code_has_its_class_and_nothing_was_applied() {
        let cases = [
            ("LOADING Redis is loading the dataset in memory", ErrorClass::Unavailable),
            ("MASTERDOWN Link with MASTER is down", ErrorClass::Unavailable),
            ("CLUSTERDOWN The cluster is down", ErrorClass::Unavailable),
            ("TRYAGAIN Multiple keys request during rehashing of slot", ErrorClass::Unavailable),
            ("NOREPLICAS Not enough good replicas to write.", ErrorClass::Unavailable),
            ("OOM command not allowed when used memory > 'maxmemory'.", ErrorClass::Full),
            ("MISCONF Errors writing to the AOF file: No space left on device", ErrorClass::Full),
            ("MISCONF Redis is configured to save RDB snapshots", ErrorClass::Rejected),
            ("BUSY Redis is busy running a script.", ErrorClass::Overloaded),
            ("ERR max number of clients reached", ErrorClass::Overloaded),
            ("NOAUTH Authentication required.", ErrorClass::Rejected),
            ("WRONGPASS invalid username-password pair", ErrorClass::Rejected),
            ("NOPERM this user has no permissions", ErrorClass::Rejected),
            ("READONLY You can't write against a read only replica.", ErrorClass::Rejected),
            ("MOVED 3999 127.0.0.1:6381", ErrorClass::Rejected),
            ("ASK 3999 127.0.0.1:6381", ErrorClass::Rejected),
            ("ERR unknown command", ErrorClass::Rejected),
            ("", ErrorClass::Rejected),
        ];
        for (text, class) in cases {
            let error = request_error(text.as_bytes());
            assert_eq!((error.class, error.certainty), (class, Certainty::Failed), "{text}");
            assert!(!error.connection_lost);
            assert!(error.message.contains(text));
        }
        assert!(request_error(b"MOVED 1 h:1").message.contains("Cluster"));
    }
}

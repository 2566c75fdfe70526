//! Turns an error of the driver into that of a request: its class, and whether a write may have been applied.
//!
//! The rules: what was refused before it was sent, or by a server that says so before it writes, is
//! failed. A connection that broke is indeterminate, and so is an interrupted command. A write
//! concern that was not met is indeterminate, too: the write is applied on the primary, and may be
//! taken back by a failover. Codes: MongoDB's `error_codes.yml`.

use std::io;
use std::time::Duration;

use kvdyno_core::store::{Certainty, ErrorClass, RequestError};
use mongodb::bson::Document;
use mongodb::error::{Error, ErrorKind, WriteFailure};
use mongodb::options::ServerAddress;

use crate::wire::Effect;

const DUPLICATE_KEY: i32 = 11000;

/// Codes of requests that were refused before anything was written: wrong requests, missing rights, documents too large,
/// keys that are there, conflicts whose transaction was undone.
const REFUSED: [i32; 24] = [
    2, 9, 13, 14, 18, 20, 26, 40, 52, 54, 55, 57, 59, 66, 72, 73, 112, 121, 123, 238, 10003, 10334,
    11000, 17280,
];
/// Codes of a server that is not a primary, or not one that takes writes: refused before anything was written.
const NOT_PRIMARY: [i32; 4] = [10058, 10107, 13435, 13436];
/// Codes of a limit of time that was passed somewhere on the way.
const TIMED_OUT: [i32; 5] = [50, 64, 89, 202, 262];
/// Codes of no room: 12501 of a quota, 14031 of the disk.
const FULL: [i32; 2] = [12501, 14031];

/// Returns the outcome of a request that ended with `error`.
pub(super) fn request_error(error: &Error, effect: Effect) -> RequestError {
    let unclear = |class| effect.uncertain(class, error.kind.to_string());
    let failed = |class| RequestError::failed(class, error.kind.to_string());
    match &*error.kind {
        ErrorKind::Command(command) => {
            let name = if command.code_name.is_empty() { "error" } else { &command.code_name };
            let message = format!("{name} ({}): {}", command.code, command.message);
            of_code(command.code, message, effect)
        }
        ErrorKind::Write(WriteFailure::WriteError(error)) => {
            of_code(error.code, format!("write error {}: {}", error.code, error.message), effect)
        }
        ErrorKind::Write(WriteFailure::WriteConcernError(error)) => {
            concern_not_met(error.code, &error.message)
        }
        ErrorKind::InsertMany(failure) => {
            let first = failure.write_errors.iter().flatten().next();
            match (first, &failure.write_concern_error) {
                // Inserts are ordered: those before this one were applied.
                (Some(first), _) => of_some(first.index, first.code, &first.message),
                (None, Some(concern)) => concern_not_met(concern.code, &concern.message),
                (None, None) => unclear(ErrorClass::Protocol),
            }
        }
        ErrorKind::Io(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
            failed(ErrorClass::Refused).losing_connection()
        }
        ErrorKind::Io(_) | ErrorKind::ConnectionPoolCleared { .. } => {
            unclear(ErrorClass::Disconnected).losing_connection()
        }
        ErrorKind::ServerSelection { .. } => failed(ErrorClass::Unavailable).losing_connection(),
        ErrorKind::DnsResolve { .. } => failed(ErrorClass::Refused).losing_connection(),
        ErrorKind::Authentication { .. }
        | ErrorKind::InvalidArgument { .. }
        | ErrorKind::InvalidTlsConfig { .. }
        | ErrorKind::IncompatibleServer { .. }
        | ErrorKind::SessionsNotSupported => failed(ErrorClass::Rejected),
        _ => unclear(ErrorClass::Protocol),
    }
}

/// Returns the error for a code that the server answered with.
fn of_code(code: i32, message: String, effect: Effect) -> RequestError {
    match code {
        _ if NOT_PRIMARY.contains(&code) => RequestError::failed(ErrorClass::Unavailable, message),
        _ if REFUSED.contains(&code) => RequestError::failed(ErrorClass::Rejected, message),
        _ if TIMED_OUT.contains(&code) => effect.uncertain(ErrorClass::Timeout, message),
        _ if FULL.contains(&code) => effect.uncertain(ErrorClass::Full, message),
        // Among them 91, 189, 11600, 11602: interrupted, for the server shuts or steps down.
        _ => effect.uncertain(ErrorClass::Unavailable, message),
    }
}

/// Returns the error for a write that is applied on the primary, but which too few other members have in time.
fn concern_not_met(code: i32, message: &str) -> RequestError {
    let class = if code == 64 { ErrorClass::Timeout } else { ErrorClass::Unavailable };
    RequestError::indeterminate(class, format!("write concern not met ({code}): {message}"))
}

/// Returns the error for the write of this number in a batch; those before it did not fail.
fn of_some(index: usize, code: i32, message: &str) -> RequestError {
    let mut error = of_code(code, format!("write error {code}: {message}"), Effect::Write);
    if index > 0 {
        error.certainty = Certainty::Indeterminate;
    }
    error
}

/// Returns the error that the answer to an `update` command of several writes tells; `None` if nothing went wrong.
pub(super) fn of_update(answer: &Document) -> Option<RequestError> {
    let number = |document: &Document, name| {
        document.get(name).and_then(|value| {
            value.as_i32().or_else(|| value.as_i64().and_then(|wide| i32::try_from(wide).ok()))
        })
    };
    let message = |document: &Document| document.get_str("errmsg").unwrap_or_default().to_owned();
    if let Ok(errors) = answer.get_array("writeErrors")
        && let Some(first) = errors.first().and_then(|error| error.as_document())
    {
        let index = number(first, "index").and_then(|index| usize::try_from(index).ok());
        let code = number(first, "code").unwrap_or_default();
        return Some(of_some(index.unwrap_or(usize::MAX), code, &message(first)));
    }
    let concern = answer.get_document("writeConcernError").ok()?;
    Some(concern_not_met(number(concern, "code").unwrap_or_default(), &message(concern)))
}

/// Returns true if a record was there that was to be inserted, and nothing else is wrong.
pub(super) fn is_duplicate(error: &Error) -> bool {
    match &*error.kind {
        ErrorKind::Write(WriteFailure::WriteError(error)) => error.code == DUPLICATE_KEY,
        ErrorKind::InsertMany(failure) => {
            let mut errors = failure.write_errors.iter().flatten();
            failure.write_concern_error.is_none()
                && failure.write_errors.is_some()
                && errors.all(|error| error.code == DUPLICATE_KEY)
        }
        _ => false,
    }
}

/// None of these servers answered in the time allowed. Nothing of a load was sent yet.
pub(super) fn unanswered(servers: &[ServerAddress], timeout: Duration) -> RequestError {
    let servers: Vec<String> = servers.iter().map(ToString::to_string).collect();
    let message = format!("no answer from {} within {timeout:?}", servers.join(", "));
    Effect::Read.uncertain(ErrorClass::Timeout, message).losing_connection()
}

/// Returns the error if no server could be reached; nothing of any request was sent.
pub(super) fn while_opening(error: &Error) -> RequestError {
    of_opening(request_error(error, Effect::Read))
}

/// Returns the error of an attempt to connect.
pub(super) fn of_opening(error: RequestError) -> RequestError {
    let class = match error.class {
        ErrorClass::Rejected => ErrorClass::Rejected,
        _ => ErrorClass::Refused,
    };
    RequestError::failed(class, format!("cannot connect: {}", error.message)).losing_connection()
}

#[cfg(test)]
mod tests {
    use mongodb::bson::doc;

    use super::*;

    #[test]
    fn each_code_has_its_class_and_certainty() {
        use Certainty::{Failed, Indeterminate};
        for (code, class, certainty) in [
            (10107, ErrorClass::Unavailable, Failed),
            (13435, ErrorClass::Unavailable, Failed),
            (13436, ErrorClass::Unavailable, Failed),
            (91, ErrorClass::Unavailable, Indeterminate),
            (189, ErrorClass::Unavailable, Indeterminate),
            (11600, ErrorClass::Unavailable, Indeterminate),
            (11602, ErrorClass::Unavailable, Indeterminate),
            (1, ErrorClass::Unavailable, Indeterminate),
            (50, ErrorClass::Timeout, Indeterminate),
            (14031, ErrorClass::Full, Indeterminate),
            (13, ErrorClass::Rejected, Failed),
            (10334, ErrorClass::Rejected, Failed),
            (11000, ErrorClass::Rejected, Failed),
        ] {
            let error = of_code(code, String::new(), Effect::Write);
            assert_eq!((error.class, error.certainty), (class, certainty), "{code}");
            assert_eq!(of_code(code, String::new(), Effect::Read).certainty, Failed, "{code}");
        }
    }

    #[test]
    fn a_batch_is_failed_only_if_none_was_applied() {
        let answer = |index: i32, code: i32| {
            let error = doc! { "index": index, "code": code, "errmsg": "no" };
            of_update(&doc! { "ok": 1, "n": index, "writeErrors": [error] }).unwrap()
        };
        assert_eq!(answer(0, 10107).certainty, Certainty::Failed);
        assert_eq!(answer(1, 10107).certainty, Certainty::Indeterminate);
        assert_eq!(answer(0, 91).certainty, Certainty::Indeterminate);
        assert_eq!(of_update(&doc! { "ok": 1.0, "n": 3 }), None);
        let late = doc! { "ok": 1, "writeConcernError": { "code": 64, "errmsg": "timed out" } };
        let error = of_update(&late).unwrap();
        assert_eq!((error.class, error.certainty), (ErrorClass::Timeout, Certainty::Indeterminate));
    }
}

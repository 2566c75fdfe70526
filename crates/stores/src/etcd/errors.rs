//! Turns an error of etcd into that of a request: its class, and whether a write may have been applied.
//!
//! A status without a source came from the server; its message is one of those in etcd's
//! `api/v3rpc/rpctypes/error.go`. One with a source was made here, by the connection. Numbers of the
//! codes: gRPC, "Status codes and their use in gRPC".

use std::error::Error as StdError;
use std::io;
use std::time::Duration;

use etcd_client::Error;
use kvdyno_core::store::{ErrorClass, RequestError};

use crate::wire::Effect;

const INVALID_ARGUMENT: i32 = 3;
const DEADLINE_EXCEEDED: i32 = 4;
const NOT_FOUND: i32 = 5;
const PERMISSION_DENIED: i32 = 7;
const RESOURCE_EXHAUSTED: i32 = 8;
const FAILED_PRECONDITION: i32 = 9;
const OUT_OF_RANGE: i32 = 11;
const UNIMPLEMENTED: i32 = 12;
const UNAVAILABLE: i32 = 14;
const UNAUTHENTICATED: i32 = 16;

/// Returns the outcome of a request that ended with `error`.
pub(super) fn request_error(error: &Error, effect: Effect) -> RequestError {
    match error {
        Error::GRpcStatus(status) if status.source().is_none() => {
            from_server(status.code() as i32, status.message(), effect)
        }
        Error::GRpcStatus(status) => broken(status, effect),
        Error::TransportError(error) => broken(error, effect),
        // The driver refused before it sent anything.
        other => RequestError::failed(ErrorClass::Rejected, other.to_string()),
    }
}

/// Returns the error for a status other than OK from the server.
fn from_server(code: i32, message: &str, effect: Effect) -> RequestError {
    let unclear = |class| effect.uncertain(class, message.to_owned());
    let failed = |class, advice: &str| RequestError::failed(class, format!("{message}{advice}"));
    match code {
        UNAVAILABLE if message == "etcdserver: no leader" => {
            failed(ErrorClass::Unavailable, "").losing_connection()
        }
        UNAVAILABLE if message.starts_with("etcdserver: request timed out") => {
            unclear(ErrorClass::Timeout).losing_connection()
        }
        UNAVAILABLE => unclear(ErrorClass::Unavailable).losing_connection(),
        DEADLINE_EXCEEDED => unclear(ErrorClass::Timeout).losing_connection(),
        // A write that finds the quota used up when it is applied is applied all the same
        // (etcd, `quotaApplierV3`); only those after it are refused.
        RESOURCE_EXHAUSTED if message.contains("space exceeded") => {
            let advice = "; compact and defragment the database, then disarm its alarm \
                          (`etcdctl alarm disarm`), or raise --quota-backend-bytes";
            effect.uncertain(ErrorClass::Full, format!("{message}{advice}"))
        }
        RESOURCE_EXHAUSTED if message.contains("too many requests") => {
            failed(ErrorClass::Overloaded, "")
        }
        RESOURCE_EXHAUSTED => failed(ErrorClass::Rejected, TOO_LARGE),
        INVALID_ARGUMENT if message.contains("too large") => {
            failed(ErrorClass::Rejected, TOO_LARGE)
        }
        INVALID_ARGUMENT if message.contains("too many operations") => {
            failed(ErrorClass::Rejected, "; make batches smaller, or raise --max-txn-ops")
        }
        // The next attempt to connect asks for a new token.
        UNAUTHENTICATED => failed(ErrorClass::Rejected, "").losing_connection(),
        INVALID_ARGUMENT | NOT_FOUND | PERMISSION_DENIED | FAILED_PRECONDITION | OUT_OF_RANGE
        | UNIMPLEMENTED => failed(ErrorClass::Rejected, ""),
        _ => unclear(ErrorClass::Unavailable).losing_connection(),
    }
}

const TOO_LARGE: &str = "; make values smaller, or raise --max-request-bytes";

/// Returns the error for a connection that broke, or could not be made.
fn broken(error: &(dyn StdError + 'static), effect: Effect) -> RequestError {
    let message = described(error);
    if io_kind(error) == Some(io::ErrorKind::ConnectionRefused) {
        return refused(message);
    }
    effect.uncertain(ErrorClass::Disconnected, message).losing_connection()
}

/// Returns the error for members of which none answered in the time allowed. Nothing of a load was sent yet.
pub(super) fn unanswered(endpoints: &[String], timeout: Duration) -> RequestError {
    let message = format!("no answer from {} within {timeout:?}", endpoints.join(", "));
    Effect::Read.uncertain(ErrorClass::Timeout, message).losing_connection()
}

/// Returns the error for a connection that could not be made; nothing was sent.
pub(super) fn refused(message: impl Into<String>) -> RequestError {
    RequestError::failed(ErrorClass::Refused, message.into()).losing_connection()
}

/// Returns the error for a member that is up, but cut off from the others.
pub(super) fn no_leader(endpoint: &str) -> RequestError {
    let message = format!("{endpoint} knows no leader");
    RequestError::failed(ErrorClass::Unavailable, message).losing_connection()
}

/// Returns the error for a client that could not be made.
pub(super) fn of_opening(error: &Error, endpoint: &str) -> RequestError {
    while_opening(request_error(error, Effect::Read), endpoint)
}

/// Returns the error for an attempt to connect: nothing of any request was sent.
pub(super) fn while_opening(error: RequestError, endpoint: &str) -> RequestError {
    let class = match error.class {
        ErrorClass::Disconnected | ErrorClass::Timeout => ErrorClass::Refused,
        other => other,
    };
    let message = format!("cannot connect to {endpoint}: {}", error.message);
    RequestError::failed(class, message).losing_connection()
}

/// Returns true if the server refuses the token of a request, before it does anything: the token has ended, or users were
/// changed since. These are the refusals upon which the official client asks for a new one.
pub(super) fn is_of_token(error: &Error) -> bool {
    matches!(error, Error::GRpcStatus(status)
        if status.source().is_none() && of_token(status.code() as i32, status.message()))
}

fn of_token(code: i32, message: &str) -> bool {
    match code {
        UNAUTHENTICATED => message.contains("invalid auth token"),
        INVALID_ARGUMENT => {
            message.contains("revision of auth store is old")
                || message.contains("user name is empty")
        }
        _ => false,
    }
}

/// Returns true if the server is up and does not tell this user.
pub(super) fn is_denied(error: &Error) -> bool {
    matches!(error, Error::GRpcStatus(status)
        if status.source().is_none() && status.code() as i32 == PERMISSION_DENIED)
}

fn chain<'e>(
    error: &'e (dyn StdError + 'static),
) -> impl Iterator<Item = &'e (dyn StdError + 'static)> {
    std::iter::successors(Some(error), |error: &&'e (dyn StdError + 'static)| (*error).source())
}

fn io_kind(error: &(dyn StdError + 'static)) -> Option<io::ErrorKind> {
    chain(error).find_map(|error| error.downcast_ref::<io::Error>()).map(io::Error::kind)
}

/// Describes the error and its causes in one line, without saying anything twice.
fn described(error: &(dyn StdError + 'static)) -> String {
    let mut out = String::new();
    for text in chain(error).map(ToString::to_string) {
        // What the check of a certificate says is no surprise.
        let text = text.strip_prefix("unexpected error: ").unwrap_or(&text);
        if !out.contains(text) {
            let space = if out.is_empty() { "" } else { ": " };
            out = format!("{out}{space}{text}");
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use kvdyno_core::store::Certainty;

    use super::*;

    #[test]
    fn a_token_that_ended_is_told_from_a_wrong_password() {
        assert!(of_token(16, "etcdserver: invalid auth token"));
        assert!(of_token(3, "etcdserver: revision of auth store is old"));
        assert!(of_token(3, "etcdserver: user name is empty"));
        for (code, message) in [
            (3, "etcdserver: authentication failed, invalid user ID or password"),
            (7, "etcdserver: permission denied"),
            (14, "etcdserver: invalid auth token"),
        ] {
            assert!(!of_token(code, message), "{message}");
        }
    }

    #[test]
    fn each_answer_has_its_class_and_certainty() {
        use Certainty::{Failed, Indeterminate};
        use ErrorClass::{Full, Overloaded, Rejected, Timeout, Unavailable};
        let cases = [
            (14, "etcdserver: no leader", Unavailable, Failed, true),
            (14, "etcdserver: request timed out", Timeout, Indeterminate, true),
            (
                14,
                "etcdserver: request timed out, possibly due to previous leader failure",
                Timeout,
                Indeterminate,
                true,
            ),
            (14, "etcdserver: leader changed", Unavailable, Indeterminate, true),
            (14, "etcdserver: server stopped", Unavailable, Indeterminate, true),
            (8, "etcdserver: mvcc: database space exceeded", Full, Indeterminate, false),
            (8, "etcdserver: too many requests", Overloaded, Failed, false),
            (8, "grpc: received message larger than max (3 vs. 2)", Rejected, Failed, false),
            (3, "etcdserver: request is too large", Rejected, Failed, false),
            (3, "etcdserver: too many operations in txn request", Rejected, Failed, false),
            (5, "etcdserver: requested lease not found", Rejected, Failed, false),
            (7, "etcdserver: permission denied", Rejected, Failed, false),
            (9, "etcdserver: authentication is not enabled", Rejected, Failed, false),
            (16, "etcdserver: invalid auth token", Rejected, Failed, true),
            (2, "context canceled", Unavailable, Indeterminate, true),
            (13, "stream terminated", Unavailable, Indeterminate, true),
        ];
        for (code, message, class, certainty, lost) in cases {
            let write = from_server(code, message, Effect::Write);
            assert_eq!((write.class, write.certainty), (class, certainty), "{message}");
            assert_eq!(write.connection_lost, lost, "{message}");
            assert!(write.message.starts_with(message));
            assert_eq!(from_server(code, message, Effect::Read).certainty, Failed, "{message}");
        }
    }

    #[test]
    fn only_a_refused_connection_is_surely_not_applied() {
        let error = |kind| broken(&io::Error::from(kind), Effect::Write);
        assert_eq!(error(io::ErrorKind::ConnectionRefused).certainty, Certainty::Failed);
        for kind in [io::ErrorKind::ConnectionReset, io::ErrorKind::BrokenPipe] {
            let error = error(kind);
            assert_eq!(error.certainty, Certainty::Indeterminate);
            assert_eq!((error.class, error.connection_lost), (ErrorClass::Disconnected, true));
        }
    }
}

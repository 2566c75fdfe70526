//! Turns an error of the driver into that of a request: which class it is of, and whether the request may have been carried
//! out. Written after the sources of the driver (aerospike 3.0) and of the server (`proto.h` and the transaction code of
//! 8.1); what is not listed is indeterminate.
//!
//! The driver marks a write as in doubt if the whole of it was sent and no answer could be read, or
//! the server answered that it has timed out. That mark counts, but for one case: codes after which the
//! driver would send again end, where it may not, as its own error about too many tries, which it marks
//! whatever the server has said. A write that went out once is what the server says of it. A write that was sent in part is
//! not in doubt: the server carries out whole messages only.

use aerospike::{Error, ErrorKind, ResultCode};
use kvdyno_core::store::{ErrorClass, RequestError};

/// Effect of a request that is carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Effect {
    /// Nothing: it is never indeterminate.
    Read,
    /// Writes one record.
    Write,
    /// One record of a batch of writes.
    Row,
}

/// Possibility that a write was carried out, in spite of its error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Applied {
    /// It was surely not.
    No,
    /// Only if the driver has marked it as in doubt.
    IfInDoubt,
    /// Not known.
    Perhaps,
}

/// Returns the error for a request that did not succeed.
pub(super) fn request_error(error: &Error, effect: Effect) -> RequestError {
    let (class, applied) = meaning(error);
    let answered_once = error.server_result_code().is_some() && error.iteration() == Some(1);
    let perhaps = perhaps(effect, applied, error.in_doubt(), answered_once);
    let message = message(error);
    let error = if perhaps {
        RequestError::indeterminate(class, message)
    } else {
        RequestError::failed(class, message)
    };
    match class {
        ErrorClass::Refused | ErrorClass::Disconnected => error.losing_connection(),
        _ => error,
    }
}

/// Returns true if a request without success may have been carried out. `in_doubt` is the driver's mark;
/// `answered_once`: it went out once, and the server has answered.
fn perhaps(effect: Effect, applied: Applied, in_doubt: bool, answered_once: bool) -> bool {
    match (effect, applied) {
        (Effect::Read, _) => false,
        (_, Applied::No) if answered_once => false,
        _ if in_doubt => true,
        (_, Applied::No) => false,
        // The driver builds the errors of rows from those of a whole node.
        (Effect::Row, Applied::IfInDoubt) | (_, Applied::Perhaps) => true,
        (Effect::Write, Applied::IfInDoubt) => false,
    }
}

/// Returns the error for a row of a batch without any outcome.
pub(super) fn unanswered(whole: Option<&Error>, effect: Effect) -> RequestError {
    if let Some(error) = whole {
        return request_error(error, effect);
    }
    const MESSAGE: &str = "a record of the batch got no answer";
    match effect {
        Effect::Read => RequestError::failed(ErrorClass::Protocol, MESSAGE),
        Effect::Write | Effect::Row => RequestError::indeterminate(ErrorClass::Protocol, MESSAGE),
    }
}

/// Returns the error for a cluster that could not be reached.
pub(super) fn no_cluster(error: &Error, places: &str) -> RequestError {
    let refused = error.server_result_code().map(of_code).map(|(class, _)| class);
    let text = message(error);
    // A server without users has the driver tell so in words only.
    let no_users = text.contains("Security not supported") || text.contains("Security not enabled");
    if refused == Some(ErrorClass::Rejected) || no_users || text.contains("uthenticat") {
        let advice = match no_users {
            true => "it has no users (Community Edition): leave user and password out of the URL",
            false => "check user and password: aerospike://user:password@host/namespace",
        };
        let message = format!("{places}: {text}; {advice}");
        return RequestError::failed(ErrorClass::Rejected, message).losing_connection();
    }
    let message = format!("cannot connect to {places}: {text}");
    RequestError::failed(ErrorClass::Refused, message).losing_connection()
}

/// Returns one line: what the error says, what caused it, and what to do where that is not plain.
fn message(error: &Error) -> String {
    let mut text = error.base_message();
    let mut cause = error.cause();
    while let Some(error) = cause {
        text.push_str(": ");
        text.push_str(&error.base_message());
        cause = error.cause();
    }
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match error.server_result_code().and_then(advice) {
        Some(advice) => format!("{text}; {advice}"),
        None => text,
    }
}

fn advice(code: ResultCode) -> Option<&'static str> {
    match code {
        ResultCode::FailForbidden => Some(
            "a time to live needs `nsup-period` (or `allow-ttl-without-nsup true`) in the \
             namespace's configuration; deletes with strong consistency need tombstones; a set or \
             namespace may have stopped writes",
        ),
        ResultCode::ServerMemError => Some(
            "the namespace has no room left: its `data-size`, `filesize` or `stop-writes` limits",
        ),
        ResultCode::DeviceOverload => {
            Some("the device is behind: more `max-write-cache`, or fewer writes")
        }
        ResultCode::RecordTooBig => Some("records are limited by `max-record-size`, 1 MiB"),
        ResultCode::KeyBusy => {
            Some("more requests for one record than `transaction-pending-limit`")
        }
        ResultCode::InvalidNamespace => Some("name one of the cluster's namespaces in the URL"),
        ResultCode::NotAuthenticated | ResultCode::InvalidUser | ResultCode::InvalidPassword => {
            Some("give user and password in the URL: aerospike://user:password@host/namespace")
        }
        _ => None,
    }
}

/// Judges an error by the server's code, if there is one in the chain of causes, else by the innermost cause.
fn meaning(error: &Error) -> (ErrorClass, Applied) {
    if let Some(code) = error.server_result_code() {
        return of_code(code);
    }
    let mut innermost = error;
    while let Some(cause) = innermost.cause() {
        innermost = cause;
    }
    of_kind(innermost.kind())
}

fn of_kind(kind: &ErrorKind) -> (ErrorClass, Applied) {
    match kind {
        // Nothing was sent: no connection to be had, or no node for the record.
        ErrorKind::ConnectionPoolEmpty
        | ErrorKind::NoMoreConnections
        | ErrorKind::InvalidNode
        | ErrorKind::InvalidNamespace => (ErrorClass::Refused, Applied::No),
        // Nothing was sent: the driver spares a node with which much went wrong in this second.
        ErrorKind::MaxErrorRate => (ErrorClass::Refused, Applied::No),
        // Nothing was sent.
        ErrorKind::InvalidArgument => (ErrorClass::Rejected, Applied::No),
        ErrorKind::Timeout => (ErrorClass::Timeout, Applied::IfInDoubt),
        ErrorKind::Connection | ErrorKind::Io(_) => (ErrorClass::Disconnected, Applied::IfInDoubt),
        _ => (ErrorClass::Protocol, Applied::Perhaps),
    }
}

/// Judges each result code of the server.
fn of_code(code: ResultCode) -> (ErrorClass, Applied) {
    use ResultCode as Code;
    match code {
        // Found before the record is touched: the request itself is wrong, or not allowed.
        Code::ParameterError
        | Code::AlwaysForbidden
        | Code::BinTypeError
        | Code::RecordTooBig
        | Code::UnsupportedFeature
        | Code::BinNotFound
        | Code::KeyMismatch
        | Code::InvalidNamespace
        | Code::BinNameTooLong
        | Code::FailForbidden
        | Code::ElementNotFound
        | Code::ElementExists
        | Code::EnterpriseOnly
        | Code::OpNotApplicable
        | Code::InvalidEncoding
        | Code::InvalidGeojson => (ErrorClass::Rejected, Applied::No),
        // A condition on the record does not hold; kvdyno sets none.
        Code::KeyNotFoundError
        | Code::GenerationError
        | Code::KeyExistsError
        | Code::BinExistsError
        | Code::FilteredOut
        | Code::LostConflict => (ErrorClass::Rejected, Applied::No),
        // Transactions, of which kvdyno makes none: the record is another's.
        Code::MrtBlocked
        | Code::MrtVersionMismatch
        | Code::MrtExpired
        | Code::MrtTooManyWrites
        | Code::MrtCommitted
        | Code::MrtAborted
        | Code::MrtAlreadyLocked
        | Code::MrtMonitorExists => (ErrorClass::Rejected, Applied::No),
        // Who asks is not known, or may not.
        Code::SecurityNotSupported
        | Code::SecurityNotEnabled
        | Code::SecuritySchemeNotSupported
        | Code::InvalidCommand
        | Code::InvalidField
        | Code::IllegalState
        | Code::InvalidUser
        | Code::UserAlreadyExists
        | Code::InvalidPassword
        | Code::ExpiredPassword
        | Code::ForbiddenPassword
        | Code::InvalidCredential
        | Code::ExpiredSession
        | Code::InvalidRole
        | Code::RoleAlreadyExists
        | Code::InvalidPrivilege
        | Code::InvalidAllowlist
        | Code::QuotasNotEnabled
        | Code::InvalidQuota
        | Code::NotAuthenticated
        | Code::RoleViolation
        | Code::NotAllowlisted => (ErrorClass::Rejected, Applied::No),
        // No room: looked at before a record is written.
        Code::ServerMemError => (ErrorClass::Full, Applied::No),
        // Too much to do: turned away at the door.
        Code::KeyBusy
        | Code::XdrKeyBusy
        | Code::DeviceOverload
        | Code::QuotaExceeded
        | Code::BatchMaxRequestsExceeded
        | Code::BatchQueuesFull => (ErrorClass::Overloaded, Applied::No),
        Code::BatchDisabled => (ErrorClass::Rejected, Applied::No),
        Code::PartitionUnavailable => (ErrorClass::Unavailable, Applied::No),
        // The master has waited for copies, or the request for its turn: it may be done yet.
        Code::Timeout => (ErrorClass::Timeout, Applied::Perhaps),
        // Another node has refused what this one had passed on, perhaps after copies were written.
        Code::ClusterKeyMismatch => (ErrorClass::Unavailable, Applied::Perhaps),
        Code::ServerError | Code::UdfBadResponse => (ErrorClass::Unavailable, Applied::Perhaps),
        // Answers to scans, queries and their indexes, which kvdyno does not ask for, and whatever
        // newer servers say.
        _ => (ErrorClass::Protocol, Applied::Perhaps),
    }
}

/// Returns what the server would answer to a time to live, sooner and clearer.
pub(super) fn ttl_refused(namespace: &str) -> RequestError {
    let message = format!(
        "namespace `{namespace}` takes no time to live: set `nsup-period` (or \
         `allow-ttl-without-nsup true`) in its configuration"
    );
    RequestError::failed(ErrorClass::Unsupported, message)
}

#[cfg(test)]
mod tests {
    use kvdyno_core::store::Certainty;

    use super::*;

    #[test]
    fn every_result_code_has_its_meaning() {
        use ErrorClass::{Full, Overloaded, Protocol, Rejected, Timeout, Unavailable};
        let expected = |code: u8| match code {
            1 | 7 | 100 => (Unavailable, Applied::Perhaps),
            2..=6 | 10 | 12 | 13 | 16 | 17 | 19..=29 => (Rejected, Applied::No),
            8 => (Full, Applied::No),
            9 => (Timeout, Applied::Perhaps),
            11 => (Unavailable, Applied::No),
            14 | 18 | 32 | 83 | 151 | 152 => (Overloaded, Applied::No),
            51..=56 | 60..=66 | 70..=75 | 80..=82 => (Rejected, Applied::No),
            120..=127 | 150 | 160 => (Rejected, Applied::No),
            _ => (Protocol, Applied::Perhaps),
        };
        for code in 0..=u8::MAX {
            let named = ResultCode::from(code);
            assert_eq!(of_code(named), expected(code), "{code}: {named}");
        }
    }

    #[test]
    fn each_error_of_the_driver_has_its_meaning() {
        use Certainty::{Failed, Indeterminate};
        use ErrorClass::{Disconnected, Protocol, Refused, Rejected};
        let lost = || Error::from(std::io::Error::from(std::io::ErrorKind::BrokenPipe));
        // Errors that the driver has not marked as in doubt.
        let cases = [
            (lost(), Disconnected, Failed, Indeterminate),
            (lost().chain_error("while sending"), Disconnected, Failed, Indeterminate),
            (Error::invalid_argument("a key"), Rejected, Failed, Failed),
            (Error::client_error("something"), Protocol, Indeterminate, Indeterminate),
        ];
        for (error, class, single, row) in cases {
            let judged = |effect| {
                (request_error(&error, effect).class, request_error(&error, effect).certainty)
            };
            assert_eq!(judged(Effect::Read), (class, Failed), "{error}");
            assert_eq!(judged(Effect::Write), (class, single), "{error}");
            assert_eq!(judged(Effect::Row), (class, row), "{error}");
        }
        for kind in [
            ErrorKind::ConnectionPoolEmpty,
            ErrorKind::NoMoreConnections,
            ErrorKind::InvalidNode,
            ErrorKind::MaxErrorRate,
        ] {
            assert_eq!(of_kind(&kind), (Refused, Applied::No), "{kind:?}");
        }
        assert_eq!(of_kind(&ErrorKind::Timeout), (ErrorClass::Timeout, Applied::IfInDoubt));
        assert_eq!(of_kind(&ErrorKind::BadResponse), (Protocol, Applied::Perhaps));
        assert!(request_error(&lost(), Effect::Write).connection_lost);
        let chained = request_error(&lost().chain_error("while\n sending"), Effect::Read);
        assert!(chained.message.starts_with("while sending: Error during an I/O"), "{chained}");
    }

    #[test]
    fn what_the_server_says_of_a_write_that_went_out_once_counts() {
        let (_, applied) = of_code(ResultCode::PartitionUnavailable);
        // As recorded from a node of 8.1 without the partition: the driver marks its own error, which is
        // about too many tries, as in doubt.
        assert!(!perhaps(Effect::Write, applied, true, true));
        // After several tries an earlier one may have been carried out.
        assert!(perhaps(Effect::Write, applied, true, false));
        let (_, applied) = of_code(ResultCode::Timeout);
        assert!(perhaps(Effect::Write, applied, true, true));
        assert!(!perhaps(Effect::Read, applied, true, true));
    }

    #[test]
    fn a_server_without_users_rejects_who_logs_in() {
        // As the driver tells it of a Community Edition 8.1.
        let said = "Failed to connect to host(s): Security not supported";
        let error = no_cluster(&Error::client_error(said), "127.0.0.1:3000");
        assert_eq!(error.class, ErrorClass::Rejected);
        assert!(error.message.contains("leave user and password out"), "{error}");
        let error = no_cluster(&Error::client_error("no route"), "127.0.0.1:3000");
        assert_eq!(error.class, ErrorClass::Refused);
    }

    #[test]
    fn a_row_without_an_outcome_is_unknown() {
        assert_eq!(unanswered(None, Effect::Row).certainty, Certainty::Indeterminate);
        assert_eq!(unanswered(None, Effect::Read).certainty, Certainty::Failed);
        let nothing_sent = Error::invalid_argument("no");
        assert_eq!(unanswered(Some(&nothing_sent), Effect::Row).certainty, Certainty::Failed);
    }

    #[test]
    fn a_time_to_live_that_is_refused_comes_with_advice() {
        let advice = advice(ResultCode::FailForbidden).unwrap();
        assert!(advice.contains("nsup-period"), "{advice}");
    }
}

//! Turns an error of the driver into that of a request: which class it is of, and whether the request may have been carried
//! out. Written after the sources of the driver (scylla 1.9) and of Cassandra (5.0); what is not listed is indeterminate.

use kvdyno_core::store::{ErrorClass, RequestError};
use scylla::errors::{DbError, ExecutionError, NewSessionError, RequestAttemptError};

/// Effect of a request that is carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Effect {
    /// Nothing: it is never indeterminate.
    Read,
    /// Writes one row.
    Write,
    /// Writes several rows, one after the other: an error may come when some are already written.
    Batch,
}

/// Possibility that the request was carried out, in spite of its error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Applied {
    /// It was surely not.
    No,
    /// The row that the error came for was not; rows of a batch before it perhaps.
    NotThisRow,
    /// Not known.
    Perhaps,
}

/// Returns the error for a request that did not succeed.
pub(super) fn request_error(error: &ExecutionError, effect: Effect) -> RequestError {
    let (class, applied) = meaning(error);
    let sure = match (effect, applied) {
        (Effect::Read, _) | (_, Applied::No) | (Effect::Write, Applied::NotThisRow) => true,
        (Effect::Batch, Applied::NotThisRow) | (_, Applied::Perhaps) => false,
    };
    let message = one_line(error);
    let error = if sure {
        RequestError::failed(class, message)
    } else {
        RequestError::indeterminate(class, message)
    };
    match class {
        ErrorClass::Refused | ErrorClass::Disconnected => error.losing_connection(),
        _ => error,
    }
}

/// Returns the error for a session that could not be made.
pub(super) fn no_session(error: &NewSessionError, nodes: &[String]) -> RequestError {
    let message = one_line(error);
    let nodes = nodes.join(", ");
    if message.contains("uthenticat") {
        let advice = "give user and password in the URL: cassandra://user:password@host";
        let message = format!("{nodes}: {message}; {advice}");
        return RequestError::failed(ErrorClass::Rejected, message).losing_connection();
    }
    let message = format!("cannot connect to {nodes}: {message}");
    RequestError::failed(ErrorClass::Refused, message).losing_connection()
}

/// Returns the driver's message without the line breaks in it.
fn one_line(error: &impl std::fmt::Display) -> String {
    error.to_string().split_whitespace().collect::<Vec<_>>().join(" ")
}

fn meaning(error: &ExecutionError) -> (ErrorClass, Applied) {
    match error {
        // Nothing was sent: the statement could not be encoded or prepared.
        ExecutionError::BadQuery(_) | ExecutionError::PrepareError(_) => {
            (ErrorClass::Rejected, Applied::No)
        }
        // Nothing was sent: no node that has a connection. The first attempt is the only one, so
        // this is not said after one that was sent.
        ExecutionError::EmptyPlan | ExecutionError::ConnectionPoolError(_) => {
            (ErrorClass::Refused, Applied::No)
        }
        ExecutionError::RequestTimeout(_) => (ErrorClass::Timeout, Applied::Perhaps),
        ExecutionError::LastAttemptError(error) => of_attempt(error),
        _ => (ErrorClass::Protocol, Applied::Perhaps),
    }
}

fn of_attempt(error: &RequestAttemptError) -> (ErrorClass, Applied) {
    match error {
        RequestAttemptError::DbError(error, _) => of_server(error),
        // Nothing was sent.
        RequestAttemptError::SerializationError(_)
        | RequestAttemptError::CqlRequestSerialization(_) => (ErrorClass::Rejected, Applied::No),
        // Nothing was sent: 32,768 requests are in flight on the connection.
        RequestAttemptError::UnableToAllocStreamId => (ErrorClass::Overloaded, Applied::No),
        // The server did not know the statement, and what it made of it anew is another one.
        RequestAttemptError::RepreparedIdChanged { .. }
        | RequestAttemptError::RepreparedIdMissingInBatch => (ErrorClass::Protocol, Applied::No),
        RequestAttemptError::BrokenConnectionError(_) => {
            (ErrorClass::Disconnected, Applied::Perhaps)
        }
        _ => (ErrorClass::Protocol, Applied::Perhaps),
    }
}

fn of_server(error: &DbError) -> (ErrorClass, Applied) {
    match error {
        // Found wrong before anything is carried out.
        DbError::SyntaxError
        | DbError::Invalid
        | DbError::AlreadyExists { .. }
        | DbError::FunctionFailure { .. }
        | DbError::AuthenticationError
        | DbError::Unauthorized
        | DbError::ConfigError
        | DbError::Unprepared { .. } => (ErrorClass::Rejected, Applied::No),
        DbError::IsBootstrapping => (ErrorClass::Unavailable, Applied::No),
        // StorageProxy looks whether enough replicas are alive, and whether too many hints wait,
        // for each row by itself and before it sends that row to the first replica.
        DbError::Unavailable { .. } => (ErrorClass::Unavailable, Applied::NotThisRow),
        DbError::Overloaded => (ErrorClass::Overloaded, Applied::NotThisRow),
        DbError::RateLimitReached { rejected_by_coordinator: true, .. } => {
            (ErrorClass::Overloaded, Applied::NotThisRow)
        }
        DbError::RateLimitReached { .. } => (ErrorClass::Overloaded, Applied::Perhaps),
        // Some replicas have it, and the others may get it yet.
        DbError::WriteTimeout { .. } | DbError::ReadTimeout { .. } => {
            (ErrorClass::Timeout, Applied::Perhaps)
        }
        DbError::WriteFailure { .. } | DbError::ReadFailure { .. } => {
            (ErrorClass::Unavailable, Applied::Perhaps)
        }
        DbError::ProtocolError => (ErrorClass::Protocol, Applied::Perhaps),
        _ => (ErrorClass::Rejected, Applied::Perhaps),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use kvdyno_core::store::Certainty;
    use scylla::errors::{BadQuery, OperationType, WriteType};
    use scylla::statement::Consistency;

    use super::*;

    fn server(error: DbError) -> ExecutionError {
        RequestAttemptError::DbError(error, "said\n  the server".to_owned()).into()
    }

    /// Returns the class of an error, and whether a put and a batch are surely failed.
    fn judged(error: &ExecutionError) -> (ErrorClass, bool, bool) {
        let read = request_error(error, Effect::Read);
        assert_eq!(read.certainty, Certainty::Failed, "{error}");
        assert!(!read.message.contains('\n'), "{read}");
        let sure = |effect| request_error(error, effect).certainty == Certainty::Failed;
        (read.class, sure(Effect::Write), sure(Effect::Batch))
    }

    #[test]
    fn each_answer_of_a_server_has_its_meaning() {
        use ErrorClass::{Overloaded, Protocol, Rejected, Timeout, Unavailable};
        let consistency = Consistency::Quorum;
        let limited = |rejected_by_coordinator| DbError::RateLimitReached {
            op_type: OperationType::Write,
            rejected_by_coordinator,
        };
        let (received, required) = (1, 2);
        let write_type = WriteType::Simple;
        let cases = [
            (DbError::SyntaxError, (Rejected, true, true)),
            (DbError::Invalid, (Rejected, true, true)),
            (DbError::Unauthorized, (Rejected, true, true)),
            (DbError::AuthenticationError, (Rejected, true, true)),
            (DbError::ConfigError, (Rejected, true, true)),
            (DbError::IsBootstrapping, (Unavailable, true, true)),
            (
                DbError::Unavailable { consistency, required: 2, alive: 1 },
                (Unavailable, true, false),
            ),
            (DbError::Overloaded, (Overloaded, true, false)),
            (limited(true), (Overloaded, true, false)),
            (limited(false), (Overloaded, false, false)),
            (
                DbError::WriteTimeout { consistency, received, required, write_type },
                (Timeout, false, false),
            ),
            (
                DbError::WriteFailure {
                    consistency,
                    received,
                    required,
                    numfailures: 1,
                    write_type: WriteType::Simple,
                },
                (Unavailable, false, false),
            ),
            (DbError::ServerError, (Rejected, false, false)),
            (DbError::TruncateError, (Rejected, false, false)),
            (DbError::ProtocolError, (Protocol, false, false)),
            (DbError::Other(0x1600), (Rejected, false, false)),
        ];
        for (error, expected) in cases {
            let text = error.to_string();
            assert_eq!(judged(&server(error)), expected, "{text}");
        }
    }

    #[test]
    fn each_error_of_the_driver_has_its_meaning() {
        use ErrorClass::{Overloaded, Protocol, Refused, Rejected, Timeout};
        let attempt = ExecutionError::from;
        let cases: [(ExecutionError, _); 6] = [
            (ExecutionError::EmptyPlan, (Refused, true, true)),
            (BadQuery::PartitionKeyExtraction.into(), (Rejected, true, true)),
            (ExecutionError::RequestTimeout(Duration::from_secs(2)), (Timeout, false, false)),
            (attempt(RequestAttemptError::UnableToAllocStreamId), (Overloaded, true, true)),
            (attempt(RequestAttemptError::RepreparedIdMissingInBatch), (Protocol, true, true)),
            (attempt(RequestAttemptError::NonfinishedPagingState), (Protocol, false, false)),
        ];
        for (error, expected) in cases {
            assert_eq!(judged(&error), expected, "{error}");
        }
        assert!(request_error(&ExecutionError::EmptyPlan, Effect::Write).connection_lost);
        let timeout = ExecutionError::RequestTimeout(Duration::from_secs(2));
        assert!(!request_error(&timeout, Effect::Write).connection_lost);
    }
}

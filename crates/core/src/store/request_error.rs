//! Errors of requests: why one did not succeed, and how certain it is that it was not applied.

use std::borrow::Cow;
use std::ops::{Deref, DerefMut};

use serde::{Deserialize, Serialize};

use crate::redact;

/// Certainty about the effect of a request that did not succeed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Certainty {
    /// Surely not applied, now or later.
    Failed,
    /// Perhaps applied, now or later.
    Indeterminate,
}

/// Class of an error. Errors are counted by class, and the first message of each class is always
/// shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ErrorClass {
    /// No connection could be made.
    Refused,
    /// No answer within the time allowed.
    Timeout,
    /// The connection was lost with the request in flight.
    Disconnected,
    /// The server said that it has too much to do.
    Overloaded,
    /// The server said that it cannot serve now (no quorum, no primary, loading).
    Unavailable,
    /// The server's answer could not be understood.
    Protocol,
    /// The server understood and declined (wrong password, read-only, value too large).
    Rejected,
    /// The server has no room left (memory or disk).
    Full,
    /// The driver cannot do this operation.
    Unsupported,
}

impl ErrorClass {
    /// Every class, in the order in which reports list them.
    pub const ALL: [ErrorClass; 9] = [
        ErrorClass::Refused,
        ErrorClass::Timeout,
        ErrorClass::Disconnected,
        ErrorClass::Overloaded,
        ErrorClass::Unavailable,
        ErrorClass::Protocol,
        ErrorClass::Rejected,
        ErrorClass::Full,
        ErrorClass::Unsupported,
    ];

    /// Returns the word used in results and on the terminal.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            ErrorClass::Refused => "refused",
            ErrorClass::Timeout => "timeout",
            ErrorClass::Disconnected => "disconnected",
            ErrorClass::Overloaded => "overloaded",
            ErrorClass::Unavailable => "unavailable",
            ErrorClass::Protocol => "protocol",
            ErrorClass::Rejected => "rejected",
            ErrorClass::Full => "full",
            ErrorClass::Unsupported => "unsupported",
        }
    }
}

/// Details of a request that did not succeed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestErrorDetails {
    /// Certainty about its effect.
    pub certainty: Certainty,
    /// Class of the error.
    pub class: ErrorClass,
    /// Message of the server or the system, for the user.
    pub message: Cow<'static, str>,
    /// True if the connection is gone: the caller waits a back-off before the next attempt.
    pub connection_lost: bool,
}

/// Error of a request that did not succeed. It takes one word of memory, because an answer is moved
/// several times for each operation, and nearly all answers are no error.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}: {}", self.class.name(), self.message)]
pub struct RequestError(Box<RequestErrorDetails>);

impl Deref for RequestError {
    type Target = RequestErrorDetails;

    fn deref(&self) -> &RequestErrorDetails {
        &self.0
    }
}

impl DerefMut for RequestError {
    fn deref_mut(&mut self) -> &mut RequestErrorDetails {
        &mut self.0
    }
}

impl RequestError {
    /// Creates the error of a request that was surely not applied.
    #[cold]
    pub fn failed(class: ErrorClass, message: impl Into<Cow<'static, str>>) -> Self {
        RequestError::new(Certainty::Failed, class, message)
    }

    /// Creates the error of a request that may have been applied, or may yet be.
    #[cold]
    pub fn indeterminate(class: ErrorClass, message: impl Into<Cow<'static, str>>) -> Self {
        RequestError::new(Certainty::Indeterminate, class, message)
    }

    /// Creates the error with the certainty that the caller knows.
    #[cold]
    pub fn new(
        certainty: Certainty,
        class: ErrorClass,
        message: impl Into<Cow<'static, str>>,
    ) -> Self {
        // Some servers repeat what they were sent, be it a password.
        let message = match message.into() {
            Cow::Owned(told) => redact::hide(told.into()).into_owned().into(),
            own => own,
        };
        RequestError(Box::new(RequestErrorDetails {
            certainty,
            class,
            message,
            connection_lost: false,
        }))
    }

    /// Creates the error of an operation that the driver does not have.
    #[must_use]
    pub fn unsupported(operation: &'static str) -> Self {
        RequestError::failed(ErrorClass::Unsupported, operation)
    }

    /// Marks the connection as lost.
    #[must_use]
    pub fn losing_connection(mut self) -> Self {
        self.connection_lost = true;
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_small() {
        assert_eq!(size_of::<crate::store::Answer<bool>>(), 2 * size_of::<usize>());
        assert_eq!(size_of::<crate::store::Answer<()>>(), size_of::<usize>());
        let error = RequestError::failed(ErrorClass::Timeout, "no answer").losing_connection();
        assert_eq!(error.to_string(), "timeout: no answer");
    }
}

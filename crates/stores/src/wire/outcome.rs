//! Outcomes that drivers tell alike: of a request whose answer stays away, and of a write that travels in several pieces.

#[cfg(any(feature = "etcd", feature = "mongodb", feature = "nats"))]
use std::time::Duration;

#[cfg(any(feature = "etcd", feature = "mongodb", feature = "nats", feature = "tarantool"))]
use kvdyno_core::store::ErrorClass;
use kvdyno_core::store::{Answer, Certainty, RequestError};

#[cfg(any(feature = "etcd", feature = "mongodb", feature = "nats", feature = "tarantool"))]
impl super::Effect {
    /// Gives the outcome of a request that may have been carried out. A read changes nothing, so it has failed.
    pub(crate) fn uncertain(self, class: ErrorClass, message: String) -> RequestError {
        let certainty = match self {
            super::Effect::Read => Certainty::Failed,
            super::Effect::Write => Certainty::Indeterminate,
        };
        RequestError::new(certainty, class, message)
    }
}

#[cfg(any(feature = "etcd", feature = "mongodb", feature = "nats"))]
impl super::Effect {
    /// Gives the outcome of a request that was not answered in the time allowed.
    pub(crate) fn timed_out(self, timeout: Duration) -> RequestError {
        let message = format!("no answer within {timeout:?}");
        self.uncertain(ErrorClass::Timeout, message).losing_connection()
    }
}

#[cfg(any(feature = "etcd", feature = "nats"))]
impl super::Effect {
    /// Gives the outcome of a request that was answered with something else.
    pub(crate) fn wrong_answer(self) -> RequestError {
        self.uncertain(ErrorClass::Protocol, "an answer of the wrong kind".to_owned())
    }
}

/// Applied if every piece was, failed if surely none was, else it is not known. The first error
/// gives class and message; a lost connection among the pieces is one of the whole.
pub(crate) fn outcome_of_all(pieces: impl IntoIterator<Item = Answer<()>>) -> Answer<()> {
    let mut first: Option<RequestError> = None;
    let (mut perhaps_applied, mut lost) = (false, false);
    for piece in pieces {
        match piece {
            Ok(()) => perhaps_applied = true,
            Err(error) => {
                perhaps_applied |= error.certainty == Certainty::Indeterminate;
                lost |= error.connection_lost;
                first.get_or_insert(error);
            }
        }
    }
    let Some(mut error) = first else { return Ok(()) };
    if perhaps_applied {
        error.certainty = Certainty::Indeterminate;
    }
    error.connection_lost = lost;
    Err(error)
}

#[cfg(test)]
mod tests {
    use kvdyno_core::store::ErrorClass::{Disconnected, Full};

    use super::*;

    #[test]
    fn a_whole_is_failed_only_if_no_piece_can_have_been_applied() {
        let full = || Err(RequestError::failed(Full, "full"));
        let unknown = || Err(RequestError::indeterminate(Disconnected, "gone").losing_connection());
        let outcome = |pieces: Vec<Answer<()>>| {
            let error = outcome_of_all(pieces).unwrap_err();
            (error.certainty, error.class, error.connection_lost)
        };
        assert_eq!(outcome_of_all([Ok(()), Ok(())]), Ok(()));
        assert_eq!(outcome(vec![full(), full()]), (Certainty::Failed, Full, false));
        assert_eq!(outcome(vec![Ok(()), full()]), (Certainty::Indeterminate, Full, false));
        assert_eq!(outcome(vec![full(), unknown()]), (Certainty::Indeterminate, Full, true));
    }
}

//! Judges a write that travels in several pieces: the caller is told of it as a whole.

use kvdyno_core::store::{Answer, Certainty, RequestError};

/// Returns success if every piece was applied, failed if surely none was, else indeterminate. The first error
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

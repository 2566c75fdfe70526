//! What became of a write that travels in several pieces: the caller is told of it as a whole.

use kvdyno_core::store::{Answer, Certainty, RequestError};

/// Applied if every piece was, failed if surely none was, else it is not known. The first fault
/// gives class and message; a lost connection among the pieces is one of the whole.
pub(crate) fn outcome_of_all(pieces: impl IntoIterator<Item = Answer<()>>) -> Answer<()> {
    let mut first: Option<RequestError> = None;
    let (mut perhaps_applied, mut lost) = (false, false);
    for piece in pieces {
        match piece {
            Ok(()) => perhaps_applied = true,
            Err(fault) => {
                perhaps_applied |= fault.certainty == Certainty::Indeterminate;
                lost |= fault.connection_lost;
                first.get_or_insert(fault);
            }
        }
    }
    let Some(mut fault) = first else { return Ok(()) };
    if perhaps_applied {
        fault.certainty = Certainty::Indeterminate;
    }
    fault.connection_lost = lost;
    Err(fault)
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
            let fault = outcome_of_all(pieces).unwrap_err();
            (fault.certainty, fault.class, fault.connection_lost)
        };
        assert_eq!(outcome_of_all([Ok(()), Ok(())]), Ok(()));
        assert_eq!(outcome(vec![full(), full()]), (Certainty::Failed, Full, false));
        assert_eq!(outcome(vec![Ok(()), full()]), (Certainty::Indeterminate, Full, false));
        assert_eq!(outcome(vec![full(), unknown()]), (Certainty::Indeterminate, Full, true));
    }
}

//! Turns an error of Tarantool into that of a request, by its number (`src/box/errcode.h`).

use kvdyno_core::store::{ErrorClass, RequestError};

use super::codec::{Reader, Reply};
use crate::wire::Effect;

/// Number of the error of a node that takes no writes.
const READ_ONLY: u32 = 7;
/// Numbers of errors of which a server that just started tells.
const LOADING: u32 = 116;

/// Returns the class of an error of which it is sure that nothing was written.
fn refusal(number: u32) -> Option<ErrorClass> {
    Some(match number {
        // No memory for a tuple, or for a transaction.
        2 => ErrorClass::Full,
        READ_ONLY | LOADING => ErrorClass::Unavailable,
        // A key or field of the wrong form; no such index or space; no right to do it, no such user, a wrong password; a
        // tuple that is too large for memtx or vinyl.
        18..=20 | 23 | 35 | 36 | 42 | 45 | 47 | 110 | 139 => ErrorClass::Rejected,
        _ => return None,
    })
}

/// Returns the error of a request that was answered with one.
pub(super) fn request_error(effect: Effect, reply: Reply, answer: &[u8]) -> RequestError {
    let text = Reader::of(answer, reply).text().unwrap_or(b"an error without a text");
    of_text(effect, reply.error, &String::from_utf8_lossy(text))
}

fn of_text(effect: Effect, number: u32, text: &str) -> RequestError {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let advice = match number == 42 && line.contains("universe") {
        true => {
            "; let this user make the space, and run expressions: \
             box.schema.user.grant('USER', 'read,write,execute,create', 'universe')"
        }
        false => "",
    };
    let message = format!("Tarantool says: {line}{advice}");
    let error = match refusal(number) {
        Some(class) => RequestError::failed(class, message),
        // Among them is a log that cannot be written.
        None => effect.uncertain(ErrorClass::Unavailable, message),
    };
    // The next connection leads to the node that takes writes now.
    if [READ_ONLY, LOADING].contains(&number) { error.losing_connection() } else { error }
}

#[cfg(test)]
mod tests {
    use kvdyno_core::store::Certainty::{Failed, Indeterminate};
    use kvdyno_core::store::ErrorClass::{Full, Rejected, Unavailable};

    use super::*;

    #[test]
    fn each_number_has_its_meaning() {
        for (number, class, certainty, lost) in [
            (2, Full, Failed, false),
            (7, Unavailable, Failed, true),
            (36, Rejected, Failed, false),
            (110, Rejected, Failed, false),
            (139, Rejected, Failed, false),
            (116, Unavailable, Failed, true),
            // ER_WAL_IO, and one that nobody knows.
            (40, Unavailable, Indeterminate, false),
            (999, Unavailable, Indeterminate, false),
        ] {
            let write = of_text(Effect::Write, number, "it is\nso");
            let found = (write.class, write.certainty, write.connection_lost);
            assert_eq!(found, (class, certainty, lost), "{number}");
            assert!(write.message.starts_with("Tarantool says: it is so"), "{write}");
            assert_eq!(of_text(Effect::Read, number, "").certainty, Failed);
        }
        let denied = "Execute access to universe '' is denied for user 'guest'";
        assert!(of_text(Effect::Read, 42, denied).message.contains("user.grant"));
    }
}

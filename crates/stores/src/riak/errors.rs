//! Turns an error of Riak into that of a request. It is a text: an Erlang term as Riak prints it, or a sentence. The texts,
//! and when each comes, are after the sources of riak_kv (`riak_kv_put_fsm`, `riak_kv_put_core`, `riak_kv_get_fsm`,
//! `riak_kv_pb_object`); any other is indeterminate.

use kvdyno_core::store::{ErrorClass, RequestError};
use prost::Message;

use super::messages::RpbErrorResp;
use crate::wire::Effect;

/// Possibility that the write was applied, in spite of its error.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Applied {
    No,
    Perhaps,
}

/// Meanings of texts: (part of the text, class, whether a write may have been applied all the same).
const MEANINGS: [(&str, ErrorClass, Applied); 13] = [
    // Looked at before anything is sent to a replica.
    ("_val_violation", ErrorClass::Rejected, Applied::No),
    ("insufficient_vnodes", ErrorClass::Unavailable, Applied::No),
    ("precommit_fail", ErrorClass::Rejected, Applied::No),
    ("zero-length", ErrorClass::Rejected, Applied::No),
    ("No bucket-type named", ErrorClass::Rejected, Applied::No),
    ("no_type", ErrorClass::Rejected, Applied::No),
    ("Security is enabled", ErrorClass::Rejected, Applied::No),
    ("Permission denied", ErrorClass::Rejected, Applied::No),
    // A node that starts answers pings before the service is there that knows gets and puts.
    ("Unknown message code", ErrorClass::Unavailable, Applied::No),
    // `pw` is looked at before the write is sent and again when the replicas have answered, `w` and
    // `dw` only then: some may have it, and the others may get it yet.
    ("_val_unsatisfied", ErrorClass::Unavailable, Applied::Perhaps),
    ("too_many_fails", ErrorClass::Unavailable, Applied::Perhaps),
    // One replica that has too much to do is enough for this answer; the others may have written.
    ("overload", ErrorClass::Overloaded, Applied::Perhaps),
    ("timeout", ErrorClass::Timeout, Applied::Perhaps),
];

/// Returns the error for an `RpbErrorResp`.
pub(super) fn request_error(effect: Effect, message: &[u8]) -> RequestError {
    match RpbErrorResp::decode(message) {
        Ok(error) => of_text(effect, &String::from_utf8_lossy(&error.errmsg)),
        Err(_) => of_text(effect, "an error that cannot be read"),
    }
}

fn of_text(effect: Effect, text: &str) -> RequestError {
    let known = MEANINGS.iter().find(|(part, _, _)| text.contains(part));
    let (class, applied) =
        known.map_or((ErrorClass::Unavailable, Applied::Perhaps), |m| (m.1, m.2));
    // Erlang prints long terms over several lines.
    let mut line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if text.contains("Security is enabled") {
        line.push_str("; kvdyno has no TLS for Riak: ask a node without security");
    }
    let message = format!("Riak says: {line}");
    match (effect, applied) {
        (Effect::Write, Applied::Perhaps) => RequestError::indeterminate(class, message),
        _ => RequestError::failed(class, message),
    }
}

#[cfg(test)]
mod tests {
    use kvdyno_core::store::Certainty::{Failed, Indeterminate};
    use kvdyno_core::store::ErrorClass::{Overloaded, Rejected, Timeout, Unavailable};

    use super::*;

    fn answer(text: &str) -> Vec<u8> {
        RpbErrorResp { errmsg: text.as_bytes().to_vec(), errcode: 0 }.encode_to_vec()
    }

    #[test]
    fn each_text_has_its_meaning() {
        let cases = [
            ("timeout", Timeout, Indeterminate),
            ("{pw_val_unsatisfied,3,2}", Unavailable, Indeterminate),
            ("{w_val_unsatisfied,2,2,0,0}", Unavailable, Indeterminate),
            ("{dw_val_unsatisfied,3,\n                    2}", Unavailable, Indeterminate),
            ("too_many_fails", Unavailable, Indeterminate),
            ("overload", Overloaded, Indeterminate),
            ("{n_val_violation,3}", Rejected, Failed),
            ("{dw_val_violation,4}", Rejected, Failed),
            ("{insufficient_vnodes,0,need,2}", Unavailable, Failed),
            // As a node of release 3.2 answers a get while it starts.
            ("Unknown message code: 9", Unavailable, Failed),
            ("Unknown message code: 11", Unavailable, Failed),
            ("{precommit_fail,[no]}", Rejected, Failed),
            ("Key cannot be zero-length", Rejected, Failed),
            ("No bucket-type named 'x'", Rejected, Failed),
            ("Security is enabled, please STARTTLS first", Rejected, Failed),
            ("{something,nobody,knows}", Unavailable, Indeterminate),
        ];
        for (text, class, certainty) in cases {
            let write = request_error(Effect::Write, &answer(text));
            assert_eq!((write.class, write.certainty), (class, certainty), "{text}");
            assert!(!write.message.contains('\n') && !write.connection_lost, "{write}");
            let read = request_error(Effect::Read, &answer(text));
            assert_eq!((read.class, read.certainty), (class, Failed), "{text}");
        }
        let broken = request_error(Effect::Write, &[0xff]);
        assert_eq!((broken.class, broken.certainty), (Unavailable, Indeterminate));
    }
}

//! Turns the statuses of the binary protocol into errors (memcached/status.h of Couchbase's kv_engine).

use kvdyno_core::store::{ErrorClass, RequestError};

use super::codec::Reply;
use crate::wire::Effect;

/// The vBucket is not on this server: the map is old. Nothing was done.
pub(super) const NOT_MY_VBUCKET: u16 = 0x07;
/// The server does not know the command.
pub(super) const UNKNOWN_COMMAND: u16 = 0x81;
/// The server knows the command and has no such thing.
pub(super) const NOT_SUPPORTED: u16 = 0x83;

/// Returns the error for a status other than success.
pub(super) fn request_error(effect: Effect, reply: Reply, answer: &[u8]) -> RequestError {
    // (class, surely not applied, in words)
    let (class, surely_not, meaning) = match reply.status {
        0x01 => (ErrorClass::Rejected, true, "no such record"),
        0x02 => (ErrorClass::Rejected, true, "the record exists in another version"),
        0x03 => (ErrorClass::Rejected, true, "the value is too large"),
        0x04 => (ErrorClass::Rejected, true, "invalid arguments"),
        0x05 => (ErrorClass::Rejected, true, "not stored"),
        NOT_MY_VBUCKET => {
            (ErrorClass::Unavailable, true, "not the server of this key; the map is read anew")
        }
        0x08 => (ErrorClass::Rejected, true, "no bucket chosen"),
        0x09 => (ErrorClass::Overloaded, true, "the record is locked"),
        0x1f | 0x20 => (
            ErrorClass::Rejected,
            true,
            "authentication failed; check user and password in the URL",
        ),
        0x24 => {
            (ErrorClass::Rejected, true, "no access; check user, password and bucket in the URL")
        }
        UNKNOWN_COMMAND => (ErrorClass::Rejected, true, "unknown command"),
        0x23 => (ErrorClass::Full, true, "no room for the value"),
        0x82 => (ErrorClass::Full, true, "out of memory"),
        NOT_SUPPORTED => (ErrorClass::Rejected, true, "not supported"),
        0x85 => (ErrorClass::Overloaded, true, "busy"),
        0x86 => (ErrorClass::Overloaded, true, "temporary failure, not carried out"),
        _ => (ErrorClass::Unavailable, false, "the server failed"),
    };
    let told = String::from_utf8_lossy(&reply.value(answer)[..(reply.end - reply.start).min(200)])
        .into_owned();
    // A server that moved a vBucket away sends the new map, which is no text for a person.
    let told = match told.is_empty() || told.starts_with('{') {
        true => String::new(),
        false => format!(": {told}"),
    };
    let message = format!("status {:#04x}, {meaning}{told}", reply.status);
    match effect {
        Effect::Write if !surely_not => RequestError::indeterminate(class, message),
        Effect::Write | Effect::Read => RequestError::failed(class, message),
    }
}

#[cfg(test)]
mod tests {
    use kvdyno_core::store::Certainty::{Failed, Indeterminate};

    use super::*;

    #[test]
    fn each_status_has_its_class_and_certainty() {
        for (status, class, certainty) in [
            (0x03, ErrorClass::Rejected, Failed),
            (0x07, ErrorClass::Unavailable, Failed),
            (0x20, ErrorClass::Rejected, Failed),
            (0x82, ErrorClass::Full, Failed),
            (0x84, ErrorClass::Unavailable, Indeterminate),
            (0x85, ErrorClass::Overloaded, Failed),
            (0x86, ErrorClass::Overloaded, Failed),
            (0xa2, ErrorClass::Unavailable, Indeterminate),
        ] {
            let reply = Reply { status, start: 0, end: 4 };
            let write = request_error(Effect::Write, reply, b"told");
            assert_eq!((write.class, write.certainty), (class, certainty), "{status:#x}");
            assert!(write.message.ends_with(": told"), "{write}");
            assert_eq!(request_error(Effect::Read, reply, b"{\"a\"").certainty, Failed);
        }
    }
}

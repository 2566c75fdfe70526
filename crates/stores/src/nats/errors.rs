//! Meaning of an error of NATS: its class, and whether a write may have been applied.
//!
//! Servers answer with a code like HTTP's and a number of JetStream's own (nats-server, `server/errors.json`). A request
//! that nobody listens to is answered by the connected server with *no responders*: the stream has no leader that this
//! server knows of, so nothing was stored.

use std::borrow::Cow;
use std::io;
use std::time::Duration;

use async_nats::client::{RequestError as NatsError, RequestErrorKind};
use async_nats::{ConnectError, ConnectErrorKind, StatusCode};
use kvdyno_core::store::{Answer, ErrorClass, RequestError};
use serde_json::Value;

use crate::wire::Effect;

/// The bucket has no message of the subject.
const NO_MESSAGE: u64 = 10037;
/// There is no stream of the name.
pub(super) const NO_STREAM: u64 = 10059;
/// A stream of the name has other settings.
pub(super) const OTHER_STREAM: u64 = 10058;
/// Limits of an account, a server or its disk, which are looked at before anything is stored.
const WITHOUT_ROOM: [u64; 4] = [10002, 10023, 10028, 10047];
/// The stream could not store the message: a limit of its own, or its disk.
const NOT_STORED: u64 = 10077;

/// Begins the message of an answer that there is no such record.
const ABSENT: &str = "no message found";

/// Reads an answer of the JetStream API.
pub(super) fn told(payload: &[u8], effect: Effect) -> Answer<Value> {
    let told: Value = serde_json::from_slice(payload).map_err(|_| effect.wrong_answer())?;
    match told["error"].is_object() {
        true => Err(of_server(&told["error"], effect)),
        false => Ok(told),
    }
}

/// Gives JetStream's number in an answer that is an error.
pub(super) fn number(payload: &[u8]) -> Option<u64> {
    serde_json::from_slice::<Value>(payload).ok()?["error"]["err_code"].as_u64()
}

fn of_server(error: &Value, effect: Effect) -> RequestError {
    let said = error["description"].as_str().unwrap_or("an error without a description");
    let (code, number) = (error["code"].as_u64().unwrap_or(0), error["err_code"].as_u64());
    let message = format!("{said} ({})", number.unwrap_or(code));
    let failed = |class| RequestError::failed(class, message.clone());
    let unclear = |class| effect.uncertain(class, message.clone());
    match (number.unwrap_or(0), code) {
        (NO_MESSAGE, _) => rejected(ABSENT),
        (number, _) if WITHOUT_ROOM.contains(&number) => failed(ErrorClass::Full),
        (NOT_STORED, _) if said.starts_with("maximum") => failed(ErrorClass::Full),
        (NOT_STORED, _) => unclear(ErrorClass::Full),
        (_, 429) => failed(ErrorClass::Overloaded),
        (_, 400..=499) => failed(ErrorClass::Rejected),
        _ => unclear(ErrorClass::Unavailable).losing_connection(),
    }
}

/// Returns true if a read found no record.
pub(super) fn is_absent(error: &RequestError) -> bool {
    error.message == ABSENT
}

/// Gives the outcome of a request that the official client ended with `error`.
pub(super) fn of_request(error: &NatsError, effect: Effect) -> RequestError {
    match error.kind() {
        RequestErrorKind::NoResponders => {
            let message =
                "no responders: the bucket's stream has no leader that the server knows of";
            RequestError::failed(ErrorClass::Unavailable, message).losing_connection()
        }
        RequestErrorKind::MaxPayloadExceeded => {
            rejected(format!("{error}; make values smaller, or raise max_payload"))
        }
        RequestErrorKind::InvalidSubject => rejected(error.to_string()),
        // It is given no time of its own.
        RequestErrorKind::TimedOut | RequestErrorKind::Other => {
            effect.uncertain(ErrorClass::Disconnected, error.to_string()).losing_connection()
        }
    }
}

/// Gives the outcome of a direct get that was answered with a status.
pub(super) fn of_status(status: StatusCode, said: Option<&str>) -> RequestError {
    let message = format!("{} {}", status.as_u16(), said.unwrap_or_default());
    match status.as_u16() {
        429 => RequestError::failed(ErrorClass::Overloaded, message),
        400..=499 => rejected(message),
        _ => RequestError::failed(ErrorClass::Unavailable, message).losing_connection(),
    }
}

/// The connection was lost with the request in flight.
pub(super) fn lost(effect: Effect) -> RequestError {
    let message = "the connection was lost with the request in flight".to_owned();
    effect.uncertain(ErrorClass::Disconnected, message).losing_connection()
}

/// Nothing was sent, or the server declined.
pub(super) fn rejected(message: impl Into<Cow<'static, str>>) -> RequestError {
    RequestError::failed(ErrorClass::Rejected, message)
}

/// No connection could be made; nothing was sent.
fn refused(message: impl Into<String>) -> RequestError {
    RequestError::failed(ErrorClass::Refused, message.into()).losing_connection()
}

/// A server did not answer an attempt to connect in time.
pub(super) fn unreached(name: &str, timeout: Duration) -> RequestError {
    refused(format!(
        "no answer from {name} within {timeout:?} to the attempt to connect; `?timeout=` allows more"
    ))
}

/// An attempt to connect failed; nothing of any request was sent.
pub(super) fn of_connecting(error: &ConnectError, name: &str, encrypted: bool) -> RequestError {
    let message = format!("cannot connect to {name}: {}", without_prefix(&error.to_string()));
    match error.kind() {
        ConnectErrorKind::AuthorizationViolation | ConnectErrorKind::Authentication => {
            RequestError::failed(ErrorClass::Rejected, message).losing_connection()
        }
        _ if !encrypted && asks_for_tls(error) => {
            refused(format!("cannot connect to {name}: it asks for TLS: write `natss://…`"))
        }
        _ => refused(message),
    }
}

/// Returns true if TLS was begun: a client does so by itself where the server asks for it.
fn asks_for_tls(error: &ConnectError) -> bool {
    let mut source: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(one) = source {
        let of_tls = one.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
        if of_tls.is_some_and(|inner| inner.is::<tokio_rustls::rustls::Error>()) {
            return true;
        }
        source = one.source();
    }
    matches!(error.kind(), ConnectErrorKind::Tls)
}

/// The official client says `IO error: ` and rustls `unexpected error: ` before what matters.
fn without_prefix(said: &str) -> String {
    said.replacen("IO error: ", "", 1).replacen("unexpected error: ", "", 1)
}

#[cfg(test)]
mod tests {
    use kvdyno_core::store::Certainty;

    use super::*;

    fn outcome(code: u64, number: u64, said: &str) -> (ErrorClass, Certainty, bool) {
        let words = serde_json::json!({
            "error": { "code": code, "err_code": number, "description": said }
        });
        let error = told(words.to_string().as_bytes(), Effect::Write).unwrap_err();
        (error.class, error.certainty, error.connection_lost)
    }

    #[test]
    fn errors_of_servers_have_their_class_and_certainty() {
        use Certainty::{Failed, Indeterminate};
        use ErrorClass::{Full, Overloaded, Rejected, Unavailable};
        for (code, number, said, expected) in [
            (400, 10054, "message size exceeds maximum allowed", (Rejected, Failed, false)),
            (503, 10023, "insufficient resources", (Full, Failed, false)),
            (503, 10077, "maximum bytes exceeded", (Full, Failed, false)),
            (503, 10077, "write d/1.blk: no space left on device", (Full, Indeterminate, false)),
            (429, 10167, "too many requests", (Overloaded, Failed, false)),
            (
                503,
                10008,
                "JetStream system temporarily unavailable",
                (Unavailable, Indeterminate, true),
            ),
            (500, 10118, "stream is offline", (Unavailable, Indeterminate, true)),
        ] {
            assert_eq!(outcome(code, number, said), expected, "{said}");
        }
    }

    #[test]
    fn an_answer_is_told_from_an_error_and_from_nonsense() {
        assert!(told(br#"{"stream":"KV_b","seq":7}"#, Effect::Write).is_ok());
        let error = told(b"+OK", Effect::Write).unwrap_err();
        assert_eq!(
            (error.class, error.certainty),
            (ErrorClass::Protocol, Certainty::Indeterminate)
        );
        let absent = br#"{"error":{"code":404,"err_code":10037,"description":"no message found"}}"#;
        assert!(is_absent(&told(absent, Effect::Read).unwrap_err()));
        let other = br#"{"error":{"code":404,"err_code":10059,"description":"stream not found"}}"#;
        assert!(!is_absent(&told(other, Effect::Read).unwrap_err()));
        assert_eq!(number(other), Some(NO_STREAM));
    }
}

//! Turns an answer without success into the error of a request (RFC 9110, 15).

use kvdyno_core::store::{ErrorClass, RequestError};

use super::codec::{self, Reply};
use crate::wire::Effect;

/// Most characters of a server's explanation that are shown.
const LONGEST_EXPLANATION: usize = 200;

/// Returns the error for an answer; `answer` is all of it.
pub(super) fn request_error(effect: Effect, reply: &Reply, answer: &[u8]) -> RequestError {
    let (class, surely_not) = meaning(reply.status);
    let message = format!(
        "{} {}{}{}",
        reply.status,
        codec::reason(answer),
        if reply.encoded { String::new() } else { explanation(&codec::body(answer, reply)) },
        advice(reply.status)
    );
    match effect {
        Effect::Write if !surely_not => RequestError::indeterminate(class, message),
        Effect::Read | Effect::Write => RequestError::failed(class, message),
    }
}

/// Returns the error for a value in an encoding that kvdyno did not ask for: what the store holds cannot be told from it.
pub(super) fn encoded(answer: &[u8]) -> RequestError {
    let encoding = codec::header(answer, "content-encoding").unwrap_or_default();
    let message = format!(
        "the body has the Content-Encoding `{encoding}`, which was not asked for: turn compression off in the \
         server, or in the proxy before it"
    );
    RequestError::failed(ErrorClass::Protocol, message)
}

/// Returns the class of a status code, and whether a write that gets it was surely not applied.
///
/// A 5xx comes after the request was read, often from a proxy that knows no more than that the
/// server behind it did not answer (Envoy says 503 for a connection lost with the request in flight,
/// with or without `Retry-After`). So of those only the ones that mean a refusal are sure.
fn meaning(status: u16) -> (ErrorClass, bool) {
    match status {
        // Accepted, not yet carried out, perhaps never.
        202 => (ErrorClass::Unavailable, false),
        200..=299 => (ErrorClass::Protocol, false),
        // The resource is elsewhere, and nothing was done here.
        301 | 302 | 307 | 308 => (ErrorClass::Rejected, true),
        300..=399 => (ErrorClass::Rejected, false),
        // The server did not get the whole request in time.
        408 => (ErrorClass::Timeout, true),
        429 => (ErrorClass::Overloaded, true),
        400..=499 | 501 | 505 => (ErrorClass::Rejected, true),
        504 => (ErrorClass::Timeout, false),
        507 => (ErrorClass::Full, true),
        500..=599 => (ErrorClass::Unavailable, false),
        _ => (ErrorClass::Protocol, false),
    }
}

fn advice(status: u16) -> &'static str {
    match status {
        301 | 302 | 307 | 308 => "; redirections are not followed: name the place itself",
        401 | 403 => "; give user and password in the URL, or a header with `header.NAME=VALUE`",
        404 | 410 => "; is there such a place? check the path of the URL",
        405 => "; the method of writes is the option `put`",
        415 => "; the media type of values is the option `type`",
        _ => "",
    }
}

/// Returns the first line of a body, unless that is a page for a browser.
fn explanation(body: &[u8]) -> String {
    let text = String::from_utf8_lossy(&body[..body.len().min(4 * LONGEST_EXPLANATION)]);
    match text.lines().next().map(str::trim) {
        Some(line) if !line.is_empty() && !line.starts_with('<') => {
            let shown: String = line.chars().take(LONGEST_EXPLANATION).collect();
            format!(": {shown}")
        }
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use kvdyno_core::store::Certainty::{self, Failed, Indeterminate};

    use super::*;

    fn of(effect: Effect, status: u16, body: &str) -> RequestError {
        let answer =
            format!("HTTP/1.1 {status} Why\r\nContent-Length: {}\r\n\r\n{body}", body.len());
        let (reply, _) =
            codec::scan(&mut codec::Progress::default(), answer.as_bytes()).unwrap().unwrap();
        request_error(effect, &reply, answer.as_bytes())
    }

    #[test]
    fn each_status_has_its_class_and_certainty() {
        let cases: [(u16, ErrorClass, Certainty); 18] = [
            (202, ErrorClass::Unavailable, Indeterminate),
            (206, ErrorClass::Protocol, Indeterminate),
            (303, ErrorClass::Rejected, Indeterminate),
            (307, ErrorClass::Rejected, Failed),
            (400, ErrorClass::Rejected, Failed),
            (401, ErrorClass::Rejected, Failed),
            (404, ErrorClass::Rejected, Failed),
            (408, ErrorClass::Timeout, Failed),
            (409, ErrorClass::Rejected, Failed),
            (412, ErrorClass::Rejected, Failed),
            (413, ErrorClass::Rejected, Failed),
            (429, ErrorClass::Overloaded, Failed),
            (500, ErrorClass::Unavailable, Indeterminate),
            (501, ErrorClass::Rejected, Failed),
            (502, ErrorClass::Unavailable, Indeterminate),
            (503, ErrorClass::Unavailable, Indeterminate),
            (504, ErrorClass::Timeout, Indeterminate),
            (507, ErrorClass::Full, Failed),
        ];
        for (status, class, certainty) in cases {
            let write = of(Effect::Write, status, "");
            assert_eq!((write.class, write.certainty), (class, certainty), "{status}");
            assert!(write.message.starts_with(&format!("{status} Why")), "{write}");
            assert_eq!(of(Effect::Read, status, "").certainty, Failed, "{status}");
        }
    }

    #[test]
    fn the_server_may_explain_itself_in_a_line() {
        let told = of(Effect::Write, 409, "An entry already exists\r\nmore");
        assert_eq!(&*told.message, "409 Why: An entry already exists");
        assert_eq!(&*of(Effect::Write, 500, "<html>\n<b>no").message, "500 Why");
        let long = of(Effect::Write, 500, &"\u{e9}".repeat(5_000));
        assert!(long.message.chars().count() < 250, "{long}");
        assert!(of(Effect::Write, 401, "").message.contains("user and password"));
    }
}

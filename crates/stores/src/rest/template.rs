//! The bytes of a request around its key and value, made once for each store.

use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use crate::wire::push_decimal;

/// Word that stands for the key in the path of a store's URL.
pub(super) const KEY: &str = "{key}";

/// Parts that requests are made of.
pub(super) struct Parts<'a> {
    /// `host:port`.
    pub(super) authority: &'a str,
    /// Path with [`KEY`] in it, decoded.
    pub(super) path: &'a str,
    /// Query, which stands after `?`, as it goes on the wire; may be empty.
    pub(super) query: &'a str,
    /// Method of writes.
    pub(super) put: &'a str,
    /// Media type of values.
    pub(super) media_type: &'a str,
    /// User and password of basic authentication.
    pub(super) credentials: Option<(&'a str, &'a str)>,
    /// More header lines, as (name, value).
    pub(super) headers: &'a [(String, String)],
    /// Header that takes a time to live in seconds.
    pub(super) ttl: Option<&'a str>,
}

/// Bytes of a request before and after what is filled in.
struct Around {
    before: Vec<u8>,
    after: Vec<u8>,
}

/// Requests that lack only key and value.
pub(super) struct Template {
    get: Around,
    /// Request of a put; its first piece ends with `Content-Length: `.
    put: Around,
    delete: Around,
    /// `name: ` of the header for a time to live; `None` if there is none.
    ttl: Option<Vec<u8>>,
    /// Header lines of every request, for questions outside of the load.
    common: String,
}

impl Template {
    pub(super) fn new(parts: &Parts<'_>) -> Template {
        let mut common = String::new();
        if !parts.headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("host")) {
            common.push_str(&format!("Host: {}\r\n", parts.authority));
        }
        if let Some((user, password)) = parts.credentials {
            let word = STANDARD.encode(format!("{user}:{password}"));
            common.push_str(&format!("Authorization: Basic {word}\r\n"));
        }
        // A body is to be the value: without this line a server may choose its encoding (RFC 9110, 12.5.3).
        if !parts.headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("accept-encoding")) {
            common.push_str("Accept-Encoding: identity\r\n");
        }
        for (name, value) in parts.headers {
            common.push_str(&format!("{name}: {value}\r\n"));
        }
        let (before, after) = parts.path.split_once(KEY).unwrap_or((parts.path, ""));
        let mark = if parts.query.is_empty() { "" } else { "?" };
        let around = |method: &str, rest: &str| {
            let mut start = method.as_bytes().to_vec();
            start.push(b' ');
            push_path(&mut start, before);
            let mut end = Vec::new();
            push_path(&mut end, after);
            let tail = format!("{mark}{} HTTP/1.1\r\n{common}{rest}\r\n", parts.query);
            end.extend_from_slice(tail.as_bytes());
            Around { before: start, after: end }
        };
        let mut put = around(parts.put, &format!("Content-Type: {}\r\n", parts.media_type));
        // The line that ends the header comes after the length.
        put.after.truncate(put.after.len() - 2);
        put.after.extend_from_slice(b"Content-Length: ");
        Template {
            get: around("GET", ""),
            delete: around("DELETE", ""),
            put,
            ttl: parts.ttl.map(|name| format!("{name}: ").into_bytes()),
            common,
        }
    }

    /// Returns true if there is a way to tell a time to live.
    pub(super) fn takes_ttl(&self) -> bool {
        self.ttl.is_some()
    }

    pub(super) fn push_get(&self, out: &mut Vec<u8>, key: &[u8]) {
        push_around(out, &self.get, key);
    }

    pub(super) fn push_delete(&self, out: &mut Vec<u8>, key: &[u8]) {
        push_around(out, &self.delete, key);
    }

    pub(super) fn push_put(
        &self,
        out: &mut Vec<u8>,
        key: &[u8],
        value: &[u8],
        ttl: Option<Duration>,
    ) {
        push_around(out, &self.put, key);
        push_decimal(out, value.len() as u64);
        out.extend_from_slice(b"\r\n");
        if let (Some(name), Some(ttl)) = (&self.ttl, ttl) {
            out.extend_from_slice(name);
            push_decimal(out, seconds(ttl));
            out.extend_from_slice(b"\r\n");
        }
        out.extend_from_slice(b"\r\n");
        out.extend_from_slice(value);
    }

    /// Returns a `GET` of another path of the same server.
    pub(super) fn question(&self, path: &str) -> Vec<u8> {
        format!("GET {path} HTTP/1.1\r\n{}\r\n", self.common).into_bytes()
    }
}

fn push_around(out: &mut Vec<u8>, around: &Around, key: &[u8]) {
    out.extend_from_slice(&around.before);
    push_escaped(out, key, |_| false);
    out.extend_from_slice(&around.after);
}

/// Appends a path: what a path may hold as it is (RFC 3986, 3.3), the rest percent-encoded.
pub(super) fn push_path(out: &mut Vec<u8>, path: &str) {
    push_escaped(out, path.as_bytes(), |byte| b"/:@!$&'()*+,;=".contains(&byte));
}

/// Appends unreserved bytes (RFC 3986, 2.3), and those that `also` names, as they are, others as `%XX`.
fn push_escaped(out: &mut Vec<u8>, bytes: &[u8], also: impl Fn(u8) -> bool) {
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) || also(byte);
    let mut rest = bytes;
    while let Some(at) = rest.iter().position(|byte| !plain(*byte)) {
        let byte = rest[at];
        out.extend_from_slice(&rest[..at]);
        out.push(b'%');
        out.push(DIGITS[usize::from(byte >> 4)]);
        out.push(DIGITS[usize::from(byte & 15)]);
        rest = &rest[at + 1..];
    }
    out.extend_from_slice(rest);
}

/// Returns a time to live in whole seconds, never sooner than asked and never 0, which servers take for ever or for never.
fn seconds(ttl: Duration) -> u64 {
    (ttl.as_secs() + u64::from(ttl.subsec_nanos() > 0)).max(1)
}

/// Returns true if a path segment of this key means the key: an empty one does not, and `.` and `..` are taken out of paths
/// (RFC 3986, 5.2.4) even when encoded.
pub(super) fn is_key(key: &[u8]) -> bool {
    !matches!(key, b"" | b"." | b"..")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts() -> Parts<'static> {
        Parts {
            authority: "h:80",
            path: "/a b/{key}/x",
            query: "w=2",
            put: "PUT",
            media_type: "text/plain",
            credentials: None,
            headers: &[],
            ttl: Some("Expire-In"),
        }
    }

    fn text(write: impl FnOnce(&mut Vec<u8>)) -> String {
        let mut out = Vec::new();
        write(&mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn requests_are_as_documented() {
        let template = Template::new(&parts());
        assert_eq!(
            text(|out| template.push_get(out, b"k")),
            "GET /a%20b/k/x?w=2 HTTP/1.1\r\nHost: h:80\r\nAccept-Encoding: identity\r\n\r\n"
        );
        assert_eq!(
            text(|out| template.push_delete(out, b"k/\xff~")),
            "DELETE /a%20b/k%2F%FF~/x?w=2 HTTP/1.1\r\nHost: h:80\r\nAccept-Encoding: identity\r\n\r\n"
        );
        assert_eq!(
            text(|out| template.push_put(out, b"k", b"v\r\n", None)),
            "PUT /a%20b/k/x?w=2 HTTP/1.1\r\nHost: h:80\r\nAccept-Encoding: identity\r\n\
             Content-Type: text/plain\r\nContent-Length: 3\r\n\r\nv\r\n"
        );
        let ttl = Some(Duration::from_millis(1_001));
        assert!(
            text(|out| template.push_put(out, b"k", b"", ttl))
                .ends_with("Content-Length: 0\r\nExpire-In: 2\r\n\r\n")
        );
    }

    #[test]
    fn a_user_and_more_headers_go_with_every_request() {
        let headers = [("X-A".to_owned(), "b".to_owned()), ("host".to_owned(), "other".to_owned())];
        let template = Template::new(&Parts {
            credentials: Some(("Aladdin", "open sesame")),
            headers: &headers,
            query: "",
            put: "POST",
            ..parts()
        });
        let common = "Authorization: Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==\r\n\
                      Accept-Encoding: identity\r\nX-A: b\r\nhost: other\r\n";
        assert_eq!(
            text(|out| template.push_get(out, b"k")),
            format!("GET /a%20b/k/x HTTP/1.1\r\n{common}\r\n")
        );
        assert!(
            text(|out| template.push_put(out, b"k", b"", None)).starts_with("POST /a%20b/k/x ")
        );
        assert_eq!(
            template.question("/v"),
            format!("GET /v HTTP/1.1\r\n{common}\r\n").into_bytes()
        );
    }

    #[test]
    fn whoever_asks_for_an_encoding_gets_what_was_asked_for() {
        let headers = [("accept-encoding".to_owned(), "br".to_owned())];
        let template = Template::new(&Parts { headers: &headers, ..parts() });
        let asked = text(|out| template.push_get(out, b"k"));
        assert!(asked.ends_with("\r\naccept-encoding: br\r\n\r\n"), "{asked}");
        assert!(!asked.contains("identity"), "{asked}");
    }

    #[test]
    fn a_time_to_live_is_never_shorter_than_asked() {
        assert_eq!(seconds(Duration::ZERO), 1);
        assert_eq!(seconds(Duration::from_secs(2)), 2);
        assert_eq!(seconds(Duration::from_nanos(2_000_000_001)), 3);
    }
}

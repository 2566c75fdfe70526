//! One HTTP/1.0 request to a server of a testbed, for recipes that ask over HTTP whether it is ready,
//! which version it is and who leads. Not a client for load.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// Longest time for each step of a request.
const PATIENCE: Duration = Duration::from_secs(2);

/// Sends a request, with `body` as JSON if it is not empty, and returns status code and body; `None` if there is no answer.
#[must_use]
pub fn request(address: SocketAddr, method: &str, path: &str, body: &str) -> Option<(u16, String)> {
    request_as("application/json", address, (method, path), body)
}

/// Carries out a put of `ready` under the last part of the path, a get and a delete.
///
/// # Errors
/// A description in words.
pub(crate) fn put_and_get(address: SocketAddr, path: &str) -> Result<(), String> {
    let ask = |method, body| {
        request_as("application/octet-stream", address, (method, path), body)
            .ok_or_else(|| format!("{method} {path} is not answered"))
    };
    let (put, said) = ask("PUT", "ready")?;
    let (got, value) = ask("GET", "")?;
    ask("DELETE", "")?;
    match (200..300).contains(&put) && got == 200 && value == "ready" {
        true => Ok(()),
        false => Err(format!("a put is answered with {put} {}, a get with {got}", said.trim())),
    }
}

/// Sends a request like [`request`], with a body of this type.
fn request_as(
    kind: &str,
    address: SocketAddr,
    (method, path): (&str, &str),
    body: &str,
) -> Option<(u16, String)> {
    let mut stream = TcpStream::connect_timeout(&address, PATIENCE).ok()?;
    stream.set_read_timeout(Some(PATIENCE)).ok()?;
    stream.set_write_timeout(Some(PATIENCE)).ok()?;
    let length = body.len();
    let request = format!(
        "{method} {path} HTTP/1.0\r\nHost: {address}\r\nContent-Type: {kind}\r\n\
         Content-Length: {length}\r\n\r\n{body}"
    );
    stream.write_all(request.as_bytes()).ok()?;
    let (mut answer, mut some) = (Vec::new(), [0; 4096]);
    // Some servers leave the connection open, although HTTP/1.0 closes it.
    while !is_whole(&answer) {
        match stream.read(&mut some).ok()? {
            0 => break,
            length => answer.extend_from_slice(&some[..length]),
        }
    }
    parse(&String::from_utf8_lossy(&answer))
}

/// Returns true once as many bytes have come as the answer says that it has. One that does not say so ends with the
/// connection.
fn is_whole(answer: &[u8]) -> bool {
    let Some(end) = answer.windows(4).position(|four| four == b"\r\n\r\n") else { return false };
    let head = String::from_utf8_lossy(&answer[..end]).to_ascii_lowercase();
    let length = |line: &str| line.strip_prefix("content-length:")?.trim().parse::<usize>().ok();
    head.lines().find_map(length).is_some_and(|length| answer.len() - end - 4 >= length)
}

fn parse(answer: &str) -> Option<(u16, String)> {
    let (head, body) = answer.split_once("\r\n\r\n")?;
    let status = head.strip_prefix("HTTP/1.")?.split(' ').nth(1)?.parse().ok()?;
    Some((status, body.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_taken_apart() {
        let answer = "HTTP/1.1 503 Service Unavailable\r\nA: b\r\n\r\n{}\r\n\r\nx";
        assert_eq!(parse(answer), Some((503, "{}\r\n\r\nx".to_owned())));
        assert_eq!(parse("HTTP/1.1 200 OK\r\n"), None);
        assert_eq!(parse("invalid"), None);
    }

    #[test]
    fn an_answer_is_whole_when_its_length_has_come() {
        let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}";
        assert!(is_whole(answer) && !is_whole(&answer[..answer.len() - 1]));
        assert!(!is_whole(b"HTTP/1.1 200 OK\r\n\r\n{}"), "the connection ends it");
    }
}

//! As much of HTTP/1.1 as the console needs: one request a connection, and answers that end with it. A server library
//! would double what kvdyno takes of its own to build.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// Most bytes of a request.
const LONGEST: u64 = 16 << 10;
/// Most connections at a time.
const MOST_CONNECTIONS: usize = 64;
/// How long a request may take, and how long nobody may read what is sent.
const PATIENCE: Duration = Duration::from_secs(10);

/// Lets `converse` speak on each connection, on a thread of its own, for as long as the process lives.
pub fn accept(
    listener: TcpListener,
    name: &str,
    converse: impl Fn(&TcpStream) -> io::Result<()> + Send + Sync + 'static,
) -> io::Result<()> {
    let (converse, open) = (Arc::new(converse), Arc::new(AtomicUsize::new(0)));
    let accepting = move || {
        for stream in listener.incoming().flatten() {
            if open.fetch_add(1, Ordering::Relaxed) >= MOST_CONNECTIONS {
                open.fetch_sub(1, Ordering::Relaxed);
                continue;
            }
            let (converse, left) = (Arc::clone(&converse), Arc::clone(&open));
            std::thread::spawn(move || {
                let patient = stream.set_read_timeout(Some(PATIENCE));
                let patient = patient.and_then(|()| stream.set_write_timeout(Some(PATIENCE)));
                let _ = patient.and_then(|()| converse(&stream));
                left.fetch_sub(1, Ordering::Relaxed);
            });
        }
    };
    std::thread::Builder::new().name(name.to_owned()).spawn(accepting).map(drop)
}

/// What a browser asks for.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Request {
    pub method: String,
    pub path: String,
    /// What follows the `?`.
    pub query: String,
    /// Names in lower case.
    headers: Vec<(String, String)>,
    /// What follows the head: as long as the head says.
    pub body: Vec<u8>,
}

impl Request {
    /// Reads one; an error if it is none, or too long.
    pub fn read(from: impl Read) -> io::Result<Request> {
        let mut reader = BufReader::new(from.take(LONGEST));
        let mut lines = reader.by_ref().lines();
        let mut line = || lines.next().unwrap_or_else(|| Err(io::ErrorKind::UnexpectedEof.into()));
        let first = line()?;
        let mut words = first.split(' ');
        let (Some(method), Some(target), Some("HTTP/1.1" | "HTTP/1.0"), None) =
            (words.next(), words.next(), words.next(), words.next())
        else {
            return Err(io::ErrorKind::InvalidData.into());
        };
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let mut request = Request {
            method: method.to_owned(),
            path: path.to_owned(),
            query: query.to_owned(),
            headers: Vec::new(),
            body: Vec::new(),
        };
        loop {
            let line = line()?;
            if line.is_empty() {
                break;
            }
            let (name, value) = line.split_once(':').ok_or(io::ErrorKind::InvalidData)?;
            request.headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
        }
        if let Some(length) = request.header("content-length") {
            let length: u64 = length.parse().map_err(|_| io::ErrorKind::InvalidData)?;
            // One that is longer than a request may be ends too early.
            request.body = vec![0; length.min(LONGEST) as usize];
            reader.read_exact(&mut request.body)?;
        }
        Ok(request)
    }

    /// The value of a header that is there once.
    pub fn header(&self, name: &str) -> Option<&str> {
        let mut found = self.headers.iter().filter(|(known, _)| known == name);
        let (_, value) = found.next()?;
        found.next().is_none().then_some(value)
    }

    /// The value of a cookie.
    pub fn cookie(&self, name: &str) -> Option<&str> {
        let mut cookies =
            self.header("cookie")?.split(';').filter_map(|one| one.trim().split_once('='));
        cookies.find(|(known, _)| *known == name).map(|(_, value)| value)
    }
}

/// What no page of the console may do: load or send anything elsewhere, be framed, be kept.
const GUARDS: &str = "Content-Security-Policy: default-src 'none'; script-src 'unsafe-inline'; \
    style-src 'unsafe-inline'; img-src data:; connect-src 'self'; frame-ancestors 'none'; base-uri 'none'; \
    form-action 'none'\r\nX-Content-Type-Options: nosniff\r\nReferrer-Policy: no-referrer\r\n\
    Cache-Control: no-store\r\nConnection: close\r\n";

/// Answers with a whole text. `extra` are lines of the head, each with its end.
pub fn answer(
    mut to: impl Write,
    status: &str,
    kind: &str,
    extra: &str,
    body: &str,
) -> io::Result<()> {
    let length = body.len();
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}; charset=utf-8\r\nContent-Length: {length}\r\n{GUARDS}{extra}\r\n"
    );
    to.write_all(head.as_bytes())?;
    to.write_all(body.as_bytes())
}

/// Begins a stream of messages.
pub fn begin_stream(mut to: impl Write) -> io::Result<()> {
    let head = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n{GUARDS}\r\nretry: 1000\n\n"
    );
    to.write_all(head.as_bytes())
}

/// A message of the stream: JSON, which has no line breaks.
pub fn message(mut to: impl Write, text: &str) -> io::Result<()> {
    to.write_all(format!("data: {text}\n\n").as_bytes())
}

/// Says that the stream goes on, and finds out whether anybody reads it.
pub fn still_here(mut to: impl Write) -> io::Result<()> {
    to.write_all(b": \n\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_read_and_what_is_none_is_refused() {
        let text =
            "GET /events?a=b HTTP/1.1\r\nHost: x\r\nCookie: a=1; kvdyno=two; b=3\r\n\r\nmore";
        let request = Request::read(text.as_bytes()).unwrap();
        assert_eq!((request.path.as_str(), request.query.as_str()), ("/events", "a=b"));
        assert_eq!((request.header("host"), request.cookie("kvdyno")), (Some("x"), Some("two")));
        assert_eq!((request.header("origin"), request.cookie("c")), (None, None));
        assert!(request.body.is_empty());
        let post = Request::read(&b"POST / HTTP/1.1\r\nContent-Length: 3\r\n\r\nabcd"[..]);
        assert_eq!(post.unwrap().body, b"abc");
        let twice = Request::read(&b"GET / HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n"[..]).unwrap();
        assert_eq!(twice.header("host"), None, "two are as good as none");
        let long = format!("GET / HTTP/1.1\r\nA: {}\r\n\r\n", "x".repeat(20_000));
        for text in [
            "",
            "GET /\r\n\r\n",
            "GET / HTTP/2\r\n\r\n",
            "GET / HTTP/1.1\r\nno colon\r\n\r\n",
            "POST / HTTP/1.1\r\nContent-Length: 4\r\n\r\nabc",
            "POST / HTTP/1.1\r\nContent-Length: 99999999999\r\n\r\nabc",
            &long,
        ] {
            assert!(Request::read(text.as_bytes()).is_err(), "{text:.40}");
        }
    }
}

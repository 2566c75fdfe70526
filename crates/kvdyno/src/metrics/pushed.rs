//! Metrics pushed to a collector: OTLP over HTTP, in JSON, every few seconds and at the end.

use std::io::{self, BufRead, BufReader, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::MetricsHandle;
use crate::exit::Failure;

/// Time between two pushes.
const PUSH: Duration = Duration::from_secs(5);
/// Longest time that the collector may take for one.
const PATIENCE: Duration = Duration::from_secs(3);
/// Path of metrics below a collector's address, by the protocol.
const PATH: &str = "/v1/metrics";

/// Metrics that are pushed.
pub(super) struct Pushed {
    /// Sender that is dropped when the run is over.
    goes_on: Sender<()>,
    thread: JoinHandle<()>,
}

/// Address of a collector.
#[derive(Debug, PartialEq, Eq)]
struct Collector {
    /// HOST:PORT.
    host: String,
    path: String,
}

impl Pushed {
    /// Begins to push to `url`.
    ///
    /// # Errors
    /// [`Failure`] if it is no address of a collector.
    pub fn open(url: &str, metrics: MetricsHandle) -> Result<Pushed, Failure> {
        let collector = Collector::read(url)
            .map_err(|problem| Failure::usage(format!("--otlp {url}: {problem}")))?;
        let (goes_on, end) = channel::<()>();
        let since = now();
        let thread = std::thread::Builder::new().name("otlp".to_owned()).spawn(move || {
            let mut is_warned = false;
            loop {
                let is_over = end.recv_timeout(PUSH) != Err(RecvTimeoutError::Timeout);
                let body = metrics.look().otlp(since, now());
                if let Err(error) = collector.post(&body)
                    && (!is_warned || is_over)
                {
                    is_warned = true;
                    let host = &collector.host;
                    warn_user!(
                        "kvdyno: metrics do not reach {host}: {error}; the run goes on without them"
                    );
                }
                if is_over {
                    return;
                }
            }
        });
        Ok(Pushed { goes_on, thread: thread.map_err(Failure::internal)? })
    }

    /// Ends with a last push, for the run is over.
    pub fn close(self) {
        drop(self.goes_on);
        let _ = self.thread.join();
    }
}

/// Returns the time, ns since 1970.
fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos() as u64
}

impl Collector {
    /// Reads `http://HOST:PORT` with a path or without.
    fn read(url: &str) -> Result<Collector, &'static str> {
        const FORM: &str = "write http://HOST:4318";
        if url.starts_with("https:") {
            return Err(
                "TLS is not spoken here; push to a collector on this machine, which speaks it",
            );
        }
        let rest = url.strip_prefix("http://").ok_or(FORM)?;
        let (host, path) = match rest.find('/') {
            Some(at) => rest.split_at(at),
            None => (rest, "/"),
        };
        let port = host.rsplit_once(':').and_then(|(_, port)| port.parse::<u16>().ok());
        let is_odd = |c: char| c.is_whitespace() || c.is_control() || c == '@';
        if port.is_none() || rest.contains(is_odd) {
            return Err(FORM);
        }
        let path = if path == "/" { PATH } else { path };
        Ok(Collector { host: host.to_owned(), path: path.to_owned() })
    }

    fn post(&self, body: &str) -> io::Result<()> {
        let address = self.host.to_socket_addrs()?.next().ok_or(io::ErrorKind::NotFound)?;
        let stream = TcpStream::connect_timeout(&address, PATIENCE)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        let head = format!(
            "POST {} HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\
             User-Agent: kvdyno\r\nConnection: close\r\n\r\n",
            self.path,
            self.host,
            body.len()
        );
        (&stream).write_all(head.as_bytes())?;
        (&stream).write_all(body.as_bytes())?;
        let mut first = String::new();
        BufReader::new(&stream).read_line(&mut first)?;
        match first.split(' ').nth(1) {
            Some(status) if status.starts_with('2') => Ok(()),
            _ => Err(io::Error::other(format!("it answers {:?}", first.trim_end()))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_collector_is_an_address_with_a_port_and_what_is_none_is_refused() {
        let read = |url: &str| Collector::read(url).map(|c| (c.host, c.path));
        let found = |host: &str, path: &str| Ok((host.to_owned(), path.to_owned()));
        assert_eq!(read("http://127.0.0.1:4318"), found("127.0.0.1:4318", "/v1/metrics"));
        assert_eq!(read("http://[::1]:4318/"), found("[::1]:4318", "/v1/metrics"));
        assert_eq!(read("http://x:1/api/v1/otlp"), found("x:1", "/api/v1/otlp"));
        for url in [
            "x:4318",
            "http://x",
            "https://x:1",
            "http://a@b:1",
            "http://x:1/ y",
            "http://x:1/\r\nA: b",
        ] {
            assert!(read(url).is_err(), "{url}");
        }
    }
}

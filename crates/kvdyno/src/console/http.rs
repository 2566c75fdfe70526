//! Serves pages on a thread of its own: a limited number of connections, one request on each, and a time limit for
//! every request.

use std::io;
use std::net::TcpListener;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::http::HeaderValue;
use axum::http::header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, HeaderName, REFERRER_POLICY};
use axum::http::header::{CONTENT_TYPE, X_CONTENT_TYPE_OPTIONS};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Router, middleware};
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use rustix::net::sockopt::set_tcp_user_timeout;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::sync::Semaphore;
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsAcceptor;

/// Most bytes of a request's head, and of its body.
pub const LONGEST: usize = 16 << 10;
/// Most connections at a time.
const MOST_CONNECTIONS: usize = 64;
/// Longest time for a request to arrive, and longest time that what is sent may stay unread.
pub const PATIENCE: Duration = Duration::from_secs(10);
/// Pause after the system could not accept a connection.
const PAUSE: Duration = Duration::from_millis(100);

/// Headers of every answer. They forbid a page to load or send anything elsewhere, to be framed, to be kept.
const GUARDS: [(HeaderName, &str); 4] = [
    (
        CONTENT_SECURITY_POLICY,
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src data:; connect-src 'self'; \
         frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
    ),
    (X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (REFERRER_POLICY, "no-referrer"),
    (CACHE_CONTROL, "no-store"),
];

/// Work to be done once.
type Work = Box<dyn FnOnce() + Send>;

/// Work to be done when an answer has been sent whole, or cannot be any more. Each request has one in its extensions.
#[derive(Clone, Default)]
pub struct Afterwards(Arc<Mutex<Option<Work>>>);

impl Afterwards {
    /// Sets that work.
    pub fn set(&self, done: impl FnOnce() + Send + 'static) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(Box::new(done));
    }

    fn run(self) {
        let set = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(done) = set {
            done();
        }
    }
}

/// Makes an answer of a whole text of one kind.
pub fn text(kind: &'static str, text: String) -> Response {
    ([(CONTENT_TYPE, kind)], text).into_response()
}

/// Lets `pages` answer every connection, through TLS if `tls` is given, for as long as the process lives.
///
/// # Errors
/// If the system gives no thread, or cannot wait for the listener.
pub fn serve(
    listener: TcpListener,
    name: &str,
    tls: Option<TlsAcceptor>,
    pages: Router,
) -> io::Result<()> {
    listener.set_nonblocking(true)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let listener = {
        let _entered = runtime.enter();
        tokio::net::TcpListener::from_std(listener)?
    };
    let pages = pages.layer(middleware::map_response(guarded));
    let serving = move || runtime.block_on(accept(listener, tls, pages));
    std::thread::Builder::new().name(name.to_owned()).spawn(serving).map(drop)
}

async fn guarded(mut response: Response) -> Response {
    for (name, value) in GUARDS {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    response
}

async fn accept(listener: tokio::net::TcpListener, tls: Option<TlsAcceptor>, pages: Router) {
    let room = Arc::new(Semaphore::new(MOST_CONNECTIONS));
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            sleep(PAUSE).await;
            continue;
        };
        // A connection beyond the limit is closed.
        let Ok(place) = Arc::clone(&room).try_acquire_owned() else { continue };
        let (tls, pages) = (tls.clone(), pages.clone());
        tokio::spawn(async move {
            // The other end sees what goes wrong with its connection.
            let _ = converse(stream, tls, pages).await;
            drop(place);
        });
    }
}

async fn converse(stream: TcpStream, tls: Option<TlsAcceptor>, pages: Router) -> io::Result<()> {
    // The kernel ends a connection that nobody reads, even if the other end still answers its probes.
    set_tcp_user_timeout(&stream, PATIENCE.as_millis() as u32)?;
    stream.set_nodelay(true)?;
    match tls {
        None => answer(stream, pages).await,
        Some(tls) => answer(timeout(PATIENCE, tls.accept(stream)).await??, pages).await,
    }
}

async fn answer<L>(line: L, pages: Router) -> io::Result<()>
where
    L: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let afterwards = Afterwards::default();
    let service = TowerToHyperService::new(pages.layer(Extension(afterwards.clone())));
    let answered = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(PATIENCE)
        .keep_alive(false)
        .max_buf_size(LONGEST)
        .serve_connection(TokioIo::new(line), service)
        .await;
    afterwards.run();
    answered.map_err(io::Error::other)
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::sync::mpsc;

    use axum::body::Bytes;
    use axum::routing::{get, post};

    use super::*;

    /// Serves pages, one of which reports that it was asked for, and then that it was sent.
    fn served() -> (std::net::SocketAddr, mpsc::Receiver<&'static str>) {
        let (sending, received) = mpsc::channel();
        let long = |Extension(afterwards): Extension<Afterwards>| async move {
            sending.send("asked for").unwrap();
            afterwards.set(move || sending.send("sent").unwrap());
            text("text/plain", "x".repeat(32 << 20))
        };
        let pages = Router::new()
            .route("/", get(|| async { "here" }))
            .route("/long", get(long))
            .route("/post", post(|body: Bytes| async move { body.len().to_string() }));
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        serve(listener, "test", None, pages).unwrap();
        (address, received)
    }

    /// Sends a text. Returns all that is answered.
    fn answered(to: std::net::SocketAddr, text: &str) -> String {
        let mut stream = std::net::TcpStream::connect(to).unwrap();
        let mut all = String::new();
        // A refused request may be cut off in the middle, and its answer with it.
        let _ = stream.write_all(text.as_bytes());
        let _ = stream.read_to_string(&mut all);
        all
    }

    #[test]
    fn pages_are_guarded_and_what_is_no_request_or_too_long_is_refused() {
        let (address, _) = served();
        let page = answered(address, "GET / HTTP/1.1\r\nHost: x\r\n\r\n");
        assert!(
            page.starts_with("HTTP/1.1 200 OK\r\n") && page.ends_with("\r\n\r\nhere"),
            "{page}"
        );
        for (name, value) in GUARDS {
            assert!(page.contains(&format!("{name}: {value}\r\n")), "{page}");
        }
        assert!(page.contains("connection: close"), "one request each: {page}");
        let none = answered(address, "GET /none HTTP/1.1\r\nHost: x\r\n\r\n");
        assert!(none.starts_with("HTTP/1.1 404") && none.contains("frame-ancestors"), "{none}");
        let long = format!("GET / HTTP/1.1\r\nA: {}\r\n\r\n", "x".repeat(2 * LONGEST));
        for wrong in
            ["GET /\r\n\r\n", "GET / HTTP/9\r\n\r\n", "GET / HTTP/1.1\r\nno colon\r\n\r\n", &long]
        {
            let refused = answered(address, wrong);
            assert!(
                refused.is_empty() || refused.starts_with("HTTP/1.1 4"),
                "{wrong:.40}: {refused}"
            );
        }
    }

    #[test]
    fn an_answer_is_sent_whole_before_what_is_done_afterwards() {
        let (address, received) = served();
        let ask = || {
            let mut stream = std::net::TcpStream::connect(address).unwrap();
            stream.write_all(b"GET /long HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
            assert_eq!(received.recv_timeout(PATIENCE), Ok("asked for"));
            stream
        };
        let mut stream = ask();
        let none_yet = received.recv_timeout(Duration::from_millis(300));
        assert!(none_yet.is_err(), "nobody has read it");
        let mut all = Vec::new();
        stream.read_to_end(&mut all).unwrap();
        assert!(all.len() > 32 << 20);
        assert_eq!(received.recv_timeout(PATIENCE), Ok("sent"));
        // The work is done, too, if nobody will ever read the answer.
        drop(ask());
        assert_eq!(received.recv_timeout(PATIENCE), Ok("sent"));
    }

    #[test]
    fn few_are_let_in_at_a_time_and_others_are_afterwards() {
        let (address, _) = served();
        let connect = || std::net::TcpStream::connect(address).unwrap();
        let silent: Vec<_> = (0..MOST_CONNECTIONS).map(|_| connect()).collect();
        let asks = || answered(address, "GET / HTTP/1.1\r\nHost: x\r\n\r\n");
        assert_eq!(asks(), "", "there is no room");
        drop(silent);
        let mut tries = 0;
        while asks().is_empty() {
            std::thread::sleep(Duration::from_millis(20));
            tries += 1;
            assert!(tries < 500, "there is room again");
        }
    }
}

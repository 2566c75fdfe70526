//! Serves a page to browsers: only to those that know the token, only under the server's own name, and only for pages
//! of its own.

use std::convert::Infallible;
use std::fs::File;
use std::io::{self, Read};
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::http::header::{COOKIE, HOST, LOCATION, ORIGIN, SET_COOKIE};
use axum::http::request::Parts;
use axum::http::{HeaderName, Method, StatusCode};
use axum::middleware::{Next as Handler, from_fn_with_state};
use axum::response::sse::{Event, Sse};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Extension, Router};
use futures_util::Stream;
use futures_util::stream::poll_fn;
use kvdyno_report::live::{self, Zoom};
use tokio::sync::mpsc;
use tokio::task::spawn_blocking;
use tokio::time::timeout;

use super::http::{self, Afterwards, LONGEST, PATIENCE, text};
use super::open_port::OpenPort;
use super::viewers::{Next, Seat, Story, Viewers};
use crate::steering::Steering;

/// Pause after which a stream without news sends a sign of life.
const SIGN_OF_LIFE: Duration = Duration::from_secs(5);
/// Time after which a page that lost its stream asks for it again.
const RETRY: Duration = Duration::from_secs(1);

/// Kind of text of a script.
const SCRIPT: &str = "text/javascript; charset=utf-8";
/// Path to which orders are sent.
const STEER: &str = "/steer";
/// Header by which a browser says whether the asking page is of the same site.
const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// Identity of the server, against which requests are checked.
struct Identity {
    /// Names under which requests may ask for the page.
    names: Vec<String>,
    /// `http` or `https`.
    scheme: &'static str,
    port: u16,
    token: String,
    /// Receiver of its viewers' orders; `None` if they may give none.
    steering: Option<Arc<Steering>>,
}

/// Serves `viewers`' page at `place` for as long as the process lives. Returns its address, with the token.
///
/// # Errors
/// If the system gives no random bytes, no thread, or cannot wait for connections.
pub fn serve<S: Story>(
    place: OpenPort,
    viewers: Arc<Viewers<S>>,
    steering: Option<Arc<Steering>>,
) -> io::Result<String> {
    let (port, token) = (place.listener.local_addr()?.port(), token()?);
    let (scheme, tls) = (place.scheme(), place.tls());
    let address = format!("{scheme}://{}/?token={token}", place.names[0]);
    let identity = Identity { names: place.names, scheme, port, token, steering };
    let identity = Arc::new(identity);
    let pages = Router::new()
        .route("/", get(page::<S>))
        .route("/events", get(send_events::<S>))
        .route("/points", get(points::<S>))
        .with_state(viewers)
        .route("/page.js", get(|| async { text(SCRIPT, live::live_script()) }))
        .route("/stream.js", get(|| async { text(SCRIPT, live::STREAM_SCRIPT.to_owned()) }))
        .route("/style.css", get(|| async { text("text/css; charset=utf-8", live::live_style()) }))
        .route(STEER, post(steer).with_state(Arc::clone(&identity)))
        .fallback(|| async { (StatusCode::NOT_FOUND, "there is no such page\n") })
        .layer(from_fn_with_state(identity, admit));
    http::serve(place.listener, "console", tls, pages)?;
    Ok(address)
}

/// Makes a token of 128 random bits, in hexadecimal digits.
fn token() -> io::Result<String> {
    let mut bytes = [0; 16];
    File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// Lets a request through if it is permitted.
async fn admit(
    State(identity): State<Arc<Identity>>,
    request: Request,
    handler: Handler,
) -> Response {
    let (parts, body) = request.into_parts();
    match identity.permits(&parts) {
        Permit::Refused(status, why) => (status, why).into_response(),
        Permit::Enters => {
            // The form of the page stays in its address.
            let wall =
                parts.uri.query().is_some_and(|query| query.split('&').any(|one| one == "wall"));
            let place = if wall { "/?wall" } else { "/" };
            let Identity { port, token, scheme, .. } = &*identity;
            let secure = if *scheme == "https" { "; Secure" } else { "" };
            // The token leaves the address, so an address copied from the browser opens nothing. Cookies are shared
            // by all ports of a host, so its name has the port.
            let cookie =
                format!("kvdyno-{port}={token}; HttpOnly; SameSite=Strict; Path=/{secure}");
            let head = [(LOCATION, place), (SET_COOKIE, cookie.as_str())];
            (StatusCode::SEE_OTHER, head).into_response()
        }
        Permit::Granted => handler.run(Request::from_parts(parts, body)).await,
    }
}

/// Does work that takes a while on another thread, where it delays no other viewer. An error is answered with
/// `otherwise`.
async fn aside(
    otherwise: StatusCode,
    work: impl FnOnce() -> Result<Response, String> + Send + 'static,
) -> Response {
    let done = spawn_blocking(work).await.unwrap_or_else(|error| Err(error.to_string()));
    done.unwrap_or_else(|why| (otherwise, why).into_response())
}

async fn page<S: Story>(State(viewers): State<Arc<Viewers<S>>>) -> Response {
    let page = move || Ok(text("text/html; charset=utf-8", viewers.page()?));
    aside(StatusCode::INTERNAL_SERVER_ERROR, page).await
}

async fn points<S: Story>(State(viewers): State<Arc<Viewers<S>>>, request: Request) -> Response {
    let Some(asked) = Zoom::asked(request.uri().query().unwrap_or_default()) else {
        let how = "points of a stretch: phase=0&from=1.5&to=9\n";
        return (StatusCode::BAD_REQUEST, how).into_response();
    };
    let points = move || Ok(text("application/json", viewers.stretch(&asked)?));
    aside(StatusCode::INTERNAL_SERVER_ERROR, points).await
}

async fn steer(State(identity): State<Arc<Identity>>, order: Body) -> Response {
    let Ok(Ok(order)) = timeout(PATIENCE, to_bytes(order, LONGEST)).await else {
        return (StatusCode::BAD_REQUEST, "the order did not come whole\n").into_response();
    };
    aside(StatusCode::CONFLICT, move || Ok(identity.steer(&order)?.into_response())).await
}

/// Sends a viewer all that there is, then news.
async fn send_events<S: Story>(
    State(viewers): State<Arc<Viewers<S>>>,
    Extension(afterwards): Extension<Afterwards>,
) -> Sse<impl Stream<Item = Result<Event, Infallible>>> {
    let (line, mut messages) = mpsc::channel(1);
    spawn_blocking(move || {
        let seat = Arc::new(viewers.join());
        let kept = Arc::clone(&seat);
        // The seat is left when the connection has sent all: the process may end after that.
        afterwards.set(move || drop(kept));
        speak(&seat, &line);
    });
    Sse::new(poll_fn(move |context| messages.poll_recv(context)))
}

/// Passes on messages to a viewer for as long as it reads.
fn speak<S: Story>(seat: &Seat<S>, line: &mpsc::Sender<Result<Event, Infallible>>) {
    let mut event = Event::default().retry(RETRY);
    while line.blocking_send(Ok(event)).is_ok() {
        event = match seat.next(SIGN_OF_LIFE) {
            // JSON, which has no line breaks.
            Next::Message(text) => Event::default().data(text),
            Next::Nothing => Event::default().comment(""),
            Next::Over => return,
        };
    }
}

/// Returns the value of a header; `None` if it is missing or stands there twice.
fn header(head: &Parts, name: HeaderName) -> Option<&str> {
    let mut all = head.headers.get_all(name).iter();
    let value = all.next()?.to_str().ok()?;
    all.next().is_none().then_some(value)
}

/// Returns the value of a cookie.
fn cookie<'a>(head: &'a Parts, name: &str) -> Option<&'a str> {
    let all = header(head, COOKIE)?.split(';');
    let mut cookies = all.filter_map(|one| one.trim().split_once('='));
    cookies.find(|(known, _)| *known == name).map(|(_, value)| value)
}

#[derive(Debug, PartialEq, Eq)]
enum Permit {
    /// The token is right: it is exchanged for a cookie.
    Enters,
    Granted,
    Refused(StatusCode, &'static str),
}

impl Identity {
    fn permits(&self, head: &Parts) -> Permit {
        let forbidden = |why| Permit::Refused(StatusCode::FORBIDDEN, why);
        let own = |host: &str| self.names.iter().any(|name| name == host);
        // A request under another name for this address comes from another site.
        if !header(head, HOST).is_some_and(own) {
            return forbidden("this is not the name of the console\n");
        }
        let origin = header(head, ORIGIN).map(|origin| {
            origin
                .split_once("://")
                .is_some_and(|(scheme, host)| scheme == self.scheme && own(host))
        });
        let site = header(head, SEC_FETCH_SITE);
        let other_site = site.is_some_and(|site| !["same-origin", "none"].contains(&site));
        if origin == Some(false) || other_site {
            return forbidden("another site asks\n");
        }
        let steers = head.uri.path() == STEER;
        if steers && self.steering.is_none() {
            return forbidden("the console only shows; --console=control lets it steer\n");
        }
        if head.method != if steers { Method::POST } else { Method::GET } {
            return Permit::Refused(StatusCode::METHOD_NOT_ALLOWED, "the console only shows\n");
        }
        // Browsers tell the origin of an order.
        if steers && origin.is_none() {
            return forbidden("orders come from the console's own page\n");
        }
        if head.uri.path() == "/"
            && let Some(query) = head.uri.query().and_then(|query| query.strip_prefix("token="))
        {
            let token = query.split('&').next().unwrap_or_default();
            let refused = forbidden("this token is none of this console\n");
            return if self.is_token(token) { Permit::Enters } else { refused };
        }
        let cookie = cookie(head, &format!("kvdyno-{}", self.port));
        match cookie.is_some_and(|cookie| self.is_token(cookie)) {
            true => Permit::Granted,
            false => Permit::Refused(
                StatusCode::UNAUTHORIZED,
                "open the address that kvdyno has printed, with its token\n",
            ),
        }
    }

    /// Carries an order out. Returns what was done, or why it was not.
    fn steer(&self, order: &[u8]) -> Result<String, String> {
        let order = serde_json::from_slice(order);
        let order = order.map_err(|error| format!("this is no order: {error}"))?;
        self.steering.as_ref().map_or(Err("nobody steers".to_owned()), |steering| {
            steering.ask(order).map_err(|why| why.to_string())
        })
    }

    /// Compares in constant time: a wrong token that begins well takes as long as any other.
    fn is_token(&self, text: &str) -> bool {
        let differing = text.bytes().zip(self.token.bytes()).fold(0, |all, (a, b)| all | (a ^ b));
        text.len() == self.token.len() && differing == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(target: &str, method: &str, headers: &[&str]) -> u16 {
        asked_of(None, target, method, headers)
    }

    fn asked_of(
        steering: Option<Arc<Steering>>,
        target: &str,
        method: &str,
        headers: &[&str],
    ) -> u16 {
        asked_at(("127.0.0.1:8000", "http"), steering, target, method, headers)
    }

    fn asked_at(
        (name, scheme): (&str, &'static str),
        steering: Option<Arc<Steering>>,
        target: &str,
        method: &str,
        headers: &[&str],
    ) -> u16 {
        let names = vec![name.to_owned(), "localhost:8000".to_owned()];
        let token = "0123456789abcdef".to_owned();
        let identity = Identity { names, scheme, port: 8000, token, steering };
        let mut request = Request::builder().method(method).uri(target);
        for (name, value) in headers.iter().filter_map(|line| line.split_once(": ")) {
            request = request.header(name, value);
        }
        match identity.permits(&request.body(()).unwrap().into_parts().0) {
            Permit::Enters => 303,
            Permit::Granted => 200,
            Permit::Refused(status, _) => status.as_u16(),
        }
    }

    #[test]
    fn only_who_knows_the_token_on_a_page_of_the_console_is_let_in() {
        let (host, cookie) = ("Host: 127.0.0.1:8000", "Cookie: a=b; kvdyno-8000=0123456789abcdef");
        let get = |target, headers: &[&str]| asked(target, "GET", headers);
        assert_eq!(get("/?token=0123456789abcdef", &[host]), 303);
        assert_eq!(get("/?token=0123456789abcde0", &[host]), 403);
        assert_eq!(get("/?token=", &[host]), 403);
        assert_eq!(get("/", &[host]), 401);
        assert_eq!(get("/events", &[host, "Cookie: kvdyno-8001=0123456789abcdef"]), 401);
        assert_eq!(get("/events", &[host, cookie]), 200);
        assert_eq!(get("/", &["Host: localhost:8000", cookie]), 200);
        // Refused are another name, another site, another page that asks, and a method that would change something.
        assert_eq!(get("/", &["Host: evil.example:8000", cookie]), 403);
        assert_eq!(get("/", &[cookie]), 403);
        assert_eq!(get("/", &[host, "Host: evil.example", cookie]), 403, "two are as good as none");
        assert_eq!(get("/events", &[host, cookie, "Origin: http://evil.example"]), 403);
        assert_eq!(get("/events", &[host, cookie, "Origin: null"]), 403);
        assert_eq!(get("/events", &[host, cookie, "Origin: http://127.0.0.1:8000"]), 200);
        assert_eq!(get("/", &[host, cookie, "Sec-Fetch-Site: cross-site"]), 403);
        for method in ["POST", "PUT", "DELETE", "OPTIONS"] {
            assert_eq!(asked("/stop", method, &[host, cookie]), 405, "{method}");
        }
    }

    #[test]
    fn orders_are_taken_from_its_own_page_only_and_only_with_control() {
        let (host, cookie) = ("Host: 127.0.0.1:8000", "Cookie: kvdyno-8000=0123456789abcdef");
        let (own, other) = ("Origin: http://127.0.0.1:8000", "Origin: http://evil.example");
        let all = [host, cookie, own];
        assert_eq!(asked("/steer", "POST", &all), 403, "without control");
        let steered =
            |method, headers: &[&str]| asked_of(Some(Arc::default()), "/steer", method, headers);
        assert_eq!(steered("POST", &all), 200);
        assert_eq!(steered("POST", &[host, own]), 401, "no token");
        assert_eq!(steered("POST", &[host, cookie]), 403, "from nowhere");
        assert_eq!(steered("POST", &[host, cookie, other]), 403);
        assert_eq!(steered("POST", &["Host: evil.example", cookie, own]), 403);
        assert_eq!(steered("GET", &all), 405);
        assert_eq!(asked_of(Some(Arc::default()), "/", "POST", &all), 405);
    }

    #[test]
    fn at_a_named_address_only_that_name_and_its_own_pages_over_tls_are_let_in() {
        let cookie = "Cookie: kvdyno-8000=0123456789abcdef";
        let place = ("192.0.2.7:8000", "https");
        let get = |headers: &[&str]| asked_at(place, None, "/events", "GET", headers);
        let host = "Host: 192.0.2.7:8000";
        assert_eq!(get(&[host, cookie]), 200);
        assert_eq!(get(&[host, cookie, "Origin: https://192.0.2.7:8000"]), 200);
        assert_eq!(get(&[host, cookie, "Origin: http://192.0.2.7:8000"]), 403);
        assert_eq!(get(&["Host: evil.example:8000", cookie]), 403);
        assert_eq!(get(&["Host: 192.0.2.8:8000", cookie]), 403);
        assert_eq!(get(&[host]), 401);
    }

    #[test]
    fn tokens_differ() {
        let (one, other) = (token().unwrap(), token().unwrap());
        assert!(one.len() == 32 && one != other);
    }
}

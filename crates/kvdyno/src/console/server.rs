//! Serves a page to browsers: only to those who know the token, only under the server's own name, only to pages of its
//! own.

use std::fs::File;
use std::io::{self, Read};
use std::sync::Arc;
use std::time::Duration;

use kvdyno_report::live::Zoom;

use super::http::{self, Request, answer, begin_stream, message, still_here};
use super::open_port::{Duplex, OpenPort};
use super::viewers::{Next, Story, Viewers};
use crate::steering::Steering;

/// How often a stream on which nothing happens shows that it goes on.
const SIGN_OF_LIFE: Duration = Duration::from_secs(5);

/// Where orders go.
const STEER: &str = "/steer";

/// What the server knows of itself.
struct Identity {
    /// The names that requests may ask for.
    names: Vec<String>,
    /// `http` or `https`.
    scheme: &'static str,
    port: u16,
    token: String,
    /// Where orders of its viewers go, if they may give any.
    steering: Option<Arc<Steering>>,
}

/// Serves `viewers`' page at `place` for as long as the process lives. Gives its address, with the token.
///
/// # Errors
/// If nobody can be let in.
pub fn serve<S: Story>(
    place: OpenPort,
    viewers: Arc<Viewers<S>>,
    steering: Option<Arc<Steering>>,
) -> io::Result<String> {
    let (port, token) = (place.listener.local_addr()?.port(), token()?);
    let (scheme, speaker) = (place.scheme(), place.speaker());
    let address = format!("{scheme}://{}/?token={token}", place.names[0]);
    let identity = Identity { names: place.names, scheme, port, token, steering };
    http::accept(place.listener, "console", move |stream| {
        speaker.through(stream, |line| converse(line, &identity, &viewers))
    })?;
    Ok(address)
}

/// 128 bits that nobody can guess, in hexadecimal digits.
fn token() -> io::Result<String> {
    let mut bytes = [0; 16];
    File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

fn converse<S: Story>(
    line: &mut dyn Duplex,
    identity: &Identity,
    viewers: &Viewers<S>,
) -> io::Result<()> {
    let request = Request::read(&mut *line)?;
    let mut refuse = |status: &str, why: &str| answer(&mut *line, status, "text/plain", "", why);
    match identity.permits(&request) {
        Permit::Refused(status, why) => refuse(status, why),
        Permit::Enters => {
            let Identity { port, token, scheme, .. } = identity;
            let secure = if *scheme == "https" { "; Secure" } else { "" };
            // The token leaves the address: what is copied from there opens nothing. Cookies are of all ports.
            let cookie = format!(
                "Location: /\r\nSet-Cookie: kvdyno-{port}={token}; HttpOnly; SameSite=Strict; Path=/{secure}\r\n"
            );
            answer(line, "303 See Other", "text/plain", &cookie, "")
        }
        Permit::Granted => match request.path.as_str() {
            "/" => match viewers.page() {
                Ok(page) => answer(line, "200 OK", "text/html", "", &page),
                Err(why) => refuse("500 Internal Server Error", &why),
            },
            "/events" => tell(line, viewers),
            "/points" => match Zoom::asked(&request.query) {
                Some(asked) => match viewers.stretch(&asked) {
                    Ok(points) => answer(line, "200 OK", "application/json", "", &points),
                    Err(why) => refuse("500 Internal Server Error", &why),
                },
                None => refuse("400 Bad Request", "points of a stretch: phase=0&from=1.5&to=9\n"),
            },
            STEER => match identity.steer(&request.body) {
                Ok(done) => answer(line, "200 OK", "text/plain", "", &done),
                Err(why) => refuse("409 Conflict", &why),
            },
            _ => refuse("404 Not Found", "there is no such page\n"),
        },
    }
}

/// Tells a viewer all, then what happens.
fn tell<S: Story>(line: &mut dyn Duplex, viewers: &Viewers<S>) -> io::Result<()> {
    begin_stream(&mut *line)?;
    let seat = viewers.join();
    loop {
        match seat.next(SIGN_OF_LIFE) {
            Next::Message(text) => message(&mut *line, &text)?,
            Next::Nothing => still_here(&mut *line)?,
            Next::Over => return Ok(()),
        }
    }
}

#[derive(Debug, PartialEq, Eq)]
enum Permit {
    /// The token is right: it is exchanged for a cookie.
    Enters,
    Granted,
    Refused(&'static str, &'static str),
}

impl Identity {
    fn permits(&self, request: &Request) -> Permit {
        let forbidden = |why| Permit::Refused("403 Forbidden", why);
        let own = |host: &str| self.names.iter().any(|name| name == host);
        // Another name for this address is another site's.
        if !request.header("host").is_some_and(own) {
            return forbidden("this is not the name of the console\n");
        }
        let origin = request.header("origin").map(|origin| {
            origin
                .split_once("://")
                .is_some_and(|(scheme, host)| scheme == self.scheme && own(host))
        });
        let site = request.header("sec-fetch-site");
        let other_site = site.is_some_and(|site| !["same-origin", "none"].contains(&site));
        if origin == Some(false) || other_site {
            return forbidden("another site asks\n");
        }
        let steers = request.path == STEER;
        if steers && self.steering.is_none() {
            return forbidden("the console only shows; --console=control lets it steer\n");
        }
        if request.method != if steers { "POST" } else { "GET" } {
            return Permit::Refused("405 Method Not Allowed", "the console only shows\n");
        }
        // Browsers tell where an order comes from.
        if steers && origin.is_none() {
            return forbidden("orders come from the console's own page\n");
        }
        if request.path == "/"
            && let Some(token) = request.query.strip_prefix("token=")
        {
            let refused = forbidden("this token is none of this console\n");
            return if self.is_token(token) { Permit::Enters } else { refused };
        }
        let cookie = request.cookie(&format!("kvdyno-{}", self.port));
        match cookie.is_some_and(|cookie| self.is_token(cookie)) {
            true => Permit::Granted,
            false => Permit::Refused(
                "401 Unauthorized",
                "open the address that kvdyno has printed, with its token\n",
            ),
        }
    }

    /// Carries an order out: what was done, or why it was not.
    fn steer(&self, order: &[u8]) -> Result<String, String> {
        let order = serde_json::from_slice(order);
        let order = order.map_err(|error| format!("this is no order: {error}"))?;
        self.steering.as_ref().map_or(Err("nobody steers".to_owned()), |steering| {
            steering.ask(order).map_err(|why| why.to_string())
        })
    }

    /// Takes as long for a wrong one that begins well as for any other.
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
        let head = format!("{method} {target} HTTP/1.1\r\n{}\r\n\r\n", headers.join("\r\n"));
        match identity.permits(&Request::read(head.as_bytes()).unwrap()) {
            Permit::Enters => 303,
            Permit::Granted => 200,
            Permit::Refused(status, _) => status[..3].parse().unwrap(),
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
        // Another name, another site, another page that asks; and nothing that would change anything.
        assert_eq!(get("/", &["Host: evil.example:8000", cookie]), 403);
        assert_eq!(get("/", &[cookie]), 403);
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

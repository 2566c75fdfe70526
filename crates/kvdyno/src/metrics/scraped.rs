//! Metrics to be fetched: Prometheus' text at `/metrics`.

use std::io;
use std::net::{IpAddr, TcpListener, ToSocketAddrs};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use axum::extract::Request;
use axum::http::StatusCode;
use axum::http::header::HOST;
use axum::middleware::{Next, from_fn};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Extension, Router};
use kvdyno_core::load::Interrupt;
use kvdyno_report::metrics::PROMETHEUS_TYPE;

use super::MetricsHandle;
use crate::console::http::{self, Afterwards};
use crate::exit::Failure;

/// Longest wait for a last scrape of a run that is over.
const LONGEST_FAREWELL: Duration = Duration::from_secs(90);
/// Time by which a scrape may be later than the gap between those before it.
const LATE: Duration = Duration::from_secs(1);
/// Pause between two looks whether the user wants to stop.
const ASK: Duration = Duration::from_millis(50);

/// Metrics that are served.
pub(super) struct Scraped {
    looks: Arc<Mutex<Looks>>,
}

/// Times of the scrapes.
#[derive(Default)]
struct Looks {
    last: Option<Instant>,
    /// Time from the last scrape but one to the last.
    gap: Option<Duration>,
}

impl Scraped {
    /// Serves at `at`, `HOST:PORT`, and prints the address.
    ///
    /// # Errors
    /// [`Failure`] if nothing can be served there.
    pub fn open(at: &str, metrics: MetricsHandle) -> Result<Scraped, Failure> {
        let listener = listen(at).map_err(|error| {
            Failure::usage(format!("--metrics {at}: {error}; choose another address or port"))
        })?;
        let own = listener.local_addr().map_err(Failure::internal)?;
        warn_user!("kvdyno: metrics at http://{own}/metrics");
        let looks = Arc::new(Mutex::new(Looks::default()));
        let seen = Arc::clone(&looks);
        let metrics = |Extension(afterwards): Extension<Afterwards>| async move {
            let asked = Instant::now();
            let text = metrics.look().prometheus();
            // The process may end once this scrape was sent.
            afterwards.set(move || looked(&seen, asked));
            http::text(PROMETHEUS_TYPE, text)
        };
        let own = own.ip();
        let pages = Router::new()
            .route("/metrics", get(metrics))
            .fallback(|| async { (StatusCode::NOT_FOUND, "metrics are at /metrics\n") })
            .method_not_allowed_fallback(|| async {
                (StatusCode::METHOD_NOT_ALLOWED, "metrics are only shown\n")
            })
            .layer(from_fn(move |request, next| admit(own, request, next)));
        http::serve(listener, "metrics", None, pages).map_err(Failure::internal)?;
        Ok(Scraped { looks })
    }

    /// Ends the serving once a collector that scraped regularly had time to scrape once more, for the run is over.
    pub fn close(self, interrupt: &Interrupt) {
        let ended = Instant::now();
        let state = || {
            let looks = self.looks.lock().unwrap_or_else(PoisonError::into_inner);
            (looks.last, looks.gap)
        };
        let (_, Some(gap)) = state() else { return };
        let patience = (gap + LATE).min(LONGEST_FAREWELL);
        warn_user!(
            "kvdyno: waits up to {:.0} s for the last scrape of its metrics",
            patience.as_secs_f64()
        );
        let is_seen = || state().0.is_some_and(|last| last > ended);
        while !is_seen() && ended.elapsed() < patience && !interrupt.is_raised() {
            std::thread::sleep(ASK);
        }
    }
}

fn listen(at: &str) -> io::Result<TcpListener> {
    let addresses: Vec<_> = at.to_socket_addrs()?.collect();
    TcpListener::bind(addresses.as_slice())
}

fn looked(looks: &Mutex<Looks>, at: Instant) {
    let mut looks = looks.lock().unwrap_or_else(PoisonError::into_inner);
    looks.gap = looks.last.map(|last| at.saturating_duration_since(last));
    looks.last = Some(at);
}

async fn admit(own: IpAddr, request: Request, next: Next) -> Response {
    match refused(&request, own) {
        Some(why) => (StatusCode::FORBIDDEN, why).into_response(),
        None => next.run(request).await,
    }
}

/// Returns the reason to refuse a request, if there is one: a page of another site must not read what loopback serves
/// by calling it by a name of its own.
fn refused(request: &Request, own: IpAddr) -> Option<&'static str> {
    let host = request.headers().get(HOST)?.to_str().unwrap_or_default();
    let name = host.rsplit_once(':').map_or(host, |(name, _)| name).trim_matches(['[', ']']);
    let is_local = name == "localhost" || name.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback());
    (own.is_loopback() && !is_local).then_some("this is not the name of this machine\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_answers_to_its_own_names_only() {
        let asked = |host: &str, own: &str| {
            let request = Request::builder().uri("/metrics").header("Host", host);
            let request = request.body(axum::body::Body::empty()).unwrap();
            refused(&request, own.parse().unwrap()).is_none()
        };
        for host in ["127.0.0.1:9464", "localhost:9464", "[::1]:9464", "localhost"] {
            assert!(asked(host, "127.0.0.1"), "{host}");
        }
        assert!(!asked("evil.example:9464", "127.0.0.1") && !asked("10.0.0.1:9464", "::1"));
        assert!(asked("bench-1.example:9464", "0.0.0.0"), "another interface was named");
    }
}

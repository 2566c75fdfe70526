//! The address of a server and the way to reach it: host and port, TLS, time allowed.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use kvdyno_core::store::{Answer, ErrorClass, RequestError};
use tokio::net::{TcpStream, UnixStream};
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::ClientConfig;
use tokio_rustls::rustls::pki_types::ServerName;

use super::stream::Stream;
use super::tls::{TlsFiles, Trust, client_config};
use crate::error::StoreError;
use crate::url::{StoreUrl, UrlHost};

/// Time allowed unless the URL has `timeout`.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(2);

/// The options of a URL that decide how a server is reached.
pub(crate) struct ReachOptions {
    timeout: Duration,
    tls: Option<TlsFiles>,
}

/// Takes `timeout`: the longest time that a request, or an attempt to connect, may take.
pub(crate) fn take_timeout(url: &mut StoreUrl) -> Result<Duration, StoreError> {
    let timeout = url.take_duration("timeout")?.unwrap_or(DEFAULT_TIMEOUT);
    if timeout.is_zero() {
        return Err(url.wrong("a timeout of 0", "write a time such as `500ms` or `2s`"));
    }
    Ok(timeout)
}

/// Takes `retry` of a vendor's driver: whether it may send a request again by itself.
#[cfg(any(feature = "cassandra", feature = "mongodb", feature = "aerospike"))]
pub(crate) fn take_retry(url: &mut StoreUrl) -> Result<bool, StoreError> {
    Ok(url.take_choice("retry", &[("none", false), ("driver", true)])?.unwrap_or(false))
}

impl ReachOptions {
    /// Takes `timeout` from a URL, for a driver without TLS.
    ///
    /// # Errors
    /// [`StoreError::Url`] if the value is wrong.
    pub(crate) fn take_plain(url: &mut StoreUrl) -> Result<ReachOptions, StoreError> {
        Ok(ReachOptions { timeout: take_timeout(url)?, tls: None })
    }

    /// Makes options for connections without TLS, for what a driver asks beside its own connections.
    #[cfg(feature = "nats")]
    pub(crate) fn plain(timeout: Duration) -> ReachOptions {
        ReachOptions { timeout, tls: None }
    }

    /// Takes `timeout`, `ca`, `cert`, `key`, `tls` and `pin` from a URL; all but the first only go with `tls_scheme`.
    ///
    /// # Errors
    /// [`StoreError::Url`] if a value is wrong, or a TLS file is named for a plain connection.
    pub(crate) fn take(url: &mut StoreUrl, tls_scheme: &str) -> Result<ReachOptions, StoreError> {
        let plain = ReachOptions::take_plain(url)?;
        let mut file = |name| url.take(name).map(PathBuf::from);
        let (authority, certificate, key) = (file("ca"), file("cert"), file("key"));
        let files = TlsFiles { authority, certificate, key, trust: Trust::take(url)? };
        let tls = url.scheme() == tls_scheme;
        if !tls && files != TlsFiles::default() {
            let problem = "an option of TLS for a connection without TLS";
            return Err(match is_of_socket(url) {
                true => url.wrong(problem, "leave it out: a Unix socket needs no TLS"),
                false => url.wrong(problem, format!("write `{tls_scheme}://…` for TLS")),
            });
        }
        Ok(ReachOptions { tls: tls.then_some(files), ..plain })
    }

    /// Longest time that a request, or an attempt to connect, may take.
    #[cfg(any(feature = "etcd", feature = "nats"))]
    pub(crate) fn timeout(&self) -> Duration {
        self.timeout
    }

    /// The files to use, if TLS was asked for.
    #[cfg(any(feature = "etcd", feature = "nats"))]
    pub(crate) fn tls(&self) -> Option<&TlsFiles> {
        self.tls.as_ref()
    }

    /// Returns the servers that the URL names, in its order. Call when the URL's options are finished.
    ///
    /// # Errors
    /// [`StoreError::Url`] if the URL names no server or one twice, or a file cannot be used.
    pub(crate) fn endpoints(
        &self,
        url: &StoreUrl,
        default_port: u16,
    ) -> Result<Vec<Endpoint>, StoreError> {
        let [first, rest @ ..] = url.hosts() else {
            let example = format!("write it like `{}://host1,host2:{default_port}`", url.scheme());
            return Err(url.wrong("no server", example));
        };
        let port = |host: &UrlHost| host.port.unwrap_or(default_port);
        let mut all = vec![self.at(url, &first.name, port(first))?];
        for host in rest {
            let next = all[0].beside(host.name.clone(), port(host));
            if all.iter().any(|known| known.name() == next.name()) {
                let problem = format!("{} twice", next.name());
                return Err(url.wrong(problem, "name each server once"));
            }
            all.push(next);
        }
        Ok(all)
    }

    /// Returns the one server that the URL names, or its socket on this machine. Call when the URL's options are finished.
    ///
    /// # Errors
    /// [`StoreError::Url`] if the URL does not name exactly one server, or a file cannot be used.
    pub(crate) fn endpoint(
        &self,
        url: &StoreUrl,
        default_port: u16,
    ) -> Result<Endpoint, StoreError> {
        if is_of_socket(url) {
            if !url.hosts().is_empty() || !url.path().starts_with('/') {
                let example = format!("write it like `{}:///run/server.sock`", url.scheme());
                return Err(url.wrong("no path of a Unix socket", example));
            }
            return Ok(Endpoint::at_socket(url.path(), self.timeout));
        }
        let [host] = url.hosts() else {
            let example = format!("write it like `{}://host:{default_port}`", url.scheme());
            return Err(url.wrong("not exactly one server", example));
        };
        self.at(url, &host.name, host.port.unwrap_or(default_port))
    }

    fn at(&self, url: &StoreUrl, host: &str, port: u16) -> Result<Endpoint, StoreError> {
        Endpoint::new(host, port, self.timeout, self.tls.as_ref())
            .map_err(|problem| url.wrong(problem, "name PEM files with `ca`, `cert` and `key`"))
    }
}

/// Returns true if a URL's path is that of a Unix socket: `redis+unix`, `memcached+unix`, `unix`.
pub(crate) fn is_of_socket(url: &StoreUrl) -> bool {
    url.scheme().rsplit('+').next() == Some("unix")
}

/// A server's address and how to reach it. Cheap to clone.
#[derive(Clone)]
pub struct Endpoint {
    /// Name or address; of a Unix socket its path.
    host: String,
    /// Port; 0 for a Unix socket.
    port: u16,
    timeout: Duration,
    tls: Option<Arc<ClientConfig>>,
    trust: Trust,
}

impl Endpoint {
    /// Makes an endpoint. `timeout` bounds one attempt to connect, set-up of TLS and protocol included, and one request.
    ///
    /// # Errors
    /// One line for the user if a TLS file cannot be read or used.
    pub fn new(
        host: impl Into<String>,
        port: u16,
        timeout: Duration,
        tls: Option<&TlsFiles>,
    ) -> Result<Endpoint, String> {
        let trust = tls.map_or(Trust::default(), |files| files.trust);
        let tls = tls.map(client_config).transpose()?;
        Ok(Endpoint { host: host.into(), port, timeout, tls, trust })
    }

    /// Returns a Unix socket on this machine.
    #[must_use]
    pub fn at_socket(path: impl Into<String>, timeout: Duration) -> Endpoint {
        Endpoint { host: path.into(), port: 0, timeout, tls: None, trust: Trust::default() }
    }

    /// Returns another server that is reached in the same way.
    #[must_use]
    pub fn beside(&self, host: impl Into<String>, port: u16) -> Endpoint {
        Endpoint { host: host.into(), port, ..self.clone() }
    }

    /// Returns name or address, without brackets; of a Unix socket its path.
    #[must_use]
    pub fn host(&self) -> &str {
        &self.host
    }

    /// Returns the port; 0 for a Unix socket.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    fn is_socket(&self) -> bool {
        self.port == 0
    }

    /// Returns the setting, as (name, value), that tells how servers' certificates were checked; `None` where that is usual.
    pub(crate) fn disclosed(&self) -> Option<(String, String)> {
        let told = self.trust.disclosed().filter(|_| self.tls.is_some())?;
        Some(("tls".to_owned(), told.to_owned()))
    }

    /// Returns the longest time that a request, or an attempt to connect, may take.
    #[must_use]
    pub fn timeout(&self) -> Duration {
        self.timeout
    }

    /// Returns the configuration of TLS; `None` without TLS.
    #[cfg(any(feature = "cassandra", feature = "nats"))]
    pub(crate) fn tls(&self) -> Option<Arc<ClientConfig>> {
        self.tls.clone()
    }

    /// Returns `host:port`, or a socket's path, for messages.
    #[must_use]
    pub fn name(&self) -> String {
        if self.is_socket() {
            self.host.clone()
        } else if self.host.contains(':') {
            format!("[{}]:{}", self.host, self.port)
        } else {
            format!("{}:{}", self.host, self.port)
        }
    }

    /// Connects, over TLS if asked. Not bounded in time: see [`Endpoint::bounded`].
    pub(crate) async fn connect(&self) -> Answer<Stream> {
        let refused = |problem: String| {
            let message = format!("cannot connect to {}: {problem}", self.name());
            RequestError::failed(ErrorClass::Refused, message).losing_connection()
        };
        if self.is_socket() {
            let socket = UnixStream::connect(&self.host).await;
            return socket.map(Stream::Unix).map_err(|e| refused(e.to_string()));
        }
        let tcp = TcpStream::connect((self.host.as_str(), self.port))
            .await
            .map_err(|e| refused(e.to_string()))?;
        // Requests are already gathered into one write; Nagle's algorithm would only add delay.
        tcp.set_nodelay(true).map_err(|e| refused(e.to_string()))?;
        let Some(config) = &self.tls else { return Ok(Stream::Plain(tcp)) };
        let name = ServerName::try_from(self.host.clone())
            .map_err(|_| refused("this host name cannot be used with TLS".to_owned()))?;
        let tls = TlsConnector::from(config.clone()).connect(name, tcp).await;
        let tls = tls.map_err(|error| {
            // What the check of the certificate says has its own advice.
            let told = error.to_string();
            let told = told.strip_prefix("unexpected error: ").unwrap_or(&told);
            let advice =
                if told.contains("ca=FILE") { "" } else { "; is this the server's TLS port?" };
            refused(format!("TLS: {told}{advice}"))
        })?;
        Ok(Stream::Tls(Box::new(tls)))
    }

    /// Gives `attempt` the time allowed, and no more.
    pub(crate) async fn bounded<T>(&self, attempt: impl Future<Output = Answer<T>>) -> Answer<T> {
        tokio::time::timeout(self.timeout, attempt).await.unwrap_or_else(|_| {
            let tls = if self.tls.is_some() { "; is this the server's TLS port?" } else { "" };
            let message = format!(
                "no answer from {} within {:?} to the attempt to connect{tls}; `?timeout=` allows more",
                self.name(),
                self.timeout
            );
            Err(RequestError::failed(ErrorClass::Refused, message).losing_connection())
        })
    }
}

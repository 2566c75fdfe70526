//! Where a server is and how it is reached: address, TLS, time allowed.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use kvdyno_core::store::{Answer, ErrorClass, Fault};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

use super::stream::Stream;
use crate::error::StoreError;
use crate::url::{Host, StoreUrl};

/// Time allowed unless the URL has `timeout`.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(2);

/// Which files TLS uses.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TlsFiles {
    /// Certificates (PEM) of the authorities to trust; without it those that Mozilla trusts.
    pub authority: Option<PathBuf>,
    /// This client's own certificate chain (PEM), for servers that ask for one.
    pub certificate: Option<PathBuf>,
    /// Private key (PEM) of `certificate`.
    pub key: Option<PathBuf>,
}

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

    /// Takes `timeout`, `ca`, `cert` and `key` from a URL; the last three only go with `tls_scheme`.
    ///
    /// # Errors
    /// [`StoreError::Url`] if a value is wrong, or a TLS file is named for a plain connection.
    pub(crate) fn take(url: &mut StoreUrl, tls_scheme: &str) -> Result<ReachOptions, StoreError> {
        let plain = ReachOptions::take_plain(url)?;
        let mut file = |name| url.take(name).map(PathBuf::from);
        let files = TlsFiles { authority: file("ca"), certificate: file("cert"), key: file("key") };
        let tls = url.scheme() == tls_scheme;
        if !tls && files != TlsFiles::default() {
            let advice = format!("write `{tls_scheme}://…` for TLS");
            return Err(url.wrong("a TLS file for a connection without TLS", advice));
        }
        Ok(ReachOptions { tls: tls.then_some(files), ..plain })
    }

    /// Longest time that a request, or an attempt to connect, may take.
    #[cfg(feature = "etcd")]
    pub(crate) fn timeout(&self) -> Duration {
        self.timeout
    }

    /// The files to use, if TLS was asked for.
    #[cfg(feature = "etcd")]
    pub(crate) fn tls(&self) -> Option<&TlsFiles> {
        self.tls.as_ref()
    }

    /// The servers that the URL names, in its order. Call when the URL's options are finished.
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
        let port = |host: &Host| host.port.unwrap_or(default_port);
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

    /// The one server that the URL names. Call when the URL's options are finished.
    ///
    /// # Errors
    /// [`StoreError::Url`] if the URL does not name exactly one server, or a file cannot be used.
    pub(crate) fn endpoint(
        &self,
        url: &StoreUrl,
        default_port: u16,
    ) -> Result<Endpoint, StoreError> {
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

/// A server's address and how to reach it. Cheap to clone.
#[derive(Clone)]
pub struct Endpoint {
    host: String,
    port: u16,
    timeout: Duration,
    tls: Option<Arc<ClientConfig>>,
}

impl Endpoint {
    /// `timeout` bounds one attempt to connect, set-up of TLS and protocol included, and one
    /// request.
    ///
    /// # Errors
    /// One line for the user if a TLS file cannot be read or used.
    pub fn new(
        host: impl Into<String>,
        port: u16,
        timeout: Duration,
        tls: Option<&TlsFiles>,
    ) -> Result<Endpoint, String> {
        let tls = tls.map(client_config).transpose()?;
        Ok(Endpoint { host: host.into(), port, timeout, tls })
    }

    /// Another server that is reached in the same way.
    #[must_use]
    pub fn beside(&self, host: impl Into<String>, port: u16) -> Endpoint {
        Endpoint { host: host.into(), port, ..self.clone() }
    }

    /// Name or address, without brackets.
    #[must_use]
    pub fn host(&self) -> &str {
        &self.host
    }

    /// Port.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Longest time that a request, or an attempt to connect, may take.
    #[must_use]
    pub fn timeout(&self) -> Duration {
        self.timeout
    }

    /// How TLS is spoken, if it is.
    #[cfg(feature = "cassandra")]
    pub(crate) fn tls(&self) -> Option<Arc<ClientConfig>> {
        self.tls.clone()
    }

    /// `host:port`, for messages.
    #[must_use]
    pub fn name(&self) -> String {
        if self.host.contains(':') {
            format!("[{}]:{}", self.host, self.port)
        } else {
            format!("{}:{}", self.host, self.port)
        }
    }

    /// Connects, over TLS if asked. Not bounded in time: see [`Endpoint::bounded`].
    pub(crate) async fn connect(&self) -> Answer<Stream> {
        let refused = |problem: String| {
            let message = format!("cannot connect to {}: {problem}", self.name());
            Fault::failed(ErrorClass::Refused, message).losing_connection()
        };
        let tcp = TcpStream::connect((self.host.as_str(), self.port))
            .await
            .map_err(|e| refused(e.to_string()))?;
        // Requests are already gathered into one write; Nagle's algorithm would only add delay.
        tcp.set_nodelay(true).map_err(|e| refused(e.to_string()))?;
        let Some(config) = &self.tls else { return Ok(Stream::Plain(tcp)) };
        let name = ServerName::try_from(self.host.clone())
            .map_err(|_| refused("this host name cannot be used with TLS".to_owned()))?;
        let tls = TlsConnector::from(config.clone()).connect(name, tcp).await.map_err(|e| {
            refused(format!(
                "TLS: {e}; is this the server's TLS port, and is its authority \
                                 trusted (option `ca=FILE`)?"
            ))
        })?;
        Ok(Stream::Tls(Box::new(tls)))
    }

    /// Gives `attempt` the time allowed, and no more.
    pub(crate) async fn bounded<T>(&self, attempt: impl Future<Output = Answer<T>>) -> Answer<T> {
        tokio::time::timeout(self.timeout, attempt).await.unwrap_or_else(|_| {
            let tls = if self.tls.is_some() { "; is this the server's TLS port?" } else { "" };
            let message = format!("no answer from {} within {:?}{tls}", self.name(), self.timeout);
            Err(Fault::failed(ErrorClass::Refused, message).losing_connection())
        })
    }
}

fn client_config(files: &TlsFiles) -> Result<Arc<ClientConfig>, String> {
    let mut roots = RootCertStore::empty();
    match &files.authority {
        None => roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned()),
        Some(path) => {
            for certificate in read_certificates(path)? {
                roots.add(certificate).map_err(|e| format!("`{}`: {e}", path.display()))?;
            }
        }
    }
    let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|e| e.to_string())?
        .with_root_certificates(roots);
    let config = match (&files.certificate, &files.key) {
        (None, None) => builder.with_no_client_auth(),
        (Some(certificate), Some(key)) => {
            let chain = read_certificates(certificate)?;
            let key = PrivateKeyDer::from_pem_file(key)
                .map_err(|e| format!("no private key can be read from `{}`: {e}", key.display()))?;
            builder
                .with_client_auth_cert(chain, key)
                .map_err(|e| format!("`{}`: {e}", certificate.display()))?
        }
        _ => return Err("a client certificate needs both `cert=FILE` and `key=FILE`".to_owned()),
    };
    Ok(Arc::new(config))
}

fn read_certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let wrong = |e: &dyn std::fmt::Display| {
        format!("no certificates can be read from `{}`: {e}; it must be a PEM file", path.display())
    };
    let certificates: Vec<_> = CertificateDer::pem_file_iter(path)
        .map_err(|e| wrong(&e))?
        .collect::<Result<_, _>>()
        .map_err(|e| wrong(&e))?;
    if certificates.is_empty() {
        return Err(wrong(&"it holds none"));
    }
    Ok(certificates)
}
